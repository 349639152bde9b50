"""Connected components over pairs of vectors, without ever listing the pairs inside one component."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 1024

Vectors = NDArray[np.float32]
Flags = NDArray[np.bool_]
PairFilter = Callable[[NDArray[np.intp], NDArray[np.intp]], Flags]
"""Says for rows r and columns c which pairs (r, c) may be linked at all: shape (len(r), len(c))."""


class Components:
    """Sets of row numbers that grow together (union-find; the smallest row number names its set)."""

    def __init__(self, count: int) -> None:
        self.labels: NDArray[np.intp] = np.arange(count, dtype=np.intp)

    def join(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Put the two rows of each pair into one set."""
        parents: dict[int, int] = {}

        def root(label: int) -> int:
            top = label
            while parents.get(top, top) != top:
                top = parents[top]
            while label != top:
                parents[label], label = top, parents.get(label, label)
            return top

        for left, right in pairs:
            first, second = root(int(self.labels[left])), root(int(self.labels[right]))
            parents[max(first, second)] = min(first, second)
        if parents:
            renamed = np.arange(len(self.labels), dtype=np.intp)
            for label in parents:
                renamed[label] = root(label)
            self.labels = renamed[self.labels]

    def groups(self) -> list[list[int]]:
        """The sets, each ascending, in the order of their smallest row."""
        members: dict[int, list[int]] = {}
        for row, label in enumerate(self.labels.tolist()):
            members.setdefault(label, []).append(row)
        return [members[label] for label in sorted(members)]


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
    for index, left in enumerate(blocks):
        for right in blocks[index:]:
            labels = components.labels
            if labels[left].min() == labels[left].max() == labels[right].min() == labels[right].max():
                continue
            linked = vectors[left] @ vectors[right].T >= threshold
            if linked.any():
                if allowed is not None:
                    linked &= allowed(left, right)
                _follow(components, linked, left, right)


def _follow(components: Components, linked: Flags, left: NDArray[np.intp], right: NDArray[np.intp]) -> None:
    while True:
        linked &= components.labels[left][:, None] != components.labels[right][None, :]
        has_right, has_left = linked.any(axis=1), linked.any(axis=0)
        if not has_right.any():
            return
        first_right, first_left = linked.argmax(axis=1), linked.argmax(axis=0)
        components.join(
            [(int(left[i]), int(right[first_right[i]])) for i in np.flatnonzero(has_right)]
            + [(int(left[first_left[j]]), int(right[j])) for j in np.flatnonzero(has_left)]
        )
