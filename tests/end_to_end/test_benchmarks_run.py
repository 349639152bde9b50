"""Each benchmark still runs, on a size that says nothing about speed."""

from __future__ import annotations

from tests.benchmarks import night


def test_the_night_is_measured() -> None:
    """The figures are there, and the night did what it is measured by."""
    found = night.measure(memories=120)
    assert found["status"] == "applied"
    assert found["state_rows_changed"] >= 60
    assert found["edges_made"] > 0
    assert found["seven_phases_to_bare_statements"] > 0
    assert set(found["by_step"]) >= {"strengthen", "cooccurrence", "prune_orphans", "cluster", "apply"}
