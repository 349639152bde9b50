"""Promotion, off unless switched on: what two or more child scopes say alike becomes known in the scope above them.

It runs in the parent's night and writes the parent's scope only. Children are read through one function of the
database (`database/children.py`), which gives a statement away only where at least two direct children say it, each
in a current fact or episode of enough confidence, and no child that speaks about the same subject and predicate says
otherwise. The statement is the triple in one form, or the same content where there is none.

The surest child's words become a new memory with the source `promotion`, whose property `promoted_from` names every
memory that it was taken from; those stay as they are. A statement that the scope knew once, by whichever way and in
whatever state, is not promoted again: what was retired, corrected or taken back stays so. A promoted memory that more
children come to say gets their names added.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.identity import content_hash
from memory_core.layers.provenance import (
    PROMOTED_FROM,
    PROMOTION_SOURCE,
    Provenance,
    promoted,
    provenance_of,
    with_sources,
)
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.same_wording import wording_key
from memory_core.sleep.streaming import pages

NAME = "promotion"


class PromotionSettings(BaseModel):
    """Section `promotion`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(
        default=False,
        description="Whether nights of a scope may read what its child scopes say in common, and keep it for all.",
    )
    from_children: int = Field(default=2, ge=2, le=10_000, description="Child scopes that have to say the same.")
    least_confidence: float = Field(
        default=0.7, ge=0, le=1, description="Confidence that a memory needs to count, for and against."
    )
    page_size: int = Field(default=1_000, ge=1, le=100_000, description="Statements looked at between two writes.")


# Only for this transaction; what a scope or its tenant stored decides before it.
_ALLOW = "SELECT set_config('slowwave.promotion', 'on', true)"

_STATEMENT = "slowwave.statement_key(m.subject, m.predicate, m.object, m.content_hash)"

_FOUND = f"""
WITH own AS MATERIALIZED (
  SELECT DISTINCT ON (statement) statement, id, stands, source, properties
  FROM (
    SELECT {_STATEMENT} AS statement, m.id, m.source, m.properties,
           m.retired_at IS NULL AND m.superseded_reason IS NULL
             AND (m.expires_at IS NULL OR m.expires_at > :as_of) AS stands
    FROM memories m
    WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NULL AND m.layer <> 'working'
  ) AS m
  ORDER BY statement, stands DESC, source IS NOT DISTINCT FROM '{PROMOTION_SOURCE}' DESC, id
)
SELECT c.*, o.id AS own_id, o.stands, o.source AS own_source, o.properties AS own_properties,
       {not_undone(NAME, "c.statement")} AS open,
       (SELECT jsonb_agg(s.source ORDER BY s.source ->> 'scope_path', s.source ->> 'memory_id')
        FROM jsonb_array_elements(c.sources) AS s(source)
        WHERE {not_undone(NAME, "c.statement", "s.source ->> 'memory_id'")}) AS open_sources
FROM slowwave.promotion_candidates(:as_of, :from_children, :least_confidence) c
LEFT JOIN own o ON o.statement = c.statement
ORDER BY c.statement
"""

_INSERT = f"""
WITH made AS (
  INSERT INTO memories (tenant_id, id, scope_path, layer, label, content, subject, predicate, object, properties,
                        observed_at, recorded_at, last_activity_at, expires_at, source, content_hash, created_by_run)
  SELECT CAST(:tenant_id AS text), r.id, CAST(:scope_path AS text), r.layer, r.label, r.content, r.subject, r.predicate,
         r.object, r.properties, r.observed_at, CAST(:as_of AS timestamptz), CAST(:as_of AS timestamptz), r.expires_at,
         '{PROMOTION_SOURCE}', r.content_hash, CAST(:run_id AS uuid)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id uuid, layer text, label text, content text, subject text,
       predicate text, object text, properties jsonb, observed_at timestamptz, expires_at timestamptz,
       content_hash text)
  ON CONFLICT DO NOTHING
  RETURNING id
)
INSERT INTO memory_state (tenant_id, scope_path, memory_id, importance, confidence, first_night, created_by_run)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), m.id, r.importance, r.confidence,
       CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM made m
JOIN jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id uuid, importance double precision, confidence double precision)
  ON r.id = m.id
"""

_ADD = f"""
UPDATE memories m SET properties = jsonb_set(m.properties, '{{{PROMOTED_FROM}}}', r.provenance)
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id uuid, provenance jsonb)
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', {_STATEMENT}) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.created_by_run = CAST(:id AS uuid)
  AND m.source = '{PROMOTION_SOURCE}'
UNION ALL
SELECT '{NAME}', slowwave.decision_key('{NAME}', {_STATEMENT}, e.entry ->> 'memory_id'),
       jsonb_build_array(m.id, e.entry -> 'memory_id')
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'id' AS uuid)
CROSS JOIN LATERAL jsonb_array_elements(c.after -> 'properties' -> '{PROMOTED_FROM}') AS e(entry)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = '{NAME}' AND c.table_name = 'memories' AND c.operation = 'update'
  AND e.entry ->> 'run_id' = CAST(:id AS text)
"""


@dataclass(slots=True)
class _Found:
    new: list[dict[str, Any]] = field(default_factory=list)
    more_sources: list[dict[str, Any]] = field(default_factory=list)


async def promotion(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Keep in the scope what its child scopes say in common; the children stay as they are.

    The candidates are statements that enough children make, and subjects and predicates about which they disagree.
    """
    settings = context.section(NAME, PromotionSettings)
    await connection.execute(_ALLOW)
    skipped: Counter[str] = Counter()
    made: list[str] = []
    grown: list[str] = []
    candidates = sources = 0
    async for page in pages(
        connection,
        _FOUND,
        page_size=settings.page_size,
        from_children=settings.from_children,
        least_confidence=settings.least_confidence,
        reconsider=context.reconsider,
    ):
        candidates += len(page)
        found = _Found()
        for row in page:
            sources += _place(row, connection, found, skipped)
        if found.new:
            await connection.execute(_INSERT, rows=json.dumps(found.new))
        if found.more_sources:
            await connection.execute(_ADD, rows=json.dumps(found.more_sources))
        made += [each["id"] for each in found.new]
        grown += [each["id"] for each in found.more_sources]
    return StepOutcome(
        candidates=candidates,
        changed=len(made) + len(grown),
        skipped=dict(sorted(skipped.items())),
        sample=tuple((made + grown)[:SAMPLE_SIZE]),
        counts={"memories_promoted": len(made), "sources_added": sources},
        reason=""
        if made or grown
        else "what child scopes say in common is known here already, or was taken out of here"
        if candidates > skipped["children disagree"]
        else "the child scopes disagree"
        if candidates
        else "the scope's settings do not let it read its child scopes"
        if _forbidden(context)
        else "no two child scopes say the same with enough confidence",
    )


def _place(row: RowMapping, connection: ScopedConnection, found: _Found, skipped: Counter[str]) -> int:
    """Decide about one statement; returns how many sources an already promoted one gains."""
    reason = _left_alone(row)
    if reason:
        skipped[reason] += 1
        return 0
    assert connection.run is not None
    entries = promoted(row["open_sources"], at=connection.as_of, by=NAME, run_id=connection.run.run_id)
    if row["own_id"] is None:
        found.new.append(_new(row, connection, entries))
        return 0
    whole, added = with_sources(provenance_of(row["own_properties"], row["own_source"]), entries)
    if added:
        found.more_sources.append({"id": str(row["own_id"]), "provenance": whole})
    else:
        skipped["already known here"] += 1
    return added


def _left_alone(row: RowMapping) -> str:
    """Why nothing is done about a statement; empty where something may be."""
    if not row["agreed"]:
        return "children disagree"
    if row["own_id"] is not None and not row["stands"]:
        return "was known here, and is retired or replaced"
    if row["own_id"] is not None and row["own_source"] != PROMOTION_SOURCE:
        return "already known here"
    if not row["open"] or not row["open_sources"]:
        return "taken back by a person"
    marks = wording_key(row["content"])
    if marks[0] == "s" and row["voices"] > 1:
        return "each speaks of itself"
    if marks[1] == "t" and row["days"] > 1:
        return "words of a day, said on several days"
    return ""


def _new(row: RowMapping, connection: ScopedConnection, entries: Provenance) -> dict[str, Any]:
    words = {name: row[name] for name in ("layer", "label", "content", "subject", "predicate", "object")}
    speaker = {} if row["speaker"] is None else {"speaker": row["speaker"]}
    expires_at = row["expires_at"]
    return {
        **words,
        "id": str(connection.scope.derived_id(NAME, row["statement"])),
        "properties": {**speaker, PROMOTED_FROM: entries},
        "observed_at": row["observed_at"].isoformat(),
        "expires_at": None if expires_at is None else expires_at.isoformat(),
        "importance": row["importance"],
        "confidence": row["confidence"],
        "content_hash": content_hash(*words.values()),
    }


def _forbidden(context: RunContext) -> bool:
    """Whether what is stored for the scope says no, so that the database gives nothing whatever this run was told."""
    own = context.tenant_settings.get(NAME)
    return isinstance(own, dict) and own.get("enabled") is False


def _enabled(context: RunContext) -> bool:
    return context.section(NAME, PromotionSettings).enabled


STEP = Step(NAME, promotion, undone=UNDONE, enabled=_enabled)
