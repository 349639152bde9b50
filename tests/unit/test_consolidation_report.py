"""The report of a sleep, made from the ledger's rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope
from memory_core.sleep.report import ConsolidationReport

BEGAN = datetime(2026, 3, 1, 3, tzinfo=UTC)
SCOPE = TenantScope.root("org", "acme").child("brand", "halo")


def ledger_row(step: str, position: int, outcome: dict[str, Any], status: str = "done") -> dict[str, Any]:
    began = BEGAN + timedelta(seconds=position)
    return {
        "step": step,
        "status": status,
        "outcome": outcome,
        "started_at": began,
        "finished_at": began + timedelta(milliseconds=500),
    }


STEPS = [
    ledger_row("strengthen", 0, StepOutcome(5, 2, counts={"nodes_strengthened": 2}).to_dict()),
    ledger_row(
        "cooccurrence",
        1,
        StepOutcome(9, 4, counts={"edges_created": 3, "edges_reinforced": 1}, skipped={"too far": 5}).to_dict(),
    ),
    ledger_row("pending_edges", 2, StepOutcome(1, 1, counts={"edges_created": 1}, sample=("a",)).to_dict()),
    ledger_row("prune_orphans", 3, {"error": {"error": "GuardTripped", "message": "Too many.", "hint": ""}}, "failed"),
    ledger_row("meta_nodes", 4, StepOutcome(reason="left out, because it needs prune_orphans").to_dict(), "skipped"),
    ledger_row("apply:c1", 5, StepOutcome(counts={"edges_created": 100}).to_dict()),
]


def test_the_ten_documented_fields_are_summed_from_the_phases() -> None:
    """New links of two phases add up, reinforced ones and parts of a step do not count."""
    document = ConsolidationReport.from_steps(SCOPE, STEPS).to_dict()
    assert {name: document[name] for name in list(document)[:10]} == {
        "tenant_id": "acme",
        "started_at": "2026-03-01T03:00:00+00:00",
        "finished_at": "2026-03-01T03:00:04.500000+00:00",
        "nodes_strengthened": 2,
        "nodes_pruned": 0,
        "risk_nodes_tagged": 0,
        "meta_nodes_created": 0,
        "soul_updates": 0,
        "edges_created": 4,
        "errors": ["prune_orphans: Too many.", "meta_nodes: left out, because it needs prune_orphans"],
    }
    assert document["scope"] == "org=acme/brand=halo"


def test_each_phase_keeps_its_figures_and_reasons() -> None:
    """A phase says what it looked at, what it left alone and why, and what failed; all of it is JSON (F51)."""
    phases = json.loads(json.dumps(ConsolidationReport.from_steps(SCOPE, STEPS).to_dict()))["phases"]
    assert list(phases) == ["strengthen", "cooccurrence", "pending_edges", "prune_orphans", "meta_nodes"]
    assert phases["cooccurrence"]["skipped"] == {"too far": 5}
    assert (phases["cooccurrence"]["candidates"], phases["cooccurrence"]["changed"]) == (9, 4)
    assert phases["pending_edges"]["sample"] == ["a"]
    assert phases["prune_orphans"]["error"]["error"] == "GuardTripped"
    assert phases["meta_nodes"]["reason"].startswith("left out")
    assert phases["strengthen"]["started"] == "2026-03-01T03:00:00+00:00"
    assert set(phases["strengthen"]) == {
        *("started", "finished", "status", "candidates", "changed", "skipped", "sample", "counts", "reason", "error")
    }


def test_a_run_without_phases_reports_nothing() -> None:
    """A scope that was refused before its first phase has a report too."""
    report = ConsolidationReport.from_steps(SCOPE, [])
    assert (report.started_at, report.errors, report.phases) == (None, [], {})
    assert report.to_dict()["finished_at"] is None


def test_a_report_survives_its_document() -> None:
    """What is written is read again, times and phases included; also of a run without phases."""
    for steps in (STEPS, []):
        report = ConsolidationReport.from_steps(SCOPE, steps)
        assert ConsolidationReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
