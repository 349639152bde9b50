"""Does a step of a run exactly once.

A step's writes and its ledger row commit in one transaction. A step that is tried again after a crash finds its
committed row and returns it, or does the work once. The run's row is taken for the length of a step's
transaction, so two processes cannot do the same step at the same time, even where a lock was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import TransactionConflict
from memory_core.runs.context import RunContext, Step
from memory_core.runs.ledger import ISOLATION, record_step
from memory_core.runs.outcome import StepOutcome

# An update rather than SELECT FOR UPDATE: whoever waited for it has an old snapshot, and then fails at once as a
# conflict instead of doing again what the other committed.
_OWN_RUN = "UPDATE runs SET status = status WHERE tenant_id = :tenant_id AND id = :run_id RETURNING status"

_COMMITTED = """
SELECT outcome FROM run_steps
WHERE tenant_id = :tenant_id AND run_id = :run_id AND step = :step AND status = 'done'
"""


async def perform_step(database: Database, context: RunContext, step: Step, position: int) -> StepOutcome:
    """Do one step of a run exactly once, and return its outcome.

    Raises:
        TransientError: it may work when tried again; nothing of it is left.
        SlowwaveError: it failed; nothing of it is left but the parts that were committed. Record that with
            `ledger.record_failure`.
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
        async with database.scoped(run.scope, run.binding(step.name), isolation=ISOLATION) as connection:
            done = await committed_outcome(connection, step.name)
            parts = () if done is not None else await step.parts(connection, context)
        if done is not None:
            return done
        answer = await _perform_parts(database, context, step, position, parts)
    async with database.scoped(run.scope, run.binding(step.name), isolation=ISOLATION) as connection:
        await own_run(connection)
        done = await committed_outcome(connection, step.name)
        if done is not None:
            return done
        outcome = await step.write(connection, context, answer)
        await record_step(connection, run.id, step.name, position, "done", outcome.to_dict(), started)
        await connection.commit()
    return outcome


async def committed_outcome(connection: ScopedConnection, step: str) -> StepOutcome | None:
    """The outcome of a step that was committed before; None where it was not."""
    stored = await connection.scalar(_COMMITTED, step=step)
    return None if stored is None else StepOutcome.from_dict(stored)


async def own_run(connection: ScopedConnection) -> None:
    """Take the run of the open transaction until its end.

    Raises:
        TransactionConflict: another process closed it, or has done a step of it since the transaction began.
    """
    status = await connection.scalar(_OWN_RUN)
    if status != "running":
        run_id = connection.run.run_id if connection.run else ""
        raise TransactionConflict(
            f"The run {run_id} is {status or 'gone'}, so its steps no longer count.",
            hint="Another process closed it; start the run again.",
        )


async def _perform_parts(
    database: Database, context: RunContext, step: Step, position: int, parts: Sequence[str]
) -> tuple[StepOutcome, ...]:
    """Do each part in a transaction of its own; those that are committed stay, whatever becomes of the others."""
    assert step.write_part is not None
    run = context.run
    outcomes = []
    for part in parts:
        name = f"{step.name}:{part}"
        started = datetime.now(UTC)
        async with database.scoped(run.scope, run.binding(name), isolation=ISOLATION) as connection:
            await own_run(connection)
            outcome = await committed_outcome(connection, name)
            if outcome is None:
                outcome = await step.write_part(connection, context, part)
                await record_step(connection, run.id, name, position, "done", outcome.to_dict(), started)
                await connection.commit()
        outcomes.append(outcome)
    return tuple(outcomes)
