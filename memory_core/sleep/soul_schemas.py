"""The SOUL schema of a scope as it is kept: which fields a profile has, and of what type each is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memory_core.database.engine import Database
from memory_core.layers.scopes import enter_scope
from memory_core.scope import TenantScope
from memory_core.sleep.soul_schema import schema_of

_LEAVE_OUT = """
DELETE FROM soul_schemas WHERE tenant_id = :tenant_id AND scope_path = :scope_path
  AND field <> ALL(CAST(:fields AS text[]))
"""

_KEEP = """
INSERT INTO soul_schemas AS s (tenant_id, scope_path, field, type)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), t.key, t.value
FROM jsonb_each_text(CAST(:types AS jsonb)) AS t
ON CONFLICT (tenant_id, scope_path, field) DO UPDATE SET type = excluded.type WHERE s.type <> excluded.type
"""


async def set_soul_schema(database: Database, scope: TenantScope, types: Mapping[str, Any]) -> dict[str, str]:
    """Give the scope a schema in place of the one it had; the profile's values stay as they are.

    Corrections that come after are judged by it. The scopes below that have none of their own use it too.

    Args:
        types: field to type, as `schema_of` takes it; empty to use the nearest ancestor's again, or none.

    Returns:
        the schema as kept, each type by its own name.

    Raises:
        InvalidInput: a field has no name, or a type is not known.
    """
    schema = schema_of(types)
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        await connection.execute(_LEAVE_OUT, fields=sorted(schema))
        await connection.execute(_KEEP, types=json.dumps(schema))
        await connection.commit()
    return schema
