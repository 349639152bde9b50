"""Pin and retract: what a person keeps in memory or takes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.beliefs.cascade import revive_superseded_by
from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidTime
from memory_core.layers.leaving import left
from memory_core.layers.own_rows import own_memory
from memory_core.layers.scopes import enter_scope
from memory_core.scope import TenantScope

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
