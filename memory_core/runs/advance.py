"""Moves a run one step on, and closes it: the one way that the library and the Prefect tasks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from memory_core.database.engine import Database
from memory_core.database.scoped import RunBinding
from memory_core.errors import GuardTripped, TransientError
from memory_core.runs.context import RunContext, Step
from memory_core.runs.documents import describe, stored_json
from memory_core.runs.ledger import ISOLATION, finish_run, record_failure, record_skip, record_step, steps_of
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.perform import perform_step
from memory_core.runs.take_back import take_back

_STANDING = """
SELECT r.status, s.step
FROM runs r LEFT JOIN run_steps s ON s.tenant_id = r.tenant_id AND s.run_id = r.id AND s.status <> 'done'
WHERE r.tenant_id = :tenant_id AND r.id = :run_id
"""

_LOCK = "SELECT status FROM runs WHERE tenant_id = :tenant_id AND id = CAST(:id AS uuid) FOR UPDATE"

_REFUSE = """
UPDATE runs SET status = 'refused', error = CAST(:error AS jsonb), finished_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

_NOTE_REFUSAL = """
UPDATE scopes SET last_run_id = CAST(:id AS uuid), last_status = 'refused'
WHERE tenant_id = :tenant_id AND scope_path = :scope_path
"""


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
    """Take back whatever the run has done, say why in the ledger, and close it as refused, in one transaction.

    What could not be taken back, because it was changed meanwhile, is listed in the run's error under `kept`.
    """
    run = context.run
    taken_back_by = RunBinding(run.scope.derived_id("refused", str(run.id)), run.as_of, "refuse")
    async with database.scoped(run.scope, taken_back_by, isolation=ISOLATION) as connection:
        if await connection.scalar(_LOCK, id=run.id) != "running":
            return  # another process closed it
        _, _, kept = await take_back(connection, run.id)
        why = describe(error) | ({"kept": kept} if kept else {})
        await record_step(connection, run.id, step, index, "failed", {"error": why}, datetime.now(UTC))
        await connection.execute(_REFUSE, id=run.id, error=stored_json(why))
        await connection.execute(_NOTE_REFUSAL, id=run.id)
        await connection.commit()


def verdict(steps: Sequence[Mapping[str, Any]], expected: Sequence[str]) -> tuple[str, Mapping[str, Any] | None]:
    """What a run that was not refused comes to by its ledger, and why.

    `applied`: every step done; `partial`: some failed, or only parts of one were done; `failed`: nothing done.

    Args:
        expected: the names of the run's steps; one of which the ledger knows nothing counts as failed.

    Returns:
        `applied`, `partial` or `failed`; and the first failure, or which steps were never done; None for neither.
    """
    whole = [step for step in steps if ":" not in step["step"]]
    failed = [step for step in whole if step["status"] != "done"]
    missing = sorted(set(expected) - {step["step"] for step in whole})
    anything = any(step["status"] == "done" for step in steps)
    error = next((step["outcome"]["error"] for step in failed if "error" in step["outcome"]), None)
    if error is None and missing:
        error = {"error": "PermanentError", "message": f"Never done: {', '.join(missing)}.", "hint": ""}
    return "applied" if not (failed or missing) else "partial" if anything else "failed", error


async def close_run(
    database: Database, context: RunContext, report: Mapping[str, Any], *, expected: Sequence[str] = ()
) -> str:
    """Close the run by the verdict over its steps, unless a guard closed it before as `refused`; return its status.

    Args:
        expected: the names of the run's steps; one of which the ledger knows nothing counts as failed.
    """
    run = context.run
    async with database.scoped(run.scope, run.binding("close")) as connection:
        current = await connection.scalar(_LOCK, id=run.id)
        if current != "running":
            return str(current)
        steps = await steps_of(connection, run.id)
        status, error = verdict(steps, expected)
        await finish_run(connection, status, report, error)
        await connection.commit()
    return status


async def _standing(database: Database, context: RunContext) -> tuple[str, set[str]]:
    run = context.run
    async with database.scoped(run.scope, run.binding("")) as connection:
        rows = await connection.rows(_STANDING)
    return (rows[0]["status"] if rows else "gone"), {row["step"] for row in rows if row["step"]}
