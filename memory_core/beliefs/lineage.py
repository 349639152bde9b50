"""Why a memory or a belief is as it is: versions, evidence with roles, what overrode what, and the run that did it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs.evidence import evidence_of
from memory_core.beliefs.lineage_queries import (
    BELIEF,
    BELIEF_CHAIN,
    CALLS,
    CHAIN,
    CHANGES,
    CLUSTERS_OF_BELIEF,
    CLUSTERS_OF_MEMORY,
    CORRECTIONS,
    FORMER_BELIEFS,
    MEMORY,
    REPLACED_BY_BELIEF,
    REPLACEMENT,
    RESTING,
)
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import NotFound


async def why(connection: ScopedConnection, id: UUID | str) -> dict[str, Any]:
    """Everything that explains a memory or a belief, as one JSON-able document.

    Args:
        id: a memory's or a belief's id, or a memory's external id.

    Returns:
        For a memory: `kind`, `memory`, `replaced_by` (the memory or belief it gave way to, with the reason, `because`,
        run and time; None where it stands), `versions` (what it replaced and what replaced it, oldest first), `beliefs`
        that name it with its role, `clusters` it was decided in, `corrections`, `changes` by runs. For a belief:
        `kind`, `belief`, `versions` of it, oldest first, `evidence` with roles, contents and dates, `overrides`
        (memories and beliefs), `made_by` (run, cluster, iteration, model, model call), `clusters`, `changes`. Clusters
        name what was rejected and why, and the model call with its tokens and cost.

    Raises:
        NotFound: the scope sees nothing by that name.
    """
    uuid = _uuid(id)
    belief = None if uuid is None else await connection.row(BELIEF, id=uuid)
    if belief is not None:
        return await _why_belief(connection, belief)
    memory = await connection.row(MEMORY, id=uuid, external=str(id))
    if memory is None:
        raise NotFound(
            f"The scope {connection.scope} has no memory or belief {id}.",
            hint="`slowwave memories --status all` and `slowwave beliefs` list them.",
        )
    return await _why_memory(connection, memory)


async def _why_memory(connection: ScopedConnection, memory: RowMapping) -> dict[str, Any]:
    id = memory["id"]
    shown = [
        "id",
        "external_id",
        "layer",
        "label",
        "content",
        "subject",
        "predicate",
        "object",
        "observed_at",
        "recorded_at",
        "source",
        "pinned",
        "importance",
        "confidence",
        "access_count",
        "superseded_by",
        "superseded_by_belief",
        "superseded_reason",
        "superseded_at",
        "superseded_by_run",
        "retired_at",
        "retired_reason",
        "retired_by_run",
        "corrects",
        "created_by_run",
    ]
    clusters = await connection.rows(CLUSTERS_OF_MEMORY, id=str(id))
    because = _because(id, clusters)
    return {
        "kind": "memory",
        "memory": {**_document(memory, shown), "status": _status(memory)},
        "because": because,
        "replaced_by": await _replacement(connection, memory, because),
        "versions": [{**_document(row), "status": _status(row)} for row in await connection.rows(CHAIN, id=id)],
        "beliefs": [_document(row) for row in await connection.rows(RESTING, id=id)],
        "clusters": await _clusters(connection, clusters),
        "corrections": [_document(row) for row in await connection.rows(CORRECTIONS, id=id)],
        "changes": [
            *(await _changes(connection, ["memories"], "id", id)),
            *(await _changes(connection, ["memory_state"], "memory_id", id)),
        ],
    }


async def _why_belief(connection: ScopedConnection, belief: RowMapping) -> dict[str, Any]:
    id = belief["belief_id"]
    shown = [
        "belief_id",
        "subject",
        "predicate",
        "object",
        "content",
        "status",
        "status_reason",
        "confidence",
        "rationale",
        "valid_from",
        "valid_to",
        "recorded_at",
        "superseded_by_belief",
    ]
    key = belief["model_call_key"]
    clusters = await connection.rows(CLUSTERS_OF_BELIEF, cluster_id=belief["cluster_id"])
    return {
        "kind": "belief",
        "belief": _document(belief, shown),
        "versions": [_document(row) for row in await connection.rows(BELIEF_CHAIN, id=id)],
        "evidence": (await evidence_of(connection, [id]))[id],
        "overrides": {
            "memories": [_document(row) for row in await connection.rows(REPLACED_BY_BELIEF, id=id)],
            "beliefs": [_document(row) for row in await connection.rows(FORMER_BELIEFS, id=id)],
        },
        "made_by": {
            "run": None if belief["created_by_run"] is None else str(belief["created_by_run"]),
            "cluster": belief["cluster_id"],
            "iteration": belief["iteration"],
            "model": belief["model"],
            "version": belief["rules_version"],
            "model_call_key": key,
            "model_call": (await _calls(connection, [key])).get(key),
        },
        "clusters": await _clusters(connection, clusters),
        "changes": await _changes(connection, ["harmonic_beliefs"], "belief_id", id),
    }


async def _changes(connection: ScopedConnection, tables: list[str], key: str, id: UUID) -> list[dict[str, Any]]:
    return [_document(row) for row in await connection.rows(CHANGES, tables=tables, key=key, id=str(id))]


async def _replacement(connection: ScopedConnection, memory: RowMapping, because: str) -> dict[str, Any] | None:
    """What the memory gave way to, and why; its row may be gone, or out of this scope's sight."""
    if memory["superseded_reason"] is None:
        return None
    by = {"memory": memory["superseded_by"], "belief": memory["superseded_by_belief"]}
    row = await connection.row(REPLACEMENT, **by)
    found = dict.fromkeys(("kind", "id", "external_id", "content", "observed_at")) if row is None else _document(row)
    why = {name: memory[f"superseded_{name}"] for name in ("reason", "at", "by_run")}
    return {
        **found,
        "reason": why["reason"],
        "because": because,
        "at": _plain(why["at"]),
        "run": _plain(why["by_run"]),
    }


async def _calls(connection: ScopedConnection, keys: Sequence[str | None]) -> dict[str | None, dict[str, Any]]:
    """The kept model calls by their keys."""
    asked = sorted({key for key in keys if key is not None})
    rows = await connection.rows(CALLS, keys=asked) if asked else ()
    return {
        row["cache_key"]: {**_document(row), "cost": None if row["cost"] is None else float(row["cost"])}
        for row in rows
    }


async def _clusters(connection: ScopedConnection, rows: Sequence[RowMapping]) -> list[dict[str, Any]]:
    calls = await _calls(connection, [row["model_call_key"] for row in rows])
    return [{**_cluster(row), "model_call": calls.get(row["model_call_key"])} for row in rows]


def _cluster(row: RowMapping) -> dict[str, Any]:
    return {
        "run": str(row["run_id"]),
        "cluster": row["cluster_id"],
        "status": row["status"],
        "reason": row["reason"],
        "iteration": row["iteration"],
        "score": row["score"],
        "model": row["model"],
        "model_call_key": row["model_call_key"],
        "members": [member["memory_id"] for member in row["members"]],
        "rejected": row["rejected"],
    }


def _because(id: UUID, clusters: Any) -> str:
    """Why the memory gave way, in the words of the decision that was applied; empty where it did not."""
    for row in clusters:
        decision = (row["proposal"] or {}).get("decision", {})
        for each in decision.get("supersedes", []):
            if row["status"] == "applied" and each["loser"] == str(id):
                return str(each["because"])
    return ""


def _status(row: RowMapping) -> str:
    if row["retired_at"] is not None:
        return "retired"
    return "superseded" if row["superseded_reason"] is not None else "current"


def _document(row: RowMapping, names: list[str] | None = None) -> dict[str, Any]:
    return {name: _plain(row[name]) for name in (names or [str(key) for key in row])}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool | dict | list):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _uuid(id: UUID | str) -> UUID | None:
    if isinstance(id, UUID):
        return id
    try:
        return UUID(id)
    except ValueError:
        return None
