"""Semantic duplicate merge, off unless switched on: facts that say the same in the same words become one.

Two current facts of the scope are duplicates where their words, labels and triples agree (`same_wording.py`), they
expire at the same time, and their vectors have a cosine of at least `similarity`; words of a speaker ("I") also need
the same source, words of a day ("tomorrow") the same day. Of a group that is linked so, the surest and then the latest
stays, and the others give way to it with the reason `duplicate`. Nothing is overwritten, and what a person pinned,
corrected or confirmed, and identity, never gives way.

A text is looked at once for its content: a night compares what is new with what is known (`duplicate_groups.py`).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from memory_core.beliefs import superseding
from memory_core.beliefs.cascade import withdraw_support
from memory_core.beliefs.superseding import Replacement, supersede_memories, taken_back
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.guards import check_guards
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.duplicate_groups import find_duplicates, keep_checked, say_anew, without_vector

NAME = "duplicate_merge"


class DuplicateMergeSettings(BaseModel):
    """Section `duplicate_merge`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=False, description="Whether nights merge facts that say the same in the same words.")
    similarity: float = Field(
        default=0.95, ge=0.5, le=1, description="Cosine that the vectors of two duplicates have at least."
    )
    most_pairs: int = Field(
        default=1_000_000, ge=1, le=1_000_000_000, description="Pairs of texts one run compares; the others wait."
    )
    page_size: int = Field(default=5_000, ge=1, le=100_000, description="Memories read between two writes.")


# The losers of one winner said the same as each other too: without them, the next night would merge what is left.
UNDONE = f"""
{superseding.UNDONE}
UNION ALL
SELECT '{superseding.PHASE}', slowwave.decision_key('{superseding.PHASE}', l.first_hash, l.second_hash),
       jsonb_build_array(l.first_id, l.second_id)
FROM (
  WITH losers AS (
    SELECT m.superseded_by AS winner, m.content_hash, min(CAST(m.id AS text)) AS id, count(*) AS times
    FROM run_changes c JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'id' AS uuid)
    WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
      AND c.step = '{NAME}' AND c.table_name = 'memories' AND m.superseded_by_run = CAST(:id AS uuid)
    GROUP BY m.superseded_by, m.content_hash
  )
  SELECT a.content_hash AS first_hash, b.content_hash AS second_hash, a.id AS first_id, b.id AS second_id
  FROM losers a JOIN losers b ON b.winner = a.winner
    AND (a.content_hash < b.content_hash OR (a.content_hash = b.content_hash AND a.times > 1))
) AS l
"""


async def duplicate_merge(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Merge the scope's new facts with those that say the same in the same words.

    The candidates are facts that share their words with another. What rested on a loser rests on what it gave way to.

    Raises:
        GuardTripped: more would leave default recall than the guards allow.
    """
    settings = context.section(NAME, DuplicateMergeSettings)
    model = context.embedding.model
    looked_at = await say_anew(connection, model, page_size=settings.page_size)
    found = await find_duplicates(
        connection,
        model,
        similarity=settings.similarity,
        most_pairs=settings.most_pairs,
        page_size=settings.page_size,
        reconsider=context.reconsider,
    )
    undone = await taken_back(connection, [each.hashes for each in found.duplicates], reconsider=context.reconsider)
    found.skipped["taken back by a person"] = len(undone)
    found.skipped["no vector of the model yet"] = await without_vector(connection, model)
    merged = [each for position, each in enumerate(found.duplicates) if position not in undone]
    losers = sorted((each.loser for each in merged), key=str)
    beliefs = 0
    if losers:
        await supersede_memories(
            connection, [Replacement(each.loser, each.winner, None, "duplicate") for each in merged]
        )
        await check_guards(connection, context)
        beliefs = await withdraw_support(connection, losers, "its evidence gave way", at=connection.as_of)
    await keep_checked(connection, found.left)
    return StepOutcome(
        candidates=found.members,
        changed=len(losers),
        skipped={reason: count for reason, count in sorted(found.skipped.items()) if count},
        sample=tuple(str(memory_id) for memory_id in losers[:SAMPLE_SIZE]),
        counts={
            "duplicates_merged": len(losers),
            "texts_looked_at": looked_at,
            "pairs_compared": found.pairs,
            "beliefs_affected": beliefs,
        },
        reason=""
        if losers
        else "what shares its words with another is protected, unlike, left or taken back"
        if found.members
        else "no new text says the same in the same words as another"
        if looked_at
        else "every text was already compared",
    )


def _enabled(context: RunContext) -> bool:
    return context.section(NAME, DuplicateMergeSettings).enabled


STEP = Step(NAME, duplicate_merge, undone=UNDONE, enabled=_enabled)
