"""The generator of reworded facts: what the belief benchmark measures against."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.benchmarks.reworded_facts import WORDINGS, relations, replaced, reworded_facts


@pytest.mark.parametrize("wordings", WORDINGS)
def test_the_same_seed_tells_the_same_facts(wordings: str) -> None:
    """A seed repeats itself exactly, and another seed tells of other things."""
    assert reworded_facts(3, wordings, heads=6) == reworded_facts(3, wordings, heads=6)
    assert reworded_facts(3, wordings, heads=6) != reworded_facts(4, wordings, heads=6)


def test_the_two_sets_share_relations_and_no_wording() -> None:
    """What is held out is another wording of the same relations, three times each."""
    first, second = (relations(one) for one in WORDINGS)
    assert first.keys() == second.keys()
    for name in first:
        assert not set(first[name].wordings) & set(second[name].wordings)
        assert len({*first[name].wordings, *second[name].wordings}) == 6


@pytest.mark.parametrize("wordings", WORDINGS)
def test_shares_are_kept_and_only_replaced_values_give_way(wordings: str) -> None:
    """About three in ten facts are updated, a tenth of the statements coexist, and none of those is replaced."""
    told = reworded_facts(1, wordings)
    assert [one.serial for one in told] == list(range(len(told)))
    gone = replaced(told)
    assert 0.24 < len(gone) / (14 * 40) < 0.36
    assert 0.08 < sum(not one.single_valued for one in told) / len(told) < 0.12
    by_fact = defaultdict(list)
    for one in told:
        by_fact[one.fact].append(one)
    for same in by_fact.values():
        last = same[-1]
        expected = {one.serial for one in same if one.single_valued and one.value != last.value}
        assert expected == gone & {one.serial for one in same}
