"""Times as a person writes them on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from memory_core.errors import InvalidTime

_DATE_WITH_ZONE = re.compile(r"(\d{4}-\d{2}-\d{2})(Z|[+-]\d{2}:?\d{2})", re.IGNORECASE)
_EXAMPLE = "Write it as 2026-03-01T03:00:00Z, 2026-03-01T04:00+01:00 or 2026-03-01Z."


def parse_time(text: str) -> datetime:
    """A time in UTC from ISO 8601 with a zone, or from a date with one (its midnight).

    Raises:
        InvalidTime: it is not a time, or has no zone, or lies outside the years 1 to 9999.
    """
    written = text.strip()
    if match := _DATE_WITH_ZONE.fullmatch(written):
        written = f"{match[1]}T00:00:00{match[2]}"
    try:
        moment = datetime.fromisoformat(written.upper())
    except ValueError as error:
        raise InvalidTime(f"{text!r} is not a time.", hint=_EXAMPLE) from error
    if moment.tzinfo is None:
        raise InvalidTime(f"The time {text!r} has no time zone.", hint=_EXAMPLE)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidTime(f"The time {text!r} is out of range.", hint=_EXAMPLE) from error


def now() -> datetime:
    """The clock, in UTC. Commands ask once and pass it on; nothing below the command line asks."""
    return datetime.now(UTC)
