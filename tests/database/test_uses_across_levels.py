"""An organisation's memory that its conversations read: its own night counts the use, and nobody else can claim one."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from memory_core.database.engine import Database
from memory_core.errors import MissingRight
from memory_core.night.consolidate import consolidate, undo
from memory_core.retrieval.uses import record_uses
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, add_scope, ago
from tests.nights import change, rows, state

PRUNING = {"accept": True, "settings": {"prune_orphans": {"allow_without_use": True}}}


async def old_noise(database: Database, scope: TenantScope, text: str) -> uuid.UUID:
    """A memory that the next night prunes unless something speaks for it."""
    memory_id = await add_memory(database, scope, text, importance=2, observed_at=ago(days=90))
    await change(
        database,
        scope,
        "UPDATE memory_state SET first_night = :at WHERE tenant_id = :tenant_id AND memory_id = :id",
        at=ago(days=80),
        id=memory_id,
    )
    return memory_id


async def read_in(database: Database, scope: TenantScope, *memory_ids: uuid.UUID, days: float = 0.5) -> int:
    """Read memories in a scope some days ago; how many uses that were."""
    async with database.scoped(scope) as connection:
        written = await record_uses(connection, memory_ids, kind="recall", at=ago(days=days))
        await connection.commit()
    return written


async def test_the_owners_night_counts_what_children_read(database: Database, scope: TenantScope) -> None:
    """What two conversations read grows more important and stays; what nobody read is retired; undo restores."""
    children = [scope.child("conversation", name) for name in ("c-1", "c-12")]
    for child in children:
        await add_scope(database, child)
    read, unread = [await old_noise(database, scope, text) for text in ("read by conversations", "read by nobody")]
    written = [await read_in(database, child, read) for child in children]
    assert written == [1, 1]
    before = await state(database, scope)
    (document,) = await consolidate(database, [scope], "sleep", NIGHT, parameters=PRUNING)
    assert document["sleep"]["nodes_strengthened"] == 1
    found = {
        row["id"]: (row["retired_at"] is None, row["access_count"])
        for row in await rows(
            database,
            scope,
            "SELECT m.id, m.retired_at, s.access_count FROM memories m JOIN memory_state s "
            "ON s.tenant_id = m.tenant_id AND s.memory_id = m.id WHERE m.tenant_id = :tenant_id",
        )
    }
    assert found == {read: (True, 2), unread: (False, 0)}
    await undo(database, scope, uuid.UUID(document["run_id"]), at=NIGHT)
    assert await state(database, scope) == before


async def test_age_counts_from_what_children_read(database: Database, scope: TenantScope) -> None:
    """Forty days after the last use it is no longer used lately, and old enough to go."""
    child = scope.child("conversation", "c-1")
    await add_scope(database, child)
    read = await old_noise(database, scope, "read once more")
    await read_in(database, child, read)
    for day, retired in ((0, 0), (29, 0), (40, 1)):
        (document,) = await consolidate(database, [scope], "sleep", NIGHT + timedelta(days=day), parameters=PRUNING)
        assert document["sleep"]["nodes_pruned"] == retired, day


async def test_a_childs_own_night_leaves_the_parents_uses_alone(database: Database, scope: TenantScope) -> None:
    """They are evidence for the level that owns the memory, and only its night consumes them."""
    child = scope.child("conversation", "c-1")
    own = await add_memory(database, child, "the conversation's own", observed_at=ago(days=3))
    shared = await add_memory(database, scope, "the organisation's", observed_at=ago(days=3))
    assert await read_in(database, child, own, shared) == 2
    (document,) = await consolidate(database, [child], "sleep", NIGHT)
    assert document["sleep"]["nodes_strengthened"] == 1
    waiting = await rows(
        database,
        scope,
        "SELECT memory_id FROM memory_accesses WHERE tenant_id = :tenant_id AND consumed_by_run IS NULL",
    )
    assert [row["memory_id"] for row in waiting] == [shared]


async def test_nobody_else_can_claim_a_use(database: Database, scope: TenantScope) -> None:
    """Neither a sibling, nor a parent for its child, nor another tenant; and no one but the owner changes one."""
    child, sibling = scope.child("conversation", "c-1"), scope.child("conversation", "c-12")
    stranger = TenantScope.root("tenant", "zeta")
    for each in (scope, child, sibling, stranger):
        await add_scope(database, each)
    private = await add_memory(database, child, "the conversation's own")
    shared = await add_memory(database, scope, "the organisation's")
    for other in (sibling, scope, stranger):
        assert await read_in(database, other, private) == 0
        with pytest.raises(MissingRight):
            async with database.scoped(other) as connection:
                await connection.execute(
                    "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
                    "VALUES ('acme', gen_random_uuid(), :path, :id, 'recall', now())",
                    path=child.scope_path,
                    id=private,
                )
    assert await read_in(database, child, shared) == 1
    async with database.scoped(child) as connection:
        changed = await connection.execute("UPDATE memory_accesses SET kind = 'confirm'")
        assert changed.rowcount == 0
        assert (await connection.execute("DELETE FROM memory_accesses")).rowcount == 0
