"""How fast a model may be asked: requests and tokens a minute, kept by waiting before each call.

A pace is a port. In one process `LocalPace` keeps it; where many processes ask the same provider, whoever runs them
puts a shared one in its place with `paced_by`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Protocol

from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest
from memory_core.models.tokens import estimate_tokens

_MINUTE = 60.0


class Pace(Protocol):
    """Something that makes callers wait for their turn."""

    async def wait(self, tokens: int) -> None:
        """Return when one more call may be made.

        Args:
            tokens: what the call may read and write at most.
        """


class LocalPace:
    """Spreads the calls of one process evenly, so that no minute sees more than its share and one call.

    Args:
        requests_a_minute: 0 for no limit.
        tokens_a_minute: 0 for no limit.
        now: seconds that only grow.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        requests_a_minute: int,
        tokens_a_minute: int,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._a_request = _MINUTE / requests_a_minute if requests_a_minute else 0.0
        self._a_token = _MINUTE / tokens_a_minute if tokens_a_minute else 0.0
        self._now = now
        self._sleep = sleep
        self._next = 0.0

    async def wait(self, tokens: int) -> None:
        """As `Pace.wait`; turns are given in the order of asking."""
        now = self._now()
        turn = max(now, self._next)
        self._next = turn + max(self._a_request, self._a_token * tokens)
        if turn > now:
            await self._sleep(turn - now)


class PacedModel:
    """A language model that is asked at a pace."""

    def __init__(self, language: LanguageModel, pace: Pace) -> None:
        self._language = language
        self._pace = pace

    @property
    def name(self) -> str:
        """The model's name."""
        return self._language.name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """As `LanguageModel.complete`, in turn; the wait is no part of the call's own time limit."""
        tokens = estimate_tokens(request.system) + estimate_tokens(request.prompt) + request.max_output_tokens
        await self._pace.wait(tokens)
        return await self._language.complete(request)

    async def check(self) -> None:
        """As `LanguageModel.check`; it costs no tokens and waits for nothing."""
        await self._language.check()


_SHARED: ContextVar[Pace | None] = ContextVar("_SHARED", default=None)


@contextmanager
def paced_by(pace: Pace | None) -> Iterator[None]:
    """Within it, every model that `paced` returns is asked at this pace; None leaves it to the process's own."""
    token = _SHARED.set(pace)
    try:
        yield
    finally:
        _SHARED.reset(token)


def paced(language: LanguageModel, requests_a_minute: int, tokens_a_minute: int) -> LanguageModel:
    """The model at the pace of `paced_by`, else at this process's own; as it is where there is no limit.

    Args:
        requests_a_minute, tokens_a_minute: 0 for no limit.
    """
    pace = _SHARED.get()
    if pace is not None:
        return PacedModel(language, pace)
    if not (requests_a_minute or tokens_a_minute):
        return language
    return PacedModel(language, _own_pace(requests_a_minute, tokens_a_minute))


@lru_cache(maxsize=8)
def _own_pace(requests_a_minute: int, tokens_a_minute: int) -> LocalPace:
    """One a process, whatever run asks."""
    return LocalPace(requests_a_minute, tokens_a_minute)
