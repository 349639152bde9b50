"""The seven phases in their order, and between them those that settings switch on."""

from __future__ import annotations

from memory_core.runs.context import Step
from memory_core.sleep.cooccurrence import STEP as COOCCURRENCE
from memory_core.sleep.decay import STEP as DECAY
from memory_core.sleep.duplicate_merge import STEP as DUPLICATE_MERGE
from memory_core.sleep.episodic_summaries import STEP as EPISODIC_SUMMARIES
from memory_core.sleep.meta_nodes import STEP as META_NODES
from memory_core.sleep.model_summaries import STEP as MODEL_SUMMARIES
from memory_core.sleep.pending_edges import STEP as PENDING_EDGES
from memory_core.sleep.promotion import STEP as PROMOTION
from memory_core.sleep.prune_orphans import STEP as PRUNE_ORPHANS
from memory_core.sleep.soul_corrections import STEP as SOUL_CORRECTIONS
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from memory_core.sleep.tag_risk import STEP as TAG_RISK
from memory_core.sleep.working_expiry import STEP as WORKING_EXPIRY

SLEEP_STEPS: tuple[Step, ...] = (
    STRENGTHEN,
    DECAY,
    COOCCURRENCE,
    TAG_RISK,
    PENDING_EDGES,
    WORKING_EXPIRY,
    PRUNE_ORPHANS,
    DUPLICATE_MERGE,
    META_NODES,
    EPISODIC_SUMMARIES,
    MODEL_SUMMARIES,
    SOUL_CORRECTIONS,
    PROMOTION,
)
