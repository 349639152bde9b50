"""Writing memories: many at once, set-based, and the same again changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.companions import write_companions
from memory_core.layers.edges import carry_edges
from memory_core.layers.known import Known, PlannedWrite
from memory_core.layers.leaving import left
from memory_core.layers.records import NewMemory
from memory_core.layers.references import Reference
from memory_core.layers.scopes import enter_scope
from memory_core.layers.staging import staged_insert
from memory_core.layers.vectors import TextVectors, write_vectors
from memory_core.scope import TenantScope


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a batch.

    Attributes:
        writes: one for each memory, in order.
        accesses: uses that were not known before.
        without_vector: new memories that no vector was stored for.
        references: edges and corrections that wait for `resolve_references`; their `line` is the position in the batch.
    """

    writes: tuple[PlannedWrite, ...]
    accesses: int
    without_vector: int
    references: tuple[Reference, ...]

    def count(self, outcome: str) -> int:
        """How many memories had this outcome."""
        return sum(write.outcome == outcome for write in self.writes)


# What a person corrected stays corrected; anything else a run had said of the old version gives way to its successor.
_REPLACE = """
UPDATE memories m
SET is_latest = false,
    superseded_by = CASE m.superseded_reason WHEN 'correction' THEN m.superseded_by ELSE r.new_id END,
    superseded_by_belief = NULL,
    superseded_reason = CASE m.superseded_reason WHEN 'correction' THEN 'correction' ELSE 'update' END,
    superseded_at = CASE m.superseded_reason WHEN 'correction' THEN m.superseded_at
                    ELSE greatest(r.at, m.recorded_at) END,
    superseded_by_run = NULL
FROM unnest(CAST(:old AS uuid[]), CAST(:new AS uuid[]), CAST(:times AS timestamptz[])) AS r(old_id, new_id, at)
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.old_id
"""

_USED = """
UPDATE memories m SET last_activity_at = greatest(m.last_activity_at, u.at)
FROM (SELECT memory_id, max(at) AS at FROM memory_accesses
      WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[])) GROUP BY memory_id) u
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = u.memory_id AND m.last_activity_at < u.at
"""

_MEMORY_COLUMNS = (
    "id",
    "layer",
    "label",
    "content",
    "subject",
    "predicate",
    "object",
    "properties",
    "observed_at",
    "recorded_at",
    "last_activity_at",
    "expires_at",
    "pinned",
    "source",
    "external_id",
    "is_latest",
    "superseded_by",
    "superseded_reason",
    "superseded_at",
    "content_hash",
)


async def write_memories(
    connection: ScopedConnection, memories: Sequence[NewMemory], *, now: datetime, vectors: TextVectors | None = None
) -> WriteResult:
    """Write memories to the connection's scope, in order; the caller commits.

    `known.py` has the rule that decides what is new. Edges and corrections are not written: pass the result's
    references to `resolve_references` once every row that they may name is in.

    Args:
        memories: `tenant` and `scope` of each are not looked at.
        now: the time of memories that say none; timezone-aware.
        vectors: computed before the transaction; new memories whose text is not in them stay without one.

    Raises:
        InvalidScope: the tenant is known under another root kind.
        EmbeddingMismatch: a memory brings a vector of another dimension than its model's vectors have here.
    """
    await enter_scope(connection)
    writes = await Known().plan(connection, memories, now)
    new = [write for write in writes if write.is_new]
    replacements = _replacements(writes)
    await _replace(connection, new, now)
    await _insert(connection, new, replacements, now)
    without_vector = await write_vectors(connection, writes, vectors or TextVectors())
    await write_companions(connection, new, now)
    accesses = await _write_accesses(connection, writes)
    stored = [write.previous.id for write in new if write.previous is not None and write.previous.stored]
    if stored:
        at = max(write.memory.recorded(now) for write in new)
        await carry_edges(connection, {old: _final(old, replacements) for old in stored}, at=at)
        await left(connection, stored, "a supporting memory has a newer version", at=at)
    return WriteResult(tuple(writes), accesses, without_vector, tuple(references_of(writes)))


def _replacements(writes: Sequence[PlannedWrite]) -> dict[UUID, PlannedWrite]:
    """Each replaced row's id to what replaces it."""
    return {write.previous.id: write for write in writes if write.previous is not None}


def _final(old: UUID, replacements: dict[UUID, PlannedWrite]) -> UUID:
    while old in replacements:
        old = replacements[old].id
    return old


async def _replace(connection: ScopedConnection, new: Sequence[PlannedWrite], now: datetime) -> None:
    stored = [write for write in new if write.previous is not None and write.previous.stored]
    if stored:
        # Before the new rows, because one external id has one latest row; the foreign key waits for the commit.
        await connection.execute(
            _REPLACE,
            old=[write.previous.id for write in stored if write.previous is not None],
            new=[write.id for write in stored],
            times=[write.memory.recorded(now) for write in stored],
        )


async def _insert(
    connection: ScopedConnection, new: Sequence[PlannedWrite], replacements: dict[UUID, PlannedWrite], now: datetime
) -> None:
    await staged_insert(
        connection, "memories", _MEMORY_COLUMNS, [_row(write, replacements.get(write.id), now) for write in new]
    )
    await staged_insert(
        connection,
        "memory_state",
        ("memory_id", "importance", "confidence"),
        [(write.id, write.importance, write.memory.confidence) for write in new],
    )


def _row(write: PlannedWrite, next_version: PlannedWrite | None, now: datetime) -> tuple[Any, ...]:
    memory = write.memory
    recorded = memory.recorded(now)
    return (
        write.id,
        memory.layer,
        memory.label,
        memory.content,
        memory.subject,
        memory.predicate,
        memory.object,
        json.dumps(memory.properties),
        memory.observed(now),
        recorded,
        max((recorded, *(access.at for access in memory.accesses))),
        memory.expires_at,
        write.pinned,
        memory.source,
        memory.external_id,
        next_version is None,
        None if next_version is None else next_version.id,
        None if next_version is None else "update",
        None if next_version is None else max(recorded, next_version.memory.recorded(now)),
        write.content_hash,
    )


async def _write_accesses(connection: ScopedConnection, writes: Sequence[PlannedWrite]) -> int:
    rows = access_rows(connection.scope, writes)
    new = await staged_insert(
        connection,
        "memory_accesses",
        ("id", "memory_id", "kind", "at"),
        ((key, *row) for key, row in rows.items()),
        conflict="ON CONFLICT DO NOTHING",
        returning="id",
    )
    if new:
        await connection.execute(_USED, ids=new)
    return len(new)


def access_rows(scope: TenantScope, writes: Sequence[PlannedWrite]) -> dict[UUID, tuple[UUID, str, datetime]]:
    """The uses that memories bring, by an id made of memory, kind and time: (memory id, kind, at)."""
    return {
        scope.derived_id("access", str(write.id), access.kind, access.at.isoformat()): (
            write.id,
            access.kind,
            access.at,
        )
        for write in writes
        for access in write.memory.accesses
    }


def references_of(writes: Sequence[PlannedWrite]) -> list[Reference]:
    """The edges and corrections that memories name, in order."""
    found = []
    for position, write in enumerate(writes):
        memory = write.memory
        found += [
            Reference(position, write.id, "edge", edge.to, edge.relationship, memory.external_id)
            for edge in memory.edges
        ]
        if memory.corrects is not None:
            found.append(Reference(position, write.id, "corrects", memory.corrects, said_by=memory.external_id))
    return found
