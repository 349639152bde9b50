"""A chunk of scopes through one run each: several scopes at once, and what fails for one fails for it alone.

Both the library (`consolidate.py`) and the Prefect tasks work through these functions, so both do the same.
Everything that passes between them is JSON-able.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidSettings, ScopeBusy, SlowwaveError, TransientError
from memory_core.night.context import context_for, context_with, language_for, settings_of_scope
from memory_core.night.document import refusal_document, run_document
from memory_core.night.highlights import highlights_of
from memory_core.night.steps import left_out, steps_of_kind
from memory_core.runs.advance import advance, close_run, verdict
from memory_core.runs.ledger import ISOLATION, begin_run, describe, load_run, record_failure, steps_of
from memory_core.scope import TenantScope

LONGEST_WAIT = 300.0
"""Seconds that a step waits before it is tried again, whatever the provider of a model asked for."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ScopeRun:
    """A run that began in one scope, or why none did.

    Attributes:
        run_id: None where the scope was refused.
        status: `running`, `busy`, `refused` (later runs exist) or `failed`.
        error: why no run began.
        left_out: names of the steps that the scope's settings switch off.
    """

    scope_path: str
    kind: str
    as_of: str
    run_id: str | None
    status: str
    error: Mapping[str, Any] | None = None
    left_out: Sequence[str] = ()

    @property
    def scope(self) -> TenantScope:
        """The scope."""
        return TenantScope.from_path(self.scope_path)

    def to_dict(self) -> dict[str, Any]:
        """As a JSON-able document."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ScopeRun:
        """From `to_dict`."""
        return cls(**document)


@dataclass(frozen=True, slots=True)
class ScopeStep:
    """How one step of one scope went; `status` is that of `runs.advance.StepResult`, or `transient`."""

    scope: str
    run_id: str
    step: str
    status: str
    candidates: int = 0
    changed: int = 0
    skipped: Mapping[str, int] | None = None
    reason: str = ""
    error: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a JSON-able document."""
        return asdict(self)


def busy(scope: TenantScope) -> ScopeBusy:
    """Why nothing is done in a scope that another run holds."""
    return ScopeBusy(
        f"Another run holds the scope {scope}.",
        hint="Wait for it, as with --wait 600 or SLOWWAVE_SCOPE_WAIT=600; `slowwave doctor` tells what runs.",
        reason="busy",
    )


async def begin_chunk(
    database: Database,
    scopes: Sequence[TenantScope],
    kind: str,
    as_of: datetime,
    parameters: Mapping[str, Any] | None = None,
    *,
    held: Sequence[TenantScope],
    requested_by: str = "person",
    flow_run_id: str | None = None,
) -> list[ScopeRun]:
    """Begin a run in each held scope; the others are busy.

    Raises:
        InvalidInput: the kind is unknown, or `as_of` is naive.
        InvalidSettings: the process's own model is not valid; that of one tenant fails that tenant's scopes alone.
    """
    steps_of_kind(kind)
    asked = parameters or {}
    language_for(database.settings, {}, asked)
    free = set(held)

    async def begin(scope: TenantScope) -> ScopeRun:
        base = (scope.scope_path, kind, as_of.isoformat())
        if scope not in free:
            return ScopeRun(*base, None, "busy", describe(busy(scope)))
        try:
            own = await settings_of_scope(database, scope)
            language_for(database.settings, own, asked)
        except InvalidSettings as error:
            return ScopeRun(*base, None, "failed", describe(error))
        try:
            run = await begin_run(
                database, scope, kind, as_of, parameters, requested_by=requested_by, flow_run_id=flow_run_id
            )
        except InvalidInput:
            raise
        except TransientError:
            raise
        except SlowwaveError as error:
            return ScopeRun(*base, None, "refused", describe(error))
        return ScopeRun(*base, str(run.id), "running", left_out=left_out(context_with(database, run, own)))

    return await _for_each(database, scopes, begin)


async def advance_chunk(
    database: Database, runs: Sequence[ScopeRun], step: str, *, last_attempt: bool = False
) -> list[ScopeStep]:
    """Do one step in each scope's run that has it; every failure is kept in its own ledger.

    Args:
        last_attempt: whether a transient failure counts as a failure; otherwise it is reported as `transient`,
            nothing of it is recorded, and a later call does the step.
    """

    async def one(item: ScopeRun) -> ScopeStep:
        scope, run_id = item.scope, UUID(item.run_id or "")
        try:
            run = await load_run(database, scope, run_id)
            context = replace(await context_for(database, run), last_attempt=last_attempt)
            steps = steps_of_kind(run.kind)
            index = next(position for position, candidate in enumerate(steps) if candidate.name == step)
            try:
                result = await advance(database, context, steps, index)
            except TransientError as error:
                if not last_attempt:
                    raise
                await record_failure(database, context, step, index, error)
                return ScopeStep(str(scope), str(run_id), step, "failed", error=describe(error))
        except TransientError as error:
            return ScopeStep(str(scope), str(run_id), step, "transient", error=describe(error))
        outcome = result.outcome
        if outcome is None:
            return ScopeStep(str(scope), str(run_id), step, result.status, error=result.error)
        return ScopeStep(
            str(scope),
            str(run_id),
            step,
            result.status,
            outcome.candidates,
            outcome.changed,
            dict(outcome.skipped),
            outcome.reason,
        )

    return await _for_each(database, [item for item in runs if has_step(item, step)], one)


def asked_to_wait(results: Sequence[ScopeStep]) -> float:
    """Seconds to wait before a step is tried again, as the provider of a model asked for; 0 where none did."""
    asked = [
        float(result.error["retry_after"])
        for result in results
        if result.status == "transient" and result.error is not None and result.error.get("retry_after")
    ]
    return min(LONGEST_WAIT, max(asked, default=0.0))


def has_step(run: ScopeRun, step: str) -> bool:
    """Whether the run began, and the step is part of it."""
    return run.run_id is not None and step not in run.left_out


async def close_chunk(database: Database, runs: Sequence[ScopeRun]) -> list[dict[str, Any]]:
    """Close each run by what its steps came to; returns one document a scope, in order."""

    async def close(item: ScopeRun) -> dict[str, Any]:
        if item.run_id is None:
            return refusal_document(
                item.scope, item.kind, datetime.fromisoformat(item.as_of), item.status, item.error or {}
            )
        run = await load_run(database, item.scope, UUID(item.run_id))
        context = await context_for(database, run)
        async with database.scoped(run.scope, run.binding("close"), isolation=ISOLATION) as connection:
            steps = await steps_of(connection, run.id)
            told = await highlights_of(connection, context)
            refused_for = await connection.scalar(
                "SELECT error FROM runs WHERE tenant_id = :tenant_id AND id = :run_id"
            )
        expected = [step.name for step in steps_of_kind(run.kind) if has_step(item, step.name)]
        status, error = verdict(steps, expected)
        error = refused_for or error
        report = run_document(run, status, steps, error=error, highlights=told)
        status = await close_run(database, context, report, expected=expected)
        # Nothing is asked after the closing commit: a process killed then has told all that it would have.
        if status == "refused":
            report = run_document(run, status, steps, error=error)
        return {**report, "status": status}

    return await _for_each(database, runs, close)


async def _for_each(database: Database, items: Sequence[Any], work: Callable[[Any], Awaitable[Result]]) -> list[Result]:
    """Work on several items at a time; results in the items' order."""
    places = asyncio.Semaphore(database.settings.scopes_at_once)

    async def placed(item: Any) -> Result:
        async with places:
            return await work(item)

    return list(await asyncio.gather(*(placed(item) for item in items)))
