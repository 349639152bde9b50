"""What a person reads on the artifacts page."""

from __future__ import annotations

from memory_core.night.steps import EVERY_STEP
from tasks.reporting import PURPOSES


def test_each_step_says_what_it_is_for() -> None:
    """No step's artifact is without a description, and none is described that is gone."""
    assert set(PURPOSES) == {step.name for step in EVERY_STEP}
