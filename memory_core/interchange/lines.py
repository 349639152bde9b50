"""A file as numbered lines, read one at a time: a line that cannot be read is a reason, not the end of the import."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory_core.errors import InvalidInput

MAX_LINE = 1_000_000
"""Bytes of one line."""
KEPT_OF_LONG_LINE = 1_000
"""Bytes of a longer one that go into the rejects file, to tell which it was."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line that is not blank.

    Attributes:
        number: from 1.
        document: the decoded JSON; None where `reason` is given.
        text: the line as it stands in the file; of one that is too long, its beginning.
        reason: why it cannot be read; empty where it can.
    """

    number: int
    document: Any
    text: str
    reason: str = ""


def read_lines(stream: BinaryIO) -> Iterator[InputLine]:
    """The lines of a JSON Lines stream that are not blank.

    Raises:
        InvalidInput: it is no JSON Lines file at all: compressed, UTF-16, or one JSON array.
    """
    number, first = 0, True
    while data := stream.readline(MAX_LINE + 2):
        number += 1
        if number == 1:
            data = data.removeprefix(_BOM)
        stripped = data.strip()
        if first and stripped:
            _check_kind(stripped)
            first = False
        if len(data) > MAX_LINE and not data.endswith(b"\n"):
            _skip_rest(stream)
            yield InputLine(number, None, _text(data[:KEPT_OF_LONG_LINE]), f"longer than {MAX_LINE:,} bytes")
        elif stripped:
            yield _line(number, stripped)


def _line(number: int, data: bytes) -> InputLine:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return InputLine(
            number, None, _text(data), f"not UTF-8 (byte 0x{data[error.start]:02x} at position {error.start + 1})"
        )
    try:
        return InputLine(number, json.loads(text, parse_constant=_no_constant), text)
    except json.JSONDecodeError as error:
        return InputLine(number, None, text, f"not JSON ({error.msg} at column {error.colno})")
    except ValueError as error:
        return InputLine(number, None, text, f"not JSON ({error})")
    except RecursionError:
        return InputLine(number, None, text, "nested too deeply")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _skip_rest(stream: BinaryIO) -> None:
    while (data := stream.readline(MAX_LINE)) and not data.endswith(b"\n"):
        pass


def _check_kind(beginning: bytes) -> None:
    if beginning.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise InvalidInput("The file is compressed.", hint="Unpack it first.")
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput("The file is UTF-16.", hint="Save it as UTF-8.")
    if beginning.startswith(b"["):
        raise InvalidInput(
            "The file is one JSON array, and not JSON Lines.",
            hint="Write one object a line; `jq -c '.[]' FILE` does so.",
        )
