"""What a well-formed proposal may still get wrong about its evidence, and what is left alone."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_core.shmr.candidates import Candidate
from memory_core.shmr.grounding import objection, speaking_against, supporting
from memory_core.shmr.proposals import ProposedBelief
from memory_core.shmr.slots import Slot, slot_of


def memory(day: int, subject: str, predicate: str, value: str, *, source: str = "chat", **fields: Any) -> Candidate:
    """A memory of a day in February 2026."""
    return Candidate(
        memory_id=uuid.UUID(int=day),
        version=1,
        content_hash="",
        layer="semantic",
        content=fields.pop("content", f"{subject} {predicate} {value}"),
        subject=subject,
        predicate=predicate,
        object=value,
        observed_at=datetime(2026, 2, day, tzinfo=UTC),
        confidence=0.8,
        source=source,
        **fields,
    )


def proposal(subject: str, predicate: str, value: str, *evidence: str, **fields: Any) -> ProposedBelief:
    """A `create` with confidence 0.8; an `update` where a target is given."""
    action = "update" if "target" in fields else "create"
    given = {"confidence": 0.8, "action": action, "evidence": list(evidence), **fields}
    return ProposedBelief(subject=subject, predicate=predicate, object=value, **given)


def against(item: ProposedBelief, *members: Candidate) -> str:
    """The objection, with the members as m1, m2, …"""
    named = {f"m{number}": member for number, member in enumerate(members, 1)}
    return objection(item, named, slots_of(*members))


def slots_of(*members: Candidate) -> dict[str, Slot | None]:
    """The members' slots as m1, m2, …"""
    return {f"m{number}": slot_of(member) for number, member in enumerate(members, 1)}


OLD = memory(2, "Ewa", "lives in", "Lublin")
NEW = memory(9, "Ewa", "lives in", "Gdynia")
LAST = memory(16, "Ewa", "lives in", "Lublin", source="letter")
MOVED = proposal("Ewa", "lives in", "Gdynia", "m2", target="m1")


def test_a_sound_update_and_a_sound_belief_pass() -> None:
    """The later memory replaces the earlier one; a belief in other words than its evidence is nobody's concern here."""
    assert against(MOVED, OLD, NEW) == ""
    assert against(proposal("Ewa", "likes", "the coast", "m1", "m2"), OLD, NEW) == ""


@pytest.mark.parametrize(
    "item",
    [
        proposal("user", "user", "user", "m1"),
        proposal("Ewa", "lives in", "Ewa", "m1"),
        proposal("Ewa", "lives in Gdynia", "Gdynia", "m2"),
        proposal("The shop", "opens at 7 am", "07:00", "m1"),
    ],
)
def test_a_statement_that_repeats_itself_says_nothing(item: ProposedBelief) -> None:
    """Subject, predicate and object that hold one another are no statement, however the value is written."""
    assert "repeat" in against(item, OLD, NEW)


def test_a_belief_that_its_author_does_not_believe_is_none() -> None:
    """A confidence next to nothing is turned down; a low one is a speculation and may stand."""
    assert "confidence" in against(proposal("Ewa", "lives in", "Gdynia", "m2", confidence=0.0001), OLD, NEW)
    assert against(proposal("Ewa", "lives in", "Gdynia", "m2", confidence=0.2), OLD, NEW) == ""


def test_numbers_come_from_the_evidence() -> None:
    """A number must be in a cited memory or its date, in whatever form; one from another memory does not count."""
    rent = memory(3, "The rent", "is", "1,250 euros")
    due = memory(4, "The rent", "is due on", "day 5")
    assert against(proposal("The rent", "amounts to", "1250 EUR", "m1"), rent, due) == ""
    assert against(proposal("The rent", "has been known since", "3 February 2026", "m1"), rent, due) == ""
    assert "number" in against(proposal("The rent", "amounts to", "1350 EUR", "m1"), rent, due)
    assert "number" in against(proposal("The rent", "is due on", "day 5", "m1"), rent, due)


def test_what_is_replaced_must_say_something_else() -> None:
    """An update to what its target says already would only hide the target."""
    assert "the same" in against(proposal("Ewa", "lives in", "Lublin", "m2", target="m1"), OLD, NEW)


def test_the_older_does_not_replace_the_newer() -> None:
    """But a person's word does, and so do two sources that are not the target's."""
    back = proposal("Ewa", "lives in", "Lublin", "m1", target="m2")
    assert "before" in against(back, OLD, NEW)
    assert against(back, memory(2, "Ewa", "lives in", "Lublin", confirmed=True), NEW) == ""
    both = proposal("Ewa", "lives in", "Lublin", "m1", "m3", target="m2")
    first, second = (memory(day, "Ewa", "lives in", "Lublin", source=f"letter {day}") for day in (2, 3))
    assert against(both, first, NEW, second) == ""
    same = memory(3, "Ewa", "lives in", "Lublin", source="letter 2")
    assert "before" in against(both, first, NEW, same)


def test_a_later_memory_that_is_not_cited_counts() -> None:
    """What overlooks a memory that was said after its evidence is turned down; where that agrees, it stands."""
    assert "later" in against(MOVED, OLD, NEW, LAST)
    stale = proposal("Ewa", "has her home in", "Lublin", "m1")
    assert "later" in against(stale, OLD, NEW)
    assert against(stale, memory(2, "Ewa", "lives in", "Lublin", confirmed=True), NEW) == ""
    assert against(proposal("Ewa", "speaks", "Polish", "m1"), OLD, memory(9, "Ewa", "speaks", "Kashubian")) == ""
    assert against(MOVED, OLD, NEW, memory(16, "Ewa", "lives in", "Gdynia")) == ""


def test_another_value_of_many_is_no_support() -> None:
    """One language does not support another; two that say it both do, and what contradicts stays to be told."""
    both = (memory(2, "Ewa", "speaks", "Polish"), memory(9, "Ewa", "speaks", "Kashubian"))
    assert supporting(proposal("Ewa", "speaks", "Polish", "m1", "m2"), slots_of(*both)) == ["m1"]
    assert supporting(proposal("Ewa", "lives in", "Gdynia", "m1", "m2"), slots_of(OLD, NEW)) == ["m1", "m2"]
    assert supporting(proposal("Ewa", "lives in", "Lublin", "m1", "m3"), slots_of(OLD, NEW, LAST)) == ["m1", "m3"]


def test_what_says_the_same_does_not_speak_against() -> None:
    """A memory is not dampened by its own repeat, nor by itself; another value, or a denial, may."""
    members = slots_of(OLD, NEW, LAST, memory(17, "Ewa", "does not live in", "Lublin"))
    dampen = proposal("Ewa", "lives in", "Lublin", "m1", "m3", target="m1")
    assert speaking_against(dampen, members) == []
    assert speaking_against(dampen.model_copy(update={"contradicts": ["m2", "m4"]}), members) == ["m2", "m4"]


def test_a_handle_is_no_name() -> None:
    """A model that writes m2 for what m2 is about says nothing; a memory that is about an M2 may be quoted."""
    for item in (proposal("M2", "lives in", "Gdynia", "m2"), proposal("Ewa", "lives in", "m1", "m2")):
        assert "handle" in against(item, OLD, NEW)
    metro = memory(2, "The metro M2", "crosses", "the river")
    assert against(proposal("M2", "crosses", "the river", "m1"), metro, NEW) == ""
