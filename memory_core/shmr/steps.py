"""SHMR's steps in their order."""

from __future__ import annotations

from memory_core.runs.context import Step
from memory_core.shmr import apply, cluster, collect, embed, harmonize, log, score

SHMR_STEPS: tuple[Step, ...] = (
    embed.STEP,
    collect.STEP,
    cluster.STEP,
    harmonize.STEP,
    score.STEP,
    apply.STEP,
    log.STEP,
)
