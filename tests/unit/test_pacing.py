"""How fast a model may be asked by one process."""

from __future__ import annotations

import asyncio

import pytest

from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.models.pacing import LocalPace, PacedModel, paced, paced_by
from tests.scripted_model import Scripted


class Clock:
    """A time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def request(room: int = 50) -> ModelRequest:
    """A question of 10 tokens, with room for so many."""
    return ModelRequest("harmonize", "m", "", "x" * 30, None, 0.0, room, 1)


async def starts(pace: LocalPace, clock: Clock, tokens: list[int]) -> list[float]:
    """When each call may start, in seconds after the first."""
    found = []
    for count in tokens:
        await pace.wait(count)
        found.append(round(clock.time - 100.0, 6))
    return found


@pytest.mark.parametrize(
    ("requests", "tokens", "calls", "expected"),
    [
        (60, 0, [1, 1, 1, 1], [0, 1, 2, 3]),
        (6, 0, [10**9, 10**9], [0, 10]),
        (0, 6_000, [100, 300, 1], [0, 1, 4]),
        (60, 6_000, [10, 500, 10], [0, 1, 6]),
        (0, 0, [5, 5], [0, 0]),
    ],
)
async def test_calls_are_spread_evenly(requests: int, tokens: int, calls: list[int], expected: list[float]) -> None:
    """Whichever of both rates is slower decides; the first call starts at once."""
    clock = Clock()
    pace = LocalPace(requests, tokens, now=clock.now, sleep=clock.sleep)
    assert await starts(pace, clock, calls) == expected


async def test_no_minute_sees_more_than_its_share_and_one_call() -> None:
    """A thousand callers at once: of any sixty seconds, none holds more than sixty-one of their calls."""
    clock = Clock()
    at: list[float] = []

    async def sleep(seconds: float) -> None:
        at.append(seconds)

    pace = LocalPace(60, 0, now=clock.now, sleep=sleep)
    await asyncio.gather(*(pace.wait(1) for _ in range(1_000)))
    times = [0.0, *at]
    assert len(times) == 1_000
    assert max(sum(start <= time < start + 60 for time in times) for start in times) <= 61


async def test_time_that_has_passed_is_not_saved_up() -> None:
    """An hour without a call does not allow sixty at once."""
    clock = Clock()
    pace = LocalPace(60, 0, now=clock.now, sleep=clock.sleep)
    await pace.wait(1)
    clock.time += 3_600
    await pace.wait(1)
    await pace.wait(1)
    assert clock.slept == [1.0]


class Noted:
    """A pace that lets everybody through and notes what they asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def wait(self, tokens: int) -> None:
        self.asked.append(tokens)


async def test_a_paced_model_asks_for_its_turn_with_all_its_tokens() -> None:
    """Prompt and the longest answer count; a check costs nothing; the answer is the model's own."""
    pace, model = Noted(), Scripted("[]")
    asked = PacedModel(model, pace)
    await asked.check()
    answer = await asked.complete(request(50))
    assert isinstance(answer, ModelAnswer)
    assert (asked.name, answer.text, pace.asked) == (model.name, "[]", [60])


def test_whose_pace_holds() -> None:
    """A shared pace before the process's own, which all its runs share; none where nothing is limited."""
    model, pace = Scripted("[]"), Noted()
    assert paced(model, 0, 0) is model
    with paced_by(pace):
        assert paced(model, 0, 0)._pace is pace  # type: ignore[attr-defined]
        with paced_by(None):
            assert paced(model, 0, 0) is model
    first, second = paced(model, 7, 0), paced(Scripted("[]"), 7, 0)
    assert first._pace is second._pace  # type: ignore[attr-defined]
