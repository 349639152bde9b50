"""What one step of a run reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLE_SIZE = 10


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The result of one step in one scope; JSON-able, kept in the ledger.

    Attributes:
        candidates: rows the step looked at.
        changed: rows it changed or made.
        skipped: how many candidates it left alone, by reason.
        sample: ids of up to ten changed memories or beliefs.
        counts: further counts by name, such as `edges_created`.
        details: what the morning report shows of this step (JSON-able, bounded).
        reason: why nothing happened, in words; empty where something did.
    """

    candidates: int = 0
    changed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    sample: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The outcome as a JSON-able document."""
        return {**asdict(self), "sample": list(self.sample)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> StepOutcome:
        """The outcome from the ledger."""
        return cls(**{**stored, "sample": tuple(stored.get("sample", ()))})
