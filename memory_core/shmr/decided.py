"""What became of one cluster in the step harmonize."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.shmr.decisions import ClusterDecision


@dataclass(slots=True)
class Decided:
    """What became of one cluster.

    Attributes:
        status: `proposed`, `nothing_to_say`, `rejected`, `parse_error`, `model_unavailable`, `budget_exhausted` or
            `failed`.
        by: `rules`, or the model's name.
        version: of the rules or of the prompt.
        iteration: attempts, kept answers included.
        score: the harmony of a proposal, -1 to 1.
        call_key: of the call whose answer was taken, else of the last one.
        call_keys: of each belief's own call, where they come from several; empty where `call_key` is that of all.
        rejected: what was turned down, with attempt and reason; never free text of a model. Also what a model was not
            shown in full, as `questions.not_shown` tells it.
        vectors: shape (n, d), one row a belief, where they were computed already.
        bought: attempts that were paid for now; kept answers are none.
    """

    cluster_id: str
    status: str
    by: str
    version: str
    decision: ClusterDecision | None = None
    reason: str = ""
    iteration: int = 0
    score: float | None = None
    call_key: str | None = None
    call_keys: tuple[str | None, ...] = ()
    rejected: list[dict[str, Any]] = field(default_factory=list)
    vectors: NDArray[np.float32] | None = None
    bought: int = 0
