"""What a question is answered from: results of recall, read into one shape and checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory_core.errors import InvalidInput, InvalidTime

STANDING = ("current", "held", "contested")
"""Statuses of what may be said; what was superseded, retired, stale or retracted never is."""


@dataclass(frozen=True, slots=True)
class Source:
    """One memory that a belief rests on, or speaks against.

    Attributes:
        role: `supports`, `contradicts` or `superseded`.
    """

    memory_id: str
    external_id: str | None
    role: str
    content: str
    observed_at: datetime | None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "memory_id": self.memory_id,
            "external_id": self.external_id,
            "role": self.role,
            "content": self.content,
            "observed_at": None if self.observed_at is None else self.observed_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known.

    Attributes:
        handle: its short name in an answer, `f1` and so on, in the order given.
        kind: `memory` or `belief`.
        id: of the memory or belief; empty where it was given without one.
        status: one of `STANDING`.
        observed_at: when it was true or said; None where it is not known.
        score: how near it is to the question, larger is nearer; None where nobody measured it.
        confidence: 0 to 1; None where it is not known.
        sources: of a belief, what it rests on.
    """

    handle: str
    kind: str
    id: str
    content: str
    status: str
    observed_at: datetime | None
    score: float | None
    confidence: float | None
    sources: tuple[Source, ...] = ()

    @property
    def contested(self) -> bool:
        """Whether memories disagree about it and nothing decides."""
        return self.status == "contested"

    @property
    def texts(self) -> tuple[str, ...]:
        """What it says: of a contested belief its two sides too."""
        sides = (source.content for source in self.sources if source.role != "superseded")
        return (self.content, *sides) if self.contested else (self.content,)

    def document(self) -> dict[str, Any]:
        """As JSON, with ids and dates."""
        return {
            "handle": self.handle,
            "kind": self.kind,
            "id": self.id or None,
            "content": self.content,
            "status": self.status,
            "confidence": self.confidence,
            "score": self.score,
            "observed_at": None if self.observed_at is None else self.observed_at.isoformat(),
            "memories": [source.document() for source in self.sources],
        }


def read_facts(given: Sequence[Mapping[str, Any]]) -> tuple[list[Fact], dict[str, int]]:
    """Facts in the shape of recall's results; only `content` is needed.

    Returns:
        the facts that stand, in their order; and how many were left out, by status.

    Raises:
        InvalidInput: one is no mapping, has no text, or a number that is none; the message names its position.
        InvalidTime: a time is not ISO 8601 with a zone.
    """
    facts: list[Fact] = []
    left_out: Counter[str] = Counter()
    for position, item in enumerate(given, 1):
        where = f"Fact {position}"
        if not isinstance(item, Mapping):
            raise InvalidInput(f"{where} is not a mapping.", hint="Give results of recall, or dictionaries like them.")
        sources = tuple(_source(piece, where) for piece in item.get("evidence") or ())
        kind = str(item.get("kind") or ("belief" if sources else "memory"))
        status = str(item.get("status") or ("held" if kind == "belief" else "current"))
        if status not in STANDING:
            left_out[status] += 1
            continue
        signals = item.get("signals")
        confidence = item.get("confidence", signals.get("confidence") if isinstance(signals, Mapping) else None)
        facts.append(
            Fact(
                handle=f"f{len(facts) + 1}",
                kind=kind,
                id=str(item.get("id") or ""),
                content=_text(item.get("content"), where),
                status=status,
                observed_at=_moment(item.get("observed_at"), where),
                score=_number(item.get("score"), f"The score of {where.lower()}"),
                confidence=_number(confidence, f"The confidence of {where.lower()}"),
                sources=sources,
            )
        )
    return facts, dict(left_out)


def _source(piece: Any, where: str) -> Source:
    if not isinstance(piece, Mapping):
        raise InvalidInput(f"The evidence of {where.lower()} is not a list of mappings.")
    return Source(
        memory_id=str(piece.get("memory_id") or ""),
        external_id=None if piece.get("external_id") is None else str(piece["external_id"]),
        role=str(piece.get("role") or "supports"),
        content=_text(piece.get("content"), f"The evidence of {where.lower()}"),
        observed_at=_moment(piece.get("observed_at"), where),
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{where} has no text.", hint="Its `content` is what is known, in words.")
    return " ".join(value.split())


def _number(value: Any, what: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{what} is {value!r}, which is not a finite number.")
    return float(value)


def _moment(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise InvalidTime(f"{where} was observed at {value!r}, which is not an ISO 8601 time.") from error
    if moment.tzinfo is None:
        raise InvalidTime(f"{where} was observed at {value!r}, which has no time zone.")
    return moment.astimezone(UTC)
