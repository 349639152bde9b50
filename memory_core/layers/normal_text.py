"""Text in one form: what is written differently and means the same compares equal."""

from __future__ import annotations

import re
import unicodedata

_MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                "november", "december")  # fmt: skip
_MONTHS = {name[:length]: f"{i:02d}" for i, name in enumerate(_MONTH_NAMES, 1) for length in (3, len(name))}
MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
"""Regular expression: a month's name, whole or of three letters, case folded; one group."""

_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(\d{4}))?\b"
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{MONTH}{_YEAR}")
_MONTH_DAY = re.compile(rf"\b{MONTH}\s+{_DAY}\b{_YEAR}")
_TWELVE_HOUR = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s*([ap])\.?m\b\.?")
_CLOCK = re.compile(r"\b(\d):(\d{2})\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SMALL_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
                  "twelve")  # fmt: skip
_NUMBERS = {word: str(number) for number, word in enumerate(_SMALL_NUMBERS)}
_UNITS = {"kilometres": "km", "kilometers": "km", "kilograms": "kg", "percent": "%", "per cent": "%", "euros": "eur",
          "euro": "eur", "dollars": "usd", "hours": "hour", "minutes": "minute", "days": "day"}  # fmt: skip
_WORD_VALUES = re.compile(r"\b(" + "|".join(sorted(_NUMBERS | _UNITS, key=len, reverse=True)) + r")\b")
_ARTICLE = re.compile(r"^(?:the|an|a)\s+(?=\S)")


def normalise(text: str) -> str:
    """Text in one form: NFC, case folded, single spaces, without a leading article or trailing punctuation."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold().replace("’", "'"))
    return _ARTICLE.sub("", " ".join(folded.split()).strip(' .,;:!?"“”')).strip()


def normalise_value(text: str) -> str:
    """`normalise`, and numbers, dates (mm-dd or yyyy-mm-dd), clock times (HH:MM) and common units in one form."""
    value = _THOUSANDS.sub("", normalise(text))
    value = _TWELVE_HOUR.sub(lambda m: f"{int(m[1]) % 12 + 12 * (m[3] == 'p'):02d}:{m[2] or '00'}", value)
    value = _CLOCK.sub(r"0\1:\2", value)
    value = _DAY_MONTH.sub(lambda m: _date(m[3], m[2], m[1]), value)
    value = _MONTH_DAY.sub(lambda m: _date(m[3], m[1], m[2]), value)
    return _WORD_VALUES.sub(lambda m: _NUMBERS.get(m[1]) or _UNITS[m[1]], value).strip()


def _date(year: str | None, month: str, day: str) -> str:
    return f"{year}-{_MONTHS[month]}-{int(day):02d}" if year else f"{_MONTHS[month]}-{int(day):02d}"
