"""The ledger: begins a run, does each of its steps exactly once, and closes it.

A step's writes and its ledger row commit in one transaction. A step that is tried again after a crash finds its
committed row and returns it, or does the work once. The run's row is locked for the length of a step's
transaction, so two processes cannot do the same step at the same time, even where a lock was lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidTime, LaterRunsExist, NotFound, SlowwaveError, TransactionConflict
from memory_core.runs.context import Run, RunContext, Step
from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope

ISOLATION = "REPEATABLE READ"
"""A step decides on one snapshot; what changed meanwhile makes it a conflict, which is tried again."""

CONSOLIDATION_KINDS = ("sleep", "harmonize", "nightly")


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
        NotFound: the scope holds nothing; there is no such tenant here.
        LaterRunsExist: an applied run of the scope has a later `as_of`.
    """
    as_of = utc(as_of)
    asked = dict(parameters or {})
    fingerprint = _fingerprint(asked)
    async with database.scoped(scope) as connection:
        if (
            await connection.scalar("SELECT 1 FROM scopes WHERE tenant_id = :tenant_id AND scope_path = :scope_path")
            is None
        ):
            raise NotFound(
                f"There is no scope {scope} here.",
                hint="Import its memories first, or see `slowwave status` for those that exist.",
            )
        await _refuse_if_later(connection, as_of)
        same = await connection.row(
            "SELECT count(*) FILTER (WHERE status <> 'running') AS finished, "
            "       count(*) FILTER (WHERE status = 'running') AS unfinished "
            "FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND kind = :kind "
            "AND as_of = CAST(:time AS timestamptz) AND parameters_hash = :fingerprint AND NOT dry_run",
            kind=kind,
            time=as_of,
            fingerprint=fingerprint,
        )
        assert same is not None  # an aggregate without GROUP BY has one row
        run_id = scope.derived_id("run", kind, as_of.isoformat(), fingerprint, str(same["finished"]))
        run = Run(run_id, scope, kind, as_of, asked, dry_run, resumed=bool(same["unfinished"]))
        if not dry_run:
            await _insert(connection, run, fingerprint, same["finished"], requested_by, flow_run_id)
        await connection.commit()
    return run


async def load_run(database: Database, scope: TenantScope, run_id: UUID) -> Run:
    """The run as begun.

    Raises:
        NotFound: the scope has no such run.
    """
    async with database.scoped(scope) as connection:
        row = await connection.row(
            "SELECT kind, as_of, parameters, dry_run FROM runs "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)",
            id=run_id,
        )
    if row is None:
        raise NotFound(f"The scope {scope} has no run {run_id}.")
    return Run(run_id, scope, row["kind"], row["as_of"], row["parameters"], row["dry_run"])


async def perform_step(database: Database, context: RunContext, step: Step, position: int) -> StepOutcome:
    """Do one step of a run exactly once, and return its outcome.

    Raises:
        TransientError: it may work when tried again; nothing of it is left.
        SlowwaveError: it failed; nothing of it is left. Record that with `record_failure`.
    """
    run = context.run
    started = datetime.now(UTC)
    answer: Any = None
    if step.read is not None and step.call is not None:
        async with database.scoped(run.scope, run.binding(step.name), isolation=ISOLATION) as connection:
            done = await committed_outcome(connection, step.name)
            request = None if done is not None else await step.read(connection, context)
        if done is not None:
            return done
        answer = await step.call(request, context, database)
    if step.parts is not None:
        answer = await _perform_parts(database, context, step, position)
    async with database.scoped(run.scope, run.binding(step.name), isolation=ISOLATION) as connection:
        await _own_run(connection)
        done = await committed_outcome(connection, step.name)
        if done is not None:
            return done
        outcome = await step.write(connection, context, answer)
        await _record(connection, step.name, position, "done", outcome.to_dict(), started)
        await connection.commit()
    return outcome


async def _perform_parts(database: Database, context: RunContext, step: Step, position: int) -> tuple[StepOutcome, ...]:
    """Do each part of a step in a transaction of its own; a part that fails fails alone."""
    assert step.parts is not None and step.write_part is not None
    run = context.run
    async with database.scoped(run.scope, run.binding(step.name), isolation=ISOLATION) as connection:
        parts = await step.parts(connection, context)
    outcomes = []
    for part in parts:
        name = f"{step.name}:{part}"
        started = datetime.now(UTC)
        async with database.scoped(run.scope, run.binding(name), isolation=ISOLATION) as connection:
            await _own_run(connection)
            outcome = await committed_outcome(connection, name)
            if outcome is None:
                outcome = await step.write_part(connection, context, part)
                await _record(connection, name, position, "done", outcome.to_dict(), started)
                await connection.commit()
        outcomes.append(outcome)
    return tuple(outcomes)


async def record_failure(
    database: Database, context: RunContext, step: str, position: int, error: BaseException
) -> None:
    """Keep why a step failed; a later attempt may replace it by a success."""
    async with database.scoped(context.run.scope, context.run.binding(step)) as connection:
        await _record(connection, step, position, "failed", {"error": describe(error)}, datetime.now(UTC))
        await connection.commit()


async def record_skip(database: Database, context: RunContext, step: str, position: int, reason: str) -> None:
    """Keep that a step was left out, and why."""
    async with database.scoped(context.run.scope, context.run.binding(step)) as connection:
        await _record(
            connection, step, position, "skipped", StepOutcome(reason=reason).to_dict(), datetime.now(UTC)
        )
        await connection.commit()


async def finish_run(
    connection: ScopedConnection, status: str, report: Mapping[str, Any], error: Mapping[str, Any] | None = None
) -> None:
    """Close the run of the open transaction, and note on the scope when it last slept; the caller commits."""
    await connection.execute(
        "UPDATE runs SET status = :status, report = CAST(:report AS jsonb), error = CAST(:error AS jsonb), finished_at = clock_timestamp() "
        "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = :run_id",
        status=status,
        report=json.dumps(report),
        error=None if error is None else json.dumps(error),
    )
    # Counted from the runs, so that an undo moves it back.
    await connection.execute(
        "UPDATE scopes SET last_run_id = :run_id, last_status = :status, "
        "last_slept_at = (SELECT max(as_of) FROM runs r WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path "
        "AND r.status IN ('applied', 'partial') AND r.kind <> 'undo' AND NOT r.dry_run) "
        "WHERE tenant_id = :tenant_id AND scope_path = :scope_path",
        status=status,
    )


async def steps_of(connection: ScopedConnection, run_id: UUID) -> list[dict[str, Any]]:
    """The ledger of a run in order: step, status, outcome, started, finished."""
    rows = await connection.rows(
        "SELECT step, status, outcome, started_at, finished_at FROM run_steps "
        "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:id AS uuid) ORDER BY position, step",
        id=run_id,
    )
    return [dict(row) for row in rows]


async def committed_outcome(connection: ScopedConnection, step: str) -> StepOutcome | None:
    """The outcome of a step that was committed before; None where it was not."""
    stored = await connection.scalar(
        "SELECT outcome FROM run_steps WHERE tenant_id = :tenant_id AND run_id = :run_id AND step = :step AND status = 'done'",
        step=step,
    )
    return None if stored is None else StepOutcome.from_dict(stored)


def describe(error: BaseException) -> dict[str, Any]:
    """An error as the ledger keeps it: class, message, hint and data."""
    if isinstance(error, SlowwaveError):
        return error.to_dict()
    if isinstance(error, SQLAlchemyError):
        # Without the statement and its parameters: they hold memory text.
        original = getattr(error, "orig", None) or error
        return {"error": type(original).__name__, "message": str(original).strip(), "hint": ""}
    return {"error": type(error).__name__, "message": str(error), "hint": ""}


async def _refuse_if_later(connection: ScopedConnection, as_of: datetime) -> None:
    later = await connection.row(
        "SELECT id, as_of FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND NOT dry_run "
        "AND kind = ANY(:kinds) AND status IN ('applied', 'partial', 'interrupted') AND as_of > CAST(:time AS timestamptz) "
        "ORDER BY as_of DESC, started_at DESC LIMIT 1",
        kinds=list(CONSOLIDATION_KINDS),
        time=as_of,
    )
    if later is not None:
        raise LaterRunsExist(
            f"The scope {connection.scope} has already slept as of {later['as_of'].isoformat()} (run {later['id']}), "
            f"which is later than {as_of.isoformat()}.",
            hint="Undo the later runs, newest first, and then replay the nights in order with `slowwave backfill`.",
            later_run=str(later["id"]),
            later_as_of=later["as_of"].isoformat(),
            reason="later_runs_exist",
        )


async def _insert(
    connection: ScopedConnection, run: Run, fingerprint: str, ordinal: int, requested_by: str, flow_run_id: str | None
) -> None:
    # One statement: another request's unfinished run is closed, and ours begins or goes on.
    await connection.execute(
        "WITH closed AS (UPDATE runs SET status = 'interrupted', finished_at = clock_timestamp() "
        "  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND status = 'running' AND id <> CAST(:id AS uuid)) "
        "INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters, parameters_hash, requested_by, flow_run_id) "
        "VALUES (:tenant_id, CAST(:id AS uuid), :scope_path, :kind, CAST(:time AS timestamptz), 'running', :ordinal, CAST(:parameters AS jsonb), :fingerprint, "
        ":requested_by, :flow_run_id) "
        "ON CONFLICT (tenant_id, id) DO UPDATE SET flow_run_id = coalesce(excluded.flow_run_id, runs.flow_run_id)",
        id=run.id,
        kind=run.kind,
        time=run.as_of,
        ordinal=ordinal,
        parameters=json.dumps(dict(run.parameters)),
        fingerprint=fingerprint,
        requested_by=requested_by,
        flow_run_id=flow_run_id,
    )


async def _own_run(connection: ScopedConnection) -> None:
    status = await connection.scalar("SELECT status FROM runs WHERE tenant_id = :tenant_id AND id = :run_id FOR UPDATE")
    if status != "running":
        raise TransactionConflict(
            f"The run {connection.run.run_id if connection.run else ''} is {status or 'gone'}, so its steps no longer count.",
            hint="Another process closed it; start the run again.",
        )


async def _record(
    connection: ScopedConnection, step: str, position: int, status: str, outcome: Mapping[str, Any], started: datetime
) -> None:
    await connection.execute(
        "INSERT INTO run_steps (tenant_id, run_id, step, scope_path, position, status, outcome, started_at) "
        "VALUES (:tenant_id, :run_id, :step, :scope_path, :position, :status, CAST(:outcome AS jsonb), CAST(:started AS timestamptz)) "
        "ON CONFLICT (tenant_id, run_id, step) DO UPDATE SET status = excluded.status, outcome = excluded.outcome, "
        "started_at = excluded.started_at, finished_at = clock_timestamp() WHERE run_steps.status <> 'done'",
        step=step,
        position=position,
        status=status,
        outcome=json.dumps(outcome, default=str),
        started=started,
    )


def _fingerprint(parameters: Mapping[str, Any]) -> str:
    # Accepting or reconsidering is an answer to the same request's refusal, not another request.
    asked = {name: value for name, value in parameters.items() if name not in ("accept", "requested_by")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
