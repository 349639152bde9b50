"""The seven phases in their order."""

from __future__ import annotations

from memory_core.runs.context import Step
from memory_core.sleep import (
    cooccurrence,
    meta_nodes,
    pending_edges,
    prune_orphans,
    soul_corrections,
    strengthen,
    tag_risk,
)

SLEEP_STEPS: tuple[Step, ...] = (
    strengthen.STEP,
    cooccurrence.STEP,
    tag_risk.STEP,
    pending_edges.STEP,
    prune_orphans.STEP,
    meta_nodes.STEP,
    soul_corrections.STEP,
)
