"""Groups memories without a label prefix by what they are about: their vectors say which, their words what.

A memory is in one topic at most. Groups come from average linkage over the stored vectors, the same whatever the order
of rows; a topic that keeps most of its members keeps its key, so that its summary is refreshed and not made anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.vectors import stored_vectors
from memory_core.runs.guards import IDENTITY_CONDITION
from memory_core.sleep.meta_groups import HAS_PREFIX, PREFIX_PARAMETERS, Grouping
from memory_core.sleep.meta_rows import MetaNodesSettings
from memory_core.sleep.topic_names import topic_names

LARGEST_AT_ONCE = 2_000
"""Memories that one average linkage looks at; more are parted by k-means first, since it costs their square."""

_READ = f"""
WITH unlabelled AS MATERIALIZED (
  SELECT m.id, s.importance
  FROM memories m
  JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.layer = 'semantic' AND m.derived_key IS NULL
    AND s.scope_path = :scope_path AND m.recorded_at <= :as_of AND m.retired_at IS NULL AND m.superseded_reason IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > :as_of)
    AND NOT coalesce({HAS_PREFIX}, false) AND NOT coalesce({IDENTITY_CONDITION}, false)
), chosen AS (
  SELECT id FROM unlabelled ORDER BY importance DESC, id LIMIT :most
)
SELECT (SELECT count(*) FROM unlabelled) AS total, m.id, m.content, vector_send(e.embedding) AS vector
FROM chosen c
JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = c.id
LEFT JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.memory_id = c.id AND e.aspect = 'content'
  AND e.model = CAST(:model AS text) AND e.scope_path = :scope_path
ORDER BY m.id
"""

_FORMER = """
SELECT substr(m.derived_key, 7) AS key, array_agg(e.target_id) AS linked
FROM memories m
JOIN memory_edges e ON e.tenant_id = m.tenant_id AND e.source_id = m.id AND e.kind = 'clusters'
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND starts_with(m.derived_key, 'topic:')
  AND m.retired_at IS NULL
GROUP BY m.derived_key ORDER BY m.derived_key
"""

_MEMBERS = """
members AS (
  SELECT m.id, m.content_hash, m.observed_at, g.key
  FROM unnest(CAST(:topic_members AS uuid[]), CAST(:topic_keys AS text[])) AS g (id, key)
  JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = g.id
)"""


async def group_by_topic(
    connection: ScopedConnection, settings: MetaNodesSettings, model: str
) -> tuple[Grouping, dict[str, int]]:
    """Group the scope's current memories without a prefix.

    Args:
        model: the embedding model whose vectors are compared.

    Returns:
        the grouping, and how many memories were left out, by reason.
    """
    rows = await connection.rows(_READ, **PREFIX_PARAMETERS, model=model, most=settings.topic_most)
    former = {row["key"]: frozenset(row["linked"]) for row in await connection.rows(_FORMER)}
    known = [row for row in rows if row["vector"] is not None]
    groups: list[list[int]] = []
    if len(known) >= settings.topic_smallest:
        labels = topic_labels(stored_vectors([row["vector"] for row in known]), similarity=settings.topic_similarity)
        of_label = [np.flatnonzero(labels == label).tolist() for label in range(int(labels.max()) + 1)]
        groups = [group for group in of_label if len(group) >= settings.topic_smallest]
    keys = topic_keys([frozenset(known[i]["id"] for i in group) for group in groups], former)
    names = topic_names([[known[i]["content"] for i in group] for group in groups])
    members = [(known[i]["id"], key) for group, key in zip(groups, keys, strict=True) for i in group]
    grouping = Grouping(
        "topic",
        _MEMBERS,
        {"topic_members": [one for one, _ in members], "topic_keys": [key for _, key in members]},
        # Apart from prefixes, which may be the same word.
        {key: f"topic {name}" for key, name in zip(keys, names, strict=True)},
    )
    total = rows[0]["total"] if rows else 0
    skipped = {
        "in no topic of enough memories": len(known) - len(members),
        "without a vector": len(rows) - len(known),
        f"beyond the {settings.topic_most} most important": total - len(rows),
    }
    return grouping, {reason: count for reason, count in skipped.items() if count}


def topic_labels(vectors: NDArray[np.float32], *, similarity: float) -> NDArray[np.intp]:
    """The topic of each vector, by average linkage.

    Args:
        vectors: shape (n, d), n >= 2, rows of length 1.
        similarity: mean cosine between two groups from which on they are one.

    Returns:
        shape (n,), topics numbered from 0.
    """
    from sklearn.cluster import AgglomerativeClustering

    labels = np.zeros(len(vectors), dtype=np.intp)
    first = 0
    for part in _parts(vectors):
        own = np.zeros(len(part), dtype=np.intp)
        if len(part) > 1:
            # Distances are given, and rounded: a product's last bit depends on where in its block a row stands.
            distances = np.round(np.clip(1.0 - vectors[part] @ vectors[part].T, 0.0, 2.0), 5)
            np.fill_diagonal(distances, 0.0)
            linkage = AgglomerativeClustering(
                n_clusters=None, metric="precomputed", linkage="average", distance_threshold=1 - similarity
            )
            own = linkage.fit_predict(distances)
        labels[part] = first + own
        first += int(own.max()) + 1
    return labels


def _parts(vectors: NDArray[np.float32]) -> list[NDArray[np.intp]]:
    """Rows that are looked at together, no more than one linkage may hold."""
    if len(vectors) <= LARGEST_AT_ONCE:
        return [np.arange(len(vectors))]
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    count = -(-2 * len(vectors) // LARGEST_AT_ONCE)
    # One thread: sums in another order would round differently and could move a row that lies between two means.
    with threadpool_limits(limits=1):
        found = KMeans(n_clusters=count, n_init=1, random_state=0).fit_predict(vectors)
    return [part for label in range(count) for part in _slices(np.flatnonzero(found == label))]


def _slices(part: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [part[start : start + LARGEST_AT_ONCE] for start in range(0, len(part), LARGEST_AT_ONCE)]


def topic_keys(groups: Sequence[frozenset[Any]], former: Mapping[str, frozenset[Any]]) -> list[str]:
    """A key for each group: that of the former topic most of whose linked members it holds, else a new one.

    Args:
        groups: members' ids; a member is in one at most.
        former: the members that each topic in use is linked to, by its key.
    """
    shared = sorted(
        (-len(group & linked), key, position)
        for key, linked in former.items()
        for position, group in enumerate(groups)
        if 2 * len(group & linked) > len(linked)
    )
    keys: dict[int, str] = {}
    for _, key, position in shared:
        if position not in keys and key not in keys.values():
            keys[position] = key
    taken = set(former)
    for position, group in enumerate(groups):
        if position not in keys:
            keys[position] = _new_key(group, taken)
            taken.add(keys[position])
    return [keys[position] for position in range(len(groups))]


def _new_key(group: frozenset[Any], taken: set[str]) -> str:
    """A key by the group's first member; where a topic has that already, by the next, and at last by all together."""
    members = sorted(map(str, group))
    keys = (hashlib.sha256(named.encode()).hexdigest()[:12] for named in (*members, ",".join(members)))
    return next(key for key in keys if key not in taken)
