"""Explicit edges: written once whatever is repeated, and carried from a memory to what replaces it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.staging import staged_insert
from memory_core.scope import TenantScope

_OF = """
SELECT source_id, target_id, relationship, weight, evidence_count, last_evidence_at, status, recorded_at
FROM memory_edges
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND kind = 'explicit' AND status <> 'retired'
  AND (source_id = ANY(CAST(:ids AS uuid[])) OR target_id = ANY(CAST(:ids AS uuid[])))
"""


def edge_id(scope: TenantScope, source: UUID, target: UUID, relationship: str) -> UUID:
    """The id of an edge, the same whoever finds it."""
    return scope.derived_id("edge", str(source), str(target), relationship)


async def write_edges(connection: ScopedConnection, edges: Iterable[tuple[UUID, UUID, str, datetime]]) -> int:
    """Write explicit edges (source, target, relationship, recorded at); known ones stay as they are.

    Returns:
        how many are new.
    """
    rows = {
        edge_id(connection.scope, source, target, relationship): (source, target, relationship, at)
        for source, target, relationship, at in edges
    }
    new = await staged_insert(
        connection,
        "memory_edges",
        ("id", "source_id", "target_id", "relationship", "recorded_at"),
        ((key, *row) for key, row in rows.items()),
        conflict="ON CONFLICT DO NOTHING",
        returning="id",
    )
    return len(new)


async def carry_edges(connection: ScopedConnection, replaced: Mapping[UUID, UUID], *, at: datetime) -> int:
    """Copy the explicit edges of replaced memories, in both directions, to what replaced them.

    The old edges stay with the old memories, which keep their history.

    Args:
        replaced: old id to new id.

    Returns:
        how many edges are new.
    """
    if not replaced:
        return 0
    rows = {}
    for edge in await connection.rows(_OF, ids=list(replaced)):
        source = replaced.get(edge["source_id"], edge["source_id"])
        target = replaced.get(edge["target_id"], edge["target_id"])
        if source != target:
            rows[edge_id(connection.scope, source, target, edge["relationship"])] = (
                source,
                target,
                edge["relationship"],
                edge["weight"],
                edge["evidence_count"],
                edge["last_evidence_at"],
                edge["status"],
                max(at, edge["recorded_at"]),
            )
    new = await staged_insert(
        connection,
        "memory_edges",
        (
            "id",
            "source_id",
            "target_id",
            "relationship",
            "weight",
            "evidence_count",
            "last_evidence_at",
            "status",
            "recorded_at",
        ),
        ((key, *row) for key, row in rows.items()),
        conflict="ON CONFLICT DO NOTHING",
        returning="id",
    )
    return len(new)
