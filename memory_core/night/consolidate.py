"""A night in process: the same steps, ledger, journal and result as through Prefect, without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, wait_exponential_jitter

from memory_core.database.engine import Database
from memory_core.errors import DatabaseUnavailable, InvalidSettings, LaterRunsExist
from memory_core.night.chunks import (
    ScopeRun,
    ScopeStep,
    advance_chunk,
    asked_to_wait,
    begin_chunk,
    busy,
    close_chunk,
    has_step,
)
from memory_core.night.context import context_for, language_for
from memory_core.night.document import refusal_document, run_document
from memory_core.night.highlights import highlights_of
from memory_core.night.steps import UNDONE_QUERIES, left_out, steps_of_kind
from memory_core.night.turns import hold, in_turns
from memory_core.runs.ledger import begin_run, describe, utc
from memory_core.runs.preview import preview, record_preview
from memory_core.runs.undo import UndoResult, undo_run
from memory_core.scope import TenantScope

ATTEMPTS = 4
"""How often a step is tried that fails for a passing reason."""

_BACK_OFF = wait_exponential_jitter(multiplier=0.2, max=10)


async def consolidate(
    database: Database,
    scopes: Sequence[TenantScope],
    kind: str,
    as_of: datetime,
    *,
    parameters: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    requested_by: str = "person",
) -> list[dict[str, Any]]:
    """Run the scopes as one chunk; one document a scope, in order.

    A scope that another run holds is waited for as the setting `scope_wait` says, and is `busy` after that.
    """
    as_of = utc(as_of)

    async def night(turn: Sequence[TenantScope], held: Sequence[TenantScope]) -> list[dict[str, Any]]:
        if dry_run:
            language_for(database.settings, {}, parameters or {})
            return [
                await _preview(database, scope, kind, as_of, parameters, requested_by, free=scope in held)
                for scope in turn
            ]
        runs = await begin_chunk(database, turn, kind, as_of, parameters, held=held, requested_by=requested_by)
        for step in steps_of_kind(kind):
            if any(has_step(run, step.name) for run in runs):
                await _step_with_retries(database, runs, step.name)
        return await close_chunk(database, runs)

    return await in_turns(database, scopes, night)


async def undo(
    database: Database, scope: TenantScope, run_id: UUID, *, at: datetime, requested_by: str = "person"
) -> UndoResult:
    """Undo a run of the scope, and remember what a person took back.

    Raises:
        ScopeBusy: a run holds the scope.
        NotFound, UndoRefused: as `runs.undo.undo_run`.
    """
    async with hold(database, [scope]) as held:
        if not held:
            raise busy(scope)
        return await undo_run(database, scope, run_id, at=utc(at), decisions=UNDONE_QUERIES, requested_by=requested_by)


async def _step_with_retries(database: Database, runs: Sequence[ScopeRun], step: str) -> None:
    """The policy of `tasks/policy.py` for a process without Prefect: back-off with jitter on what can pass.

    Raises:
        DatabaseUnavailable: it went away, and stayed away for longer than the attempts took.
    """
    attempts = count(1)

    async def attempt() -> list[ScopeStep]:
        return await advance_chunk(database, runs, step, last_attempt=next(attempts) == ATTEMPTS)

    retrying = AsyncRetrying(
        retry=retry_if_result(lambda results: any(result.status == "transient" for result in results)),
        wait=_wait,
        stop=stop_after_attempt(ATTEMPTS),
        retry_error_callback=lambda tried: tried.outcome.result() if tried.outcome else [],
    )
    results: list[ScopeStep] = await retrying(attempt)
    # Left open after the last attempt is only what could not even be recorded, because the database has gone.
    lost = [result.error or {} for result in results if result.status == "transient"]
    if lost and len(lost) == len(results):
        raise DatabaseUnavailable(
            str(lost[0].get("message") or ""), hint="Once it answers, start the command again; it goes on where it was."
        )


def _wait(tried: RetryCallState) -> float:
    """Seconds before the next attempt: the back-off, or what the provider of a model asked for where that is longer."""
    results: list[ScopeStep] = [] if tried.outcome is None else tried.outcome.result()
    return max(_BACK_OFF(tried), asked_to_wait(results))


async def _preview(
    database: Database,
    scope: TenantScope,
    kind: str,
    as_of: datetime,
    parameters: Mapping[str, Any] | None,
    requested_by: str,
    *,
    free: bool,
) -> dict[str, Any]:
    if not free:
        return refusal_document(scope, kind, as_of, "busy", describe(busy(scope)))
    try:
        run = await begin_run(database, scope, kind, as_of, parameters, dry_run=True)
    except LaterRunsExist as error:
        return refusal_document(scope, kind, as_of, "refused", describe(error))
    try:
        context = await context_for(database, run)
    except InvalidSettings as error:
        return refusal_document(scope, kind, as_of, "failed", describe(error))
    off = left_out(context)
    steps = [step for step in steps_of_kind(kind) if step.name not in off]
    found = await preview(database, context, steps, collect=lambda connection: highlights_of(connection, context))
    told = [
        {
            "step": result.step,
            "status": result.status,
            "outcome": result.outcome.to_dict() if result.outcome else {"error": result.error},
            "started_at": None,
            "finished_at": None,
        }
        for result in found.results
    ]
    document = run_document(run, found.status, told, error=found.refusal, highlights=found.collected)
    preview_id = await record_preview(database, context, found, document, requested_by=requested_by)
    return {**document, "run_id": preview_id, "would_be_run_id": str(run.id), "diff": found.changes}
