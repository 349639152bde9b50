"""Decay, off unless switched on: what nobody uses loses importance, by half of what is above the floor each half-life.

Closed form over timestamps: from t1 to t2, importance goes from i to
floor + (i - floor) * 2^(-(t2 - max(t1, activity + after)) / half_life). How often a night asks makes no difference,
because `decayed_at` says until when it was applied; new activity is later than that and so starts a new rest.
Decay is maintenance: it is no activity, and what reads activity does not see it.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.guards import IDENTITY_CONDITION
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome

NAME = "decay"

NEGLIGIBLE = 1e-10
"""Importance above the floor from which on nothing more is written; thirty-odd half-lives after the highest."""


class DecaySettings(BaseModel):
    """Section `decay`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=False, description="Whether nights lower the importance of what is not used.")
    after_days: float = Field(
        default=30, ge=0, le=36_600, description="Memories without activity for longer than this begin to decay."
    )
    half_life_days: float = Field(
        default=30, gt=0, le=36_600, description="Time in which half of the importance above the floor goes."
    )
    floor: float = Field(default=1.0, ge=1, le=10, description="Importance that decay approaches and never passes.")
    exempt_from: float = Field(
        default=8.0, ge=1, le=10, description="Memories of at least this importance do not decay."
    )


_WRITE = f"""
WITH resting AS MATERIALIZED (
  SELECT m.id, m.label, m.pinned, m.content_hash, s.importance,
         greatest(s.decayed_at, CAST(:after AS interval) +
           -- A night of the past must not see later activity, so then the accesses up to it are asked.
           CASE WHEN m.last_activity_at <= :as_of
                THEN greatest(m.last_activity_at, CASE WHEN s.last_access_at <= :as_of THEN s.last_access_at END)
                ELSE greatest(m.recorded_at, (SELECT max(a.at) FROM memory_accesses a WHERE a.tenant_id = :tenant_id
                              AND a.scope_path = :scope_path AND a.memory_id = m.id AND a.at <= :as_of)) END) AS since
  FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at <= :as_of
    AND m.layer IN ('semantic', 'episodic') AND m.derived_key IS NULL AND m.retired_at IS NULL
    AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
    AND s.scope_path = :scope_path AND s.importance > :floor + {NEGLIGIBLE}
), judged AS MATERIALIZED (
  SELECT m.id, m.since,
         CASE WHEN m.importance >= :exempt_from THEN 'important'
              WHEN {IDENTITY_CONDITION} THEN 'identity or persona'
              WHEN m.pinned THEN 'pinned'
              WHEN NOT {not_undone(NAME, "m.content_hash")} THEN 'taken back by a person'
         END AS reason
  FROM resting m WHERE m.since < :as_of
), decayed AS (
  UPDATE memory_state s
  SET importance = :floor + (s.importance - :floor) * power(
        CAST(2 AS double precision),
        - CAST(extract(epoch FROM CAST(:as_of AS timestamptz) - j.since) AS double precision) / :half_life),
      decayed_at = :as_of
  FROM judged j
  WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = j.id AND j.reason IS NULL
  RETURNING s.memory_id
)
SELECT (SELECT count(*) FROM resting) AS able, (SELECT count(*) FROM judged) AS idle,
       (SELECT count(*) FROM decayed) AS decayed,
       ARRAY(SELECT memory_id FROM decayed ORDER BY memory_id LIMIT {SAMPLE_SIZE}) AS sample,
       (SELECT jsonb_object_agg(reason, times) FROM (
          SELECT reason, count(*) AS times FROM judged WHERE reason IS NOT NULL GROUP BY reason) AS r) AS kept
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', m.content_hash) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'memory_id' AS uuid)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = '{NAME}' AND c.table_name = 'memory_state'
"""


async def decay(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Lower the importance of the scope's current facts and episodes that were idle for longer than `after_days`.

    The candidates are those that are idle for longer; `skipped` says what exempts the others. Activity is the last
    use or writing up to `as_of`.
    """
    settings = context.section(NAME, DecaySettings)
    row = await connection.row(
        _WRITE,
        after=timedelta(days=settings.after_days),
        half_life=timedelta(days=settings.half_life_days).total_seconds(),
        floor=settings.floor,
        exempt_from=settings.exempt_from,
        reconsider=context.reconsider,
    )
    assert row is not None  # a SELECT without FROM has one row
    words = {"important": f"importance of {settings.exempt_from:g} or more"}
    return StepOutcome(
        candidates=row["idle"],
        changed=row["decayed"],
        skipped={words.get(reason, reason): count for reason, count in sorted((row["kept"] or {}).items())},
        sample=tuple(str(memory_id) for memory_id in row["sample"]),
        counts={"nodes_decayed": row["decayed"]},
        reason=""
        if row["decayed"]
        else f"no current memory is more important than {settings.floor:g}"
        if not row["able"]
        else "every memory was active or lowered lately"
        if not row["idle"]
        else "every idle memory is exempt",
    )


def _enabled(context: RunContext) -> bool:
    return context.section(NAME, DecaySettings).enabled


STEP = Step(NAME, decay, undone=UNDONE, enabled=_enabled)
