"""Small clusters of facts and sentences, and what the rules decide of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memory_core.shmr.candidates import Candidate
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.phrases import learn_phrases
from memory_core.shmr.rules import harmonize_by_rules
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import slot_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


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
