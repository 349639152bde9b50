"""What an answer lacks, told without a model: names and numbers of the question that nothing holds, distance, age."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from memory_core.shmr.facts import Fact

_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


def gaps_of(
    question: str, facts: Sequence[Fact], cited: Sequence[Fact], *, as_of: datetime, weak_score: float, old_days: int
) -> list[str]:
    """Sentences about what is missing; empty where nothing is known to be.

    Args:
        facts: everything that was considered.
        cited: what the answer rests on.
        as_of: the time of the answer.
        weak_score: a best score below this is no close one.
        old_days: days after which the newest cited statement is called old.
    """
    gaps = []
    scores = [fact.score for fact in facts if fact.score is not None]
    if scores and max(scores) < weak_score:
        gaps.append(f"Nothing known is close to the question; the nearest has a score of {max(scores):.2f}.")
    held = " ".join(text for fact in facts for text in fact.texts).casefold()
    missing = [name for name in _names(question) if name.casefold().removesuffix("'s").removesuffix("’s") not in held]
    if missing:
        gaps.append(f"Nothing known names {', '.join(missing)}.")
    dates = [fact.observed_at for fact in cited if fact.observed_at is not None]
    if dates and (age := (as_of - max(dates)).days) > old_days:
        gaps.append(f"The newest of these statements is {age} days old ({max(dates):%Y-%m-%d}).")
    if cited and not dates:
        gaps.append("When this was said is not known.")
    return gaps


def _names(question: str) -> list[str]:
    """Words with a capital that does not begin a sentence, and numbers: what an answer should be about."""
    found = []
    start = True
    for match in _WORD.finditer(question):
        word = match[0]
        capital = word[0].isupper() and word not in ("I", "I'm", "I’m", "I've", "I’ve")
        if word[0].isdigit() or (capital and not start):
            found.append(word)
        start = question[match.end() :].lstrip("\"'”’ )")[:1] in (".", "?", "!")
    return list(dict.fromkeys(found))
