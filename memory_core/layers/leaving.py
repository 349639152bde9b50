"""What follows when memories stop being current: their reminders are called off, and beliefs lose their support."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_core.beliefs.cascade import withdraw_support
from memory_core.database.scoped import ScopedConnection

_CANCEL = """
UPDATE triggers SET state = 'cancelled', resolved_at = CAST(:at AS timestamptz)
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = ANY(CAST(:ids AS uuid[]))
  AND state = 'pending'
"""


async def left(connection: ScopedConnection, memory_ids: Sequence[UUID], reason: str, *, at: datetime) -> int:
    """Let reminders and beliefs follow memories that a writer just retired or superseded.

    Returns:
        how many beliefs became stale or lost confidence.
    """
    if not memory_ids:
        return 0
    await connection.execute(_CANCEL, ids=list(memory_ids), at=at)
    return await withdraw_support(connection, memory_ids, reason, at=at)
