"""What the older consolidator did wrong, turned round: each test states the right behaviour, its fault in brackets."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from memory_core import SleepConsolidator
from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.retrieval.search import recall
from memory_core.scope import TenantScope
from memory_core.sleep.cooccurrence import STEP as COOCCURRENCE
from memory_core.sleep.phases import SLEEP_STEPS
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from tests.builders import NIGHT, add_access, add_memory, ago
from tests.knowledge import EMBEDDING, remember
from tests.nights import change, edges, importance_of, rows, sleep
from tests.small_tenant import PENDING, fill_small_tenant

THE_SEVEN = tuple(step for step in SLEEP_STEPS if step.enabled is None)
LONG_AGO = ago(days=60)


async def clocks(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """Every time by which a memory counts as used or written; that of the last use must be the use's own."""
    found = await rows(
        database,
        scope,
        "SELECT m.id, m.observed_at, m.recorded_at, m.last_activity_at, s.last_access_at, "
        "(SELECT max(a.at) FROM memory_accesses a WHERE a.tenant_id = m.tenant_id AND a.memory_id = m.id) AS used_at "
        "FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id "
        "WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NULL ORDER BY m.id",
    )
    assert {row["last_access_at"] for row in found if row["last_access_at"] != row["used_at"]} <= {None}
    return [{name: value for name, value in row.items() if name != "last_access_at"} for row in found]


@pytest.mark.parametrize("kind", ["recall", "hydrate", "mention", "confirm"])
async def test_a_piece_of_evidence_counts_once_in_all(database: Database, scope: TenantScope, kind: str) -> None:
    """Two reads raise importance once in the documented closed form, however many nights look back at them (F04)."""
    memory = await add_memory(
        database, scope, "Ann likes tea", observed_at=LONG_AGO, access_at=(ago(hours=2), ago(hours=1)), access_kind=kind
    )
    seen = []
    for hours in range(12):
        night = await sleep(database, scope, STRENGTHEN, at=NIGHT + timedelta(hours=hours))
        assert night.outcome.changed == int(hours == 0)
        seen.append(await importance_of(database, scope, memory))
    assert seen == [pytest.approx(5 + 5 * (1 - 0.9**2), abs=1e-12)] * 12


async def test_importance_saturates(database: Database, scope: TenantScope) -> None:
    """A thousand uses come close to the ceiling and never past it, and a memory above the ceiling is not lowered."""
    used = await add_memory(database, scope, "in daily use", importance=9.5, observed_at=LONG_AGO)
    above = await add_memory(database, scope, "set by a person", importance=9.8, observed_at=LONG_AGO)
    await change(
        database,
        scope,
        "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
        "SELECT :tenant_id, gen_random_uuid(), :scope_path, m.id, 'recall', :at "
        "FROM memories m CROSS JOIN generate_series(1, 1000) WHERE m.tenant_id = :tenant_id",
        at=ago(hours=1),
    )
    night = await sleep(database, scope, STRENGTHEN, settings={"strengthen": {"ceiling": 9.7}})
    assert await importance_of(database, scope, used) == pytest.approx(9.7, abs=1e-9)
    assert await importance_of(database, scope, used) <= 9.7
    assert await importance_of(database, scope, above) == 9.8
    assert night.outcome.skipped == {"already at the ceiling": 1}


async def test_thirty_nights_move_no_clock(database: Database, scope: TenantScope) -> None:
    """No phase is a use: memories that nobody touches keep times, importance and links through thirty nights (F05)."""
    await fill_small_tenant(database, scope)
    times = await clocks(database, scope)
    await sleep(database, scope, THE_SEVEN, pending_connections=PENDING)
    linked = {key: row["weight"] for key, row in (await edges(database, scope)).items()}
    uses = await rows(database, scope, "SELECT id, at FROM memory_accesses WHERE tenant_id = :tenant_id ORDER BY id")
    levels = await rows(
        database,
        scope,
        "SELECT memory_id, importance FROM memory_state WHERE tenant_id = :tenant_id ORDER BY memory_id",
    )
    for number in range(1, 31):
        night = await sleep(database, scope, THE_SEVEN, at=NIGHT + timedelta(days=number), accept=True)
        by_name = {result.step: result.outcome for result in night.results}
        for name in ("strengthen", "cooccurrence"):
            outcome = by_name[name]
            assert outcome is not None
            assert (outcome.changed, bool(outcome.reason)) == (0, True), (number, name)
    assert await clocks(database, scope) == times
    assert {key: row["weight"] for key, row in (await edges(database, scope)).items() if key[2] != "CLUSTERS"} == {
        key: weight for key, weight in linked.items() if key[2] != "CLUSTERS"
    }
    assert uses == await rows(
        database, scope, "SELECT id, at FROM memory_accesses WHERE tenant_id = :tenant_id ORDER BY id"
    )
    after = await rows(
        database,
        scope,
        "SELECT memory_id, importance FROM memory_state WHERE tenant_id = :tenant_id ORDER BY memory_id",
    )
    known = {row["memory_id"]: row["importance"] for row in levels}
    assert {row["memory_id"]: row["importance"] for row in after if row["memory_id"] in known} == known


async def test_what_a_recall_served_grows_and_stays(database: Database, scope: TenantScope) -> None:
    """What the default retrieval answers with is used: strengthened that night, not pruned in the next ones (F15)."""
    served = await remember(database, scope, "Ann drinks green tea", importance=2, observed_at=LONG_AGO)
    ignored = await remember(database, scope, "Somebody mentioned a bakery", importance=2, observed_at=LONG_AGO)
    await change(database, scope, "UPDATE memory_state SET first_night = :at", at=LONG_AGO)
    found = await recall(database, scope, EMBEDDING, "green tea", k=1, now=ago(hours=1))
    assert [item["id"] for item in found["results"]] == [str(served)]
    night = await sleep(database, scope, THE_SEVEN)
    assert night.results[0].outcome is not None
    assert night.results[0].outcome.sample == (str(served),)
    assert await importance_of(database, scope, served) == pytest.approx(2.8)
    await sleep(database, scope, THE_SEVEN, at=NIGHT + timedelta(days=20))
    gone = await rows(database, scope, "SELECT id FROM memories WHERE retired_at IS NOT NULL")
    assert [row["id"] for row in gone] == [ignored]


async def test_what_a_night_retires_is_in_no_summary_of_it(database: Database, scope: TenantScope) -> None:
    """The summaries are made from what prune left, and no edge points to nothing (F19)."""
    await add_memory(database, scope, "in daily use", importance=9, observed_at=LONG_AGO, access_at=(ago(hours=2),))
    for number in range(3):
        await add_memory(
            database, scope, f"noise number {number}", label=f"GONE: {number}", importance=2, observed_at=LONG_AGO
        )
    await change(database, scope, "UPDATE memory_state SET first_night = :at", at=LONG_AGO)
    report = await SleepConsolidator(database).run(scope, as_of=NIGHT)
    assert (report.nodes_pruned, report.meta_nodes_created, report.errors) == (3, 0, [])
    assert await edges(database, scope) == {}


async def test_a_tag_survives_the_retirement_of_the_same_night(database: Database, scope: TenantScope) -> None:
    """A later phase changes its own columns only: what it retires keeps tag and importance of the night (F53)."""
    await add_memory(database, scope, "in daily use", importance=9, observed_at=LONG_AGO, access_at=(ago(hours=2),))
    stale = await add_memory(database, scope, "The old printer caught fire", importance=2, observed_at=LONG_AGO)
    await change(database, scope, "UPDATE memory_state SET first_night = :at", at=LONG_AGO)
    report = await SleepConsolidator(database).run(scope, as_of=NIGHT)
    assert (report.risk_nodes_tagged, report.nodes_pruned) == (1, 1)
    (row,) = await rows(
        database,
        scope,
        "SELECT m.retired_at, s.risk_words, s.risk_tagged_at, s.importance FROM memories m JOIN memory_state s "
        "ON s.tenant_id = m.tenant_id AND s.memory_id = m.id WHERE m.id = :id",
        id=stale,
    )
    assert (row["retired_at"], row["risk_tagged_at"], row["importance"]) == (NIGHT, NIGHT, 2)
    assert row["risk_words"]


async def test_a_night_changes_no_vector(database: Database, scope: TenantScope) -> None:
    """Strengthened, tagged, linked, superseded: each memory's vector stays as it was, to the bit (F66)."""
    await fill_small_tenant(database, scope)
    vectors = (
        "SELECT e.memory_id, e.aspect, e.model, e.embedding::text AS vector FROM memory_embeddings e "
        "JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id "
        "WHERE e.tenant_id = :tenant_id AND m.derived_key IS NULL AND e.aspect = 'content' ORDER BY 1, 2"
    )
    before = [dict(row) for row in await rows(database, scope, vectors)]
    (document,) = await consolidate(
        database, [scope], "nightly", NIGHT, parameters={"pending_connections": PENDING, "accept": True}
    )
    assert document["status"] == "applied", document["error"]
    assert document["sleep"]["nodes_strengthened"] > 0
    assert before
    assert all(row["vector"] for row in before)
    assert [dict(row) for row in await rows(database, scope, vectors)] == before


async def test_two_nights_in_a_row_link_nothing_that_a_night_touched(database: Database, scope: TenantScope) -> None:
    """Memories used hours apart are not linked for what one night did to all of them (F06, F08, F23)."""
    for number in range(3):
        await add_memory(
            database,
            scope,
            f"Pump {number} had an outage",
            label=f"PUMP: {number}",
            observed_at=LONG_AGO,
            access_at=(ago(hours=2 + 5 * number),),
        )
    made = []
    for number in range(3):
        at: datetime = NIGHT + timedelta(minutes=number)
        await sleep(database, scope, THE_SEVEN, at=at)
        made.append({key for key in await edges(database, scope) if key[2] == "CO_OCCURRED"})
    assert made == [set(), set(), set()]
    assert await importance_of(
        database, scope, (await rows(database, scope, "SELECT id FROM memories WHERE label = 'PUMP: 0'"))[0]["id"]
    ) == pytest.approx(5.5)


async def test_a_use_after_as_of_waits_for_its_night(database: Database, scope: TenantScope) -> None:
    """A late run of an earlier night consumes nothing that happened after it, so no use is lost or counted early."""
    memory = await add_memory(database, scope, "fact", observed_at=LONG_AGO, access_at=(ago(hours=1),))
    other = await add_memory(database, scope, "another", observed_at=LONG_AGO)
    for each in (memory, other):
        await add_access(database, scope, each, NIGHT + timedelta(minutes=10))
    first = await sleep(database, scope, (STRENGTHEN, COOCCURRENCE))
    assert await importance_of(database, scope, memory) == pytest.approx(5.5)
    assert (await importance_of(database, scope, other), first.outcome.changed) == (5, 0)
    second = await sleep(database, scope, (STRENGTHEN, COOCCURRENCE), at=NIGHT + timedelta(days=1))
    assert await importance_of(database, scope, memory) == pytest.approx(5.95)
    assert await importance_of(database, scope, other) == pytest.approx(5.5)
    assert second.outcome.counts == {"edges_created": 1, "edges_reinforced": 0}
