"""Moves a run one step on, and closes it: the one way that the library and the Prefect tasks share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory_core.database.engine import Database
from memory_core.database.scoped import RunBinding
from memory_core.errors import GuardTripped, TransientError
from memory_core.runs.context import RunContext, Step
from memory_core.runs.ledger import (
    describe,
    finish_run,
    perform_step,
    record_failure,
    record_skip,
    steps_of,
)
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.undo import take_back


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step of one scope went.

    Attributes:
        status: `done`, `failed`, `skipped` (a step it needs failed), or `closed` (the run was refused before).
        error: what failed, as the ledger keeps it; None otherwise.
    """

    step: str
    status: Literal["done", "failed", "skipped", "closed"]
    outcome: StepOutcome | None = None
    error: Mapping[str, Any] | None = None


async def advance(database: Database, context: RunContext, steps: Sequence[Step], index: int) -> StepResult:
    """Do step `index` of the run, or find out why not. A failure is kept in the ledger and returned, not raised.

    A tripped guard takes back whatever the run has done in this scope and closes it as refused.

    Raises:
        TransientError: the step may work when tried again; nothing of it is left and nothing is recorded.
    """
    step = steps[index]
    status, failed = await _standing(database, context)
    if status != "running":
        return StepResult(step.name, "closed")
    missing = sorted(set(step.needs) & failed)
    if missing:
        reason = f"left out, because it needs {', '.join(missing)}, which failed"
        await record_skip(database, context, step.name, index, reason)
        return StepResult(step.name, "skipped", StepOutcome(reason=reason))
    try:
        return StepResult(step.name, "done", await perform_step(database, context, step, index))
    except TransientError:
        raise
    except GuardTripped as error:
        await refuse_run(database, context, step.name, index, error)
        return StepResult(step.name, "failed", error=describe(error))
    except Exception as error:  # what fails for one scope must not stop the others; the ledger keeps why
        await record_failure(database, context, step.name, index, error)
        return StepResult(step.name, "failed", error=describe(error))


async def refuse_run(database: Database, context: RunContext, step: str, index: int, error: GuardTripped) -> None:
    """Take back whatever the run has done, and close it as refused, in one transaction."""
    run = context.run
    await record_failure(database, context, step, index, error)
    taken_back_by = RunBinding(run.scope.derived_id("refused", str(run.id)), run.as_of, "refuse")
    async with database.scoped(run.scope, taken_back_by, isolation="REPEATABLE READ") as connection:
        await take_back(connection, run.id)
        await connection.execute(
            "UPDATE runs SET status = 'refused', error = CAST(:error AS jsonb), finished_at = clock_timestamp() "
            "WHERE tenant_id = :tenant_id AND id = CAST(:refused AS uuid)",
            error=json.dumps(describe(error), default=str),
            refused=run.id,
        )
        await connection.execute(
            "UPDATE scopes SET last_run_id = CAST(:refused AS uuid), last_status = 'refused' WHERE tenant_id = :tenant_id AND scope_path = :scope_path",
            refused=run.id,
        )
        await connection.commit()


async def close_run(database: Database, context: RunContext, report: Mapping[str, Any]) -> str:
    """Close the run by what its steps came to, and return its status.

    `applied`: every step done; `partial`: some failed; `failed`: none done; `refused`: a guard tripped (already closed).
    """
    run = context.run
    async with database.scoped(run.scope, run.binding("close")) as connection:
        current = await connection.scalar(
            "SELECT status FROM runs WHERE tenant_id = :tenant_id AND id = :run_id FOR UPDATE"
        )
        if current != "running":
            return str(current)
        steps = [item for item in await steps_of(connection, run.id) if ":" not in item["step"]]
        failed = [item for item in steps if item["status"] != "done"]
        status = "applied" if not failed else "failed" if len(failed) == len(steps) else "partial"
        error = next((item["outcome"].get("error") for item in failed if "error" in item["outcome"]), None)
        await finish_run(connection, status, report, error)
        await connection.commit()
    return status


async def _standing(database: Database, context: RunContext) -> tuple[str, set[str]]:
    run = context.run
    async with database.scoped(run.scope, run.binding("")) as connection:
        rows = await connection.rows(
            "SELECT r.status, s.step FROM runs r LEFT JOIN run_steps s ON s.tenant_id = r.tenant_id AND s.run_id = r.id AND s.status <> 'done' "
            "WHERE r.tenant_id = :tenant_id AND r.id = :run_id"
        )
    return (rows[0]["status"] if rows else "gone"), {row["step"] for row in rows if row["step"]}
