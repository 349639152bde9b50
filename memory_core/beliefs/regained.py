"""The cascade turned round: a belief that only lacked what came back is held again.

Whoever brings memories back calls `regain_support` in the same transaction. A belief that had two sides, or in whose
place something else is believed by now, is left stale: which of them holds is for SHMR to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.beliefs.cascade import EVIDENCE, WITH_DUPLICATES
from memory_core.database.scoped import ScopedConnection

# With at most the confidence of what stands, as the cascade leaves it.
_REGAIN = f"""{WITH_DUPLICATES}, affected AS MATERIALIZED (
  SELECT b.belief_id, b.subject, b.predicate
  FROM harmonic_beliefs b
  WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.status = 'stale'
    AND b.belief_id = ANY(ARRAY(
      SELECT e.belief_id FROM belief_evidence e
      WHERE e.tenant_id = :tenant_id AND e.memory_id = ANY(ARRAY(SELECT id FROM touched))
        AND e.role IN ('supports', 'contradicts')))
), {EVIDENCE}, judged AS (
  SELECT a.belief_id,
         count(*) FILTER (WHERE e.role = 'supports' AND f.memory_id IS NULL) > 0
           AND count(*) FILTER (WHERE e.role = 'contradicts') = 0
           AND NOT EXISTS (SELECT FROM harmonic_beliefs o
                           WHERE o.tenant_id = :tenant_id AND o.scope_path = :scope_path
                             AND o.status IN ('held', 'contested') AND lower(o.subject) = lower(a.subject)
                             AND lower(o.predicate) = lower(a.predicate))
           AND NOT EXISTS (SELECT FROM affected o
                           WHERE o.belief_id <> a.belief_id AND lower(o.subject) = lower(a.subject)
                             AND lower(o.predicate) = lower(a.predicate)) AS holds,
         max(s.confidence) FILTER (WHERE e.role = 'supports' AND f.memory_id IS NULL) AS most
  FROM affected a
  JOIN evidence e ON e.belief_id = a.belief_id
  LEFT JOIN fallen f ON f.memory_id = e.memory_id
  LEFT JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = ANY(:visible_paths)
    AND s.memory_id = e.memory_id
  GROUP BY a.belief_id, a.subject, a.predicate
), held AS (
  UPDATE harmonic_beliefs b
  SET status = 'held', status_reason = NULL, valid_to = NULL, confidence = least(b.confidence, j.most),
      updated_at = clock_timestamp()
  FROM judged j
  WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = j.belief_id AND j.holds
)
SELECT belief_id, holds FROM judged ORDER BY belief_id
"""


@dataclass(frozen=True, slots=True)
class Regained:
    """Beliefs that rest on what came back.

    Attributes:
        held: held again.
        waiting: still stale, for the next run of SHMR to decide on.
    """

    held: tuple[UUID, ...] = ()
    waiting: tuple[UUID, ...] = ()


async def regain_support(connection: ScopedConnection, memory_ids: Sequence[UUID], *, at: datetime) -> Regained:
    """Hold the scope's stale beliefs again whose support came back; call it after the memories were brought back.

    Args:
        memory_ids: memories of the scope; their duplicates are followed.
        at: now; timezone-aware. What has expired by then supports nothing.
    """
    if not memory_ids:
        return Regained()
    found = await connection.rows(_REGAIN, ids=list(memory_ids), at=at)
    return Regained(
        tuple(row["belief_id"] for row in found if row["holds"]),
        tuple(row["belief_id"] for row in found if not row["holds"]),
    )
