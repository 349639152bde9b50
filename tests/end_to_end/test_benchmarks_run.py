"""Each benchmark still runs, on a size that says nothing about speed."""

from __future__ import annotations

from tests.benchmarks import night, prune, risk, sleep


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


def test_the_seven_phases_are_measured() -> None:
    """Two nights of a small tenant, with what bare statements over as many rows take."""
    found = sleep.measure((300,))
    (figures,) = found["sizes"]
    assert found["machine"]["cores"] >= 1
    assert set(figures["by_phase"]) >= {"strengthen", "cooccurrence", "tag_risk", "prune_orphans", "meta_nodes"}
    assert figures["rows_changed"] > 300
    assert min(figures["bare_seconds"].values()) > 0
    assert figures["times_bare_statements"] > 0
    assert 0 < figures["a_day_later"]["rows_changed"] < figures["rows_changed"]
    assert figures["peak_memory_mb"] < 1_000


def test_the_risk_tagger_is_measured() -> None:
    """Each set has its figures beside those of substring matching."""
    figures = risk.measure("second_held_out")
    assert figures["tagger"]["all"]["sentences"] == 285
    assert figures["tagger"]["all"]["f1"] > figures["substrings"]["all"]["f1"]
