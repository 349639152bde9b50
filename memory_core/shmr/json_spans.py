"""Where a JSON value ends inside other text, and reading it strictly.

A hand-written scanner: it looks at each character once and stops at the first one that no JSON value can hold, so that
a bracket in prose costs next to nothing.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

_CLOSERS = {"[": "]", "{": "}"}
_SPACE = " \t\r\n"
_AFTER_BRACKET = frozenset('[]{"-0123456789tfnNI')
_AFTER_BRACE = frozenset('"}')
_OUTSIDE_STRINGS = frozenset(' \t\r\n,:+-.0123456789eEtrufalsnNIity[]{}"')


class RefusedJSON(ValueError):
    """Valid or nearly valid JSON that is refused: `duplicate_key` or `not_finite`."""


class Span(NamedTuple):
    """What `json_span` saw.

    Args:
        end: the place after the value; None where no value is complete.
        reached: the place after the last character looked at.
        too_deep: whether it gave up because of the depth.
    """

    end: int | None
    reached: int
    too_deep: bool = False


def json_span(text: str, start: int, max_depth: int) -> Span:
    """The extent of the array or object whose opening bracket stands at `start`; brackets and strings only."""
    position = start + 1
    while position < len(text) and text[position] in _SPACE:
        position += 1
    allowed = _AFTER_BRACKET if text[start] == "[" else _AFTER_BRACE
    if position < len(text) and text[position] not in allowed:
        return Span(None, start + 1)
    open_brackets = [text[start]]
    while position < len(text):
        character = text[position]
        if character not in _OUTSIDE_STRINGS:
            return Span(None, position)
        if character == '"':
            position = _string_end(text, position)
            continue
        if character in _CLOSERS:
            open_brackets.append(character)
            if len(open_brackets) > max_depth:
                return Span(None, position, too_deep=True)
        elif character in "]}":
            if _CLOSERS[open_brackets.pop()] != character:
                return Span(None, position)
            if not open_brackets:
                return Span(position + 1, position + 1)
        position += 1
    return Span(None, len(text))


def strict_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        RefusedJSON: an object has a key twice, or a number is NaN, infinite or too large for a float.
        ValueError: it is not JSON.
    """
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float, object_pairs_hook=_unique_keys)


def _string_end(text: str, quote: int) -> int:
    """The place after the string that starts at `quote`; the text's end where it is not closed."""
    position = quote + 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text[position] == '"':
            return position + 1
        else:
            position += 1
    return len(text)


def _refuse_constant(name: str) -> float:
    raise RefusedJSON("not_finite")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise RefusedJSON("not_finite")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise RefusedJSON("duplicate_key")
    return document
