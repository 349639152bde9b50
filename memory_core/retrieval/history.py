"""What was done to a scope: its runs, one run in full, and what it changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import NotFound
from memory_core.runs.changes import changes_of
from memory_core.runs.ledger import steps_of
from memory_core.scope import TenantScope

_RUN_COLUMNS = (
    "id, scope_path, kind, as_of, status, dry_run, parameters, error, requested_by, flow_run_id, "
    "undoes_run, undone_by_run, started_at, finished_at"
)

_RUNS = f"""
SELECT {_RUN_COLUMNS} FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path
ORDER BY started_at DESC, id DESC LIMIT CAST(:limit AS bigint)
"""

_RUN = f"""
SELECT {_RUN_COLUMNS}, report FROM runs
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""


async def list_runs(connection: ScopedConnection, *, limit: int | None = None) -> list[dict[str, Any]]:
    """The scope's own runs, newest first; previews and undos are runs too."""
    return [_run(row) for row in await connection.rows(_RUNS, limit=limit)]


async def show_run(connection: ScopedConnection, run_id: UUID) -> dict[str, Any]:
    """One run of the scope in full: how it went, its report, and each step of its ledger.

    Raises:
        NotFound: the scope has no such run.
    """
    row = await _stored(connection, run_id)
    report = {name: value for name, value in (row["report"] or {}).items() if name != "diff"}
    steps = [
        {
            "step": step["step"],
            "status": step["status"],
            "started_at": _time(step["started_at"]),
            "finished_at": _time(step["finished_at"]),
            **step["outcome"],
        }
        for step in await steps_of(connection, run_id)
    ]
    return {**_run(row), "report": report, "steps": steps}


async def diff_of_run(connection: ScopedConnection, run_id: UUID) -> dict[str, Any]:
    """What a run changed row by row, or would have changed if it was a dry run.

    Returns:
        run_id, status, dry_run, `diff` (`changed` and `created`, as `runs.changes.changes_of`), and `counts` by table.

    Raises:
        NotFound: the scope has no such run.
    """
    row = await _stored(connection, run_id)
    kept = (row["report"] or {}).get("diff") if row["dry_run"] else None
    diff = kept if kept is not None else await changes_of(connection, run_id)
    return {
        "run_id": str(run_id),
        "status": row["status"],
        "dry_run": row["dry_run"],
        "counts": count_changes(diff),
        "diff": diff,
    }


def count_changes(diff: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[str, int]]:
    """How many rows of each table a diff changes and creates."""
    counts: dict[str, dict[str, int]] = {}
    for what in ("changed", "created"):
        for item in diff.get(what, ()):
            table = counts.setdefault(item["table"], {"changed": 0, "created": 0})
            table[what] += 1
    return counts


async def _stored(connection: ScopedConnection, run_id: UUID) -> RowMapping:
    row = await connection.row(_RUN, id=run_id)
    if row is None:
        raise NotFound(f"The scope {connection.scope} has no run {run_id}.", hint="`slowwave runs` lists them.")
    return row


def _run(row: RowMapping) -> dict[str, Any]:
    return {
        "run_id": str(row["id"]),
        "scope": str(TenantScope.from_path(row["scope_path"])),
        "kind": row["kind"],
        "status": row["status"],
        "as_of": row["as_of"].isoformat(),
        "dry_run": row["dry_run"],
        "requested_by": row["requested_by"],
        "parameters": row["parameters"],
        "flow_run_id": row["flow_run_id"],
        "undoes_run": None if row["undoes_run"] is None else str(row["undoes_run"]),
        "undone_by_run": None if row["undone_by_run"] is None else str(row["undone_by_run"]),
        "started_at": _time(row["started_at"]),
        "finished_at": _time(row["finished_at"]),
        "error": row["error"],
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
