"""One step of a chunk of scopes as the body of a Prefect task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect import State
from prefect.states import Completed, Failed

from memory_core.errors import PermanentError, TransientError
from memory_core.night.chunks import ScopeRun, ScopeStep, advance_chunk, asked_to_wait
from memory_core.night.context import context_for
from memory_core.night.steps import steps_of_kind
from memory_core.runs.ledger import load_run, record_failure
from tasks.policy import is_last_attempt
from tasks.reporting import report_step
from tasks.sessions import session

NAMED = 5
"""Scopes a message names before it only counts them."""


async def advance_step(step: str, runs: Sequence[Mapping[str, Any]]) -> State[Any]:
    """Do one step in each run of the chunk, and say how it went.

    What failed for a passing reason makes the task fail with a TransientError once the other scopes are done, so
    that Prefect tries again; those that are done find their committed result. Where the provider of a model asked to
    wait, the task waits that long before. On the last try it is recorded as a failure of its scope.

    Args:
        runs: `ScopeRun.to_dict()` of each scope.

    Returns:
        Completed with the counts of each scope; Failed, with a message that names step and scopes, where any failed.
    """
    items = [ScopeRun.from_dict(run) for run in runs]
    async with session() as database:
        results = await advance_chunk(database, items, step, last_attempt=is_last_attempt())
    waiting = [result for result in results if result.status == "transient"]
    if waiting:
        # Prefect's own delays are fixed when a task is defined.
        await asyncio.sleep(asked_to_wait(waiting))
        message = _message(step, "has to wait", waiting, len(results))
        return Failed(message=message, data=TransientError(message, step=step))
    await report_step(step, results)
    failed = [result for result in results if result.status == "failed"]
    if failed:
        message = _message(step, "failed", failed, len(results))
        scopes = [result.scope for result in failed]
        return Failed(message=message, data=PermanentError(message, step=step, scopes=scopes))
    return Completed(message=_summary(step, results), data=[result.to_dict() for result in results])


async def record_lost(step: str, runs: Sequence[Mapping[str, Any]], state: State[Any]) -> None:
    """Keep in each scope's ledger that a step was cut off: a task that ran out of time or crashed told nobody.

    Nothing is recorded where the task itself reported its failures, nor over a step that was committed.
    """
    error = await state.aresult(raise_on_failure=False)
    if state.is_completed() or (isinstance(error, PermanentError) and "scopes" in error.data):
        return
    reason = PermanentError(f"The task {step} ended without a result: {state.message or state.name}.", step=step)
    async with session() as database:
        for item in (ScopeRun.from_dict(run) for run in runs):
            if item.run_id is None:
                continue
            run = await load_run(database, item.scope, UUID(item.run_id))
            position = [each.name for each in steps_of_kind(run.kind)].index(step)
            await record_failure(database, await context_for(database, run), step, position, reason)


def _message(step: str, verb: str, results: Sequence[ScopeStep], total: int) -> str:
    named = "; ".join(f"{result.scope} ({_why(result)})" for result in results[:NAMED])
    more = f" and {len(results) - NAMED} more" if len(results) > NAMED else ""
    return f"{step} {verb} in {len(results)} of {total} scopes: {named}{more}"


def _why(result: ScopeStep) -> str:
    message = str((result.error or {}).get("message", ""))
    return message.splitlines()[0] if message else result.status


def _summary(step: str, results: Sequence[ScopeStep]) -> str:
    done = [result for result in results if result.status == "done"]
    changed, candidates = sum(result.changed for result in done), sum(result.candidates for result in done)
    others = sorted({result.status for result in results} - {"done"})
    aside = "".join(f"; {sum(result.status == status for result in results)} {status}" for status in others)
    reason = f": {done[0].reason}" if len(results) == 1 and done and done[0].reason else ""
    return (
        f"{step}: {changed} changed of {candidates} candidates in {len(done)} of {len(results)} scopes{aside}{reason}"
    )
