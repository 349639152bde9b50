"""Superseding: memories give way to a better one, in a run, and what a person took back stays taken back.

Every phase that lets a memory give way does it here, so that there is one record of it: the loser keeps its words and
names what it gave way to, and one kind of decision, over the contents of both, remembers an undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.decisions import not_undone

PHASE = "supersede"
"""The decisions' phase, whichever step it was."""

_SUPERSEDE = """
UPDATE memories m
SET superseded_by = s.winner, superseded_by_belief = s.belief, superseded_reason = s.reason, superseded_at = :as_of,
    superseded_by_run = :run_id
FROM unnest(CAST(:losers AS uuid[]), CAST(:winners AS uuid[]), CAST(:beliefs AS uuid[]), CAST(:reasons AS text[]))
     AS s(loser, winner, belief, reason)
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = ANY(CAST(:losers AS uuid[]))
  AND m.id = s.loser
"""

_TAKEN_BACK = f"""
SELECT p.number
FROM unnest(CAST(:losers AS text[]), CAST(:winners AS text[])) WITH ORDINALITY AS p(loser, winner, number)
WHERE NOT {not_undone(PHASE, "p.loser", "p.winner")}
"""

UNDONE = f"""
SELECT '{PHASE}' AS phase, slowwave.decision_key('{PHASE}', l.content_hash, w.content_hash) AS decision_key,
       jsonb_build_array(l.id, w.id) AS members
FROM memories l JOIN memories w ON w.tenant_id = l.tenant_id AND w.id = l.superseded_by
WHERE l.tenant_id = :tenant_id AND l.scope_path = :scope_path AND l.superseded_by_run = CAST(:id AS uuid)
UNION ALL
SELECT '{PHASE}', slowwave.decision_key('{PHASE}', l.content_hash, b.content), jsonb_build_array(l.id, b.belief_id)
FROM memories l JOIN harmonic_beliefs b ON b.tenant_id = l.tenant_id AND b.belief_id = l.superseded_by_belief
WHERE l.tenant_id = :tenant_id AND l.scope_path = :scope_path AND l.superseded_by_run = CAST(:id AS uuid)
"""
"""SQL for `remember_undone`: each loser of a run with what it gave way to."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One memory of the scope that gives way to a memory or to a belief.

    Attributes:
        loser: the memory that gives way.
        winner: the memory that it gives way to; None where it is a belief.
        belief: the belief that it gives way to; None where it is a memory.
    """

    loser: UUID
    winner: UUID | None
    belief: UUID | None
    reason: Literal["duplicate", "update", "contradiction", "correction"]


async def supersede_memories(connection: ScopedConnection, replacements: Sequence[Replacement]) -> None:
    """Let memories of the scope give way, in a run; the caller lets beliefs follow (`cascade.withdraw_support`)."""
    if not replacements:
        return
    ordered = sorted(replacements, key=lambda each: str(each.loser))
    await connection.execute(
        _SUPERSEDE,
        losers=[each.loser for each in ordered],
        winners=[each.winner for each in ordered],
        beliefs=[each.belief for each in ordered],
        reasons=[each.reason for each in ordered],
    )


async def taken_back(connection: ScopedConnection, pairs: Sequence[tuple[str, str]], *, reconsider: bool) -> set[int]:
    """The positions of pairs that a person took back.

    Args:
        pairs: of each, the loser's content hash, and the winner's content hash or the belief's content.
        reconsider: whether what a person took back may be done again; then there are none.
    """
    if not pairs:
        return set()
    rows = await connection.execute(
        _TAKEN_BACK,
        losers=[loser for loser, _ in pairs],
        winners=[winner for _, winner in pairs],
        reconsider=reconsider,
    )
    return {number - 1 for number in rows.scalars()}
