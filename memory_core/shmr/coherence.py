"""How well proposed beliefs fit their evidence: the harmony score, and the conflicts it cannot see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_core.shmr.slots import Slot, contradict


def harmony(belief_vectors: ArrayLike, confidences: Sequence[float], centroid: ArrayLike) -> float:
    """The documented harmony score, with confidence as a true weight.

        base  = sum(w_i * cos(b_i, c)) / sum(w_i)
        bonus = 1 for one belief, else mean over pairs of cos(b_i, b_j) + 0.3, clamped to 0..1
        score = base * bonus

    An unsure belief is therefore not scored lower for being unsure: how sure to be is another question. The score
    sees what beliefs are about, never whether they are right ("allergic" and "not allergic" score alike), so it is
    always used together with `conflicts`.

    Args:
        belief_vectors: shape (n, d). A row that is not finite counts as unlike everything.
        confidences: n weights, clamped to 0..1; one that is not a number counts 0.
        centroid: shape (d,): the mean of the evidence's vectors, frozen before the first attempt.

    Returns:
        A finite number from -1 to 1; 0.0 where there is no belief or no weight.
    """
    beliefs = _unit(np.atleast_2d(np.asarray(belief_vectors, dtype=np.float64)))
    weights = np.clip(np.nan_to_num(np.asarray(confidences, dtype=np.float64), nan=0.0), 0.0, 1.0)
    if beliefs.size == 0 or weights.sum() <= 0.0:
        return 0.0
    middle = _unit(np.asarray(centroid, dtype=np.float64).reshape(1, -1))[0]
    base = float(weights @ (beliefs @ middle) / weights.sum())
    bonus = 1.0
    if len(beliefs) > 1:
        cosines = beliefs @ beliefs.T
        bonus = float(np.clip(cosines[np.triu_indices(len(beliefs), k=1)].mean() + 0.3, 0.0, 1.0))
    return float(np.clip(base * bonus, -1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Beliefs (by their position) that cannot be kept as they are, and why."""

    beliefs: tuple[int, ...]
    reason: str


def find_conflicts(
    belief_slots: Sequence[Slot | None], evidence_slots: Sequence[Sequence[Slot | None]]
) -> list[Conflict]:
    """Beliefs that contradict one another or the evidence they cite, whatever their cosine.

    Args:
        belief_slots: the slot of each belief; None where it has none (it then conflicts with nothing).
        evidence_slots: for each belief, the slots of the memories it cites as supporting it.
    """
    found = []
    for (i, first), (j, second) in combinations(enumerate(belief_slots), 2):
        if first and second and contradict(first, second):
            found.append(Conflict((i, j), f"beliefs {i + 1} and {j + 1} contradict each other: {first} / {second}"))
    for i, (belief, evidence) in enumerate(zip(belief_slots, evidence_slots, strict=True)):
        for slot in evidence:
            if belief and slot and contradict(belief, slot):
                found.append(Conflict((i,), f"belief {i + 1} contradicts the evidence it cites: {belief} / {slot}"))
    return found


def conflicts(belief_slots: Sequence[Slot | None], evidence_slots: Sequence[Sequence[Slot | None]]) -> list[str]:
    """The reasons of `find_conflicts`, empty where the beliefs are free of contradiction."""
    return [conflict.reason for conflict in find_conflicts(belief_slots, evidence_slots)]


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    # Scaled by the largest entry first, so that the square of a very large one cannot overflow.
    scaled = finite / np.maximum(np.abs(finite).max(axis=1, keepdims=True, initial=0.0), 1e-30)
    return np.asarray(scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-30))
