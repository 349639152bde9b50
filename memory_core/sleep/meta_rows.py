"""Writes new meta-nodes: ranks the members of their groups, quotes the most central, links them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.identity import content_hash
from memory_core.sleep.meta_groups import Grouping
from memory_core.sleep.streaming import pages
from memory_core.sleep.summaries import summarise

EDGES_A_WRITE = 5_000
"""Edges that one statement writes, but for the last group's own."""

# The most central member is the nearest to the mean vector; without vectors, the most important and newest. The mean
# is taken in a fixed order and the distance rounded, so that a preview and its run choose alike.
_RANK = """
WITH {members}, chosen AS MATERIALIZED (
  SELECT * FROM members WHERE key = ANY (CAST(:keys AS text[]))
), vectors AS MATERIALIZED (
  SELECT c.key, c.id, e.embedding
  FROM chosen c
  JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.memory_id = c.id
  WHERE e.model = CAST(:model AS text) AND e.aspect = 'content'
), centres AS (
  SELECT key, avg(embedding ORDER BY id) AS centre FROM vectors GROUP BY key
), distances AS (
  SELECT v.id, round(CAST(v.embedding <=> c.centre AS numeric), 6) AS distance FROM vectors v JOIN centres c USING (key)
), ranked AS (
  SELECT c.key, c.id, row_number() OVER (
    PARTITION BY c.key ORDER BY d.distance NULLS LAST, s.importance DESC, c.observed_at DESC, c.id) AS rank
  FROM chosen c
  JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = c.id
  LEFT JOIN distances d ON d.id = c.id
)
SELECT r.key, r.id, left(m.content, 2000) AS content
FROM ranked r
LEFT JOIN memories m ON r.rank <= :quoted AND m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id
WHERE r.rank <= :linked ORDER BY r.key, r.rank
"""

_INSERT = """
WITH made AS (
  INSERT INTO memories (tenant_id, id, scope_path, layer, label, content, properties, observed_at, recorded_at,
                        last_activity_at, source, content_hash, derived_key, created_by_run)
  SELECT CAST(:tenant_id AS text), r.id, CAST(:scope_path AS text), 'semantic', r.label, r.content, r.properties,
         r.observed_at, CAST(:as_of AS timestamptz), CAST(:as_of AS timestamptz), 'meta_nodes', r.content_hash,
         r.derived_key, CAST(:run_id AS uuid)
  FROM jsonb_to_recordset(CAST(:nodes AS jsonb)) AS r (id uuid, label text, content text, properties jsonb,
       observed_at timestamptz, content_hash text, derived_key text)
  -- Another run's row, which this snapshot does not see, is so a conflict that is tried again, not a failure.
  ON CONFLICT DO NOTHING
  RETURNING id
)
INSERT INTO memory_state (tenant_id, scope_path, memory_id, importance, first_night, created_by_run)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), id, CAST(:importance AS double precision),
       CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM made
"""

_LINK = """
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, last_evidence_at,
                          recorded_at, created_by_run)
SELECT CAST(:tenant_id AS text), e.id, CAST(:scope_path AS text), e.source, e.target, 'CLUSTERS', 'clusters',
       CAST(:as_of AS timestamptz), CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM unnest(CAST(:ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:targets AS uuid[])) AS e (id, source, target)
"""


class MetaNodesSettings(BaseModel):
    """Section `meta_nodes`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    smallest: int = Field(default=3, ge=2, le=1_000, description="Members from which a group has a summary.")
    importance: float = Field(default=7, ge=1, le=10, description="Importance of a summary.")
    length: int = Field(default=700, ge=80, le=10_000, description="Characters of a summary, at most.")
    quote_length: int = Field(default=200, ge=20, le=2_000, description="Characters of one quoted member, at most.")
    quoted: int = Field(default=8, ge=1, le=100, description="Members quoted, at most.")
    linked: int = Field(
        default=10, ge=1, le=100_000, description="Members a summary is linked to, at most; the most central."
    )
    topics: bool = Field(
        default=False, description="Group memories without a prefix by what they are about, and summarise those too."
    )
    topic_similarity: float = Field(
        default=0.3, gt=0, lt=1, description="Mean cosine between members from which on they are one topic."
    )
    topic_most: int = Field(
        default=5_000, ge=10, le=50_000, description="Memories grouped by topic, at most; the most important."
    )


@dataclass(slots=True)
class _Batch:
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[tuple[UUID, UUID]] = field(default_factory=list)


async def make_meta_nodes(
    connection: ScopedConnection,
    settings: MetaNodesSettings,
    grouping: Grouping,
    groups: Sequence[RowMapping],
    ids: Mapping[str, UUID],
    *,
    model: str,
) -> AsyncIterator[dict[str, Any]]:
    """Write one row with its links for each group; yields the rows as they are written.

    Args:
        grouping: what made the groups.
        groups: rows of `compare_groups`.
        ids: the new rows' ids by group key.
        model: the embedding model whose vectors say which members are central.
    """
    async for batch in _batches(connection, settings, grouping, groups, ids, model):
        await connection.execute(_INSERT, nodes=json.dumps(batch.nodes), importance=settings.importance)
        await connection.execute(
            _LINK,
            ids=[
                connection.scope.derived_id("edge", str(source), str(target), "CLUSTERS")
                for source, target in batch.edges
            ],
            sources=[source for source, _ in batch.edges],
            targets=[target for _, target in batch.edges],
        )
        for node in batch.nodes:
            yield node


async def _batches(
    connection: ScopedConnection,
    settings: MetaNodesSettings,
    grouping: Grouping,
    groups: Sequence[RowMapping],
    ids: Mapping[str, UUID],
    model: str,
) -> AsyncIterator[_Batch]:
    """The new rows and their links, a bounded number at a time."""
    if not groups:
        return
    by_key = {row["key"]: row for row in groups}
    batch, members, key = _Batch(), list[RowMapping](), None
    async for page in pages(
        connection,
        _RANK.format(members=grouping.members),
        page_size=EDGES_A_WRITE,
        **grouping.parameters,
        keys=list(by_key),
        model=model,
        quoted=settings.quoted,
        linked=settings.linked,
    ):
        for row in page:
            if row["key"] != key:
                _add(batch, grouping, by_key, ids, key, members, settings)
                key, members = row["key"], []
                if len(batch.edges) >= EDGES_A_WRITE:
                    yield batch
                    batch = _Batch()
            members.append(row)
    _add(batch, grouping, by_key, ids, key, members, settings)
    if batch.nodes:
        yield batch


def _add(
    batch: _Batch,
    grouping: Grouping,
    by_key: dict[str, RowMapping],
    ids: Mapping[str, UUID],
    key: str | None,
    members: Sequence[RowMapping],
    settings: MetaNodesSettings,
) -> None:
    if key is None:
        return
    group = by_key[key]
    label = f"META: {grouping.name(key)}"
    quoted = [member for member in members if member["content"] is not None]
    summary = summarise(
        grouping.name(key),
        group["member_count"],
        [member["content"] for member in quoted],
        length=settings.length,
        quote_length=settings.quote_length,
    )
    batch.nodes.append(
        {
            "id": str(ids[key]),
            "label": label,
            "content": summary.content,
            "properties": {
                "type": "meta_node",
                "member_count": group["member_count"],
                "members_hash": group["members_hash"],
                "cited": [str(quoted[position]["id"]) for position in summary.cited],
            },
            "observed_at": group["observed_at"].isoformat(),
            "content_hash": content_hash("semantic", label, summary.content, None, None, None),
            "derived_key": f"{grouping.kind}:{key}",
        }
    )
    batch.edges += [(ids[key], member["id"]) for member in members]
