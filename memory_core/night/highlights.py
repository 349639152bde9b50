"""What a run did, as a person wants to read it: the morning report's matter, bounded and JSON-able.

Read from the journal, from the rows that the run created and from what they belong to; so it says the same inside a
dry run's transaction, before its rollback, and after a real run. Every list carries its total and at most a few items.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidSettings
from memory_core.runs.context import RunContext
from memory_core.sleep import strengthen

ITEMS = 20
"""Items of a list at most; the total says how many there were."""

EVIDENCE = 8
"""Pieces of evidence shown of one belief at most."""

EXCERPT = 240
"""Characters of a memory's text at most."""

# Of several changes of one row the first says what was and the row itself what is. A row that the run made itself
# and changed later was nothing before.
_CHANGED = """
changes AS MATERIALIZED (
  SELECT c.row_key, (array_agg(c.before ORDER BY c.sequence))[1] AS before
  FROM run_changes c
  WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
    AND c.table_name = '{table}' AND c.operation = 'update' AND c.before ? '{column}'
  GROUP BY c.row_key
)"""


def _changed(table: str, column: str) -> str:
    return _CHANGED.format(table=table, column=column)


def _row(table: str, key: str, alias: str) -> str:
    """SQL: the row of each of `changes`, found by its key.

    As a plain join the planner turns it round: with the statistics of the night's beginning it takes what the night
    wrote, such as a risk tag, for a rarity, and goes through all changes for each of many thousand rows.
    """
    return f"""JOIN LATERAL (
  SELECT * FROM {table} r
  WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.{key} = CAST(c.row_key ->> '{key}' AS uuid)
  OFFSET 0
) AS {alias} ON true"""


def _excerpt(column: str) -> str:
    return f"left({column}, {EXCERPT + 1})"


# What a memory's uses were is asked only of the few that are told: over all of them, with the statistics of a night's
# beginning, it would be a nested loop of everything with everything.
_STRENGTHENED = f"""
WITH {_changed("memory_state", "importance")}, told AS MATERIALIZED (
  SELECT count(*) OVER () AS total, s.memory_id, CAST(c.before ->> 'importance' AS double precision) AS before,
         s.importance AS after
  FROM changes c
  {_row("memory_state", "memory_id", "s")}
  WHERE s.importance > CAST(c.before ->> 'importance' AS double precision)
  ORDER BY s.importance - CAST(c.before ->> 'importance' AS double precision) DESC, s.importance DESC, s.memory_id
  LIMIT :limit
)
SELECT t.total, m.id AS memory_id, m.label, {_excerpt("m.content")} AS content, t.before, t.after,
       coalesce(p.evidence, 0) AS evidence, coalesce(p.kinds, '{{}}'::jsonb) AS kinds
FROM told t
JOIN memories m ON m.tenant_id = :tenant_id AND m.id = t.memory_id
LEFT JOIN LATERAL (
  SELECT CAST(sum(a.number) AS bigint) AS evidence, jsonb_object_agg(a.kind, a.number) AS kinds
  FROM (SELECT kind, count(*) AS number FROM memory_accesses
        WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = t.memory_id
          AND consumed_by_run = CAST(:id AS uuid)
          AND (CAST(:since AS timestamptz) IS NULL OR at > CAST(:since AS timestamptz))
        GROUP BY kind) AS a
) AS p ON true
ORDER BY t.after - t.before DESC, t.after DESC, t.memory_id
"""

# Links from a summary to its members are told with the summary.
_LINKED = f"""
WITH {_changed("memory_edges", "evidence_count")}, edges AS (
  SELECT e.*, e.created_by_run IS NOT DISTINCT FROM CAST(:id AS uuid) AS new
  FROM memory_edges e
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.kind <> 'clusters'
    AND (e.created_by_run = CAST(:id AS uuid) OR e.id IN (SELECT CAST(row_key ->> 'id' AS uuid) FROM changes))
)
SELECT count(*) OVER () AS total, count(*) FILTER (WHERE e.new) OVER () AS new_total,
       e.id AS edge_id, e.relationship, e.kind, e.new, e.weight, e.evidence_count AS nights,
       a.id AS source_id, coalesce(a.label, {_excerpt("a.content")}) AS source,
       {_excerpt("a.content")} AS source_content,
       b.id AS target_id, coalesce(b.label, {_excerpt("b.content")}) AS target,
       {_excerpt("b.content")} AS target_content
FROM edges e
JOIN memories a ON a.tenant_id = e.tenant_id AND a.id = e.source_id
JOIN memories b ON b.tenant_id = e.tenant_id AND b.id = e.target_id
ORDER BY e.kind = 'co_occurred', e.new DESC, e.weight DESC, e.id
LIMIT :limit
"""

_FLAGS = f"""
WITH {_changed("memory_state", "risk_words")}
SELECT count(*) OVER () AS total, m.id AS memory_id, m.label, {_excerpt("m.content")} AS content,
       coalesce(s.risk_words, c.before -> 'risk_words') AS words
FROM changes c
{_row("memory_state", "memory_id", "s")}
JOIN memories m ON m.tenant_id = s.tenant_id AND m.id = s.memory_id
WHERE s.risk_words IS {{flagged}} NULL
ORDER BY s.importance DESC, m.observed_at DESC, m.id
LIMIT :limit
"""
_FLAGGED, _UNFLAGGED = _FLAGS.format(flagged="NOT"), _FLAGS.format(flagged="")

_RETIRED = f"""
WITH {_changed("memories", "retired_at")}
SELECT count(*) OVER () AS total, m.id AS memory_id, m.label, {_excerpt("m.content")} AS content,
       m.retired_reason AS reason, m.observed_at
FROM changes c
{_row("memories", "id", "m")}
WHERE m.retired_by_run = CAST(:id AS uuid) AND m.derived_key IS NULL
ORDER BY m.observed_at, m.id
LIMIT :limit
"""

# A refreshed summary is a new row beside a retired one of the same key.
_SUMMARISED = f"""
WITH {_changed("memories", "retired_at")}, gone AS (
  SELECT m.id, m.derived_key, m.label, m.content
  FROM changes c
  {_row("memories", "id", "m")}
  WHERE m.derived_key IS NOT NULL AND m.retired_by_run = CAST(:id AS uuid)
), made AS (
  SELECT id, derived_key, label, content FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NOT NULL
    AND m.created_by_run = CAST(:id AS uuid) AND m.retired_at IS NULL
), told AS (
  SELECT m.*, CASE WHEN g.id IS NULL THEN 'new' ELSE 'refreshed' END AS state
  FROM made m LEFT JOIN gone g ON g.derived_key = m.derived_key
  UNION ALL
  SELECT g.*, 'retired' FROM gone g WHERE g.derived_key NOT IN (SELECT derived_key FROM made)
)
SELECT count(*) OVER () AS total, t.id AS memory_id, t.label, {_excerpt("coalesce(x.content, t.content)")} AS content,
       x.model, t.state, members.total AS member_count, members.shown AS members
FROM told t
LEFT JOIN memory_summaries x ON x.tenant_id = :tenant_id AND x.memory_id = t.id
CROSS JOIN LATERAL (
  SELECT count(*) AS total,
         coalesce((array_agg(coalesce(m.label, {_excerpt("m.content")})
                             ORDER BY m.observed_at DESC, m.id))[1\\:{EVIDENCE}], '{{}}') AS shown
  FROM memory_edges e JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.target_id
  WHERE e.tenant_id = :tenant_id AND e.source_id = t.id AND e.kind = 'clusters' AND e.status <> 'retired'
) AS members
ORDER BY t.state, members.total DESC, t.label, t.id
LIMIT :limit
"""

_CORRECTED = f"""
WITH {_changed("soul_profiles", "value")}
SELECT count(*) OVER () AS total, p.field, p.value, p.previous, p.type, p.source, p.at, c.who, c.memory_id
FROM soul_profiles p
LEFT JOIN corrections c ON c.tenant_id = p.tenant_id AND c.id = p.correction_id
WHERE p.tenant_id = :tenant_id AND p.scope_path = :scope_path
  AND (p.created_by_run = CAST(:id AS uuid) OR p.field IN (SELECT row_key ->> 'field' FROM changes))
ORDER BY p.at, p.field
LIMIT :limit
"""

_NOT_CORRECTED = """
SELECT count(*) OVER () AS total, c.id AS correction_id, c.who, c.at, c.what, c.outcome, c.reasons
FROM corrections c
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.consumed_by_run = CAST(:id AS uuid)
  AND c.outcome IN ('rejected', 'partly_applied')
ORDER BY c.at, c.id
LIMIT :limit
"""

# What a statement gave way to is a statement, or a belief; duplicates come last, since they are the least news.
_SUPERSEDED = f"""
WITH {_changed("memories", "superseded_reason")}
SELECT count(*) OVER () AS total, m.id AS memory_id, m.label, {_excerpt("m.content")} AS content, m.observed_at,
       m.superseded_reason AS reason, {_excerpt("coalesce(w.content, b.content)")} AS by,
       CASE WHEN m.superseded_by IS NULL THEN 'belief' ELSE 'memory' END AS by_kind,
       coalesce(m.superseded_by, m.superseded_by_belief) AS by_id, w.observed_at AS by_observed_at
FROM changes c
{_row("memories", "id", "m")}
LEFT JOIN memories w ON w.tenant_id = m.tenant_id AND w.id = m.superseded_by
LEFT JOIN harmonic_beliefs b ON b.tenant_id = m.tenant_id AND b.belief_id = m.superseded_by_belief
WHERE m.superseded_by_run = CAST(:id AS uuid) AND m.superseded_reason IS NOT NULL
ORDER BY m.superseded_reason = 'duplicate', m.observed_at DESC, m.id
LIMIT :limit
"""

_REASONS = f"""
WITH {_changed("memories", "superseded_reason")}
SELECT m.superseded_reason AS reason, count(*) AS total
FROM changes c
{_row("memories", "id", "m")}
WHERE m.superseded_by_run = CAST(:id AS uuid) AND m.superseded_reason IS NOT NULL
GROUP BY m.superseded_reason ORDER BY m.superseded_reason
"""

# A belief is told once: `changed` replaces an older one, or holds again; `supported` existed and found new evidence.
_BELIEFS = f"""
WITH {_changed("harmonic_beliefs", "status")}, touched AS (
  SELECT b.*, c.before ->> 'status' AS before, b.created_by_run IS NOT DISTINCT FROM CAST(:id AS uuid) AS made
  FROM harmonic_beliefs b
  LEFT JOIN changes c ON c.row_key ->> 'belief_id' = b.belief_id::text
  WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path
    AND (b.created_by_run = CAST(:id AS uuid) OR c.row_key IS NOT NULL
         OR b.belief_id IN (SELECT belief_id FROM belief_evidence
                            WHERE tenant_id = :tenant_id AND scope_path = :scope_path
                              AND created_by_run = CAST(:id AS uuid)))
), former AS (
  SELECT o.superseded_by_belief AS belief_id,
         (jsonb_agg(jsonb_build_object('belief_id', o.belief_id, 'content', {_excerpt("o.content")},
                                       'status', c.before ->> 'status', 'valid_from', o.valid_from)
                    ORDER BY o.valid_from DESC, o.belief_id))[0] AS belief
  FROM changes c
  JOIN harmonic_beliefs o ON o.tenant_id = :tenant_id AND o.belief_id::text = c.row_key ->> 'belief_id'
  WHERE o.status = 'superseded' AND o.superseded_by_belief IS NOT NULL
  GROUP BY o.superseded_by_belief
), told AS (
  SELECT t.*, f.belief AS former,
         CASE WHEN t.status IN ('stale', 'retracted') THEN 'withdrawn'
              WHEN t.status = 'contested' THEN 'contested'
              WHEN f.belief IS NOT NULL OR (t.before IS NOT NULL AND NOT t.made) THEN 'changed'
              WHEN t.made THEN 'new'
              ELSE 'supported' END AS news
  FROM touched t LEFT JOIN former f ON f.belief_id = t.belief_id
  WHERE t.status <> 'superseded'
), counted AS (
  SELECT *, count(*) OVER (PARTITION BY news) AS total,
         row_number() OVER (PARTITION BY news ORDER BY confidence DESC, valid_from DESC, belief_id) AS place
  FROM told
)
SELECT t.news, t.total, t.belief_id, t.subject, t.predicate, t.object, {_excerpt("t.content")} AS content,
       t.status, t.confidence,
       t.status_reason AS reason, {_excerpt("t.rationale")} AS rationale, t.valid_from, t.model, t.former,
       evidence.total AS evidence_total, evidence.items AS evidence
FROM counted t
CROSS JOIN LATERAL (
  SELECT max(e.total) AS total,
         coalesce(jsonb_agg(jsonb_build_object('memory_id', e.id, 'external_id', e.external_id, 'role', e.role,
                                               'content', e.content, 'observed_at', e.observed_at, 'source', e.source)
                            ORDER BY e.place), '[]'::jsonb) AS items
  FROM (SELECT m.id, m.external_id, v.role, {_excerpt("m.content")} AS content, m.observed_at, m.source,
               count(*) OVER () AS total,
               row_number() OVER (ORDER BY v.role = 'superseded', m.observed_at DESC, m.id, v.role) AS place
        FROM belief_evidence v JOIN memories m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id
        WHERE v.tenant_id = :tenant_id AND v.belief_id = t.belief_id) AS e
  WHERE e.place <= {EVIDENCE}
) AS evidence
WHERE t.place <= :limit
ORDER BY t.news, t.place
"""

NEWS_OF_BELIEFS = ("new", "changed", "contested", "supported", "withdrawn")

_STANDING = """
SELECT (SELECT count(*) FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
          AND m.recorded_at <= :as_of AND m.derived_key IS NULL) AS memories,
       (SELECT count(*) FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
          AND m.recorded_at <= :as_of AND m.derived_key IS NULL AND m.retired_at IS NULL AND m.superseded_reason IS NULL
          AND (m.expires_at IS NULL OR m.expires_at > :as_of)) AS current,
       (SELECT count(*) FROM harmonic_beliefs b WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path
          AND b.status = 'held') AS held,
       (SELECT count(*) FROM harmonic_beliefs b WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path
          AND b.status = 'contested') AS contested,
       (SELECT count(*) FROM harmonize_queue q JOIN memories m ON m.tenant_id = q.tenant_id AND m.id = q.memory_id
        WHERE q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.harmonized_by_run IS NULL
          AND q.enqueued_at <= :as_of AND m.retired_at IS NULL AND m.superseded_reason IS NULL) AS waiting_to_harmonize,
       (SELECT count(*) FROM memory_accesses a WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path
          AND a.consumed_by_run IS NULL AND a.at <= :as_of) AS uses_not_counted,
       (SELECT count(*) FROM pending_connections p WHERE p.tenant_id = :tenant_id AND p.scope_path = :scope_path
          AND p.consumed_by_run IS NULL AND p.at <= :as_of) AS pending_connections,
       (SELECT count(*) FROM corrections c WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path
          AND c.consumed_by_run IS NULL AND c.at <= :as_of) AS corrections
"""


async def highlights(
    connection: ScopedConnection, run_id: UUID, *, evidence_since: datetime | None = None
) -> dict[str, Any]:
    """What the run did, by subject.

    Args:
        connection: a transaction of the run, since what is left over is counted as of it.
        evidence_since: uses up to this time were consumed without effect, and are not told as evidence.

    Returns:
        `strengthened`, `linked`, `flagged`, `unflagged`, `retired`, `summarised`, `corrected`, `not_corrected`,
        `superseded`: each `{"total", "items"}`, `superseded` also `by_reason`, `linked` also `new`; `beliefs`: the same
        for each of `NEWS_OF_BELIEFS`, with evidence; `standing`: what the scope holds; `backlog`: what is left to do.

    Raises:
        LookupError: the transaction belongs to no run.
    """
    _ = connection.as_of
    lists = {
        "strengthened": await _list(connection, _STRENGTHENED, run_id, since=evidence_since),
        "linked": await _list(connection, _LINKED, run_id),
        "flagged": await _list(connection, _FLAGGED, run_id),
        "unflagged": await _list(connection, _UNFLAGGED, run_id),
        "retired": await _list(connection, _RETIRED, run_id),
        "summarised": await _list(connection, _SUMMARISED, run_id),
        "corrected": await _list(connection, _CORRECTED, run_id),
        "not_corrected": await _list(connection, _NOT_CORRECTED, run_id),
        "superseded": await _list(connection, _SUPERSEDED, run_id),
    }
    lists["superseded"]["by_reason"] = {
        row["reason"]: row["total"] for row in await connection.rows(_REASONS, id=run_id)
    }
    standing = await connection.row(_STANDING)
    assert standing is not None  # a SELECT without FROM has one row
    return {
        **lists,
        "beliefs": await _beliefs(connection, run_id),
        "standing": {name: standing[name] for name in ("memories", "current", "held", "contested")},
        "backlog": {
            name: standing[name]
            for name in ("waiting_to_harmonize", "uses_not_counted", "pending_connections", "corrections")
        },
    }


async def highlights_of(connection: ScopedConnection, context: RunContext) -> dict[str, Any]:
    """The same by a run's context, whose settings say how far back a use counts as evidence."""
    try:
        settings = context.section(strengthen.NAME, strengthen.StrengthenSettings)
    except InvalidSettings:
        # The phase failed for it, and said so; its run is closed and told all the same.
        return await highlights(connection, context.run.id)
    since = context.run.as_of - timedelta(hours=settings.lookback_hours)
    return await highlights(connection, context.run.id, evidence_since=since)


async def _list(connection: ScopedConnection, sql: str, run_id: UUID, **parameters: Any) -> dict[str, Any]:
    rows = await connection.rows(sql, id=run_id, limit=ITEMS, **parameters)
    found: dict[str, Any] = {"total": rows[0]["total"] if rows else 0}
    if sql is _LINKED:
        found["new"] = rows[0]["new_total"] if rows else 0
    return {**found, "items": [_item(row) for row in rows]}


async def _beliefs(connection: ScopedConnection, run_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = {news: {"total": 0, "items": []} for news in NEWS_OF_BELIEFS}
    for row in await connection.rows(_BELIEFS, id=run_id, limit=ITEMS):
        told = found[row["news"]]
        told["total"] = row["total"]
        told["items"].append(_item(row))
    return found


def _item(row: RowMapping) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items() if name not in ("total", "new_total", "news")}


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case UUID():
            return str(value)
        case str() if len(value) > EXCERPT:
            return f"{value[:EXCERPT].rstrip()}…"
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value
