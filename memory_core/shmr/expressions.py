"""Expressions: the surface of a sentence in one form before it is read as a clause.

Contractions are written out, openers such as "FYI," dropped, negations taken out (leaving their auxiliary, which
marks the verb), a few idioms replaced by the verb that they mean, and measures brought to one unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_core.layers.normal_text import normalise_value

_TITLES = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|No|vs|Inc|Ltd|approx|e\.g|i\.e)\.(?=\s)", re.IGNORECASE)
_SEVERAL = re.compile(r"\w{2}[.!?]\s+[\"“(]?[A-Z]|\n")
_CONTRACTED = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(\w+)n't\b"), r"\1 not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(\w+)'re\b"), r"\1 are"),
    (re.compile(r"\b(\w+)'ve\b"), r"\1 have"),
    (re.compile(r"\b(\w+)'ll\b"), r"\1 will"),
    (re.compile(r"\b(\w+)'d\b"), r"\1 would"),
    (re.compile(r"\b(it|he|she|that|there|here|what|who|where)'s\b"), r"\1 is"),
)
_IDIOMS = (
    (re.compile(r"\bcan not (?:stand|bear|abide)\b"), "dislikes"),
    (re.compile(r"\bwould rather (?:get|have|be|use|go)?\b"), "prefers"),
    (re.compile(r"\b(?:has|have) got\b"), "has"),
    (re.compile(r"\b(?:is|are|am) (?:fond of|into|keen on|a fan of|a big fan of)\b"), "likes"),
    (re.compile(r"\b(?:is|are|am) (?:no longer|not any ?more)\b"), "is not"),
    (re.compile(r"\btake(s?) place\b"), r"happen\1"),
    (re.compile(r"\btook place\b"), "happened"),
    (re.compile(r"\b(?:gave|has given|have given) up\b"), "stopped"),
    (re.compile(r"\bgive(s?) up\b"), r"stop\1"),
    (re.compile(r"\b(?:is|are|was|were|be|been) (?:located|situated|based|headquartered)\b"), "is"),
    (re.compile(r"\b(?:belongs|belonged) to\b"), "belongs"),
    (re.compile(r"\b(?:is|are) (?:called|named)\b"), "is"),
    (re.compile(r"\b(?:not|never) un(?=[a-z]{4})"), ""),
    (re.compile(r"\bthere (?:is|are) (.+?) (?:in|on|at|for) (.+)$"), r"\2 has \1"),
    (re.compile(r"\b(?:switched|turned) (?=on\b|off\b)"), ""),
)
_NEGATION = re.compile(r"\b(?:not(?! only| just)|never|no longer|none|neither|nor|without|hardly ever|no(?!\.? ?\d))\b")
_CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "dollar": "usd", "euro": "eur", "pound": "gbp", "franc": "chf"}
_SIGNED = re.compile(r"([$€£])\s?(\d+(?:\.\d+)?)")
_CODED = re.compile(r"\b(usd|eur|gbp|chf) (\d+(?:\.\d+)?)\b")
_SPELLED_CURRENCY = re.compile(r"\b(dollar|euro|pound|franc)s?\b")
_NUMBER_WORDS = re.compile(r"\b(?:\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand)\b")
_PAST_THE_HOUR = re.compile(r"\b(half|a quarter|quarter) past (\d{1,2})\b")
_PART_OF_DAY = re.compile(r"\b(\d{1,2}(?::\d{2})?) (?:o'clock )?in the (morning|afternoon|evening)\b")
_ANY_MORE = re.compile(r"\b(?:any ?more|any longer|at all)\b")
_OPENER = re.compile(r"^(?:[a-z]+(?: [a-z]+){0,3}),\s+(?=\S+ \S)")
_HYPHEN = re.compile(r"(?<=[a-z])-(?=[a-z])")
_NAMED = re.compile(r"[A-Z][a-z]")
_CONDITION = re.compile(r"^(?:if|when|unless|although|because|in|on|at|since|until|by|every|each|after|before)\b")

_UNITS = {
    "m": {"m": 1.0, "metre": 1.0, "meter": 1.0, "cm": 0.01, "centimetre": 0.01, "centimeter": 0.01, "mm": 0.001,
          "millimetre": 0.001, "millimeter": 0.001, "km": 1000.0, "kilometre": 1000.0, "kilometer": 1000.0},
    "kg": {"kg": 1.0, "kilo": 1.0, "kilogram": 1.0, "g": 0.001, "gram": 0.001, "mg": 1e-6, "milligram": 1e-6,
           "tonne": 1000.0},
    "byte": {"byte": 1.0, "kb": 1e3, "kilobyte": 1e3, "mb": 1e6, "megabyte": 1e6, "gb": 1e9, "gigabyte": 1e9,
             "tb": 1e12, "terabyte": 1e12},
    "second": {"ms": 0.001, "millisecond": 0.001, "second": 1.0, "sec": 1.0, "minute": 60.0, "min": 60.0,
               "hour": 3600.0, "hr": 3600.0, "day": 86400.0, "week": 604800.0, "fortnight": 1209600.0},
    "litre": {"l": 1.0, "litre": 1.0, "liter": 1.0, "ml": 0.001, "millilitre": 0.001, "milliliter": 0.001},
}  # fmt: skip
"""Units of lengths, masses, data, times and volumes, by the name of the one that they are brought to."""

_FACTORS = {name: (base, factor) for base, units in _UNITS.items() for name, factor in units.items()}
_SPELLED = "|".join(sorted((re.escape(name) for name in _FACTORS), key=len, reverse=True))
_MEASURE = re.compile(rf"\b(\d+(?:\.\d+)?|a|an|half an?)[ -]?({_SPELLED})s?\b(?!:)")
_SCALED = re.compile(r"\b(\d+(?:\.\d+)?)\s?(k|thousand|million)\b")


@dataclass(frozen=True, slots=True)
class Expression:
    """A sentence's text in one form, lower case, without its negations; `affirmed` is False where they are odd."""

    text: str
    affirmed: bool


def one_sentence(content: str) -> str | None:
    """The text without the stop at its end and the stops of titles; None where there are several sentences."""
    stripped = _TITLES.sub(r"\1", content.strip()).rstrip(".!")
    return None if _SEVERAL.search(stripped) else stripped


def expression_of(sentence: str) -> Expression:
    """Bring a sentence to one form."""
    text = _HYPHEN.sub(" ", _in_digits(_without_contractions(sentence)))
    opener = _OPENER.match(text)
    if opener and not _CONDITION.match(text) and not _NAMED.search(sentence[1 : opener.end()]):
        text = text[opener.end() :]
    for pattern, meant in _IDIOMS:
        text = pattern.sub(meant, text)
    text = _ANY_MORE.sub(" ", text)
    text, count = _NEGATION.subn(" ", text)
    text = _MEASURE.sub(_in_base_unit, _in_one_currency(_SCALED.sub(_unscaled, text)))
    return Expression(" ".join(text.split()), count % 2 == 0)


def _without_contractions(sentence: str) -> str:
    text = sentence.replace("’", "'").casefold()
    for pattern, whole in _CONTRACTED:
        text = pattern.sub(whole, text)
    return text


def _in_digits(text: str) -> str:
    """`normalise_value`, and number words above twelve and spoken hours as figures."""
    text = text.replace("no one", "nobody")
    if _NUMBER_WORDS.search(text):
        from number_parser import parse

        text = parse(text, language="en")
    text = normalise_value(text)
    spoken = _PAST_THE_HOUR.sub(lambda found: f"{found[2]}:{30 if found[1] == 'half' else 15}", text)
    spoken = _PART_OF_DAY.sub(lambda found: f"{found[1]} {'am' if found[2] == 'morning' else 'pm'}", spoken)
    return text if spoken == text else normalise_value(spoken)


def _in_base_unit(found: re.Match[str]) -> str:
    amount, unit = found[1], found[2]
    number = 0.5 if amount.startswith("half") else 1.0 if amount in ("a", "an") else float(amount)
    if amount in ("a", "an") and unit != "fortnight":
        return found[0]
    base, factor = _FACTORS[unit]
    return f"{number * factor:.10g} {base}"


def _in_one_currency(text: str) -> str:
    """Sums as number and code: "$5", "USD 5" and "5 dollars" are "5 usd"."""
    text = _SIGNED.sub(lambda found: f"{found[2]} {_CURRENCIES[found[1]]}", text)
    text = _CODED.sub(r"\2 \1", text)
    return _SPELLED_CURRENCY.sub(lambda found: _CURRENCIES[found[1]], text)


def _unscaled(found: re.Match[str]) -> str:
    return f"{float(found[1]) * (1_000_000 if found[2] == 'million' else 1_000):.10g}"
