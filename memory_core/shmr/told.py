"""What one memory's text tells, read as a clause where it is a single sentence, else as a message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from memory_core.shmr.clauses import Clause, clause_of
from memory_core.shmr.comparison import APART, Verdict, compare
from memory_core.shmr.messages import DENIED, SAME_CONTEXT, Message, Weight, denied_by, measured_again, message_of

LONGEST_SENTENCE = 300
"""Characters from which on a text is no single sentence."""


@dataclass(frozen=True)
class Told:
    """A text read both ways; `clause` is None where it is no single sentence."""

    content: str
    clause: Clause | None

    @cached_property
    def message(self) -> Message:
        """The text as a message; read when it is first asked for."""
        return message_of(self.content)


def told_by(content: str) -> Told:
    """Read a text."""
    return Told(content, clause_of(content) if len(content) <= LONGEST_SENTENCE else None)


def verdict(first: Told, second: Told, cosine: float, weight: Weight) -> Verdict:
    """Compare two texts, the second told later.

    Args:
        cosine: of their vectors, -1 to 1.
        weight: how much a word tells.
    """
    if first.clause is not None and second.clause is not None:
        return compare(first.clause, second.clause, cosine)
    one, other = first.message, second.message
    if max(denied_by(one, other, weight), denied_by(other, one, weight)) >= DENIED:
        return Verdict("rival", "one tells what the other says never happened")
    if measured_again(one, other, weight) >= SAME_CONTEXT:
        return Verdict("rival", "the later gives another number or date for the same thing")
    return APART


def closeness(first: Told, second: Told, weight: Weight) -> float:
    """How much of what one message denies, or measures anew, the other tells: 0 to 1."""
    return max(
        denied_by(first.message, second.message, weight),
        denied_by(second.message, first.message, weight),
        measured_again(first.message, second.message, weight),
    )
