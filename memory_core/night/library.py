"""The core as a library, by the names that the reference documents use: a sleep, SHMR, and what they left.

These are the same runs as those of the command line: recorded, undoable, guarded, one at a time in a scope. Beside
them stands `consolidate`, which takes many scopes at once and reports failures instead of raising them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory_core import errors
from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, PermanentError, SlowwaveError
from memory_core.models.embedding import prepared_text
from memory_core.night.consolidate import consolidate
from memory_core.night.context import embedding_for
from memory_core.scope import TenantScope
from memory_core.shmr.recall import nearest_beliefs
from memory_core.shmr.resonance_log import read_resonance_log
from memory_core.sleep import cooccurrence, strengthen
from memory_core.sleep.report import ConsolidationReport
from memory_core.sleep.soul_schema import schema_of

REQUESTED_BY = "library"

NOT_DONE = frozenset({"busy", "refused"})
"""Statuses of a run of which nothing is left in the scope."""


class SleepConsolidator:
    """Puts a scope through the seven phases of sleep.

    Args:
        database: the store, which also carries the settings of the process.
        lookback_hours: how far back use and activity count; None for the settings' own, 24.
    """

    def __init__(self, database: Database, *, lookback_hours: float | None = None) -> None:
        self.database = database
        self.lookback_hours = lookback_hours

    async def run(
        self,
        scope: TenantScope,
        *,
        soul_schema: Mapping[str, str | type] | None = None,
        pending_connections: Sequence[Mapping[str, Any]] | None = None,
        as_of: datetime | None = None,
        accept: bool = False,
        reconsider: bool = False,
    ) -> ConsolidationReport:
        """One sleep of one scope.

        Args:
            soul_schema: field to type, in place of the stored schema.
            pending_connections: those of an activation log, `{source, relationship, target, status}` each; beside the
                stored ones.
            as_of: the time of the sleep; None for the present.
            accept: go on where a guard would refuse.
            reconsider: do again, too, what a person undid.

        Returns:
            what every phase did; phases that failed are named in `errors`, and the others are done.

        Raises:
            ScopeBusy, LaterRunsExist, GuardTripped: nothing was done in the scope.
            InvalidInput: the scope is unknown, `as_of` naive, or the schema or a setting not valid.
        """
        lookback = {"lookback_hours": self.lookback_hours}
        asked = {
            "settings": None
            if self.lookback_hours is None
            else {strengthen.NAME: lookback, cooccurrence.NAME: lookback},
            "soul_schema": None if soul_schema is None else schema_of(soul_schema),
            "pending_connections": None if pending_connections is None else list(pending_connections),
            "accept": accept or None,
            "reconsider": reconsider or None,
        }
        document = await _run(self.database, scope, "sleep", as_of, asked)
        return ConsolidationReport.from_dict(document["sleep"])


async def harmonize(
    database: Database,
    scope: TenantScope,
    *,
    batch_size: int | None = None,
    max_iterations: int | None = None,
    similarity_threshold: float | None = None,
    as_of: datetime | None = None,
    accept: bool = False,
    reconsider: bool = False,
) -> dict[str, Any]:
    """One pass of SHMR over one scope.

    Args:
        batch_size: bounds the pass to so many facts and half as many episodes; None works through all that waits.
        max_iterations: attempts per cluster; None for the setting's.
        similarity_threshold: cosine from which on statements may belong together; None for the setting's.
        as_of: the time of the pass; None for the present.
        accept: go on where a guard would refuse.
        reconsider: decide again, too, what a person undid.

    Returns:
        `run_id`, and what `shmr.summary.shmr_summary` tells: `status`, `clusters_found`, `beliefs_generated`,
        `contradictions_resolved`, `harmony_score_avg`, `duration_ms` and more.

    Raises:
        ScopeBusy, LaterRunsExist, GuardTripped: nothing was done in the scope.
        InvalidInput: the scope is unknown, or `as_of` naive.
    """
    bounds = {
        "batch_size": batch_size,
        "max_iterations": max_iterations,
        "similarity_threshold": similarity_threshold,
    }
    own = {name: value for name, value in bounds.items() if value is not None}
    asked = {"settings": {"shmr": own} if own else None, "accept": accept or None, "reconsider": reconsider or None}
    document = await _run(database, scope, "harmonize", as_of, asked)
    return {"run_id": document["run_id"], **document["shmr"]}


async def recall_beliefs(
    database: Database, scope: TenantScope, query: str, *, top_k: int = 10
) -> list[dict[str, Any]]:
    """Held and contested beliefs by their relevance to a question, as `shmr.recall.nearest_beliefs` gives them.

    Raises:
        InvalidInput: the question is blank, or `top_k` out of its range.
        EmbeddingMismatch: the stored vectors have another dimension than the configured model's.
    """
    if not query.strip():
        raise InvalidInput("The question is blank.", hint="Ask in plain words, such as: where does the user live")
    provider = embedding_for(database.settings)
    vector = (await provider.embed([prepared_text(query)]))[0]
    async with database.scoped(scope) as connection:
        return await nearest_beliefs(connection, vector, model=provider.model, top_k=top_k)


async def get_resonance_log(database: Database, scope: TenantScope, *, limit: int | None = 10) -> list[dict[str, Any]]:
    """The scope's latest passes of SHMR, newest first; None for all of them.

    Raises:
        InvalidInput: `limit` is below 1.
    """
    async with database.scoped(scope) as connection:
        return await read_resonance_log(connection, limit=limit)


async def _run(
    database: Database, scope: TenantScope, kind: str, as_of: datetime | None, asked: Mapping[str, Any]
) -> dict[str, Any]:
    (document,) = await consolidate(
        database,
        [scope],
        kind,
        datetime.now(UTC) if as_of is None else as_of,
        parameters={name: value for name, value in asked.items() if value is not None},
        requested_by=REQUESTED_BY,
    )
    if document["run_id"] is None or document["status"] in NOT_DONE:
        raise _error_of(document["error"])
    return document


def _error_of(described: Mapping[str, Any]) -> SlowwaveError:
    """The error that a document describes, as it was before it was written down."""
    data = {name: value for name, value in described.items() if name not in ("error", "message", "hint")}
    kind = getattr(errors, described["error"], PermanentError)
    error: SlowwaveError = kind(described["message"], hint=described["hint"], **data)
    return error
