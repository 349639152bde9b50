"""The dry run: the same steps in transactions that are rolled back.

Steps run one after another in one transaction. Where a step needs a model's answer, the transaction is rolled
back first, the model is asked with none open, and everything is replayed with the answer at hand. When all
answers are there, the last replay's changes are read as the diff, and it too is rolled back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import GuardTripped, TransientError
from memory_core.runs.advance import StepResult
from memory_core.runs.changes import changes_of
from memory_core.runs.context import RunContext, Step
from memory_core.runs.documents import describe, stored_json
from memory_core.runs.ledger import ISOLATION
from memory_core.runs.outcome import StepOutcome

Result = TypeVar("Result")

_PREVIEWS = "SELECT count(*) FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND dry_run"

_KEEP = """
INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, dry_run, ordinal, parameters, parameters_hash, report,
                  error, requested_by, finished_at)
VALUES (:tenant_id, CAST(:id AS uuid), :scope_path, :kind, CAST(:time AS timestamptz), 'previewed', true, :ordinal,
        CAST(:parameters AS jsonb), '', CAST(:report AS jsonb), CAST(:error AS jsonb), :requested_by, clock_timestamp())
"""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do.

    Attributes:
        results: one a step, in order.
        changes: `changed` and `created` rows as `changes.changes_of` lists them; where a guard would refuse the
            run, what it refuses.
        refusal: why a guard would refuse the run; None where none would.
        collected: what `collect` read before the rollback; empty where a guard would refuse the run.
    """

    results: tuple[StepResult, ...]
    changes: dict[str, list[dict[str, Any]]]
    refusal: dict[str, Any] | None = None
    collected: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """What the run's status would be."""
        if self.refusal is not None:
            return "refused"
        failed = [result for result in self.results if result.status != "done"]
        return "applied" if not failed else "failed" if len(failed) == len(self.results) else "partial"


Collect = Callable[[ScopedConnection], Awaitable[dict[str, Any]]]
"""Reads what the run did, in its transaction."""


@dataclass(frozen=True, slots=True)
class _Question:
    step: Step
    request: Any


async def preview(
    database: Database, context: RunContext, steps: Sequence[Step], *, collect: Collect | None = None
) -> Preview:
    """Find out what the steps would do; nothing of the scope is changed.

    Args:
        collect: reads more of what the steps did, before it is rolled back.

    Raises:
        TransientError: the database got in the way; it may work when tried again.
    """
    answers: dict[str, Any] = {}
    unanswered: dict[str, Exception] = {}
    while True:
        async with database.scoped(context.run.scope, context.run.binding(""), isolation=ISOLATION) as connection:
            found = await _replay(connection, context, steps, answers, unanswered, collect)
        if isinstance(found, Preview):
            return found
        assert found.step.call is not None
        try:
            answers[found.step.name] = await found.step.call(found.request, context, database)
        except Exception as error:  # the real run's step would fail so, and the run go on
            unanswered[found.step.name] = error


async def record_preview(
    database: Database, context: RunContext, found: Preview, report: dict[str, Any], *, requested_by: str
) -> str:
    """Keep the preview as a run of its own, whose diff can be shown later. Returns its id."""
    run = context.run
    async with database.scoped(run.scope) as connection:
        ordinal = await connection.scalar(_PREVIEWS)
        preview_id = run.scope.derived_id("preview", str(run.id), str(ordinal))
        await connection.execute(
            _KEEP,
            id=preview_id,
            kind=run.kind,
            time=run.as_of,
            ordinal=ordinal,
            parameters=stored_json(dict(run.parameters)),
            report=stored_json({**report, "diff": found.changes}),
            error=None if found.refusal is None else stored_json(found.refusal),
            requested_by=requested_by,
        )
        await connection.commit()
    return str(preview_id)


async def _replay(
    connection: ScopedConnection,
    context: RunContext,
    steps: Sequence[Step],
    answers: dict[str, Any],
    unanswered: dict[str, Exception],
    collect: Collect | None,
) -> Preview | _Question:
    results: list[StepResult] = []
    failed: set[str] = set()
    for step in steps:
        await connection.enter_step(step.name)
        missing = sorted(set(step.needs) & failed)
        if missing:
            failed.add(step.name)
            reason = f"left out, because it needs {', '.join(missing)}, which failed"
            results.append(StepResult(step.name, "skipped", StepOutcome(reason=reason)))
            continue
        try:
            if step.name in unanswered:
                raise unanswered[step.name]
            if step.read is not None and step.name not in answers:
                return _Question(step, await _attempt(connection, step.read(connection, context)))
            results.append(StepResult(step.name, "done", await _write(connection, context, step, answers)))
        except GuardTripped as error:
            results.append(StepResult(step.name, "failed", error=describe(error)))
            changes = await changes_of(connection, context.run.id)
            return Preview(tuple(results), changes, refusal=describe(error))
        except Exception as error:  # a real run goes on after a failed step, so its preview does too
            if isinstance(error, TransientError) and step.name not in unanswered:
                raise
            failed.add(step.name)
            results.append(StepResult(step.name, "failed", error=describe(error)))
    changes = await changes_of(connection, context.run.id)
    return Preview(tuple(results), changes, collected={} if collect is None else await collect(connection))


async def _write(connection: ScopedConnection, context: RunContext, step: Step, answers: dict[str, Any]) -> StepOutcome:
    answer = answers.get(step.name)
    if step.parts is not None and step.write_part is not None:
        outcomes = []
        for part in await _attempt(connection, step.parts(connection, context)):
            await connection.enter_step(f"{step.name}:{part}")
            outcomes.append(await _attempt(connection, step.write_part(connection, context, part)))
        await connection.enter_step(step.name)
        answer = tuple(outcomes)
    return await _attempt(connection, step.write(connection, context, answer))


async def _attempt(connection: ScopedConnection, work: Awaitable[Result]) -> Result:
    """Do what a real run does in one transaction; where it fails, nothing of it is left."""
    savepoint = await connection.raw.begin_nested()
    try:
        result = await work
    except GuardTripped:
        raise  # the preview ends here, and shows what was refused
    except BaseException:
        await savepoint.rollback()
        raise
    await savepoint.commit()
    return result
