"""Connected components: those of brute force, whatever the block, the density of links, and what may be linked."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.layers import components
from memory_core.layers.components import Components, Flags, Vectors, join_similar


def by_search(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The components of a graph, found by walking it."""
    near: list[set[int]] = [set() for _ in range(count)]
    for left, right in pairs:
        near[left].add(right)
        near[right].add(left)
    found, seen = [], set[int]()
    for start in range(count):
        if start in seen:
            continue
        reached, open_rows = {start}, [start]
        while open_rows:
            new = near[open_rows.pop()] - reached
            reached |= new
            open_rows += new
        seen |= reached
        found.append(sorted(reached))
    return found


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
@settings(max_examples=100, deadline=None)
def test_joined_pairs_make_the_components_of_their_graph(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """Joined at once or one after another, pairs end in the same sets, each named by its smallest row."""
    count, pairs = graph
    at_once, one_by_one = Components(count), Components(count)
    at_once.join(pairs)
    for pair in pairs:
        one_by_one.join([pair])
    expected = by_search(count, pairs)
    assert at_once.groups() == one_by_one.groups() == expected
    assert at_once.labels.tolist() == one_by_one.labels.tolist()
    assert {int(label) for label in at_once.labels} == {group[0] for group in expected}


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 60),
    st.floats(0.1, 0.97),
    st.integers(1, 12),
    st.sampled_from([1, 2, 7, 60]),
    st.sampled_from([1, 4, 10_000]),
)
@settings(max_examples=200, deadline=None)
def test_the_blocked_search_equals_brute_force(
    seed: int, count: int, threshold: float, kinds: int, block: int, sparse: int
) -> None:
    """With blocks of any size, by lists and by tables, over some of the rows, links only between equal kinds."""
    chance = np.random.default_rng(seed)
    vectors = chance.standard_normal((count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kind = chance.integers(kinds, size=count)
    rows = chance.permutation(count)[: max(1, count - 3)]

    def allowed(left: np.ndarray, right: np.ndarray) -> Flags:
        return np.asarray(kind[left] == kind[right])

    found = Components(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "BLOCK_ROWS", block)
        patch.setattr(components, "SPARSE", sparse)
        join_similar(found, vectors, rows, threshold, allowed)
    products = vectors @ vectors.T
    pairs = ((i, j) for i in rows.tolist() for j in rows.tolist() if products[i, j] >= threshold and kind[i] == kind[j])
    assert found.groups() == by_search(count, pairs)


@pytest.mark.parametrize("kinds", [1, 2_100])
def test_a_complete_graph_costs_no_more_than_a_sparse_one(kinds: int) -> None:
    """All alike: one component where all may be linked, none where nothing may, and no list of the pairs in memory."""
    import tracemalloc

    vectors: Vectors = np.ones((2_100, 2), np.float32) / np.float32(np.sqrt(2.0))
    kind = np.arange(2_100) % kinds
    found = Components(2_100)
    tracemalloc.start()
    join_similar(found, vectors, np.arange(2_100), 0.7, lambda left, right: np.asarray(kind[left] == kind[right]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.groups()) == kinds
    assert peak < 24 * 2**20
