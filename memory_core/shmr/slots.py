"""Slots: what a statement is about (subject, predicate) and what it says about it (value, polarity, time).

A triple names its slot itself. A plain sentence gets one from phrases learned from the tenant's own text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_core.layers.normal_text import normalise, normalise_value
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.phrases import LearnedPhrases, parse_sentence
from memory_core.shmr.wording import (
    PERSONS,
    PRONOUNS,
    compatible,
    is_time,
    normalise_predicate,
    split_negation,
    split_qualifier,
    values_of_relation,
)

_ADDITION = re.compile(r",?\s*\b(?:too|also|as well|another|additionally)\b", re.IGNORECASE)
_STILL = re.compile(r"\b(?:currently|now|still|these days|at the moment)\b\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Slot:
    """What a statement says about what.

    Args:
        subject: normalised; never empty.
        predicate: normalised; negation, present-tense copulas at its ends and the plural or third-person s removed.
        value: normalised, with numbers, dates, times and units in one form.
        polarity: False where the statement is negated.
        qualifier: the time it is limited to ("in may", "every monday"); None where it is not.
        multi_valued: True: several values stand side by side; False: one value at a time; None: not known.
    """

    subject: str
    predicate: str
    value: str
    polarity: bool = True
    qualifier: str | None = None
    multi_valued: bool | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Subject and predicate: statements with the same key speak about the same thing."""
        return self.subject, self.predicate

    def __str__(self) -> str:
        parts = (self.subject, self.predicate, "" if self.polarity else "not", self.value, self.qualifier or "")
        return " ".join(part for part in parts if part)


def contradict(first: Slot, second: Slot) -> bool:
    """Whether two statements cannot both hold: same slot and time, another value, or the same value denied."""
    if first.key != second.key or first.qualifier != second.qualifier:
        return False
    if first.value == second.value:
        return first.polarity != second.polarity
    many = first.multi_valued or second.multi_valued or is_time(first.value) != is_time(second.value)
    return first.polarity and second.polarity and not many and not compatible(first.value, second.value)


def slot_of(candidate: Candidate, learned: LearnedPhrases | None = None) -> Slot | None:
    """The slot of a memory: from its triple, else from its sentence by what was learned; None where it has none.

    A pronoun whose meaning is not in the statement gives no slot; "I", "my" and "we" mean whoever said it, so their
    subject carries the source.
    """
    if candidate.has_triple:
        parts = candidate.subject or "", candidate.predicate or "", candidate.object or ""
        hint = values_of_relation(parts[1], named=True)
    else:
        found = parse_sentence(candidate.content, learned) if learned else None
        if found is None:
            return None
        parts, hint = found[:3], found[3]
    subject = normalise(parts[0])
    first_word = subject.partition(" ")[0]
    if not subject or first_word in PRONOUNS:
        return None
    if first_word in PERSONS and candidate.source:
        subject = f"{subject} ({candidate.source})"
    predicate, affirmed = split_negation(parts[1].replace("_", " "))
    text, addition = _ADDITION.subn("", _STILL.sub("", parts[2]))
    text, value_affirmed = split_negation(text)
    if not candidate.has_triple:
        # A sentence was parsed without its negations, so its polarity is that of the whole.
        value_affirmed = split_negation(candidate.content)[1]
    value, qualifier = split_qualifier(normalise_value(text))
    key = normalise_predicate(predicate)
    if key in ("is", "was") and any(map(str.isdigit, value)):
        # "X is <quality>" may hold many times over; two measures of X may not, but a guess it remains.
        hint = None
    if not value or not key:
        return None
    return Slot(subject, key, value, affirmed == value_affirmed, qualifier, True if addition else hint)
