"""Times on the command line: ISO 8601 with a zone, or a date with one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory_core.cli.times import now, parse_time
from memory_core.errors import InvalidTime


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T03:00:00Z", datetime(2026, 3, 1, 3, tzinfo=UTC)),
        ("2026-03-01t03:00:00z", datetime(2026, 3, 1, 3, tzinfo=UTC)),
        (" 2026-03-01 04:00+01:00 ", datetime(2026, 3, 1, 3, tzinfo=UTC)),
        ("2026-03-01Z", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01+02:00", datetime(2026, 2, 28, 22, tzinfo=UTC)),
        ("2026-03-01T03:00:00.250000-05:00", datetime(2026, 3, 1, 8, 0, 0, 250000, tzinfo=UTC)),
    ],
)
def test_a_time_with_a_zone_is_read_as_utc(text: str, expected: datetime) -> None:
    """Whatever the zone, the same moment comes out in UTC."""
    found = parse_time(text)
    assert found == expected
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-03-01", "has no time zone"),
        ("2026-03-01T03:00:00", "has no time zone"),
        ("yesterday", "is not a time"),
        ("", "is not a time"),
        ("2026-02-30T00:00:00Z", "is not a time"),
        ("0001-01-01T00:00:00+10:00", "is out of range"),
    ],
)
def test_any_other_time_is_refused_with_an_example(text: str, why: str) -> None:
    """A guessed zone would move a night by hours."""
    with pytest.raises(InvalidTime, match=why) as caught:
        parse_time(text)
    assert "2026-03-01T03:00:00Z" in caught.value.hint


def test_the_clock_has_a_zone() -> None:
    """A naive now would be refused further down."""
    assert now().tzinfo is UTC
