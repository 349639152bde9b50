"""The phases of sleep as Prefect tasks; each works through a chunk of scopes."""

from __future__ import annotations

from typing import Any

from prefect import State, Task, task

from tasks.policy import options
from tasks.steps import advance_step

TAG = "sleep"
Runs = list[dict[str, Any]]


@task(**options("strengthen", TAG))
async def strengthen(runs: Runs) -> State[Any]:
    """Phase 1: importance rises for memories with new evidence of use."""
    return await advance_step("strengthen", runs)


@task(**options("cooccurrence", TAG))
async def cooccurrence(runs: Runs) -> State[Any]:
    """Phase 1.5: memories active within the same hour are linked."""
    return await advance_step("cooccurrence", runs)


@task(**options("tag_risk", TAG))
async def tag_risk(runs: Runs) -> State[Any]:
    """Phase 2: memories that speak of a risk are marked."""
    return await advance_step("tag_risk", runs)


@task(**options("pending_edges", TAG))
async def pending_edges(runs: Runs) -> State[Any]:
    """Phase 2.5: pending connections of activation logs become typed edges, or are rejected with a reason."""
    return await advance_step("pending_edges", runs)


@task(**options("prune_orphans", TAG))
async def prune_orphans(runs: Runs) -> State[Any]:
    """Phase 3: stale, unimportant and unconnected memories are retired; nothing is deleted."""
    return await advance_step("prune_orphans", runs)


@task(**options("meta_nodes", TAG))
async def meta_nodes(runs: Runs) -> State[Any]:
    """Phase 4: groups of memories get one summary each."""
    return await advance_step("meta_nodes", runs)


@task(**options("soul_corrections", TAG))
async def soul_corrections(runs: Runs) -> State[Any]:
    """Phase 5: the user's corrections are applied to the SOUL profile."""
    return await advance_step("soul_corrections", runs)


@task(**options("decay", TAG))
async def decay(runs: Runs) -> State[Any]:
    """Off unless switched on: the importance of memories that nobody uses falls."""
    return await advance_step("decay", runs)


@task(**options("working_expiry", TAG))
async def working_expiry(runs: Runs) -> State[Any]:
    """Off unless switched on: working memory past its time is retired."""
    return await advance_step("working_expiry", runs)


@task(**options("duplicate_merge", TAG))
async def duplicate_merge(runs: Runs) -> State[Any]:
    """Off unless switched on: facts of the same words and like vectors become one."""
    return await advance_step("duplicate_merge", runs)


@task(**options("episodic_summaries", TAG))
async def episodic_summaries(runs: Runs) -> State[Any]:
    """Off unless switched on: where episodes pile up, the oldest get a summary beside them."""
    return await advance_step("episodic_summaries", runs)


@task(**options("model_summaries", TAG))
async def model_summaries(runs: Runs) -> State[Any]:
    """Off unless switched on: a model writes a summary beside each extractive one, and cites the members."""
    return await advance_step("model_summaries", runs)


@task(**options("promotion", TAG))
async def promotion(runs: Runs) -> State[Any]:
    """Off unless switched on: what several child scopes say alike becomes known in the scope above them."""
    return await advance_step("promotion", runs)


SLEEP_TASKS: tuple[Task[..., Any], ...] = (
    strengthen,
    decay,
    cooccurrence,
    tag_risk,
    pending_edges,
    working_expiry,
    prune_orphans,
    duplicate_merge,
    meta_nodes,
    episodic_summaries,
    model_summaries,
    soul_corrections,
    promotion,
)
