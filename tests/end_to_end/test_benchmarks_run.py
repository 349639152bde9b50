"""Each benchmark still runs, on a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks import belief_facts, belief_pairs, beliefs, cluster, night, prune, risk, sleep
from tests.benchmarks.belief_store import BeliefStore


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


async def test_beliefs_are_measured() -> None:
    """The sets of our own go through import, harmonize and recall, and each section counts what it was given."""
    async with BeliefStore.open() as store:
        found = await belief_facts.reworded(store, seeds=(1,), heads=6)
        pairs = await belief_pairs.pairs(store, files=("text_pairs",))
        planted = await belief_pairs.planted(store)
    for figures in found.values():
        assert 0 < figures["true_updates"] < figures["statements"]
        assert figures["found"] <= figures["true_updates"]
    confusion = pairs["text_pairs"]["true_to_predicted"]
    assert sum(sum(row.values()) for row in confusion.values()) == pairs["text_pairs"]["pairs"] == 24
    assert confusion["contradiction"]["contradiction"] > 0
    assert planted["triples"]["contradicting_in_one_cluster"] == 1.0
    assert planted["triples"]["settled_for_the_later"] > 0
    assert planted["triples"]["look_alikes_touched"] == 0


def test_public_sets_that_are_not_there_are_skipped_with_a_reason(tmp_path: Path) -> None:
    """Without the folder of public sets nothing is measured on them, and the result says so."""
    found = beliefs.measure(("factconsolidation", "locomo", "beam"), data=tmp_path)
    assert set(found) == {"factconsolidation", "locomo", "beam"}
    assert all("is not in the folder" in section["skipped"] for section in found.values())


def test_what_gives_way_is_found_by_the_longest_shared_beginning() -> None:
    """The benchmark's own truth: another value after a shared beginning, and neither another relation nor subject."""
    statements = [
        "Ilse Brandt is a fan of Lido.",
        "Ilse Brandt is in debt to Otto.",
        "The owner of Lido is Otto.",
        "The owner of Astoria is Karl.",
        "Ilse Brandt is a fan of Astoria.",
        "The owner of Lido is Karl.",
        "The owner of Lido is Karl.",
        *(f"Guest {number} is a fan of Hall {number}." for number in range(10)),
        *(f"Guest {number} is in debt to Bank {number}." for number in range(10)),
    ]
    assert belief_facts.given_way(statements) == {0, 2}


def test_clustering_is_measured() -> None:
    """Every shape is clustered beside the bare product, and a run by rules is timed step by step."""
    found = cluster.measure(candidates=200, many=200, statements=(60, 120))
    assert [row["clusters"] > 0 for row in found["beside_peer"]] == [True, True, False]
    assert [row["kinds_of_vector"] for row in found["beside_product"]] == [1, 1, 1, 2, 2, 2]
    assert all(row["cpu_seconds"] > 0 for row in found["beside_product"])
    small, large = found["rules"]
    assert small["status"] == large["status"] == "applied"
    assert large["superseded"] > small["superseded"] > 0
    assert large["sql_by_step"] == small["sql_by_step"]
    assert set(large["seconds_by_step"]) == {"embed", "collect", "cluster", "harmonize", "score", "apply", "log"}
