"""Clusters: the right things together, bounded in size, the same in whatever order they come."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.layers.components import Components, Vectors, join_similar
from memory_core.models.minilm import MiniLMEmbedding
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.clustering import Cluster, cluster, fingerprint
from memory_core.shmr.phrases import learn_phrases
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot, slot_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLANTED = json.loads((Path(__file__).parents[1] / "data" / "planted_slots.json").read_text())


def memory(number: int, content: str = "", triple: tuple[str, str, str] | None = None, **given: object) -> Candidate:
    subject, predicate, value = triple or (None, None, None)
    at = AT + timedelta(hours=number)
    text = content or f"memory {number}"
    return Candidate(
        UUID(int=number + 1), 1, text, "semantic", text, subject, predicate, value, at, 0.7, None, **given  # type: ignore[arg-type]
    )  # fmt: skip


def unit(rows: object) -> Vectors:
    vectors = np.asarray(rows, dtype=np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def look_alikes(count: int, spread: float, seed: int = 0, dimension: int = 32) -> Vectors:
    random_numbers = np.random.default_rng(seed)
    return unit(random_numbers.normal(size=dimension) + spread * random_numbers.normal(size=(count, dimension)))


def sets_of(clusters: Sequence[Cluster], memories: Sequence[Candidate]) -> list[tuple[str, frozenset[UUID]]]:
    return [(c.fingerprint, frozenset(memories[member].memory_id for member in c.members)) for c in clusters]


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(0.2, 0.95))
@settings(max_examples=40, deadline=None)
def test_components_equal_brute_force(seed: int, count: int, threshold: float) -> None:
    """The blocked search finds exactly the components of all pairs."""
    vectors = look_alikes(count, 2.0, seed, dimension=6)
    found = Components(count)
    join_similar(found, vectors, np.arange(count), threshold)
    expected = Components(count)
    products = vectors @ vectors.T
    expected.join((i, j) for i, j in combinations(range(count), 2) if products[i, j] >= threshold)
    assert found.groups() == expected.groups()


def test_components_cross_block_borders() -> None:
    """Rows of different blocks are joined, and only where they are alike."""
    topics = np.eye(8, dtype=np.float32)[np.arange(2_500) % 8]
    found = Components(2_500)
    join_similar(found, topics, np.arange(2_500), 0.7)
    assert found.groups() == [list(range(start, 2_500, 8)) for start in range(8)]


@given(st.integers(0, 2**32 - 1), st.integers(2, 70), st.floats(0.05, 1.5))
@settings(max_examples=30, deadline=None)
def test_clusters_do_not_depend_on_the_order(seed: int, count: int, spread: float) -> None:
    """Shuffled input gives the same clusters, split ones included, in the same order."""
    shuffler = random.Random(seed)
    memories = [memory(i) for i in range(count)]
    slots = [Slot(f"s{shuffler.randrange(9)}", "is", "v") if shuffler.random() < 0.5 else None for _ in range(count)]
    vectors = look_alikes(count, spread, seed)
    limits = ShmrSettings(max_cluster_size=8)
    order = shuffler.sample(range(count), count)
    shuffled = [memories[i] for i in order]
    first = cluster(memories, slots, vectors, None, limits)
    second = cluster(shuffled, [slots[i] for i in order], vectors[order], None, limits)
    assert sets_of(first, memories) == sets_of(second, shuffled)


def test_a_large_component_splits_the_same_in_any_order() -> None:
    """K-means, then average linkage: still no trace of the input's order, nothing above the limit, each once."""
    memories = [memory(i) for i in range(1_300)]
    vectors = look_alikes(1_300, 0.4)
    order = random.Random(1).sample(range(1_300), 1_300)
    first = cluster(memories, [None] * 1_300, vectors, None, ShmrSettings())
    shuffled = [memories[i] for i in order]
    second = cluster(shuffled, [None] * 1_300, vectors[order], None, ShmrSettings())
    assert sets_of(first, memories) == sets_of(second, shuffled)
    members = [member for each in first for member in each.members]
    assert len(members) == len(set(members)) > 1_000
    assert max(len(each.members) for each in first) <= 24


def test_identical_vectors_in_any_number_are_split() -> None:
    """A component in which nothing tells one memory from another is cut all the same."""
    vectors = unit(np.ones((1_200, 4)))
    clusters = cluster([memory(i) for i in range(1_200)], [None] * 1_200, vectors, None, ShmrSettings())
    assert sum(len(each.members) for each in clusters) > 1_000
    assert max(len(each.members) for each in clusters) <= 24


def test_a_chain_does_not_swallow_everything() -> None:
    """Neighbours 15 degrees apart all round a circle do not become one cluster (F40)."""
    angles = np.deg2rad(np.arange(24) * 15)
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    clusters = cluster([memory(i) for i in range(24)], [None] * 24, vectors, None, ShmrSettings(max_cluster_size=8))
    for each in clusters:
        assert len(each.members) <= 8
        assert (vectors[list(each.members)] @ vectors[list(each.members)].T).mean() > 0.4


def test_five_thousand_look_alikes_stay_small_in_memory() -> None:
    """A complete graph of 5,000 takes less than 200 MB: its 12 million pairs are never listed (F41)."""
    memories, vectors = [memory(i) for i in range(5_000)], look_alikes(5_000, 0.3)
    tracemalloc.start()
    clusters = cluster(memories, [None] * 5_000, vectors, None, ShmrSettings())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert max(len(each.members) for each in clusters) <= 24


def test_same_slot_clusters_whatever_the_vectors_say() -> None:
    """Two values of one slot meet even where their texts are nothing alike; without vectors for slots too."""
    memories = [memory(0, "a"), memory(1, "b"), memory(2, "c")]
    slots = [Slot("user", "live in", "berlin"), Slot("user", "live in", "paris"), Slot("bob", "live in", "berlin")]
    clusters = cluster(memories, slots, unit(np.eye(3)), None, ShmrSettings())
    assert [each.members for each in clusters] == [(0, 1)]


def test_other_subjects_are_never_joined_by_cosine() -> None:
    """Alice's salary and Bob's look alike and have nothing to settle (F39)."""
    memories = [memory(i, triple=(who, "salary", "98000")) for i, who in enumerate(("Alice", "Bob"))]
    slots = [slot_of(each) for each in memories]
    same = unit(np.ones((2, 4)))
    assert cluster(memories, slots, same, same, ShmrSettings()) == []


def test_slots_of_one_subject_are_joined_by_their_cosine() -> None:
    """Two wordings of one relation meet through the slot vectors, above the threshold only."""
    memories = [memory(0, triple=("Ann", "lives in", "Rome")), memory(1, triple=("Ann", "home city", "Oslo"))]
    slots = [slot_of(each) for each in memories]
    content = unit(np.eye(2))
    for angle, together in ((0.81, True), (0.79, False)):
        slot_vectors = unit([[1.0, 0.0], [angle, (1 - angle**2) ** 0.5]])
        assert bool(cluster(memories, slots, content, slot_vectors, ShmrSettings())) is together


def test_a_slot_stays_together_when_its_component_is_split() -> None:
    """The statements that may contradict one another end in one cluster."""
    memories = [memory(i) for i in range(60)]
    slots = [Slot("user", f"relation {i % 10}", str(i)) for i in range(60)]
    slot_vectors = look_alikes(10, 0.1)[np.arange(60) % 10]
    clusters = cluster(memories, slots, look_alikes(60, 3.0), slot_vectors, ShmrSettings(max_cluster_size=14))
    of = {member: each.key for each in clusters for member in each.members}
    for start in range(10):
        assert len({of[member] for member in range(start, 60, 10)}) == 1


def test_what_cannot_change_is_no_cluster() -> None:
    """Below the minimum size, or only a parent scope's memories: nothing to decide."""
    alike = unit(np.ones((2, 4)))
    assert cluster([memory(0), memory(1)], [None, None], alike, None, ShmrSettings(min_cluster_size=3)) == []
    parents = [memory(0, read_only=True), memory(1, read_only=True)]
    assert cluster(parents, [None, None], alike, None, ShmrSettings()) == []
    assert len(cluster([parents[0], memory(1)], [None, None], alike, None, ShmrSettings())) == 1
    assert cluster([], [], np.zeros((0, 4), np.float32), None, ShmrSettings()) == []


def test_the_fingerprint_is_of_ids_and_contents() -> None:
    """Another content or member changes it; order does not; parts cannot run into one another."""
    one, two = memory(0, "a"), memory(1, "b")
    assert fingerprint([one, two]) == fingerprint([two, one])
    assert len({fingerprint(each) for each in ([one, two], [one], [one, memory(1, "c")])}) == 3
    clusters = cluster([one, two], [None, None], unit(np.ones((2, 4))), None, ShmrSettings())
    assert clusters[0].fingerprint == fingerprint([one, two])
    assert clusters[0].fingerprint.startswith(clusters[0].key.removeprefix("cluster_"))


def test_broken_vectors_are_refused() -> None:
    """NaN, infinity and a wrong shape are said, not clustered (F4)."""
    pair = [memory(0), memory(1)]
    for broken in (np.full((2, 4), np.nan), np.full((2, 4), np.inf), np.ones((3, 4)), np.ones(2)):
        with pytest.raises(InvalidInput):
            cluster(pair, [None, None], broken.astype(np.float32), None, ShmrSettings())
    with pytest.raises(InvalidInput):
        cluster(pair, [None], unit(np.ones((2, 4))), None, ShmrSettings())


@pytest.mark.parametrize(("as_triples", "least"), [(True, 25), (False, 24)])
async def test_planted_contradictions_meet(as_triples: bool, least: int) -> None:
    """Of 25 planted contradictions at least 95 % meet, at a same-slot precision of at least 80 %."""
    facts = [
        (row["subject"], row["predicate"], row[end])
        for row in PLANTED["contradicting"]
        for end in ("object_old", "object_new")
    ] + [(row["subject"], row["predicate"], row["object"]) for row in PLANTED["distractors"]]
    texts = [" ".join(fact) for fact in facts]
    memories = [
        memory(i, text, fact if as_triples else None) for i, (text, fact) in enumerate(zip(texts, facts, strict=True))
    ]
    learned = learn_phrases(texts)
    slots = [slot_of(each, learned) for each in memories]
    provider = MiniLMEmbedding()
    content = np.asarray(await provider.embed(texts))
    about = np.asarray(await provider.embed([" ".join(slot.key) if slot else "-" for slot in slots])).copy()
    about[[slot is None for slot in slots]] = 0.0
    clusters = cluster(memories, slots, content, about, ShmrSettings())
    of = {member: each.key for each in clusters for member in each.members}
    assert sum(of.get(2 * i, "no") == of.get(2 * i + 1) for i in range(25)) >= least
    pairs = [pair for each in clusters for pair in combinations(each.members, 2)]
    assert sum(facts[a][:2] == facts[b][:2] for a, b in pairs) / len(pairs) >= 0.8
    assert max(len(each.members) for each in clusters) <= 5
