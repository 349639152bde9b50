"""A run's spending stops cleanly at its limits, also where calls run beside one another."""

from __future__ import annotations

import asyncio

import pytest

from memory_core.errors import BudgetExhausted
from memory_core.models.budgets import Budget, BudgetSettings, Estimate, Usage


def test_calls_are_counted_before_they_are_made() -> None:
    """An attempt that fails has been counted all the same."""
    budget = Budget(BudgetSettings(calls=2))
    budget.settle(budget.reserve(Estimate(10)), Usage())
    budget.reserve(Estimate(10))
    with pytest.raises(BudgetExhausted, match="budget of 2 calls"):
        budget.reserve(Estimate(10))
    assert budget.calls == 2


def test_an_estimate_that_does_not_fit_is_refused() -> None:
    """Tokens are estimated before and counted after; what is put aside meanwhile is nobody else's."""
    budget = Budget(BudgetSettings(tokens=150))
    reserved = budget.reserve(Estimate(120))
    with pytest.raises(BudgetExhausted, match="tokens"):
        budget.reserve(Estimate(31))
    budget.settle(reserved, Usage(70, 30))
    with pytest.raises(BudgetExhausted, match="tokens"):
        budget.reserve(Estimate(51))
    budget.reserve(Estimate(50))


@pytest.mark.parametrize(("limit", "calls"), [(0.0, 0), (0.01, 1), (0.03, 2), (None, 5)])
def test_money_without_a_price_stops_the_next_call(limit: float | None, calls: int) -> None:
    """Once the money is spent no further call is made; nothing allowed means no call at all."""
    budget = Budget(BudgetSettings(cost=limit))
    made = 0
    for _ in range(5):
        try:
            reserved = budget.reserve(Estimate(1))
        except BudgetExhausted:
            break
        budget.settle(reserved, Usage(70, 30, 0.02))
        made += 1
    assert made == calls


def test_money_with_a_price_is_never_overspent() -> None:
    """A call that may come to more than is left is not made."""
    budget = Budget(BudgetSettings(cost=0.05))
    budget.settle(budget.reserve(Estimate(1, cost=0.04)), Usage(cost=0.02))
    with pytest.raises(BudgetExhausted, match="cost"):
        budget.reserve(Estimate(1, cost=0.031))
    budget.reserve(Estimate(1, cost=0.03))


async def test_calls_side_by_side_never_overspend_and_leave_nothing_unused() -> None:
    """Ten callers of 40 tokens each share 100: two at a time, and an attempt that cost less makes room for others."""
    budget = Budget(BudgetSettings(tokens=100))
    under_way = most = made = 0

    async def caller() -> None:
        nonlocal under_way, most, made
        try:
            reserved = await budget.reserve_in_turn(Estimate(40))
        except BudgetExhausted:
            return
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        made += 1
        budget.settle(reserved, Usage(10, 2))

    await asyncio.wait_for(asyncio.gather(*(caller() for _ in range(10))), 5)
    assert (most, made, budget.tokens) == (2, 6, 72)


async def test_a_settled_attempt_is_settled_once() -> None:
    """Equal estimates are told apart."""
    budget = Budget(BudgetSettings(tokens=100))
    first, second = budget.reserve(Estimate(40)), budget.reserve(Estimate(40))
    budget.settle(second, Usage())
    with pytest.raises(ValueError, match="settled already"):
        budget.settle(second, Usage())
    budget.settle(first, Usage())
