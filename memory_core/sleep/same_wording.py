"""Whether two facts say the same in the same words: one key a fact, equal for those that do. Pure.

Made for merging without a reader: it would rather keep two restatements than lose one fact. Every word that carries
content has to be there in both, in the same order and with the same punctuation between, so that numbers, negations,
names and identifiers agree by themselves and "drop the staging database" never meets "drop the production database",
however long the sentence around it is. Being an equality of keys, it holds for whole groups as for pairs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from memory_core.layers.normal_text import normalise_value

VERSION = 1
"""Raised when a rule changes, so that texts are looked at anew."""

_CONTRACTIONS = (
    (re.compile(r"\bcan['’]t\b|\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon['’]t\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bshan['’]t\b", re.IGNORECASE), "shall not"),
    (re.compile(r"n['’]t\b", re.IGNORECASE), " not"),
    (re.compile(r"\bI['’]m\b", re.IGNORECASE), "I am"),
    (re.compile(r"['’]re\b", re.IGNORECASE), " are"),
    (re.compile(r"['’]ve\b", re.IGNORECASE), " have"),
    (re.compile(r"['’]ll\b", re.IGNORECASE), " will"),
)

_LIGHT = frozenset({"a", "an", "the", "also", "please", "currently"})
# After an article these say another amount than alone: "a few" is not "few".
_AMOUNTS = frozenset({"few", "little", "lot", "number", "couple", "bit"})
_SPEAKERS = frozenset(
    {"i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"}
    | {"you", "your", "yours", "yourself", "yourselves"}
)
_DAYS = frozenset({"today", "tonight", "tomorrow", "yesterday", "now", "ago", "next", "last", "this"})
_QUOTES = "\"'“”\u2018\u2019()[]{}"


def wording_key(content: str, label: str | None = None, triple: tuple[str, str, str] | None = None) -> str:
    """What a fact says, in one form: equal for facts that differ in nothing but form.

    Form is: case, white space, a sentence's last punctuation, articles and a few other light words, contractions, and
    the ways of writing small numbers, dates and times. Words with capitals inside, such as `API` or `orderId`, are
    taken as they are.

    Args:
        content: what it says.
        label: its label, brought into the same form; None differs from any.
        triple: its subject, predicate and object; None differs from any.

    Returns:
        `s` where the words depend on who speaks ("I", "you"), else `-`; `t` where they depend on the day ("tomorrow"),
        else `-`; then 32 hexadecimal digits of a SHA-256.
    """
    words = _words(content)
    parts = [_form(content, words), "" if label is None else _form(label, _words(label))]
    parts += [] if triple is None else [normalise_value(part.replace("_", " ")) for part in triple]
    bare = {word.strip(".,;:!?" + _QUOTES) for word in words}
    marks = ("s" if bare & _SPEAKERS else "-") + ("t" if bare & _DAYS else "-")
    return marks + hashlib.sha256("\x1d".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _words(text: str) -> list[str]:
    for pattern, spelt in _CONTRACTIONS:
        text = pattern.sub(spelt, text)
    # A mark at the front keeps what stands there: an article is judged with the word after it, and `.env` is no `env`.
    return normalise_value(f"| {text}").split()[1:]


def _form(text: str, words: list[str]) -> str:
    kept = [word for position, word in enumerate(words) if not _is_light(words, position)]
    # A question says nothing that a statement of the same words says.
    asks = "?" if text.rstrip(" " + _QUOTES).endswith("?") else "."
    return "\x1f".join((asks, *(kept or [text]), "\x1e", *_identifiers(text)))


def _is_light(words: list[str], position: int) -> bool:
    """A light word before another word; at the end, as in "vitamin a", it is none."""
    if words[position] not in _LIGHT or position + 1 == len(words):
        return False
    return words[position + 1] not in _AMOUNTS


def _identifiers(text: str) -> Iterator[str]:
    for word in text.split():
        inner = word.strip(_QUOTES).rstrip(".,;:!?" + _QUOTES)
        if inner[1:] != inner[1:].lower():
            yield inner
