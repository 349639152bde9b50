"""Memories with vectors, and beliefs with evidence, put straight into a store for tests of what reads them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from memory_core.database.engine import Database
from memory_core.models.embedding import embedding_provider
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory

EMBEDDING = embedding_provider("hash:64")
ROW = "tenant_id = :tenant_id AND scope_path = :scope_path"


async def remember(database: Database, scope: TenantScope, content: str, **fields: Any) -> uuid.UUID:
    """A memory with its vector."""
    vector = (await EMBEDDING.embed([content]))[0].tolist()
    return await add_memory(database, scope, content, vector=vector, **fields)


async def change(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> None:
    """One statement that must change one row."""
    async with database.scoped(scope) as connection:
        result = await connection.execute(sql, **parameters)
        assert result.rowcount == 1
        await connection.commit()


async def supersede(
    database: Database, scope: TenantScope, old: uuid.UUID, new: uuid.UUID, at: datetime = NIGHT
) -> None:
    """Let a memory give way to another."""
    await change(
        database,
        scope,
        f"UPDATE memories SET superseded_by = CAST(:new AS uuid), superseded_reason = 'update', superseded_at = :at "
        f"WHERE {ROW} AND id = CAST(:old AS uuid)",
        old=old,
        new=new,
        at=at,
    )


async def believe(
    database: Database,
    scope: TenantScope,
    content: str,
    evidence: dict[uuid.UUID, str],
    *,
    status: str = "held",
    recorded_at: datetime = NIGHT,
    valid_to: datetime | None = None,
    vector_of: str | None = None,
) -> uuid.UUID:
    """A belief with its vector and evidence (memory to role)."""
    belief_id = uuid.uuid4()
    vector = (await EMBEDDING.embed([vector_of or content]))[0].tolist()
    await change(
        database,
        scope,
        "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, "
        "confidence, status, valid_from, valid_to, cluster_id, model, rules_version, recorded_at) VALUES (:tenant_id, "
        ":id, :scope_path, 's', 'p', 'o', :content, 0.6, :status, :at, :valid_to, 'c', 'rules', '1', :at)",
        id=belief_id,
        content=content,
        status=status,
        at=recorded_at,
        valid_to=valid_to,
    )
    await change(
        database,
        scope,
        "INSERT INTO belief_embeddings (tenant_id, belief_id, scope_path, model, dimension, embedding) "
        "VALUES (:tenant_id, :id, :scope_path, 'hash:64', 64, CAST(:vector AS vector))",
        id=belief_id,
        vector=str(vector),
    )
    for memory_id, role in evidence.items():
        await change(
            database,
            scope,
            "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
            "VALUES (:tenant_id, :id, :memory_id, :role, :scope_path)",
            id=belief_id,
            memory_id=memory_id,
            role=role,
        )
    return belief_id
