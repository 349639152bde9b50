"""Counts what an import would do, against the store and the lines before, and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.interchange.report import ScopeCounts
from memory_core.layers.edges import edge_id
from memory_core.layers.known import Known, PlannedWrite
from memory_core.layers.records import NewMemory
from memory_core.layers.references import Reference, UnresolvedReference, find_targets, refused
from memory_core.layers.scopes import enter_scope
from memory_core.layers.writing import access_rows
from memory_core.scope import TenantScope

_KNOWN_ACCESSES = """
SELECT id FROM memory_accesses
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[]))
"""
_KNOWN_EDGES = """
SELECT id FROM memory_edges
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[]))
"""
_APPLIED = """
SELECT id FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[])) AND corrects IS NOT NULL
"""


class DryRun:
    """Remembers, for each scope, the ids and hashes of the lines so far."""

    def __init__(self, database: Database, now: datetime) -> None:
        self._database = database
        self._now = now
        self._known: dict[TenantScope, Known] = {}
        self._accesses: set[UUID] = set()
        self._edges: set[UUID] = set()

    async def memories(
        self, scope: TenantScope, memories: Sequence[NewMemory]
    ) -> tuple[ScopeCounts, list[PlannedWrite]]:
        """What writing these would do."""
        async with self._database.scoped(scope) as connection:
            await enter_scope(connection)  # for its check; rolled back
            known = self._known.setdefault(scope, Known())
            writes = await known.plan(connection, memories, self._now)
            accesses = set(access_rows(scope, writes)) - self._accesses
            accesses -= set((await connection.execute(_KNOWN_ACCESSES, ids=list(accesses))).scalars())
            self._accesses |= accesses
        outcomes = [write.outcome for write in writes]
        counts = ScopeCounts(
            inserted=outcomes.count("inserted"),
            new_versions=outcomes.count("new_version"),
            unchanged=outcomes.count("unchanged"),
            earlier_versions=outcomes.count("earlier_version"),
            accesses=len(accesses),
        )
        return counts, writes

    async def references(
        self, scope: TenantScope, references: Sequence[Reference]
    ) -> tuple[ScopeCounts, list[UnresolvedReference]]:
        """What resolving these would do."""
        known = self._known.setdefault(scope, Known())
        edges: set[UUID] = set()
        corrections: set[UUID] = set()
        unresolved = []
        async with self._database.scoped(scope) as connection:
            stored = await find_targets(connection, [reference.to for reference in references])
            for reference in references:
                source = (known.id_of(reference.said_by) if reference.said_by else None) or reference.source
                own = known.id_of(reference.to)
                found = stored.get(reference.to)
                target = own or (found["id"] if found else None)
                path = scope.scope_path if own or not found else found["scope_path"]
                reason = refused(scope, reference, source, target, path)
                if reason or target is None:
                    unresolved.append(UnresolvedReference(reference, reason))
                elif reference.kind == "corrects":
                    corrections.add(source)
                else:
                    edges.add(edge_id(scope, source, target, reference.relationship))
            edges -= self._edges
            edges -= set((await connection.execute(_KNOWN_EDGES, ids=list(edges))).scalars())
            self._edges |= edges
            corrections -= set((await connection.execute(_APPLIED, ids=list(corrections))).scalars())
        return ScopeCounts(edges=len(edges), corrections=len(corrections)), unresolved
