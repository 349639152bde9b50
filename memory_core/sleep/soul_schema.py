"""Coerces a value to the type its SOUL field has, or says why it cannot be. Pure."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from memory_core.errors import InvalidInput

LARGEST_INT = 2**63 - 1
LONGEST_FIELD = 200
LONGEST_VALUE = 10_000
"""Characters of a value as JSON: a profile is read whole, and given to models."""

SHOWN_LENGTH = 60

_INT = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TRUE = frozenset(("true", "yes", "on", "1"))
_FALSE = frozenset(("false", "no", "off", "0"))

_OTHER_NAMES = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


class Refused(ValueError):
    """A value cannot be what its field is; the message is the reason, in words."""


def schema_of(types: Mapping[Any, Any]) -> dict[str, str]:
    """A schema as a caller gives it, with each type by its own name.

    Args:
        types: field to type: a name (`str`, `int`, `float`, `bool`, `date`, `list`, `dict`, or JSON Schema's names) or
            the Python type itself.

    Raises:
        InvalidInput: it is no mapping, a field is not named or named twice, or a type is not known.
    """
    if not isinstance(types, Mapping):
        raise InvalidInput("The SOUL schema is not a mapping.", hint='Give it as {"age": "int", "city": "str"}.')
    found: dict[str, str] = {}
    for given_field, given in types.items():
        name = given.__name__ if isinstance(given, type) else str(given).strip()
        name = _OTHER_NAMES.get(name.lower(), name.lower())
        field = field_name(given_field) if isinstance(given_field, str) else ""
        if not field:
            raise InvalidInput(
                f"A field of the SOUL schema has no name of 1 to {LONGEST_FIELD} characters.",
                hint="Give each field a name and a type.",
            )
        if field in found:
            raise InvalidInput(f"The SOUL schema has the field {field!r} twice.", hint="Give each field once.")
        if name not in _COERCIONS:
            raise InvalidInput(
                f"The SOUL schema gives {field!r} the type {given!r}, which is not known.",
                hint=f"It is one of: {', '.join(_COERCIONS)}.",
            )
        found[field] = name
    return found


def field_name(given: str) -> str:
    """A field's name in one form: composed, without white space around; empty where it cannot be one."""
    name = unicodedata.normalize("NFC", given).strip()
    return name if is_visible(name) and len(name) <= LONGEST_FIELD else ""


def is_visible(text: str) -> bool:
    """Whether a text holds anything to be seen: more than white space, controls and characters of no width."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


def type_of(value: Any) -> str:
    """The type of a JSON value, where no schema says what it should be.

    Raises:
        Refused: it is null.
    """
    if value is None:
        raise Refused("the value is null, and a field is never emptied")
    return type(value).__name__


def coerced(value: Any, type_name: str) -> Any:
    """The value as its type has it; JSON-able, a date as ISO 8601 text.

    Args:
        value: a JSON value.
        type_name: `str`, `int`, `float`, `bool`, `date`, `list` or `dict`.

    Raises:
        Refused: it is empty, or cannot be read as that type without guessing.
    """
    if value is None:
        raise Refused("the value is null, and a field is never emptied")
    if isinstance(value, str) and not is_visible(value):
        raise Refused("the value is blank, and a field is never emptied")
    if isinstance(value, (list, dict)) and not value:
        raise Refused("the value is empty, and a field is never emptied")
    found = _COERCIONS[type_name](value)
    _check_storable(found)
    if _is_nothing(found):
        raise Refused("the value is empty, and a field is never emptied")
    return found


def _is_nothing(value: Any) -> bool:
    """Whether there is nothing in it: no item of a list, however deep, says anything."""
    if isinstance(value, str):
        return not is_visible(value)
    if isinstance(value, list):
        return all(_is_nothing(item) for item in value)
    return value is None or value == {}


def _check_storable(value: Any) -> None:
    # A text that holds JSON may hold what Postgres's jsonb cannot: NaN, NUL, half a surrogate pair.
    try:
        written = json.dumps(value, allow_nan=False, ensure_ascii=False)
        written.encode()
    except (ValueError, RecursionError):
        raise Refused("the value holds something that cannot be stored") from None
    if "\\u0000" in written:
        raise Refused("the value holds something that cannot be stored")
    if len(written) > LONGEST_VALUE:
        raise Refused(f"the value is longer than {LONGEST_VALUE:,} characters")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _cannot(value, "text")
    try:
        return str(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        raise Refused(f"{_shown(value)} is too large") from None


def _int(value: Any) -> int:
    if isinstance(value, str) and _INT.fullmatch(value.strip()):
        value = int(value.strip())
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _cannot(value, "a whole number")
    if abs(value) > LARGEST_INT:
        raise Refused(f"{_shown(value)} is too large")
    return value


def _float(value: Any) -> float:
    if isinstance(value, str) and _FLOAT.fullmatch(value.strip()):
        value = float(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _cannot(value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Refused(f"{_shown(value)} is not a finite number")
    return number


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)):
        word = str(value).strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    raise _cannot(value, "true or false")


def _date(value: Any) -> str:
    if isinstance(value, str) and _DATE.fullmatch(value.strip()):
        try:
            return date.fromisoformat(value.strip()).isoformat()
        except ValueError:
            raise Refused(f"there is no day {value.strip()}") from None
    raise _cannot(value, "a date; write it as 2026-03-01")


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        found = _from_json(value, list)
        if found is not None:
            return list(found)
        if value.lstrip()[0] not in "[{":  # that would be JSON gone wrong, and its parts are no items
            return [part.strip() for part in value.split(",") if is_visible(part)]
    raise _cannot(value, "a list")


def _dict(value: Any) -> dict[str, Any]:
    found = _from_json(value, dict) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise _cannot(value, "an object of names and values")
    return found


def _from_json(text: str, wanted: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, wanted) else None


def _cannot(value: Any, wanted: str) -> Refused:
    return Refused(f"{_shown(value)} is not {wanted}")


def _shown(value: Any) -> str:
    # Bounded: the reason is kept in the database and printed.
    if isinstance(value, int) and abs(value) > LARGEST_INT:
        return "a number of more than 64 bits"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN_LENGTH else f"{text[: SHOWN_LENGTH - 1]}…"


_COERCIONS: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "date": _date,
    "list": _list,
    "dict": _dict,
}
