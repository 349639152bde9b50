"""A run's spending stops cleanly at its limits."""

from __future__ import annotations

import pytest

from memory_core.errors import BudgetExhausted
from memory_core.models.budgets import Budget, BudgetSettings
from memory_core.models.language import ModelAnswer

ANSWER = ModelAnswer("[]", "m", 70, 30, 0.02, "stop", 1)


def test_calls_are_counted_before_they_are_made() -> None:
    """An attempt that fails has been counted all the same."""
    budget = Budget(BudgetSettings(calls=2))
    budget.reserve(10)
    budget.reserve(10)
    with pytest.raises(BudgetExhausted, match="budget of 2 calls"):
        budget.reserve(10)
    assert budget.calls == 2


def test_an_estimate_that_does_not_fit_is_refused() -> None:
    """Tokens are estimated before and counted after."""
    budget = Budget(BudgetSettings(tokens=150))
    budget.reserve(120)
    budget.spend(ANSWER)
    with pytest.raises(BudgetExhausted, match="tokens"):
        budget.reserve(51)
    budget.reserve(50)


@pytest.mark.parametrize(("limit", "calls"), [(0.0, 0), (0.01, 1), (0.03, 2), (None, 5)])
def test_money_stops_the_next_call(limit: float | None, calls: int) -> None:
    """Once the money is spent no further call is made; nothing allowed means no call at all."""
    budget = Budget(BudgetSettings(cost=limit))
    made = 0
    for _ in range(5):
        try:
            budget.reserve(1)
        except BudgetExhausted:
            break
        budget.spend(ANSWER)
        made += 1
    assert made == calls
