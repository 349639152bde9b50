"""Tells the terminal how far a replay is: a listener of this process, which no flow parameter could carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int, str], None]
"""Called with what is done, what there is in all, and what comes next in words."""

_LISTENER: ContextVar[Listener | None] = ContextVar("_LISTENER", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Flows that run inside this block in this process tell the listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(done: int, total: int, what: str) -> None:
    """Tell the listener, where there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(done, total, what)
