"""Steps for tests: what a phase does, as a handful of statements."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.models.embedding import embedding_provider
from memory_core.runs.context import Run, RunContext, Step
from memory_core.runs.guards import check_guards
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope
from tests.builders import NIGHT

Statement = tuple[str, dict[str, Any]]

IMPORTANCE = "UPDATE memory_state SET importance = :importance WHERE tenant_id = :tenant_id AND memory_id = :memory"

RETIRE = """
UPDATE memories SET retired_at = :as_of, retired_reason = :reason, retired_by_run = :run_id
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(:memories)
"""

LINK = """
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, recorded_at,
                          created_by_run)
VALUES (:tenant_id, :edge, :scope_path, :source, :target, :relationship, 'co_occurred', :as_of, :run_id)
"""

SUMMARISE = """
INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, recorded_at, last_activity_at,
                      content_hash, derived_key, created_by_run)
VALUES (:tenant_id, :summary, :scope_path, 'META: TEAM', :content, :as_of, :as_of, :as_of, md5(:content), 'meta:TEAM',
        :run_id)
"""

STATE_OF_SUMMARY = """
INSERT INTO memory_state (tenant_id, memory_id, scope_path, importance, created_by_run)
VALUES (:tenant_id, :summary, :scope_path, 7, :run_id)
"""


def importance(memory: uuid.UUID, value: float) -> Statement:
    """Sets the importance of a memory."""
    return IMPORTANCE, {"memory": memory, "importance": value}


def retire(*memories: uuid.UUID, reason: str = "noise") -> Statement:
    """Retires memories."""
    return RETIRE, {"memories": list(memories), "reason": reason}


def link(edge: uuid.UUID, source: uuid.UUID, target: uuid.UUID, relationship: str = "CO_OCCURRED") -> Statement:
    """Makes an edge."""
    return LINK, {"edge": edge, "source": source, "target": target, "relationship": relationship}


def summarise(summary: uuid.UUID, content: str) -> tuple[Statement, Statement]:
    """Makes a derived memory with its state."""
    return (SUMMARISE, {"summary": summary, "content": content}), (STATE_OF_SUMMARY, {"summary": summary})


def step(*statements: Statement, name: str = "work", guarded: bool = False, **parts: Any) -> Step:
    """A step that runs the statements.

    Args:
        guarded: whether it looks at the guards before it ends.
        parts: further fields of `Step`.
    """

    async def write(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
        changed = 0
        for sql, values in statements:
            changed += (await connection.execute(sql, **values)).rowcount
        if guarded:
            await check_guards(connection, context)
        return StepOutcome(candidates=len(statements), changed=changed)

    return Step(name, write, **parts)


def failing(error: Exception, *statements: Statement, name: str = "work") -> Step:
    """A step that runs the statements and then raises."""
    return hooked(step(*statements, name=name), after=_raising(error))


def hooked(inner: Step, *, after: Callable[[ScopedConnection], Awaitable[None]]) -> Step:
    """A step that does something more before it ends."""

    async def write(connection: ScopedConnection, context: RunContext, answer: Any) -> StepOutcome:
        outcome = await inner.write(connection, context, answer)
        await after(connection)
        return outcome

    return Step(inner.name, write, needs=inner.needs)


def _raising(error: Exception) -> Callable[[ScopedConnection], Awaitable[None]]:
    async def after(_: ScopedConnection) -> None:
        raise error

    return after


def context_of(database: Database, run: Run) -> RunContext:
    """What a step of the run works with."""
    return RunContext(run, database.settings, embedding_provider("hash:64"), None)


async def begun(
    database: Database, scope: TenantScope, at: datetime = NIGHT, kind: str = "sleep", **parameters: Any
) -> RunContext:
    """A run that has begun."""
    return context_of(database, await begin_run(database, scope, kind, at, parameters))
