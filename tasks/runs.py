"""Beginning and closing the runs of a chunk of scopes, previewing them, and one whole night, as Prefect tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from prefect import task
from prefect.runtime import flow_run

from memory_core.night.chunks import ScopeRun, begin_chunk, close_chunk
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from tasks.policy import options
from tasks.sessions import session

TAG = "run"


@task(**options("begin", TAG))
async def begin(
    scopes: list[str], held: list[str], kind: str, as_of: datetime, parameters: dict[str, Any], requested_by: str
) -> list[dict[str, Any]]:
    """Begin a run in each scope that the flow holds, or go on with an unfinished one; the others are busy.

    Args:
        scopes: materialised paths of the chunk.
        held: those of them that the flow holds.
    """
    async with session() as database:
        runs = await begin_chunk(
            database,
            _scopes(scopes),
            kind,
            as_of,
            parameters,
            held=_scopes(held),
            requested_by=requested_by,
            flow_run_id=flow_run.id,
        )
    return [run.to_dict() for run in runs]


@task(**options("close", TAG))
async def close(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Close each run by what its steps came to; one document a scope."""
    async with session() as database:
        return await close_chunk(database, [ScopeRun.from_dict(run) for run in runs])


@task(**options("preview", TAG))
async def preview(
    scopes: list[str], kind: str, as_of: datetime, parameters: dict[str, Any], requested_by: str
) -> list[dict[str, Any]]:
    """Find out what a run would do in each scope, and change nothing; one document a scope with its diff."""
    async with session() as database:
        return await consolidate(
            database, _scopes(scopes), kind, as_of, parameters=parameters, dry_run=True, requested_by=requested_by
        )


@task(**options("sleep_night", TAG))
async def sleep_night(
    scopes: list[str], kind: str, as_of: datetime, parameters: dict[str, Any], requested_by: str
) -> list[dict[str, Any]]:
    """One whole night of the scopes in one task, for replays; one document a scope."""
    async with session() as database:
        return await consolidate(
            database, _scopes(scopes), kind, as_of, parameters=parameters, requested_by=requested_by
        )


def _scopes(paths: Sequence[str]) -> list[TenantScope]:
    return [TenantScope.from_path(path) for path in paths]
