"""Readings: the ways in which a plain sentence parts into literal words, a head and a value.

Only words that recur in the tenant's text can be literal. Which reading is the right one is learned in `phrases`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS, word_key, words_of
from memory_core.shmr.lemmas import can_be
from memory_core.shmr.wording import split_negation

LONGEST_SENTENCE = 28
LONGEST_LEAD = 10
LONGEST_HEAD = 9
LONGEST_MIDDLE = 9
LONGEST_TAIL = 8
LONGEST_VALUE = 8
MOST_LITERAL_IN_HEAD = 3
LONGEST_WITH_LOOSE_TAIL = 14
"""Words up to which a sentence may end in literal words after a value that is no name."""

POSSESSIVE = "'s"
"""The token that a possessive ending becomes: "Rosa's office" is read as three tokens."""

_TITLES = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr)\.(?=\s)")
_INSIDE_SENTENCES = re.compile(r"\w{2}[.!?]\s+[A-Z\"“]")
_NAME_PARTICLES = words_of(
    "von van vander de da das di del della der den du des dos la le les el al bin ibn af ten ter y"
)


_OPENERS = FUNCTION_WORDS | words_of(
    "what it among besides within inside outside during before after since like near beside behind against across "
    "along around despite except per via without toward towards upon according"
)


class Frame(NamedTuple):
    """The literal words of a statement, by their stems: before its head, between head and value, after its value."""

    lead: tuple[str, ...]
    middle: tuple[str, ...]
    tail: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many literal words it has."""
        return len(self.lead) + len(self.middle) + len(self.tail)

    @property
    def content(self) -> list[str]:
        """Its words that carry meaning."""
        return [word for word in (*self.lead, *self.middle, *self.tail) if word not in _WITHOUT_MEANING]

    def __str__(self) -> str:
        return " ".join((*self.lead, *self.middle, *self.tail))


class Reading(NamedTuple):
    """One way to read a sentence."""

    frame: Frame
    head: str
    value: str


_WITHOUT_MEANING = FUNCTION_WORDS | {POSSESSIVE}


def tokens_of(content: str) -> list[str]:
    """A sentence's words without its negations; a name with particles ("Ana de la Cruz") is one token.

    Empty where it cannot be read: fewer than three words, more than `LONGEST_SENTENCE`, or several long sentences.
    """
    text = _TITLES.sub(r"\1", " ".join(unicodedata.normalize("NFC", content).replace("’", "'").split())).strip(
        ' .!?"“”'
    )
    if _INSIDE_SENTENCES.search(text) and len(text.split()) > 12:
        return []
    words = split_negation(text)[0].split()
    if not 3 <= len(words) <= LONGEST_SENTENCE:
        return []
    return _names_joined([part for word in words for part in _without_possessive(word)])


def text_of(tokens: Sequence[str]) -> str:
    """The tokens as written."""
    return " ".join(tokens).replace(f" {POSSESSIVE}", POSSESSIVE)


def readings(tokens: Sequence[str], frequent: Container[str]) -> Iterator[Reading]:
    """Every reading whose literal words are all in `frequent`; bounded by the sentence's length alone."""
    keys = [word_key(token) for token in tokens]
    count = len(tokens)
    literal = [key in frequent and _may_be_literal(tokens, i) for i, key in enumerate(keys)]
    auxiliary = next((i for i, key in enumerate(keys) if key in AUXILIARIES), None)
    tails = _tails(keys, literal)
    for start in range(min(LONGEST_LEAD, count - 2)):
        if start and not (literal[start - 1] and _may_lead(keys, start)):
            return
        if start and not _may_begin_head(tokens, keys, start):
            continue
        for begin in range(start + 1, min(start + LONGEST_HEAD, count - 1)):
            if begin > start + 1 and keys[begin - 1] in AUXILIARIES:
                break
            if sum(literal[start:begin]) > MOST_LITERAL_IN_HEAD:
                break
            if not literal[begin] or not _may_begin_middle(keys, start, begin):
                continue
            for end in range(begin + 1, min(begin + LONGEST_MIDDLE, count)):
                if not literal[end - 1]:
                    break
                if auxiliary is not None and auxiliary >= end:
                    continue
                for tail in tails:
                    if 0 < count - tail - end <= LONGEST_VALUE:
                        frame = Frame(
                            tuple(keys[:start]), tuple(keys[begin:end]), tuple(keys[count - tail :]) if tail else ()
                        )
                        yield Reading(frame, text_of(tokens[start:begin]), text_of(tokens[end : count - tail]))


def _tails(keys: Sequence[str], literal: Sequence[bool]) -> list[int]:
    """How many words at the end may be literal after a value: from a function word on, or all after a name."""
    found, count = [0], len(keys)
    for tail in range(1, min(LONGEST_TAIL, count - 3) + 1):
        at = count - tail
        if not literal[at]:
            break
        if not literal[at - 1] or (keys[at] in FUNCTION_WORDS and count <= LONGEST_WITH_LOOSE_TAIL):
            found.append(tail)
    return found


def _may_lead(keys: Sequence[str], start: int) -> bool:
    """Whether the words before a head may stand there: no verb, but for the one of "it is Y that …"."""
    return keys[start - 1] not in AUXILIARIES or (start == 2 and keys[0] == "it")


def _may_begin_head(tokens: Sequence[str], keys: Sequence[str], start: int) -> bool:
    """Whether a head may begin here: after a function word, or at a name after smaller words ("the firm Velm …")."""
    if start == 1 and keys[0] in ("the", "a", "an"):
        # An article at the beginning belongs to the head, which is compared without it.
        return False
    if keys[0] not in _OPENERS and not can_be(keys[0], "NOUN"):
        # A sentence that begins with a name is about it.
        return False
    if keys[start - 1] in FUNCTION_WORDS or keys[start - 1] == "what":
        return True
    return start > 1 and tokens[start - 1][0].islower() and tokens[start][0].isupper()


def _may_begin_middle(keys: Sequence[str], start: int, begin: int) -> bool:
    """Whether the words between head and value may begin here: at a verb or noun, or at the "that" of "it is Y …"."""
    if keys[begin] in FUNCTION_WORDS - AUXILIARIES:
        return start >= 2 and keys[0] == "it" and keys[begin] in ("that", "who", "where", "which")
    return True


def _may_be_literal(tokens: Sequence[str], i: int) -> bool:
    """Whether a token is no name or number; a short title in capitals ("the CEO of") is none where it governs."""
    token = tokens[i]
    if i == 0 or token == POSSESSIVE or token[0].islower():
        return not token[0].isdigit()
    governs = (i + 1 < len(tokens) and tokens[i + 1] in ("of", "at")) or tokens[i - 1] == POSSESSIVE
    return governs and token.isupper() and token.isalpha() and 2 <= len(token) <= 4


def _without_possessive(word: str) -> list[str]:
    if word.endswith("'s") and len(word) > 2 and word.casefold() not in _CONTRACTIONS:
        return [word[:-2], POSSESSIVE]
    return [word]


_CONTRACTIONS = words_of("it's he's she's that's there's what's who's here's let's where's how's")


def _names_joined(tokens: list[str]) -> list[str]:
    joined: list[str] = []
    i = 0
    while i < len(tokens):
        j = i + 1
        while j < len(tokens) and tokens[j] in _NAME_PARTICLES:
            j += 1
        is_name = tokens[i][0].isupper() and j > i + 1 and j < len(tokens) and tokens[j][0].isupper()
        if is_name:
            joined.append(" ".join(tokens[i : j + 1]))
            i = j + 1
        else:
            joined.append(tokens[i])
            i += 1
    return joined
