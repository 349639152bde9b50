"""Every retry, timeout, limit and tag of the Prefect tasks, in one place.

A step is tried again where the failure can pass (connection lost, serialisation failure, deadlock, rate limit,
timeout of a model) and never where it cannot (bad settings, a tripped guard). Retries live here alone: the
database layer and the model border do not retry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext

from memory_core.errors import TransientError
from memory_core.scope import TenantScope

RETRIES = 3
"""Tries after the first one; the library in process makes as many."""

FIRST_DELAY, LONGEST_DELAY = 2.0, 60.0
"""Seconds before the first retry, doubled for each further one up to the longest."""

JITTER = 0.5
"""Spread of a delay around its mean: 10 s become 6 to 15, so that many workers do not come back at once."""

SCOPES_A_CHUNK = 100
"""Scopes one task run works through: thirteen task runs a hundred tenants, instead of thirteen each."""

ROWS_AN_ARTIFACT = 250
"""Rows of a table artifact; a page with more is not read, and each costs the server."""

_HOUR = 3_600.0
_TIMEOUTS = {
    "embed": 6 * _HOUR,
    "embed_summaries": _HOUR,
    "cluster": 2 * _HOUR,
    "harmonize": 6 * _HOUR,
    "model_summaries": 2 * _HOUR,
    "preview": 6 * _HOUR,
    "sleep_night": 6 * _HOUR,
}
_MODEL_STEPS = frozenset({"embed", "embed_summaries", "harmonize", "model_summaries", "preview", "sleep_night"})


def delays(retries: int = RETRIES) -> list[float]:
    """Seconds before each retry: exponential, capped (Prefect's own back-off has no cap)."""
    return [min(LONGEST_DELAY, FIRST_DELAY * 2**retry) for retry in range(retries)]


async def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Whether a failed task is worth another try.

    Async and through `aresult`, because Prefect never retries an async task whose condition is written otherwise.
    """
    return isinstance(await state.aresult(raise_on_failure=False), TransientError)


def is_last_attempt() -> bool:
    """Whether the running task will not be tried again; true outside a task run, where nobody tries again."""
    context = TaskRunContext.get()
    return context is None or context.task_run.run_count > context.task.retries


def options(name: str, tag: str) -> dict[str, Any]:
    """The arguments of `@task` for the step or task of that name.

    Args:
        name: the same word as in the ledger and the reports.
        tag: what the task belongs to: `sleep`, `shmr` or `run`.
    """
    return {
        "name": name,
        "task_run_name": run_name(name),
        "tags": ["slowwave", tag, *(["model"] if name in _MODEL_STEPS else [])],
        "retries": RETRIES,
        "retry_delay_seconds": delays(),
        "retry_jitter_factor": JITTER,
        "retry_condition_fn": is_transient,
        "timeout_seconds": _TIMEOUTS.get(name, _HOUR),
        "cache_policy": NO_CACHE,
        "persist_result": False,
    }


def run_name(name: str) -> Callable[[dict[str, Any]], str]:
    """Names the runs of a task by what it does and where: `strengthen · acme`, `strengthen · 100 scopes`."""

    def named(parameters: dict[str, Any]) -> str:
        paths = parameters.get("scopes") or [run["scope_path"] for run in parameters.get("runs", ())]
        night = f" of {str(parameters['as_of'])[:10]}" if name == "sleep_night" else ""
        return f"{name}{night} · {place([TenantScope.from_path(path) for path in paths])}"

    return named


def place(scopes: Sequence[TenantScope]) -> str:
    """Scopes in a few characters: the one there is, or how many."""
    if len(scopes) != 1:
        return f"{len(scopes)} scopes"
    root, *below = scopes[0].levels
    return "/".join([root.id, *map(str, below)])
