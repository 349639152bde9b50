"""The ledger: begins a run, keeps how each of its steps went, and closes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidTime, LaterRunsExist, NotFound
from memory_core.runs.context import Run, RunContext
from memory_core.runs.documents import describe, stored_json
from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope

ISOLATION = "REPEATABLE READ"
"""A step decides on one snapshot; what changed meanwhile makes it a conflict, which is tried again."""

CONSOLIDATION_KINDS = ("sleep", "harmonize", "nightly")

_KNOWN_SCOPE = "SELECT 1 FROM scopes WHERE tenant_id = :tenant_id AND scope_path = :scope_path"

# A run that says `running` belongs to a dead process, and what it did stays until it is undone.
_LATER = """
SELECT id, as_of FROM runs
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND NOT dry_run AND kind = ANY(:kinds)
  AND status IN ('running', 'applied', 'partial', 'interrupted') AND as_of > CAST(:time AS timestamptz)
ORDER BY as_of DESC, started_at DESC LIMIT 1
"""

_SAME_REQUEST = """
SELECT coalesce(max(ordinal) FILTER (WHERE status <> 'running') + 1, 0) AS ordinal,
       coalesce(bool_or(status = 'running'), false) AS unfinished
FROM runs
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND NOT dry_run
  AND kind = :kind AND as_of = CAST(:time AS timestamptz) AND parameters_hash = :fingerprint
"""

# One statement: another request's unfinished run is closed, and ours begins or goes on.
_BEGIN = """
WITH closed AS (
  UPDATE runs SET status = 'interrupted', finished_at = clock_timestamp()
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND status = 'running' AND id <> CAST(:id AS uuid)
)
INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters, parameters_hash, requested_by,
                  flow_run_id)
VALUES (:tenant_id, CAST(:id AS uuid), :scope_path, :kind, CAST(:time AS timestamptz), 'running', :ordinal,
        CAST(:parameters AS jsonb), :fingerprint, :requested_by, :flow_run_id)
ON CONFLICT (tenant_id, id) DO UPDATE
SET parameters = excluded.parameters, flow_run_id = coalesce(excluded.flow_run_id, runs.flow_run_id)
"""

_RUN = """
SELECT kind, as_of, parameters, dry_run FROM runs
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

_FINISH = """
UPDATE runs
SET status = :status, report = CAST(:report AS jsonb), error = CAST(:error AS jsonb), finished_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = :run_id
"""

# When the scope last slept is counted from the runs, so that an undo moves it back.
_NOTE_ON_SCOPE = """
UPDATE scopes
SET last_run_id = :run_id, last_status = :status, last_slept_at = (
  SELECT max(r.as_of) FROM runs r
  WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.kind <> 'undo' AND NOT r.dry_run
    AND r.status IN ('applied', 'partial')
)
WHERE tenant_id = :tenant_id AND scope_path = :scope_path
"""

_STEPS = """
SELECT step, status, outcome, started_at, finished_at FROM run_steps
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:id AS uuid)
ORDER BY position, step
"""

_RECORD = """
INSERT INTO run_steps (tenant_id, run_id, step, scope_path, position, status, outcome, started_at)
VALUES (:tenant_id, CAST(:id AS uuid), :step, :scope_path, :position, :status, CAST(:outcome AS jsonb),
        CAST(:started AS timestamptz))
ON CONFLICT (tenant_id, run_id, step) DO UPDATE
SET status = excluded.status, outcome = excluded.outcome, started_at = excluded.started_at,
    finished_at = clock_timestamp()
WHERE run_steps.status <> 'done'
"""


def utc(moment: datetime) -> datetime:
    """The time in UTC.

    Raises:
        InvalidTime: it has no time zone.
    """
    if moment.tzinfo is None:
        raise InvalidTime(
            f"The time {moment.isoformat()} has no time zone.", hint="Write it with one, such as 2026-03-01T03:00:00Z."
        )
    return moment.astimezone(UTC)


async def begin_run(
    database: Database,
    scope: TenantScope,
    kind: str,
    as_of: datetime,
    parameters: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    requested_by: str = "person",
    flow_run_id: str | None = None,
) -> Run:
    """Begin a run, or go on with the unfinished one of the same kind, time and parameters.

    The caller holds the scope (`locks.held_scopes`), so a row that says `running` belongs to a dead process:
    the same request resumes it, another one closes it as interrupted (its changes stay, and can be undone).

    Raises:
        InvalidTime: `as_of` is naive.
        InvalidInput: the kind is unknown.
        NotFound: the scope holds nothing; there is no such tenant here.
        LaterRunsExist: a run of the scope with a later `as_of` was applied, or was begun and never ended.
    """
    as_of = utc(as_of)
    if kind not in CONSOLIDATION_KINDS:
        raise InvalidInput(
            f"There is no run of kind {kind!r}.", hint=f"It is one of: {', '.join(CONSOLIDATION_KINDS)}."
        )
    asked = dict(parameters or {})
    fingerprint = _fingerprint(asked)
    async with database.scoped(scope) as connection:
        if await connection.scalar(_KNOWN_SCOPE) is None:
            raise NotFound(
                f"There is no scope {scope} here.",
                hint="Import its memories first, or see `slowwave status` for those that exist.",
            )
        await _refuse_if_later(connection, as_of)
        same = await connection.row(_SAME_REQUEST, kind=kind, time=as_of, fingerprint=fingerprint)
        assert same is not None  # an aggregate without GROUP BY has one row
        run_id = scope.derived_id("run", kind, as_of.isoformat(), fingerprint, str(same["ordinal"]))
        run = Run(run_id, scope, kind, as_of, asked, dry_run, resumed=same["unfinished"])
        if not dry_run:
            await connection.execute(
                _BEGIN,
                id=run.id,
                kind=kind,
                time=as_of,
                ordinal=same["ordinal"],
                parameters=stored_json(asked),
                fingerprint=fingerprint,
                requested_by=requested_by,
                flow_run_id=flow_run_id,
            )
        await connection.commit()
    return run


async def load_run(database: Database, scope: TenantScope, run_id: UUID) -> Run:
    """The run as begun.

    Raises:
        NotFound: the scope has no such run.
    """
    async with database.scoped(scope) as connection:
        row = await connection.row(_RUN, id=run_id)
    if row is None:
        raise NotFound(f"The scope {scope} has no run {run_id}.")
    return Run(run_id, scope, row["kind"], row["as_of"], row["parameters"], row["dry_run"])


async def record_failure(
    database: Database, context: RunContext, step: str, position: int, error: BaseException
) -> None:
    """Keep why a step failed; a later attempt may replace it by a success."""
    await _record_alone(database, context, step, position, "failed", {"error": describe(error)})


async def record_skip(database: Database, context: RunContext, step: str, position: int, reason: str) -> None:
    """Keep that a step was left out, and why."""
    await _record_alone(database, context, step, position, "skipped", StepOutcome(reason=reason).to_dict())


async def record_step(
    connection: ScopedConnection,
    run_id: UUID,
    step: str,
    position: int,
    status: str,
    outcome: Mapping[str, Any],
    started: datetime,
) -> None:
    """Write a step's row in the open transaction; a step that is done stays so. The caller commits."""
    await connection.execute(
        _RECORD,
        id=run_id,
        step=step,
        position=position,
        status=status,
        outcome=stored_json(outcome),
        started=started,
    )


async def finish_run(
    connection: ScopedConnection, status: str, report: Mapping[str, Any], error: Mapping[str, Any] | None = None
) -> None:
    """Close the run of the open transaction, and note on the scope when it last slept; the caller commits."""
    await connection.execute(
        _FINISH, status=status, report=stored_json(report), error=None if error is None else stored_json(error)
    )
    await connection.execute(_NOTE_ON_SCOPE, status=status)


async def steps_of(connection: ScopedConnection, run_id: UUID) -> list[dict[str, Any]]:
    """The ledger of a run in order: step, status, outcome, started, finished."""
    return [dict(row) for row in await connection.rows(_STEPS, id=run_id)]


async def _refuse_if_later(connection: ScopedConnection, as_of: datetime) -> None:
    later = await connection.row(_LATER, kinds=list(CONSOLIDATION_KINDS), time=as_of)
    if later is not None:
        raise LaterRunsExist(
            f"The scope {connection.scope} has already slept as of {later['as_of'].isoformat()} (run {later['id']}), "
            f"which is later than {as_of.isoformat()}.",
            hint="Undo the later runs, newest first, and then replay the nights in order with `slowwave backfill`.",
            later_run=str(later["id"]),
            later_as_of=later["as_of"].isoformat(),
            reason="later_runs_exist",
        )


async def _record_alone(
    database: Database, context: RunContext, step: str, position: int, status: str, outcome: Mapping[str, Any]
) -> None:
    async with database.scoped(context.run.scope, context.run.binding(step)) as connection:
        await record_step(connection, context.run.id, step, position, status, outcome, datetime.now(UTC))
        await connection.commit()


def _fingerprint(parameters: Mapping[str, Any]) -> str:
    # Accepting or reconsidering is an answer to the same request's refusal, not another request.
    asked = {name: value for name, value in parameters.items() if name not in ("accept", "requested_by")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


__all__ = [
    "CONSOLIDATION_KINDS",
    "ISOLATION",
    "begin_run",
    "describe",
    "finish_run",
    "load_run",
    "record_failure",
    "record_skip",
    "record_step",
    "steps_of",
    "utc",
]
