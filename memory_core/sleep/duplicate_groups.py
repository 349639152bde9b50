"""Facts that say the same in the same words, found: what is new is brought into one form and compared with the known.

`memory_state.wording_key` holds, for the content hash that was looked at, what the fact says in one form; where it is
absent, or of another content or version of the rules, the fact is new. What a run finds out lies in a temporary table
until `keep_checked`, so that what is left for another run is still new there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.guards import IDENTITY_CONDITION
from memory_core.sleep.same_wording import VERSION, wording_key
from memory_core.sleep.streaming import pages

_CURRENT = """m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at <= :as_of
    AND m.layer = 'semantic' AND m.derived_key IS NULL AND m.retired_at IS NULL AND m.superseded_reason IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > :as_of)"""

_CHECKED = f"m.content_hash || '/{VERSION}/'"

_STAGE = "CREATE TEMPORARY TABLE IF NOT EXISTS said_anew (memory_id uuid, said text) ON COMMIT DELETE ROWS"
_EMPTY = "DELETE FROM pg_temp.said_anew"

# What has no vector yet stays new until it has one.
_NEW = f"""
SELECT m.id, m.content, m.label, m.subject, m.predicate, m.object
FROM memories m
JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
JOIN memory_embeddings e ON e.tenant_id = m.tenant_id AND e.memory_id = m.id
WHERE {_CURRENT} AND s.scope_path = :scope_path AND e.scope_path = :scope_path AND e.model = :model
  AND e.aspect = 'content' AND (s.wording_key IS NULL OR NOT starts_with(s.wording_key, {_CHECKED}))
ORDER BY m.id
"""

_SAY = """
INSERT INTO pg_temp.said_anew (memory_id, said) SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:said AS text[]))
"""

_GROUPS = f"""
WITH known AS MATERIALIZED (
  SELECT memory_id, said, true AS is_new FROM pg_temp.said_anew
  UNION ALL
  SELECT s.memory_id, split_part(s.wording_key, '/', 3), false
  FROM memory_state s JOIN memories m ON m.tenant_id = s.tenant_id AND m.id = s.memory_id
  WHERE {_CURRENT} AND s.scope_path = :scope_path AND starts_with(s.wording_key, {_CHECKED})
    AND (CAST(:reconsider AS boolean) OR split_part(s.wording_key, '/', 3) IN (SELECT said FROM pg_temp.said_anew))
), placed AS MATERIALIZED (
  SELECT m.id, k.is_new, dense_rank() OVER (
           ORDER BY k.said, m.expires_at,
                    CASE WHEN substr(k.said, 1, 1) = 's' THEN m.source END,
                    CASE WHEN substr(k.said, 1, 1) = 's' THEN m.properties ->> 'speaker' END,
                    CASE WHEN substr(k.said, 2, 1) = 't' THEN CAST(m.observed_at AT TIME ZONE 'UTC' AS date) END
         ) AS place
  FROM known k JOIN memories m ON m.id = k.memory_id
  WHERE {_CURRENT}
), groups AS (
  SELECT place, pairs, sum(pairs) OVER (ORDER BY place) - pairs < :most_pairs AS compared
  FROM (SELECT place, count(*) * (count(*) - 1) / 2 AS pairs FROM placed GROUP BY place
        HAVING count(*) > 1 AND (bool_or(is_new) OR CAST(:reconsider AS boolean))) AS g
)
SELECT p.id, p.place, p.is_new, g.pairs, g.compared, m.content_hash, r.protected,
       CASE WHEN g.compared THEN vector_send(e.embedding) END AS vector
FROM groups g JOIN placed p ON p.place = g.place
JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = p.id
JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = p.id
LEFT JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.memory_id = p.id
  AND e.model = :model AND e.aspect = 'content'
CROSS JOIN LATERAL (
  SELECT CASE WHEN m.pinned THEN 'pinned'
              WHEN {IDENTITY_CONDITION} THEN 'identity or persona'
              WHEN m.corrects IS NOT NULL
                OR m.id IN (SELECT c.memory_id FROM corrections c WHERE c.tenant_id = :tenant_id
                            AND c.scope_path = :scope_path AND c.at <= :as_of AND c.memory_id IS NOT NULL)
                OR m.id IN (SELECT a.memory_id FROM memory_accesses a WHERE a.tenant_id = :tenant_id
                            AND a.scope_path = :scope_path AND a.kind = 'confirm' AND a.at <= :as_of)
              THEN 'corrected or confirmed by a person'
         END AS protected) AS r
ORDER BY p.place, r.protected IS NULL, s.confidence DESC, m.observed_at DESC, m.recorded_at DESC, p.id
"""

_LEAVE = "DELETE FROM pg_temp.said_anew WHERE memory_id = ANY(CAST(:ids AS uuid[]))"

_CHECK = f"""
UPDATE memory_state s SET wording_key = {_CHECKED} || n.said
FROM pg_temp.said_anew n
JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = n.memory_id
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = n.memory_id
"""

_WITHOUT_VECTOR = f"""
SELECT count(*) FROM memories m
WHERE {_CURRENT} AND NOT EXISTS (SELECT FROM memory_embeddings e WHERE e.tenant_id = :tenant_id AND e.memory_id = m.id
                                 AND e.model = :model AND e.aspect = 'content')
"""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A fact that gives way, and the one that says the same and stays; with the content hashes of both."""

    loser: UUID
    winner: UUID
    hashes: tuple[str, str]


@dataclass(slots=True)
class Found:
    """What the groups of the same words came to.

    Attributes:
        members: facts that share their words with another.
        pairs: how many were compared.
        left: new facts whose groups were left for another run.
        skipped: members that stay, by reason.
    """

    members: int = 0
    pairs: int = 0
    left: list[UUID] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


async def say_anew(connection: ScopedConnection, model: str, *, page_size: int) -> int:
    """Bring every new fact that has a vector of the model into one form; returns how many there are."""
    await connection.execute(_STAGE)
    await connection.execute(_EMPTY)
    looked_at = 0
    async for page in pages(connection, _NEW, page_size=page_size, model=model):
        said = [wording_key(row["content"], row["label"], _triple(row)) for row in page]
        await connection.execute(_SAY, ids=[row["id"] for row in page], said=said)
        looked_at += len(page)
    return looked_at


async def find_duplicates(
    connection: ScopedConnection, model: str, *, similarity: float, most_pairs: int, page_size: int, reconsider: bool
) -> Found:
    """Compare the vectors inside each group of the same words that has a new fact; all groups where it reconsiders.

    A group is compared whole or left, and the first one always is compared, so that what is left gets its turn.

    Args:
        similarity: cosine from which on two are linked; what is linked over others belongs together too.
        most_pairs: groups begin as long as fewer pairs were compared.
    """
    found = Found()
    group: list[RowMapping] = []
    async for page in pages(
        connection, _GROUPS, page_size=page_size, model=model, most_pairs=most_pairs, reconsider=reconsider
    ):
        for row in page:
            found.members += 1
            if not row["compared"]:
                found.skipped["left for the next run"] += 1
                found.left += [row["id"]] if row["is_new"] else []
                continue
            if group and group[0]["place"] != row["place"]:
                _compare(group, similarity, found)
                group = []
            group.append(row)
    if group:
        _compare(group, similarity, found)
    return found


async def keep_checked(connection: ScopedConnection, left: Sequence[UUID]) -> None:
    """Keep what was looked at as known, but for what is left for another run."""
    await connection.execute(_LEAVE, ids=list(left))
    await connection.execute(_CHECK)
    await connection.execute(_EMPTY)


async def without_vector(connection: ScopedConnection, model: str) -> int:
    """How many current facts of the scope have no vector of the model."""
    return int(await connection.scalar(_WITHOUT_VECTOR, model=model))


def _triple(row: RowMapping) -> tuple[str, str, str] | None:
    return None if row["subject"] is None else (row["subject"], row["predicate"], row["object"])


def _compare(group: Sequence[RowMapping], similarity: float, found: Found) -> None:
    """Decide about facts of the same words; they come with the one first that would stay."""
    import numpy as np

    from memory_core.layers.components import Components, join_similar
    from memory_core.layers.vectors import stored_vectors

    found.pairs += group[0]["pairs"]
    vectors = stored_vectors([row["vector"] for row in group])
    components = Components(len(group))
    join_similar(components, vectors, np.arange(len(group)), similarity)
    for linked in components.groups():
        winner = group[linked[0]]
        if len(linked) == 1:
            found.skipped["the same words, but unlike vectors"] += 1
        for loser in (group[position] for position in linked[1:]):
            if loser["protected"] is None:
                hashes = (loser["content_hash"], winner["content_hash"])
                found.duplicates.append(Duplicate(loser["id"], winner["id"], hashes))
            else:
                found.skipped[loser["protected"]] += 1
