"""What memories say about one another: edges to an external id, and corrections of one.

They are resolved after every row of a batch, or of a whole file, is in, so that the order of lines does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.edges import carry_edges, write_edges
from memory_core.layers.leaving import left
from memory_core.scope import TenantScope


@dataclass(frozen=True, slots=True)
class Reference:
    """One memory's mention of another.

    Attributes:
        line: where it was said: a position in the batch, or a line number.
        source: the row that says it.
        to: the other's external id.
        relationship: the edge's; empty for a correction.
        said_by: the source's external id; None where it has none.
    """

    line: int
    source: UUID
    kind: Literal["edge", "corrects"]
    to: str
    relationship: str = ""
    said_by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The reference as it would stand in a file."""
        if self.kind == "corrects":
            return {"corrects": self.to}
        return {"edge": {"to": self.to, "relationship": self.relationship}}


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that leads nowhere, and why."""

    reference: Reference
    reason: str


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """What became of a batch of references; what was known already is counted nowhere."""

    edges: int
    corrections: int
    unresolved: tuple[UnresolvedReference, ...]


# A row stands for its external id: the newest version of both ends is linked. Of an external id that an ancestor has
# too, the nearest is meant.
_TARGETS = """
SELECT DISTINCT ON (m.external_id) m.external_id, m.id, m.scope_path, m.recorded_at
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.external_id = ANY(CAST(:names AS text[]))
  AND m.is_latest
ORDER BY m.external_id, length(m.scope_path) DESC
"""

_SOURCES = """
SELECT id, external_id, recorded_at FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[]))
"""

_NEWEST = """
SELECT id, external_id, recorded_at FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND external_id = ANY(CAST(:names AS text[])) AND is_latest
"""

# A correction applies once: the row keeps what it corrected, also when a person takes the correction back. It means
# the newest version of its time, not one that the source sent after it.
_CORRECT = """
WITH RECURSIVE pairs AS (
  SELECT * FROM unnest(CAST(:sources AS uuid[]), CAST(:targets AS uuid[])) AS p(new_id, latest_id)
), versions AS (
  SELECT p.new_id, n.recorded_at AS said_at, o.id, o.external_id, o.recorded_at, 0 AS step
  FROM pairs p
  JOIN memories n ON n.tenant_id = :tenant_id AND n.scope_path = :scope_path AND n.id = p.new_id AND n.corrects IS NULL
  JOIN memories o ON o.tenant_id = :tenant_id AND o.scope_path = :scope_path AND o.id = p.latest_id
  UNION ALL
  SELECT v.new_id, v.said_at, o.id, o.external_id, o.recorded_at, v.step + 1
  FROM versions v JOIN memories o ON o.tenant_id = :tenant_id AND o.scope_path = :scope_path
    AND o.superseded_by = v.id AND o.external_id = v.external_id AND o.id <> v.new_id
  WHERE CAST(:by_time AS boolean) AND v.recorded_at > v.said_at AND v.step < 100
), meant AS (
  SELECT DISTINCT ON (new_id) new_id, said_at, id FROM versions ORDER BY new_id, recorded_at > said_at, step
), linked AS (
  UPDATE memories n SET corrects = t.id
  FROM meant t WHERE n.tenant_id = :tenant_id AND n.scope_path = :scope_path AND n.id = t.new_id
  RETURNING n.id
), corrected AS (
  UPDATE memories o
  SET superseded_by = t.new_id, superseded_reason = 'correction', superseded_by_belief = NULL, superseded_by_run = NULL,
      superseded_at = greatest(t.said_at, o.recorded_at)
  FROM (SELECT DISTINCT ON (id) * FROM meant ORDER BY id, said_at, new_id) t
  WHERE o.tenant_id = :tenant_id AND o.scope_path = :scope_path AND o.id = t.id
    AND o.superseded_reason IS DISTINCT FROM 'correction'
  RETURNING o.id
)
SELECT t.new_id, t.id AS old_id, t.said_at, c.id IS NOT NULL AS superseded
FROM meant t JOIN linked l ON l.id = t.new_id LEFT JOIN corrected c ON c.id = t.id
"""


async def resolve_references(connection: ScopedConnection, references: Sequence[Reference]) -> ResolvedReferences:
    """Write the edges and apply the corrections that memories of the connection's scope name.

    Edges may lead to an ancestor's memory; a correction reaches the own scope only. Repeating it changes nothing.
    """
    if not references:
        return ResolvedReferences(0, 0, ())
    targets = await find_targets(connection, [reference.to for reference in references])
    sources = await _newest(connection, {reference.source for reference in references})
    edges: list[tuple[UUID, UUID, str, datetime]] = []
    corrections: dict[UUID, UUID] = {}
    unresolved = []
    for reference in references:
        source, target = sources[reference.source], targets.get(reference.to)
        reason = (
            refused(connection.scope, reference, source["id"], target["id"], target["scope_path"])
            if target
            else refused(connection.scope, reference, source["id"], None, "")
        )
        if reason or target is None:
            unresolved.append(UnresolvedReference(reference, reason))
        elif reference.kind == "corrects":
            corrections.setdefault(source["id"], target["id"])
        else:
            edges.append(
                (
                    source["id"],
                    target["id"],
                    reference.relationship,
                    max(source["recorded_at"], target["recorded_at"]),
                )
            )
    written = await write_edges(connection, edges)
    corrected = await correct_memories(connection, corrections, by_time=True)
    return ResolvedReferences(written, corrected, tuple(unresolved))


async def correct_memories(
    connection: ScopedConnection, corrections: dict[UUID, UUID], *, by_time: bool = False
) -> int:
    """Let memories of the scope put others of the scope right: these are superseded with the reason `correction`.

    Explicit edges of the corrected memory are copied to the correction; beliefs lose its support.

    Args:
        corrections: the correcting row's id to the corrected row's.
        by_time: of the corrected row's versions, mean the newest that was recorded when the correction was; otherwise
            the very row that is named.

    Returns:
        how many corrections were not applied before.
    """
    if not corrections:
        return 0
    rows = await connection.rows(
        _CORRECT, sources=list(corrections), targets=list(corrections.values()), by_time=by_time
    )
    applied = [row for row in rows if row["superseded"]]
    if applied:
        at = max(row["said_at"] for row in applied)
        await carry_edges(connection, {row["old_id"]: row["new_id"] for row in applied}, at=at)
        await left(connection, [row["old_id"] for row in applied], "a supporting memory was corrected", at=at)
    return len(rows)


async def _newest(connection: ScopedConnection, ids: set[UUID]) -> dict[UUID, RowMapping]:
    """Each row's newest version, or itself: id and recorded_at."""
    given = await connection.rows(_SOURCES, ids=list(ids))
    names = [row["external_id"] for row in given if row["external_id"] is not None]
    newest = {row["external_id"]: row for row in await connection.rows(_NEWEST, names=names)}
    return {row["id"]: newest.get(row["external_id"], row) for row in given}


async def find_targets(connection: ScopedConnection, external_ids: Sequence[str]) -> dict[str, RowMapping]:
    """The memories that external ids name, in the scope or the nearest ancestor: id, scope_path, recorded_at."""
    rows = await connection.rows(_TARGETS, names=sorted(set(external_ids)))
    return {row["external_id"]: row for row in rows}


def refused(scope: TenantScope, reference: Reference, source: UUID, target: UUID | None, target_path: str) -> str:
    """Why a reference leads nowhere; empty where it does lead somewhere."""
    if target is None:
        return f"no memory has the external id {reference.to!r}"
    if target == source:
        return f"{reference.to!r} is the memory itself"
    if reference.kind == "corrects" and target_path != scope.scope_path:
        return f"{reference.to!r} belongs to {TenantScope.from_path(target_path)}; correct it there"
    return ""
