"""What one check of `slowwave doctor` found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from memory_core.errors import SlowwaveError


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: its subject.
        state: `ok`, `problem`, `note` (works, worth knowing) or `not_checked`.
        found: what is there, as a sentence.
        do: what to do; empty where nothing is.
    """

    check: str
    state: Literal["ok", "problem", "note", "not_checked"]
    found: str
    do: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a JSON-able document."""
        return asdict(self)


def problem(check: str, error: SlowwaveError) -> Finding:
    """An error as a finding."""
    return Finding(check, "problem", error.message, error.hint)


def not_checked(what: str, because: str) -> list[Finding]:
    """Checks that an earlier problem made senseless."""
    return [Finding(what, "not_checked", f"left out, because of what was found about the {because}")]
