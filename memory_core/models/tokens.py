"""What a call may come to, counted without asking anybody."""

from __future__ import annotations

import asyncio
import math

from memory_core.models.budgets import Estimate
from memory_core.models.language import ModelRequest
from memory_core.models.prices import price

_TOKEN_BYTES = 3


def estimate_tokens(text: str) -> int:
    """A conservative count of tokens: UTF-8 bytes by three, rounded up.

    English has about four characters a token; a script outside Latin about three bytes. The estimate errs high.
    """
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _TOKEN_BYTES)


async def estimate_call(request: ModelRequest, *, priced: bool) -> Estimate:
    """What one call of this request may come to at most: its prompt, and the longest answer it may have.

    Args:
        priced: also in money; loads LiteLLM's price table where it is not loaded yet (some seconds).
    """
    read = estimate_tokens(request.system) + estimate_tokens(request.prompt)
    tokens = read + request.max_output_tokens
    if not priced:
        return Estimate(tokens, read_tokens=read)
    cost, read_cost = await asyncio.to_thread(
        lambda: (price(request.model, read, request.max_output_tokens), price(request.model, read, 0))
    )
    return Estimate(tokens, cost, read, read_cost)
