"""What a line means, by format: each reader turns one decoded line into one memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memory_core.errors import InvalidInput
from memory_core.interchange.chat import read_chat_turn
from memory_core.layers.records import NewMemory

READERS: dict[str, Callable[[Any], NewMemory]] = {"jsonl": NewMemory.read, "chat": read_chat_turn}


def reader_of(name: str) -> Callable[[Any], NewMemory]:
    """The reader of a format; it raises `InvalidInput` with a reason for a line it cannot take.

    Raises:
        InvalidInput: there is no such format.
    """
    reader = READERS.get(name)
    if reader is None:
        raise InvalidInput(
            f"There is no import format {name!r}.", hint=f"This version reads {' and '.join(sorted(READERS))}."
        )
    return reader
