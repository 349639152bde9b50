"""What a harmonizer decides about one cluster, as data: stored between the steps, applied later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.errors import InvalidInput

SupersedeReason = Literal["duplicate", "update", "contradiction", "correction"]
BeliefStatus = Literal["held", "contested"]
Outcome = Literal["decided", "nothing_to_say"]


@dataclass(frozen=True, slots=True)
class Supersede:
    """One memory gives way to another; `because` says why in words."""

    loser: UUID
    winner: UUID
    reason: SupersedeReason
    because: str


@dataclass(frozen=True, slots=True)
class Dampen:
    """A memory's confidence is to be lowered once, because of the memory `against` it."""

    target: UUID
    against: UUID
    because: str


@dataclass(frozen=True, slots=True)
class BeliefProposal:
    """A belief with the memories it rests on, those against it, and those it overrides.

    `confidence` is 0 to 1 and never above that of its supporting memories. `valid_from` is timezone-aware.
    """

    subject: str
    predicate: str
    object: str
    content: str
    status: BeliefStatus
    confidence: float
    supports: tuple[UUID, ...]
    contradicts: tuple[UUID, ...]
    superseded: tuple[UUID, ...]
    rationale: str
    valid_from: datetime


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that was not done, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClusterDecision:
    """Everything decided about one cluster."""

    supersedes: tuple[Supersede, ...] = ()
    dampens: tuple[Dampen, ...] = ()
    beliefs: tuple[BeliefProposal, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    outcome: Outcome = "nothing_to_say"

    def to_dict(self) -> dict[str, Any]:
        """The decision as a document of plain JSON values; ids and times as strings."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self), default=_plain, allow_nan=False))
        return document

    def to_json(self) -> str:
        """The decision as canonical JSON: the same decision always gives the same text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> ClusterDecision:
        """The decision of a document made by `to_dict`.

        Raises:
            InvalidInput: the document is not a decision.
        """
        try:
            return cls(
                supersedes=tuple(
                    Supersede(UUID(row["loser"]), UUID(row["winner"]), row["reason"], row["because"])
                    for row in document["supersedes"]
                ),
                dampens=tuple(
                    Dampen(UUID(row["target"]), UUID(row["against"]), row["because"]) for row in document["dampens"]
                ),
                beliefs=tuple(_belief(row) for row in document["beliefs"]),
                rejected=tuple(Rejected(row["what"], row["reason"]) for row in document["rejected"]),
                outcome=document["outcome"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"A stored decision cannot be read: {type(error).__name__}: {error}.") from error

    @classmethod
    def from_json(cls, text: str) -> ClusterDecision:
        """The decision of a text made by `to_json`.

        Raises:
            InvalidInput: the text is not a decision.
        """
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"A stored decision is not JSON: {error}.") from error
        return cls.from_dict(document)


def _plain(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _belief(row: dict[str, Any]) -> BeliefProposal:
    ids = {name: tuple(UUID(each) for each in row[name]) for name in ("supports", "contradicts", "superseded")}
    return BeliefProposal(**{**row, **ids, "valid_from": datetime.fromisoformat(row["valid_from"])})
