"""Phase 3, prune orphans: stale, unimportant memories that hang on to almost nothing are retired, never deleted.

A memory's age counts from the later of its last activity and the first night that saw it, so that an import of old
memories is not pruned at once. Everything is decided on one snapshot, whatever the order of rows. A neighbour that a
run retired within the stale period still counts as a neighbour: otherwise a second run would eat what the first one
had left bare.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from memory_core.beliefs.cascade import withdraw_support
from memory_core.database.scoped import ScopedConnection
from memory_core.layers.restoring import NOISE, PRUNE_ORPHANS
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.guards import IDENTITY_CONDITION, check_guards, left_to_retire
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome

NAME = PRUNE_ORPHANS
WITHOUT_USE = "the scope has no evidence of use"
WAITING = "waiting for a later night"


class PruneOrphansSettings(BaseModel):
    """Section `prune_orphans`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stale_days: float = Field(
        default=7, gt=0, le=36_600, description="Memories without activity for longer than this are stale."
    )
    importance_below: float = Field(
        default=4.0,
        ge=1,
        le=10,
        description="Only memories of less importance than this (0.4 of the scale) are pruned.",
    )
    most_neighbours: int = Field(
        default=1,
        ge=0,
        le=100,
        description="Only memories with at most so many distinct current neighbours are pruned.",
    )
    important_from: float = Field(
        default=8.0, ge=1, le=10, description="From this importance on, a memory's last link is kept."
    )
    used_days: float = Field(
        default=30, ge=0, le=36_600, description="Memories used less than so many days ago are kept, however stale."
    )
    allow_without_use: bool = Field(
        default=False, description="Prune a scope although nothing in it was ever used, as far as is known."
    )
    ration: bool = Field(
        default=False, description="Retire no more a night than the guards allow, the least important first."
    )


_NOTE_FIRST_NIGHT = """
UPDATE memory_state s SET first_night = :as_of
FROM memories m
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.first_night IS NULL
  AND m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = s.memory_id AND m.recorded_at <= :as_of
"""

_KNOWN = """n.tenant_id = :tenant_id AND n.scope_path = ANY(:visible_paths) AND n.recorded_at <= :as_of
    AND (n.expires_at IS NULL OR n.expires_at > :as_of)"""

# What a run retired or replaced lately still counts as a neighbour: otherwise what one night takes away makes room
# for the next, and a second run of the same night would retire more.
_GONE_LATELY = """(n.retired_at IS NULL OR n.retired_at <= :as_of AND n.retired_by_run IS NOT NULL
         AND n.retired_at > CAST(:stale_before AS timestamptz))
    AND (n.superseded_reason IS NULL OR n.superseded_at <= :as_of AND n.superseded_by_run IS NOT NULL
         AND n.superseded_at > CAST(:stale_before AS timestamptz))"""

_TRUE_EDGE = """e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.status <> 'retired'
    AND (e.kind = 'explicit' OR e.status = 'confirmed')"""

_WRITE = f"""
WITH low AS MATERIALIZED (
  SELECT m.id, m.label, m.pinned, m.corrects, m.content_hash, s.importance, s.last_access_at,
         -- A night of the past must not see later activity, so then the accesses up to it are asked.
         greatest(s.first_night, s.last_access_at, CASE WHEN m.last_activity_at <= :as_of THEN m.last_activity_at
                  ELSE greatest(m.recorded_at, (SELECT max(a.at) FROM memory_accesses a WHERE a.tenant_id = :tenant_id
                                AND a.scope_path = :scope_path AND a.memory_id = m.id AND a.at <= :as_of)) END) AS since
  FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at <= :as_of
    AND m.layer IN ('semantic', 'episodic') AND m.derived_key IS NULL AND m.retired_at IS NULL
    AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
    AND s.scope_path = :scope_path AND s.importance < :importance_below
), stale AS MATERIALIZED (
  SELECT * FROM low WHERE since < CAST(:stale_before AS timestamptz)
), links AS MATERIALIZED (
  SELECT l.id, l.neighbour, n.retired_at IS NULL AND n.superseded_reason IS NULL AS current
  FROM (SELECT s.id, e.target_id AS neighbour FROM stale s JOIN memory_edges e ON e.source_id = s.id WHERE {_TRUE_EDGE}
        UNION
        SELECT s.id, e.source_id FROM stale s JOIN memory_edges e ON e.target_id = s.id WHERE {_TRUE_EDGE}) AS l
  JOIN memories n ON n.id = l.neighbour
  WHERE {_KNOWN} AND {_GONE_LATELY}
), degrees AS (
  SELECT id, count(*) AS degree FROM links GROUP BY id
), weighed AS MATERIALIZED (
  SELECT m.id, m.importance, m.since, coalesce(d.degree, 0) AS degree,
         CASE WHEN d.degree > :most_neighbours THEN 'linked to more'
              WHEN {IDENTITY_CONDITION} THEN 'identity or persona'
              WHEN m.pinned THEN 'pinned'
              WHEN m.last_access_at > CAST(:used_since AS timestamptz)
                OR EXISTS (SELECT FROM memory_accesses a WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path
                           AND a.memory_id = m.id AND a.at <= :as_of AND a.at > CAST(:used_since AS timestamptz))
              THEN 'used lately'
              WHEN EXISTS (SELECT FROM belief_evidence v
                           JOIN harmonic_beliefs b ON b.tenant_id = v.tenant_id AND b.belief_id = v.belief_id
                           WHERE v.tenant_id = :tenant_id AND v.scope_path = :scope_path AND v.memory_id = m.id
                             AND v.role IN ('supports', 'contradicts') AND b.status IN ('held', 'contested'))
              THEN 'evidence of a belief'
              WHEN EXISTS (SELECT FROM memories o WHERE o.tenant_id = :tenant_id AND o.scope_path = :scope_path
                           AND o.superseded_by = m.id)
              THEN 'others gave way to it'
              WHEN m.corrects IS NOT NULL
                OR m.id IN (SELECT c.memory_id FROM corrections c WHERE c.tenant_id = :tenant_id
                            AND c.scope_path = :scope_path AND c.at <= :as_of AND c.memory_id IS NOT NULL)
              THEN 'a person corrected it'
              WHEN NOT {not_undone(NAME, "m.content_hash")} THEN 'taken back by a person'
         END AS reason
  FROM stale m LEFT JOIN degrees d ON d.id = m.id
), hubs AS (
  SELECT h.id FROM (SELECT DISTINCT l.neighbour AS id FROM weighed w JOIN links l ON l.id = w.id
                    WHERE w.reason IS NULL AND l.current) AS h
  JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = ANY(:visible_paths) AND s.memory_id = h.id
  WHERE s.importance >= :important_from
), hub_degrees AS (
  SELECT l.hub, count(*) AS degree
  FROM (SELECT h.id AS hub, e.target_id AS neighbour FROM hubs h JOIN memory_edges e ON e.source_id = h.id
        WHERE {_TRUE_EDGE}
        UNION
        SELECT h.id, e.source_id FROM hubs h JOIN memory_edges e ON e.target_id = h.id WHERE {_TRUE_EDGE}) AS l
  JOIN memories n ON n.id = l.neighbour
  WHERE {_KNOWN} AND n.superseded_reason IS NULL AND n.retired_at IS NULL
  GROUP BY l.hub
), last_links AS (
  -- Where all links of an important memory would go in one night, the best of them stays.
  SELECT id FROM (
    SELECT w.id, d.degree, count(*) OVER (PARTITION BY d.hub) AS leaving,
           row_number() OVER (PARTITION BY d.hub ORDER BY w.importance DESC, w.since DESC, w.id) AS place
    FROM hub_degrees d JOIN links l ON l.neighbour = d.hub JOIN weighed w ON w.id = l.id
    WHERE w.reason IS NULL) AS ranked
  WHERE degree <= leaving AND place = 1
), decided AS MATERIALIZED (
  SELECT w.id, w.importance, w.since, w.degree,
         CASE WHEN w.reason IS NOT NULL THEN w.reason
              WHEN w.id IN (SELECT id FROM last_links) THEN 'last link of an important memory'
              WHEN NOT (:allow_without_use OR (SELECT
                EXISTS (SELECT FROM memory_accesses a
                        WHERE a.tenant_id = :tenant_id AND a.scope_path = :scope_path AND a.at <= :as_of)
                OR EXISTS (SELECT FROM memory_state s
                           WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.access_count > 0)))
              THEN '{WITHOUT_USE}'
         END AS reason
  FROM weighed w
), judged AS MATERIALIZED (
  SELECT d.id, d.importance, d.since, d.degree,
         CASE WHEN d.reason IS NULL AND row_number() OVER (PARTITION BY d.reason IS NULL
                ORDER BY d.importance, d.since, d.id) > CAST(:ration AS bigint) THEN '{WAITING}'
              ELSE d.reason END AS reason
  FROM decided d
), retired AS (
  UPDATE memories m
  SET retired_at = :as_of, retired_by_run = :run_id,
      retired_reason = format('{NOISE}: not used for %s days, importance %s, %s',
        floor(extract(epoch FROM CAST(:as_of AS timestamptz) - j.since) / 86400),
        round(CAST(j.importance AS numeric), 1),
        CASE j.degree WHEN 0 THEN 'linked to nothing' WHEN 1 THEN 'linked to one memory'
                      ELSE format('linked to %s memories', j.degree) END)
  FROM judged j
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = j.id AND j.reason IS NULL
  RETURNING m.id
)
SELECT (SELECT count(*) FROM low) AS low, (SELECT count(*) FROM stale) AS stale,
       (SELECT array_agg(id ORDER BY id) FROM retired) AS retired,
       (SELECT jsonb_object_agg(reason, times) FROM (
          SELECT reason, count(*) AS times FROM judged WHERE reason IS NOT NULL GROUP BY reason) AS r) AS kept
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', m.content_hash) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'id' AS uuid)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = '{NAME}' AND c.table_name = 'memories' AND c.operation = 'update'
"""


async def prune_orphans(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Retire the scope's stale, unimportant and unlinked memories that nothing protects.

    Neighbours are distinct current memories over explicit and confirmed edges, either way round. The candidates are
    the current memories of low importance; `skipped` says what kept each of the others. Beliefs that rested on a
    retired memory follow in the same transaction.

    Raises:
        GuardTripped: more would be retired than the guards allow.
    """
    settings = context.section(NAME, PruneOrphansSettings)
    noted = (await connection.execute(_NOTE_FIRST_NIGHT)).rowcount
    row = await connection.row(
        _WRITE,
        stale_before=connection.as_of - timedelta(days=settings.stale_days),
        used_since=connection.as_of - timedelta(days=settings.used_days),
        importance_below=settings.importance_below,
        most_neighbours=settings.most_neighbours,
        important_from=settings.important_from,
        allow_without_use=settings.allow_without_use,
        ration=await left_to_retire(connection, context) if settings.ration else None,
        reconsider=context.reconsider,
    )
    assert row is not None  # an aggregate without GROUP BY has one row
    retired = list(row["retired"] or ())
    beliefs = 0
    if retired:
        await check_guards(connection, context)
        beliefs = await withdraw_support(connection, retired, "its evidence was retired as noise", at=connection.as_of)
    words = {
        "linked to more": f"more than {settings.most_neighbours} distinct neighbours",
        "used lately": f"used in the last {settings.used_days:g} days",
    }
    skipped = {words.get(reason, reason): count for reason, count in sorted((row["kept"] or {}).items())}
    if row["low"] > row["stale"]:
        skipped[f"active or first seen in the last {settings.stale_days:g} days"] = row["low"] - row["stale"]
    return StepOutcome(
        candidates=row["low"],
        changed=len(retired),
        skipped=skipped,
        sample=tuple(str(memory_id) for memory_id in retired[:SAMPLE_SIZE]),
        counts={"nodes_pruned": len(retired), "first_seen": noted, "beliefs_affected": beliefs},
        reason=""
        if retired
        else f"no current memory is less important than {settings.importance_below:g}"
        if not row["low"]
        else WITHOUT_USE
        if WITHOUT_USE in skipped
        else "the guards allow no more for now; the rest waits for a later night"
        if WAITING in skipped
        else "every memory of low importance is active, linked or protected",
    )


STEP = Step(NAME, prune_orphans, undone=UNDONE)
