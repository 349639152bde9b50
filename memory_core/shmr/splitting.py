"""Divides a component that is too large, so that a chain of look-alikes cannot swallow a tenant."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_core.layers.components import Vectors
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot

LARGEST_FOR_LINKAGE = 512
"""Units from which on a component is first divided by k-means: average linkage needs their square in memory."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """Rows that stay together when a component is split, and the direction of their mean."""

    rows: tuple[int, ...]
    vector: Vectors


def split(
    group: list[int],
    candidates: Sequence[Candidate],
    slots: Sequence[Slot | None],
    vectors: Vectors,
    settings: ShmrSettings,
) -> list[list[int]]:
    """Divide a component above `max_cluster_size`: by k-means, then by average linkage, with slots kept whole.

    Args:
        group: rows of the component; returned as it is where it is small enough.
        vectors: shape (n, d), float32, content vectors of all candidates.
    """
    largest = settings.max_cluster_size
    if len(group) <= largest:
        return [group]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # From here on everything follows the ids' order, so that the order of the input cannot show.
    ordered = sorted(group, key=lambda row: candidates[row].memory_id.int)
    together: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in ordered:
        slot = slots[row]
        together[slot.key if slot is not None else ("", "", str(row))].append(row)
    parts: list[tuple[int, ...]] = []
    for rows in together.values():
        if len(rows) > largest:
            # A slot too large to stay whole: equal values side by side, so that duplicates still meet.
            rows.sort(key=lambda row: (str(slots[row]), candidates[row].observed_at, candidates[row].memory_id.int))
        parts += [tuple(rows[start : start + largest]) for start in range(0, len(rows), largest)]
    units = [_Unit(part, mean) for part, mean in zip(parts, _means(parts, vectors), strict=True)]
    # One thread: sums in another order would round differently and could move a unit that lies between two means, and
    # for matrices as small as these a second thread only waits.
    with threadpool_limits(limits=1):
        pieces = _packed(_divide(units, largest), largest, settings.similarity_threshold)
    return [[row for unit in piece for row in unit.rows] for piece in pieces]


def _means(parts: list[tuple[int, ...]], vectors: Vectors) -> Vectors:
    """The direction of each part's mean: shape (len(parts), d), rows of length 1 or 0."""
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    sums = np.add.reduceat(vectors[[row for part in parts for row in part]], starts, axis=0)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return np.asarray(sums, dtype=np.float32)


def _packed(pieces: list[list[_Unit]], largest: int, threshold: float) -> list[list[_Unit]]:
    """Neighbouring pieces put together where they fit and are alike.

    Cutting a lopsided tree (many equal distances make one) peels off memories one by one; alone they would be lost.
    """
    packed: list[list[_Unit]] = []
    sizes: list[int] = []
    sums: list[Vectors] = []
    for piece in pieces:
        size = sum(len(unit.rows) for unit in piece)
        total = np.sum([unit.vector for unit in piece], axis=0)
        if packed and sizes[-1] + size <= largest and _cosine(sums[-1], total) >= threshold:
            packed[-1] += piece
            sizes[-1] += size
            sums[-1] = sums[-1] + total
        else:
            packed.append(list(piece))
            sizes.append(size)
            sums.append(total)
    return packed


def _cosine(first: Vectors, second: Vectors) -> float:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths > 0.0 else 0.0


def _divide(units: list[_Unit], largest: int) -> list[list[_Unit]]:
    if sum(len(unit.rows) for unit in units) <= largest:
        return [units]
    if len(units) <= LARGEST_FOR_LINKAGE:
        return _by_linkage(units, largest)
    parts = _by_means(units)
    if len(parts) == 1:
        # All the same to k-means: no place is better than another to cut.
        parts = [units[start : start + LARGEST_FOR_LINKAGE] for start in range(0, len(units), LARGEST_FOR_LINKAGE)]
    return [piece for part in parts for piece in _divide(part, largest)]


def _by_means(units: list[_Unit]) -> list[list[_Unit]]:
    from sklearn.cluster import KMeans

    distinct = {hashlib.blake2b(unit.vector.tobytes(), digest_size=16).digest() for unit in units}
    count = min(-(-len(units) // (LARGEST_FOR_LINKAGE // 2)), len(distinct), 32)
    if count < 2:
        return [units]
    vectors = np.stack([unit.vector for unit in units])
    means = KMeans(n_clusters=count, n_init=1, random_state=0, max_iter=50, copy_x=False)
    labels = means.fit_predict(vectors)
    parts: dict[int, list[_Unit]] = defaultdict(list)
    for unit, label in zip(units, labels.tolist(), strict=True):
        parts[label].append(unit)
    return list(parts.values())


def _by_linkage(units: list[_Unit], largest: int) -> list[list[_Unit]]:
    """Cut the average-linkage tree from its root until every piece is small enough."""
    from sklearn.cluster import AgglomerativeClustering

    vectors = np.stack([unit.vector for unit in units])
    # Distances are given, and rounded, for zero rows have no cosine and equal ones must be exactly equal.
    distances = np.round(np.clip(1.0 - vectors @ vectors.T, 0.0, 2.0), 5)
    np.fill_diagonal(distances, 0.0)
    tree = AgglomerativeClustering(n_clusters=1, compute_full_tree=True, metric="precomputed", linkage="average")
    children = tree.fit(distances).children_.tolist()
    sizes = [len(unit.rows) for unit in units]
    for left, right in children:
        sizes.append(sizes[left] + sizes[right])
    pieces, open_nodes = [], [len(sizes) - 1]
    while open_nodes:
        node = open_nodes.pop()
        if sizes[node] > largest:
            open_nodes.extend(reversed(children[node - len(units)]))
        else:
            pieces.append([units[leaf] for leaf in _leaves(node, children, len(units))])
    return pieces


def _leaves(node: int, children: list[list[int]], count: int) -> list[int]:
    leaves, open_nodes = [], [node]
    while open_nodes:
        current = open_nodes.pop()
        if current < count:
            leaves.append(current)
        else:
            open_nodes.extend(reversed(children[current - count]))
    return leaves
