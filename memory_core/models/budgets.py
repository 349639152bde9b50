"""What one run may spend on model calls: counted on every attempt, estimated before it, and a clean stop at the end."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from memory_core.errors import BudgetExhausted
from memory_core.models.language import ModelAnswer


class BudgetSettings(BaseModel):
    """Section `budget`: limits of one run in one scope; None for no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    calls: int | None = Field(default=None, ge=0, description="Model calls one run may make.")
    tokens: int | None = Field(default=None, ge=0, description="Tokens one run may use, read and written together.")
    cost: float | None = Field(
        default=None, ge=0, description="US dollars one run may spend, by LiteLLM's price table."
    )


@dataclass(slots=True)
class Budget:
    """The spending of one run. Kept answers cost nothing."""

    limits: BudgetSettings
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def reserve(self, estimated_tokens: int) -> None:
        """Count one attempt, or refuse it where its estimate does not fit any more.

        Raises:
            BudgetExhausted: with what is spent and what is allowed.
        """
        limits = self.limits
        over = (
            ("calls", self.calls + 1, limits.calls),
            ("tokens", self.tokens + estimated_tokens, limits.tokens),
            # A price is only known afterwards; the next call waits once the money is spent.
            ("cost", self.cost, None if limits.cost is None or self.cost < limits.cost else limits.cost),
        )
        for name, needed, allowed in over:
            if allowed is not None and (needed > allowed or name == "cost"):
                raise BudgetExhausted(
                    f"The run's budget of {allowed:g} {name} is spent "
                    f"({self.calls} calls, {self.tokens} tokens, ${self.cost:.4f}).",
                    hint="Raise the tenant's budget, or wait for the next night: what is left keeps waiting.",
                    limit=name,
                    allowed=allowed,
                )
        self.calls += 1

    def spend(self, answer: ModelAnswer) -> None:
        """Count what an answer cost."""
        self.tokens += answer.prompt_tokens + answer.completion_tokens
        self.cost += answer.cost or 0.0
