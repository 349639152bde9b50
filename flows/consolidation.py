"""The order that the flows have in common: hold the scopes, begin, each step as a task, close, report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from prefect import State, Task
from prefect.runtime import flow_run

from flows.outcome import error_state, final_state
from flows.parameters import ConsolidationParameters
from memory_core.database.engine import Database
from memory_core.errors import SlowwaveError
from memory_core.night.chunks import ScopeRun, has_step
from memory_core.night.steps import KINDS, steps_of_kind
from memory_core.night.turns import in_turns
from memory_core.scope import TenantScope
from tasks.phases import SLEEP_TASKS
from tasks.policy import SCOPES_A_CHUNK
from tasks.reporting import announce, report_morning
from tasks.resonance import SHMR_TASKS, embed_summaries
from tasks.runs import begin, close, preview
from tasks.scopes import choose_scopes
from tasks.sessions import session
from tasks.steps import record_lost

_BY_NAME = {each.name: each for each in (*SLEEP_TASKS, *SHMR_TASKS, embed_summaries)}

TASKS: dict[str, tuple[Task[..., Any], ...]] = {
    kind: tuple(_BY_NAME[step.name] for step in steps_of_kind(kind)) for kind in KINDS
}
"""The tasks of each kind of run, in their order."""


async def consolidate(kind: str, parameters: ConsolidationParameters) -> State[Any]:
    """Run the scopes that the parameters name, in chunks, and report; the final state is `outcome`'s."""
    as_of = parameters.as_of or datetime.now(UTC)
    documents: list[dict[str, Any]] = []
    try:
        async with session() as database:
            scopes = await choose_scopes(database, parameters.tenants, parameters.scope)
            for chunk in _chunks(scopes):
                if parameters.dry_run:
                    documents += await preview(
                        _paths(chunk), kind, as_of, parameters.run_parameters(), parameters.requested_by
                    )
                else:
                    documents += await _chunk(database, chunk, kind, as_of, parameters)
    except SlowwaveError as error:
        return error_state(error)
    await report_morning(documents)
    await announce(documents)
    return final_state(kind, documents)


async def _chunk(
    database: Database, scopes: Sequence[TenantScope], kind: str, as_of: datetime, parameters: ConsolidationParameters
) -> list[dict[str, Any]]:
    async def night(turn: Sequence[TenantScope], held: Sequence[TenantScope]) -> list[dict[str, Any]]:
        runs = await begin(
            _paths(turn), _paths(held), kind, as_of, parameters.run_parameters(), parameters.requested_by
        )
        for step in TASKS[kind]:
            working = [run for run in runs if has_step(ScopeRun.from_dict(run), step.name)]
            if not working:
                continue
            # A step that fails does not stop the later ones; those that need it find that out in the ledger.
            state = await step(working, return_state=True)
            if not state.is_completed():
                await record_lost(step.name, working, state)
        return await close(runs)

    return await in_turns(database, scopes, night)


def run_name() -> str:
    """The name of the flow run that is starting, such as `nightly · acme · 2026-03-01`."""
    given = flow_run.parameters["parameters"]
    parameters = (
        given if isinstance(given, ConsolidationParameters) else ConsolidationParameters.model_construct(**given)
    )
    tenants = parameters.tenants
    where = tenants[0] if len(tenants) == 1 else f"{len(tenants)} tenants"
    if parameters.scope:
        where = f"{where}/{parameters.scope}"
    night = parameters.as_of or datetime.now(UTC)
    parts = [str(flow_run.flow_name), where, str(night)[:10]]
    return " · ".join([*parts, "dry run"] if parameters.dry_run else parts)


def _chunks(scopes: Sequence[TenantScope]) -> Iterator[Sequence[TenantScope]]:
    for start in range(0, len(scopes), SCOPES_A_CHUNK):
        yield scopes[start : start + SCOPES_A_CHUNK]


def _paths(scopes: Sequence[TenantScope]) -> list[str]:
    return [scope.scope_path for scope in scopes]
