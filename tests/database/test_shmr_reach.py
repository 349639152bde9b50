"""What waits for SHMR is reached within a bounded number of runs, and what did not change is left alone."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta
from math import ceil

import pytest

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_home, add_memory, ago
from tests.shmr_runs import harmonize, rows, state, undo, waiting

WORDS = ("door", "lamp", "shelf", "valve", "rack", "cart", "vent", "sink", "desk", "bolt")


def batch(size: int) -> dict[str, dict[str, dict[str, int]]]:
    """The parameters of a run of so many facts."""
    return {"settings": {"shmr": {"batch_size": size}}}


@pytest.mark.parametrize("seed", range(3))
async def test_every_memory_is_reached_whatever_arrives_meanwhile(
    database: Database, scope: TenantScope, seed: int
) -> None:
    """Of n that wait each is looked at within n / batch_size runs, though older ones keep arriving and waiting (F42).

    What arrives says that it is older than all that waits, and what was looked at is made to wait again.
    """
    chance = random.Random(seed)
    size = chance.randint(2, 4)
    limit = {"semantic": size, "episodic": max(1, size // 2)}
    due: dict[uuid.UUID, int] = {}
    layer_of: dict[uuid.UUID, str] = {}
    number = 0
    for night in range(9):
        waits = await waiting(database, scope)
        for _ in range(chance.randint(0, 4) if night else 9):
            number += 1
            layer = chance.choice(("semantic", "semantic", "episodic"))
            added = await add_memory(
                database,
                scope,
                f"The {chance.choice(WORDS)} number {number} was checked",
                layer=layer,
                observed_at=ago(days=100 + number),
            )
            layer_of[added] = layer
        looked_at = sorted(set(layer_of) - waits)
        again = chance.sample(looked_at, min(len(looked_at), chance.randint(0, 2)))
        async with database.scoped(scope) as connection:
            await connection.execute(
                "UPDATE harmonize_queue SET harmonized_by_run = NULL, reason = 'revived' "
                "WHERE memory_id = ANY(CAST(:ids AS uuid[])) AND harmonized_by_run IS NOT NULL",
                ids=again,
            )
            await connection.commit()
        now_waiting = await waiting(database, scope)
        for memory_id in now_waiting - due.keys():
            of_its_kind = sum(1 for other in now_waiting if layer_of[other] == layer_of[memory_id])
            due[memory_id] = night + ceil(of_its_kind / limit[layer_of[memory_id]]) - 1
        await harmonize(database, scope, NIGHT + timedelta(days=night), **batch(size))
        left = await waiting(database, scope)
        late = {memory_id for memory_id in left if due[memory_id] <= night}
        assert late == set(), f"night {night}, batches of {size}: {len(late)} of {len(left)} should have been reached"
        due = {memory_id: last for memory_id, last in due.items() if memory_id in left}


async def test_what_waits_again_and_again_goes_behind_what_was_left(database: Database, scope: TenantScope) -> None:
    """Two memories that change every night do not keep two others from their turn for ever."""
    first = [
        await add_memory(database, scope, f"The {WORDS[i]} was checked", observed_at=ago(days=9)) for i in range(4)
    ]
    await harmonize(database, scope, ago(days=5), **batch(2))
    left = await waiting(database, scope)
    await harmonize(database, scope, ago(days=4), **batch(2))
    others = {await add_memory(database, scope, f"The {WORDS[i]} was sold", observed_at=ago(days=8)) for i in (7, 8)}
    assert left < set(first)
    for days in (3, 2):
        async with database.scoped(scope) as connection:
            await connection.execute(
                "UPDATE harmonize_queue SET harmonized_by_run = NULL WHERE memory_id = ANY(CAST(:ids AS uuid[]))",
                ids=list(left),
            )
            await connection.commit()
        await harmonize(database, scope, ago(days=days), **batch(2))
    assert await waiting(database, scope) & others == set()


async def test_what_a_bounded_run_left_is_restored_by_its_undo(database: Database, scope: TenantScope) -> None:
    """The note that a memory was passed over is part of the run, and goes with it."""
    for i in range(5):
        await add_memory(database, scope, f"The {WORDS[i]} was checked", observed_at=ago(days=i + 1))
    await harmonize(database, scope, ago(hours=2), **batch(1))
    before = await state(database, scope)
    run = await harmonize(database, scope, ago(hours=1), **batch(2))
    assert await state(database, scope) != before
    await undo(database, scope, run.run)
    assert await state(database, scope) == before


async def test_an_unchanged_cluster_is_not_harmonised_again(database: Database, scope: TenantScope) -> None:
    """A new memory about something else brings up its own cluster alone; one about the same brings it up again."""
    for place, day in (("Oslo", 9), ("Bergen", 8)):
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
        )
    await harmonize(database, scope, ago(days=5))
    for colour, day in (("red", 4), ("blue", 3)):
        await add_memory(
            database,
            scope,
            f"The valve is {colour}",
            subject="valve",
            predicate="colour",
            object=colour,
            observed_at=ago(days=day),
        )
    second = await harmonize(database, scope, ago(days=2))
    assert second.outcome("cluster")["counts"]["clusters_found"] == 1
    members = await rows(
        database,
        scope,
        "SELECT m.subject FROM memory_resonance_clusters c, jsonb_array_elements(c.members) AS each "
        "JOIN memories m ON m.id = CAST(each ->> 'memory_id' AS uuid) WHERE c.run_id = :run",
        run=second.run.id,
    )
    assert {row["subject"] for row in members} == {"valve"}
    await add_memory(
        database,
        scope,
        "Ann lives in Narvik",
        subject="Ann",
        predicate="lives_in",
        object="Narvik",
        observed_at=ago(days=1),
    )
    third = await harmonize(database, scope)
    assert third.outcome("cluster")["counts"]["clusters_found"] == 1
    assert third.summary["contradictions_resolved"] == 1
