"""Working-layer expiry, off unless switched on: what was only for the moment is retired when its moment is over.

A working memory ends at its `expires_at`, or so many hours after it was recorded where none is set. Reading it
prolongs nothing, and `expires_at` is never moved. Expiring is what working memory is for, so the guards over what a
run takes away leave the layer out on both sides: what expires does not count, and makes no room for anything else.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.leaving import left
from memory_core.layers.restoring import WORKING_EXPIRED, WORKING_EXPIRY
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.guards import IDENTITY_CONDITION
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome

NAME = WORKING_EXPIRY


class WorkingExpirySettings(BaseModel):
    """Section `working_expiry`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=False, description="Whether nights retire working memories that are over.")
    default_hours: float = Field(
        default=24,
        gt=0,
        le=24 * 36_600,
        description="Lifetime of working memories that say none, since recorded; what is exactly so old is over.",
    )


_WRITE = f"""
WITH working AS MATERIALIZED (
  SELECT m.id, m.label, m.pinned, m.content_hash,
         coalesce(m.expires_at, m.recorded_at + CAST(:lifetime AS interval)) AS ends_at
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at <= :as_of AND m.layer = 'working'
    AND m.derived_key IS NULL AND m.retired_at IS NULL AND m.superseded_reason IS NULL
), judged AS MATERIALIZED (
  SELECT m.id,
         CASE WHEN {IDENTITY_CONDITION} THEN 'identity or persona'
              WHEN m.pinned THEN 'pinned'
              WHEN NOT {not_undone(NAME, "m.content_hash", "m.id::text")} THEN 'taken back by a person'
         END AS reason
  FROM working m WHERE m.ends_at <= :as_of
), retired AS (
  UPDATE memories m SET retired_at = :as_of, retired_by_run = :run_id, retired_reason = '{WORKING_EXPIRED}'
  FROM judged j
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = j.id AND j.reason IS NULL
  RETURNING m.id
)
SELECT (SELECT count(*) FROM working) AS working, (SELECT count(*) FROM judged) AS over,
       (SELECT array_agg(id ORDER BY id) FROM retired) AS retired,
       (SELECT jsonb_object_agg(reason, times) FROM (
          SELECT reason, count(*) AS times FROM judged WHERE reason IS NOT NULL GROUP BY reason) AS r) AS kept
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', m.content_hash, m.id::text) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'id' AS uuid)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = '{NAME}' AND c.table_name = 'memories' AND c.operation = 'update'
"""


async def working_expiry(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Retire the scope's working memories whose time is over; pinned ones and identity stay.

    The candidates are those whose time is over. Reminders and beliefs follow what was retired. What a person brought
    back, by undo or restore, is not retired again.
    """
    settings = context.section(NAME, WorkingExpirySettings)
    row = await connection.row(_WRITE, lifetime=timedelta(hours=settings.default_hours), reconsider=context.reconsider)
    assert row is not None  # a SELECT without FROM has one row
    retired = list(row["retired"] or ())
    beliefs = await left(connection, retired, "its evidence was working memory that expired", at=connection.as_of)
    return StepOutcome(
        candidates=row["over"],
        changed=len(retired),
        skipped=dict(sorted((row["kept"] or {}).items())),
        sample=tuple(str(memory_id) for memory_id in retired[:SAMPLE_SIZE]),
        counts={"working_expired": len(retired), "beliefs_affected": beliefs},
        reason=""
        if retired
        else "there is no working memory"
        if not row["working"]
        else "no working memory is over yet"
        if not row["over"]
        else "every working memory that is over is protected",
    )


def _enabled(context: RunContext) -> bool:
    return context.section(NAME, WorkingExpirySettings).enabled


STEP = Step(NAME, working_expiry, undone=UNDONE, enabled=_enabled)
