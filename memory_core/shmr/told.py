"""What one memory's text tells, read as a clause where it is a single sentence, else as a message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from memory_core.shmr.clauses import Clause, clause_of
from memory_core.shmr.comparison import APART, Verdict, compare
from memory_core.shmr.messages import DENIED, SAME_CONTEXT, Between, Message, between, message_of

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


def verdict(first: Told, second: Told, cosine: float) -> Verdict:
    """Compare two texts of one cluster, the second told later.

    Args:
        cosine: of their vectors, -1 to 1.
    """
    if first.clause is not None and second.clause is not None:
        return compare(first.clause, second.clause, cosine)
    return message_verdict(between(first.message, second.message, _each_word_alike))


def message_verdict(found: Between) -> Verdict:
    """What follows from what two messages say of one another."""
    if found.denied >= DENIED:
        return Verdict("rival", "one tells what the other says never happened")
    if found.measured_again >= SAME_CONTEXT:
        return Verdict("rival", "the later gives another number or date for the same thing")
    return APART


def _each_word_alike(_: str) -> float:
    """Among the few texts of one cluster, the words that they share are just those that tell what they are about."""
    return 1.0
