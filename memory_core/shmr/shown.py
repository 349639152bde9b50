"""What a run of SHMR did, as the morning report shows it: beliefs with their evidence counted, and what gave way.

Each statement reads one table by a list of ids. Joined, they would be planned by the statistics of before the run, for
which a first night's beliefs are a row or two, and would read all of them once for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection

# What a run made or set anew; beliefs that only fell are among them, after those that hold.
_BELIEFS = """
SELECT b.belief_id, b.created_by_run = :run_id AS is_new, b.subject, b.predicate, b.object, b.content, b.status,
       b.status_reason, b.confidence, b.rationale
FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path
  AND (b.created_by_run = :run_id OR b.belief_id = ANY(ARRAY(
    SELECT CAST(c.row_key ->> 'belief_id' AS uuid) FROM run_changes c
    WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id
      AND c.table_name = 'harmonic_beliefs')))
ORDER BY array_position(ARRAY['contested', 'held', 'stale', 'superseded', 'retracted'], b.status), b.belief_id
"""

_EVIDENCE = """
SELECT e.belief_id, e.role, count(*) AS count FROM belief_evidence e
WHERE e.tenant_id = :tenant_id AND e.belief_id = ANY(CAST(:ids AS uuid[])) GROUP BY e.belief_id, e.role
"""

_SUPERSEDED = """
SELECT m.id, m.external_id, m.content, m.superseded_reason AS reason,
       coalesce(m.superseded_by, m.superseded_by_belief) AS by
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.superseded_by_run = :run_id
ORDER BY array_position(ARRAY['correction', 'contradiction', 'update', 'duplicate'], m.superseded_reason), m.id
LIMIT :limit
"""

_CONTENTS = """
SELECT m.id, m.content FROM memories m WHERE m.tenant_id = :tenant_id AND m.id = ANY(CAST(:ids AS uuid[]))
UNION ALL
SELECT b.belief_id, b.content FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.belief_id = ANY(CAST(:ids AS uuid[]))
"""

_BECAUSE = """
SELECT s ->> 'loser' AS loser, s ->> 'because' AS because
FROM memory_resonance_clusters c, jsonb_array_elements(c.proposal -> 'decision' -> 'supersedes') AS s
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.status = 'applied'
  AND s ->> 'loser' = ANY(CAST(:losers AS text[]))
"""


async def beliefs_of_run(connection: ScopedConnection) -> Sequence[RowMapping]:
    """The beliefs that the transaction's run made or changed, contested ones first; `is_new` where it made them."""
    return await connection.rows(_BELIEFS)


async def shown_beliefs(connection: ScopedConnection, beliefs: Sequence[RowMapping]) -> list[dict[str, Any]]:
    """Rows of `beliefs_of_run` as JSON-able documents, each with the number of its memories by role."""
    counts: dict[UUID, dict[str, int]] = {}
    for row in await connection.rows(_EVIDENCE, ids=[belief["belief_id"] for belief in beliefs]) if beliefs else ():
        counts.setdefault(row["belief_id"], {})[row["role"]] = row["count"]
    return [_belief(row, counts.get(row["belief_id"], {})) for row in beliefs]


async def superseded_by_run(connection: ScopedConnection, limit: int) -> list[dict[str, Any]]:
    """The first of the memories that gave way in the transaction's run, as JSON-able documents, each with the reason.

    Args:
        limit: at most so many, corrections first, duplicates last.
    """
    rows = await connection.rows(_SUPERSEDED, limit=limit)
    if not rows:
        return []
    contents = await connection.rows(_CONTENTS, ids=sorted({row["by"] for row in rows}))
    content_of = {row["id"]: row["content"] for row in contents}
    reasons = await connection.rows(_BECAUSE, losers=[str(row["id"]) for row in rows])
    because = {row["loser"]: row["because"] for row in reasons}
    return [
        {
            **dict(row),
            "id": str(row["id"]),
            "by": str(row["by"]),
            "by_content": content_of.get(row["by"]),
            "because": because.get(str(row["id"])),
        }
        for row in rows
    ]


def _belief(row: RowMapping, evidence: dict[str, int]) -> dict[str, Any]:
    return {
        "id": str(row["belief_id"]),
        "change": "new" if row["is_new"] else "changed",
        **{
            name: row[name]
            for name in ("subject", "predicate", "object", "content", "status", "status_reason", "rationale")
        },
        "confidence": row["confidence"],
        **{role: evidence.get(role, 0) for role in ("supports", "contradicts", "superseded")},
    }
