"""Puts single phases through a night in a test: a run of just these steps, with ledger, journal and undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.engine import Database
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import StepResult, advance, close_run
from memory_core.runs.checksum import checksum
from memory_core.runs.context import Run, RunContext, Step
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.preview import preview
from memory_core.runs.undo import UndoResult, undo_run
from memory_core.scope import TenantScope
from tests.builders import NIGHT


@dataclass(frozen=True)
class Night:
    """A run that has ended, and how its steps went."""

    run: Run
    results: tuple[StepResult, ...]
    status: str

    @property
    def outcome(self) -> StepOutcome:
        """The outcome of the last step, which must have been done."""
        last = self.results[-1]
        assert last.error is None, last.error
        assert last.outcome is not None
        return last.outcome


async def sleep(
    database: Database, scope: TenantScope, steps: Sequence[Step] | Step, at: datetime = NIGHT, **parameters: Any
) -> Night:
    """Run the steps as one night of the scope."""
    steps = (steps,) if isinstance(steps, Step) else tuple(steps)
    run = await begin_run(database, scope, "sleep", at, parameters)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    results = tuple([await advance(database, context, steps, index) for index in range(len(steps))])
    return Night(run, results, await close_run(database, context, {}))


async def look_ahead(
    database: Database, scope: TenantScope, steps: Sequence[Step] | Step, at: datetime = NIGHT, **parameters: Any
) -> dict[str, list[dict[str, Any]]]:
    """What the same night would change, by a dry run."""
    steps = (steps,) if isinstance(steps, Step) else tuple(steps)
    run = await begin_run(database, scope, "sleep", at, parameters, dry_run=True)
    return (
        await preview(database, RunContext(run, database.settings, embedding_provider("hash:64"), None), steps)
    ).changes


async def undo(database: Database, scope: TenantScope, night: Night, *steps: Step) -> UndoResult:
    """Take a night back and remember what its steps had decided."""
    return await undo_run(database, scope, night.run.id, at=night.run.as_of, decisions=[step.undone for step in steps])


async def state(database: Database, scope: TenantScope) -> str:
    """The checksum over everything that an undo restores."""
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def rows(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> Sequence[RowMapping]:
    """What a query finds in the scope."""
    async with database.scoped(scope) as connection:
        return await connection.rows(sql, **parameters)


async def change(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> None:
    """Change the scope as somebody outside a run does."""
    async with database.scoped(scope) as connection:
        await connection.execute(sql, **parameters)
        await connection.commit()


async def edges(database: Database, scope: TenantScope) -> dict[tuple[UUID, UUID, str], RowMapping]:
    """The scope's edges by source, target and relationship."""
    found = await rows(
        database, scope, "SELECT * FROM memory_edges WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
    )
    return {(row["source_id"], row["target_id"], row["relationship"]): row for row in found}


async def importance_of(database: Database, scope: TenantScope, memory_id: UUID) -> float:
    """The memory's importance, 1 to 10."""
    (row,) = await rows(
        database,
        scope,
        "SELECT importance FROM memory_state WHERE tenant_id = :tenant_id AND memory_id = :id",
        id=memory_id,
    )
    return float(row["importance"])
