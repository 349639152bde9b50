"""Pin, retract and restore: what a person takes out of memory, keeps in it or brings back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.beliefs.cascade import revive_superseded_by
from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidTime, NotFound
from memory_core.layers.leaving import left
from memory_core.layers.own_rows import own_memory
from memory_core.layers.scopes import enter_scope
from memory_core.scope import TenantScope

WORKING_EXPIRY = "working_expiry"
WORKING_EXPIRED = "working memory expired"
"""The phase that retires working memories, and the reason that it gives."""

_PIN = """
UPDATE memories SET pinned = :pinned
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid) AND pinned <> :pinned
"""

_RETRACT = """
UPDATE memories SET retired_at = :at, retired_reason = :reason, retired_by_run = NULL,
  properties = properties || jsonb_build_object('retracted_by', CAST(:who AS text))
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

# The version that came back is the newest of its external id again.
_NEWEST_AGAIN = """
SELECT o.id FROM memories o JOIN memories w ON w.tenant_id = o.tenant_id AND w.scope_path = o.scope_path
WHERE o.tenant_id = :tenant_id AND o.scope_path = :scope_path AND o.id = ANY(CAST(:revived AS uuid[]))
  AND w.id = CAST(:wrong AS uuid) AND w.is_latest AND w.external_id = o.external_id
ORDER BY o.recorded_at DESC, o.id DESC LIMIT 1
"""
_LATEST = """
UPDATE memories SET is_latest = :latest
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

# Reminders that its retirement called off are due again; a run or a person may have retired it. Working memory whose
# time is over stays over, so that only a decision keeps the next night from retiring it again.
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
  RETURNING m.id, m.layer, m.superseded_reason
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
  SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text),
         slowwave.decision_key('{WORKING_EXPIRY}', content_hash, id::text), '{WORKING_EXPIRY}', 'undone',
         jsonb_build_array(id), CAST(:at AS timestamptz)
  FROM asked WHERE retired_reason = '{WORKING_EXPIRED}'
  ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
  SET verdict = 'undone', decided_at = excluded.decided_at
)
SELECT id, superseded_reason FROM restored ORDER BY id
"""

_RUN = """
SELECT count(*) FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:run AS uuid)
"""

_RETIRED_BY_RUN = """
SELECT id, derived_key IS NOT NULL AS derived FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND retired_by_run = CAST(:run AS uuid)
  AND retired_at IS NOT NULL
ORDER BY id
"""


async def pin(database: Database, scope: TenantScope, memory: UUID | str) -> dict[str, Any]:
    """Protect a memory: no run retires or supersedes it.

    Raises:
        NotFound: there is no such memory in the scope itself.
    """
    return await _set_pinned(database, scope, memory, True)


async def unpin(database: Database, scope: TenantScope, memory: UUID | str) -> dict[str, Any]:
    """Take a memory's protection away.

    Raises:
        NotFound: there is no such memory in the scope itself.
    """
    return await _set_pinned(database, scope, memory, False)


async def retract(
    database: Database,
    scope: TenantScope,
    memory: UUID | str,
    reason: Literal["wrong", "outdated"] | str,
    *,
    who: str,
    at: datetime,
) -> dict[str, Any]:
    """Retire a memory by hand. Beliefs lose its support; what a wrong one had superseded comes back.

    Raises:
        NotFound: there is no such memory in the scope itself.
        InvalidInput: there is no such reason, or it is retired already.
    """
    if reason not in ("wrong", "outdated"):
        raise InvalidInput(f"There is no reason {reason!r}.", hint="Say wrong or outdated.")
    _zoned(at)
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        row = await own_memory(connection, memory)
        if row["retired_at"] is not None:
            raise InvalidInput(
                f"The memory is retired already ({row['retired_reason']}).", hint="`slowwave restore` brings it back."
            )
        await connection.execute(_RETRACT, id=row["id"], reason=reason, who=who, at=at)
        beliefs = await left(connection, [row["id"]], f"a supporting memory was retracted as {reason}", at=at)
        revived: Sequence[UUID] = ()
        if reason == "wrong":
            revived = await revive_superseded_by(connection, row["id"], at)
            await _newest_again(connection, row["id"], revived)
        await connection.commit()
    return {
        "id": str(row["id"]),
        "status": "retired",
        "retired_reason": reason,
        "content": row["content"],
        "revived": [str(memory_id) for memory_id in revived],
        "beliefs_changed": beliefs,
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


async def restore(
    database: Database, scope: TenantScope, memory: UUID | str, *, who: str, at: datetime
) -> dict[str, Any]:
    """Bring a retired memory back; SHMR looks at it again, and prune counts it as used now.

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
                hint="Retract what replaced it as wrong to bring it back; `slowwave why` says what did.",
            )
        await connection.execute(_RESTORE, ids=[row["id"]], at=at)
        await connection.commit()
    return {
        "id": str(row["id"]),
        "status": "superseded" if row["superseded_reason"] else "current",
        "was_retired": row["retired_reason"],
        "content": row["content"],
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


async def restore_run(
    database: Database, scope: TenantScope, run_id: UUID, *, who: str, at: datetime
) -> dict[str, Any]:
    """Bring back all that one run retired and that is still retired; nothing else of the run is undone.

    Raises:
        NotFound: there is no such run in the scope.
    """
    _zoned(at)
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        if not await connection.scalar(_RUN, run=run_id):
            raise NotFound(f"There is no run {run_id} in {scope}.", hint="`slowwave runs` lists them.", id=str(run_id))
        retired = await connection.rows(_RETIRED_BY_RUN, run=run_id)
        ids = [row["id"] for row in retired if not row["derived"]]
        await connection.execute(_RESTORE, ids=ids, at=at)
        await connection.commit()
    return {
        "run_id": str(run_id),
        "status": "restored" if ids else "nothing to restore",
        "restored": [str(memory_id) for memory_id in ids],
        "summaries_left": len(retired) - len(ids),
        "reason": "" if ids else "nothing that this run retired is still retired",
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


async def _set_pinned(database: Database, scope: TenantScope, memory: UUID | str, pinned: bool) -> dict[str, Any]:
    async with database.scoped(scope) as connection:
        row = await own_memory(connection, memory)
        result = await connection.execute(_PIN, id=row["id"], pinned=pinned)
        await connection.commit()
    changed = bool(result.rowcount)
    return {
        "id": str(row["id"]),
        "pinned": pinned,
        "changed": changed,
        "reason": "" if changed else f"it was {'' if pinned else 'not '}pinned already",
        "content": row["content"],
        "scope": str(scope),
    }


async def _newest_again(connection: ScopedConnection, wrong: UUID, revived: Sequence[UUID]) -> None:
    newest = await connection.scalar(_NEWEST_AGAIN, revived=list(revived), wrong=wrong)
    if newest is not None:
        # Two statements in this order: an external id has one latest row at any moment.
        await connection.execute(_LATEST, id=wrong, latest=False)
        await connection.execute(_LATEST, id=newest, latest=True)


def _zoned(at: datetime) -> None:
    if at.utcoffset() is None:
        raise InvalidTime("The time has no zone.", hint="Give it as UTC.")
