"""Removes the rows that a run made, and keeps those that something else rests on by now."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from memory_core.database.registry import REGISTRY, TableEntry, entry
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.restore import key_columns, key_matches, key_of

_OTHERS = "created_by_run IS DISTINCT FROM CAST(:id AS uuid)"


def _made(alias: str) -> str:
    return (
        f"{alias}.tenant_id = :tenant_id AND {alias}.scope_path = :scope_path "
        f"AND {alias}.created_by_run = CAST(:id AS uuid)"
    )


# A row made by the run stays while something that the run did not make depends on it.
_USES = {
    "memories": f"""
      t.pinned
      OR EXISTS (SELECT FROM memory_edges e
                 WHERE e.tenant_id = t.tenant_id AND t.id IN (e.source_id, e.target_id) AND e.{_OTHERS})
      OR EXISTS (SELECT FROM belief_evidence e
                 WHERE e.tenant_id = t.tenant_id AND e.memory_id = t.id AND e.{_OTHERS})
      OR EXISTS (SELECT FROM triggers o WHERE o.tenant_id = t.tenant_id AND o.memory_id = t.id AND o.{_OTHERS})
      OR EXISTS (SELECT FROM corrections o WHERE o.tenant_id = t.tenant_id AND o.memory_id = t.id)
      -- More sources were named for it since: by a person, or by another run.
      OR EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(t.properties -> 'promoted_from')
                                                  WHEN 'array' THEN t.properties -> 'promoted_from' ELSE '[]' END) AS e
                 WHERE e ->> 'run_id' IS DISTINCT FROM CAST(:id AS text))
      OR EXISTS (SELECT FROM skills o WHERE o.tenant_id = t.tenant_id AND o.memory_id = t.id)
      OR EXISTS (SELECT FROM memories o
                 WHERE o.tenant_id = t.tenant_id AND t.id IN (o.superseded_by, o.corrects) AND o.{_OTHERS})
      -- What scopes below rest on it cannot be seen from here, and would go with it.
      OR t.id IN (SELECT slowwave.used_below(ARRAY(SELECT o.id FROM memories o WHERE {_made("o")})))""",
    "harmonic_beliefs": f"""
      EXISTS (SELECT FROM harmonic_beliefs o
              WHERE o.tenant_id = t.tenant_id AND o.superseded_by_belief = t.belief_id AND o.{_OTHERS})
      OR EXISTS (SELECT FROM memories o
                 WHERE o.tenant_id = t.tenant_id AND o.scope_path = t.scope_path
                   AND o.superseded_by_belief = t.belief_id AND o.{_OTHERS})
      OR EXISTS (SELECT FROM belief_evidence e
                 WHERE e.tenant_id = t.tenant_id AND e.belief_id = t.belief_id AND e.{_OTHERS})""",
}


async def remove_made(connection: ScopedConnection, run_id: UUID) -> tuple[int, list[dict[str, Any]]]:
    """Remove every row the run made that is not in use; what belongs to a row that stays, stays with it.

    Parents first: their own rows go with them, and a row whose parent is still there belongs to one that is kept.

    Returns:
        how many rows were removed, and which were kept: table, key, column (None) and reason.
    """
    tables = [item for item in REGISTRY if item.made_by_runs]
    before = [await _count(connection, item, run_id) for item in tables]
    kept: list[dict[str, Any]] = []
    for item in tables:
        await connection.execute(
            f"DELETE FROM {item.name} t WHERE {_made('t')} AND NOT ({_in_use(item)}) AND NOT ({_belongs(item)})",
            id=run_id,
            table_name=item.name,
        )
        left = await connection.execute(
            f"SELECT {key_of(item, 't')} FROM {item.name} t WHERE {_made('t')} AND NOT ({_belongs(item)}) ORDER BY 1",
            id=run_id,
        )
        kept += [{"table": item.name, "key": key, "column": None, "reason": "in use since"} for key in left.scalars()]
    after = [await _count(connection, item, run_id) for item in tables]
    return sum(before) - sum(after), kept


async def _count(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> int:
    return int(await connection.scalar(f"SELECT count(*) FROM {item.name} t WHERE {_made('t')}", id=run_id))


def _belongs(item: TableEntry) -> str:
    """SQL condition: the row `t` belongs to another that the run made and that is still there."""
    parents = [
        f"""EXISTS (SELECT FROM {key.referred_table.name} p
                 WHERE p.tenant_id = t.tenant_id AND p.{key.elements[-1].column.name} = t.{key.column_keys[-1]}
                   AND p.created_by_run = CAST(:id AS uuid))"""
        for key in sorted(item.table.foreign_key_constraints, key=lambda each: str(each.name))
        if not key.deferrable and entry(key.referred_table.name).made_by_runs
    ]
    return " OR ".join(parents) or "false"


def _in_use(item: TableEntry) -> str:
    uses = [_USES.get(item.name, "false")]
    if item.journalled:
        # The first value before a later run's change is what this run left; a change that was undone is none.
        uses.append(f"""{key_of(item, "t")} IN (
        SELECT l.row_key
        FROM (
          SELECT DISTINCT ON (c.row_key, b.key)
                 c.row_key, {key_columns(item, "c.row_key")}, b.key AS name, b.value
          FROM runs r
          JOIN run_changes c ON c.tenant_id = r.tenant_id AND c.scope_path = r.scope_path AND c.run_id = r.id
          CROSS JOIN LATERAL jsonb_each(c.before) AS b
          WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.id <> :run_id
            AND r.started_at > (SELECT started_at FROM runs WHERE tenant_id = :tenant_id AND id = CAST(:id AS uuid))
            AND c.table_name = :table_name AND c.operation = 'update'
          ORDER BY c.row_key, b.key, c.sequence
        ) AS l
        JOIN {item.name} m ON {_made("m")} AND {key_matches(item, "m", "l")}
        WHERE to_jsonb(m) -> l.name IS DISTINCT FROM l.value
      )""")
    return "\n      OR ".join(uses)
