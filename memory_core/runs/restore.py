"""Gives rows back what a run changed in them, column by column, and rows that it deleted.

A column is restored only where it still holds what the run left. Columns that belong together (the registry names
them) are restored together or not at all, and nothing is restored that would not fit: a place that another row has
taken since, or a row that its table's own rules would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects import postgresql

from memory_core.database.registry import TableEntry
from memory_core.database.scoped import ScopedConnection

GONE = "row is gone"
TAKEN = "its place was taken since"

_DELETED = """
deleted AS (
  -- Of several deletions of one row the first counts; a row that the run had made itself is not missed.
  SELECT d.row_key, d.before
  FROM (
    SELECT DISTINCT ON (c.row_key) c.row_key, c.before
    FROM run_changes c
    WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
      AND c.table_name = :table_name AND c.operation = 'delete'
    ORDER BY c.row_key, c.sequence
  ) AS d
  WHERE d.before ->> 'created_by_run' IS DISTINCT FROM CAST(:id AS text)
)"""

# Rows the run had made, and that it, or this undo, has deleted.
_MADE_AND_GONE = """
made_and_gone AS (
  SELECT c.row_key
  FROM run_changes c
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id IN (CAST(:id AS uuid), :run_id)
    AND c.table_name = :table_name AND c.operation = 'delete'
    AND c.before ->> 'created_by_run' = CAST(:id AS text)
  EXCEPT SELECT d.row_key FROM deleted d
)"""


async def restore_columns(
    connection: ScopedConnection, item: TableEntry, run_id: UUID
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Restore the columns that a run changed in rows that were there before it. What is restored already stays so.

    Returns:
        the keys of the rows restored, and what was refused: table, key, column and reason.
    """
    row = await connection.row(_restore_sql(item), id=run_id, table_name=item.name)
    assert row is not None  # every column of it is an aggregate
    return row["restored"], row["refused"]


async def reinsert_rows(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> list[dict[str, Any]]:
    """Put back the rows that a run deleted, where their place is free and what they refer to is there.

    Returns:
        the keys of the rows put back.
    """
    if "embedding" in item.table.columns:
        return []  # vectors are not in the journal; the next run computes them again
    result = await connection.execute(_reinsert_sql(item), id=run_id, table_name=item.name)
    return list(result.scalars())


async def deleted_rows(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> list[dict[str, Any]]:
    """The keys of the rows that a run deleted and had not made itself."""
    sql = f"WITH {_DELETED} SELECT row_key FROM deleted ORDER BY row_key::text"
    return list((await connection.execute(sql, id=run_id, table_name=item.name)).scalars())


def _type(item: TableEntry, column: str) -> str:
    return item.table.columns[column].type.compile(postgresql.dialect())  # type: ignore[no-untyped-call]


def key_columns(item: TableEntry, row_key: str) -> str:
    """SQL select list: the key that the jsonb expression `row_key` holds, as columns of the table's own types.

    Compare with these, never with the expression: reading a document is not leakproof, so that under row-level
    security no index would serve the comparison.
    """
    return ", ".join(f"CAST({row_key} ->> '{column}' AS {_type(item, column)}) AS key_{column}" for column in item.key)


def key_matches(item: TableEntry, alias: str, keys: str) -> str:
    """SQL condition: the row `alias` has the key in the columns that `key_columns` made of the relation `keys`."""
    return " AND ".join(f"{alias}.{column} = {keys}.key_{column}" for column in item.key)


def key_of(item: TableEntry, alias: str) -> str:
    """SQL expression: the key of the row `alias` as the journal writes it."""
    return "jsonb_build_object(" + ", ".join(f"'{column}', {alias}.{column}" for column in item.key) + ")"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _group(item: TableEntry) -> str:
    """SQL expression: which columns the column `c.name` is restored with; itself where it stands alone."""
    cases = " ".join(f"WHEN c.name IN ({_quoted(group)}) THEN '{group[0]}'" for group in item.together)
    return f"CASE {cases} ELSE c.name END" if cases else "c.name"


def _withheld(item: TableEntry) -> str:
    """SQL expression: which columns of the row `r` have to wait, because another row is where it would be unique."""
    waiting = ["CAST('{}' AS text[])"]
    for index in sorted(item.table.indexes, key=lambda each: str(each.name)):
        where = index.dialect_options["postgresql"]["where"]
        condition = "true" if where is None else str(where)
        names = [column.name for column in index.columns]
        touched = {*names, *re.findall(r"\w+", condition)} & set(item.journalled_columns())
        if not (index.unique and touched):
            continue
        columns = sorted(touched.union(*(group for group in item.together if touched & set(group))))
        waiting.append(f"""
         CASE WHEN c.before ?| ARRAY[{_quoted(columns)}] AND EXISTS (
           SELECT FROM (SELECT * FROM (SELECT r.*) AS one WHERE {condition}) AS n
           JOIN (SELECT * FROM {item.name} WHERE {condition}) AS o
             ON {" AND ".join(f"o.{name} = n.{name}" for name in names)}
           WHERE {" OR ".join(f"o.{name} <> n.{name}" for name in item.key)}
         ) THEN ARRAY[{_quoted(columns)}] ELSE CAST('{{}}' AS text[]) END""")
    return " || ".join(waiting)


def _rules(item: TableEntry) -> str:
    """SQL condition over a row's columns: every CHECK of the table holds."""
    checks = [str(rule.sqltext) for rule in item.table.constraints if isinstance(rule, CheckConstraint)]
    return " AND ".join(f"coalesce({check}, true)" for check in sorted(checks)) or "true"


def _restore_sql(item: TableEntry) -> str:
    # A row that the run made is removed and not restored; one that the undo itself wrote is as it should be.
    made = "t.created_by_run IN (CAST(:id AS uuid), :run_id)" if item.made_by_runs else "false"
    assignments = ",\n      ".join(
        f"{column} = CASE WHEN f.restored ? '{column}' THEN old.{column} ELSE t.{column} END"
        for column in item.journalled_columns()
    )
    row = f"slowwave.{item.name}"
    keys = ", ".join(f"c.key_{column}" for column in item.key)
    return f"""
WITH {_DELETED}, {_MADE_AND_GONE}, changed AS MATERIALIZED (
  -- Of several changes of one column, the first before and the last after count.
  SELECT c.row_key, {key_columns(item, "c.row_key")}, b.key AS name,
         (array_agg(b.value ORDER BY c.sequence))[1] AS before,
         (array_agg(c.after -> b.key ORDER BY c.sequence DESC))[1] AS after
  FROM run_changes c CROSS JOIN LATERAL jsonb_each(c.before) AS b
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
    AND c.table_name = :table_name AND c.operation = 'update'
    AND c.row_key NOT IN (SELECT m.row_key FROM made_and_gone m)
  GROUP BY c.row_key, b.key
), compared AS (
  SELECT c.*, bool_and(c.now IN (c.before, c.after)) OVER (PARTITION BY c.row_key, {_group(item)}) AS whole
  FROM (
    SELECT c.row_key, {keys}, c.name, c.before, c.after, t.tenant_id IS NOT NULL AS present,
           coalesce(to_jsonb(t) -> c.name, '"no such column"'::jsonb) AS now
    FROM changed c
    LEFT JOIN {item.name} t
      ON t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {key_matches(item, "t", "c")}
    WHERE ({made}) IS NOT TRUE
  ) AS c
), chosen AS (
  SELECT c.row_key, {keys}, jsonb_object_agg(c.name, c.before) AS before
  FROM compared c WHERE c.present AND c.whole AND c.now::text <> c.before::text GROUP BY c.row_key, {keys}
), placed AS (
  SELECT c.row_key, {keys}, c.before, c.before - ({_withheld(item)}) AS restored
  FROM chosen c
  JOIN {item.name} t
    ON t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {key_matches(item, "t", "c")}
  CROSS JOIN LATERAL jsonb_populate_record(NULL::{row}, (to_jsonb(t) - 'embedding') || c.before) AS r
), fitting AS MATERIALIZED (
  SELECT c.row_key, {keys}, c.before, c.restored AS placed,
         CASE WHEN (SELECT {_rules(item)} FROM (SELECT r.*) AS one) THEN c.restored ELSE '{{}}'::jsonb END AS restored
  FROM placed c
  JOIN {item.name} t
    ON t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {key_matches(item, "t", "c")}
  CROSS JOIN LATERAL jsonb_populate_record(NULL::{row}, (to_jsonb(t) - 'embedding') || c.restored) AS r
), updated AS (
  UPDATE {item.name} AS t
  SET {assignments}
  FROM fitting f CROSS JOIN LATERAL jsonb_populate_record(NULL::{row}, f.restored) AS old
  WHERE t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {key_matches(item, "t", "f")}
    AND f.restored <> '{{}}'::jsonb
  RETURNING f.row_key
), refused AS (
  SELECT c.row_key, c.name,
         CASE WHEN NOT c.present THEN '{GONE}'
              WHEN c.now IN (c.before, c.after) THEN 'belongs with what was changed since'
              ELSE 'changed since' END AS reason
  FROM compared c WHERE NOT (c.present AND c.whole)
  UNION ALL
  SELECT f.row_key, b.name,
         CASE WHEN f.placed ? b.name THEN 'does not fit with what was changed since' ELSE '{TAKEN}' END
  FROM fitting f CROSS JOIN LATERAL jsonb_object_keys(f.before) AS b(name)
  WHERE NOT f.restored ? b.name
)
SELECT (SELECT coalesce(jsonb_agg(u.row_key), '[]'::jsonb) FROM updated u) AS restored,
       coalesce(
         jsonb_agg(
           jsonb_build_object(
             'table', CAST(:table_name AS text), 'key', r.row_key, 'column', r.name, 'reason', r.reason
           )
           ORDER BY r.row_key::text, r.name
         ),
         '[]'::jsonb
       ) AS refused
FROM refused r
"""


def _reinsert_sql(item: TableEntry) -> str:
    parents = "".join(
        f"""
  AND (r.{key.column_keys[-1]} IS NULL OR EXISTS (
    SELECT FROM {key.referred_table.name} p
    WHERE p.tenant_id = r.tenant_id AND p.{key.elements[-1].column.name} = r.{key.column_keys[-1]}
  ))"""
        for key in sorted(item.table.foreign_key_constraints, key=lambda each: str(each.name))
        if not key.deferrable
    )
    return f"""
WITH {_DELETED}
INSERT INTO {item.name} AS t
SELECT r.*
FROM deleted d CROSS JOIN LATERAL jsonb_populate_record(NULL::slowwave.{item.name}, d.before) AS r
WHERE true{parents}
ON CONFLICT DO NOTHING
RETURNING {key_of(item, "t")}
"""
