"""Phase 2.5, pending edges: what spreading activation inferred becomes an edge, confirms one, or is rejected.

Ends are found by id, else by external id, else by label where just one current memory in sight has it. A
connection of a generic kind ("linked somehow") says no more than an edge that is there already, so it confirms that
edge; a typed one is written beside whatever else links the two. Each connection is used up once, with its outcome.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.pending_given import given_connections, relationship_name
from memory_core.sleep.pending_plan import ALREADY_CONSUMED, MALFORMED, REPEATED, PendingPlan, Row, fault_of

NAME = "pending_edges"


class PendingEdgesSettings(BaseModel):
    """Section `pending_edges`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generic_relationships: tuple[str, ...] = Field(
        default=("ASSOCIATED", "LINKED_SEMANTIC", "LINKED_EPISODIC", "INFERRED"),
        description="Relationships that only say that two memories belong together; they confirm any edge of the two.",
    )

    @field_validator("generic_relationships", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


_KEEP_GIVEN = """
INSERT INTO pending_connections (tenant_id, id, scope_path, source, target, relationship, status, at, created_by_run)
SELECT :tenant_id, id, :scope_path, source, target, relationship, status, :as_of, :run_id
FROM jsonb_to_recordset(CAST(:given AS jsonb)) AS g (id uuid, source text, target text, relationship text, status text)
ON CONFLICT (tenant_id, id) DO NOTHING
"""

# What was rejected before and is given again is looked at again: the memory it named may have come since.
_WAITING = """
WITH waiting AS MATERIALIZED (
  SELECT id, source, target, relationship, status, at, outcome, reason, consumed_by_run IS NOT NULL AS consumed
  FROM pending_connections
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND at <= :as_of AND consumed_by_run IS NULL
  UNION ALL
  SELECT id, source, target, relationship, status, at, outcome, reason, true FROM pending_connections
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND at <= :as_of AND consumed_by_run IS NOT NULL
    AND id = ANY(CAST(:given AS uuid[]))
), names AS MATERIALIZED (
  SELECT name, CASE WHEN name ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN CAST(name AS uuid) END AS id
  FROM (SELECT source AS name FROM waiting UNION SELECT target FROM waiting) AS ends
), found AS (
  SELECT n.name, 1 AS way, m.id, m.scope_path, m.derived_key, m.content_hash, m.retired_at IS NULL
         AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of) AS current
  FROM names n JOIN memories m ON m.id = n.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.recorded_at <= :as_of
  UNION ALL
  SELECT n.name, 2, m.id, m.scope_path, m.derived_key, m.content_hash, true
  FROM names n JOIN memories m ON m.external_id = n.name AND m.is_latest
  WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.recorded_at <= :as_of
    AND m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
  UNION ALL
  SELECT n.name, 3, m.id, m.scope_path, m.derived_key, m.content_hash, true
  FROM names n JOIN memories m ON m.label = n.name
  WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.recorded_at <= :as_of
    AND m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
), chosen AS (
  SELECT DISTINCT ON (name) name, id, content_hash, count(*) OVER (PARTITION BY name, way) AS matches,
         scope_path = :scope_path AS own, derived_key IS NOT NULL AS derived, current
  FROM found ORDER BY name, way, id
)
SELECT w.*, s.id AS source_id, s.matches AS source_matches, s.own AS source_own, s.current AS source_current,
       s.derived AS source_derived, s.content_hash AS source_hash,
       t.id AS target_id, t.matches AS target_matches, t.current AS target_current, t.derived AS target_derived,
       t.content_hash AS target_hash
FROM waiting w LEFT JOIN chosen s ON s.name = w.source LEFT JOIN chosen t ON t.name = w.target
ORDER BY w.at, w.id
"""

_BETWEEN = f"""
WITH ends AS (
  SELECT DISTINCT source_id, target_id
  FROM jsonb_to_recordset(CAST(:ends AS jsonb)) AS g (source_id uuid, target_id uuid)
)
SELECT e.id, e.source_id, e.target_id, e.relationship, e.kind, e.status, e.weight,
       NOT {not_undone(NAME, "a.content_hash", "b.content_hash", "e.relationship")} AS undone
FROM (SELECT source_id, target_id FROM ends UNION SELECT target_id, source_id FROM ends) AS p
JOIN memory_edges e ON e.source_id = p.source_id AND e.target_id = p.target_id
JOIN memories a ON a.tenant_id = e.tenant_id AND a.id = e.source_id
JOIN memories b ON b.tenant_id = e.tenant_id AND b.id = e.target_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.kind NOT IN ('co_occurred', 'clusters')
  AND e.relationship <> 'CO_OCCURRED'
ORDER BY e.kind <> 'explicit', e.weight DESC, e.id
"""

_UNDONE_BEFORE = f"""
SELECT id FROM jsonb_to_recordset(CAST(:wanted AS jsonb))
            AS g (id uuid, source_hash text, target_hash text, relationship text)
WHERE NOT {not_undone(NAME, "source_hash", "target_hash", "relationship")}
"""

_WRITE = """
WITH written AS (
  INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, weight, evidence_count,
                            last_evidence_at, status, recorded_at, created_by_run)
  SELECT :tenant_id, id, :scope_path, source_id, target_id, relationship, 'inferred', 1, 1, :as_of, 'active', :as_of,
         :run_id
  FROM jsonb_to_recordset(CAST(:written AS jsonb)) AS g (id uuid, source_id uuid, target_id uuid, relationship text)
), confirmed AS (
  UPDATE memory_edges e
  SET status = 'confirmed', evidence_count = e.evidence_count + 1,
      last_evidence_at = greatest(e.last_evidence_at, CAST(:as_of AS timestamptz))
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.id = ANY(CAST(:confirmed AS uuid[]))
)
UPDATE pending_connections p SET outcome = g.outcome, reason = g.reason, consumed_by_run = :run_id
FROM jsonb_to_recordset(CAST(:consumed AS jsonb)) AS g (id uuid, outcome text, reason text)
WHERE p.tenant_id = :tenant_id AND p.scope_path = :scope_path AND p.id = g.id
"""

UNDONE = f"""
SELECT '{NAME}' AS phase,
       slowwave.decision_key('{NAME}', a.content_hash, b.content_hash, e.relationship) AS decision_key,
       jsonb_build_array(a.id, b.id, e.relationship) AS members
FROM memory_edges e
JOIN memories a ON a.tenant_id = e.tenant_id AND a.id = e.source_id
JOIN memories b ON b.tenant_id = e.tenant_id AND b.id = e.target_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path
  AND (e.created_by_run = CAST(:id AS uuid) AND e.kind = 'inferred'
       OR e.id IN (SELECT CAST(c.row_key ->> 'id' AS uuid) FROM run_changes c
                   WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
                     AND c.step = '{NAME}' AND c.table_name = 'memory_edges'))
"""


async def pending_edges(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Turn the scope's pending connections, and those given to the run, into edges.

    The run parameter `pending_connections` takes the list of an activation log as it is.

    Raises:
        InvalidInput: `pending_connections` is not a list.
    """
    settings = context.section(NAME, PendingEdgesSettings)
    generic = {name for name in map(relationship_name, settings.generic_relationships) if name}
    given, malformed, repeated = given_connections(connection.scope, context.run.parameters.get("pending_connections"))
    if given:
        rows = [{"id": str(row_id), **row} for row_id, row in given.items()]
        await connection.execute(_KEEP_GIVEN, given=json.dumps(rows))
    waiting = [dict(row) for row in await connection.rows(_WAITING, given=list(given))]
    plan = PendingPlan(connection.scope, generic)
    plan.skipped.update({reason: count for reason, count in ((MALFORMED, malformed), (REPEATED, repeated)) if count})
    usable: list[tuple[Row, str]] = []
    for row in waiting:
        name = relationship_name(row["relationship"])
        if row["consumed"] and row["outcome"] != "rejected":
            plan.skipped[ALREADY_CONSUMED] += 1
        elif reason := fault_of(row, name):
            plan.consume(row, "rejected", reason)
        elif name is not None:
            usable.append((row, name))
    if usable:
        between = await _edges_between(connection, context, usable)
        undone = await _undone_before(connection, context, usable)
        plan.decide(usable, between, undone)
    if plan.consumed:
        await connection.execute(
            _WRITE,
            written=json.dumps(
                [
                    {"id": str(edge), "source_id": str(source), "target_id": str(target), "relationship": name}
                    for (source, target, name), edge in plan.written.items()
                ]
            ),
            confirmed=list(plan.confirmed),
            consumed=json.dumps(plan.consumed),
        )
    changed = len(plan.written) + len(plan.confirmed)
    sources = dict.fromkeys([*(key[0] for key in plan.written), *plan.confirmed.values()])
    return StepOutcome(
        candidates=len(waiting) + malformed + repeated,
        changed=changed,
        skipped=dict(sorted(plan.skipped.items())),
        sample=tuple(str(memory_id) for memory_id in list(sources)[:SAMPLE_SIZE]),
        counts={
            "edges_created": len(plan.written),
            "edges_confirmed": len(plan.confirmed),
            "pending_rejected": sum(row["outcome"] == "rejected" for row in plan.consumed),
        },
        details={"rejected": plan.rejected} if plan.rejected else {},
        reason=""
        if changed
        else "no connection is pending"
        if not waiting and not malformed
        else "no pending connection could be written or confirmed",
    )


async def _edges_between(
    connection: ScopedConnection, context: RunContext, usable: Sequence[tuple[Row, str]]
) -> dict[frozenset[UUID], list[Row]]:
    ends = [{"source_id": str(row["source_id"]), "target_id": str(row["target_id"])} for row, _ in usable]
    between: dict[frozenset[UUID], list[Row]] = {}
    for edge in await connection.rows(_BETWEEN, ends=json.dumps(ends), reconsider=context.reconsider):
        between.setdefault(frozenset((edge["source_id"], edge["target_id"])), []).append(dict(edge))
    return between


async def _undone_before(
    connection: ScopedConnection, context: RunContext, usable: Sequence[tuple[Row, str]]
) -> set[UUID]:
    wanted = [
        {
            "id": str(row["id"]),
            "source_hash": row["source_hash"],
            "target_hash": row["target_hash"],
            "relationship": name,
        }
        for row, name in usable
    ]
    found = await connection.rows(_UNDONE_BEFORE, wanted=json.dumps(wanted), reconsider=context.reconsider)
    return {row["id"] for row in found}


STEP = Step(NAME, pending_edges, undone=UNDONE)
