"""The steps of each kind of run, in their order."""

from __future__ import annotations

from dataclasses import replace

from memory_core.errors import InvalidInput, InvalidSettings
from memory_core.runs.context import RunContext, Step
from memory_core.shmr.embed import STEP as EMBED
from memory_core.shmr.steps import SHMR_STEPS
from memory_core.sleep.duplicate_merge import STEP as DUPLICATE_MERGE
from memory_core.sleep.episodic_summaries import STEP as EPISODIC_SUMMARIES
from memory_core.sleep.meta_nodes import STEP as META_NODES
from memory_core.sleep.model_summaries import STEP as MODEL_SUMMARIES
from memory_core.sleep.phases import SLEEP_STEPS

KINDS = ("sleep", "harmonize", "nightly")

EMBED_SUMMARIES = replace(EMBED, name="embed_summaries")

_SUMMARIES = (META_NODES, EPISODIC_SUMMARIES, MODEL_SUMMARIES)

EVERY_STEP: tuple[Step, ...] = (
    *(step for step in SLEEP_STEPS if step not in (DUPLICATE_MERGE, *_SUMMARIES)),
    EMBED,
    # After the vectors are made, before SHMR has to look at each copy.
    DUPLICATE_MERGE,
    *(step for step in SHMR_STEPS if step is not EMBED),
    # After SHMR: a summary made before it would quote what it then replaces, and a second run would make it anew.
    *_SUMMARIES,
    EMBED_SUMMARIES,
)

UNDONE_QUERIES: tuple[str, ...] = tuple(step.undone for step in EVERY_STEP if step.undone)
"""What `undo_run` asks, to remember what a person took back."""


def steps_of_kind(kind: str) -> tuple[Step, ...]:
    """The steps of a `sleep`, `harmonize` or `nightly` run.

    Raises:
        InvalidInput: there is no such kind.
    """
    match kind:
        case "sleep":
            return SLEEP_STEPS
        case "harmonize":
            return SHMR_STEPS
        case "nightly":
            return EVERY_STEP
    raise InvalidInput(f"There is no run of kind {kind!r}.", hint=f"It is one of: {', '.join(KINDS)}.")


def left_out(context: RunContext) -> tuple[str, ...]:
    """The names of the run's steps that its settings leave out."""
    return tuple(step.name for step in steps_of_kind(context.run.kind) if not _is_on(step, context))


def _is_on(step: Step, context: RunContext) -> bool:
    if step.enabled is None:
        return True
    try:
        return step.enabled(context)
    except InvalidSettings:
        return True  # so that the step fails with what is wrong, rather than be missing without a word
