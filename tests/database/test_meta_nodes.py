"""Phase 4 over a real database."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import event

from memory_core.database.engine import Database
from memory_core.errors import TransactionConflict
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import advance, close_run
from memory_core.runs.changes import changes_of
from memory_core.runs.checksum import checksum
from memory_core.runs.context import Run, RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.preview import preview
from memory_core.runs.undo import undo_run
from memory_core.scope import TenantScope
from memory_core.sleep import tag_risk
from memory_core.sleep.meta_nodes import STEP, UNDONE, meta_nodes
from tests.builders import NIGHT, add_memory, add_scope, ago


async def sleep_once(
    database: Database, scope: TenantScope, at: datetime = NIGHT, **parameters: Any
) -> tuple[Run, StepOutcome]:
    run = await begin_run(database, scope, "sleep", at, parameters)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    result = await advance(database, context, (STEP,), 0)
    assert result.error is None, result.error
    assert result.outcome is not None
    await close_run(database, context, {})
    return run, result.outcome


async def add_group(
    database: Database, scope: TenantScope, prefix: str, count: int, *, start: int = 0, **fields: Any
) -> list[UUID]:
    return [
        await add_memory(database, scope, f"{prefix} fact number {index}", label=f"{prefix}: {index}", **fields)
        for index in range(start, start + count)
    ]


async def metas(database: Database, scope: TenantScope, *, retired: bool = False) -> list[Any]:
    async with database.scoped(scope) as connection:
        return list(
            await connection.rows(
                "SELECT m.*, s.importance, (SELECT array_agg(e.target_id) FROM memory_edges e "
                "WHERE e.tenant_id = m.tenant_id AND e.source_id = m.id AND e.kind = 'clusters' "
                "AND e.relationship = 'CLUSTERS') AS targets FROM memories m "
                "JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id "
                "WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NOT NULL "
                "AND (m.retired_at IS NOT NULL) = :retired ORDER BY m.label, m.retired_at",
                retired=retired,
            )
        )


async def change(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> None:
    async with database.scoped(scope) as connection:
        await connection.execute(f"{sql} AND tenant_id = :tenant_id AND scope_path = :scope_path", **parameters)
        await connection.commit()


async def retire(database: Database, scope: TenantScope, *ids: UUID) -> None:
    await change(
        database,
        scope,
        "UPDATE memories SET retired_at = :at, retired_reason = 'outdated' WHERE id = ANY(CAST(:ids AS uuid[]))",
        at=ago(minutes=1),
        ids=list(ids),
    )


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def test_a_group_of_three_has_one_summary(database: Database, scope: TenantScope) -> None:
    """Row, state, links and citations of a new summary; two members make none; a second night changes nothing."""
    tea = await add_group(database, scope, "TEA", 3)
    await add_group(database, scope, "COFFEE", 2)
    await add_memory(database, scope, "A line without a label")
    _, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.changed) == (2, 1)
    assert outcome.counts["meta_nodes_created"] == 1
    assert outcome.skipped == {"fewer than 3 members": 1}
    (meta,) = await metas(database, scope)
    assert outcome.sample == (str(meta["id"]),)
    assert (meta["label"], meta["layer"], meta["derived_key"], meta["importance"]) == (
        "META: TEA",
        "semantic",
        "meta:TEA",
        7,
    )
    assert meta["properties"]["type"] == "meta_node"
    assert meta["properties"]["member_count"] == 3
    assert set(meta["properties"]["cited"]) == {str(member) for member in tea}
    assert set(meta["targets"]) == set(tea)
    assert (meta["observed_at"], meta["recorded_at"]) == (ago(hours=3), NIGHT)
    assert meta["content"].startswith("TEA, 3 memories: ")
    assert "TEA fact number 1" in meta["content"]

    after = await state(database, scope)
    _, again = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (again.changed, again.skipped["its members are unchanged"]) == (0, 1)
    assert again.reason == "no group of enough members changed"
    assert await state(database, scope) == after


async def test_only_an_explicit_prefix_makes_a_group(database: Database, scope: TenantScope) -> None:
    """First words, times, addresses, identity and blank labels make none; case and spaces do not part (F21, F22)."""
    for index in range(3):
        for label in (
            f"The cat {index}",
            f"10:30 standup {index}",
            f"http://example.org/{index}",
            f"10: {index}",
            f"SOUL: {index}",
            f"Persona: {index}",
            f"META: {index}",
            f"{'x' * 41}: {index}",
            f"TEA:{index}",
            f"TEA\t: {index}",
            "TEA:",
            f"a, b: {index}",
            f": {index}",
            "  ",
            "",
        ):
            await add_memory(database, scope, f"{label!r} says {index}", label=label)
    for label in (
        "Known  Error: a",
        "KNOWN ERROR: b",
        "known\u00a0error:\u00a0c",
        "ÜBER-uns_2: a",
        "ÜBER-uns_2: b",
        "ÜBER-uns_2: c",
    ):
        await add_memory(database, scope, f"content of {label}", label=label)
    _, outcome = await sleep_once(database, scope)
    assert outcome.counts["meta_nodes_created"] == 2
    assert [meta["label"] for meta in await metas(database, scope)] == ["META: KNOWN ERROR", "META: ÜBER-UNS_2"]


async def test_a_summary_follows_its_members(database: Database, scope: TenantScope) -> None:
    """Refreshed when members come, change or go; retired below three; revived when they are back (F20)."""
    tea = await add_group(database, scope, "TEA", 3)
    await sleep_once(database, scope)
    (first,) = await metas(database, scope)

    await add_group(database, scope, "TEA", 57, start=3)
    _, grown = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert grown.counts["meta_nodes_refreshed"] == 1
    (second,) = await metas(database, scope)
    assert (second["properties"]["member_count"], len(second["targets"])) == (60, 10)
    (former,) = await metas(database, scope, retired=True)
    assert (former["id"], former["content"], former["retired_reason"]) == (first["id"], first["content"], "refreshed")

    await change(
        database,
        scope,
        "UPDATE memories SET content = 'TEA is out', content_hash = 'other' WHERE id = CAST(:id AS uuid)",
        id=tea[0],
    )
    _, edited = await sleep_once(database, scope, NIGHT + timedelta(days=2))
    assert edited.counts["meta_nodes_refreshed"] == 1

    async with database.scoped(scope) as connection:
        others = (
            (
                await connection.execute(
                    "SELECT id FROM memories WHERE tenant_id = :tenant_id AND starts_with(label, 'TEA: ') "
                    "AND NOT id = ANY(:kept)",
                    kept=tea[1:],
                )
            )
            .scalars()
            .all()
        )
    await retire(database, scope, *others)
    _, gone = await sleep_once(database, scope, NIGHT + timedelta(days=3))
    assert gone.counts["meta_nodes_retired"] == 1
    assert await metas(database, scope) == []
    assert (await metas(database, scope, retired=True))[-1]["retired_reason"] == "its members are gone"

    await change(
        database,
        scope,
        "UPDATE memories SET retired_at = NULL, retired_reason = NULL, content_hash = 'first' "
        "WHERE id = CAST(:id AS uuid)",
        id=tea[0],
    )
    await sleep_once(database, scope, NIGHT + timedelta(days=4))
    (back,) = await metas(database, scope)
    await retire(database, scope, tea[0])
    await sleep_once(database, scope, NIGHT + timedelta(days=5))
    await change(
        database,
        scope,
        "UPDATE memories SET retired_at = NULL, retired_reason = NULL WHERE id = CAST(:id AS uuid)",
        id=tea[0],
    )
    _, revived = await sleep_once(database, scope, NIGHT + timedelta(days=6))
    assert (revived.counts["meta_nodes_created"], revived.counts["meta_nodes_revived"]) == (1, 1)
    (again,) = await metas(database, scope)
    assert (again["id"], set(again["targets"])) == (back["id"], set(tea))


async def test_use_does_not_change_a_group(database: Database, scope: TenantScope) -> None:
    """Reads, importance, a pin and a new label under the same prefix leave the summary's row as it is."""
    tea = await add_group(database, scope, "TEA", 3)
    await sleep_once(database, scope)
    before = await metas(database, scope)
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
            "VALUES (:tenant_id, gen_random_uuid(), :scope_path, CAST(:id AS uuid), 'recall', :at)",
            id=tea[0],
            at=ago(minutes=1),
        )
        await connection.execute(
            "UPDATE memory_state SET importance = 10, access_count = 9 "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = CAST(:id AS uuid)",
            id=tea[2],
        )
        await connection.execute(
            "UPDATE memories SET pinned = true, last_activity_at = :at, label = 'tea: other' "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)",
            id=tea[1],
            at=ago(minutes=1),
        )
        await connection.commit()
    _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (outcome.changed, outcome.skipped["its members are unchanged"]) == (0, 1)
    assert await metas(database, scope) == before


async def test_what_is_not_current_is_no_member(database: Database, scope: TenantScope) -> None:
    """Pruned, superseded, expired, later and other layers' or scopes' memories are never summarised (F19)."""
    (keeper, *_) = await add_group(database, scope, "TEA", 2)
    await add_group(database, scope, "TEA", 2, start=2, retired_at=ago(hours=1), retired_reason="stale")
    await add_group(
        database, scope, "TEA", 1, start=4, superseded_by=keeper, superseded_reason="update", superseded_at=ago(hours=1)
    )
    await add_group(database, scope, "TEA", 1, start=5, expires_at=ago(hours=1))
    await add_group(database, scope, "TEA", 1, start=6, observed_at=NIGHT + timedelta(hours=1))
    await add_group(database, scope, "TEA", 1, start=7, layer="episodic")
    await add_group(database, scope.child("brand", "halo"), "TEA", 2, start=8)
    _, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.changed) == (1, 0)
    _, child = await sleep_once(database, scope.child("brand", "halo"))
    assert child.changed == 0


async def test_the_most_central_members_are_quoted_first(database: Database, scope: TenantScope) -> None:
    """By their vectors, not in the order of their labels; without vectors by importance and age."""
    near = [1.0] + [0.0] * 63
    far = [0.0] * 63 + [1.0]
    for index, vector in enumerate((far, near, near, near)):
        await add_memory(
            database, scope, f"Text {index}", label=f"TEA: {index}", vector=vector, importance=2 + index / 10
        )
    for index in range(3):
        await add_memory(database, scope, f"Note {index}", label=f"COFFEE: {index}", importance=3 + index)
    await sleep_once(database, scope)
    coffee, tea = await metas(database, scope)
    assert tea["content"] == "TEA, 4 memories: Text 3 · Text 2 · Text 1 · Text 0"
    assert coffee["content"] == "COFFEE, 3 memories: Note 2 · Note 1 · Note 0"


async def test_a_preview_equals_the_run_and_undo_is_exact(database: Database, scope: TenantScope) -> None:
    """The dry run has the same ids and texts; undoing a refresh brings the former summary back as it was."""
    await add_group(database, scope, "TEA", 3, vector=[1.0] + [0.0] * 63)
    empty = await state(database, scope)
    first, _ = await sleep_once(database, scope, ago(days=-1))
    before = await state(database, scope)
    await add_group(database, scope, "TEA", 1, start=3)
    with_new = await state(database, scope)
    later = NIGHT + timedelta(days=2)
    dry = await begin_run(database, scope, "sleep", later, {}, dry_run=True)
    shown = await preview(database, RunContext(dry, database.settings, embedding_provider("hash:64"), None), (STEP,))
    run, _ = await sleep_once(database, scope, later)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, run.id) == shown.changes
    undone = await undo_run(database, scope, run.id, at=later, decisions=[UNDONE])
    assert undone.refused == ()
    assert await state(database, scope) == with_new
    _, again = await sleep_once(database, scope, later)
    assert (again.changed, again.skipped) == (0, {"taken back by a person": 1})
    _, asked = await sleep_once(database, scope, later, reconsider=True)
    assert asked.counts["meta_nodes_refreshed"] == 1
    assert empty != before
    assert first.id != run.id


async def test_undoing_the_first_summary_leaves_nothing(database: Database, scope: TenantScope) -> None:
    """It is not made again until a member changes; a summary that a person retired is not revived either."""
    tea = await add_group(database, scope, "TEA", 3)
    empty = await state(database, scope)
    run, _ = await sleep_once(database, scope)
    await undo_run(database, scope, run.id, at=NIGHT, decisions=[UNDONE])
    assert await state(database, scope) == empty
    _, again = await sleep_once(database, scope)
    assert again.changed == 0
    await add_group(database, scope, "TEA", 1, start=3)
    _, changed = await sleep_once(database, scope)
    assert changed.counts["meta_nodes_created"] == 1
    (meta,) = await metas(database, scope)
    await retire(database, scope, meta["id"])
    _, refused = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (refused.changed, refused.skipped) == (0, {"taken back by a person": 1})
    await retire(database, scope, *tea)
    _, small = await sleep_once(database, scope, NIGHT + timedelta(days=2))
    assert small.changed == 0


async def test_two_runs_at_once_make_one_summary(database: Database, scope: TenantScope) -> None:
    """Even without the scope's lock: the second finds a conflict, tries again, and finds the work done (F31)."""
    for prefix in ("TEA", "TAX", "TOY"):
        await add_group(database, scope, prefix, 3)
    runs = [Run(scope.derived_id("run", str(number)), scope, "sleep", NIGHT) for number in range(4)]

    async def attempt(run: Run) -> int:
        for _ in range(10):
            try:
                async with database.scoped(scope, run.binding("meta_nodes"), isolation="REPEATABLE READ") as connection:
                    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
                    outcome = await meta_nodes(connection, context)
                    await asyncio.sleep(0.05)
                    await connection.commit()
                    return outcome.counts["meta_nodes_created"]
            except TransactionConflict:
                await asyncio.sleep(0.02)
        raise AssertionError("never got through")

    created = await asyncio.gather(*(attempt(run) for run in runs))
    assert sorted(created) == [0, 0, 0, 3]
    assert [meta["label"] for meta in await metas(database, scope)] == ["META: TAX", "META: TEA", "META: TOY"]
    assert all(len(meta["targets"]) == 3 for meta in await metas(database, scope))


async def test_summaries_are_nobodys_material(database: Database, scope: TenantScope) -> None:
    """A summary is not tagged as a risk for what it quotes, not harmonised, and in no group itself (F23)."""
    for index in range(3):
        await add_memory(database, scope, f"Pump {index} crashed", label=f"RISKREG: {index}")
    await sleep_once(database, scope)
    run = await begin_run(database, scope, "sleep", NIGHT + timedelta(days=1), {})
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    result = await advance(database, context, (tag_risk.STEP, STEP), 0)
    assert result.outcome is not None
    assert result.outcome.counts["risk_nodes_tagged"] == 3
    (meta,) = await metas(database, scope)
    async with database.scoped(scope) as connection:
        assert await connection.scalar("SELECT count(*) FROM harmonize_queue WHERE tenant_id = :tenant_id") == 3
        assert (
            await connection.scalar(
                "SELECT count(*) FROM harmonize_queue WHERE tenant_id = :tenant_id AND memory_id = :id", id=meta["id"]
            )
            == 0
        )


async def test_statements_do_not_follow_the_memories(database: Database, scope: TenantScope) -> None:
    """Forty groups take as many statements as one; links and quotations have a limit."""
    statements: list[str] = []
    event.listen(database.app.sync_engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    await add_scope(database, scope)
    counted = []
    for night, groups in ((0, 1), (1, 40)):
        async with database.scoped(scope) as connection:
            await connection.execute(
                "WITH made AS (INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, "
                "recorded_at, last_activity_at, content_hash) SELECT :tenant_id, gen_random_uuid(), :scope_path, "
                "'G' || CAST(:night AS text) || '-' || g || ': ' || i, 'fact ' || i, t, t, t, g || '-' || i "
                "FROM generate_series(1, CAST(:groups AS integer)) g, generate_series(1, 30) i, "
                "(SELECT CAST(:at AS timestamptz) AS t) AS clock RETURNING tenant_id, scope_path, id) "
                "INSERT INTO memory_state (tenant_id, scope_path, memory_id) SELECT * FROM made",
                night=night,
                groups=groups,
                at=ago(hours=1),
            )
            await connection.commit()
        statements.clear()
        _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=night))
        assert outcome.counts["meta_nodes_created"] == groups
        counted.append(len(statements))
    assert counted[0] == counted[1]
    assert all(len(meta["targets"]) == 10 for meta in await metas(database, scope))
    await add_group(database, scope, "LARGE", 5)
    await sleep_once(database, scope, NIGHT + timedelta(days=3), settings={"meta_nodes": {"linked": 2, "quoted": 1}})
    large = next(meta for meta in await metas(database, scope) if meta["label"] == "META: LARGE")
    assert (len(large["targets"]), large["properties"]["member_count"], len(large["properties"]["cited"])) == (2, 5, 1)
