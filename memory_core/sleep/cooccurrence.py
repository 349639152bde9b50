"""Phase 1.5, co-occurrence: memories that were active at the same time are linked.

Active is what a person or an agent did: an access of any kind, used up by another phase or not, and the moment the
memory came to be known. Maintenance is no activity. A pair counts where each is among the nearest in time of the
*other* too: so no memory gets more than k links a night, however busy it is, and a burst becomes a chain of
neighbours rather than a clique of whoever came first.

Who is near is decided by the activity alone; links, retirement and what a person took back only remove pairs
afterwards. Otherwise what a night itself changed would free a place, and a second run would make other pairs.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome

NAME = "cooccurrence"
RELATIONSHIP = "CO_OCCURRED"


class CooccurrenceSettings(BaseModel):
    """Section `cooccurrence`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lookback_hours: float = Field(
        default=24,
        gt=0,
        le=24 * 366,
        description="How far back from as_of activity counts; what is exactly so old no longer does.",
    )
    window_minutes: float = Field(
        default=60, gt=0, le=24 * 60, description="Activities at most this far apart, this included, are together."
    )
    nearest: int = Field(default=5, ge=1, le=50, description="Most links one memory gets in a night.")
    rate: float = Field(
        default=0.3, gt=0, lt=1, description="Share of the way to weight 1 that one night of activity together moves."
    )
    night_hours: float = Field(
        default=12, gt=0, le=24 * 366, description="Hours between two pieces of evidence for one link, at least."
    )


# RFC 9562 version 8: a uuid over SHA-256, because Postgres itself has no SHA-1 for version 5.
_DIGEST = "sha256(convert_to(:scope_path || '|CO_OCCURRED|' || source_id || '|' || target_id, 'UTF8'))"
_EDGE_ID = """CAST(encode(set_byte(set_byte(substring(digest FROM 1 FOR 16),
           6, (get_byte(digest, 6) & 15) | 128), 8, (get_byte(digest, 8) & 63) | 128), 'hex') AS uuid)"""

_CURRENT = "m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)"

# Read only where something was ever undone.
_HASH = "(SELECT m.content_hash FROM memories m WHERE m.tenant_id = :tenant_id AND m.id = n.{0})"

_WRITE = f"""
WITH activity AS MATERIALIZED (
  SELECT a.memory_id, a.at, {_CURRENT} AS current
  FROM memory_accesses a JOIN memories m ON m.tenant_id = a.tenant_id AND m.id = a.memory_id
  WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path AND a.at > :since AND a.at <= :as_of
    AND m.scope_path = :scope_path AND m.recorded_at <= :as_of AND m.layer <> 'working' AND m.derived_key IS NULL
  UNION ALL
  SELECT m.id, m.recorded_at, {_CURRENT} FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at > :since AND m.recorded_at <= :as_of
    AND m.layer <> 'working' AND m.derived_key IS NULL
), gone AS (
  SELECT memory_id FROM activity WHERE NOT current
), spells AS (
  -- Of one memory's activities within a quarter of the window only the first and the last are kept: nothing beside
  -- them is out of reach for that, and a memory read a thousand times cannot fill the places of others.
  SELECT memory_id, min(at) AS first, max(at) AS last
  FROM activity GROUP BY memory_id, date_bin(CAST(:window AS interval) / 4, at, TIMESTAMPTZ '2000-01-01 00:00+00')
), events AS MATERIALIZED (
  SELECT memory_id, first AS at FROM spells
  UNION ALL SELECT memory_id, last FROM spells WHERE last > first
), lined_up AS (
  SELECT memory_id, at, array_agg(memory_id) OVER ahead AS others, array_agg(at) OVER ahead AS times
  FROM events
  WINDOW ahead AS (ORDER BY at, memory_id ROWS BETWEEN 1 FOLLOWING AND CAST(:nearest AS integer) FOLLOWING)
), pairs AS (
  SELECT least(e.memory_id, n.other) AS source_id, greatest(e.memory_id, n.other) AS target_id,
         min(n.at - e.at) AS gap, min(n.place) AS place, max(n.at) AS together_at
  FROM lined_up e CROSS JOIN LATERAL unnest(e.others, e.times) WITH ORDINALITY AS n(other, at, place)
  WHERE n.other <> e.memory_id AND n.at - e.at <= CAST(:window AS interval)
  GROUP BY 1, 2
), ranked AS (
  SELECT source_id, target_id, together_at,
         row_number() OVER (PARTITION BY memory_id ORDER BY gap, place, source_id, target_id) AS nearness
  FROM (SELECT source_id AS memory_id, * FROM pairs UNION ALL SELECT target_id, * FROM pairs) AS sides
), nearest AS MATERIALIZED (
  SELECT source_id, target_id, max(together_at) AS together_at
  FROM ranked WHERE nearness <= :nearest GROUP BY source_id, target_id HAVING count(*) > 1
), between AS (
  SELECT n.source_id AS one, n.target_id AS other, e.id, e.source_id, e.relationship, e.status, e.last_evidence_at
  FROM nearest n JOIN memory_edges e ON e.source_id = n.source_id AND e.target_id = n.target_id
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path
  UNION ALL
  SELECT n.source_id, n.target_id, e.id, e.source_id, e.relationship, e.status, e.last_evidence_at
  FROM nearest n JOIN memory_edges e ON e.source_id = n.target_id AND e.target_id = n.source_id
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path
), standing AS (
  -- An import may hold the link the other way round; then that one is kept.
  SELECT one, other, bool_or(relationship <> '{RELATIONSHIP}' AND status <> 'retired') AS linked,
         (array_agg(id ORDER BY source_id) FILTER (WHERE relationship = '{RELATIONSHIP}'))[1] AS edge_id,
         bool_or(status = 'retired') FILTER (WHERE relationship = '{RELATIONSHIP}') AS edge_retired,
         max(last_evidence_at) FILTER (WHERE relationship = '{RELATIONSHIP}') AS last_evidence_at
  FROM between GROUP BY one, other
), judged AS MATERIALIZED (
  SELECT n.source_id, n.target_id, s.edge_id,
         CASE WHEN n.source_id IN (SELECT memory_id FROM gone) OR n.target_id IN (SELECT memory_id FROM gone)
              THEN 'not current'
              WHEN s.linked THEN 'linked'
              WHEN s.edge_retired THEN 'edge retired'
              WHEN s.last_evidence_at >= n.together_at
                OR s.last_evidence_at > CAST(:as_of AS timestamptz) - CAST(:night AS interval) THEN 'counted'
              WHEN NOT {not_undone(NAME, _HASH.format("source_id"), _HASH.format("target_id"))} THEN 'undone'
         END AS reason
  FROM nearest n LEFT JOIN standing s ON s.one = n.source_id AND s.other = n.target_id
), created AS (
  INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, weight, evidence_count,
                            last_evidence_at, recorded_at, created_by_run)
  SELECT :tenant_id, {_EDGE_ID}, :scope_path, source_id, target_id, '{RELATIONSHIP}', 'co_occurred', :rate, 1,
         :as_of, :as_of, :run_id
  FROM (SELECT *, {_DIGEST} AS digest FROM judged WHERE reason IS NULL AND edge_id IS NULL
        OFFSET 0) AS j -- so that the digest is made once a row
  RETURNING source_id
), reinforced AS (
  UPDATE memory_edges e
  SET evidence_count = e.evidence_count + 1, last_evidence_at = :as_of,
      weight = greatest(e.weight, 1 - power(1 - CAST(:rate AS double precision), e.evidence_count + 1))
  FROM judged j
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.id = j.edge_id AND j.reason IS NULL
  RETURNING e.source_id
), starts AS (
  SELECT at FROM (SELECT at, at - lag(at) OVER (PARTITION BY memory_id ORDER BY at) AS pause FROM events) AS e
  WHERE pause IS NULL OR pause > CAST(:window AS interval)
), crowd AS (
  SELECT count(*) OVER (ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND CAST(:window AS interval) FOLLOWING)
         - row_number() OVER (ORDER BY at) AS followers
  FROM starts
)
SELECT (SELECT count(*) FROM events) AS activities,
       (SELECT coalesce(sum(followers), 0) FROM crowd)::bigint AS together,
       (SELECT count(*) FROM created) AS created,
       (SELECT count(*) FROM reinforced) AS reinforced,
       (SELECT (array_agg(source_id))[1\\:{SAMPLE_SIZE}] FROM (
          SELECT source_id FROM created UNION SELECT source_id FROM reinforced ORDER BY source_id LIMIT {SAMPLE_SIZE}
        ) AS changed) AS sample,
       count(*) AS nearest,
       count(*) FILTER (WHERE reason = 'not current') AS not_current,
       count(*) FILTER (WHERE reason = 'linked') AS linked,
       count(*) FILTER (WHERE reason = 'edge retired') AS edge_retired,
       count(*) FILTER (WHERE reason = 'counted') AS counted,
       count(*) FILTER (WHERE reason = 'undone') AS undone
FROM judged
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', a.content_hash, b.content_hash) AS decision_key,
       jsonb_build_array(a.id, b.id) AS members
FROM memory_edges e
JOIN memories a ON a.tenant_id = e.tenant_id AND a.id = e.source_id
JOIN memories b ON b.tenant_id = e.tenant_id AND b.id = e.target_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.relationship = '{RELATIONSHIP}'
  AND (e.created_by_run = CAST(:id AS uuid) AND e.kind = 'co_occurred'
       OR e.id IN (SELECT CAST(c.row_key ->> 'id' AS uuid) FROM run_changes c
                   WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
                     AND c.step = '{NAME}' AND c.table_name = 'memory_edges'))
"""


async def cooccurrence(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Link current memories of the scope that were active together, nearest in time first.

    Costs O(n k) for n activities, however dense they are. A link's weight is 1 - (1 - rate)^nights, nights being
    the distinct nights in which the two were active together (`evidence_count`). Links are undirected: one row a
    pair, the smaller id first. The pairs left out for being further in time than the k nearest are counted over
    the beginning of each spell of activity: exactly where a memory was active once, closely where it was for hours.
    """
    settings = context.section(NAME, CooccurrenceSettings)
    row = await connection.row(
        _WRITE,
        since=connection.as_of - timedelta(hours=settings.lookback_hours),
        window=timedelta(minutes=settings.window_minutes),
        night=timedelta(hours=settings.night_hours),
        nearest=settings.nearest,
        rate=settings.rate,
        reconsider=context.reconsider,
    )
    assert row is not None  # an aggregate without GROUP BY has one row
    changed = row["created"] + row["reinforced"]
    skipped = {
        f"further in time than the {settings.nearest} nearest": max(0, row["together"] - row["nearest"]),
        "linked otherwise": row["linked"],
        "counted for this night already": row["counted"],
        "retired, superseded or expired": row["not_current"],
        "the link was retired": row["edge_retired"],
        "taken back by a person": row["undone"],
    }
    return StepOutcome(
        candidates=max(row["together"], row["nearest"]),
        changed=changed,
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(str(memory_id) for memory_id in row["sample"] or ()),
        counts={"edges_created": row["created"], "edges_reinforced": row["reinforced"]},
        reason=""
        if changed
        else f"no memory was active in the last {settings.lookback_hours:g} hours"
        if not row["activities"]
        else f"no two memories were active within {settings.window_minutes:g} minutes of each other"
        if not row["nearest"]
        else "no pair has new evidence of a link",
    )


STEP = Step(NAME, cooccurrence, undone=UNDONE)
