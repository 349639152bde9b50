"""Messages: what longer texts say of one another, such as the turns of a chat.

Two things can be told without reading them whole: that one says "never" of what the other tells, and that a later one
gives another number or date for the same thing and says that it changed. Both are likely, not certain.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_core.layers.normal_text import MONTH
from memory_core.layers.words import FUNCTION_WORDS, words_of
from memory_core.shmr.lemmas import lemmas

MIN_WORDS = 2
"""Words that two texts share at least before they speak about the same thing."""

DENIED = 0.4
"""Share of a denial's words, weighed, that a sentence holds from which on it tells what is denied."""

SAME_CONTEXT = 0.4
"""Share of a sentence's words, weighed, that another holds from which on both measure the same thing."""

_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_PARTS = re.compile(r", | but | so ")
_DENIAL = re.compile(r"\bnever\b(.*?)(?:[,.;!?]|\b(?:but|so|which|because)\b|\band i\b|$)", re.IGNORECASE | re.DOTALL)
_QUANTITY = re.compile(r"(?<![\w.$])(\d[\d,]*(?:\.\d+)?)\s*(%|[a-z][a-z'-]+)(?:\s+([a-z][a-z'-]+))?", re.IGNORECASE)
_DATE = re.compile(rf"\b{MONTH}\s+(\d{{1,2}})\b", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:new|now|recent|recently|increased?|decreased?|improved?|reduced?|extended?|adjusted?|rescheduled|moved|moving|"
    r"updated?|shifted|changed?|reached|grew|grown|growth|raised|lowered|further|instead)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_][\w'’./-]*")
_WITHOUT_CONTENT = FUNCTION_WORDS | words_of(
    "i i'm i've i'd i'll my me it it's its this that there any ever actually really some can you your help also just "
    "not no but so what how do we our they them their he she his her don't"
)

Weight = Callable[[str], float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number or date of a text: its value, what is counted (empty for a date), and the words around it."""

    value: str
    counted: frozenset[str]
    around: frozenset[str]


@dataclass(frozen=True, slots=True)
class Message:
    """A longer text, read for comparison.

    Attributes:
        denials: the words of what it says never happened.
        sentences: the words of each of its other sentences.
        measures: its numbers and dates.
        changed: whether it says that something changed.
    """

    denials: tuple[frozenset[str], ...]
    sentences: tuple[frozenset[str], ...]
    measures: tuple[Measure, ...]
    changed: bool

    @property
    def words(self) -> frozenset[str]:
        """All its words that carry meaning."""
        return frozenset().union(*self.denials, *self.sentences)


def message_of(text: str) -> Message:
    """Read a text; code between fences is left out."""
    prose = _CODE.sub(" ", text)
    told = _SENTENCES.split(_DENIAL.sub(" ", prose))
    measures = [measure for sentence in _SENTENCES.split(prose) for measure in _measures(sentence)]
    return Message(
        denials=tuple(words for found in _DENIAL.finditer(prose) if len(words := _words(found[1])) >= MIN_WORDS),
        sentences=tuple(words for sentence in told if len(words := _words(sentence)) >= MIN_WORDS),
        measures=tuple(measures),
        changed=_CHANGED.search(prose) is not None,
    )


def weights(messages: Sequence[Message]) -> Weight:
    """How much a word tells among these messages: log(1 + n / (.5 + d)) where d of the n hold it."""
    frequency = Counter(word for message in messages for word in message.words)
    return lambda word: math.log(1 + len(messages) / (0.5 + frequency[word]))


def denied_by(denial: Message, told: Message, weight: Weight) -> float:
    """How much of something that one message says never happened the other tells, 0 to 1."""
    return max(
        (
            _weight(words & sentence, weight) / _weight(words, weight)
            for words in denial.denials
            for sentence in told.sentences
            if len(words & sentence) >= MIN_WORDS
        ),
        default=0.0,
    )


def measured_again(earlier: Message, later: Message, weight: Weight) -> float:
    """How surely a later message gives another number or date for the same thing, 0 to 1."""
    if not later.changed:
        return 0.0
    best = 0.0
    for one in earlier.measures:
        for other in later.measures:
            same_kind = bool(one.counted & other.counted) or (not one.counted and not other.counted)
            if one.value == other.value or not same_kind:
                continue
            shared = one.around & other.around
            if len(shared) >= MIN_WORDS:
                least = min(_weight(one.around, weight), _weight(other.around, weight))
                best = max(best, _weight(shared, weight) / least)
    return best


class Between(NamedTuple):
    """What two messages say of one another, each from 0 to 1.

    Attributes:
        denied: how much of what one denies the other tells.
        measured_again: how surely the later gives another number or date for the same thing.
    """

    denied: float
    measured_again: float


def between(earlier: Message, later: Message, weight: Weight) -> Between:
    """Compare two messages."""
    denied = max(denied_by(earlier, later, weight), denied_by(later, earlier, weight))
    return Between(denied, measured_again(earlier, later, weight))


def _weight(words: Iterable[str], weight: Weight) -> float:
    return sum(weight(word) for word in words)


def _words(text: str) -> frozenset[str]:
    plain = (found.casefold().replace("’", "'").strip(".'/-").removesuffix("'s") for found in _WORD.findall(text))
    return frozenset(
        min(lemmas(word), key=lambda form: (len(form), form)) for word in plain if word not in _WITHOUT_CONTENT
    )


def _measures(sentence: str) -> Iterable[Measure]:
    if not any(map(str.isdigit, sentence)):
        return
    around = _words(sentence)
    for part in _PARTS.split(sentence):
        for found in _QUANTITY.finditer(part):
            counted = frozenset({"%"}) if found[2] == "%" else _words(" ".join(filter(None, found.groups()[1:])))
            if counted:
                value = found[1].replace(",", "")
                yield Measure(value, counted, around - {value})
    for found in _DATE.finditer(sentence):
        yield Measure(f"{found[1][:3].casefold()} {found[2]}", frozenset(), around)
