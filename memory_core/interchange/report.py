"""What an import did."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class ScopeCounts:
    """Counts of one scope.

    Attributes:
        unchanged: known already, text and all.
        earlier_versions: the text is an earlier version of a memory that has a newer one.
        accesses, edges, corrections: those that were not known before.
    """

    inserted: int = 0
    new_versions: int = 0
    unchanged: int = 0
    earlier_versions: int = 0
    accesses: int = 0
    edges: int = 0
    corrections: int = 0
    without_vector: int = 0

    def add(self, other: ScopeCounts) -> None:
        """Add another's counts."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class ImportReport:
    """What an import did, or with `dry_run` would do.

    Attributes:
        lines: lines that are not blank.
        rejected: lines that were not taken.
        unresolved: edges and corrections whose other end is unknown; their memories were taken.
        rejects: the first rejects and unresolved references, each with line and reason.
        rejects_file: all of them; None where there are none, or in a dry run.
        vector_problem: why memories were stored without a vector; empty where none was.
        duration_seconds: wall time.
    """

    file: str
    format: str
    dry_run: bool
    lines: int = 0
    rejected: int = 0
    unresolved: int = 0
    scopes: dict[str, ScopeCounts] = field(default_factory=dict)
    rejects: list[dict[str, Any]] = field(default_factory=list)
    rejects_file: str | None = None
    vector_problem: str = ""
    duration_seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether everything in the file was taken; where not, the command's exit code is 3."""
        return not self.rejected and not self.unresolved

    def counts(self, scope: str) -> ScopeCounts:
        """A scope's counts, to add to."""
        return self.scopes.setdefault(scope, ScopeCounts())

    def total(self) -> ScopeCounts:
        """All scopes together."""
        total = ScopeCounts()
        for counts in self.scopes.values():
            total.add(counts)
        return total

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON-able document."""
        return {
            "status": "done" if self.complete else "partial",
            "file": self.file,
            "format": self.format,
            "dry_run": self.dry_run,
            "lines": self.lines,
            **asdict(self.total()),
            "rejected": self.rejected,
            "unresolved": self.unresolved,
            "rejects": self.rejects,
            "rejects_file": self.rejects_file,
            "vector_problem": self.vector_problem,
            "scopes": {scope: asdict(counts) for scope, counts in sorted(self.scopes.items())},
            "duration_seconds": round(self.duration_seconds, 3),
        }
