"""Restore: a person brings back what was retired, one memory or all that one run retired.

It is an act of a person, like undoing a run: the phase that retired a memory leaves it alone from then on, until its
content changes or a run is asked to reconsider. Beliefs that only lacked it are held again.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs.regained import Regained, regain_support
from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidTime, NotFound
from memory_core.layers.leaving import left
from memory_core.layers.own_rows import own_memory
from memory_core.layers.scopes import enter_scope
from memory_core.scope import TenantScope

PRUNE_ORPHANS = "prune_orphans"
NOISE = "noise"
"""The phase that retires noise, and how the reason that it gives begins."""

WORKING_EXPIRY = "working_expiry"
WORKING_EXPIRED = "working memory expired"
"""The phase that retires working memories, and the reason that it gives."""

NEXT_NIGHT = "the next harmonize or nightly run decides on them"
SHOWN = 20
"""Memories that could not be brought back and are named, at most."""

# Reminders that its retirement called off are due again; a run or a person may have retired it.
_RESTORE = f"""
WITH asked AS (
  SELECT id, retired_at, retired_reason, content_hash FROM memories
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[]))
    AND retired_at IS NOT NULL AND derived_key IS NULL
), restored AS (
  UPDATE memories m
  SET retired_at = NULL, retired_reason = NULL, retired_by_run = NULL, properties = m.properties - 'retracted_by',
      last_activity_at = greatest(m.last_activity_at, CAST(:at AS timestamptz))
  FROM asked WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = asked.id
  RETURNING m.id, m.layer
), due AS (
  UPDATE triggers t SET state = 'pending', resolved_at = NULL
  FROM asked WHERE t.tenant_id = :tenant_id AND t.scope_path = :scope_path AND t.memory_id = asked.id
    AND t.state = 'cancelled' AND t.resolved_at >= asked.retired_at
), queued AS (
  INSERT INTO harmonize_queue AS q (tenant_id, scope_path, memory_id, enqueued_at, reason)
  SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), id, CAST(:at AS timestamptz), 'restored'
  FROM restored WHERE layer IN ('semantic', 'episodic')
  ON CONFLICT (tenant_id, memory_id) DO UPDATE
  SET enqueued_at = excluded.enqueued_at, reason = 'restored', harmonized_by_run = NULL
), kept AS (
  INSERT INTO decisions AS d (tenant_id, scope_path, decision_key, phase, verdict, members, decided_at)
  SELECT DISTINCT ON (decision_key) CAST(:tenant_id AS text), CAST(:scope_path AS text), decision_key, phase, 'undone',
         members, CAST(:at AS timestamptz)
  FROM (
    SELECT slowwave.decision_key('{WORKING_EXPIRY}', content_hash, id::text) AS decision_key,
           '{WORKING_EXPIRY}' AS phase, jsonb_build_array(id) AS members
    FROM asked WHERE retired_reason = '{WORKING_EXPIRED}'
    UNION ALL
    SELECT slowwave.decision_key('{PRUNE_ORPHANS}', content_hash), '{PRUNE_ORPHANS}', jsonb_build_array(id)
    FROM asked WHERE starts_with(retired_reason, '{NOISE}:')
  ) AS retired_by_a_phase
  ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
  SET verdict = 'undone', decided_at = excluded.decided_at
)
SELECT id FROM restored ORDER BY id
"""

# Until it was retracted as wrong it was the newest of its external id; what had come back for it gives way again.
_NEWEST_AGAIN = """
WITH newest AS (
  SELECT r.id, o.id AS older
  FROM memories r JOIN memories o ON o.tenant_id = r.tenant_id AND o.scope_path = r.scope_path
  WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.id = CAST(:id AS uuid) AND NOT r.is_latest
    AND r.superseded_reason IS NULL AND o.external_id = r.external_id AND o.is_latest
    AND (o.recorded_at, o.id) < (r.recorded_at, r.id)
)
UPDATE memories m
SET is_latest = false,
    superseded_by = CASE WHEN m.superseded_reason IS NULL THEN n.id ELSE m.superseded_by END,
    superseded_at = CASE WHEN m.superseded_reason IS NULL THEN CAST(:at AS timestamptz) ELSE m.superseded_at END,
    superseded_reason = coalesce(m.superseded_reason, 'update')
FROM newest n
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = n.older
RETURNING m.id
"""
_LATEST = """
UPDATE memories SET is_latest = true
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

_RUN = "SELECT status FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:run AS uuid)"

# What the run retired is in its journal, also where it was brought back or erased since.
_RETIRED_BY_RUN = """
SELECT r.id, m.id IS NULL AS erased, m.derived_key IS NOT NULL AS derived, m.retired_reason,
       m.retired_by_run = CAST(:run AS uuid) AS still, m.superseded_reason, m.expires_at
FROM (SELECT CAST(row_key ->> 'id' AS uuid) AS id FROM run_changes
      WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:run AS uuid)
        AND table_name = 'memories' AND after ->> 'retired_by_run' = CAST(:run AS text)
      UNION
      SELECT id FROM memories WHERE tenant_id = :tenant_id AND scope_path = :scope_path
        AND retired_by_run = CAST(:run AS uuid)) AS r
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id
ORDER BY r.id
"""


async def restore(
    database: Database, scope: TenantScope, memory: UUID | str, *, who: str, at: datetime
) -> dict[str, Any]:
    """Bring a retired memory back; SHMR looks at it again, and the phase that retired it leaves it alone.

    Returns:
        its `status` afterwards: `current`, or `superseded` or `expired` with the `reason` why it is still out of
        default recall; `beliefs_held`, the beliefs that are held again with it, and `beliefs_waiting`, those that
        SHMR has to decide on; `gave_way`, the older version that had come back for it.

    Raises:
        NotFound: there is no such memory in the scope itself.
        InvalidInput: it is not retired, or a phase made it.
    """
    _zoned(at)
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        row = await own_memory(connection, memory)
        if row["derived_key"] is not None:
            raise InvalidInput(
                "The memory is a summary that a phase made.", hint="The next sleep makes it again where it is due."
            )
        if row["retired_at"] is None:
            raise InvalidInput(
                "The memory is not retired."
                if row["superseded_reason"] is None
                else f"The memory is not retired but superseded ({row['superseded_reason']}).",
                hint="Nothing is to be done."
                if row["superseded_reason"] is None
                else "Retract what replaced it as wrong to bring it back; `slowwave why` says what did.",
            )
        await connection.execute(_RESTORE, ids=[row["id"]], at=at)
        gave_way = await _newest_again(connection, row["id"], at)
        beliefs = await regain_support(connection, [row["id"]], at=at)
        await connection.commit()
    hidden = _hidden(row, at)
    return {
        "id": str(row["id"]),
        "status": hidden or "current",
        "reason": _WHY_HIDDEN[hidden].format(reason=row["superseded_reason"]) if hidden else "",
        "was_retired": row["retired_reason"],
        "content": row["content"],
        "gave_way": [str(memory_id) for memory_id in gave_way],
        **_beliefs(beliefs),
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


async def restore_run(
    database: Database, scope: TenantScope, run_id: UUID, *, who: str, at: datetime
) -> dict[str, Any]:
    """Bring back all that one run retired and that is still retired by it; nothing else of the run is undone.

    Returns:
        `status` (`restored`, `partly restored` or `nothing to restore`), the ids `restored`, how many of the rest were
        `not_restored` by reason, `left` (up to 20 of these by id, with the reason), and the beliefs as `restore`
        tells them.

    Raises:
        NotFound: there is no such run in the scope.
    """
    _zoned(at)
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        status = await connection.scalar(_RUN, run=run_id)
        if status is None:
            raise NotFound(f"There is no run {run_id} in {scope}.", hint="`slowwave runs` lists them.", id=str(run_id))
        retired = await connection.rows(_RETIRED_BY_RUN, run=run_id)
        ids = [row["id"] for row in retired if row["still"] and not row["derived"]]
        if ids:
            await connection.execute(_RESTORE, ids=ids, at=at)
        beliefs = await regain_support(connection, ids, at=at)
        await connection.commit()
    reasons = {row["id"]: reason for row in retired if (reason := _why_left(row, at))}
    short = [memory_id for memory_id, reason in reasons.items() if reason not in _NOTHING_LOST]
    return {
        "run_id": str(run_id),
        "status": "nothing to restore" if not ids else "partly restored" if short else "restored",
        "restored": [str(memory_id) for memory_id in ids],
        "not_restored": dict(sorted(Counter(reasons.values()).items())),
        "left": [{"id": str(memory_id), "reason": reasons[memory_id]} for memory_id in short[:SHOWN]],
        "reason": ""
        if ids
        else f"the run was {status}, and retired nothing"
        if not retired
        else "nothing that this run retired is still retired by it",
        **_beliefs(beliefs),
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


_MADE_AGAIN = "a summary, which the next sleep makes again where it is due"
_BACK = "brought back before"
_NOTHING_LOST = frozenset((_MADE_AGAIN, _BACK))

_WHY_HIDDEN = {
    "superseded": "it is superseded ({reason}); retract what replaced it as wrong to bring it into recall",
    "expired": "its own time is over; correct it to give it a new one",
}


def _why_left(row: RowMapping, at: datetime) -> str:
    """Why a memory that the run retired is not in default recall now, or was not touched; empty where it came back."""
    if row["erased"]:
        return "erased"
    if row["derived"]:
        return _MADE_AGAIN
    if row["retired_reason"] is not None and not row["still"]:
        return "retired again since, for another reason"
    if not row["still"]:
        return _BACK
    hidden = _hidden(row, at)
    return f"no longer retired, but {hidden}" if hidden else ""


def _hidden(row: RowMapping, at: datetime) -> str:
    """What still keeps a memory out of default recall once it is not retired any more; empty where nothing does."""
    if row["superseded_reason"] is not None:
        return "superseded"
    return "expired" if row["expires_at"] is not None and row["expires_at"] <= at else ""


async def _newest_again(connection: ScopedConnection, memory_id: UUID, at: datetime) -> list[UUID]:
    gave_way = list((await connection.execute(_NEWEST_AGAIN, id=memory_id, at=at)).scalars())
    if gave_way:
        # Two statements in this order: an external id has one latest row at any moment.
        await connection.execute(_LATEST, id=memory_id)
        await left(connection, gave_way, "a newer version of its evidence was restored", at=at)
    return gave_way


def _beliefs(found: Regained) -> dict[str, Any]:
    return {
        "beliefs_held": [str(belief_id) for belief_id in found.held],
        "beliefs_waiting": [str(belief_id) for belief_id in found.waiting],
        "waiting_for": NEXT_NIGHT if found.waiting else "",
    }


def _zoned(at: datetime) -> None:
    if at.utcoffset() is None:
        raise InvalidTime("The time has no zone.", hint="Give it as UTC.")
