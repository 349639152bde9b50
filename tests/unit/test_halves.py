"""A cluster in two: as even as may be, and no slot torn apart without need."""

from __future__ import annotations

import uuid
from datetime import timedelta

import numpy as np
import pytest

from memory_core.shmr.candidates import Candidate
from memory_core.shmr.halves import halves
from memory_core.shmr.slots import Slot
from memory_core.shmr.stored import StoredCluster
from tests.builders import NIGHT


def cluster(*slots: str) -> StoredCluster:
    """A cluster whose members have these predicates, the latest first; `-` has no slot."""
    members = [
        Candidate(
            memory_id=uuid.UUID(int=number),
            version=1,
            content_hash="",
            layer="semantic",
            content=f"statement {number}",
            subject=None,
            predicate=None,
            object=None,
            observed_at=NIGHT - timedelta(days=number),
            confidence=0.7,
            source=None,
        )
        for number in range(len(slots))
    ]
    return StoredCluster(
        cluster_id="c",
        fingerprint="f",
        status="pending",
        members=members,
        slots=[None if name == "-" else Slot("ann", name, "x") for name in slots],
        vectors=np.zeros((len(slots), 2), np.float32),
        handles=[f"m{number}" for number in range(len(slots))],
        proposal={},
    )


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ("aabb", {(0, 1), (2, 3)}),
        ("abab", {(0, 2), (1, 3)}),
        ("aaabbc", {(0, 1, 2), (3, 4, 5)}),
        ("aab-", {(0, 1), (2, 3)}),
        # One slot: the earlier statements, which stand last here, are one half.
        ("aaaa", {(2, 3), (0, 1)}),
        ("aaaaa", {(3, 4), (0, 1, 2)}),
        # One statement alone has nothing to be reconciled with.
        ("aaab", None),
        ("aab", None),
        ("aa", None),
        ("ab", None),
    ],
)
def test_halves_keep_slots_together(slots: str, expected: set[tuple[int, ...]] | None) -> None:
    """Every member is in one half; where a half would be too small there are none."""
    found = halves(cluster(*slots))
    assert (None if found is None else set(found)) == expected
