"""Pieces of text that several views of the terminal share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]

_LONGEST = 100


def cut(value: object) -> str:
    """A value in one line of at most a hundred characters."""
    words = "" if value is None else " ".join(str(value).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def evidence_lines(pieces: Sequence[Document]) -> list[str]:
    """A belief's evidence, one line a memory."""
    return [f"{piece['role']}: {cut(piece['content'])}" for piece in pieces]
