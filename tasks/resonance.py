"""The steps of SHMR as Prefect tasks; each works through a chunk of scopes."""

from __future__ import annotations

from typing import Any

from prefect import State, Task, task

from tasks.policy import options
from tasks.steps import advance_step

TAG = "shmr"
Runs = list[dict[str, Any]]


@task(**options("embed", TAG))
async def embed(runs: Runs) -> State[Any]:
    """Vectors for memories that have none of the current model."""
    return await advance_step("embed", runs)


@task(**options("embed_summaries", TAG))
async def embed_summaries(runs: Runs) -> State[Any]:
    """Vectors for the summaries that were made after SHMR, at the end of a whole night."""
    return await advance_step("embed_summaries", runs)


@task(**options("collect", TAG))
async def collect(runs: Runs) -> State[Any]:
    """Step 1: what changed since it was last harmonized."""
    return await advance_step("collect", runs)


@task(**options("cluster", TAG))
async def cluster(runs: Runs) -> State[Any]:
    """Step 2: memories that speak of the same thing."""
    return await advance_step("cluster", runs)


@task(**options("harmonize", TAG))
async def harmonize(runs: Runs) -> State[Any]:
    """Step 3: rules or a model propose what to believe."""
    return await advance_step("harmonize", runs)


@task(**options("score", TAG))
async def score(runs: Runs) -> State[Any]:
    """Step 4: proposals are accepted or rejected against their evidence."""
    return await advance_step("score", runs)


@task(**options("apply", TAG))
async def apply(runs: Runs) -> State[Any]:
    """Step 5: accepted proposals are applied, one transaction a cluster."""
    return await advance_step("apply", runs)


@task(**options("log", TAG))
async def log(runs: Runs) -> State[Any]:
    """Step 6: the resonance log's row, whatever happened."""
    return await advance_step("log", runs)


SHMR_TASKS: tuple[Task[..., Any], ...] = (embed, collect, cluster, harmonize, score, apply, log)
