"""What a run changed, as one list: the same for a dry run, before its rollback, and for a real one.

Changed rows come from the journal (first before, last after, column by column), created rows from the tables
themselves by `created_by_run`. Wall-clock columns, versions and vectors are left out, so that a preview's list
equals the later real run's.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from memory_core.database.registry import NOT_JOURNALLED_COLUMNS, REGISTRY, WALL_TIME_COLUMNS, TableEntry
from memory_core.database.scoped import ScopedConnection

_LEFT_OUT = ", ".join(
    f"'{name}'" for name in sorted(WALL_TIME_COLUMNS | NOT_JOURNALLED_COLUMNS | {"tenant_id", "scope_path"})
)

_CHANGED = f"""
WITH columns AS (
  SELECT c.table_name, c.row_key, c.sequence, c.operation, c.step, b.key, b.value AS before, c.after -> b.key AS after
  FROM run_changes c CROSS JOIN LATERAL jsonb_each(c.before) AS b
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
    AND b.key <> ALL (ARRAY[{_LEFT_OUT}])
), collapsed AS (
  SELECT table_name, row_key, key,
         (array_agg(before ORDER BY sequence))[1] AS before,
         (array_agg(after ORDER BY sequence DESC))[1] AS after,
         bool_or(operation = 'delete') AS deleted,
         jsonb_object_agg(step, true) AS steps
  FROM columns GROUP BY table_name, row_key, key
)
SELECT table_name, row_key,
       CASE WHEN bool_or(deleted) THEN 'delete' ELSE 'update' END AS operation,
       jsonb_object_agg(key, before) AS before,
       CASE WHEN NOT bool_or(deleted) THEN jsonb_object_agg(key, after) END AS after,
       (SELECT array_agg(DISTINCT s.step ORDER BY s.step)
        FROM unnest(array_agg(steps)) AS done(steps)
        CROSS JOIN LATERAL jsonb_object_keys(done.steps) AS s(step)) AS steps
FROM collapsed
WHERE deleted OR before IS DISTINCT FROM after
GROUP BY table_name, row_key
HAVING NOT coalesce(bool_or(deleted AND key = 'created_by_run' AND before = to_jsonb(CAST(:id AS text))), false)
ORDER BY table_name, row_key::text
"""


def _created(item: TableEntry) -> str:
    key = ", ".join(f"'{column}', {column}" for column in item.key)
    return f"""
SELECT jsonb_build_object({key}) AS row_key, to_jsonb(t) - ARRAY[{_LEFT_OUT}] AS row
FROM {item.name} t
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND created_by_run = CAST(:id AS uuid)
ORDER BY 1
"""


async def changes_of(connection: ScopedConnection, run_id: UUID) -> dict[str, list[dict[str, Any]]]:
    """What the run changed and created. A row it created is listed once, as it was left; one it deleted again, never.

    Returns:
        `changed`: table, key, operation, before, after, steps; `created`: table, key, row. JSON-able.
    """
    created = [
        {"table": item.name, "key": row["row_key"], "row": row["row"]}
        for item in REGISTRY
        if item.made_by_runs
        for row in await connection.rows(_created(item), id=run_id)
    ]
    own = {_identity(one["table"], one["key"]) for one in created}
    changed = [
        {
            "table": row["table_name"],
            "key": row["row_key"],
            "operation": row["operation"],
            "before": row["before"],
            "after": row["after"],
            "steps": row["steps"],
        }
        for row in await connection.rows(_CHANGED, id=run_id)
        if row["operation"] == "delete" or _identity(row["table_name"], row["row_key"]) not in own
    ]
    return {"changed": changed, "created": created}


def _identity(table: str, key: dict[str, Any]) -> tuple[str, str]:
    return table, json.dumps(key, sort_keys=True)
