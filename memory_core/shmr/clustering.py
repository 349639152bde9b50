"""Clusters of memories that may say the same thing or contradict one another."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import InvalidInput
from memory_core.layers.components import Components, Flags, PairFilter, Vectors, join_similar
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot

LARGEST_FOR_LINKAGE = 512
"""Units from which on a component is first divided by k-means: average linkage needs their square in memory."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Memories to be looked at together.

    Args:
        key: a short name, the same for the same memories with the same content.
        members: positions in the sequence of candidates, ascending.
        fingerprint: SHA-256 over the members' ids and content hashes: unchanged means nothing new to decide.
    """

    key: str
    members: tuple[int, ...]
    fingerprint: str


def fingerprint(members: Sequence[Candidate]) -> str:
    """SHA-256, in hexadecimal, over the members' ids and content hashes in id order, each part length-prefixed."""
    digest = hashlib.sha256()
    for part in (part for pair in sorted((str(m.memory_id), m.content_hash) for m in members) for part in pair):
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded)
    return digest.hexdigest()


def cluster(
    candidates: Sequence[Candidate],
    slots: Sequence[Slot | None],
    content_vectors: Vectors,
    slot_vectors: Vectors | None,
    settings: ShmrSettings,
    also: Iterable[tuple[int, int]] = (),
) -> list[Cluster]:
    """Group candidates; the same groups whatever order they come in.

    Two candidates are linked where their slots have the same key, or where their slot vectors (of one subject) have
    a cosine of at least `slot_similarity_threshold`, or where their content vectors have one of at least
    `similarity_threshold`. Content never links statements about different subjects ("Alice's salary" and "Bob's
    salary" look alike and have nothing to settle), nor two triples of one subject whose predicates and objects both
    differ: whether their predicates mean the same is what the slot vectors say. Connected components above
    `max_cluster_size` are split, so that a chain of look-alikes cannot swallow a tenant. Groups below
    `min_cluster_size`, or with nothing in them that may be changed, are left out.

    Args:
        candidates: n memories.
        slots: n slots; None where a memory has none.
        content_vectors: shape (n, d), float32, rows of length 1 or 0.
        slot_vectors: shape (n, d), rows of zeros where there is no slot; None to leave the comparison out.
        settings: thresholds and sizes.
        also: pairs of positions that are linked besides.

    Raises:
        InvalidInput: shapes do not fit, or a vector holds NaN or infinity.
    """
    count = len(candidates)
    _check(count, len(slots), content_vectors, slot_vectors)
    if count < settings.min_cluster_size:
        return []
    components = Components(count)
    by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
    by_subject: dict[str, list[int]] = defaultdict(list)
    # Rows are compared in the ids' order: a product's last bit depends on where in its block a row stands.
    order = sorted(range(count), key=lambda row: str(candidates[row].memory_id))
    for row in order:
        slot = slots[row]
        if slot is not None:
            by_key[slot.key].append(row)
            by_subject[slot.subject].append(row)
    components.join(pair for rows in by_key.values() for pair in pairwise(rows))
    components.join(also)
    if slot_vectors is not None:
        for rows in by_subject.values():
            join_similar(components, slot_vectors, np.array(rows), settings.slot_similarity_threshold)
    allowed = _may_concern_the_same(candidates, slots)
    join_similar(components, content_vectors, np.array(order), settings.similarity_threshold, allowed)
    clusters = []
    for group in components.groups():
        for rows in _split(group, candidates, slots, content_vectors, settings):
            members = [candidates[row] for row in rows]
            if len(rows) >= settings.min_cluster_size and not all(member.read_only for member in members):
                mark = fingerprint(members)
                clusters.append(Cluster(f"cluster_{mark[:24]}", tuple(sorted(rows)), mark))
    return sorted(clusters, key=lambda each: min(str(candidates[row].memory_id) for row in each.members))


def _may_concern_the_same(candidates: Sequence[Candidate], slots: Sequence[Slot | None]) -> PairFilter:
    subjects = _numbered([None if slot is None else slot.subject for slot in slots])
    # A sentence's slot is a reading of it; a triple's is what was said. Only triples are held to theirs.
    triples = [slot if candidate.has_triple else None for candidate, slot in zip(candidates, slots, strict=True)]
    predicates = _numbered([None if slot is None else slot.predicate for slot in triples])
    values = _numbered([None if slot is None else slot.value for slot in triples])

    def allowed(left: NDArray[np.intp], right: NDArray[np.intp]) -> Flags:
        def agree(numbers: NDArray[np.int64]) -> Flags:
            rows, columns = numbers[left][:, None], numbers[right][None, :]
            return np.asarray((rows == columns) | (rows < 0) | (columns < 0))

        return agree(subjects) & (agree(predicates) | agree(values))

    return allowed


def _numbered(texts: Sequence[str | None]) -> NDArray[np.int64]:
    numbers: dict[str, int] = {}
    return np.array([-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)


def _check(count: int, slot_count: int, content_vectors: Vectors, slot_vectors: Vectors | None) -> None:
    if slot_count != count:
        raise InvalidInput(f"There are {count} candidates and {slot_count} slots.")
    for name, vectors in (("content", content_vectors), ("slot", slot_vectors)):
        if vectors is None:
            continue
        if vectors.ndim != 2 or vectors.shape[0] != count:
            raise InvalidInput(f"The {name} vectors have shape {vectors.shape}; {count} rows are needed.")
        broken = int((~np.isfinite(vectors).all(axis=1)).sum())
        if broken:
            raise InvalidInput(
                f"{broken} of {count} {name} vectors hold NaN or infinity.", hint="Embed these memories again."
            )


@dataclass(frozen=True, slots=True)
class _Unit:
    """Rows that stay together when a component is split, and the direction of their mean."""

    rows: tuple[int, ...]
    vector: Vectors


def _split(
    group: list[int],
    candidates: Sequence[Candidate],
    slots: Sequence[Slot | None],
    vectors: Vectors,
    settings: ShmrSettings,
) -> list[list[int]]:
    largest = settings.max_cluster_size
    if len(group) <= largest:
        return [group]
    # From here on everything follows the ids' order, so that the order of the input cannot show.
    ordered = sorted(group, key=lambda row: str(candidates[row].memory_id))
    together: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in ordered:
        slot = slots[row]
        together[slot.key if slot is not None else ("", "", str(row))].append(row)
    units = []
    for rows in together.values():
        if len(rows) > largest:
            # A slot too large to stay whole: equal values side by side, so that duplicates still meet.
            rows.sort(key=lambda row: (str(slots[row]), candidates[row].observed_at, str(candidates[row].memory_id)))
        for start in range(0, len(rows), largest):
            part = tuple(rows[start : start + largest])
            mean = vectors[list(part)].mean(axis=0)
            units.append(_Unit(part, mean / max(float(np.linalg.norm(mean)), 1e-12)))
    pieces = _packed(_divide(units, largest), largest, settings.similarity_threshold)
    return [[row for unit in piece for row in unit.rows] for piece in pieces]


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
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    vectors = np.stack([unit.vector for unit in units])
    distinct = len({unit.vector.tobytes() for unit in units})
    count = min(-(-len(units) // (LARGEST_FOR_LINKAGE // 2)), distinct, 32)
    if count < 2:
        return [units]
    # One thread: sums in another order would round differently and could move a unit that lies between two means.
    with threadpool_limits(limits=1):
        labels = KMeans(n_clusters=count, n_init=1, random_state=0, max_iter=50).fit_predict(vectors)
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
    tree = AgglomerativeClustering(n_clusters=None, distance_threshold=0.0, metric="precomputed", linkage="average")
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
