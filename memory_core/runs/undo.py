"""Takes a run back for a person: restores what it changed, removes what it made, and is itself a run.

Column by column, a value is restored only where it is still the one the run left; what was changed since is
refused and listed. What a person undid is remembered by decision key and not done again until a member's content
changes or it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.database.scoped import RunBinding, ScopedConnection
from memory_core.errors import NotFound, UndoRefused
from memory_core.runs.decisions import remember_undone
from memory_core.runs.ledger import ISOLATION, finish_run, utc
from memory_core.runs.take_back import take_back
from memory_core.scope import TenantScope

UNDOABLE = ("applied", "partial", "interrupted", "running")
"""Who undoes holds the scope, so a run that says `running` belongs to a dead process."""

_UNDONE_RUN = """
SELECT r.kind, r.status, r.dry_run, r.undone_by_run,
       (SELECT u.status FROM runs u WHERE u.tenant_id = :tenant_id AND u.id = r.undone_by_run) AS undone_how
FROM runs r
WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.id = CAST(:id AS uuid) FOR UPDATE OF r
"""

_BEGIN = """
INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters, parameters_hash, requested_by,
                  undoes_run)
VALUES (:tenant_id, :run_id, :scope_path, 'undo', CAST(:as_of AS timestamptz), 'running', 0, '{}', '', :requested_by,
        CAST(:undone AS uuid))
"""

_CLOSE_UNDONE = """
UPDATE runs SET status = 'undone', undone_by_run = :run_id, finished_at = coalesce(finished_at, clock_timestamp())
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:undone AS uuid)
"""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did.

    Attributes:
        run_id: the undo's own run.
        restored: rows given back their former values.
        removed: rows the run had made, now gone.
        refused: what was left, with table, key, column and reason.
    """

    run_id: UUID
    undone_run: UUID
    restored: int
    removed: int
    refused: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON-able document."""
        return {
            "run_id": str(self.run_id),
            "undone_run": str(self.undone_run),
            "status": "partial" if self.refused else "undone",
            "restored": self.restored,
            "removed": self.removed,
            "refused": list(self.refused),
        }


async def undo_run(
    database: Database,
    scope: TenantScope,
    run_id: UUID,
    *,
    at: datetime,
    decisions: Sequence[str] = (),
    requested_by: str = "person",
) -> UndoResult:
    """Undo a run of the scope that ended, or whose process died; the caller holds the scope.

    Args:
        at: when the person asked; stamps the undo's run.
        decisions: queries of `remember_undone`, one a phase.

    Raises:
        InvalidTime: `at` is naive.
        NotFound: there is no such run in the scope.
        UndoRefused: it was undone wholly already, changed nothing, or is itself an undo.
        TransientError: nothing was undone; it may work when tried again.
    """
    at = utc(at)
    undo_id = scope.derived_id("undo", str(run_id), at.isoformat())
    async with database.scoped(scope, RunBinding(undo_id, at, "undo"), isolation=ISOLATION) as connection:
        await _check(connection, run_id)
        await connection.execute(_BEGIN, requested_by=requested_by, undone=run_id)
        await remember_undone(connection, run_id, decisions)
        restored, removed, refused = await take_back(connection, run_id)
        await connection.execute(_CLOSE_UNDONE, undone=run_id)
        result = UndoResult(undo_id, run_id, restored, removed, tuple(refused))
        await finish_run(connection, "partial" if refused else "applied", {"undo": result.to_dict()})
        await connection.commit()
    return result


async def _check(connection: ScopedConnection, run_id: UUID) -> None:
    run = await connection.row(_UNDONE_RUN, id=run_id)
    if run is None:
        raise NotFound(f"The scope {connection.scope} has no run {run_id}.", hint="`slowwave runs` lists them.")
    if run["status"] == "undone" and run["undone_how"] == "partial":
        return  # what stood in the way may be gone, as after the later runs were undone too
    if run["status"] == "undone":
        raise UndoRefused(f"The run {run_id} was already undone by {run['undone_by_run']}.", reason="already_undone")
    if run["kind"] == "undo":
        raise UndoRefused(
            "An undo cannot be undone.",
            hint="Run the night again with --reconsider to do again what it took back.",
            reason="is_undo",
        )
    if run["dry_run"] or run["status"] not in UNDOABLE:
        raise UndoRefused(f"The run {run_id} is {run['status']}, so there is nothing to undo.", reason=run["status"])
