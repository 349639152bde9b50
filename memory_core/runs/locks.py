"""One run a scope at a time: session-level advisory locks that end with the process that holds them.

A lock row with a lease would keep a scope busy after a crash until the lease ran out; Postgres ends an
advisory lock when the connection of a killed process closes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from memory_core.database.engine import Database
from memory_core.scope import TenantScope

_LOCK = text("""
SELECT name, pg_try_advisory_lock(hashtextextended('slowwave:' || name, 0)) AS held
FROM unnest(CAST(:names AS text[])) AS name
""")
_UNLOCK = text("""
SELECT pg_advisory_unlock(hashtextextended('slowwave:' || name, 0))
FROM unnest(CAST(:names AS text[])) AS name
""")

logger = logging.getLogger(__name__)


LONGEST_PAUSE = 2.0
"""Seconds between two looks at a scope that is waited for, at most."""


@asynccontextmanager
async def held_scopes(
    database: Database, scopes: Sequence[TenantScope], *, wait: float = 0
) -> AsyncIterator[frozenset[TenantScope]]:
    """Hold as many of the scopes as are free; yields those, the rest are busy.

    Args:
        wait: seconds to wait where none of them is. Nothing is held meanwhile, so that nobody waits in a circle.
    """
    by_name = {scope.scope_path: scope for scope in scopes}
    held: list[str] = []
    async with database.lock_connection() as connection:
        try:
            await _take(connection, sorted(by_name), held, wait)
            yield frozenset(by_name[name] for name in held)
        finally:
            await _release(connection, held)


async def _take(connection: AsyncConnection, names: Sequence[str], held: list[str], wait: float) -> None:
    """Take what is free; where nothing is, look again until something is or the time is over."""
    # The clock of the machine, not of the run: another process has to be waited for.
    until, pause, told = monotonic() + wait, 0.05, False
    while True:
        rows = (await connection.execute(_LOCK, {"names": names})).all()
        held += [row.name for row in rows if row.held]
        left = until - monotonic()
        if held or left <= 0:
            return
        if not told:
            busy = ", ".join(str(TenantScope.from_path(name)) for name in names[:5])
            logger.warning("Another run holds %s; waiting for up to %.0f s.", busy, left)
            told = True
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE)


async def _release(connection: AsyncConnection, names: Sequence[str]) -> None:
    """Give the locks back; a connection that cannot is closed, which ends them too."""
    try:
        await connection.execute(_UNLOCK, {"names": names})
    except DBAPIError as error:
        # What the holder did stays true: each step took its run's row, whoever else may have held the scope.
        reason = str(error.orig).strip().partition("\n")[0]
        logger.warning("The locks of %d scopes were lost before they were given back: %s", len(names), reason)
        await connection.invalidate()
    except BaseException:
        await connection.invalidate()
        raise
