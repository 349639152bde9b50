"""Puts a store into a known state for a test, straight through SQL, as a scope's own writer."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.database.engine import Database
from memory_core.scope import TenantScope

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
"""The `as_of` of most tests."""


def ago(**parts: float) -> datetime:
    """A time before `NIGHT`, such as `ago(hours=2)`."""
    return NIGHT - timedelta(**parts)


async def add_scope(database: Database, scope: TenantScope) -> None:
    """Make the scope known."""
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, root_kind) VALUES (:tenant_id, :kind) ON CONFLICT DO NOTHING",
            kind=scope.levels[0].kind,
        )
        await connection.execute(
            "INSERT INTO scopes (tenant_id, scope_path, depth) VALUES (:tenant_id, :scope_path, :depth) "
            "ON CONFLICT DO NOTHING",
            depth=scope.scope_depth,
        )
        await connection.commit()


async def add_memory(
    database: Database,
    scope: TenantScope,
    content: str,
    *,
    observed_at: datetime | None = None,
    importance: float = 5.0,
    confidence: float = 0.7,
    access_at: tuple[datetime, ...] = (),
    access_kind: str = "recall",
    vector: list[float] | None = None,
    **fields: Any,
) -> uuid.UUID:
    """Add one memory with its state, and reads of it; returns its id.

    Args:
        fields: further columns of `memories`, such as label, layer, subject, predicate, object, pinned, source.
        vector: stored under model `hash:64` where given.
    """
    await add_scope(database, scope)
    when = observed_at or ago(hours=3)
    memory_id = uuid.uuid4()
    row: dict[str, Any] = {
        "id": memory_id,
        "content": content,
        "observed_at": when,
        "recorded_at": when,
        "last_activity_at": max((when, *access_at)),
        "content_hash": hashlib.sha256(content.encode()).hexdigest(),
        **fields,
    }
    if "properties" in row:
        row["properties"] = json.dumps(row["properties"])
    columns = ", ".join(row)
    values = ", ".join(f"CAST(:{name} AS jsonb)" if name == "properties" else f":{name}" for name in row)
    async with database.scoped(scope) as connection:
        await connection.execute(
            f"INSERT INTO memories (tenant_id, scope_path, {columns}) VALUES (:tenant_id, :scope_path, {values})", **row
        )
        await connection.execute(
            "INSERT INTO memory_state (tenant_id, scope_path, memory_id, importance, confidence) "
            "VALUES (:tenant_id, :scope_path, :id, :importance, :confidence)",
            id=memory_id,
            importance=importance,
            confidence=confidence,
        )
        if vector is not None:
            await connection.execute(
                "INSERT INTO memory_embeddings (tenant_id, scope_path, memory_id, model, dimension, embedding) "
                "VALUES (:tenant_id, :scope_path, :id, 'hash:64', :dimension, CAST(:vector AS vector))",
                id=memory_id,
                dimension=len(vector),
                vector=str(vector),
            )
        await connection.commit()
    for at in access_at:
        await add_access(database, scope, memory_id, at, kind=access_kind)
    return memory_id


async def add_home(database: Database, scope: TenantScope, place: str, **fields: Any) -> uuid.UUID:
    """Add the statement that Ann lives in a place, as sentence and triple; fields as `add_memory`'s."""
    return await add_memory(
        database, scope, f"Ann lives in {place}", subject="Ann", predicate="lives_in", object=place, **fields
    )


async def add_access(
    database: Database, scope: TenantScope, memory_id: uuid.UUID, at: datetime, *, kind: str = "recall"
) -> uuid.UUID:
    """Add one use of a memory; returns the access's id."""
    access_id = uuid.uuid4()
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
            "VALUES (:tenant_id, :id, :scope_path, :memory_id, :kind, :at)",
            id=access_id,
            memory_id=memory_id,
            kind=kind,
            at=at,
        )
        await connection.execute(
            "UPDATE memories SET last_activity_at = greatest(last_activity_at, CAST(:at AS timestamptz)) "
            "WHERE tenant_id = :tenant_id AND id = :memory_id",
            memory_id=memory_id,
            at=at,
        )
        await connection.commit()
    return access_id


async def add_edge(
    database: Database,
    scope: TenantScope,
    source: uuid.UUID,
    target: uuid.UUID,
    relationship: str,
    *,
    kind: str = "explicit",
    status: str = "active",
) -> uuid.UUID:
    """Add one edge; returns its id."""
    edge_id = uuid.uuid4()
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, status, "
            "recorded_at) VALUES (:tenant_id, :id, :scope_path, :source, :target, :relationship, :kind, :status, :at)",
            id=edge_id,
            source=source,
            target=target,
            relationship=relationship,
            kind=kind,
            status=status,
            at=ago(days=30),
        )
        await connection.commit()
    return edge_id
