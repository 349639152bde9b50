"""Phase 5, SOUL corrections: what the user corrected becomes the scope's profile.

Corrections are taken in the order of the time at which they were made, field by field, each once. A field keeps its
former value, and says which correction set it and when. Types come from the domain's SOUL schema, of this scope or
of the nearest ancestor that has one; what does not fit is rejected with its reason, and a field is never emptied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.soul_plan import Correction, FieldValue, Plan, plan_corrections
from memory_core.sleep.soul_schema import field_name, schema_of

NAME = "soul_corrections"
SOURCE = "user-correction"
SHOWN = 50
"""Fields and rejections that the morning report shows, at most."""

# A correction whose memory the user took back before the night no longer holds; one that a phase retired does.
_WAITING = f"""
SELECT c.id, c.memory_id, c.who, c.at, CAST(c.what AS text) AS what,
       CASE WHEN m.retired_at <= :as_of AND m.retired_by_run IS NULL
            THEN 'the memory that says it was taken back: ' || m.retired_reason ELSE '' END AS withdrawn,
       NOT {not_undone(NAME, "c.id::text")} AS taken_back
FROM corrections c
LEFT JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = c.memory_id
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.consumed_by_run IS NULL AND c.at <= :as_of
  AND (m.recorded_at IS NULL OR m.recorded_at <= :as_of)
"""

_PROFILE = """
SELECT field, value, type, previous, at FROM soul_profiles
WHERE tenant_id = :tenant_id AND scope_path = :scope_path
"""

# The longest visible path is the nearest scope.
_SCHEMA = """
SELECT field, type FROM soul_schemas
WHERE tenant_id = :tenant_id AND scope_path = (
  SELECT scope_path FROM soul_schemas WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths)
  ORDER BY length(scope_path) DESC LIMIT 1)
"""

_WRITE_PROFILE = """
INSERT INTO soul_profiles AS p
       (tenant_id, scope_path, field, value, type, previous, source, at, correction_id, created_by_run)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), f.field, f.value, f.type, nullif(f.previous, 'null'::jsonb),
       CAST(:source AS text), f.at, f.correction_id, CAST(:run_id AS uuid)
FROM jsonb_to_recordset(CAST(:fields AS jsonb))
     AS f (field text, value jsonb, type text, previous jsonb, at timestamptz, correction_id uuid)
ON CONFLICT (tenant_id, scope_path, field) DO UPDATE
SET value = excluded.value, type = excluded.type, previous = excluded.previous, source = excluded.source,
    at = excluded.at, correction_id = excluded.correction_id
"""

_CONSUME = """
UPDATE corrections c SET consumed_by_run = :run_id, outcome = d.outcome, reasons = d.reasons
FROM jsonb_to_recordset(CAST(:decisions AS jsonb)) AS d (id uuid, outcome text, reasons jsonb)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.id = d.id AND c.consumed_by_run IS NULL
"""

UNDONE = """
SELECT 'soul_corrections' AS phase, slowwave.decision_key('soul_corrections', c.row_key ->> 'id') AS decision_key,
       jsonb_build_array(c.row_key ->> 'id') AS members
FROM run_changes c
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = 'soul_corrections' AND c.table_name = 'corrections'
"""


async def soul_corrections(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Apply the scope's waiting corrections to its profile.

    The run's parameter `soul_schema`, where it is given, stands for the stored schema.

    Raises:
        InvalidInput: the run's `soul_schema` is no mapping of names to known types.
    """
    waiting = await connection.rows(_WAITING, reconsider=context.reconsider)
    corrections = [
        Correction(row["id"], row["memory_id"], row["who"], row["at"], _read(row["what"]), row["withdrawn"])
        for row in waiting
        if not row["taken_back"]
    ]
    schema = await _schema(connection, context)
    if not corrections:
        return _nothing(waiting)
    profile = {
        row["field"]: FieldValue(row["value"], row["type"], row["at"], row["previous"])
        for row in await connection.rows(_PROFILE)
    }
    plan = plan_corrections(corrections, profile, schema)
    if plan.written:
        await connection.execute(_WRITE_PROFILE, fields=_json_fields(plan), source=SOURCE)
    await connection.execute(
        _CONSUME,
        decisions=json.dumps(
            [
                {"id": str(decision.correction.id), "outcome": decision.outcome, "reasons": decision.reasons}
                for decision in plan.decisions
            ]
        ),
    )
    return _outcome(waiting, plan, profile)


def _read(what: str) -> dict[str, Any]:
    """A correction's document; empty, so that it is rejected, where Postgres can hold what Python cannot read."""
    try:
        found: dict[str, Any] = json.loads(what)
    except (ValueError, RecursionError):  # a number of thousands of digits; lists thousands deep
        return {}
    return found


async def _schema(connection: ScopedConnection, context: RunContext) -> dict[str, str] | None:
    asked = context.run.parameters.get("soul_schema")
    if asked is not None:
        return schema_of(asked)
    return {field_name(row["field"]): row["type"] for row in await connection.rows(_SCHEMA)} or None


def _json_fields(plan: Plan) -> str:
    return json.dumps(
        [
            {
                "field": name,
                "value": found.value,
                "type": found.type,
                "previous": found.previous,
                "at": found.at.isoformat(),
                "correction_id": str(found.correction.id) if found.correction else None,
            }
            for name, found in sorted(plan.written.items())
        ]
    )


def _nothing(waiting: Sequence[RowMapping]) -> StepOutcome:
    return StepOutcome(
        candidates=len(waiting),
        skipped={"taken back by a person": len(waiting)} if waiting else {},
        counts={"soul_updates": 0},
        reason="a person took back what these corrections did" if waiting else "no new correction",
    )


def _outcome(waiting: Sequence[RowMapping], plan: Plan, profile: dict[str, FieldValue]) -> StepOutcome:
    outcomes = Counter(decision.outcome for decision in plan.decisions)
    skipped = {
        "rejected, each with its reason": plan.rejected_fields,
        "taken back by a person": len(waiting) - len(plan.decisions),
    }
    changed = [(name, plan.written[name]) for name in sorted(plan.changed)]
    sources = dict.fromkeys(
        str(found.correction.memory_id or found.correction.id) for _, found in changed if found.correction is not None
    )
    details: dict[str, Any] = {
        "fields": [
            {
                "field": name,
                "value": found.value,
                "previous": profile[name].value if name in profile else None,
                "at": found.at.isoformat(),
                "who": found.correction.who if found.correction else "",
            }
            for name, found in changed[:SHOWN]
        ],
        "rejected": [
            {"correction_id": str(decision.correction.id), "reasons": decision.reasons}
            for decision in plan.decisions
            if decision.outcome != "applied"
        ][:SHOWN],
    }
    return StepOutcome(
        candidates=len(waiting),
        changed=len(changed),
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(sources)[:SAMPLE_SIZE],
        counts={
            "soul_updates": len(changed),
            "corrections_applied": outcomes["applied"],
            "corrections_partly_applied": outcomes["partly_applied"],
            "corrections_rejected": outcomes["rejected"],
        },
        details={name: found for name, found in details.items() if found},
        reason="" if changed else "no correction changed the profile",
    )


STEP = Step(NAME, soul_corrections, undone=UNDONE)
