"""Phase 1.5: what was active together is linked, nearest first, once a night."""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from memory_core.database.engine import Database
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.cooccurrence import STEP
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from tests.builders import NIGHT, add_access, add_edge, add_memory, add_scope, ago
from tests.nights import change, edges, look_ahead, rows, sleep, state, undo

LONG_AGO = ago(days=30)


async def used(database: Database, scope: TenantScope, name: str, *at: datetime, **fields: object) -> uuid.UUID:
    """A memory of long ago that was read at these times."""
    return await add_memory(database, scope, name, observed_at=LONG_AGO, access_at=at, **fields)


def pair(one: uuid.UUID, other: uuid.UUID) -> tuple[uuid.UUID, uuid.UUID, str]:
    return min(one, other), max(one, other), "CO_OCCURRED"


async def burst(database: Database, scope: TenantScope, count: int, *, seconds: float, end: datetime) -> None:
    """`count` memories that became known within `seconds`, evenly spread or all at once."""
    await add_scope(database, scope)
    await change(
        database,
        scope,
        "WITH added AS (INSERT INTO memories (tenant_id, scope_path, id, content, observed_at, recorded_at, "
        "last_activity_at, content_hash) "
        "SELECT :tenant_id, :scope_path, gen_random_uuid(), 'memory ' || n, at, at, at, md5(n::text) "
        "FROM (SELECT n, CAST(:end AS timestamptz) "
        "             - make_interval(secs => CAST(:seconds AS double precision) * n / :count) AS at "
        "      FROM generate_series(0, CAST(:count AS integer) - 1) AS n) AS moments RETURNING id) "
        "INSERT INTO memory_state (tenant_id, scope_path, memory_id) SELECT :tenant_id, :scope_path, id FROM added",
        end=end,
        seconds=seconds,
        count=count,
    )


async def test_an_hour_is_the_window_and_its_edge_counts(database: Database, scope: TenantScope) -> None:
    """F09: activity 40 minutes and exactly one hour apart is together, a second more is not (the documented hour)."""
    a = await used(database, scope, "a", ago(hours=6))
    b = await used(database, scope, "b", ago(hours=6, minutes=40))
    c = await used(database, scope, "c", ago(hours=7, minutes=40))
    d = await used(database, scope, "d", ago(hours=8, minutes=40, seconds=1))
    night = await sleep(database, scope, STEP)
    assert set(await edges(database, scope)) == {pair(a, b), pair(b, c)}
    assert d not in {end for edge in await edges(database, scope) for end in edge[:2]}
    assert night.outcome.counts == {"edges_created": 2, "edges_reinforced": 0}
    assert night.outcome.candidates == night.outcome.changed == 2


async def test_becoming_known_is_activity_and_maintenance_is_not(database: Database, scope: TenantScope) -> None:
    """F06, F07, F08: what phases touched is not linked; memories made within one hour are."""
    a = await add_memory(database, scope, "a", observed_at=ago(hours=3))
    b = await add_memory(database, scope, "b", observed_at=ago(hours=3, minutes=10))
    c = await used(database, scope, "c", ago(hours=9))
    d = await used(database, scope, "d", ago(hours=15))
    await sleep(database, scope, (STRENGTHEN, STEP))
    await change(database, scope, "UPDATE memory_state SET importance = importance - 0.1")
    await change(database, scope, "UPDATE memories SET properties = '{\"touched\": true}'")
    again = await sleep(database, scope, (STRENGTHEN, STEP), at=NIGHT + timedelta(days=1))
    assert set(await edges(database, scope)) == {pair(a, b)}
    assert again.outcome.changed == 0
    assert "no memory was active" in again.outcome.reason
    assert {c, d}.isdisjoint(end for edge in await edges(database, scope) for end in edge[:2])


async def test_consumed_evidence_is_still_activity(database: Database, scope: TenantScope) -> None:
    """Strengthen uses up the reads earlier in the same night; they link all the same."""
    a, b = [await used(database, scope, name, ago(hours=2)) for name in "ab"]
    await sleep(database, scope, (STRENGTHEN, STEP))
    assert set(await edges(database, scope)) == {pair(a, b)}


@pytest.mark.parametrize("direction", [False, True])
async def test_pairs_linked_otherwise_get_no_link(database: Database, scope: TenantScope, direction: bool) -> None:
    """F09: any other edge between the two, either way round, is enough; a retired one is not."""
    a, b, c = [await used(database, scope, name, ago(hours=2)) for name in "abc"]
    await add_edge(database, scope, *((b, a) if direction else (a, b)), "KNOWS")
    await add_edge(database, scope, a, c, "KNEW", status="retired")
    night = await sleep(database, scope, STEP)
    linked = {edge for edge in await edges(database, scope) if edge[2] == "CO_OCCURRED"}
    assert linked == {pair(a, c), pair(b, c)}
    assert night.outcome.skipped == {"linked otherwise": 1}


async def test_two_uses_far_apart_count_each_with_its_own_company(database: Database, scope: TenantScope) -> None:
    """Activity is every access, not one time a memory: a is with b in the morning and with c in the evening."""
    a = await used(database, scope, "a", ago(hours=20), ago(hours=4))
    b = await used(database, scope, "b", ago(hours=20, minutes=5))
    c = await used(database, scope, "c", ago(hours=4, minutes=5))
    await sleep(database, scope, STEP)
    assert set(await edges(database, scope)) == {pair(a, b), pair(a, c)}


async def test_one_busy_memory_does_not_hide_its_neighbours(database: Database, scope: TenantScope) -> None:
    """A memory read two hundred times between two others takes one place, not two hundred."""
    a = await used(database, scope, "a", ago(hours=3))
    c = await used(database, scope, "c", ago(hours=3, minutes=-20))
    busy = await add_memory(database, scope, "busy", observed_at=LONG_AGO)
    await change(
        database,
        scope,
        "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
        "SELECT :tenant_id, gen_random_uuid(), :scope_path, :busy, 'recall', "
        "CAST(:start AS timestamptz) + n * interval '6 seconds' "
        "FROM generate_series(1, 199) AS n",
        busy=busy,
        start=ago(hours=3),
    )
    night = await sleep(database, scope, STEP)
    assert set(await edges(database, scope)) == {pair(a, c), pair(a, busy), pair(c, busy)}
    assert night.outcome.skipped == {}


async def test_a_burst_is_linked_nearest_first_and_the_rest_counted(database: Database, scope: TenantScope) -> None:
    """F10: k nearest in time, whatever the order of rows; nobody is left out, and the excess is counted."""
    count = 40
    await burst(database, scope, count, seconds=600, end=ago(hours=2))
    night = await sleep(database, scope, STEP)
    made = await edges(database, scope)
    in_order = [row["id"] for row in await rows(database, scope, "SELECT id FROM memories ORDER BY recorded_at, id")]
    place = {memory_id: number for number, memory_id in enumerate(in_order)}
    degree = {memory_id: sum(memory_id in edge[:2] for edge in made) for memory_id in in_order}
    assert all(2 <= links <= 5 for links in degree.values()), degree
    assert all(pair(one, other) in made for one, other in pairwise(in_order))
    assert max(abs(place[edge[0]] - place[edge[1]]) for edge in made) <= 3
    assert night.outcome.candidates == count * (count - 1) // 2
    assert night.outcome.skipped == {"further in time than the 5 nearest": count * (count - 1) // 2 - len(made)}
    assert night.outcome.counts["edges_created"] == len(made)


async def test_a_burst_at_one_instant_leaves_nobody_out(database: Database, scope: TenantScope) -> None:
    """F10: with all times equal the links are a chain of neighbours, not cliques that shut the others out."""
    await burst(database, scope, 30, seconds=0, end=ago(hours=2))
    await sleep(database, scope, STEP, settings={"cooccurrence": {"nearest": 4}})
    made = await edges(database, scope)
    ends = [end for edge in made for end in edge[:2]]
    assert len(set(ends)) == 30
    assert max(ends.count(end) for end in set(ends)) <= 4


async def test_ten_thousand_in_one_minute_cost_no_square(database: Database, scope: TenantScope) -> None:
    """Dense bursts cost O(n k): 50 million pairs are counted, none is looked at."""
    await burst(database, scope, 10_000, seconds=60, end=ago(hours=2))
    started = time.perf_counter()
    night = await sleep(database, scope, STEP)
    elapsed = time.perf_counter() - started
    assert night.outcome.candidates == 10_000 * 9_999 // 2
    assert 15_000 < night.outcome.changed <= 25_000
    assert elapsed < 30, f"{elapsed:.1f} s"


async def test_weight_counts_nights_and_never_passes_one(database: Database, scope: TenantScope) -> None:
    """F11: only inserts are created edges; the weight saturates over distinct nights of new activity."""
    a, b = [await add_memory(database, scope, name, observed_at=LONG_AGO) for name in "ab"]
    seen = []
    for night_number in range(4):
        at = NIGHT + timedelta(days=night_number)
        for memory_id in (a, b):
            await add_access(database, scope, memory_id, at - timedelta(hours=2))
        night = await sleep(database, scope, STEP, at=at)
        edge = (await edges(database, scope))[pair(a, b)]
        seen.append((round(edge["weight"], 4), edge["evidence_count"], edge["last_evidence_at"] == at))
        assert night.outcome.counts == {
            "edges_created": int(not night_number),
            "edges_reinforced": int(bool(night_number)),
        }
    assert seen == [(0.3, 1, True), (0.51, 2, True), (0.657, 3, True), (0.7599, 4, True)]


async def test_the_same_evidence_counts_once(database: Database, scope: TenantScope) -> None:
    """F11: a second run over the same activity changes nothing, in the same night and with a longer look-back later."""
    a, b = [await used(database, scope, name, ago(hours=2)) for name in "ab"]
    await sleep(database, scope, STEP)
    after = await state(database, scope)
    again = await sleep(database, scope, STEP)
    longer = await sleep(
        database, scope, STEP, at=NIGHT + timedelta(days=1), settings={"cooccurrence": {"lookback_hours": 72}}
    )
    assert await state(database, scope) == after
    for night in (again, longer):
        assert (night.outcome.changed, night.outcome.skipped) == (0, {"counted for this night already": 1})
        assert night.outcome.reason == "no pair has new evidence of a link"
    for memory_id in (a, b):
        await add_access(database, scope, memory_id, NIGHT + timedelta(days=1, hours=1))
    soon = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1, hours=2))
    assert soon.outcome.counts == {"edges_created": 0, "edges_reinforced": 1}


async def test_one_piece_of_evidence_a_night(database: Database, scope: TenantScope) -> None:
    """Several runs in one night, each with new activity, count that night once."""
    a, b = [await used(database, scope, name, ago(hours=2)) for name in "ab"]
    await sleep(database, scope, STEP)
    for hours in (3, 6):
        for memory_id in (a, b):
            await add_access(database, scope, memory_id, NIGHT + timedelta(hours=hours - 1))
        night = await sleep(database, scope, STEP, at=NIGHT + timedelta(hours=hours))
        assert night.outcome.changed == 0
    assert (await edges(database, scope))[pair(a, b)]["evidence_count"] == 1


async def test_what_a_night_changed_frees_no_places(database: Database, scope: TenantScope) -> None:
    """A memory retired, or a pair linked otherwise, after the phase makes no room for other pairs in a second run."""
    await burst(database, scope, 12, seconds=60, end=ago(hours=2))
    await sleep(database, scope, STEP)
    made = set(await edges(database, scope))
    in_order = [row["id"] for row in await rows(database, scope, "SELECT id FROM memories ORDER BY recorded_at, id")]
    await change(
        database,
        scope,
        "UPDATE memories SET retired_at = :at, retired_reason = 'noise' WHERE id = :id",
        at=NIGHT,
        id=in_order[5],
    )
    await add_edge(database, scope, in_order[1], in_order[2], "WORKS_WITH", kind="inferred")
    again = await sleep(database, scope, STEP)
    assert again.outcome.changed == 0
    assert {edge for edge in await edges(database, scope) if edge[2] == "CO_OCCURRED"} == made
    assert again.outcome.skipped["retired, superseded or expired"] == sum(in_order[5] in edge[:2] for edge in made)


@pytest.mark.parametrize(
    "fields",
    [
        {"layer": "working"},
        {"derived_key": "meta:TEA"},
        {"retired_at": ago(days=1), "retired_reason": "wrong"},
        {"expires_at": ago(minutes=1)},
    ],
    ids=["working", "derived", "retired", "expired"],
)
async def test_who_is_not_linked(database: Database, scope: TenantScope, fields: dict[str, object]) -> None:
    """F23: the working layer, what phases made and what is not current is left alone."""
    await used(database, scope, "a", ago(hours=2))
    await used(database, scope, "b", ago(hours=2), **fields)
    night = await sleep(database, scope, STEP)
    assert await edges(database, scope) == {}
    assert night.outcome.reason


async def test_time_and_scope_bound_the_evidence(database: Database, scope: TenantScope) -> None:
    """Activity after as_of or before the look-back counts nothing, nor does another scope's."""
    child = scope.child("conversation", "c1")
    await used(database, scope, "a", ago(hours=2))
    await used(database, child, "b", ago(hours=2))
    await used(database, scope, "c", ago(hours=25))
    await used(database, scope, "d", ago(hours=25))
    await used(database, scope, "e", NIGHT + timedelta(minutes=5))
    night = await sleep(database, scope, STEP)
    assert (night.outcome.changed, await edges(database, scope), await edges(database, child)) == (0, {}, {})
    assert "within 60 minutes" in night.outcome.reason


async def test_an_imported_link_the_other_way_round_is_kept(database: Database, scope: TenantScope) -> None:
    """The pair has one row, whichever end is its source; its weight only rises."""
    a, b = [await used(database, scope, name, ago(hours=2)) for name in "ab"]
    await add_edge(database, scope, max(a, b), min(a, b), "CO_OCCURRED")
    night = await sleep(database, scope, STEP)
    ((key, edge),) = (await edges(database, scope)).items()
    assert key == (max(a, b), min(a, b), "CO_OCCURRED")
    assert (edge["weight"], edge["evidence_count"]) == (1.0, 2)
    assert night.outcome.counts == {"edges_created": 0, "edges_reinforced": 1}


async def test_preview_equals_the_run_and_undo_is_exact_and_remembered(database: Database, scope: TenantScope) -> None:
    """The dry run's diff is the run's; undone links stay away until a text changes or it is asked for."""
    a, b, c = [await used(database, scope, name, ago(hours=2)) for name in "abc"]
    before = await state(database, scope)
    foreseen = await look_ahead(database, scope, STEP)
    assert await state(database, scope) == before
    night = await sleep(database, scope, STEP)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == foreseen
    assert len(foreseen["created"]) == 3

    assert (await undo(database, scope, night, STEP)).refused == ()
    assert await state(database, scope) == before
    remembered = await sleep(database, scope, STEP)
    assert (remembered.outcome.changed, remembered.outcome.skipped) == (0, {"taken back by a person": 3})
    await change(database, scope, "UPDATE memories SET content_hash = 'new text' WHERE id = :id", id=c)
    assert (await sleep(database, scope, STEP)).outcome.changed == 2
    asked = await sleep(database, scope, STEP, reconsider=True)
    assert asked.outcome.changed == 1
    assert set(await edges(database, scope)) == {pair(a, b), pair(a, c), pair(b, c)}


async def test_undoing_a_reinforcement_is_exact_and_remembered(database: Database, scope: TenantScope) -> None:
    """The second night's evidence is taken back, the first night's stays."""
    a, b = [await used(database, scope, name, ago(hours=2)) for name in "ab"]
    first = await sleep(database, scope, STEP)
    for memory_id in (a, b):
        await add_access(database, scope, memory_id, NIGHT + timedelta(hours=20))
    before = await state(database, scope)
    second = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1))
    assert second.outcome.counts["edges_reinforced"] == 1
    await undo(database, scope, second, STEP)
    assert (await edges(database, scope))[pair(a, b)]["evidence_count"] == 1
    again = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1))
    assert again.outcome.skipped == {"taken back by a person": 1}
    assert await state(database, scope) == before
    assert (await undo(database, scope, first, STEP)).refused == ()
    assert await edges(database, scope) == {}
