"""Thresholds for an embedding model, measured on labelled pairs: precision and recall at each, and the best.

A model's cosines have a scale of their own, so a threshold that is right for one is wrong for another. Three settings
of SHMR are measured:

* `similarity_threshold`: the cosine of two whole statements; those that belong together against those that do not;
* `slot_similarity_threshold`: the cosine of two slots (subject and predicate) of one subject; those of a pair that
  belongs together against those of other pairs, which are about something else;
* `harmony_threshold`: the harmony score of a statement with the evidence it is part of, against the score of one from
  another pair with the same evidence.

The defaults of `ShmrSettings` hold for `minilm`; `slowwave calibrate` on a file shows how they do there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.models.embedding import EmbeddingProvider, Vectors, prepared_text
from memory_core.shmr.coherence import harmony
from memory_core.shmr.labelled_pairs import LabelledPair, Statement
from memory_core.shmr.settings import ShmrSettings

SETTINGS = ("similarity_threshold", "slot_similarity_threshold", "harmony_threshold")
"""What is measured, by the names of `ShmrSettings`."""

FEWEST = 10
"""Cases of either kind below which nothing is recommended: one case more would move the threshold."""

STEPS = 100
PAGE = 256
"""Texts of one call of the embedding model."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one threshold gives.

    Attributes:
        precision: of what reaches it, the share that belongs together; None where nothing does.
        recall: of what belongs together, the share that reaches it.
        f1: their harmonic mean.
    """

    threshold: float
    precision: float | None
    recall: float
    f1: float

    def document(self) -> dict[str, float | None]:
        """As JSON, rounded to four digits."""
        return {
            "threshold": round(self.threshold, 4),
            "precision": None if self.precision is None else round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """One setting, measured.

    Attributes:
        together, apart: cases of either kind.
        curve: a point for each threshold from 0 to 1, a hundredth apart; empty where there are no cases.
        now: what the current setting gives; None where there are no cases.
        best: the threshold that is recommended; None where none is.
        reason: why none is; empty where one is.
    """

    setting: str
    together: int
    apart: int
    curve: tuple[Point, ...]
    now: Point | None
    best: Point | None
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "together": self.together,
            "apart": self.apart,
            "current": None if self.now is None else self.now.document(),
            "recommended": None if self.best is None else self.best.document(),
            "reason": self.reason,
            "curve": [point.document() for point in self.curve],
        }


async def calibrate(
    pairs: Sequence[LabelledPair], embedding: EmbeddingProvider, settings: ShmrSettings, *, min_precision: float = 0.5
) -> list[Measured]:
    """Measure the thresholds for the embedding model; one `Measured` for each of `SETTINGS`.

    Args:
        pairs: labelled; those of a file.
        settings: what is set now.
        min_precision: 0 to 1; a threshold is recommended only where at least so much of what reaches it belongs
            together. Of those the one with the best F1 is, the middle of them where several are equally good.
    """
    statements = list(dict.fromkeys(side for pair in pairs for side in (pair.earlier, pair.later)))
    texts = list(dict.fromkeys(text for each in statements for text in (each.text, each.slot) if text))
    rows = {text: row for row, text in enumerate(texts)}
    pages = [
        await embedding.embed([prepared_text(text) for text in texts[start : start + PAGE]])
        for start in range(0, len(texts), PAGE)
    ]
    vectors: Vectors = np.concatenate(pages) if pages else np.zeros((0, 1), np.float32)
    cases = {
        "similarity_threshold": _contents(pairs, rows, vectors),
        "slot_similarity_threshold": _slots(pairs, rows, vectors),
        "harmony_threshold": _harmonies(pairs, rows, vectors),
    }
    return [
        measure(setting, *cases[setting], now=float(getattr(settings, setting)), min_precision=min_precision)
        for setting in SETTINGS
    ]


def measure(
    setting: str, together: Sequence[float], apart: Sequence[float], *, now: float, min_precision: float
) -> Measured:
    """Draw the curve of one setting from the scores of both kinds of cases, and choose the best threshold."""
    if not together and not apart:
        return Measured(setting, 0, 0, (), None, None, "the file has no case of it")
    thresholds = np.arange(STEPS + 1) / STEPS
    curve = tuple(_points(together, apart, thresholds))
    (current,) = _points(together, apart, np.array([now]))
    sizes = len(together), len(apart)
    if min(sizes) < FEWEST:
        why = f"{sizes[0]} cases belong together and {sizes[1]} do not; {FEWEST} of each are needed"
        return Measured(setting, *sizes, curve, current, None, why)
    allowed = [point for point in curve if point.precision is not None and point.precision >= min_precision]
    if not allowed:
        why = f"no threshold has a precision of {min_precision:g}"
        return Measured(setting, *sizes, curve, current, None, why)
    most = max(point.f1 for point in allowed)
    # Counts give F1 in steps; where a stretch of thresholds is equally good, its middle is the least fragile.
    equal = [point for point in allowed if point.f1 >= most - 1e-12]
    return Measured(setting, *sizes, curve, current, equal[len(equal) // 2])


def _points(together: Sequence[float], apart: Sequence[float], thresholds: NDArray[np.float64]) -> list[Point]:
    # A float32 cosine of a text with itself may end just below 1.
    right, wrong = (
        len(scores) - np.searchsorted(np.sort(np.asarray(scores, dtype=np.float64)), thresholds - 1e-6, side="left")
        for scores in (together, apart)
    )
    points = []
    for threshold, true, false in zip(thresholds.tolist(), right.tolist(), wrong.tolist(), strict=True):
        precision = true / (true + false) if true + false else None
        recall = true / len(together) if together else 0.0
        f1 = 2 * true / (true + false + len(together)) if together else 0.0
        points.append(Point(threshold, precision, recall, f1))
    return points


def _contents(pairs: Sequence[LabelledPair], rows: dict[str, int], vectors: Vectors) -> tuple[list[float], list[float]]:
    together: list[float] = []
    apart: list[float] = []
    for pair in pairs:
        cosine = float(vectors[rows[pair.earlier.text]] @ vectors[rows[pair.later.text]])
        (together if pair.together else apart).append(cosine)
    return together, apart


def _slots(pairs: Sequence[LabelledPair], rows: dict[str, int], vectors: Vectors) -> tuple[list[float], list[float]]:
    """Slots of one subject: those that a pair puts together, and all others of that subject."""
    same: dict[frozenset[str], None] = {}
    known: dict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        for side in (pair.earlier, pair.later):
            if side.slot:
                known[side.subject][side.slot] = None
        if pair.together and _one_subject(pair.earlier, pair.later):
            same[frozenset((pair.earlier.slot, pair.later.slot))] = None
    together = [_cosine(sorted(slots), rows, vectors) for slots in same]
    apart = [
        _cosine(two, rows, vectors)
        for slots in known.values()
        for two in combinations(slots, 2)
        if frozenset(two) not in same
    ]
    return together, apart


def _one_subject(first: Statement, second: Statement) -> bool:
    return bool(first.slot and second.slot) and first.subject == second.subject


def _cosine(slots: Sequence[str], rows: dict[str, int], vectors: Vectors) -> float:
    # A slot that both statements share is one text.
    return float(vectors[rows[slots[0]]] @ vectors[rows[slots[-1]]])


def _harmonies(
    pairs: Sequence[LabelledPair], rows: dict[str, int], vectors: Vectors
) -> tuple[list[float], list[float]]:
    clusters = [pair for pair in pairs if pair.together]
    together: list[float] = []
    apart: list[float] = []
    for position, pair in enumerate(clusters):
        evidence = vectors[[rows[pair.earlier.text], rows[pair.later.text]]].mean(axis=0)
        together.append(harmony(vectors[rows[pair.later.text]], [1.0], evidence))
        other = clusters[(position + 1) % len(clusters)].later
        if other not in (pair.earlier, pair.later):
            apart.append(harmony(vectors[rows[other.text]], [1.0], evidence))
    return together, apart
