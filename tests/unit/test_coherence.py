"""The harmony score and the conflicts it cannot see; decisions and settings as data."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory_core.errors import InvalidInput
from memory_core.shmr.coherence import conflicts, find_conflicts, harmony
from memory_core.shmr.decisions import BeliefProposal, ClusterDecision, Dampen, Rejected, Supersede
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


def test_one_belief_scores_its_cosine_however_unsure_it_is() -> None:
    """Confidence is a weight: an honest 0.5 can reach the threshold (F15)."""
    assert harmony([EAST], [0.5], EAST) == pytest.approx(1.0)
    assert harmony([[1.0, 1.0]], [0.1], EAST) == pytest.approx(math.sqrt(0.5))


def test_weights_and_bonus_follow_the_formula() -> None:
    """The base is the weighted mean of cosines; the bonus is the mean pairwise cosine plus 0.3, at most 1."""
    expected = (0.9 * 1.0 + 0.3 * 0.0) / 1.2 * 0.3
    assert harmony([EAST, NORTH], [0.9, 0.3], EAST) == pytest.approx(expected)
    assert harmony([EAST, EAST], [0.9, 0.3], EAST) == pytest.approx(1.0)
    assert harmony([EAST, [-1.0, 0.0]], [1.0, 0.1], EAST) == 0.0


def test_overconfidence_buys_nothing() -> None:
    """A confidence above 1 or infinite counts as 1, one that is no number as 0 (F11, F12)."""
    unlike = [0.1, 1.0]
    for confidence in (50.0, math.inf):
        assert harmony([unlike], [confidence], EAST) == pytest.approx(harmony([unlike], [1.0], EAST))
    assert harmony([EAST], [math.nan], EAST) == 0.0


def test_nothing_scores_nothing() -> None:
    """No belief, no weight or no direction gives 0, never an error."""
    assert harmony(np.zeros((0, 2)), [], EAST) == 0.0
    assert harmony([EAST], [0.0], EAST) == 0.0
    assert harmony([EAST], [0.5], [0.0, 0.0]) == 0.0


numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=5), numbers, numbers)
def test_the_score_is_always_finite(beliefs: list[tuple[float, float, float]], x: float, y: float) -> None:
    """Whatever comes in, the score is a number from -1 to 1."""
    score = harmony([[a, b] for a, b, _ in beliefs], [c for _, _, c in beliefs], [x, y])
    assert -1.0 <= score <= 1.0


PEANUTS = Slot("user", "allergic to", "peanuts", True, None, True)
NO_PEANUTS = Slot("user", "allergic to", "peanuts", False, None, True)
TREE_NUTS = Slot("user", "allergic to", "tree nuts", True, None, True)


def test_a_belief_and_its_negation_are_found_where_the_score_sees_none() -> None:
    """Cosine scores a belief and its negation alike; the conflict check does not (F16)."""
    assert harmony([EAST, EAST], [0.95, 0.95], EAST) == pytest.approx(1.0)
    assert find_conflicts([PEANUTS, NO_PEANUTS], [[], []])[0].beliefs == (0, 1)
    assert conflicts([PEANUTS, TREE_NUTS, None], [[PEANUTS], [], [PEANUTS]]) == []


def test_a_belief_against_its_own_evidence_is_found() -> None:
    """A belief may not say the opposite of what it cites, nor another value of it."""
    assert find_conflicts([NO_PEANUTS], [[TREE_NUTS, PEANUTS]])[0].beliefs == (0,)
    berlin, paris = (Slot("user", "live in", city, True, None, False) for city in ("berlin", "paris"))
    assert "contradicts the evidence" in conflicts([berlin], [[paris]])[0]


def test_decisions_survive_json() -> None:
    """A stored decision comes back equal, and its text is the same each time."""
    one, two, at = UUID(int=1), UUID(int=2), datetime(2026, 3, 1, 3, tzinfo=UTC)
    belief = BeliefProposal("User", "lives in", "Zürich", "c", "held", 0.7, (two,), (), (one,), "later", at)
    decision = ClusterDecision(
        (Supersede(one, two, "update", "later"),),
        (Dampen(one, two, "weaker"),),
        (belief,),
        (Rejected("x", "y"),),
        "decided",
    )
    text = decision.to_json()
    assert ClusterDecision.from_json(text) == decision
    assert ClusterDecision.from_json(text).to_json() == text
    for broken in ("{", "[]", "{}", text.replace(str(one), "no id")):
        with pytest.raises(InvalidInput):
            ClusterDecision.from_json(broken)


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch_size", -1), ("batch_size", 0), ("max_iterations", 0), ("similarity_threshold", 1.01),
     ("similarity_threshold", -1), ("harmony_threshold", math.nan), ("batch_size", "abc"), ("min_cluster_size", 1),
     ("unknown", 1)],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name: str, value: object) -> None:
    """Every setting is checked when it is built, never at import (F46)."""
    with pytest.raises(ValidationError):
        ShmrSettings(**{name: value})  # type: ignore[arg-type]


def test_documented_settings_keep_names_and_defaults() -> None:
    """The seven documented settings are there with their documented defaults."""
    documented = {"batch_size": 50, "max_iterations": 3, "similarity_threshold": 0.70, "harmony_threshold": 0.60,
                  "min_cluster_size": 2, "temperature": 0.2, "model": ""}  # fmt: skip
    assert documented.items() <= ShmrSettings().model_dump().items()
