"""What SHMR came to, from the ledger of a run: the part `shmr` of its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def shmr_summary(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary that `nightly --json` prints.

    Args:
        steps: ledger rows of SHMR's steps: step, status, outcome, started_at, finished_at (None in a preview).

    Returns:
        `clusters_found`, `beliefs_generated`, `contradictions_resolved`, `harmony_score_avg`, `duration_ms`, `status`
        (as the resonance log has it; `failed` where even the log step is missing), and `duplicates`, `dampened`,
        `clusters` by status, `model`, `model_calls`, `tokens`, `cost`, `estimate` (calls, tokens and cost as expected
        before the first call, and kept answers; None where no model was to be asked), `beliefs`, `superseded`,
        `reason`.
    """
    outcomes = {step["step"]: step for step in steps}
    logged = outcomes.get("log", {})
    outcome = logged.get("outcome") or {}
    counts: Mapping[str, Any] = outcome.get("counts", {})
    details: Mapping[str, Any] = outcome.get("details", {})
    failed = [step for step in steps if step["status"] == "failed"]
    reasons = [_error(step) for step in failed]
    embedded = (outcomes.get("embed", {}).get("outcome") or {}).get("reason", "")
    if embedded.startswith("embedding unavailable"):
        reasons.append(embedded)
    if outcome.get("reason"):
        reasons.append(outcome["reason"])
    return {
        "clusters_found": counts.get("clusters_found", 0),
        "beliefs_generated": counts.get("beliefs_generated", 0),
        "contradictions_resolved": counts.get("contradictions_resolved", 0),
        "harmony_score_avg": details.get("harmony_score_avg", 0.0),
        "duration_ms": _duration(steps),
        "status": details.get("status", "failed") if logged.get("status") == "done" else "failed",
        "duplicates": counts.get("duplicates", 0),
        "dampened": counts.get("dampened", 0),
        "clusters": dict(details.get("clusters_by_status", {})),
        "model": details.get("model", ""),
        "model_calls": counts.get("model_calls", 0),
        "tokens": counts.get("tokens", 0),
        "cost": details.get("cost", 0.0),
        "estimate": (outcomes.get("harmonize", {}).get("outcome") or {}).get("details", {}).get("estimate"),
        "beliefs": list(details.get("beliefs", [])),
        "superseded": list(details.get("superseded", [])),
        "reason": "; ".join(reasons),
    }


def _duration(steps: Sequence[Mapping[str, Any]]) -> int:
    spans = [
        (step["finished_at"] - step["started_at"]).total_seconds()
        for step in steps
        if step.get("started_at") is not None and step.get("finished_at") is not None
    ]
    return round(float(sum(spans)) * 1000)


def _error(step: Mapping[str, Any]) -> str:
    error = (step.get("outcome") or {}).get("error") or {}
    return f"{step['step']} failed: {error.get('message', 'unknown')}"
