"""What SHMR compares: one memory, as the collect step hands it on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.errors import InvalidTime


@dataclass(frozen=True, slots=True)
class Candidate:
    """One memory that may be clustered and harmonised.

    For an episode, `content` is what is compared; its triple form is the text "memory contains <first 300
    characters>", which `triple_text` gives.

    Args:
        memory_id: the memory's id.
        version: its version when it was collected; the apply step checks it again.
        content_hash: hash of its content, part of every cluster's fingerprint.
        layer: `semantic`, `episodic`, …
        content: the text that is compared.
        subject: of the triple; None where the memory has none (likewise `predicate` and `object`).
        observed_at: when it was true or said, timezone-aware.
        confidence: 0 to 1.
        source: who or what said it; None where unknown. Statements of one source are not independent.
        corrects: the memory that this one explicitly corrects.
        confirmed: a person pinned it: it stands whatever is said later.
        confirmed_at: when it was last confirmed: it stands against what was said before that; None where it never was.
        read_only: an ancestor scope's memory: evidence only, never changed.

    Raises:
        InvalidTime: `observed_at` has no timezone.
    """

    memory_id: UUID
    version: int
    content_hash: str
    layer: str
    content: str
    subject: str | None
    predicate: str | None
    object: str | None
    observed_at: datetime
    confidence: float
    source: str | None
    corrects: UUID | None = None
    confirmed: bool = False
    confirmed_at: datetime | None = None
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.observed_at.tzinfo is None:
            raise InvalidTime(f"The observed time of memory {self.memory_id} has no timezone.", hint="Give it as UTC.")

    @property
    def has_triple(self) -> bool:
        """Whether subject, predicate and object are all there."""
        return all(part and part.strip() for part in (self.subject, self.predicate, self.object))

    @property
    def in_time(self) -> tuple[datetime, str]:
        """Its place in the order of time; what was said at one moment stands in the order of the ids."""
        return self.observed_at, str(self.memory_id)

    @property
    def by_person(self) -> bool:
        """Whether a person stands behind it: an explicit correction, or confirmed or pinned."""
        return self.confirmed or self.corrects is not None or self.confirmed_at is not None

    def stands_against(self, said_at: datetime) -> bool:
        """Whether a person's word outweighs a statement of that time: where a confirmation is all, if it came later."""
        lasting = self.confirmed or self.corrects is not None
        return lasting or (self.confirmed_at is not None and self.confirmed_at >= said_at)
