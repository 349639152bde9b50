"""Each benchmark still runs, on a size that says nothing about speed."""

from __future__ import annotations

from tests.benchmarks import night, prune


def test_the_night_is_measured() -> None:
    """The figures are there, and the night did what it is measured by."""
    found = night.measure(memories=120)
    assert found["status"] == "applied"
    assert found["state_rows_changed"] >= 60
    assert found["edges_made"] > 0
    assert found["seven_phases_to_bare_statements"] > 0
    assert set(found["by_step"]) >= {"strengthen", "cooccurrence", "prune_orphans", "cluster", "apply"}


def test_pruning_is_measured() -> None:
    """A few nights of the two years: noise goes, and what is protected or in use stays."""
    found = prune.measure(nights=10, without_ration=10, phases_only=True)
    for part, ration in (("with_ration", True), ("without_ration", False)):
        figures = found[part]
        assert (figures["ration"], sum(figures["statuses"].values())) == (ration, 10)
        assert figures["retired"] > 0
        assert {kind["survival"] for kind in figures["protected"].values()} <= {1.0, None}
        assert figures["important_memories_without_a_link_left"] == figures["used"]["retired_while_in_use"] == 0
        assert figures["times_grown"]["memories"] > 1
    assert found["with_ration"]["refused_by_the_guards"] == 0
