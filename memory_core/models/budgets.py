"""What one run may spend on model calls: reserved before each attempt, settled after it, and a clean stop at the end.

Calls run beside one another, so an attempt first reserves what it may come to at most. What is spent and what is
reserved together never exceed a limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from memory_core.errors import BudgetExhausted


class BudgetSettings(BaseModel):
    """Section `budget`: limits of one run in one scope; None for no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    calls: int | None = Field(default=None, ge=0, description="Model calls one run may make.")
    tokens: int | None = Field(default=None, ge=0, description="Tokens one run may use, read and written together.")
    cost: float | None = Field(
        default=None, ge=0, description="US dollars one run may spend, by LiteLLM's price table."
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an attempt may come to at most.

    Args:
        tokens: read and written together.
        cost: US dollars by the price table; None where no price is known.
        read_tokens: those of the prompt alone.
        read_cost: US dollars for reading the prompt alone; None where no price is known.
    """

    tokens: int
    cost: float | None = None
    read_tokens: int = 0
    read_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt came to.

    Args:
        prompt_tokens: tokens read.
        completion_tokens: tokens written.
        cost: US dollars; None where no price is known.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


@dataclass(slots=True)
class Budget:
    """The spending of one run; kept answers cost nothing.

    Attributes:
        calls: attempts so far, failed ones included.
        tokens, cost: what was spent.
    """

    limits: BudgetSettings
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    _open: list[Estimate] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def reserve(self, estimate: Estimate) -> Estimate:
        """Count one attempt and put its estimate aside until it is settled, or refuse it where it does not fit.

        Returns:
            the estimate, to be given to `settle`.

        Raises:
            BudgetExhausted: with what is spent and what is allowed.
        """
        if over := self._exceeded(estimate):
            name, allowed = over
            raise BudgetExhausted(
                f"The run's budget of {allowed:g} {name} is spent "
                f"({self.calls} calls, {self.tokens} tokens, ${self.cost:.4f}).",
                hint="Raise the tenant's budget, or wait for the next night: what is left keeps waiting.",
                limit=name,
                allowed=allowed,
            )
        self.calls += 1
        self._open.append(estimate)
        return estimate

    async def reserve_in_turn(self, estimate: Estimate) -> Estimate:
        """As `reserve`, but an attempt that only does not fit beside those under way waits for them to be settled.

        Raises:
            BudgetExhausted: it does not fit, and nothing is under way.
        """
        while self._open and self._exceeded(estimate):
            self._changed.clear()
            await self._changed.wait()
        return self.reserve(estimate)

    def settle(self, reserved: Estimate, usage: Usage) -> None:
        """Count what an attempt came to, in place of what was put aside for it.

        Raises:
            ValueError: nothing is put aside for it, because it was settled before.
        """
        others = [each for each in self._open if each is not reserved]
        if len(others) == len(self._open):
            raise ValueError("The attempt is settled already.")
        self._open = others
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.cost += usage.cost or 0.0
        self._changed.set()

    def _exceeded(self, estimate: Estimate) -> tuple[str, float] | None:
        """The first limit that another attempt would break, and what it allows."""
        limits = self.limits
        tokens = self.tokens + sum(each.tokens for each in self._open) + estimate.tokens
        cost = self.cost + sum(each.cost or 0.0 for each in self._open) + (estimate.cost or 0.0)
        if limits.calls is not None and self.calls + 1 > limits.calls:
            return "calls", limits.calls
        if limits.tokens is not None and tokens > limits.tokens:
            return "tokens", limits.tokens
        # Where no price is known beforehand, the next call waits once the money is spent.
        if limits.cost is not None and (cost > limits.cost or self.cost >= limits.cost):
            return "cost", limits.cost
        return None
