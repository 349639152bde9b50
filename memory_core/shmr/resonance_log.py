"""Reads the resonance log: one row a pass of SHMR, whatever it came to."""

from __future__ import annotations

from typing import Any

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput
from memory_core.scope import TenantScope

_LOG = """
SELECT id, scope_path, run_id, session_id, as_of, created_at, status, cluster_count, beliefs_generated,
       contradictions_resolved, harmony_score_avg, duration_ms, model, parameters, counts, tokens, cost
FROM memory_resonance_log WHERE tenant_id = :tenant_id AND scope_path = :scope_path
ORDER BY created_at DESC, id DESC LIMIT CAST(:limit AS bigint)
"""


async def read_resonance_log(connection: ScopedConnection, *, limit: int | None = 10) -> list[dict[str, Any]]:
    """The scope's own passes of SHMR, newest first, as JSON-able documents: what each made, decided and cost.

    Args:
        limit: rows at most, 1 or more; None for all.

    Raises:
        InvalidInput: `limit` is out of range.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more; it is {limit}.")
    return [
        {
            "id": str(row["id"]),
            "scope": str(TenantScope.from_path(row["scope_path"])),
            "run_id": str(row["run_id"]),
            "session_id": row["session_id"],
            "as_of": row["as_of"].isoformat(),
            "created_at": row["created_at"].isoformat(),
            "status": row["status"],
            "cluster_count": row["cluster_count"],
            "beliefs_generated": row["beliefs_generated"],
            "contradictions_resolved": row["contradictions_resolved"],
            "harmony_score_avg": row["harmony_score_avg"],
            "duration_ms": row["duration_ms"],
            "model": row["model"],
            "parameters": row["parameters"],
            "counts": row["counts"],
            "tokens": row["tokens"],
            "cost": None if row["cost"] is None else float(row["cost"]),
        }
        for row in await connection.rows(_LOG, limit=limit)
    ]
