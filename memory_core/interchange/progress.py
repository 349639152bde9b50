"""How far an import is, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """A moment of an import.

    Attributes:
        lines: lines read.
        done: lines whose memories are stored, known or rejected.
        bytes_read: bytes read.
        bytes_total: the file's size; None for standard input.
        stage: `reading` while lines are taken in, `linking` while edges and corrections are.
    """

    lines: int
    done: int
    bytes_read: int
    bytes_total: int | None
    stage: str = "reading"


ProgressCallback: TypeAlias = Callable[[ImportProgress], None]
