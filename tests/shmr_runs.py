"""Runs SHMR's steps in a test, and reads what they left."""

from __future__ import annotations

import uuid
from typing import Any

from memory_core.database.engine import Database
from memory_core.models.embedding import EmbeddingProvider, embedding_provider
from memory_core.models.language import LanguageModel
from memory_core.runs.advance import advance, close_run
from memory_core.runs.checksum import checksum
from memory_core.runs.context import Run, RunContext
from memory_core.runs.ledger import begin_run, steps_of
from memory_core.runs.undo import UndoResult, undo_run
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.apply import UNDONE
from memory_core.shmr.steps import SHMR_STEPS
from memory_core.shmr.summary import shmr_summary
from tests.builders import NIGHT


class Harmonized:
    """One run of SHMR: its id, its status, its summary, and the outcome of each step."""

    def __init__(self, run: Run, status: str, rows: list[dict[str, Any]]) -> None:
        self.run = run
        self.status = status
        self.rows = {row["step"]: row for row in rows}
        self.summary = shmr_summary([row for row in rows if ":" not in row["step"]])

    def outcome(self, step: str) -> dict[str, Any]:
        """The outcome of one step as the ledger keeps it."""
        return self.rows[step]["outcome"]


def context_of(
    run: Run,
    settings: Settings,
    *,
    embedding: EmbeddingProvider | None = None,
    language: LanguageModel | None = None,
    last_attempt: bool = True,
) -> RunContext:
    """A context with the test embedding and no model, unless given."""
    embedding = embedding or embedding_provider("hash:64")
    return RunContext(run, settings, embedding, language, last_attempt=last_attempt)


async def harmonize(
    database: Database,
    scope: TenantScope,
    at: Any = NIGHT,
    *,
    process: Settings | None = None,
    embedding: EmbeddingProvider | None = None,
    language: LanguageModel | None = None,
    last_attempt: bool = True,
    **parameters: Any,
) -> Harmonized:
    """Run every step of SHMR over a scope; `process` replaces the process's settings, the rest are parameters."""
    run = await begin_run(database, scope, "harmonize", at, parameters)
    context = context_of(
        run, process or database.settings, embedding=embedding, language=language, last_attempt=last_attempt
    )
    for position in range(len(SHMR_STEPS)):
        await advance(database, context, SHMR_STEPS, position)
    status = await close_run(database, context, {})
    async with database.scoped(scope) as connection:
        return Harmonized(run, status, await steps_of(connection, run.id))


async def undo(database: Database, scope: TenantScope, run: Run, at: Any = NIGHT) -> UndoResult:
    """Undo a run of SHMR, and remember what was taken back."""
    return await undo_run(database, scope, run.id, at=at, decisions=[UNDONE])


async def state(database: Database, scope: TenantScope) -> str:
    """The scope's checksum."""
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def rows(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> list[dict[str, Any]]:
    """Rows of a query in the scope."""
    async with database.scoped(scope) as connection:
        return [dict(row) for row in await connection.rows(sql, **parameters)]


async def superseded(database: Database, scope: TenantScope) -> dict[uuid.UUID, tuple[uuid.UUID, str]]:
    """What gave way: loser to winner and reason."""
    found = await rows(
        database,
        scope,
        "SELECT id, coalesce(superseded_by, superseded_by_belief) AS by, superseded_reason FROM memories "
        "WHERE superseded_reason IS NOT NULL ORDER BY id",
    )
    return {row["id"]: (row["by"], row["superseded_reason"]) for row in found}


async def beliefs(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """All beliefs, by content."""
    return await rows(database, scope, "SELECT * FROM harmonic_beliefs ORDER BY content")


async def roles(database: Database, scope: TenantScope, belief_id: uuid.UUID) -> dict[uuid.UUID, str]:
    """The evidence of a belief: memory to role."""
    found = await rows(
        database, scope, "SELECT memory_id, role FROM belief_evidence WHERE belief_id = :id", id=belief_id
    )
    return {row["memory_id"]: row["role"] for row in found}


async def waiting(database: Database, scope: TenantScope) -> set[uuid.UUID]:
    """What waits for SHMR."""
    found = await rows(database, scope, "SELECT memory_id FROM harmonize_queue WHERE harmonized_by_run IS NULL")
    return {row["memory_id"] for row in found}
