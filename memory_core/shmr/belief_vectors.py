"""The vectors of proposed beliefs, as they are kept with a cluster between the steps.

A belief that restates a memory word for word has that memory's vector, and only the memory is named.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BeliefVectors:
    """One entry a belief of a decision; both are None for a belief that has no vector yet.

    Attributes:
        own: its vector, shape (d,).
        of_memories: the memory whose vector is its own.
    """

    own: tuple[Vector | None, ...]
    of_memories: tuple[UUID | None, ...]

    @classmethod
    def from_proposal(cls, proposal: Mapping[str, Any]) -> BeliefVectors:
        """The vectors in a stored proposal."""
        nothing = [None] * len(proposal["decision"]["beliefs"])
        return cls(
            own=tuple(None if each is None else _unpacked(each) for each in proposal.get("vectors") or nothing),
            of_memories=tuple(None if each is None else UUID(each) for each in proposal.get("vectors_of") or nothing),
        )

    def to_proposal(self) -> dict[str, Any]:
        """The part of a stored proposal that holds the vectors."""
        return {
            "vectors": [None if each is None else _packed(each) for each in self.own],
            "vectors_of": [None if each is None else str(each) for each in self.of_memories],
        }

    def only(self, positions: Sequence[int]) -> BeliefVectors:
        """The vectors of the beliefs at these positions."""
        return BeliefVectors(
            own=tuple(self.own[position] for position in positions),
            of_memories=tuple(self.of_memories[position] for position in positions),
        )

    def filled(self, found: Mapping[int, Vector]) -> BeliefVectors:
        """With the vectors of the beliefs at these positions."""
        return replace(self, own=tuple(found.get(position, own) for position, own in enumerate(self.own)))

    def missing(self) -> list[int]:
        """The positions of beliefs that have none."""
        pairs = zip(self.own, self.of_memories, strict=True)
        return [position for position, (own, of) in enumerate(pairs) if own is None and of is None]


def pack(vectors: NDArray[np.float32] | None) -> list[str] | None:
    """Vectors as text that keeps every bit: base64 of little-endian float32, one a row."""
    return None if vectors is None else [_packed(row) for row in vectors]


def _packed(vector: Vector) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()


def _unpacked(packed: str) -> Vector:
    return np.frombuffer(base64.b64decode(packed), dtype="<f4").astype(np.float32)
