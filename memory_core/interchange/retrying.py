"""A transaction tried again where another got in the way, or the connection was lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memory_core.errors import TransientError

ATTEMPTS = 5
FIRST_WAIT = 0.1
"""Seconds; doubled each time, and spread by half so that two writers do not meet again."""

Result = TypeVar("Result")


async def retried(transaction: Callable[[], Awaitable[Result]]) -> Result:
    """The result of a transaction that may safely be done again.

    Raises:
        TransientError: it failed at every attempt.
    """
    for attempt in range(ATTEMPTS - 1):
        try:
            return await transaction()
        except TransientError:
            await asyncio.sleep(FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.5))
    return await transaction()
