"""Connected components over pairs of vectors, without ever listing the pairs inside one component."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 1024

Vectors = NDArray[np.float32]
Flags = NDArray[np.bool_]
PairFilter = Callable[[NDArray[np.intp], NDArray[np.intp]], Flags]
"""Says of pairs of rows, given as two arrays that are broadcast against each other, which may be linked at all."""

SPARSE = 16
"""A block with at most one link in so many pairs is followed by its list of links, a denser one as a table."""


class Components:
    """Sets of row numbers that grow together (union-find; the smallest row number names its set)."""

    def __init__(self, count: int) -> None:
        self.labels: NDArray[np.intp] = np.arange(count, dtype=np.intp)

    def join(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Put the two rows of each pair into one set."""
        flat = np.fromiter((row for pair in pairs for row in pair), dtype=np.intp).reshape(-1, 2)
        self.join_rows(flat[:, 0], flat[:, 1])

    def join_rows(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> None:
        """Put `left[k]` and `right[k]` into one set, for every k; two arrays of one length."""
        first, second = self.labels[left], self.labels[right]
        while True:
            apart = first != second
            if not apart.any():
                return
            first, second = first[apart], second[apart]
            # Each set hangs below the smallest that it is to be joined with, and then the chains are cut short.
            parents = np.arange(len(self.labels), dtype=np.intp)
            np.minimum.at(parents, np.maximum(first, second), np.minimum(first, second))
            while True:
                shorter = parents[parents]
                if np.array_equal(shorter, parents):
                    break
                parents = shorter
            self.labels = parents[self.labels]
            first, second = parents[first], parents[second]

    def groups(self) -> list[list[int]]:
        """The sets, each ascending, in the order of their smallest row."""
        order = np.argsort(self.labels, kind="stable")
        starts = np.flatnonzero(np.diff(self.labels[order])) + 1
        return [part.tolist() for part in np.split(order, starts) if len(part)]


def join_similar(
    components: Components,
    vectors: Vectors,
    rows: NDArray[np.intp],
    threshold: float,
    allowed: PairFilter | None = None,
) -> None:
    """Join every two of `rows` whose vectors have a cosine of at least `threshold`.

    Exact: each pair is looked at once, in blocks of 1,024 rows (upper triangle of the product). A block whose
    rows already are one component is skipped, and inside a block only a spanning set of the links is followed
    (each round joins every row to one neighbour, as Borůvka's algorithm does), so that a complete graph costs
    no more than a sparse one. Memory is that of one block.

    Args:
        components: grown in place.
        vectors: shape (n, d), rows of length 1 (or 0: never similar to anything at a positive threshold).
        rows: the row numbers to compare.
        threshold: cosine, -1 to 1.
        allowed: which pairs may be linked; all where None.
    """
    blocks = [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]
    cosines = np.empty((min(len(rows), BLOCK_ROWS),) * 2, dtype=vectors.dtype)
    flags = np.empty(cosines.shape, dtype=np.bool_)
    for index, left in enumerate(blocks):
        first = vectors[left]
        for right in blocks[index:]:
            labels = components.labels
            if labels[left].min() == labels[left].max() == labels[right].min() == labels[right].max():
                continue
            found, linked = cosines[: len(left), : len(right)], flags[: len(left), : len(right)]
            np.matmul(first, vectors[right].T, out=found)
            np.greater_equal(found, threshold, out=linked)
            count = np.count_nonzero(linked)
            if count * SPARSE <= linked.size:
                if count:
                    _follow_list(components, linked, left, right, allowed)
            else:
                _follow_table(components, linked, left, right, allowed)


def _follow_list(
    components: Components,
    linked: Flags,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    allowed: PairFilter | None,
) -> None:
    i, j = np.divmod(np.flatnonzero(linked), linked.shape[1])
    rows, columns = left[i], right[j]
    apart = components.labels[rows] != components.labels[columns]
    rows, columns = rows[apart], columns[apart]
    if allowed is not None and len(rows):
        kept = allowed(rows, columns)
        rows, columns = rows[kept], columns[kept]
    components.join_rows(rows, columns)


def _follow_table(
    components: Components,
    linked: Flags,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    allowed: PairFilter | None,
) -> None:
    linked &= components.labels[left][:, None] != components.labels[right][None, :]
    if allowed is not None and linked.any():
        linked &= allowed(left[:, None], right[None, :])
    while True:
        has_right, has_left = linked.any(axis=1), linked.any(axis=0)
        if not has_right.any():
            return
        first_right, first_left = linked.argmax(axis=1), linked.argmax(axis=0)
        components.join_rows(
            np.concatenate([left[has_right], left[first_left[has_left]]]),
            np.concatenate([right[first_right[has_right]], right[has_left]]),
        )
        linked &= components.labels[left][:, None] != components.labels[right][None, :]
