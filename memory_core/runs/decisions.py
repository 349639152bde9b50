"""What was decided, and what a person took back: looked up by a key over the phase and its members' content.

A phase that would do again what a person undid leaves it alone until a member's content changes or the run is
asked to reconsider.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memory_core.database.scoped import ScopedConnection


def not_undone(phase: str, *members: str) -> str:
    """SQL condition: this was not taken back by a person, or the run reconsiders (`:reconsider`).

    Args:
        phase: the step's name.
        members: SQL expressions of type text that identify what is decided on, such as content hashes.
    """
    key = f"slowwave.decision_key('{phase}', {', '.join(members)})"
    undone = f"""SELECT FROM decisions d
      WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.verdict = 'undone' AND d.phase = '{phase}'"""
    # Asked once a statement first: where nothing was ever undone, no key is computed for any row.
    return f"""(CAST(:reconsider AS boolean) OR NOT (SELECT EXISTS ({undone})) OR NOT EXISTS (
      {undone} AND d.decision_key = {key}
    ))"""


def _remember(query: str) -> str:
    return f"""
INSERT INTO decisions AS d (tenant_id, scope_path, decision_key, phase, verdict, members, run_id, decided_at,
                            created_by_run)
SELECT DISTINCT ON (q.decision_key)
       CAST(:tenant_id AS text), CAST(:scope_path AS text), q.decision_key, q.phase, 'undone', q.members,
       CAST(:id AS uuid), CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM ({query}) AS q
ORDER BY q.decision_key
ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
SET verdict = 'undone', decided_at = excluded.decided_at, created_by_run = excluded.created_by_run
"""


async def remember_undone(connection: ScopedConnection, run_id: UUID, queries: Sequence[str]) -> int:
    """Keep what a run decided as taken back; call it before the run's changes are.

    Args:
        run_id: the run being undone; the queries' parameter `:id`.
        queries: one a phase; each selects phase, decision_key and members (a jsonb array of what the key is made from).

    Returns:
        how many decisions were remembered.
    """
    remembered = 0
    for query in queries:
        remembered += (await connection.execute(_remember(query), id=run_id)).rowcount
    return remembered
