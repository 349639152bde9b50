"""Statements chosen and worded without a model: the nearest, both sides of what is contested, what was so before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_core.shmr.facts import Fact, Source
from memory_core.shmr.reflect_prompt import Claim

MOST_EARLIER = 10


def answer_text(claims: Sequence[Claim], facts: Mapping[str, Fact], *, weak: bool) -> str:
    """The claims a line each, with their citations; `weak`: they are not close, and that is said first."""
    lines = [_line(claim, facts) for claim in claims] or ["What is known does not answer it."]
    return "\n".join((["Nothing known is close to the question; nearest to it is:"] if weak else []) + lines)


def best_score(facts: Sequence[Fact]) -> float:
    """The best score; one where nobody measured any."""
    return max((fact.score for fact in facts if fact.score is not None), default=1.0)


def nearness(fact: Fact) -> tuple[float, str, float]:
    """The order of facts: nearest first, then beliefs, then the surer."""
    # Given without a score: in front, in the order given, for whoever gave it chose it.
    score = float("inf") if fact.score is None else fact.score
    return -score, fact.kind, -(fact.confidence or 0.0)


def closest_statements(facts: Sequence[Fact], *, most: int, close_share: float) -> tuple[Claim, ...]:
    """The closest statements, beliefs before memories; what a chosen belief rests on is not said twice.

    Args:
        most: statements at most.
        close_share: 0 to 1; the share of the best score that a statement needs.
    """
    needed = best_score(facts) * close_share
    near = [fact for fact in facts if fact.score is None or fact.score >= needed]
    chosen: list[Fact] = []
    said: set[str] = set()
    for fact in sorted(near, key=lambda fact: (fact.kind != "belief", *nearness(fact))):
        words = fact.content.casefold().rstrip(". ")
        if len(chosen) < most and fact.id not in said and words not in said:
            chosen.append(fact)
            said |= {words, *(source.memory_id for source in fact.sources)} | ({fact.id} if fact.id else set())
    return tuple(Claim(_worded(fact), (fact.handle,)) for fact in chosen)


def _worded(fact: Fact) -> str:
    """The statement; of a contested one both sides, each with its date."""
    sides = [
        " / ".join(_dated(source) for source in fact.sources if source.role == role)
        for role in ("supports", "contradicts")
    ]
    if not fact.contested or not all(sides):
        return fact.content
    return f"Contested: {' against '.join(sides)}"


def _dated(source: Source) -> str:
    return source.content.rstrip(". ") + ("" if source.observed_at is None else f" ({source.observed_at:%Y-%m-%d})")


def _line(claim: Claim, facts: Mapping[str, Fact]) -> str:
    """A claim with its citations: handle, date, and whether it is contested."""
    marks = []
    for handle in claim.cites:
        fact = facts[handle]
        day = "" if fact.observed_at is None else f", {fact.observed_at:%Y-%m-%d}"
        marks.append(f"{handle}{day}{', contested' if fact.contested else ''}")
    return f"{claim.text} [{'; '.join(marks)}]"


def contradiction(fact: Fact) -> dict[str, Any]:
    """A contested fact with both its sides, as JSON."""
    sides = [source.document() for source in fact.sources if source.role != "superseded"]
    return {"handle": fact.handle, "id": fact.id or None, "content": fact.content, "sides": sides}


def earlier(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """What the facts replaced and is no longer so, newest first, as JSON."""
    found = [
        {"handle": fact.handle, **source.document()}
        for fact in facts
        for source in fact.sources
        if source.role == "superseded"
    ]
    return sorted(found, key=lambda each: each["observed_at"] or "", reverse=True)[:MOST_EARLIER]
