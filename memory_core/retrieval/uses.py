"""Evidence of use: which memories reached an agent, and when. The next night strengthens them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory_core.database.scoped import ScopedConnection

# A use belongs to the level that owns the memory, so that its night counts it; the memory itself is only touched where
# it is the reader's own.
_RECORD = """
WITH used AS (
  SELECT m.id, m.scope_path, g.access_id
  FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:access_ids AS uuid[])) AS g (memory_id, access_id)
  JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.id = g.memory_id
  WHERE m.retired_at IS NULL AND m.superseded_reason IS NULL
), written AS (
  INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at)
  SELECT :tenant_id, access_id, scope_path, id, :kind, CAST(:at AS timestamptz) FROM used
  ON CONFLICT DO NOTHING
  RETURNING memory_id
), touched AS (
  UPDATE memories m SET last_activity_at = greatest(m.last_activity_at, CAST(:at AS timestamptz))
  FROM written w WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = w.memory_id
)
SELECT count(*) FROM written
"""


async def record_uses(
    connection: ScopedConnection,
    memory_ids: Sequence[UUID],
    *,
    kind: Literal["recall", "hydrate", "mention", "confirm"],
    at: datetime,
) -> int:
    """Write one use of each current memory that the scope sees, in one statement; the caller commits.

    The same use at the same time is written once. Returns the number written.
    """
    if not memory_ids:
        return 0
    scope = connection.scope
    written = await connection.scalar(
        _RECORD,
        # Sorted, so that two recalls at once lock the same rows in the same order.
        memory_ids=sorted(memory_ids),
        access_ids=[
            scope.derived_id("access", str(memory_id), kind, at.isoformat()) for memory_id in sorted(memory_ids)
        ],
        kind=kind,
        at=at,
    )
    return int(written)
