"""What one sleep of one scope came to: the ten documented figures, and each phase with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_core.scope import TenantScope

COUNTERS = (
    "nodes_strengthened",
    "nodes_pruned",
    "risk_nodes_tagged",
    "meta_nodes_created",
    "soul_updates",
    "edges_created",
)
"""The documented counters; each is the sum of the phases' counts of the same name."""


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """The outcome of a sleep.

    Attributes:
        started_at: when the first phase began, by the machine's clock; None where none ran.
        finished_at: when the last phase ended.
        edges_created: new links; further evidence for a link that exists is not counted.
        errors: one sentence a phase that failed, or was left out because of one.
        scope: the scope as people write it, such as `org=acme/brand=myhalos`.
        phases: by name, in order: started, finished, status, candidates, changed, skipped (by reason), sample (ids),
            counts, reason (why nothing happened), error.
    """

    tenant_id: str
    started_at: datetime | None = None
    finished_at: datetime | None = None
    nodes_strengthened: int = 0
    nodes_pruned: int = 0
    risk_nodes_tagged: int = 0
    meta_nodes_created: int = 0
    soul_updates: int = 0
    edges_created: int = 0
    errors: list[str] = field(default_factory=list)
    scope: str = ""
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def from_steps(cls, scope: TenantScope, steps: Sequence[Mapping[str, Any]]) -> ConsolidationReport:
        """The report of the phases in a run's ledger.

        Args:
            steps: rows of the ledger in order, as `memory_core.runs.ledger.steps_of` gives them: step, status, outcome,
                started_at, finished_at. Parts of a step (`name:part`) are left out, since the step sums them up.
        """
        whole = [step for step in steps if ":" not in step["step"]]
        started = [step["started_at"] for step in whole if step.get("started_at") is not None]
        finished = [step["finished_at"] for step in whole if step.get("finished_at") is not None]
        counted = {
            name: sum(int(step["outcome"].get("counts", {}).get(name, 0)) for step in whole) for name in COUNTERS
        }
        return cls(
            tenant_id=scope.tenant_id,
            started_at=min(started, default=None),
            finished_at=max(finished, default=None),
            **counted,
            errors=[f"{step['step']}: {_why(step)}" for step in whole if step["status"] != "done"],
            scope=str(scope),
            phases={step["step"]: _phase(step) for step in whole},
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ConsolidationReport:
        """The report from `to_dict`."""
        phases = {
            name: {**phase, "started": _time(phase["started"]), "finished": _time(phase["finished"])}
            for name, phase in document["phases"].items()
        }
        times = {name: _time(document[name]) for name in ("started_at", "finished_at")}
        return cls(**{**document, **times, "phases": phases})

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON-able document; times in ISO 8601."""
        return {
            "tenant_id": self.tenant_id,
            "started_at": _iso(self.started_at),
            "finished_at": _iso(self.finished_at),
            **{name: getattr(self, name) for name in COUNTERS},
            "errors": list(self.errors),
            "scope": self.scope,
            "phases": {
                name: {**phase, "started": _iso(phase["started"]), "finished": _iso(phase["finished"])}
                for name, phase in self.phases.items()
            },
        }


def _phase(step: Mapping[str, Any]) -> dict[str, Any]:
    outcome = step["outcome"]
    return {
        "started": step.get("started_at"),
        "finished": step.get("finished_at"),
        "status": step["status"],
        "candidates": outcome.get("candidates", 0),
        "changed": outcome.get("changed", 0),
        "skipped": dict(outcome.get("skipped", {})),
        "sample": list(outcome.get("sample", ())),
        "counts": dict(outcome.get("counts", {})),
        "reason": outcome.get("reason", ""),
        "error": outcome.get("error"),
    }


def _why(step: Mapping[str, Any]) -> str:
    error = step["outcome"].get("error")
    if error:
        return f"{error.get('message', '')} {error.get('hint', '')}".strip() or str(error.get("error", "failed"))
    return str(step["outcome"].get("reason") or step["status"])


def _iso(time: datetime | str | None) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else time


def _time(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)
