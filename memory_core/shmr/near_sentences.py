"""Pairs of plain sentences that belong in one cluster although their vectors lie further apart than the threshold.

"I moved to Lisbon" and "I live in Porto" are about the same thing and hardly alike to an embedding model. Sentences of
one subject are compared word by word, each with the few that lie nearest to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from memory_core.layers.components import Vectors
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.comparison import compare, says_one_thing
from memory_core.shmr.like_words import meaning
from memory_core.shmr.messages import between, weights
from memory_core.shmr.sentences import same_speaker
from memory_core.shmr.slots import Slot
from memory_core.shmr.told import Told, message_verdict, told_by

FURTHEST = 0.5
"""Cosine below which two sentences are not compared."""

FURTHEST_MESSAGE = 0.3
"""The same for two longer texts, which speak about several things."""

NEAREST = 8
"""Sentences that each one is compared with."""

_BLOCK = 1024


def near_sentences(
    candidates: Sequence[Candidate], slots: Sequence[Slot | None], vectors: Vectors, similarity: float
) -> Iterator[tuple[int, int]]:
    """Pairs of positions whose sentences say the same, or cannot both hold.

    Args:
        candidates: n memories; those with a triple, or with a slot that is settled, are left out.
        slots: n slots.
        vectors: shape (n, d), rows of length 1 or 0.
        similarity: cosine from which on sentences are in one cluster anyway.
    """
    open_to_comparison = (
        row
        for row, (candidate, slot) in enumerate(zip(candidates, slots, strict=True))
        if not candidate.has_triple and (slot is None or slot.multi_valued is None)
    )
    order = sorted(open_to_comparison, key=lambda row: candidates[row].in_time)
    told = {row: told_by(candidates[row].content) for row in order}
    place = {row: number for number, row in enumerate(order)}

    def in_time(i: int, j: int) -> tuple[int, int]:
        return (i, j) if place[i] < place[j] else (j, i)

    by_subject: dict[frozenset[str], list[int]] = defaultdict(list)
    for row in order:
        clause = told[row].clause
        if clause is not None and not clause.hedged and says_one_thing(clause):
            by_subject[meaning(clause.subject)].append(row)
    for rows in by_subject.values():
        for i, j, cosine in _nearest(rows, rows, vectors, (FURTHEST, similarity)):
            one, other = in_time(i, j)
            first, second = told[one].clause, told[other].clause
            assert first is not None  # only clauses have a subject
            assert second is not None
            if same_speaker(candidates[one], candidates[other]) and compare(first, second, cosine).kind != "apart":
                yield one, other
    yield from _near_messages(candidates, told, vectors, in_time)


def _near_messages(
    candidates: Sequence[Candidate],
    told: Mapping[int, Told],
    vectors: Vectors,
    in_time: Callable[[int, int], tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    """For each longer text that denies something, or says that it changed, the one that it most surely speaks of."""
    longer = [row for row, each in told.items() if each.clause is None]
    if not longer:
        return
    weight = weights([told[row].message for row in longer])
    speaking = [row for row in longer if told[row].message.denials or told[row].message.changed]
    # A single sentence may deny what a longer text tells, too.
    speaking += [row for row, each in told.items() if each.clause is not None and "never" in each.content.casefold()]
    best: dict[int, tuple[float, int, int]] = {}
    for row, found, _ in _nearest(speaking, list(told), vectors, (FURTHEST_MESSAGE, 1.1)):
        one, other = in_time(row, found)
        if told[one].clause is not None and told[other].clause is not None:
            continue
        if not same_speaker(candidates[one], candidates[other]):
            continue
        said = between(told[one].message, told[other].message, weight)
        if message_verdict(said).kind == "rival":
            best[row] = max(best.get(row, (0.0, 0, 0)), (max(said), one, other))
    yield from ((one, other) for _, one, other in best.values())


def _nearest(
    rows: Sequence[int], among: Sequence[int], vectors: Vectors, between: tuple[float, float]
) -> Iterator[tuple[int, int, float]]:
    """For each row the `NEAREST` of the others whose cosine lies in the range, the upper end excluded."""
    if not rows or len(among) < 2:
        return
    others = vectors[list(among)]
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        cosines = vectors[list(part)] @ others.T
        cosines[(cosines < between[0]) | (cosines >= between[1])] = -1.0
        count = min(NEAREST, len(among))
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        for row, columns, values in zip(part, nearest.tolist(), cosines, strict=True):
            for column in sorted(columns):
                if values[column] > 0 and among[column] != row:
                    yield row, among[column], float(values[column])
