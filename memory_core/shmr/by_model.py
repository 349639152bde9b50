"""Asks a model about many clusters, several at a time, until all are done or there is no use in going on.

What is not decided then is told apart: failed, stopped because the model kept failing, or because spending brought
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, SlowwaveError, TransientError
from memory_core.models.budgets import Budget
from memory_core.models.call_cache import CallCache
from memory_core.models.language import LanguageModel
from memory_core.models.paid_model import MODEL_ERRORS, PaidModel
from memory_core.runs.context import RunContext
from memory_core.shmr.breaker import Breaker
from memory_core.shmr.conversation import Conversation
from memory_core.shmr.decided import Decided
from memory_core.shmr.forecast import Forecast, forecast
from memory_core.shmr.stored import StoredCluster, shmr_settings


@dataclass(slots=True)
class Asked:
    """What came of it, by the clusters' positions.

    Attributes:
        decided: clusters with a result.
        failed: clusters for which the model, or the way to it, failed.
        error, fruitless: why clusters in neither were not asked about any more; one of them is set then.
        spending: what it was expected to cost and did: `estimate`, `spent`, and what cannot be counted.
    """

    decided: dict[int, Decided] = field(default_factory=dict)
    failed: dict[int, SlowwaveError] = field(default_factory=dict)
    error: SlowwaveError | None = None
    fruitless: str = ""
    spending: dict[str, Any] = field(default_factory=dict)


async def ask_model(
    clusters: Sequence[StoredCluster], budget: Budget, context: RunContext, database: Database, language: LanguageModel
) -> Asked:
    """Ask about the clusters of a run within its budget.

    Raises:
        TransientError: the model failed for a passing reason, and the step is tried again. What it answered is kept
            and not bought again; the longest wait that its provider asked for is in `retry_after`.
    """
    settings, run = shmr_settings(context), context.run
    cache = CallCache(database, run.scope, run.id, context.settings.model_cache)
    model = PaidModel(language, cache, budget)
    expected = await forecast(clusters, model.name, cache, settings)
    before = (budget.calls, budget.tokens, budget.cost)
    is_last = context.last_attempt or run.dry_run or cache.replay_only
    breaker = Breaker(settings.fruitless_in_a_row, heeds_rate_limits=not is_last, never=cache.replay_only)
    conversation = Conversation(model, context.embedding, settings, run.scope)
    asked = await ask_about(clusters, conversation, breaker, at_once=settings.clusters_at_once)
    passing = [error for error in asked.failed.values() if isinstance(error, TransientError)]
    if passing and not is_last:
        raise max(passing, key=lambda error: float(error.data.get("retry_after") or 0.0))
    spent = {
        "calls": budget.calls - before[0],
        "tokens": budget.tokens - before[1],
        "cost": round(budget.cost - before[2], 6),
    }
    asked.spending = {"estimate": expected.to_dict(), "spent": spent, **_unpriced(budget, expected)}
    return asked


async def ask_about(
    clusters: Sequence[StoredCluster], conversation: Conversation, breaker: Breaker, *, at_once: int
) -> Asked:
    """Ask about the clusters in their order, up to `at_once` at a time; those under way are always finished.

    Raises:
        SlowwaveError: something other than the model failed, such as the database; answers that were bought are kept.
    """
    asked = Asked()
    positions = iter(range(len(clusters)))

    async def take_turns() -> None:
        for position in positions:
            if breaker.is_open:
                return
            cluster = clusters[position]
            try:
                decided = await conversation.about(cluster)
            except InvalidInput as error:
                # Nothing is wrong with the model: this cluster cannot be put into a prompt as the settings are.
                asked.decided[position] = Decided(
                    cluster.cluster_id, "failed", conversation.model.name, "", reason=str(error)
                )
            except MODEL_ERRORS as error:
                asked.failed[position] = error
                breaker.failed(error)
            else:
                asked.decided[position] = decided
                breaker.ended(decided)

    workers = [asyncio.create_task(take_turns()) for _ in range(min(at_once, len(clusters)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if breaker.is_open:
        asked.error, asked.fruitless = breaker.error, breaker.fruitless
    return asked


def _unpriced(budget: Budget, expected: Forecast) -> dict[str, Any]:
    """Says where a limit in money cannot be kept beforehand, because nobody knows what the model costs."""
    if budget.limits.cost is None or expected.cost is not None:
        return {}
    return {"cost_limit": "no price is known for the model, so its money is counted only where the provider tells it"}
