"""What a command prints and how it ends: one JSON document or tables on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from memory_core.errors import InvalidInput, SlowwaveError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

DONE_STATUSES = ("applied", "previewed", "undone")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SHORTEST_ID = 8


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    PARTLY_DONE = 3


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(document, ensure_ascii=False, indent=2, default=_plain, allow_nan=False), flush=True)


def print_error(error: BaseException, *, as_json: bool) -> ExitCode:
    """Say in one line on stderr what went wrong and what to do; with `as_json` as a document on stdout too."""
    document = error_document(error)
    say(" ".join(("error:", *document["message"].split(), *document["hint"].split())))
    try:
        if as_json:
            print_json(document)
        sys.stdout.flush()
    except OSError:
        # The line on stderr has said it, and stdout takes nothing more.
        drop_output()
    return ExitCode.BAD_INPUT if isinstance(error, InvalidInput) else ExitCode.FAILED


def drop_output() -> None:
    """Give up on what stdout did not take, so that the interpreter does not complain of it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_document(error: BaseException) -> dict[str, Any]:
    """An error as `{"error", "message", "hint", …}`."""
    if isinstance(error, SlowwaveError):
        return error.to_dict()
    if isinstance(error, KeyboardInterrupt):
        return {
            "error": "Interrupted",
            "message": "Interrupted.",
            "hint": "Start the command again; it goes on where it was.",
        }
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return {
            "error": "NoSpaceLeft",
            "message": f"{error.filename or 'The output'} cannot be written: no space is left.",
            "hint": "Make room, and start the command again.",
        }
    message = " ".join(str(error).split()) or "no message"
    return {
        "error": type(error).__name__,
        "message": f"Something unexpected happened: {type(error).__name__}: {message}",
        "hint": "Run it again with --debug to see where.",
    }


def say(line: str) -> None:
    """One line for the person, on stderr."""
    print(plain(line), file=sys.stderr, flush=True)


def plain(text: object) -> str:
    """Text that cannot steer a terminal: control and direction characters become visible or blank."""
    return _CONTROL.sub(lambda match: " " if match[0].isspace() else "\ufffd", str(text))


def console() -> Console:
    """The console of stdout; colours only on a terminal."""
    from rich.console import Console

    # A pipe has no width of its own, and a table cut to 80 columns would lose what somebody wants to search.
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=False)


def print_rich(renderable: RenderableType) -> None:
    """Print a rich renderable on stdout."""
    console().print(renderable)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows as a table, a list in a cell as lines; where there are no rows, the sentence that says why."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    listed = [[Text(_cell(cell)) for cell in row] for row in rows]
    if not listed:
        print(plain(empty))
        return
    table = Table(title=Text(plain(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in listed:
        table.add_row(*cells)
    print_rich(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one a line; what is None is left out."""
    shown = {name: value for name, value in fields.items() if value is not None and value != ""}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        print(f"{name.ljust(width)}  {plain(value)}")


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The shortest starts, of 8 digits or more, that tell the ids apart."""
    known = set(ids)
    for length in (_SHORTEST_ID, 13, 18, 23, 28):
        if len({id[:length] for id in known}) == len(known):
            return {id: id[:length] for id in known}
    return {id: id for id in known}


def day_and_time(moment: str | None) -> str:
    """A stored time for people: `2026-03-01 03:00` in UTC."""
    return "" if moment is None else moment[:16].replace("T", " ")


def exit_code_of(statuses: Sequence[str]) -> ExitCode:
    """The exit code of runs over several scopes: done, partly done, or failed where none was done at all."""
    done = sum(status in DONE_STATUSES for status in statuses)
    if done == len(statuses):
        return ExitCode.DONE
    return ExitCode.PARTLY_DONE if done or "partial" in statuses else ExitCode.FAILED


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(plain(line) for line in value)
    return "" if value is None else plain(value)


def _plain(value: object) -> object:
    match value:
        case datetime() | date():
            return value.isoformat()
        case UUID():
            return str(value)
        case Decimal():
            return float(value)
        case set() | frozenset() | tuple():
            return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
