"""Holding scopes for a run: those that are free at once, and those that others hold as they become free."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from memory_core.database.engine import Database
from memory_core.runs.locks import held_scopes
from memory_core.scope import TenantScope

Work = Callable[[Sequence[TenantScope], Sequence[TenantScope]], Awaitable[list[dict[str, Any]]]]


@asynccontextmanager
async def hold(
    database: Database, scopes: Sequence[TenantScope], *, wait: float | None = None
) -> AsyncIterator[list[TenantScope]]:
    """Hold the scopes for the length of a run; yields those that are free, in the given order.

    Args:
        wait: seconds to wait where none is free; None for the setting `scope_wait`.
    """
    seconds = database.settings.scope_wait if wait is None else wait
    async with held_scopes(database, scopes, wait=seconds) as held:
        yield [scope for scope in scopes if scope in held]


async def in_turns(database: Database, scopes: Sequence[TenantScope], work: Work) -> list[dict[str, Any]]:
    """Do the work in the scopes that are free, then in those that become free while the setting `scope_wait` lasts.

    A scope that another run holds keeps none of the others waiting, and nothing is held while one is waited for.

    Args:
        work: is called with scopes and with those of them that are held, and gives one document a scope, in order. The
            last call also gets what stayed busy.

    Returns:
        one document a scope, in the order of `scopes`.
    """
    # The clock of the machine, not of the run: another process has to be waited for.
    until = monotonic() + database.settings.scope_wait
    documents: dict[TenantScope, dict[str, Any]] = {}
    left = list(dict.fromkeys(scopes))
    while left:
        async with hold(database, left, wait=max(0.0, until - monotonic())) as held:
            turn = held if held and monotonic() < until else left
            documents.update(zip(turn, await work(turn, held), strict=True))
        left = [scope for scope in left if scope not in documents]
    return [documents[scope] for scope in scopes]
