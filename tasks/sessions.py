"""Where a task gets its database from: never as an argument, which could not leave the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from memory_core.database.engine import Database
from memory_core.models.pacing import paced_by
from memory_core.settings import Settings
from tasks.limits import shared_pace

_OPEN: ContextVar[tuple[asyncio.AbstractEventLoop, Database] | None] = ContextVar("_OPEN", default=None)


@asynccontextmanager
async def session() -> AsyncIterator[Database]:
    """The database of this process's settings, read from its environment and its settings file.

    A task that runs in its flow's process and event loop shares the flow's connections; elsewhere, as on a
    Dask or Ray worker, it opens its own and closes them at the end.

    Raises:
        SlowwaveError: the settings are not valid, or the embedded server cannot be started.
    """
    loop = asyncio.get_running_loop()
    known = _OPEN.get()
    if known is not None and known[0] is loop:
        yield known[1]
        return
    # Starting the embedded server may take a while, and the loop has other things to do.
    async with await asyncio.to_thread(lambda: Database.open(Settings.load())) as database:
        token = _OPEN.set((loop, database))
        try:
            with paced_by(shared_pace(database.settings)):
                yield database
        finally:
            _OPEN.reset(token)
