"""Settles a contested belief: a person says which memory is right."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime, NotFound
from memory_core.layers.edges import carry_edges
from memory_core.layers.leaving import left
from memory_core.layers.scopes import enter_scope
from memory_core.models.embedding import prepared_text
from memory_core.scope import TenantScope

_BELIEF = """
SELECT belief_id, status, content FROM harmonic_beliefs
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND belief_id = CAST(:id AS uuid)
"""

_EVIDENCE = """
SELECT e.role, m.id, m.content, m.object, m.scope_path, m.pinned, m.retired_at, m.superseded_reason
FROM belief_evidence e JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.belief_id = CAST(:id AS uuid)
  AND e.role IN ('supports', 'contradicts')
ORDER BY m.observed_at, m.id
"""

_LOSE = """
UPDATE memories
SET superseded_by = CAST(:winner AS uuid), superseded_by_belief = NULL, superseded_reason = 'correction',
    superseded_at = :at, superseded_by_run = NULL
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[]))
"""

_SETTLE = """
UPDATE harmonic_beliefs
SET status = 'superseded', status_reason = :reason, valid_to = :at, updated_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND belief_id = CAST(:id AS uuid)
"""

_CONFIRM = """
INSERT INTO memory_accesses (tenant_id, scope_path, id, memory_id, kind, at)
VALUES (:tenant_id, :scope_path, :access, CAST(:winner AS uuid), 'confirm', :at) ON CONFLICT DO NOTHING
"""

_USED = """
UPDATE memories SET last_activity_at = greatest(last_activity_at, CAST(:at AS timestamptz))
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:winner AS uuid)
"""

_LOOK_AGAIN = """
UPDATE harmonize_queue SET harmonized_by_run = NULL, enqueued_at = :at, reason = 'a person settled a contested belief'
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = ANY(CAST(:ids AS uuid[]))
"""


async def resolve_belief(
    database: Database, scope: TenantScope, belief_id: UUID, winner: UUID, *, who: str, at: datetime
) -> dict[str, Any]:
    """Let one memory of a contested belief win: those that say otherwise are superseded with the reason `correction`.

    The winner counts as confirmed by a person, so that no run overrides it; what agrees with it stays. The belief is
    superseded; the next night holds the settled one, from the winner and what agrees with it.

    Raises:
        NotFound: there is no such belief in the scope itself.
        InvalidInput: the belief is not contested, or the winner is not a current memory of its evidence in this scope.
    """
    if at.utcoffset() is None:
        raise InvalidTime("The time has no zone.", hint="Give it as UTC.")
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        belief = await connection.row(_BELIEF, id=belief_id)
        if belief is None:
            raise NotFound(f"There is no belief {belief_id} in {scope}.", hint="`slowwave beliefs` lists them.")
        if belief["status"] != "contested":
            raise InvalidInput(
                f"The belief is {belief['status']}, not contested.",
                hint="`slowwave correct` or `slowwave retract` change what a memory says.",
            )
        evidence = await connection.rows(_EVIDENCE, id=belief_id)
        chosen = next((row for row in evidence if row["id"] == winner), None)
        if chosen is None or chosen["retired_at"] is not None or chosen["superseded_reason"] is not None:
            raise InvalidInput(
                f"The memory {winner} is not current evidence of this belief.",
                hint="`slowwave why` lists its evidence; correct one of them where none is right.",
            )
        if chosen["scope_path"] != scope.scope_path:
            raise InvalidInput(
                "The winner belongs to an ancestor scope.", hint="Settle it there, or correct the other."
            )
        losers, out_of_reach = _losers(evidence, chosen, scope)
        await connection.execute(_LOSE, winner=winner, ids=losers, at=at)
        await carry_edges(connection, dict.fromkeys(losers, winner), at=at)
        await connection.execute(_SETTLE, id=belief_id, reason=f"settled by {who}: {chosen['content']}"[:2000], at=at)
        access = scope.derived_id("access", str(winner), "confirm", at.isoformat())
        await connection.execute(_CONFIRM, access=access, winner=winner, at=at)
        await connection.execute(_USED, winner=winner, at=at)
        standing = [row["id"] for row in evidence if row["id"] not in losers]
        await connection.execute(_LOOK_AGAIN, ids=standing, at=at)
        changed = await left(connection, losers, f"settled by {who}", at=at)
        await connection.commit()
    return {
        "belief": str(belief_id),
        "status": "settled",
        "winner": str(winner),
        "content": chosen["content"],
        "superseded": [str(memory_id) for memory_id in losers],
        "left_in_ancestors": [str(memory_id) for memory_id in out_of_reach],
        "beliefs_changed": changed,
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
    }


def _losers(evidence: Sequence[RowMapping], chosen: RowMapping, scope: TenantScope) -> tuple[list[UUID], list[UUID]]:
    """Current memories that say otherwise: of the scope itself, and of ancestors, which are out of reach."""
    said = _statement(chosen)
    otherwise = [
        row
        for row in evidence
        if row["id"] != chosen["id"]
        and row["retired_at"] is None
        and row["superseded_reason"] is None
        # The belief's own side agrees with itself; the other side may hold several values.
        and not (row["role"] == chosen["role"] == "supports")
        and _statement(row) != said
    ]
    own = [row["id"] for row in otherwise if row["scope_path"] == scope.scope_path]
    return own, [row["id"] for row in otherwise if row["scope_path"] != scope.scope_path]


def _statement(row: RowMapping) -> str:
    return prepared_text(row["object"] or row["content"]).casefold().strip()
