"""The harmonizer without a model: what it decides, and above all what it leaves alone."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.models.minilm import MiniLMEmbedding
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.decisions import BeliefProposal, ClusterDecision
from memory_core.shmr.phrases import learn_phrases
from memory_core.shmr.rules import harmonize_by_rules
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import slot_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
DATA = Path(__file__).parents[1] / "data"
PAIRS = json.loads((DATA / "text_pairs.json").read_text())["pairs"]
PLANTED = json.loads((DATA / "planted_slots.json").read_text())


def fact(
    number: int, value: str, *, hour: float | None = None, about: str = "User|lives in", **given: Any
) -> Candidate:
    subject, predicate = about.split("|")
    at = AT + timedelta(hours=number if hour is None else hour)
    text = f"{subject} {predicate} {value}"
    given = {"confidence": 0.7, "source": f"source {number}", **given}
    return Candidate(UUID(int=number), 1, text, "semantic", text, subject, predicate, value, at, **given)


def sentence(number: int, content: str, **given: Any) -> Candidate:
    given = {"confidence": 0.7, "source": None, **given}
    return Candidate(
        UUID(int=number), 1, content, "semantic", content, None, None, None, AT + timedelta(hours=number), **given
    )


def decide(*members: Candidate, vectors: Any = None, **limits: Any) -> ClusterDecision:
    learned = learn_phrases([member.content for member in members if not member.has_triple])
    return harmonize_by_rules(
        members, [slot_of(member, learned) for member in members], vectors, ShmrSettings(**limits)
    )


def moves(decision: ClusterDecision) -> set[tuple[int, int, str]]:
    return {(each.loser.int, each.winner.int, each.reason) for each in decision.supersedes}


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


def test_free_text_is_only_searched_for_duplicates() -> None:
    """The same text is a duplicate; near-identical text with another word, number or negation is not."""
    same = decide(sentence(1, "The door of the shed is green"), sentence(2, "the door of the shed is green."))
    assert (2, 1, "duplicate") in moves(same)
    vectors = np.ones((2, 1), dtype=np.float32)
    for one, other in (
        ("Mira bought a red bike for work", "Mira sold a red bike for work"),
        ("Alice trusts Bob with all keys", "Bob trusts Alice with all keys"),
        ("Room 4 has eleven chairs now", "Room 5 has eleven chairs now"),
        ("Lunch is before the review", "Lunch is after the review"),
    ):
        pair = sentence(1, one), sentence(2, other)
        assert harmonize_by_rules(pair, [None, None], vectors, ShmrSettings()) == ClusterDecision()
    moved = sentence(1, "Every Friday Alice waters plants"), sentence(2, "Alice waters plants every Friday")
    assert moves(harmonize_by_rules(moved, [None, None], vectors, ShmrSettings())) == {(2, 1, "duplicate")}


def test_i_of_two_speakers_is_not_the_same() -> None:
    """The same words in the first person from two sources are two facts."""
    pair = sentence(1, "I am tired", source="ann"), sentence(2, "I am tired", source="ben")
    assert decide(*pair).supersedes == ()


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


async def test_text_pairs_are_never_wrongly_superseded() -> None:
    """No compatible pair loses a memory, and no contradicting pair loses the later one or is called a duplicate."""
    learned = learn_phrases([pair[side] for pair in PAIRS for side in ("earlier", "later")])
    provider = MiniLMEmbedding()
    for pair in PAIRS:
        members = [sentence(1, pair["earlier"]), sentence(2, pair["later"])]
        vectors = np.asarray(await provider.embed([member.content for member in members]))
        decision = harmonize_by_rules(members, [slot_of(m, learned) for m in members], vectors, ShmrSettings())
        allowed = {"contradiction": {(1, 2, "update")}, "duplicate": {(2, 1, "duplicate")}, "compatible": set()}
        assert moves(decision) <= allowed[pair["relation"]], pair
        assert pair["relation"] == "contradiction" or not decision.beliefs or moves(decision), pair


def test_planted_contradictions_are_settled_and_look_alikes_untouched() -> None:
    """Most planted updates are decided for the new value, none for the old one, and no look-alike is touched."""
    number, facts, old = 0, [], set()
    for row in PLANTED["contradicting"]:
        for value in (row["object_old"], row["object_new"]):
            number += 1
            facts.append(fact(number, value, about=f"{row['subject']}|{row['predicate']}"))
        old.add(number - 1)
    for row in PLANTED["distractors"]:
        number += 1
        facts.append(fact(number, row["object"], about=f"{row['subject']}|{row['predicate']}"))
    losers = {loser for loser, _, _ in moves(decide(*facts))}
    assert losers <= old
    assert len(losers) >= 19


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bob works at Acme", "Bob works at night"),
        ("Bob works for Acme", "Bob works for free"),
        ("Bob lives in Berlin", "Bob lives in a small flat"),
        ("Bob lives in Berlin in summer", "Bob lives in Rome in winter"),
        ("Ann was born in Rome", "Ann was born in 1990"),
        ("Ann was born in May", "Ann was born in Italy"),
        ("Ben is married to Ann", "Ben is married to his job"),
        ("Ben reports to Ann", "Ben reports to Ann and Eva"),
        ("My sister lives in Rome", "My sister lives in Milan"),
        ("My favourite colour is blue", "My favourite food is pizza"),
        ("Mark said he lives in Rome", "Mark said he lives in Paris"),
        ("Maybe Ann lives in Rome", "Maybe Ann lives in Oslo"),
        ("If it rains Ann lives in Rome", "If it rains Ann lives in Oslo"),
        ("Is Ann based in Rome?", "Is Ann based in Oslo?"),
        ("Ann wants to live in Rome", "Ann wants to live in Oslo"),
        ("Ann used to live in Rome", "Ann used to live in Oslo"),
        ("Ann's brother and Ben live in Rome", "Ann's brother and Ben live in Oslo"),
        ("One of the servers is located in Rome", "One of the servers is located in Oslo"),
        ("Some tickets are not urgent", "Some tickets are urgent"),
        ("A colleague of Ann lives in Rome", "A colleague of Ann lives in Oslo"),
    ],
)
def test_sentences_that_only_look_like_rivals_are_left_alone(first: str, second: str) -> None:
    """The same words before different ends are no update where subject, kind of value or mood leave it open."""
    assert decide(sentence(1, first), sentence(2, second)) == ClusterDecision()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bob lives in Berlin", "Bob lives in Oslo"),
        ("The release is planned for 12 March", "The release is planned for 26 March"),
        ("My favourite colour is blue", "My favourite colour is green"),
        ("The owner of the archive is Sarah", "The owner of the archive is Miguel"),
        ("Ann works at Acme", "Ann no longer works at Acme"),
        ("The server is reachable", "The server is not reachable"),
    ],
)
def test_two_plain_sentences_are_enough_for_an_update(first: str, second: str) -> None:
    """Without a triple and without other text, a state that names one thing is replaced by its later value."""
    assert moves(decide(sentence(1, first), sentence(2, second))) == {(1, 2, "update")}
