"""Runs that fail, meet, or are overtaken: what the older consolidator did wrong there, its fault in brackets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from memory_core import SleepConsolidator
from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import ScopeBusy, TransactionConflict
from memory_core.night.consolidate import consolidate
from memory_core.night.scopes import scopes_of_tenant
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope
from memory_core.sleep import prune_orphans, tag_risk
from memory_core.sleep.meta_nodes import STEP as META_NODES
from memory_core.sleep.phases import SLEEP_STEPS
from tests.builders import NIGHT, add_memory, ago
from tests.nights import change, edges, importance_of, rows, sleep, state
from tests.small_tenant import PENDING, fill_small_tenant

THE_SEVEN = tuple(step for step in SLEEP_STEPS if step.enabled is None)
LONG_AGO = ago(days=60)


@contextmanager
def refusing(database: Database, *tables: str) -> Iterator[None]:
    """A database in which these tables cannot be written."""
    engine = create_engine(database.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            text(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'this table is read-only'; END $$"
            )
        )
        for table in tables:
            trigger = f"CREATE TRIGGER a_refusal BEFORE INSERT OR UPDATE ON slowwave.{table} FOR EACH ROW"
            connection.execute(text(f"{trigger} EXECUTE FUNCTION refuse()"))
        try:
            yield
        finally:
            for table in tables:
                connection.execute(text(f"DROP TRIGGER a_refusal ON slowwave.{table}"))
    engine.dispose()


async def slept_through_an_edit(database: Database, scope: TenantScope, phase: Step, edit: str, **values: Any) -> int:
    """A night of one phase in which a person edits after the phase took its snapshot; returns the attempts it took."""
    attempts = 0

    async def write(connection: ScopedConnection, context: RunContext, answer: Any) -> StepOutcome:
        nonlocal attempts
        attempts += 1
        await connection.scalar("SELECT 1")
        if attempts == 1:
            await change(database, scope, edit, **values)
        return await phase.write(connection, context, answer)

    while True:
        try:
            night = await sleep(database, scope, Step(phase.name, write, undone=phase.undone))
        except TransactionConflict:
            continue
        assert night.status == "applied", night.results[0].error
        return attempts


async def test_a_store_that_takes_no_writes_is_no_success(database: Database, scope: TenantScope) -> None:
    """Each phase that could not write is an error with its reason, in one sentence, and counts nothing (F29, F51)."""
    await fill_small_tenant(database, scope)
    before = await state(database, scope)
    tables = ("memories", "memory_state", "memory_edges", "memory_accesses", "pending_connections", "soul_profiles")
    with refusing(database, *tables):
        report = await SleepConsolidator(database).run(scope, as_of=NIGHT, pending_connections=PENDING)
    assert [error.partition(":")[0] for error in report.errors] == [step.name for step in THE_SEVEN]
    assert all("this table is read-only" in error for error in report.errors)
    counted = report.to_dict()
    assert not any(
        counted[name]
        for name in ("nodes_strengthened", "nodes_pruned", "risk_nodes_tagged", "meta_nodes_created", "soul_updates")
    )
    assert report.edges_created == 0
    assert {phase["status"] for phase in report.phases.values()} == {"failed"}
    (run,) = await rows(database, scope, "SELECT status FROM runs WHERE tenant_id = :tenant_id")
    assert run["status"] == "failed"
    assert await state(database, scope) == before


async def test_a_phase_that_fails_stops_no_other(database: Database, scope: TenantScope) -> None:
    """One phase cannot write: that one is an error, the six others do all they have to do (F22, F29)."""
    await fill_small_tenant(database, scope)
    with refusing(database, "soul_profiles"):
        report = await SleepConsolidator(database).run(scope, as_of=NIGHT, pending_connections=PENDING)
    assert [error.partition(":")[0] for error in report.errors] == ["soul_corrections"]
    done = [name for name, phase in report.phases.items() if phase["status"] == "done"]
    assert done == [step.name for step in THE_SEVEN if step.name != "soul_corrections"]
    assert (report.nodes_strengthened, report.risk_nodes_tagged, report.meta_nodes_created) == (3, 1, 1)
    assert report.soul_updates == 0
    again = await SleepConsolidator(database).run(scope, as_of=NIGHT, pending_connections=PENDING)
    assert (again.soul_updates, again.nodes_strengthened, again.errors) == (1, 0, [])


async def test_a_summary_is_whole_or_not_at_all(database: Database, scope: TenantScope) -> None:
    """Where its links cannot be written there is no summary either; it is said, and the next night makes it (F24)."""
    members = [await add_memory(database, scope, f"tea fact {n}", label=f"TEA: {n}") for n in range(3)]
    made = "SELECT id FROM memories WHERE tenant_id = :tenant_id AND derived_key = 'meta:TEA'"
    with refusing(database, "memory_edges"):
        night = await sleep(database, scope, META_NODES)
    assert "read-only" in str(night.results[0].error)
    assert night.status == "failed"
    assert await rows(database, scope, made) == []
    again = await sleep(database, scope, META_NODES)
    (meta,) = await rows(database, scope, made)
    assert again.outcome.counts["meta_nodes_created"] == 1
    assert {(source, target) for source, target, _ in await edges(database, scope)} == {
        (meta["id"], member) for member in members
    }


async def test_two_sleeps_at_once_are_one(database: Database, scope: TenantScope) -> None:
    """Of runs that are started together one works and the others are told that it does; nothing doubles (F31)."""
    known = await fill_small_tenant(database, scope)
    consolidators = [SleepConsolidator(database) for _ in range(4)]
    results = await asyncio.gather(
        *(each.run(scope, as_of=NIGHT, pending_connections=PENDING) for each in consolidators), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, ScopeBusy)]
    reports = [result for result in results if not isinstance(result, BaseException)]
    assert len(refused) + len(reports) == 4, results
    assert sorted(report.nodes_strengthened for report in reports) == [0] * (len(reports) - 1) + [3]
    assert await importance_of(database, scope, known["Ann"]) == pytest.approx(10 - 5 * 0.9**2)
    metas = await rows(database, scope, "SELECT label FROM memories WHERE derived_key IS NOT NULL")
    assert [row["label"] for row in metas] == ["META: TEAM"]
    for key, edge in (await edges(database, scope)).items():
        assert edge["evidence_count"] == 1, key


async def test_an_edit_during_a_phase_is_kept(database: Database, scope: TenantScope) -> None:
    """What a person writes while a phase tags the memory stays as written, beside the tag (F32)."""
    memory = await add_memory(database, scope, "The payment service had an outage", properties={"note": "old"})
    edit = """UPDATE memories SET properties = '{"note": "new"}', label = 'edited' WHERE id = :id"""
    await slept_through_an_edit(database, scope, tag_risk.STEP, edit, id=memory)
    (row,) = await rows(
        database,
        scope,
        "SELECT m.properties, m.label, s.risk_words FROM memories m JOIN memory_state s "
        "ON s.tenant_id = m.tenant_id AND s.memory_id = m.id WHERE m.id = :id",
        id=memory,
    )
    assert (row["properties"], row["label"]) == ({"note": "new"}, "edited")
    assert row["risk_words"]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE memories SET pinned = true WHERE id = :id",
        "UPDATE memories SET last_activity_at = :at WHERE id = :id",
    ],
    ids=["pinned", "used"],
)
async def test_a_memory_protected_during_prune_is_not_retired(
    database: Database, scope: TenantScope, edit: str
) -> None:
    """Prune does not decide on a snapshot that a person has overtaken: it looks again (F32)."""
    await add_memory(database, scope, "in daily use", importance=9, observed_at=LONG_AGO, access_at=(ago(hours=2),))
    memory = await add_memory(database, scope, "noise", importance=2, observed_at=LONG_AGO)
    await change(database, scope, "UPDATE memory_state SET first_night = :at", at=LONG_AGO)
    values: dict[str, Any] = {"at": ago(minutes=1)} if ":at" in edit else {}
    assert await slept_through_an_edit(database, scope, prune_orphans.STEP, edit, id=memory, **values) == 2
    (row,) = await rows(database, scope, "SELECT retired_at FROM memories WHERE id = :id", id=memory)
    assert row["retired_at"] is None


async def test_a_corrected_text_is_judged_as_corrected(database: Database, scope: TenantScope) -> None:
    """A text that is corrected during tagging is tagged by the night after it, for what it then says (F03, F32)."""
    memory = await add_memory(database, scope, "The payment service had an outage")
    edit = "UPDATE memories SET content = 'All is well', content_hash = 'another' WHERE id = :id"
    await slept_through_an_edit(database, scope, tag_risk.STEP, edit, id=memory)
    await sleep(database, scope, tag_risk.STEP, at=NIGHT + timedelta(days=1))
    (row,) = await rows(
        database, scope, "SELECT risk_words, risk_checked FROM memory_state WHERE memory_id = :id", id=memory
    )
    assert row["risk_words"] is None
    assert row["risk_checked"].startswith("another:")


@pytest.mark.parametrize("root", ["tenant", "org", "brand"])
async def test_every_scope_of_a_tenant_sleeps(database: Database, root: str) -> None:
    """Scopes are found from the data, whatever the root's kind and however deep, and each is consolidated (F34)."""
    top = TenantScope.root(root, "acme")
    scopes = [top, top.child("team", "x"), top.child("team", "x").child("conversation", "c1"), top.child("team", "y")]
    used = [
        await add_memory(database, scope, "fact", observed_at=LONG_AGO, access_at=(ago(hours=1),)) for scope in scopes
    ]
    await add_memory(database, TenantScope.root(root, "acme-corp"), "fact")
    found = await scopes_of_tenant(database, "acme")
    assert sorted(map(str, found)) == sorted(map(str, scopes))
    documents = await consolidate(database, found, "sleep", NIGHT)
    assert [document["sleep"]["nodes_strengthened"] for document in documents] == [1, 1, 1, 1]
    for scope, memory in zip(scopes, used, strict=True):
        assert await importance_of(database, scope, memory) == pytest.approx(5.5)


async def test_settings_of_one_call_reach_no_other(database: Database) -> None:
    """Two tenants sleep at once with different look-backs, and a later call has the default again (F56)."""
    acme, zeta, later = (TenantScope.root("tenant", name) for name in ("acme", "zeta", "later"))
    for scope in (acme, zeta, later):
        await add_memory(database, scope, "fact", observed_at=LONG_AGO, access_at=(ago(hours=40),))
    long, short = SleepConsolidator(database, lookback_hours=48), SleepConsolidator(database)
    reports = await asyncio.gather(long.run(acme, as_of=NIGHT), short.run(zeta, as_of=NIGHT))
    assert [report.nodes_strengthened for report in reports] == [1, 0]
    assert (await short.run(later, as_of=NIGHT)).nodes_strengthened == 0
    assert reports[1].phases["strengthen"]["skipped"] == {"evidence older than the look-back": 1}
