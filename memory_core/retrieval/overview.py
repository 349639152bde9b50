"""How the scopes of a store stand: what they hold, when each last slept, and what waits."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping

from memory_core.database.engine import Database
from memory_core.scope import TenantScope


async def scope_states(database: Database) -> list[dict[str, Any]]:
    """Each known scope: when it last slept and how that ended, memories that count, and what waits for SHMR."""
    by_path = {
        row["scope_path"]: row
        for row in await database.operator_rows(
            "SELECT scope_path, last_slept_at, last_status, last_run_id FROM scopes "
            "ORDER BY tenant_id, depth, scope_path"
        )
    }
    return [await _scope_state(database, TenantScope.from_path(path), row) for path, row in by_path.items()]


async def _scope_state(database: Database, scope: TenantScope, row: RowMapping) -> dict[str, Any]:
    async with database.scoped(scope) as connection:
        counts = await connection.row(
            "SELECT (SELECT count(*) FROM memories WHERE tenant_id = :tenant_id AND scope_path = :scope_path "
            "        AND retired_at IS NULL AND superseded_reason IS NULL) AS memories, "
            "       (SELECT count(*) FROM harmonize_queue WHERE tenant_id = :tenant_id AND scope_path = :scope_path "
            "        AND harmonized_by_run IS NULL) AS backlog, "
            "       (SELECT min(enqueued_at) FROM harmonize_queue WHERE tenant_id = :tenant_id "
            "        AND scope_path = :scope_path AND harmonized_by_run IS NULL) AS waiting_since"
        )
    assert counts is not None  # a row of scalar subqueries
    return {
        "tenant": scope.tenant_id,
        "scope": str(scope),
        "memories": counts["memories"],
        "last_slept_at": None if row["last_slept_at"] is None else row["last_slept_at"].isoformat(),
        "last_status": row["last_status"],
        "last_run_id": None if row["last_run_id"] is None else str(row["last_run_id"]),
        "backlog": counts["backlog"],
        "waiting_since": None if counts["waiting_since"] is None else counts["waiting_since"].isoformat(),
    }
