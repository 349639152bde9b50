"""Writes new meta-nodes: ranks the members of their groups, quotes the most central, links them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.sleep.meta_groups import Grouping
from memory_core.sleep.streaming import pages
from memory_core.sleep.summaries import summarise
from memory_core.sleep.summary_rows import NewSummary, write_summaries

EDGES_A_WRITE = 5_000
"""Edges that one statement writes, but for the last group's own."""

# The most central member is the nearest to the mean vector; without vectors, the most important and newest. The mean
# is taken in a fixed order and the distance rounded, so that a preview and its run choose alike.
_RANK = """
WITH {members}, chosen AS (
  SELECT c.key, c.id, c.observed_at, s.importance, e.embedding
  FROM members c
  JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = c.id
  LEFT JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.memory_id = c.id
    AND e.model = CAST(:model AS text) AND e.aspect = 'content'
  WHERE c.key = ANY (CAST(:keys AS text[]))
), placed AS (
  SELECT key, id, observed_at, importance, round(CAST(embedding <=> avg(embedding) OVER (
    PARTITION BY key ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS numeric), 6) AS distance
  FROM chosen
), ranked AS (
  SELECT key, id, row_number() OVER (
    PARTITION BY key ORDER BY distance NULLS LAST, importance DESC, observed_at DESC, id) AS rank
  FROM placed
)
SELECT r.key, r.id, left(m.content, 2000) AS content
FROM ranked r
LEFT JOIN memories m ON r.rank <= :quoted AND m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id
WHERE r.rank <= :linked ORDER BY r.key, r.rank
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
    model_summaries: bool = Field(
        default=False, description="Let the language model, where one is configured, write a summary beside each."
    )
    most_model_summaries: int = Field(
        default=20,
        ge=1,
        le=1_000,
        description="Summaries a model is asked for in one night, at most; largest groups first.",
    )
    topics: bool = Field(
        default=False, description="Group memories without a prefix by what they are about, and summarise those too."
    )
    topic_smallest: int = Field(default=3, ge=2, le=1_000, description="Members from which a topic has a summary.")
    topic_similarity: float = Field(
        default=0.3, gt=0, lt=1, description="Mean cosine between members from which on they are one topic."
    )
    topic_most: int = Field(
        default=5_000, ge=10, le=50_000, description="Memories grouped by topic, at most; the most important."
    )


async def make_meta_nodes(
    connection: ScopedConnection,
    settings: MetaNodesSettings,
    grouping: Grouping,
    groups: Sequence[RowMapping],
    ids: Mapping[str, UUID],
    *,
    model: str,
) -> AsyncIterator[NewSummary]:
    """Write one row with its links for each group; yields the rows as they are written.

    Args:
        grouping: what made the groups.
        groups: rows of `compare_groups`.
        ids: the new rows' ids by group key.
        model: the embedding model whose vectors say which members are central.
    """
    async for batch in _batches(connection, settings, grouping, groups, ids, model):
        await write_summaries(connection, batch, source="meta_nodes", importance=settings.importance)
        for summary in batch:
            yield summary


async def _batches(
    connection: ScopedConnection,
    settings: MetaNodesSettings,
    grouping: Grouping,
    groups: Sequence[RowMapping],
    ids: Mapping[str, UUID],
    model: str,
) -> AsyncIterator[list[NewSummary]]:
    """The new rows and their links, a bounded number at a time."""
    if not groups:
        return
    by_key = {row["key"]: row for row in groups}
    batch, links, members, key = list[NewSummary](), 0, list[RowMapping](), None
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
                if key is not None:
                    batch.append(_summary(settings, grouping, by_key[key], ids[key], members))
                    links += len(members)
                key, members = row["key"], []
                if links >= EDGES_A_WRITE:
                    yield batch
                    batch, links = [], 0
            members.append(row)
    if key is not None:
        batch.append(_summary(settings, grouping, by_key[key], ids[key], members))
        yield batch


def _summary(
    settings: MetaNodesSettings, grouping: Grouping, group: RowMapping, memory_id: UUID, members: Sequence[RowMapping]
) -> NewSummary:
    name = grouping.name(group["key"])
    quoted = [member for member in members if member["content"] is not None]
    summary = summarise(
        name,
        group["member_count"],
        [member["content"] for member in quoted],
        length=settings.length,
        quote_length=settings.quote_length,
    )
    return NewSummary(
        id=memory_id,
        layer="semantic",
        label=f"META: {name}",
        content=summary.content,
        properties={
            "type": "meta_node",
            "member_count": group["member_count"],
            "members_hash": group["members_hash"],
            "cited": [str(quoted[position]["id"]) for position in summary.cited],
        },
        observed_at=group["observed_at"],
        derived_key=f"{grouping.kind}:{group['key']}",
        members=tuple(member["id"] for member in members),
    )
