"""What beliefs rest on: one row a memory and role, read and written for one belief at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory_core.database.scoped import ScopedConnection

_OTHER_ROLES = """
DELETE FROM belief_evidence e
USING unnest(CAST(:ids AS uuid[]), CAST(:roles AS text[])) AS v(id, role)
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.belief_id = CAST(:belief AS uuid)
  AND e.memory_id = v.id AND e.role <> v.role
"""

_INSERT = """
INSERT INTO belief_evidence (tenant_id, scope_path, belief_id, memory_id, role, created_by_run)
SELECT :tenant_id, :scope_path, CAST(:belief AS uuid), v.id, v.role, :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:roles AS text[])) AS v(id, role)
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
    connection: ScopedConnection, belief_id: UUID, roles: Mapping[str, Sequence[UUID]], *, is_new: bool = False
) -> None:
    """Add evidence to a belief, in a run. A memory has one role in one belief, the newest; older evidence stays.

    Args:
        roles: memory ids by `supports`, `contradicts` and `superseded`; of a memory named twice, the first role counts.
        is_new: the belief was made just now, so that it has no evidence yet.
    """
    role_of: dict[UUID, str] = {}
    for role, memory_ids in roles.items():
        for memory_id in memory_ids:
            role_of.setdefault(memory_id, role)
    ids = sorted(role_of)
    values = {"belief": belief_id, "ids": ids, "roles": [role_of[memory_id] for memory_id in ids]}
    if not is_new:
        await connection.execute(_OTHER_ROLES, **values)
    await connection.execute(_INSERT, **values)


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
