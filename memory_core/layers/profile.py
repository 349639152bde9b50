"""The SOUL profile of a scope: who its agent is and whom it serves, field by field with where each value came from."""

from __future__ import annotations

from typing import Any

from memory_core.database.scoped import ScopedConnection
from memory_core.scope import TenantScope

# A field of the scope itself hides an ancestor's field of the same name.
_FIELDS = """
SELECT DISTINCT ON (field) field, value, type, previous, source, at, scope_path
FROM soul_profiles
WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths)
ORDER BY field, length(scope_path) DESC
"""

# The nearest scope that has a schema; the longest visible path is the nearest.
_SCHEMA = """
SELECT field, type FROM soul_schemas
WHERE tenant_id = :tenant_id AND scope_path = (
  SELECT scope_path FROM soul_schemas WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths)
  ORDER BY length(scope_path) DESC LIMIT 1)
ORDER BY field
"""

_WAITING = """
SELECT at, who, what -> 'fields' AS fields FROM corrections
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND consumed_by_run IS NULL AND what ? 'fields'
ORDER BY at, id
"""


async def read_profile(connection: ScopedConnection) -> dict[str, Any]:
    """The profile as the scope sees it, with what it inherits from its ancestors.

    Returns:
        tenant, scope, fields (by name: value, type, previous, source, at, scope, inherited), schema (type by field;
        empty where any field is taken), and waiting: corrections of the scope itself that the next sleep applies, in
        time order.
    """
    own = connection.scope.scope_path
    fields = {
        row["field"]: {
            "value": row["value"],
            "type": row["type"],
            "previous": row["previous"],
            "source": row["source"],
            "at": row["at"].isoformat(),
            "scope": str(TenantScope.from_path(row["scope_path"])),
            "inherited": row["scope_path"] != own,
        }
        for row in await connection.rows(_FIELDS)
    }
    waiting = [
        {"at": row["at"].isoformat(), "who": row["who"], "fields": row["fields"]}
        for row in await connection.rows(_WAITING)
    ]
    return {
        "tenant": connection.scope.tenant_id,
        "scope": str(connection.scope),
        "fields": fields,
        "schema": {row["field"]: row["type"] for row in await connection.rows(_SCHEMA)},
        "waiting": waiting,
    }
