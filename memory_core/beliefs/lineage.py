"""Why a memory or a belief is as it is: versions, evidence with roles, what overrode what, and the run that did it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs.evidence import evidence_of
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import NotFound

_MEMORY = """
SELECT m.*, s.importance, s.confidence, s.access_count
FROM memories m LEFT JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND (m.id = CAST(:id AS uuid) OR m.external_id = CAST(:external AS text))
ORDER BY m.scope_path = :scope_path DESC, m.is_latest DESC, m.recorded_at DESC, m.id LIMIT 1
"""

_BELIEF = """
SELECT b.* FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths) AND b.belief_id = CAST(:id AS uuid)
"""

# UNION, not UNION ALL: a ring of supersessions must end too.
_CHAIN = """
WITH RECURSIVE later(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT m.superseded_by, l.step + 1 FROM later l JOIN memories m ON m.tenant_id = :tenant_id AND m.id = l.id
  WHERE m.scope_path = ANY(:visible_paths) AND m.superseded_by IS NOT NULL AND l.step < 1000
), earlier(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT m.id, e.step - 1 FROM earlier e JOIN memories m ON m.tenant_id = :tenant_id AND m.superseded_by = e.id
  WHERE m.scope_path = ANY(:visible_paths) AND e.step > -1000
), steps AS (
  SELECT id, min(step) AS step FROM (SELECT * FROM later UNION SELECT * FROM earlier) AS both_ways GROUP BY id
)
SELECT s.step, m.id, m.external_id, m.content, m.observed_at, m.recorded_at, m.source, m.superseded_by,
       m.superseded_by_belief, m.superseded_reason, m.superseded_at, m.superseded_by_run, m.retired_at,
       m.retired_reason, m.retired_by_run, m.corrects
FROM steps s JOIN memories m ON m.tenant_id = :tenant_id AND m.id = s.id
WHERE m.scope_path = ANY(:visible_paths) ORDER BY s.step, m.observed_at, m.id LIMIT 200
"""

_RESTING = """
SELECT b.belief_id, b.content, b.status, b.status_reason, b.confidence, e.role
FROM belief_evidence e JOIN harmonic_beliefs b ON b.tenant_id = e.tenant_id AND b.belief_id = e.belief_id
WHERE e.tenant_id = :tenant_id AND e.memory_id = CAST(:id AS uuid) AND b.scope_path = ANY(:visible_paths)
ORDER BY b.recorded_at DESC, b.belief_id
"""

_REPLACED_BY_BELIEF = """
SELECT m.id, m.external_id, m.content, m.observed_at, m.superseded_reason
FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND m.superseded_by_belief = CAST(:id AS uuid)
ORDER BY m.observed_at, m.id
"""

_FORMER_BELIEFS = """
SELECT belief_id, content, status, status_reason, valid_from, valid_to FROM harmonic_beliefs
WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND superseded_by_belief = CAST(:id AS uuid)
ORDER BY valid_from, belief_id
"""

_CLUSTERS_OF_MEMORY = """
SELECT c.* FROM memory_resonance_clusters c
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths)
  AND c.members @> jsonb_build_array(jsonb_build_object('memory_id', CAST(:id AS text)))
ORDER BY (SELECT r.started_at FROM runs r WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id) DESC NULLS LAST,
  c.cluster_id
LIMIT 20
"""

_CLUSTERS_OF_BELIEF = """
SELECT c.* FROM memory_resonance_clusters c
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths) AND c.cluster_id = :cluster_id
ORDER BY (SELECT r.started_at FROM runs r WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id) DESC NULLS LAST LIMIT 20
"""

_CHANGES = """
SELECT c.run_id, c.step, c.table_name, c.before, c.after, r.kind, r.as_of, r.status
FROM run_changes c JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths) AND c.table_name = ANY(:tables)
  AND (c.row_key ->> :key) = :id AND NOT r.dry_run
ORDER BY c.sequence DESC LIMIT 50
"""

_CALL = """
SELECT cache_key, purpose, model, finish_reason, prompt_tokens, completion_tokens, cost, called_at, run_id
FROM model_calls WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND cache_key = :key LIMIT 1
"""

_CORRECTIONS = """
SELECT id, who, at, what, outcome FROM corrections
WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND memory_id = CAST(:id AS uuid) ORDER BY at, id
"""


async def why(connection: ScopedConnection, id: UUID | str) -> dict[str, Any]:
    """Everything that explains a memory or a belief, as one JSON-able document.

    Args:
        id: a memory's or a belief's id, or a memory's external id.

    Returns:
        For a memory: `kind`, `memory`, `versions` (what it replaced and what replaced it, oldest first), `beliefs` that
        name it, `clusters` it was decided in, `corrections`, `changes` by runs. For a belief: `kind`, `belief`,
        `evidence` with roles, contents and dates, `overrides` (memories and beliefs), `made_by` (run, cluster,
        iteration, model, model call), `clusters` with what was rejected, `changes`.

    Raises:
        NotFound: the scope sees nothing by that name.
    """
    uuid = _uuid(id)
    belief = None if uuid is None else await connection.row(_BELIEF, id=uuid)
    if belief is not None:
        return await _why_belief(connection, belief)
    memory = await connection.row(_MEMORY, id=uuid, external=str(id))
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
    clusters = await connection.rows(_CLUSTERS_OF_MEMORY, id=str(id))
    return {
        "kind": "memory",
        "memory": {**_document(memory, shown), "status": _status(memory)},
        "because": _because(id, clusters),
        "versions": [{**_document(row), "status": _status(row)} for row in await connection.rows(_CHAIN, id=id)],
        "beliefs": [_document(row) for row in await connection.rows(_RESTING, id=id)],
        "clusters": [_cluster(row) for row in clusters],
        "corrections": [_document(row) for row in await connection.rows(_CORRECTIONS, id=id)],
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
    call = None if key is None else await connection.row(_CALL, key=key)
    return {
        "kind": "belief",
        "belief": _document(belief, shown),
        "evidence": (await evidence_of(connection, [id]))[id],
        "overrides": {
            "memories": [_document(row) for row in await connection.rows(_REPLACED_BY_BELIEF, id=id)],
            "beliefs": [_document(row) for row in await connection.rows(_FORMER_BELIEFS, id=id)],
        },
        "made_by": {
            "run": None if belief["created_by_run"] is None else str(belief["created_by_run"]),
            "cluster": belief["cluster_id"],
            "iteration": belief["iteration"],
            "model": belief["model"],
            "version": belief["rules_version"],
            "model_call_key": key,
            "model_call": None if call is None else _document(call),
        },
        "clusters": [
            _cluster(row) for row in await connection.rows(_CLUSTERS_OF_BELIEF, cluster_id=belief["cluster_id"])
        ],
        "changes": await _changes(connection, ["harmonic_beliefs"], "belief_id", id),
    }


async def _changes(connection: ScopedConnection, tables: list[str], key: str, id: UUID) -> list[dict[str, Any]]:
    return [_document(row) for row in await connection.rows(_CHANGES, tables=tables, key=key, id=str(id))]


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
