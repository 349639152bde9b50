"""Beliefs follow their evidence."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core.beliefs.cascade import (
    left_superseded,
    revive_superseded_by,
    withdraw_fallen_support,
    withdraw_support,
)
from memory_core.database.engine import Database
from memory_core.database.scoped import RunBinding, ScopedConnection
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, add_scope, ago


async def add_belief(
    connection: ScopedConnection, content: str, status: str = "held", confidence: float = 0.7, **roles: Any
) -> uuid.UUID:
    """Add one belief; `roles` maps supports, contradicts, superseded to memory ids."""
    belief_id = uuid.uuid4()
    await connection.execute(
        "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, "
        "confidence, status, valid_from, cluster_id, model, rules_version, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, 's', 'p', :content, :content, :confidence, :status, :at, 'c', 'rules', "
        "'1', :at)",
        id=belief_id,
        content=content,
        confidence=confidence,
        status=status,
        at=ago(days=1),
    )
    for role, memories in roles.items():
        for memory_id in memories:
            await connection.execute(
                "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
                "VALUES (:tenant_id, :id, :memory, :role, :scope_path)",
                id=belief_id,
                memory=memory_id,
                role=role,
            )
    await connection.execute("UPDATE harmonize_queue SET harmonized_by_run = gen_random_uuid()")
    return belief_id


async def hide(connection: ScopedConnection, memory_id: uuid.UUID, **columns: Any) -> None:
    """Retire or supersede one memory."""
    settings = ", ".join(f"{name} = :{name}" for name in columns)
    await connection.execute(f"UPDATE memories SET {settings} WHERE id = :id", id=memory_id, **columns)


async def retire(connection: ScopedConnection, memory_id: uuid.UUID) -> None:
    """Retire one memory."""
    await hide(connection, memory_id, retired_at=NIGHT, retired_reason="wrong")


async def belief(connection: ScopedConnection, belief_id: uuid.UUID) -> Any:
    """The belief's row."""
    return await connection.row("SELECT * FROM harmonic_beliefs WHERE belief_id = :id", id=belief_id)


async def waiting(connection: ScopedConnection) -> set[uuid.UUID]:
    """What waits for SHMR."""
    return set(
        (await connection.execute("SELECT memory_id FROM harmonize_queue WHERE harmonized_by_run IS NULL")).scalars()
    )


async def test_a_belief_falls_with_its_last_support(database: Database, scope: TenantScope) -> None:
    """With one of two supports gone the confidence falls, with both gone the belief is stale."""
    strong = await add_memory(database, scope, "Ann lives in Oslo", confidence=0.9)
    weak = await add_memory(database, scope, "Ann lives in Oslo now", confidence=0.4)
    async with database.scoped(scope) as connection:
        held = await add_belief(connection, "Ann lives in Oslo", confidence=0.9, supports=[strong, weak])
        assert await withdraw_support(connection, [strong], "nothing happened yet", at=NIGHT) == 0
        await retire(connection, strong)
        assert await withdraw_support(connection, [strong], "a support was retired", at=NIGHT) == 1
        row = await belief(connection, held)
        assert (row["status"], row["confidence"], row["valid_to"]) == ("held", 0.4, None)
        await retire(connection, weak)
        assert await withdraw_support(connection, [weak], "the last support was retired", at=NIGHT) == 1
        row = await belief(connection, held)
        assert (row["status"], row["status_reason"], row["valid_to"]) == (
            "stale",
            "the last support was retired",
            NIGHT,
        )
        assert await withdraw_support(connection, [weak, strong], "again", at=NIGHT) == 0


@pytest.mark.parametrize("superseded_reason", ["update", "contradiction", "correction"])
async def test_a_duplicate_falls_with_the_statement_it_gave_way_to(
    database: Database, scope: TenantScope, superseded_reason: str
) -> None:
    """A superseded duplicate goes on supporting while its winner stands, and no longer."""
    first = await add_memory(database, scope, "Ann lives in Oslo")
    copy = await add_memory(database, scope, "Ann lives in Oslo.")
    newer = await add_memory(database, scope, "Ann lives in Bergen")
    async with database.scoped(scope) as connection:
        held = await add_belief(connection, "Ann lives in Oslo", supports=[first, copy])
        await hide(connection, copy, superseded_by=first, superseded_reason="duplicate")
        assert await withdraw_support(connection, [copy], "a duplicate", at=NIGHT) == 0
        only_copy = await add_belief(connection, "Ann is in Oslo", supports=[copy])
        await hide(connection, first, superseded_by=newer, superseded_reason=superseded_reason)
        assert await withdraw_support(connection, [first], "stated otherwise later", at=NIGHT) == 2
        assert (await belief(connection, held))["status"] == "stale"
        assert (await belief(connection, only_copy))["status"] == "stale"


async def test_a_contested_belief_needs_both_sides(database: Database, scope: TenantScope) -> None:
    """When one side falls it is stale, and the other side is looked at again."""
    left = await add_memory(database, scope, "The valve is blue")
    right = await add_memory(database, scope, "The valve is red")
    other = await add_memory(database, scope, "The pump is grey")
    async with database.scoped(scope) as connection:
        contested = await add_belief(connection, "blue / red", "contested", supports=[left], contradicts=[right])
        await retire(connection, right)
        assert await waiting(connection) == set()
        assert await withdraw_support(connection, [right], "one side was retired", at=NIGHT) == 1
        assert (await belief(connection, contested))["status"] == "stale"
        assert await waiting(connection) == {left}
        assert other not in await waiting(connection)


async def test_overridden_evidence_does_not_carry_a_belief(database: Database, scope: TenantScope) -> None:
    """What a belief overrode may go; closed beliefs are not touched."""
    winner = await add_memory(database, scope, "Ann lives in Bergen")
    loser = await add_memory(database, scope, "Ann lives in Oslo")
    async with database.scoped(scope) as connection:
        await add_belief(connection, "Ann lives in Bergen", supports=[winner], superseded=[loser])
        closed = await add_belief(connection, "Ann lives in Oslo", "superseded", supports=[loser])
        await retire(connection, loser)
        assert await withdraw_support(connection, [loser], "retired", at=NIGHT) == 0
        assert (await belief(connection, closed))["status"] == "superseded"


async def test_a_child_scope_notices_what_its_parent_took_back(database: Database, scope: TenantScope) -> None:
    """A parent cannot see its children's beliefs, so each scope looks for itself; what expired is found too."""
    child = scope.child("brand", "halo")
    await add_scope(database, child)
    shared = await add_memory(database, scope, "Returns take 30 days")
    brief = await add_memory(database, child, "The shop is closed", expires_at=ago(hours=1))
    async with database.scoped(child) as connection:
        await add_belief(connection, "Returns take 30 days", supports=[shared])
        await add_belief(connection, "The shop is closed", supports=[brief])
        await connection.commit()
    async with database.scoped(scope) as connection:
        await retire(connection, shared)
        assert await withdraw_support(connection, [shared], "retired", at=NIGHT) == 0
        await connection.commit()
    async with database.scoped(child) as connection:
        assert await withdraw_fallen_support(connection, "its evidence is gone", at=ago(days=1)) == 1
        assert await withdraw_fallen_support(connection, "its evidence is gone", at=NIGHT) == 1
        assert await withdraw_fallen_support(connection, "its evidence is gone", at=NIGHT) == 0


async def test_what_a_wrong_memory_replaced_comes_back(database: Database, scope: TenantScope) -> None:
    """What it or its duplicates had replaced is current again; its duplicates are not, nor what was retired."""
    wrong = await add_memory(database, scope, "Ann lives in Bergen")
    copy = await add_memory(database, scope, "Ann lives in Bergen.")
    old = await add_memory(database, scope, "Ann lives in Oslo")
    older = await add_memory(database, scope, "Ann lives in Narvik")
    retired = await add_memory(database, scope, "Ann lives in Bodo")
    async with database.scoped(scope) as connection:
        await add_belief(connection, "x", supports=[wrong])
        await hide(connection, copy, superseded_by=wrong, superseded_reason="duplicate")
        await hide(connection, old, superseded_by=wrong, superseded_reason="update")
        await hide(connection, older, superseded_by=copy, superseded_reason="contradiction")
        await hide(connection, retired, superseded_by=wrong, superseded_reason="update")
        await retire(connection, retired)
        await retire(connection, wrong)
        assert await revive_superseded_by(connection, wrong, NIGHT) == sorted([old, older])
        assert await waiting(connection) == {old, older}
        assert await revive_superseded_by(connection, wrong, NIGHT) == []
        superseded = (await connection.execute("SELECT id FROM memories WHERE superseded_reason IS NOT NULL")).scalars()
        assert set(superseded) == {copy, retired}


async def test_what_a_stale_belief_replaced_is_listed_not_revived(database: Database, scope: TenantScope) -> None:
    """A person decides what becomes of it; inside a run every change is journalled."""
    source = await add_memory(database, scope, "Ann said she moved")
    loser = await add_memory(database, scope, "Ann lives in Oslo")
    async with database.scoped(scope, RunBinding(uuid.uuid4(), NIGHT, "apply")) as connection:
        await connection.execute(
            "INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters_hash) "
            "VALUES (:tenant_id, :run_id, :scope_path, 'harmonize', :as_of, 'running', 0, '')"
        )
        moved = await add_belief(connection, "Ann moved", supports=[source], superseded=[loser])
        await hide(connection, loser, superseded_by_belief=moved, superseded_reason="update")
        assert await left_superseded(connection) == []
        await retire(connection, source)
        assert await withdraw_support(connection, [source], "retired", at=NIGHT) == 1
        assert [row["id"] for row in await left_superseded(connection)] == [loser]
        journalled = await connection.scalar(
            "SELECT after ->> 'status' FROM run_changes WHERE table_name = 'harmonic_beliefs'"
        )
        assert journalled == "stale"
