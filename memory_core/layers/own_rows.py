"""The row that a person names: of the scope itself, never of an ancestor."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import NotFound
from memory_core.scope import TenantScope

_ROW = """
SELECT m.*, s.importance, s.confidence
FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND (m.id = CAST(:id AS uuid) OR (m.external_id = CAST(:name AS text) AND m.is_latest))
ORDER BY length(m.scope_path) DESC LIMIT 1
"""


async def own_memory(connection: ScopedConnection, name: UUID | str) -> RowMapping:
    """A memory of the connection's scope with its importance and confidence.

    Args:
        name: its id, or its external id, which means the newest version.

    Raises:
        NotFound: there is none, or it belongs to an ancestor scope.
    """
    memory_id = name if isinstance(name, UUID) else _uuid(name)
    row = await connection.row(_ROW, id=memory_id, name=None if isinstance(name, UUID) else name)
    if row is None:
        raise NotFound(
            f"There is no memory {str(name)!r} in {connection.scope}.",
            hint="`slowwave memories` lists what is there.",
            id=str(name),
        )
    if row["scope_path"] != connection.scope.scope_path:
        owner = TenantScope.from_path(row["scope_path"])
        raise NotFound(
            f"The memory {str(name)!r} belongs to {owner}, and {connection.scope} can only read it.",
            hint="Name that scope to change it.",
            id=str(name),
            scope=str(owner),
        )
    return row


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
