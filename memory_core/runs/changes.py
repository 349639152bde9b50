"""What a run changed, as one list: the same for a dry run, before its rollback, and for a real one.

Changed rows come from the journal (first before, last after, column by column), created rows from the tables
themselves by `created_by_run`. Wall-clock columns, versions and vectors are left out, so that a preview's list
equals the later real run's.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from memory_core.database.registry import NOT_JOURNALLED_COLUMNS, REGISTRY, WALL_TIME_COLUMNS, TableEntry
from memory_core.database.scoped import ScopedConnection

_LEFT_OUT = ", ".join(
    f"'{name}'" for name in sorted(WALL_TIME_COLUMNS | NOT_JOURNALLED_COLUMNS | {"tenant_id", "scope_path"})
)

_CHANGED = """
WITH columns AS (
  SELECT c.table_name, c.row_key, c.sequence, c.operation, c.step, b.key, b.value AS before, c.after -> b.key AS after
  FROM run_changes c, jsonb_each(c.before) AS b
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
), collapsed AS (
  SELECT table_name, row_key, key, min(sequence) AS sequence,
         (array_agg(before ORDER BY sequence))[1] AS before,
         (array_agg(after ORDER BY sequence DESC))[1] AS after,
         (array_agg(operation ORDER BY sequence DESC))[1] AS operation,
         array_agg(DISTINCT step) AS steps
  FROM columns GROUP BY table_name, row_key, key
)
SELECT table_name, row_key, (array_agg(operation))[1] AS operation,
       jsonb_object_agg(key, before) AS before,
       CASE WHEN bool_and(operation = 'update') THEN jsonb_object_agg(key, after) END AS after,
       (SELECT array_agg(DISTINCT step ORDER BY step) FROM collapsed AS c, unnest(c.steps) AS step
        WHERE c.table_name = collapsed.table_name AND c.row_key = collapsed.row_key) AS steps
FROM collapsed
WHERE operation = 'delete' OR before IS DISTINCT FROM after
GROUP BY table_name, row_key
ORDER BY table_name, row_key::text
"""


def _created(item: TableEntry) -> str:
    key = ", ".join(f"'{column}', {column}" for column in item.key)
    return (
        f"SELECT jsonb_build_object({key}) AS row_key, to_jsonb(t) - ARRAY[{_LEFT_OUT}] AS row FROM {item.name} t "
        f"WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND created_by_run = CAST(:id AS uuid) ORDER BY 1"
    )


async def changes_of(connection: ScopedConnection, run_id: UUID) -> dict[str, list[dict[str, Any]]]:
    """What the run changed and created.

    Returns:
        `changed`: table, key, operation, before, after, steps; `created`: table, key, row. JSON-able.
    """
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
    ]
    created = [
        {"table": item.name, "key": row["row_key"], "row": row["row"]}
        for item in REGISTRY
        if item.made_by_runs
        for row in await connection.rows(_created(item), id=run_id)
    ]
    return {"changed": changed, "created": created}
