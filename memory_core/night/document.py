"""The document of one run: what `nightly --json` prints, and what the morning report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_core.runs.context import Run
from memory_core.shmr.steps import SHMR_STEPS
from memory_core.shmr.summary import shmr_summary
from memory_core.sleep.phases import SLEEP_STEPS
from memory_core.sleep.report import ConsolidationReport

_SLEEP = {step.name for step in SLEEP_STEPS}
_SHMR = {step.name for step in SHMR_STEPS}


def run_document(
    run: Run,
    status: str,
    steps: Sequence[Mapping[str, Any]],
    *,
    run_id: str | None = None,
    error: Mapping[str, Any] | None = None,
    highlights: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One run as a JSON-able document.

    Args:
        steps: the ledger's rows: step, status, outcome, started_at, finished_at.
        run_id: where it differs from the run's own: a preview is kept under an id of its own.
        error: why the run was refused or failed; None otherwise.
        highlights: what it did, as `highlights.highlights` tells it; None where nothing of it is left.
    """
    whole = [dict(step) for step in steps if ":" not in step["step"]]
    document: dict[str, Any] = {
        "run_id": run_id or str(run.id),
        "status": status,
        "kind": run.kind,
        "tenant": run.scope.tenant_id,
        "scope": str(run.scope),
        "as_of": run.as_of.isoformat(),
        "dry_run": run.dry_run,
    }
    if run.kind in ("sleep", "nightly"):
        document["sleep"] = ConsolidationReport.from_steps(
            run.scope, [step for step in whole if step["step"] in _SLEEP]
        ).to_dict()
    if run.kind in ("harmonize", "nightly"):
        document["shmr"] = shmr_summary([step for step in whole if step["step"] in _SHMR])
    document["steps"] = {step["step"]: {"status": step["status"], **_shown(step["outcome"])} for step in whole}
    if highlights:
        document["highlights"] = dict(highlights)
    if error:
        document["error"] = dict(error)
    return document


def refusal_document(scope: Any, kind: str, as_of: Any, status: str, error: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a scope that no run began in: busy, unknown, or with later runs."""
    return {
        "run_id": None,
        "status": status,
        "kind": kind,
        "tenant": scope.tenant_id,
        "scope": str(scope),
        "as_of": as_of.isoformat(),
        "error": dict(error),
    }


def _shown(outcome: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in outcome.items() if value not in ({}, [], "", None)}
