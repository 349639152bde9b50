"""Takes a run back: restores what it changed, removes what it made, and is itself a run.

Column by column, a value is restored only where it is still the one the run left; what was changed since is
refused and listed. What a person undid is remembered by decision key and not done again until a member's content
changes or it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.database.registry import REGISTRY, TableEntry
from memory_core.database.scoped import RunBinding, ScopedConnection
from memory_core.errors import NotFound, UndoRefused
from memory_core.runs.decisions import remember_undone
from memory_core.runs.ledger import finish_run
from memory_core.scope import TenantScope

UNDOABLE = ("applied", "partial", "interrupted")


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did.

    Attributes:
        run_id: the undo's own run.
        restored: rows given back their former values.
        removed: rows the run had made, now gone.
        refused: what was left, with table, key, column and reason.
    """

    run_id: UUID
    undone_run: UUID
    restored: int
    removed: int
    refused: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON-able document."""
        return {
            "run_id": str(self.run_id),
            "undone_run": str(self.undone_run),
            "status": "partial" if self.refused else "undone",
            "restored": self.restored,
            "removed": self.removed,
            "refused": list(self.refused),
        }


async def undo_run(
    database: Database,
    scope: TenantScope,
    run_id: UUID,
    *,
    at: datetime,
    decisions: Sequence[str] = (),
    requested_by: str = "person",
) -> UndoResult:
    """Undo a finished run of the scope; the caller holds the scope.

    Args:
        at: when the person asked; stamps the undo's run.
        decisions: queries of `remember_undone`, one a phase.

    Raises:
        NotFound: there is no such run in the scope.
        UndoRefused: it was undone already, changed nothing, is itself an undo, or is still running.
    """
    undo_id = scope.derived_id("undo", str(run_id), at.isoformat())
    async with database.scoped(scope, RunBinding(undo_id, at, "undo"), isolation="REPEATABLE READ") as connection:
        await _check(connection, run_id)
        await connection.execute(
            "INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters, parameters_hash, requested_by, undoes_run) "
            "VALUES (:tenant_id, :run_id, :scope_path, 'undo', CAST(:as_of AS timestamptz), 'running', 0, '{}', '', :requested_by, CAST(:undone AS uuid))",
            requested_by=requested_by,
            undone=run_id,
        )
        await remember_undone(connection, run_id, decisions)
        restored, removed, refused = await take_back(connection, run_id)
        await connection.execute(
            "UPDATE runs SET status = 'undone', undone_by_run = :run_id WHERE tenant_id = :tenant_id AND id = CAST(:undone AS uuid)",
            undone=run_id,
        )
        result = UndoResult(undo_id, run_id, restored, removed, tuple(refused))
        await finish_run(connection, "partial" if refused else "applied", {"undo": result.to_dict()})
        await connection.commit()
    return result


async def take_back(connection: ScopedConnection, run_id: UUID) -> tuple[int, int, list[dict[str, Any]]]:
    """Restore what a run changed and remove what it made, in the open transaction.

    Returns:
        rows restored, rows removed, and what was refused.
    """
    refused: list[dict[str, Any]] = []
    touched = set(
        (
            await connection.execute(
                "SELECT DISTINCT table_name FROM run_changes WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:id AS uuid)",
                id=run_id,
            )
        ).scalars()
    )
    journalled: Sequence[TableEntry] = [item for item in REGISTRY if item.journalled]
    restored = removed = 0
    for item in journalled:
        if item.name in touched:
            restored += await _reinsert(connection, item, run_id)
    for item in reversed(journalled):
        if item.name in touched:
            count, kept = await _restore(connection, item, run_id)
            restored += count
            refused += kept
    for item in reversed(REGISTRY):
        if item.made_by_runs:
            count, kept = await _remove(connection, item, run_id)
            removed += count
            refused += kept
    return restored, removed, refused


async def _check(connection: ScopedConnection, run_id: UUID) -> None:
    run = await connection.row(
        "SELECT kind, status, dry_run, undone_by_run FROM runs "
        "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid) FOR UPDATE",
        id=run_id,
    )
    if run is None:
        raise NotFound(f"The scope {connection.scope} has no run {run_id}.", hint="`slowwave runs` lists them.")
    if run["status"] == "undone":
        raise UndoRefused(f"The run {run_id} was already undone by {run['undone_by_run']}.", reason="already_undone")
    if run["kind"] == "undo":
        raise UndoRefused(
            "An undo cannot be undone.",
            hint="Run the night again with --reconsider to do again what it took back.",
            reason="is_undo",
        )
    if run["dry_run"] or run["status"] not in UNDOABLE:
        raise UndoRefused(f"The run {run_id} is {run['status']}, so there is nothing to undo.", reason=run["status"])


def _key(item: TableEntry, alias: str) -> str:
    return " AND ".join(f"t.{column} = ({alias}.image).{column}" for column in item.key)


def _first_and_last(item: TableEntry) -> str:
    # Of several changes of one column, the first before and the last after count.
    return f"""
WITH columns AS (
  SELECT c.row_key, c.sequence, b.key, b.value AS before, c.after -> b.key AS after
  FROM run_changes c, jsonb_each(c.before) AS b
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
    AND c.table_name = '{item.name}' AND c.operation = 'update'
), collapsed AS (
  SELECT row_key, key, (array_agg(before ORDER BY sequence))[1] AS before, (array_agg(after ORDER BY sequence DESC))[1] AS after
  FROM columns GROUP BY row_key, key
), compared AS (
  SELECT c.row_key, c.key, c.before, to_jsonb(t) -> c.key IS NOT DISTINCT FROM c.after AS unchanged, t.tenant_id IS NOT NULL AS present
  FROM (SELECT *, jsonb_populate_record(NULL::slowwave.{item.name}, row_key) AS image FROM collapsed) AS c
  LEFT JOIN {item.name} t ON t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {_key(item, "c")}
)"""


async def _restore(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> tuple[int, list[dict[str, Any]]]:
    columns = item.journalled_columns()
    assignments = ", ".join(
        f"{column} = CASE WHEN r.before ? '{column}' THEN (r.old).{column} ELSE t.{column} END" for column in columns
    )
    kept = await connection.rows(
        f"{_first_and_last(item)} SELECT row_key, key, present FROM compared WHERE NOT (present AND unchanged) ORDER BY row_key::text, key",
        id=run_id,
    )
    result = await connection.execute(
        f"""{_first_and_last(item)}, restorable AS (
  SELECT row_key, jsonb_object_agg(key, before) AS before FROM compared WHERE present AND unchanged GROUP BY row_key
)
UPDATE {item.name} AS t SET {assignments}
FROM (SELECT before, jsonb_populate_record(NULL::slowwave.{item.name}, row_key) AS image,
             jsonb_populate_record(NULL::slowwave.{item.name}, before) AS old FROM restorable) AS r
WHERE t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND {_key(item, "r")}""",
        id=run_id,
    )
    return result.rowcount, [
        {
            "table": item.name,
            "key": row["row_key"],
            "column": row["key"],
            "reason": "changed since" if row["present"] else "row is gone",
        }
        for row in kept
    ]


async def _reinsert(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> int:
    if "embedding" in item.table.columns:
        return 0  # vectors are not in the journal; the next run computes them again
    result = await connection.execute(
        f"INSERT INTO {item.name} SELECT (jsonb_populate_record(NULL::slowwave.{item.name}, c.before)).* FROM run_changes c "
        f"WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid) "
        f"AND c.table_name = '{item.name}' AND c.operation = 'delete' ON CONFLICT DO NOTHING",
        id=run_id,
    )
    return result.rowcount


_USES = {
    # A row made by the run stays while something that the run did not make depends on it.
    "memories": (
        "EXISTS (SELECT FROM memory_edges e WHERE e.tenant_id = t.tenant_id AND t.id IN (e.source_id, e.target_id) AND e.created_by_run IS DISTINCT FROM CAST(:id AS uuid)) "
        "OR EXISTS (SELECT FROM corrections c WHERE c.tenant_id = t.tenant_id AND c.memory_id = t.id) "
        "OR EXISTS (SELECT FROM belief_evidence b WHERE b.tenant_id = t.tenant_id AND b.memory_id = t.id AND b.created_by_run IS DISTINCT FROM CAST(:id AS uuid)) "
        "OR EXISTS (SELECT FROM memories o WHERE o.tenant_id = t.tenant_id AND t.id IN (o.superseded_by, o.corrects) AND o.created_by_run IS DISTINCT FROM CAST(:id AS uuid))"
    ),
    "harmonic_beliefs": (
        "EXISTS (SELECT FROM harmonic_beliefs o WHERE o.tenant_id = t.tenant_id AND o.superseded_by_belief = t.belief_id AND o.created_by_run IS DISTINCT FROM CAST(:id AS uuid))"
    ),
}


async def _remove(connection: ScopedConnection, item: TableEntry, run_id: UUID) -> tuple[int, list[dict[str, Any]]]:
    key = "jsonb_build_object(" + ", ".join(f"'{column}', t.{column}" for column in item.key) + ")"
    made = f"FROM {item.name} t WHERE t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND t.created_by_run = CAST(:id AS uuid)"
    changed_since = (
        f"{key} IN (SELECT c.row_key FROM run_changes c WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path "
        f"AND c.table_name = '{item.name}' AND c.operation = 'update' AND c.run_id NOT IN (CAST(:id AS uuid), :run_id) "
        "AND c.sequence > (SELECT coalesce(min(sequence), 0) FROM run_changes WHERE tenant_id = :tenant_id AND run_id = CAST(:id AS uuid)))"
        if item.journalled
        else "false"
    )
    in_use = f"({_USES.get(item.name, 'false')}) OR ({changed_since})"
    kept = await connection.rows(f"SELECT {key} AS row_key {made} AND ({in_use}) ORDER BY 1", id=run_id)
    result = await connection.execute(f"DELETE {made} AND NOT ({in_use})", id=run_id)
    return result.rowcount, [
        {"table": item.name, "key": row["row_key"], "column": None, "reason": "in use since"} for row in kept
    ]
