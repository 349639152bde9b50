"""What a run's questions to a model may come to, told before the first of them is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memory_core.errors import InvalidInput
from memory_core.models.call_cache import CallCache
from memory_core.models.language import ModelRequest
from memory_core.models.prices import price
from memory_core.models.tokens import estimate_call
from memory_core.shmr.questions import first_request
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster


@dataclass(frozen=True, slots=True)
class Forecast:
    """One attempt at each cluster, with the longest answer it may have; further attempts cost as much again.

    Attributes:
        calls: clusters without a kept answer.
        tokens: read and written together.
        cost: US dollars by the price table; None where it knows no price.
        kept: clusters whose first answer is kept, and costs nothing.
    """

    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    kept: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As a JSON-able document."""
        return asdict(self)


async def forecast(clusters: Sequence[StoredCluster], model: str, cache: CallCache, settings: ShmrSettings) -> Forecast:
    """What asking about these clusters may come to; nobody is asked."""
    requests: list[ModelRequest] = []
    for cluster in clusters:
        try:
            requests.append(first_request(model, cluster, settings))
        except InvalidInput:
            # It cannot be asked about, which its own result will say.
            continue
    kept = await cache.kept(requests)
    new = [request for request in requests if request.cache_key() not in kept]
    if cache.replay_only or not new:
        return Forecast(kept=len(requests) - len(new))
    estimates = [await estimate_call(request, priced=False) for request in new]
    tokens = sum(each.tokens for each in estimates)
    read = sum(each.read_tokens for each in estimates)
    cost = await asyncio.to_thread(_cost, model, read, tokens - read)
    return Forecast(calls=len(new), tokens=tokens, cost=cost, kept=len(requests) - len(new))


def _cost(model: str, read: int, written: int) -> float | None:
    """By the price of a thousand tokens: some providers charge more for a token of a very long call."""
    thousand_read, thousand_written = price(model, 1_000, 0), price(model, 0, 1_000)
    if thousand_read is None or thousand_written is None:
        return None
    return round(thousand_read * read / 1_000 + thousand_written * written / 1_000, 6)
