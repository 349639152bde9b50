"""What the ledger stores as JSON: errors and outcomes, made safe for Postgres."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from memory_core.errors import SlowwaveError


def stored_json(document: Any) -> str:
    """The document as text that a jsonb column takes.

    Postgres refuses NUL, lone surrogates and NaN; an error that quotes a model's answer may hold any of them, and
    must not be lost for it. Values that JSON does not know are written as text.
    """
    return json.dumps(_storable(document), default=str)


def describe(error: BaseException) -> dict[str, Any]:
    """An error as the ledger keeps it: class, message, hint and data."""
    if isinstance(error, SlowwaveError):
        return error.to_dict()
    if isinstance(error, SQLAlchemyError):
        # Without the statement, its parameters and the DETAIL line: they hold memory text.
        original = getattr(error, "orig", None) or error
        message = next(iter(str(original).strip().splitlines()), "")
        return {"error": type(original).__name__, "message": message, "hint": ""}
    return {"error": type(error).__name__, "message": str(error), "hint": ""}


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(str(name)): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value
