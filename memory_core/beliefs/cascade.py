"""The cascade: a belief never outlives its evidence.

Whoever retires, supersedes or corrects memories calls `withdraw_support` in the same transaction. It works inside a
run and outside one, so its "now" is an argument.

A memory still supports a belief while it *stands*: it is not retired, not expired, and not superseded, other than as a
duplicate of a memory that stands itself (a duplicate says the same, so it falls with the statement it gave way to).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_core.database.scoped import ScopedConnection

# The walk goes from each piece of evidence along its duplicates' winners; one fallen memory on the way is enough.
EVIDENCE = """evidence AS MATERIALIZED (
  SELECT e.belief_id, e.memory_id, e.role
  FROM belief_evidence e
  WHERE e.tenant_id = :tenant_id AND e.belief_id = ANY(ARRAY(SELECT belief_id FROM affected))
    AND e.role IN ('supports', 'contradicts')
), walk(memory_id, id) AS (
  SELECT memory_id, memory_id FROM evidence
  UNION
  SELECT w.memory_id, m.superseded_by
  FROM walk w JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.id = w.id
  WHERE m.superseded_reason = 'duplicate' AND m.superseded_by IS NOT NULL
), fallen AS MATERIALIZED (
  SELECT DISTINCT w.memory_id
  FROM walk w LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.id = w.id
  WHERE m.id IS NULL OR m.retired_at IS NOT NULL OR m.superseded_reason <> 'duplicate'
     OR m.expires_at <= CAST(:at AS timestamptz)
)"""
"""SQL: the evidence of the beliefs in `affected`, and which of its memories have `fallen` by `:at`."""

WITH_DUPLICATES = """
WITH RECURSIVE touched(id) AS (
  SELECT unnest(CAST(:ids AS uuid[]))
  UNION
  SELECT m.id FROM memories m JOIN touched t ON m.superseded_by = t.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.superseded_reason = 'duplicate'
)"""
"""SQL: the memories `:ids`, and the duplicates that gave way to them, as `touched`."""

_WITHDRAW = f"""{WITH_DUPLICATES}, affected AS MATERIALIZED (
  SELECT b.belief_id, b.status, b.confidence
  FROM harmonic_beliefs b
  WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.status IN ('held', 'contested')
    AND (CAST(:everything AS boolean) OR b.belief_id = ANY(ARRAY(
      SELECT e.belief_id FROM belief_evidence e
      WHERE e.tenant_id = :tenant_id AND e.memory_id = ANY(ARRAY(SELECT id FROM touched))
        AND e.role IN ('supports', 'contradicts'))))
), {EVIDENCE}, judged AS MATERIALIZED (
  SELECT r.belief_id,
         CASE max(r.status) WHEN 'held' THEN count(*) FILTER (WHERE r.role = 'supports' AND f.memory_id IS NULL) = 0
                            ELSE count(f.memory_id) > 0 OR count(DISTINCT r.role) < 2 END AS stale,
         max(s.confidence) FILTER (WHERE r.role = 'supports' AND f.memory_id IS NULL) AS most,
         max(r.confidence) AS confidence
  -- Beliefs beside their evidence rather than joined with it: the planner takes both for a row or two.
  FROM (SELECT belief_id, status, confidence, CAST(NULL AS uuid) AS memory_id, CAST(NULL AS text) AS role FROM affected
        UNION ALL SELECT belief_id, NULL, NULL, memory_id, role FROM evidence) AS r
  LEFT JOIN fallen f ON f.memory_id = r.memory_id
  LEFT JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = ANY(:visible_paths)
    AND s.memory_id = r.memory_id
  GROUP BY r.belief_id
)
UPDATE harmonic_beliefs b
SET status = CASE WHEN j.stale THEN 'stale' ELSE b.status END,
    status_reason = CASE WHEN j.stale THEN CAST(:reason AS text) ELSE b.status_reason END,
    valid_to = CASE WHEN j.stale THEN CAST(:at AS timestamptz) ELSE b.valid_to END,
    confidence = CASE WHEN j.stale THEN b.confidence ELSE least(b.confidence, j.most) END,
    updated_at = clock_timestamp()
FROM (SELECT * FROM judged WHERE stale OR confidence > most) AS j
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = j.belief_id
  AND b.belief_id = ANY(ARRAY(SELECT belief_id FROM judged WHERE stale OR confidence > most))
RETURNING b.belief_id, j.stale
"""

_LOOK_AGAIN = """
UPDATE harmonize_queue q SET harmonized_by_run = NULL, reason = 'evidence of a belief changed'
FROM belief_evidence e JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id
WHERE e.tenant_id = :tenant_id AND e.belief_id = ANY(CAST(:beliefs AS uuid[])) AND e.role IN ('supports', 'contradicts')
  AND m.scope_path = :scope_path AND m.retired_at IS NULL AND m.superseded_reason IS NULL
  AND q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.memory_id = e.memory_id
  AND q.harmonized_by_run IS NOT NULL
"""

_REVIVE = """
WITH RECURSIVE said_so(id) AS (
  SELECT CAST(:id AS uuid)
  UNION
  SELECT m.id FROM memories m JOIN said_so s ON m.superseded_by = s.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.superseded_reason = 'duplicate'
), revived AS (
  UPDATE memories m
  SET superseded_by = NULL, superseded_by_belief = NULL, superseded_reason = NULL, superseded_at = NULL,
    superseded_by_run = NULL
  FROM said_so s
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.superseded_by = s.id
    AND m.superseded_reason <> 'duplicate' AND m.retired_at IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > CAST(:at AS timestamptz))
  RETURNING m.id
), looked_at_again AS (
  UPDATE harmonize_queue q SET harmonized_by_run = NULL, reason = 'revived'
  FROM revived r
  WHERE q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.memory_id = r.id
    AND q.harmonized_by_run IS NOT NULL
)
SELECT id FROM revived ORDER BY id
"""

_LEFT_SUPERSEDED = """
SELECT m.id, m.content, m.superseded_reason AS reason, b.belief_id, b.content AS belief, b.status, b.status_reason
FROM memories m JOIN harmonic_beliefs b ON b.tenant_id = m.tenant_id AND b.belief_id = m.superseded_by_belief
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.retired_at IS NULL
  AND b.scope_path = :scope_path AND b.status IN ('stale', 'retracted')
ORDER BY m.id LIMIT :limit
"""


async def withdraw_support(
    connection: ScopedConnection, memory_ids: Sequence[UUID], reason: str, *, at: datetime
) -> int:
    """Let the scope's beliefs follow what happened to memories; call it after these were retired or superseded.

    A held belief without any support left, and a contested one of which any side's memory fell, become stale
    (`valid_to` is `at`), and what remains of their evidence waits for SHMR again. A held belief with some support
    left keeps no more confidence than that support has. Superseded, stale and retracted beliefs stay as they are.

    Args:
        memory_ids: memories of the scope or of its ancestors; their duplicates are followed.
        reason: why, in words; kept as the belief's `status_reason`.
        at: the run's `as_of`, or now; timezone-aware.

    Returns:
        how many beliefs became stale or lost confidence.
    """
    if not memory_ids:
        return 0
    return await _withdraw(connection, memory_ids, reason, at, everything=False)


async def withdraw_fallen_support(connection: ScopedConnection, reason: str, *, at: datetime) -> int:
    """The same for every belief of the scope: finds what expired, and what ancestors' scopes took back.

    A transaction of a parent scope cannot see its children's beliefs, so each scope asks this for itself.
    """
    return await _withdraw(connection, (), reason, at, everything=True)


async def revive_superseded_by(connection: ScopedConnection, memory_id: UUID, at: datetime) -> list[UUID]:
    """Bring back what a memory had replaced, once that memory was retired as wrong; they wait for SHMR again.

    What the memory's duplicates had replaced comes back too. The duplicates do not: they say the same wrong thing.

    Args:
        memory_id: the wrong memory, of the scope itself.
        at: now; what has expired by then stays away.

    Returns:
        the ids of the revived memories, ascending.
    """
    return list((await connection.execute(_REVIVE, id=memory_id, at=at)).scalars())


async def left_superseded(connection: ScopedConnection, *, limit: int = 100) -> list[dict[str, object]]:
    """Memories superseded by a belief that no longer holds: shown to a person, never revived by themselves."""
    return [dict(row) for row in await connection.rows(_LEFT_SUPERSEDED, limit=limit)]


async def _withdraw(
    connection: ScopedConnection, memory_ids: Sequence[UUID], reason: str, at: datetime, *, everything: bool
) -> int:
    changed = await connection.rows(_WITHDRAW, ids=list(memory_ids), reason=reason, at=at, everything=everything)
    stale = sorted(row["belief_id"] for row in changed if row["stale"])
    if stale:
        await connection.execute(_LOOK_AGAIN, beliefs=stale)
    return len(changed)
