"""Lists of what a scope holds: memories and beliefs, in the shapes that the command line and the API print."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, NotFound
from memory_core.retrieval.statuses import BELIEF_STATUSES, LAYERS, MEMORY_STATUSES
from memory_core.scope import TenantScope

_STATUS = (
    "CASE WHEN m.retired_at IS NOT NULL THEN 'retired' WHEN m.superseded_reason IS NOT NULL THEN 'superseded' "
    "WHEN m.expires_at <= CAST(:now AS timestamptz) THEN 'expired' ELSE 'current' END"
)

_MEMORIES = f"""
SELECT m.id, m.external_id, m.scope_path, m.layer, m.label, m.content, m.subject, m.predicate, m.object, m.properties,
       m.observed_at, m.recorded_at, m.expires_at, m.pinned, m.source, m.corrects, m.version,
       coalesce(m.superseded_by, m.superseded_by_belief) AS superseded_by,
       m.superseded_by_belief IS NOT NULL AS by_belief,
       m.superseded_reason, m.superseded_at, m.retired_at, m.retired_reason,
       s.importance, s.confidence, s.access_count, s.last_access_at, s.risk_words, s.risk_tagged_at,
       {_STATUS} AS status, x.content AS summary, x.model AS summary_model, x.cited AS summary_cited
FROM memories m
LEFT JOIN memory_summaries x ON x.tenant_id = m.tenant_id AND x.memory_id = m.id
LEFT JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND (:status = 'all' OR {_STATUS} = :status)
  AND (CAST(:layer AS text) IS NULL OR m.layer = CAST(:layer AS text))
  AND (CAST(:prefix AS text) IS NULL OR starts_with(m.label, CAST(:prefix AS text)))
  AND (CAST(:after AS uuid) IS NULL OR (m.recorded_at, m.id) < (CAST(:after_at AS timestamptz), CAST(:after AS uuid)))
ORDER BY m.recorded_at DESC, m.id DESC LIMIT CAST(:limit AS bigint)
"""

_BELIEFS = """
SELECT b.belief_id, b.scope_path, b.subject, b.predicate, b.object, b.content, b.status, b.status_reason, b.confidence,
       b.valid_from, b.valid_to, b.superseded_by_belief, b.model, b.iteration, b.rationale, b.recorded_at,
       b.created_by_run, evidence.items AS evidence
FROM harmonic_beliefs b
CROSS JOIN LATERAL (
  SELECT coalesce(jsonb_agg(jsonb_build_object('memory_id', m.id, 'external_id', m.external_id, 'role', v.role,
                                               'content', m.content, 'observed_at', m.observed_at)
                            ORDER BY array_position(ARRAY['supports', 'contradicts', 'superseded'], v.role),
                                     m.observed_at DESC, m.id), '[]'::jsonb) AS items
  FROM belief_evidence v JOIN memories m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id
  WHERE v.tenant_id = :tenant_id AND v.scope_path = ANY(:visible_paths) AND v.belief_id = b.belief_id
) AS evidence
WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths)
  AND (:status = 'all' OR b.status = :status OR (:status = 'believed' AND b.status IN ('held', 'contested')))
ORDER BY b.subject, b.predicate, b.recorded_at DESC, b.belief_id LIMIT CAST(:limit AS bigint)
"""


async def list_memories(
    connection: ScopedConnection,
    *,
    now: datetime,
    status: str = "current",
    layer: str | None = None,
    label_prefix: str | None = None,
    limit: int | None = None,
    after: UUID | None = None,
) -> dict[str, Any]:
    """The memories that the scope sees, its ancestors' included, newest first.

    Args:
        now: what `expires_at` is compared with.
        label_prefix: labels that start with this, case-sensitive.
        limit: rows at most; None for all.
        after: the last memory of the page before (`next` of its document).

    Returns:
        `memories`, and `next`: the id to go on after, None at the end.

    Raises:
        InvalidInput: status or layer is unknown, or the limit is below 1.
        NotFound: `after` names no memory here.
    """
    _one_of("status", status, MEMORY_STATUSES)
    if layer is not None:
        _one_of("layer", layer, LAYERS)
    _check_limit(limit)
    after_at = None
    if after is not None:
        after_at = await connection.scalar(
            "SELECT recorded_at FROM memories WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) "
            "AND id = CAST(:id AS uuid)",
            id=after,
        )
        if after_at is None:
            raise NotFound(f"There is no memory {after} in {connection.scope}, so there is none after it.")
    rows = await connection.rows(
        _MEMORIES,
        now=now,
        status=status,
        layer=layer,
        prefix=label_prefix,
        after=after,
        after_at=after_at,
        limit=None if limit is None else limit + 1,
    )
    more = limit is not None and len(rows) > limit
    shown = rows[:limit] if more else rows
    return {"memories": [_memory(row) for row in shown], "next": str(shown[-1]["id"]) if more else None}


async def list_beliefs(
    connection: ScopedConnection, *, status: str = "believed", limit: int | None = None
) -> dict[str, Any]:
    """The beliefs that the scope sees, with their evidence, by subject and predicate.

    Args:
        status: one status, `believed` for held and contested ones, or `all`.

    Raises:
        InvalidInput: the status is unknown, or the limit is below 1.
    """
    _one_of("status", status, BELIEF_STATUSES)
    _check_limit(limit)
    return {"beliefs": [_belief(row) for row in await connection.rows(_BELIEFS, status=status, limit=limit)]}


def _memory(row: RowMapping) -> dict[str, Any]:
    document = {
        "id": str(row["id"]),
        "external_id": row["external_id"],
        "scope": str(TenantScope.from_path(row["scope_path"])),
        "layer": row["layer"],
        "label": row["label"],
        "content": row["content"],
        "subject": row["subject"],
        "predicate": row["predicate"],
        "object": row["object"],
        "importance": row["importance"],
        "confidence": row["confidence"],
        "observed_at": _time(row["observed_at"]),
        "recorded_at": _time(row["recorded_at"]),
        "expires_at": _time(row["expires_at"]),
        "status": row["status"],
        "superseded_by": _text(row["superseded_by"]),
        "superseded_reason": row["superseded_reason"],
        "retired_reason": row["retired_reason"],
        "pinned": row["pinned"],
        "source": row["source"],
        "corrects": _text(row["corrects"]),
        "version": row["version"],
        "access_count": row["access_count"],
        "properties": row["properties"],
    }
    if row["superseded_by"] is not None:
        document["superseded_by_kind"] = "belief" if row["by_belief"] else "memory"
        document["superseded_at"] = _time(row["superseded_at"])
    if row["retired_at"] is not None:
        document["retired_at"] = _time(row["retired_at"])
    if row["risk_words"] is not None:
        document["risk"] = {"words": row["risk_words"], "tagged_at": _time(row["risk_tagged_at"])}
    if row["summary"] is not None:
        document["summary"] = {
            "content": row["summary"],
            "model": row["summary_model"],
            "cited": row["summary_cited"],
        }
    return document


def _belief(row: RowMapping) -> dict[str, Any]:
    return {
        "id": str(row["belief_id"]),
        "scope": str(TenantScope.from_path(row["scope_path"])),
        "subject": row["subject"],
        "predicate": row["predicate"],
        "object": row["object"],
        "content": row["content"],
        "status": row["status"],
        "status_reason": row["status_reason"],
        "confidence": row["confidence"],
        "valid_from": _time(row["valid_from"]),
        "valid_to": _time(row["valid_to"]),
        "superseded_by": _text(row["superseded_by_belief"]),
        "model": row["model"],
        "iteration": row["iteration"],
        "rationale": row["rationale"],
        "recorded_at": _time(row["recorded_at"]),
        "run_id": _text(row["created_by_run"]),
        "evidence": row["evidence"],
    }


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"There is no {name} {value!r}.", hint=f"It is one of: {', '.join(known)}.")


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InvalidInput(f"The limit must be at least 1; it is {limit}.")


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)
