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
from memory_core.shmr.splitting import split


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
    order = sorted(range(count), key=lambda row: candidates[row].memory_id.int)
    for row in order:
        slot = slots[row]
        if slot is not None:
            by_key[slot.key].append(row)
            by_subject[slot.subject].append(row)
    components.join(pair for rows in by_key.values() for pair in pairwise(rows))
    components.join(also)
    if slot_vectors is not None:
        has_vector: Flags = np.any(slot_vectors, axis=1)
        for rows in by_subject.values():
            compared = np.array(rows)[has_vector[rows]]
            if len(compared) > 1:
                join_similar(components, slot_vectors, compared, settings.slot_similarity_threshold)
    allowed = _may_concern_the_same(candidates, slots)
    join_similar(components, content_vectors, np.array(order), settings.similarity_threshold, allowed)
    clusters = []
    for group in components.groups():
        for rows in split(group, candidates, slots, content_vectors, settings):
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
        def agree(numbers: NDArray[np.int32]) -> Flags:
            rows, columns = numbers[left], numbers[right]
            return np.asarray((rows == columns) | (rows < 0) | (columns < 0))

        found = agree(subjects)
        if found.any():
            found &= agree(predicates) | agree(values)
        return found

    return allowed


def _numbered(texts: Sequence[str | None]) -> NDArray[np.int32]:
    numbers: dict[str, int] = {}
    return np.array([-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)


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
