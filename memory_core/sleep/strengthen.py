"""Phase 1, strengthen: what was used grows more important.

Evidence is a read that reached an agent (`recall`, `hydrate`), a re-mention or an explicit confirmation.
Maintenance is never evidence. Each piece of evidence is consumed once, so a second run over the same evidence
changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome

NAME = "strengthen"


class StrengthenSettings(BaseModel):
    """Section `strengthen`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lookback_hours: float = Field(
        default=24,
        gt=0,
        le=24 * 366,
        description="How far back from as_of evidence counts; what is exactly so old no longer does.",
    )
    rate: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of the way to the ceiling that one piece of evidence moves a memory.",
    )
    ceiling: float = Field(default=10, ge=1, le=10, description="Importance that use approaches and never passes.")


# What is older than the look-back is consumed too, without effect: otherwise it would wait for ever.
_WRITE = f"""
WITH evidence AS MATERIALIZED (
  SELECT a.id, a.memory_id, a.at, a.at > :since AS counts
  FROM memory_accesses a
  JOIN memories m ON m.tenant_id = a.tenant_id AND m.id = a.memory_id
  WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path AND a.consumed_by_run IS NULL AND a.at <= :as_of
    AND m.scope_path = :scope_path AND m.recorded_at <= :as_of
    AND {not_undone(NAME, "m.content_hash", "a.id::text")}
), consumed AS (
  UPDATE memory_accesses a SET consumed_by_run = :run_id
  FROM evidence e WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path AND a.id = e.id
  RETURNING a.id
), used AS (
  SELECT memory_id, count(*) FILTER (WHERE counts) AS pieces, count(*) AS accesses, max(at) AS last_at
  FROM evidence GROUP BY memory_id
), strengthened AS (
  UPDATE memory_state s
  SET importance = CASE WHEN u.pieces > 0 AND s.importance < :ceiling AND m.retired_at IS NULL
                        THEN least(:ceiling,
                                   s.importance + (:ceiling - s.importance) * (1 - power(1 - :rate, u.pieces)))
                        ELSE s.importance END,
      access_count = s.access_count + u.accesses,
      last_access_at = greatest(s.last_access_at, u.last_at)
  FROM used u JOIN memories m ON m.tenant_id = :tenant_id AND m.id = u.memory_id
  -- The row as it was: what reaches the ceiling tonight has grown, and the new value no longer tells.
  JOIN memory_state b ON b.tenant_id = :tenant_id AND b.memory_id = u.memory_id
  WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = u.memory_id
  RETURNING s.memory_id, u.pieces, u.pieces > 0 AND m.retired_at IS NULL AND b.importance < :ceiling AS grew,
            m.retired_at IS NOT NULL AS retired
)
SELECT (SELECT count(*) FROM evidence) AS pieces,
       (SELECT count(*) FROM consumed) AS consumed,
       count(*) AS candidates,
       count(*) FILTER (WHERE grew) AS changed,
       count(*) FILTER (WHERE pieces = 0) AS too_old,
       count(*) FILTER (WHERE pieces > 0 AND retired) AS retired,
       count(*) FILTER (WHERE pieces > 0 AND NOT retired AND NOT grew) AS at_ceiling,
       (array_agg(memory_id ORDER BY pieces DESC, memory_id) FILTER (WHERE grew))[1\\:{SAMPLE_SIZE}] AS sample
FROM strengthened
"""

UNDONE = """
SELECT 'strengthen' AS phase, slowwave.decision_key('strengthen', m.content_hash, a.id::text) AS decision_key,
       jsonb_build_array(m.id, a.id) AS members
FROM run_changes c
JOIN memory_accesses a ON a.tenant_id = c.tenant_id AND a.id = CAST(c.row_key ->> 'id' AS uuid)
JOIN memories m ON m.tenant_id = a.tenant_id AND m.id = a.memory_id
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = 'strengthen' AND c.table_name = 'memory_accesses'
"""


async def strengthen(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Consume the scope's new evidence of use and raise importance towards the ceiling.

    A memory with n pieces of evidence goes from i to i + (ceiling - i) * (1 - (1 - rate)^n).
    """
    settings = context.section(NAME, StrengthenSettings)
    row = await connection.row(
        _WRITE,
        since=connection.as_of - timedelta(hours=settings.lookback_hours),
        rate=settings.rate,
        ceiling=settings.ceiling,
        reconsider=context.reconsider,
    )
    assert row is not None  # an aggregate without GROUP BY has one row
    skipped = {
        "evidence older than the look-back": row["too_old"],
        "retired": row["retired"],
        "already at the ceiling": row["at_ceiling"],
    }
    return StepOutcome(
        candidates=row["candidates"],
        changed=row["changed"],
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(str(memory_id) for memory_id in row["sample"] or ()),
        counts={"nodes_strengthened": row["changed"], "evidence_consumed": row["consumed"]},
        reason=""
        if row["changed"]
        else "no memory has new evidence of use"
        if not row["candidates"]
        else "no evidence raised a memory",
    )


STEP = Step(NAME, strengthen, undone=UNDONE)
