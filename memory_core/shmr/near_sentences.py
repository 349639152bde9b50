"""Pairs of plain sentences that belong in one cluster although their vectors lie further apart than the threshold.

"I moved to Lisbon" and "I live in Porto" are about the same thing and hardly alike to an embedding model. Sentences of
one subject are compared word by word, each with the few that lie nearest to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memory_core.layers.components import Vectors
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.like_words import meaning
from memory_core.shmr.messages import weights
from memory_core.shmr.sentences import same_speaker
from memory_core.shmr.slots import Slot
from memory_core.shmr.told import closeness, told_by, verdict

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
    told = {
        row: told_by(candidate.content)
        for row, (candidate, slot) in enumerate(zip(candidates, slots, strict=True))
        if not candidate.has_triple and (slot is None or slot.multi_valued is None)
    }
    order = sorted(told, key=lambda row: (candidates[row].observed_at, str(candidates[row].memory_id)))
    place = {row: number for number, row in enumerate(order)}
    weight = weights([told[row].message for row in order])

    def in_time(pairs: Iterable[tuple[int, int, float]]) -> Iterator[tuple[int, int, float]]:
        for i, j, cosine in pairs:
            one, other = (i, j) if place[i] < place[j] else (j, i)
            if same_speaker(candidates[one], candidates[other]):
                yield one, other, cosine

    by_subject: dict[frozenset[str], list[int]] = defaultdict(list)
    for row in order:
        clause = told[row].clause
        if clause is not None and not clause.hedged:
            by_subject[meaning(clause.subject)].append(row)
    for rows in by_subject.values():
        for one, other, cosine in in_time(_nearest(rows, rows, vectors, (FURTHEST, similarity))):
            if verdict(told[one], told[other], cosine, weight).kind != "apart":
                yield one, other
    speaking = [row for row in order if told[row].message.denials or told[row].message.changed]
    best: dict[int, tuple[float, int, int]] = {}
    for row, other_row, cosine in _nearest(speaking, order, vectors, (FURTHEST_MESSAGE, 1.1)):
        for one, other, _ in in_time([(row, other_row, cosine)]):
            if verdict(told[one], told[other], cosine, weight).kind == "rival":
                best[row] = max(best.get(row, (0.0, 0, 0)), (closeness(told[one], told[other], weight), one, other))
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
