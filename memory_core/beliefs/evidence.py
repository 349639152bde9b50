"""What beliefs rest on: one row a memory and role, read and written for many beliefs at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any
from uuid import UUID

from memory_core.database.scoped import ScopedConnection

_OTHER_ROLES = """
DELETE FROM belief_evidence e
USING unnest(CAST(:beliefs AS uuid[]), CAST(:ids AS uuid[]), CAST(:roles AS text[])) AS v(belief, id, role)
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.belief_id = ANY(CAST(:beliefs AS uuid[]))
  AND e.belief_id = v.belief AND e.memory_id = v.id AND e.role <> v.role
"""

_INSERT = """
INSERT INTO belief_evidence (tenant_id, scope_path, belief_id, memory_id, role, created_by_run)
SELECT :tenant_id, :scope_path, v.belief, v.id, v.role, :run_id
FROM unnest(CAST(:beliefs AS uuid[]), CAST(:ids AS uuid[]), CAST(:roles AS text[])) AS v(belief, id, role)
ON CONFLICT DO NOTHING
"""

_OF = """
SELECT e.belief_id, e.memory_id, e.role, m.external_id, m.content, m.observed_at, m.source, s.confidence,
       m.retired_at, m.superseded_reason
FROM belief_evidence e
JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id
LEFT JOIN memory_state s ON s.tenant_id = e.tenant_id AND s.memory_id = e.memory_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = ANY(:visible_paths) AND m.scope_path = ANY(:visible_paths)
  AND e.belief_id = ANY(CAST(:ids AS uuid[]))
ORDER BY e.belief_id, array_position(ARRAY['supports', 'contradicts', 'superseded'], e.role), m.observed_at, e.memory_id
"""


async def add_evidence(
    connection: ScopedConnection, evidence: Mapping[UUID, Mapping[str, Sequence[UUID]]], *, new: Set[UUID] = frozenset()
) -> None:
    """Add evidence to beliefs, in a run. A memory has one role in one belief, the newest; older evidence stays.

    Args:
        evidence: for each belief, memory ids by `supports`, `contradicts` and `superseded`; of a memory named twice,
            the first role counts.
        new: the beliefs that were made just now, so that they have no evidence yet.
    """
    added = []
    for belief_id, roles in evidence.items():
        role_of: dict[UUID, str] = {}
        for role, memory_ids in roles.items():
            for memory_id in memory_ids:
                role_of.setdefault(memory_id, role)
        added += [(belief_id, memory_id, role_of[memory_id]) for memory_id in sorted(role_of)]
    known = [row for row in added if row[0] not in new]
    if known:
        await connection.execute(_OTHER_ROLES, **_columns(known))
    if added:
        await connection.execute(_INSERT, **_columns(added))


async def evidence_of(connection: ScopedConnection, belief_ids: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    """The evidence of beliefs with contents and dates; support first, then by time.

    Returns:
        for each belief a list of documents: memory_id, external_id, role, content, observed_at, source, confidence,
        `stands` (neither retired nor superseded).
    """
    found: dict[UUID, list[dict[str, Any]]] = {belief_id: [] for belief_id in belief_ids}
    if not belief_ids:
        return found
    for row in await connection.rows(_OF, ids=list(belief_ids)):
        found[row["belief_id"]].append(
            {
                "memory_id": str(row["memory_id"]),
                "external_id": row["external_id"],
                "role": row["role"],
                "content": row["content"],
                "observed_at": row["observed_at"].isoformat(),
                "source": row["source"],
                "confidence": row["confidence"],
                "stands": row["retired_at"] is None and row["superseded_reason"] is None,
            }
        )
    return found


def _columns(rows: Sequence[tuple[UUID, UUID, str]]) -> dict[str, list[Any]]:
    return {
        "beliefs": [belief for belief, _, _ in rows],
        "ids": [memory_id for _, memory_id, _ in rows],
        "roles": [role for _, _, role in rows],
    }
