"""The summary of SHMR says what happened also where little did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.shmr.summary import shmr_summary

AT = datetime(2026, 3, 1, 3, tzinfo=UTC)


def step(name: str, status: str = "done", **outcome: Any) -> dict[str, Any]:
    """One row of a ledger, of a quarter of a second."""
    return {
        "step": name,
        "status": status,
        "outcome": outcome,
        "started_at": AT,
        "finished_at": AT + timedelta(milliseconds=250),
    }


def test_a_whole_run_is_summed_up() -> None:
    """Counts and status come from the log step, the duration from all."""
    logged = step(
        "log",
        counts={"clusters_found": 3, "beliefs_generated": 2, "contradictions_resolved": 1},
        details={"status": "harmonized", "harmony_score_avg": 0.8, "model": "rules"},
        reason="",
    )
    summary = shmr_summary([step("embed", reason="everything has a vector"), logged])
    assert summary["status"] == "harmonized"
    assert (summary["clusters_found"], summary["beliefs_generated"], summary["contradictions_resolved"]) == (3, 2, 1)
    assert (summary["duration_ms"], summary["harmony_score_avg"], summary["reason"]) == (500, 0.8, "")


def test_no_steps_at_all_is_a_failure_with_every_key() -> None:
    """A run that was refused before SHMR still has a whole document."""
    summary = shmr_summary([])
    assert summary["status"] == "failed"
    assert summary["clusters_found"] == summary["beliefs_generated"] == summary["duration_ms"] == 0


def test_failures_are_named() -> None:
    """A failed step and an absent provider are reasons; a preview has no times."""
    rows = [
        step("embed", reason="embedding unavailable: down"),
        step("cluster", "failed", error={"message": "broken"}),
        {**step("log", counts={}, details={"status": "failed"}, reason="a step failed"), "started_at": None},
    ]
    summary = shmr_summary(rows)
    assert summary["reason"] == "cluster failed: broken; embedding unavailable: down; a step failed"
    assert summary["duration_ms"] == 500
