"""Faults in what is looked at together, and how much of it (F39 to F46), each in its right form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_core import get_resonance_log, recall_beliefs
from memory_core import harmonize as harmonize_scope
from memory_core.beliefs.lineage import why
from memory_core.cli.view_why import explanation
from memory_core.database.engine import Database
from memory_core.errors import SlowwaveError
from memory_core.models.embedding import Vectors, embedding_provider
from memory_core.models.tokens import estimate_tokens
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_home, add_memory, add_scope, ago
from tests.scripted_model import Scripted, homes, items
from tests.shmr_runs import beliefs, harmonize, rows, superseded

PLANTED = json.loads((Path(__file__).parents[1] / "data" / "planted_slots.json").read_text(encoding="utf-8"))


async def clusters(database: Database, scope: TenantScope) -> list[list[str]]:
    """The contents of each cluster that was kept."""
    found = await rows(
        database,
        scope,
        "SELECT c.cluster_id, m.content FROM memory_resonance_clusters c, jsonb_array_elements(c.members) AS member "
        "JOIN memories m ON m.id = CAST(member ->> 'memory_id' AS uuid) ORDER BY c.cluster_id, m.content",
    )
    by_id: dict[str, list[str]] = {}
    for row in found:
        by_id.setdefault(row["cluster_id"], []).append(row["content"])
    return list(by_id.values())


async def test_planted_contradictions_meet_in_the_store(database: Database, scope: TenantScope) -> None:
    """F39: of 25 planted contradictions 24 or more share a cluster, of which four pairs in five are of one slot."""
    slots: dict[str, tuple[str, str]] = {}
    for number, row in enumerate((*PLANTED["contradicting"], *PLANTED["distractors"])):
        for end in ("object_old", "object_new", "object"):
            if end in row:
                content = f"{row['subject']} {row['predicate']} {row[end]}"
                slots[content] = (row["subject"], row["predicate"])
                await add_memory(database, scope, content, observed_at=ago(days=60 - number, hours=end == "object_new"))
    await harmonize(database, scope, embedding=embedding_provider("minilm"), accept=True)
    together = [pair for cluster in await clusters(database, scope) for pair in combinations(cluster, 2)]
    same = [pair for pair in together if slots[pair[0]] == slots[pair[1]]]
    planted = {
        frozenset(f"{row['subject']} {row['predicate']} {row[end]}" for end in ("object_old", "object_new"))
        for row in PLANTED["contradicting"]
    }
    assert len(planted & {frozenset(pair) for pair in same}) >= 24
    assert len(same) / len(together) >= 0.8


WORDS = (
    *("anvil", "barrel", "candle", "drum", "easel", "flute", "goblet", "hammer", "inkwell", "jug", "kettle", "lantern"),
    *("mirror", "needle", "oar", "pebble", "quill", "ribbon", "saddle", "tassel", "urn", "vessel", "whistle", "yoke"),
)


class _Circle:
    """Each of the words a step of 15 degrees further round."""

    model, dimension, network = "circle", 2, False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        angles = np.radians([15.0 * WORDS.index(text.split()[0].lower()) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


async def test_a_chain_of_neighbours_is_no_cluster(database: Database, scope: TenantScope) -> None:
    """F40: round a whole circle, each text near the next: a cluster is a piece of it, all of whose texts are near."""
    for word in WORDS:
        await add_memory(database, scope, f"{word.capitalize()} of the old house")
    run = await harmonize(database, scope, embedding=_Circle(), settings={"shmr": {"max_cluster_size": 6}})
    assert run.outcome("cluster")["counts"]["clustered"] >= 20
    for cluster in await clusters(database, scope):
        vectors = await _Circle().embed(cluster)
        assert (vectors @ vectors.T).min() > 0.2


async def test_many_sentences_of_one_make_do_not_run_together(database: Database, scope: TenantScope) -> None:
    """F41: among 300 texts that differ in a word or two no cluster grows with their number."""
    places = ("attic", "barn", "cellar", "depot", "engine room")
    for number in range(300):
        content = f"The inspector of plant {number // 5} checked the {places[number % 5]} and found it in order"
        await add_memory(database, scope, content, observed_at=ago(days=3, hours=number))
    run = await harmonize(database, scope)
    assert run.outcome("cluster")["counts"]["largest"] <= 24
    assert await superseded(database, scope) == {}


async def test_each_waits_its_turn_and_gets_it(database: Database, scope: TenantScope) -> None:
    """F42: with two a run, of eleven that wait each is looked at once within six runs, and none a second time."""
    for number in range(11):
        await add_memory(database, scope, f"Room {number} is painted white", observed_at=ago(days=20 - number))
    looked_at = []
    for run in range(7):
        await harmonize(database, scope, ago(hours=7 - run), settings={"shmr": {"batch_size": 2}})
        counted = "SELECT count(*) AS n FROM harmonize_queue WHERE harmonized_by_run IS NOT NULL"
        looked_at.append((await rows(database, scope, counted))[0]["n"])
    assert looked_at == [2, 4, 6, 8, 10, 11, 11]


async def test_what_is_over_or_foreign_reaches_no_prompt(database: Database, scope: TenantScope) -> None:
    """F43, F44: of eleven statements about one thing a model is shown the three that hold here, and no other."""
    child = scope.child("brand", "halo")
    winner = await add_memory(database, scope, "A winner of something else")
    told = {"Oslo": scope, "Bergen": child, "Turku": child}
    kept_from = {
        "retired": (child, {"retired_at": ago(days=1), "retired_reason": "wrong"}),
        "expired": (child, {"expires_at": ago(days=1)}),
        "superseded": (scope, {"superseded_by": winner, "superseded_reason": "update"}),
        "later": (child, {"observed_at": NIGHT.replace(year=2030)}),
        "working": (child, {"layer": "working"}),
        "derived": (child, {"derived_key": "meta:x"}),
        "sibling": (scope.child("brand", "other"), {}),
        "stranger": (TenantScope.root("tenant", "zeta"), {}),
    }
    for place, where in told.items():
        await add_home(
            database,
            where,
            place,
            observed_at=ago(days=3),
        )
    for place, (where, fields) in kept_from.items():
        fields = {"observed_at": ago(days=2), **fields}
        await add_home(database, where, place, **fields)
    model = Scripted(items({"object": "Turku", "evidence": ["m1"]}))
    await harmonize(database, child, language=model)
    shown = "\n".join(request.prompt for request in model.requests)
    assert [place for place in told if f'"{place}"' not in shown] == []
    assert [place for place in kept_from if place in shown] == []
    for other in (scope.child("brand", "other"), TenantScope.root("tenant", "zeta")):
        assert await recall_beliefs(database, other, "Ann lives in Turku") == []
        assert await get_resonance_log(database, other) == []


async def test_a_belief_of_one_scope_is_none_of_anothers(database: Database, scope: TenantScope) -> None:
    """F44: what a scope concludes is read there and below, not by its sibling, its parent or a stranger."""
    child = scope.child("brand", "halo")
    await homes(database, child)
    await add_scope(database, scope.child("brand", "other"))
    await harmonize(database, child)
    below = child.child("session", "s1")
    await add_scope(database, below)
    readers = {
        "own": child,
        "below": below,
        "parent": scope,
        "sibling": scope.child("brand", "other"),
        "stranger": TenantScope.root("tenant", "zeta"),
    }
    found = {name: len(await recall_beliefs(database, each, "Ann lives in Bergen")) for name, each in readers.items()}
    assert found == {"own": 1, "below": 1, "parent": 0, "sibling": 0, "stranger": 0}


async def test_no_prompt_exceeds_its_budget(
    database: Database, scope: TenantScope, capsys: pytest.CaptureFixture[str]
) -> None:
    """F45: twenty-four memories of 20 kB each make prompts within the budget, and what each leaves out is kept."""
    for number in range(24):
        text = f"Ann lives in house {number} " + "by the long road that leads up to the old mill " * 420
        last = await add_memory(
            database, scope, text, subject="Ann", predicate="lives_in", object=f"house {number}",
            observed_at=ago(days=30 - number),
        )  # fmt: skip
    model = Scripted("no answer", items({"confidence": 7}), "[]")
    run = await harmonize(database, scope, language=model, settings={"shmr": {"token_budget": 1_900}})
    assert len(model.requests) >= 3
    for request in model.requests:
        assert estimate_tokens(request.system) + estimate_tokens(request.prompt) <= 1_900
    assert run.summary["clusters"] == {"nothing_to_say": 1}
    (cluster,) = await rows(database, scope, "SELECT rejected FROM memory_resonance_clusters")
    cut = [each for each in cluster["rejected"] if each["reason"] == "not_all_shown"]
    assert [each["attempt"] for each in cut] == [1, 2, 3]
    for request, entry in zip(model.requests, cut, strict=True):
        shown = {json.loads(line)["handle"] for line in request.prompt.splitlines() if line.startswith('{"handle"')}
        assert shown == {f"m{number}" for number in range(1, 25)} - set(entry["left_out"])
        assert set(entry["shortened"]) == shown
        assert entry["left_out"]
    assert run.outcome("harmonize")["details"]["not_all_shown"] == 1
    async with database.scoped(scope) as connection:
        explanation(await why(connection, last))
    assert "attempt 1: m" in (told := capsys.readouterr().out)
    assert "shown in part" in told


async def test_a_bound_that_is_none_is_refused(database: Database, scope: TenantScope) -> None:
    """F46: a run is not done with other settings than it was asked to be done with: it says which one is wrong."""
    await homes(database, scope)
    wrong: list[dict[str, Any]] = [
        {"batch_size": -1},
        {"batch_size": 0},
        {"max_iterations": 0},
        {"similarity_threshold": 1.01},
        {"similarity_threshold": -1.0},
    ]
    for bounds in wrong:
        try:
            told = json.dumps(await harmonize_scope(database, scope, as_of=NIGHT, **bounds), default=str)
        except SlowwaveError as error:
            told = str(error)
        assert next(iter(bounds)) in told
        assert await beliefs(database, scope) == []
        assert await superseded(database, scope) == {}


def test_a_wrong_variable_does_not_break_an_import() -> None:
    """F46: settings are read when a run needs them; a wrong one is named then, in words."""
    code = """
import memory_core, memory_core.shmr.steps
from memory_core.settings import Settings
from memory_core.shmr.settings import ENVIRONMENT_ALIASES, ShmrSettings
try:
    Settings.load().section("shmr", ShmrSettings, aliases=ENVIRONMENT_ALIASES)
except memory_core.errors.InvalidSettings as error:
    print(error)
"""
    environment = {"MNEMOSYNE_SHMR_BATCH_SIZE": "abc", "PATH": ""}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    assert "batch_size" in found.stdout
