"""The harmonizer without a model: what it decides, and above all what it leaves alone."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.shmr.candidates import Candidate
from memory_core.shmr.decisions import BeliefProposal, ClusterDecision
from tests.unit.small_clusters import AT, decide, fact, moves, sentence


def only_belief(decision: ClusterDecision) -> BeliefProposal:
    (belief,) = decision.beliefs
    return belief


def ints(ids: tuple[UUID, ...]) -> set[int]:
    return {each.int for each in ids}


def test_a_later_value_replaces_an_earlier_one() -> None:
    """The newer of two values of a single-valued relation wins, and the belief says on what it rests."""
    decision = decide(fact(1, "Berlin"), fact(2, "Paris", confidence=0.6))
    assert moves(decision) == {(1, 2, "update")}
    belief = only_belief(decision)
    assert (belief.status, belief.object, belief.confidence) == ("held", "Paris", 0.6)
    assert (ints(belief.supports), ints(belief.superseded)) == ({2}, {1})
    assert belief.valid_from == AT + timedelta(hours=2)
    assert "later" in belief.rationale


def test_recency_beats_repetition() -> None:
    """One newer statement replaces ten older ones (F57)."""
    decision = decide(*(fact(i, "Berlin") for i in range(1, 11)), fact(11, "Paris"))
    assert {loser for loser, _, _ in moves(decision)} == set(range(1, 11))
    assert only_belief(decision).object == "Paris"


def test_equal_statements_are_duplicates_of_the_earliest() -> None:
    """The earliest stays, the others support it; their confidences do not add up (F56)."""
    decision = decide(fact(1, "Berlin"), fact(2, "berlin.", confidence=0.8), fact(3, "Berlin", source="source 2"))
    assert moves(decision) == {(2, 1, "duplicate"), (3, 1, "duplicate")}
    belief = only_belief(decision)
    assert ints(belief.supports) == {1, 2, 3}
    assert belief.confidence == 0.8
    assert belief.content == "User lives in Berlin"


def test_repeating_one_source_raises_nothing() -> None:
    """A belief is never surer than the surest of its sources, however often it is repeated (F56)."""
    decision = decide(*(fact(i, "Berlin", source="log", confidence=0.5) for i in range(1, 11)))
    assert only_belief(decision).confidence == 0.5


def test_more_detail_stays_whichever_came_first() -> None:
    """Added detail is no contradiction: the more specific statement is kept."""
    for first, second in (("Lisbon", "Lisbon, Portugal"), ("Lisbon, Portugal", "Lisbon")):
        decision = decide(fact(1, first), fact(2, second))
        kept = 1 if "," in first else 2
        assert moves(decision) == {(3 - kept, kept, "duplicate")}
        assert only_belief(decision).object == "Lisbon, Portugal"


def test_words_added_without_a_comma_decide_nothing() -> None:
    """ "Paris" and "Paris Hilton" may be anything to one another."""
    assert decide(fact(1, "Paris"), fact(2, "Paris Hilton")).outcome == "nothing_to_say"


def test_an_explicit_correction_wins_over_time() -> None:
    """A correction wins even where its observed time is the earlier one."""
    decision = decide(fact(1, "Berlin", hour=5), fact(2, "Paris", hour=1, corrects=UUID(int=1)))
    assert moves(decision) == {(1, 2, "correction")}
    belief = only_belief(decision)
    assert (belief.object, ints(belief.superseded)) == ("Paris", {1})


def test_a_correction_reaches_across_slots_and_plain_text() -> None:
    """What a person corrected is corrected, whether or not both memories have the same slot."""
    decision = decide(sentence(1, "The cat sleeps a lot"), sentence(2, "The dog does", corrects=UUID(int=1)))
    assert moves(decision) == {(1, 2, "correction")}


def test_memories_that_correct_each_other_are_left_alone() -> None:
    """A circle of corrections is refused with a reason, not followed."""
    decision = decide(
        sentence(1, "The cat sleeps", corrects=UUID(int=2)), sentence(2, "The dog does", corrects=UUID(int=1))
    )
    assert decision.supersedes == ()
    assert len(decision.rejected) == 2
    circle = [sentence(n, f"Number {n} it is", corrects=UUID(int=n % 3 + 1)) for n in (1, 2, 3)]
    assert decide(*circle).supersedes == ()
    assert len(decide(*circle).rejected) == 3


@pytest.mark.parametrize("standing", [{"confirmed": True}, {"corrects": UUID(int=99)}])
def test_what_a_person_said_is_never_overridden(standing: dict[str, Any]) -> None:
    """A later statement against a person's is contested, however many repeat it."""
    decision = decide(fact(1, "Berlin", **standing), fact(2, "Paris"), fact(3, "Paris"), fact(4, "Paris"))
    assert all(loser != 1 for loser, _, _ in moves(decision))
    belief = only_belief(decision)
    assert belief.status == "contested"
    assert ints(belief.supports) == {1}
    assert ints(belief.contradicts) == {2, 3, 4}


def test_a_confirmation_stands_against_what_was_said_before_it() -> None:
    """The newer statement wins unless the older one was confirmed after it."""
    assert moves(decide(fact(1, "Berlin", confirmed_at=AT + timedelta(hours=1.5)), fact(2, "Paris"))) == {
        (1, 2, "update")
    }
    later = decide(fact(1, "Berlin", confirmed_at=AT + timedelta(hours=2.5)), fact(2, "Paris"))
    assert only_belief(later).status == "contested"


def test_a_triple_whose_values_differ_in_numbers_holds_one() -> None:
    """A count, a time or an amount that is stated anew replaces the former, whatever the relation is called."""
    assert moves(decide(fact(1, "120", about="Corvane|seats"), fact(2, "150", about="Corvane|seats"))) == {
        (1, 2, "update")
    }
    named = decide(fact(1, "blue", about="Corvane|colours"), fact(2, "green", about="Corvane|colours"))
    assert moves(named) == set()


def test_a_person_replaces_what_a_person_said() -> None:
    """The later of two confirmed statements wins by its time."""
    decision = decide(fact(1, "Berlin", confirmed=True), fact(2, "Paris", confirmed=True))
    assert moves(decision) == {(1, 2, "update")}


def test_a_repeated_older_statement_is_contested() -> None:
    """Berlin, Paris, Berlin again: which is meant is not known."""
    decision = decide(fact(1, "Berlin"), fact(2, "Paris"), fact(3, "Berlin"))
    assert moves(decision) == {(3, 1, "duplicate")}
    assert only_belief(decision).status == "contested"


def test_values_stated_in_turns_stand_side_by_side() -> None:
    """Berlin, Paris, Berlin, Paris: nothing is replaced, nothing contested."""
    decision = decide(*(fact(i, ("Berlin", "Paris")[i % 2]) for i in range(1, 5)))
    assert {reason for _, _, reason in moves(decision)} == {"duplicate"}
    assert {belief.status for belief in decision.beliefs} == {"held"}


def test_equal_times_are_undecided() -> None:
    """Two sources at the same time, one against one: contested, with both sides and the lower confidence."""
    decision = decide(fact(1, "Berlin", hour=1, confidence=0.9), fact(2, "Paris", hour=1 + 0.5 / 60, confidence=0.4))
    assert decision.supersedes == ()
    belief = only_belief(decision)
    assert (belief.status, belief.confidence) == ("contested", 0.4)
    assert ints(belief.supports) | ints(belief.contradicts) == {1, 2}


def test_independent_support_decides_where_times_do_not() -> None:
    """Three sources against one at the same time win; three repeats of one source do not."""
    sources = decide(*(fact(i, "Berlin", hour=1) for i in (1, 2, 3)), fact(4, "Paris", hour=1))
    assert (4, 1, "contradiction") in moves(sources)
    repeats = decide(*(fact(i, "Berlin", hour=1, source="log") for i in (1, 2, 3)), fact(4, "Paris", hour=1))
    assert all(loser != 4 for loser, _, _ in moves(repeats))
    assert only_belief(repeats).status == "contested"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fact(1, "Berlin"), fact(2, "Paris", about="Bob|lives in")),
        (fact(1, "tea", about="User|likes"), fact(2, "coffee", about="User|likes")),
        (fact(1, "peanuts", about="User|is allergic to"), fact(2, "eggs", about="User|is allergic to")),
        (fact(1, "Rome in May", about="User|trip"), fact(2, "Oslo in June", about="User|trip")),
        (fact(1, "Berlin", about="User|does not live in"), fact(2, "Paris", about="User|lives in")),
        (fact(1, "Oslo"), fact(2, "Bergen as well")),
    ],
)
def test_what_is_no_contradiction_changes_nothing(first: Candidate, second: Candidate) -> None:
    """Another subject, many values, another time, a denial of something else and an addition are left alone."""
    assert decide(first, second) == ClusterDecision()


def test_an_unknown_relation_is_contested_never_replaced() -> None:
    """Where it is not known whether a relation holds one value, both stay and the question is shown."""
    decision = decide(fact(1, "Ann", about="User|mentors"), fact(2, "Ben", about="User|mentors"))
    assert decision.supersedes == ()
    assert only_belief(decision).status == "contested"


def test_a_denial_replaces_what_it_denies() -> None:
    """A state may end, even in a relation with many values; a past event is not undone by a later denial."""
    decision = decide(fact(1, "tea", about="User|likes"), fact(2, "tea", about="User|no longer likes"))
    assert moves(decision) == {(1, 2, "update")}
    event = decide(fact(1, "the talk", about="User|enjoyed"), fact(2, "the talk", about="User|not enjoyed"))
    assert event.supersedes == ()
    assert only_belief(event).status == "contested"


def test_a_parent_scope_is_evidence_and_never_a_target() -> None:
    """A parent's memory supports or contradicts; it neither loses nor, by being later, wins."""
    support = decide(fact(1, "Berlin", read_only=True), fact(2, "Berlin"))
    assert support.supersedes == ()
    assert ints(only_belief(support).supports) == {1, 2}
    overridden = decide(fact(1, "Berlin", read_only=True), fact(2, "Paris"))
    assert overridden.supersedes == ()
    assert ints(only_belief(overridden).contradicts) == {1}
    later = decide(fact(1, "Berlin"), fact(2, "Paris", read_only=True))
    assert later.supersedes == ()
    assert only_belief(later).status == "contested"


def test_a_person_in_a_parent_scope_does_not_outweigh_one_here() -> None:
    """A later side backed by a parent's confirmation leaves contested what a person confirmed here."""
    here, later = fact(1, "Berlin", confirmed=True), fact(2, "Paris")
    decision = decide(here, later, fact(3, "Paris", confirmed=True, read_only=True))
    assert decision.supersedes == ()
    assert only_belief(decision).status == "contested"


def test_beliefs_beyond_the_limit_are_rejected_with_a_reason() -> None:
    """A cluster gives at most the configured number of beliefs; the rest is said, never dropped in silence."""
    facts = [fact(2 * i + turn, str(turn), about=f"Thing {i}|owner") for i in range(1, 5) for turn in (0, 1)]
    decision = decide(*facts, max_beliefs_per_cluster=3)
    assert len(decision.beliefs) == 3
    assert [each.reason for each in decision.rejected] == ["more than 3 beliefs in one cluster"]


statements = st.tuples(
    st.sampled_from(["User|lives in", "User|likes", "User|mentors", "Bob|does not like", "Bob|likes"]),
    st.sampled_from(["a", "b", "b, c", "b d", "not a"]),
    st.integers(0, 4),
    st.sampled_from([None, "x", "y"]),
    st.booleans(),
    st.booleans(),
    st.floats(0, 1),
    st.one_of(st.none(), st.integers(1, 8)),
)


@given(st.lists(statements, max_size=9), st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_every_decision_keeps_the_promises(rows: list[tuple[Any, ...]], shuffler: random.Random) -> None:
    """Whatever is in a cluster: each loser once, no circle, no parent touched, no person overridden, any order."""
    members = [
        fact(n, value, about=about, hour=hour, source=source, confirmed=confirmed, read_only=parent,
             confidence=confidence, corrects=None if corrects in (None, n) else UUID(int=corrects))
        for n, (about, value, hour, source, confirmed, parent, confidence, corrects) in enumerate(rows, 1)
    ]  # fmt: skip
    decision = decide(*members)
    assert decide(*shuffler.sample(members, len(members))) == decision
    assert ClusterDecision.from_json(decision.to_json()) == decision
    by_id = {member.memory_id: member for member in members}
    to = {each.loser: each.winner for each in decision.supersedes}
    assert len(to) == len(decision.supersedes)
    for each in decision.supersedes:
        assert not by_id[each.loser].read_only
        assert not by_id[each.loser].by_person or by_id[each.winner].by_person
        last, steps = each.loser, 0
        while last in to:
            last, steps = to[last], steps + 1
            assert steps <= len(members)
    for belief in decision.beliefs:
        assert belief.supports
        assert belief.confidence <= max(by_id[each].confidence for each in belief.supports + belief.contradicts)
        assert not set(belief.supports) & set(belief.superseded)
        assert not set(belief.supports) & set(belief.contradicts)
