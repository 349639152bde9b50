"""Episodic summaries, off unless switched on: where episodes pile up, the oldest get a summary beside them.

Nothing is retired, superseded or deleted for it: a summary is one more row, linked to the episodes it is made from.
Episodes are summed up in batches of one size, oldest first, each once; what a person took back is not made again.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from itertools import groupby

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.summaries import summarise
from memory_core.sleep.summary_rows import NewSummary, write_summaries

NAME = "episodic_summaries"


class EpisodicSummariesSettings(BaseModel):
    """Section `episodic_summaries`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=False, description="Sum up old episodes, beside them.")
    max_entries: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Episodes without a summary that a scope may have before any is made.",
    )
    batch_size: int = Field(default=50, ge=2, le=500, description="Episodes of one summary.")
    older_than_hours: float = Field(
        default=24, ge=0, le=24 * 366, description="Episodes at most so old are left alone; they may go on."
    )
    most_batches: int = Field(default=20, ge=1, le=1_000, description="Summaries made in one night, at most.")
    importance: float = Field(default=6, ge=1, le=10, description="Importance of a summary.")
    length: int = Field(default=1_200, ge=80, le=10_000, description="Characters of a summary, at most.")
    quote_length: int = Field(default=160, ge=20, le=2_000, description="Characters of one quoted episode, at most.")
    quoted: int = Field(default=10, ge=1, le=100, description="Episodes quoted, at most; the most central by vector.")


# The mean is taken in a fixed order and the distance rounded, so that a preview and its run choose alike.
_READ = f"""
WITH waiting AS MATERIALIZED (
  SELECT m.id, m.content_hash, m.observed_at, row_number() OVER (ORDER BY m.observed_at, m.id) - 1 AS place,
         count(*) OVER () AS total
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.layer = 'episodic' AND m.derived_key IS NULL
    AND m.recorded_at <= :as_of AND m.observed_at < CAST(:before AS timestamptz) AND m.retired_at IS NULL
    AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
    AND {not_undone(NAME, "m.content_hash")}
    AND NOT EXISTS (SELECT FROM memory_edges e JOIN memories s ON s.tenant_id = e.tenant_id AND s.id = e.source_id
                    WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.target_id = m.id
                      AND e.kind = 'clusters' AND starts_with(s.derived_key, 'episodes:'))
), chosen AS MATERIALIZED (
  SELECT id, content_hash, observed_at, total, place / CAST(:batch AS integer) AS batch
  FROM waiting
  WHERE total > :most_waiting
    AND place < CAST(:batch AS integer)
              * least(:most_batches, (total - :most_waiting + CAST(:batch AS integer) - 1) / CAST(:batch AS integer),
                      total / CAST(:batch AS integer))
), vectors AS (
  SELECT c.batch, c.id, e.embedding
  FROM chosen c
  JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.memory_id = c.id
  WHERE e.model = CAST(:model AS text) AND e.aspect = 'content'
), centres AS (
  SELECT batch, avg(embedding ORDER BY id) AS centre FROM vectors GROUP BY batch
), ranked AS (
  SELECT c.*, row_number() OVER (
    PARTITION BY c.batch
    ORDER BY round(CAST(v.embedding <=> t.centre AS numeric), 6) NULLS LAST, s.importance DESC, c.observed_at, c.id
  ) AS rank
  FROM chosen c
  JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = c.id
  LEFT JOIN vectors v ON v.id = c.id
  LEFT JOIN centres t ON t.batch = c.batch
)
SELECT (SELECT count(*) FROM waiting) AS waiting, r.id, r.content_hash, r.observed_at, r.batch,
       CASE WHEN r.rank <= :quoted THEN left(m.content, 2000) END AS content
FROM (SELECT 1) AS one
LEFT JOIN ranked r ON true
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id
ORDER BY r.batch, r.observed_at, r.id
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', m.content_hash) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM memories s
JOIN memory_edges e ON e.tenant_id = s.tenant_id AND e.source_id = s.id AND e.kind = 'clusters'
JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.target_id
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.created_by_run = CAST(:id AS uuid)
  AND starts_with(s.derived_key, 'episodes:')
"""


async def episodic_summaries(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Sum up the oldest episodes in whole batches, until no more than `max_entries` are without a summary."""
    settings = context.section(NAME, EpisodicSummariesSettings)
    rows = await connection.rows(
        _READ,
        before=connection.as_of - timedelta(hours=settings.older_than_hours),
        batch=settings.batch_size,
        most_waiting=settings.max_entries,
        most_batches=settings.most_batches,
        quoted=settings.quoted,
        model=context.embedding.model,
        reconsider=context.reconsider,
    )
    waiting = rows[0]["waiting"]
    chosen = [row for row in rows if row["id"] is not None]
    summaries = [
        _summary(connection, settings, list(batch)) for _, batch in groupby(chosen, key=lambda row: row["batch"])
    ]
    if summaries:
        await write_summaries(connection, summaries, source=NAME, importance=settings.importance)
    left = waiting - len(chosen)
    return StepOutcome(
        candidates=waiting,
        changed=len(chosen),
        skipped={"left for later, oldest first": left} if left else {},
        sample=tuple(str(summary.id) for summary in summaries[:SAMPLE_SIZE]),
        counts={"episodes_summarized": len(chosen), "episodic_summaries_created": len(summaries)},
        details={"summaries": [{"memory_id": str(one.id), "content": one.content} for one in summaries[:SAMPLE_SIZE]]}
        if summaries
        else {},
        reason=""
        if summaries
        else f"no more than {settings.max_entries} episodes are older than {settings.older_than_hours:g} hours and not "
        "summed up",
    )


def _summary(
    connection: ScopedConnection, settings: EpisodicSummariesSettings, members: list[RowMapping]
) -> NewSummary:
    hashed = hashlib.sha256(",".join(f"{row['id']} {row['content_hash']}" for row in members).encode()).hexdigest()
    quoted = [row for row in members if row["content"] is not None]
    first, last = members[0]["observed_at"], members[-1]["observed_at"]
    summary = summarise(
        f"Episodes from {_day(first)} to {_day(last)}",
        len(members),
        [row["content"] for row in quoted],
        length=settings.length,
        quote_length=settings.quote_length,
    )
    return NewSummary(
        id=connection.scope.derived_id("episodes", hashed),
        layer="episodic",
        label="META: episodes",
        content=summary.content,
        properties={
            "type": "episodic_summary",
            "member_count": len(members),
            "members_hash": hashed,
            "from": first.isoformat(),
            "to": last.isoformat(),
            "cited": [str(quoted[position]["id"]) for position in summary.cited],
        },
        observed_at=last,
        derived_key=f"episodes:{hashed}",
        members=tuple(row["id"] for row in members),
    )


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d}"


def _is_enabled(context: RunContext) -> bool:
    return context.section(NAME, EpisodicSummariesSettings).enabled


STEP = Step(NAME, episodic_summaries, undone=UNDONE, enabled=_is_enabled)
