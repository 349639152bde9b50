"""Recall: the current memories and the held or contested beliefs that are nearest in meaning to a question.

Similarity is the cosine of stored vectors of the current embedding model, and a little of the question's own words,
which tell names and codes apart that vectors blur. A belief ranks with the best of its own vector and of the memories
that support it, so it never stands below its own evidence; a contested one ranks with both its sides. What was
superseded or retired is never an answer; with `as_of`, the answer is the one that would have been given then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput
from memory_core.models.embedding import EmbeddingProvider, prepared_text
from memory_core.retrieval.lexical import lexical_agreement
from memory_core.retrieval.results import belief_result, distinct, memory_result, said_by, weigh, without_evidence
from memory_core.retrieval.uses import record_uses
from memory_core.runs.ledger import utc
from memory_core.scope import TenantScope

LARGEST_K = 1_000

# Of several equal contents one is shown, and a belief takes its memory's place: more is fetched than is shown.
_POOL = 4
_SMALLEST_POOL = 50

_BELIEVED = "b.status IN ('held', 'contested')"
# What was superseded, or went stale, later was held until then.
_BELIEVED_THEN = """
  b.recorded_at <= CAST(:at AS timestamptz)
  AND (b.status IN ('held', 'contested') OR b.valid_to > CAST(:at AS timestamptz))
"""


def _current(memory: str) -> str:
    return (
        f"{memory}.retired_at IS NULL AND {memory}.superseded_reason IS NULL "
        f"AND ({memory}.expires_at IS NULL OR {memory}.expires_at > CAST(:at AS timestamptz))"
    )


def _current_then(memory: str) -> str:
    return (
        f"{memory}.recorded_at <= CAST(:at AS timestamptz) "
        f"AND ({memory}.retired_at IS NULL OR {memory}.retired_at > CAST(:at AS timestamptz)) "
        f"AND ({memory}.superseded_reason IS NULL OR {memory}.superseded_at > CAST(:at AS timestamptz)) "
        f"AND ({memory}.expires_at IS NULL OR {memory}.expires_at > CAST(:at AS timestamptz))"
    )


def _memories(current: Callable[[str], str]) -> str:
    # A summary made before one of its members gave way would repeat what is no longer so.
    return f"""
SELECT m.id, m.external_id, m.scope_path, m.layer, m.label, m.content, m.observed_at, s.importance, s.confidence,
       1 - (e.embedding <=> CAST(:vector AS vector)) AS cosine
FROM memory_embeddings e
JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id
LEFT JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE e.tenant_id = :tenant_id AND e.scope_path = ANY(:visible_paths) AND m.scope_path = ANY(:visible_paths)
  AND e.model = :model AND e.aspect = 'content' AND e.dimension = :dimension AND {current("m")}
  AND (m.derived_key IS NULL OR NOT EXISTS (
    SELECT FROM memory_edges g JOIN memories o ON o.tenant_id = g.tenant_id AND o.id = g.target_id
    WHERE g.tenant_id = :tenant_id AND g.scope_path = ANY(:visible_paths) AND g.source_id = m.id AND g.kind = 'clusters'
      AND g.status <> 'retired' AND o.scope_path = ANY(:visible_paths) AND NOT ({current("o")})))
ORDER BY e.embedding <=> CAST(:vector AS vector), m.id LIMIT :pool
"""


def _beliefs(believed: str) -> str:
    return f"""
WITH nearest AS MATERIALIZED (
  SELECT b.belief_id, 1 - (e.embedding <=> CAST(:vector AS vector)) AS cosine
  FROM belief_embeddings e
  JOIN harmonic_beliefs b ON b.tenant_id = e.tenant_id AND b.belief_id = e.belief_id
  WHERE e.tenant_id = :tenant_id AND e.scope_path = ANY(:visible_paths) AND b.scope_path = ANY(:visible_paths)
    AND e.model = :model AND e.dimension = :dimension AND {believed}
  ORDER BY e.embedding <=> CAST(:vector AS vector), b.belief_id LIMIT :pool
), supported AS (
  SELECT v.belief_id, max(h.cosine) AS cosine
  FROM unnest(CAST(:hit_ids AS uuid[]), CAST(:hit_cosines AS double precision[])) AS h (memory_id, cosine)
  JOIN belief_evidence v ON v.tenant_id = :tenant_id AND v.scope_path = ANY(:visible_paths)
    AND v.memory_id = h.memory_id
  JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths)
    AND b.belief_id = v.belief_id
  WHERE v.role = 'supports' OR (v.role = 'contradicts' AND b.status = 'contested')
  GROUP BY v.belief_id
)
SELECT b.belief_id, b.scope_path, b.subject, b.predicate, b.object, b.content, b.confidence, b.valid_from,
       CASE WHEN b.status IN ('held', 'contested') THEN b.status ELSE 'held' END AS status,
       n.cosine AS own_cosine, s.cosine AS evidence_cosine, evidence.items AS evidence
FROM harmonic_beliefs b
LEFT JOIN nearest n ON n.belief_id = b.belief_id
LEFT JOIN supported s ON s.belief_id = b.belief_id
CROSS JOIN LATERAL (
  SELECT coalesce(jsonb_agg(jsonb_build_object('memory_id', m.id, 'external_id', m.external_id, 'role', v.role,
                                               'content', m.content, 'observed_at', m.observed_at)
                            ORDER BY v.role DESC, m.observed_at DESC, m.id), '[]'::jsonb) AS items
  FROM belief_evidence v JOIN memories m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id
  WHERE v.tenant_id = :tenant_id AND v.scope_path = ANY(:visible_paths) AND v.belief_id = b.belief_id
) AS evidence
WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths)
  AND (n.belief_id IS NOT NULL OR s.belief_id IS NOT NULL) AND {believed}
"""


def _without_vector(current: Callable[[str], str]) -> str:
    return f"""
SELECT count(*) FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND {current("m")}
  AND NOT EXISTS (SELECT FROM memory_embeddings e WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.id
                  AND e.model = :model AND e.aspect = 'content' AND e.dimension = :dimension)
"""


async def recall(
    database: Database,
    scope: TenantScope,
    embedding: EmbeddingProvider,
    query: str,
    *,
    now: datetime,
    k: int = 10,
    as_of: datetime | None = None,
    record: bool = True,
    harmonic: bool = False,
) -> dict[str, Any]:
    """What the scope knows that is nearest to the question, best first.

    Args:
        query: the question, in plain words.
        now: the time of the call; stamps the recorded uses.
        k: results at most, 1 to 1,000.
        as_of: answer as at this time; nothing is recorded then. None for the present.
        record: whether the returned memories, and those that support a returned belief, count as used. Uses are
            what the next night strengthens.
        harmonic: let a belief stand for the memories that it rests on: these are its evidence and take no place of
            their own, so that k results say k things; and list the k nearest beliefs by themselves too.

    Returns:
        `results` (content, kind, id, score, signals, status, observed_at, evidence, …), `recorded` (uses written),
        `without_vector` (current memories that the model has no vector of, and that were not searched); with
        `harmonic`, `beliefs`: held and contested ones in the form of results, best first.

    Raises:
        InvalidInput: the question is blank, or `k` is out of its range.
        InvalidTime: a time is naive.
    """
    if not query.strip():
        raise InvalidInput("The question is blank.", hint="Ask in plain words, such as: where does the user live")
    if not 1 <= k <= LARGEST_K:
        raise InvalidInput(f"k must be from 1 to {LARGEST_K}; it is {k}.")
    at = utc(as_of if as_of is not None else now)
    vector = (await embedding.embed([prepared_text(query)]))[0]
    values = {
        "vector": "[" + ",".join(map(str, vector.tolist())) + "]",
        "model": embedding.model,
        "dimension": len(vector),
        "at": at,
        "pool": max(_POOL * k, _SMALLEST_POOL),
    }
    async with database.scoped(scope) as connection:
        ranked = await _ranked(connection, query, values, then=as_of is not None)
        results = (without_evidence(ranked) if harmonic else ranked)[:k]
        missing = await connection.scalar(
            _without_vector(_current if as_of is None else _current_then),
            **{name: values[name] for name in ("model", "dimension", "at")},
        )
        recorded = 0
        if record and as_of is None:
            recorded = await record_uses(connection, _used(results), kind="recall", at=at)
            await connection.commit()
    document = {
        "query": query,
        "k": k,
        "as_of": None if as_of is None else at.isoformat(),
        "model": embedding.model,
        "harmonic": harmonic,
        "results": results,
        "recorded": recorded,
        "without_vector": missing,
    }
    if harmonic:
        document["beliefs"] = [item for item in ranked if item["kind"] == "belief"][:k]
    return document


async def _ranked(
    connection: ScopedConnection, query: str, values: Mapping[str, Any], *, then: bool
) -> list[dict[str, Any]]:
    memories = await connection.rows(_memories(_current_then if then else _current), **values)
    beliefs = await connection.rows(
        _beliefs(_BELIEVED_THEN if then else _BELIEVED),
        **values,
        hit_ids=[row["id"] for row in memories],
        hit_cosines=[float(row["cosine"]) for row in memories],
    )
    ranked = [(row, belief_result(row)) for row in beliefs] + [(row, memory_result(row)) for row in memories]
    for item, lexical in zip(ranked, lexical_agreement(query, [said_by(item) for _, item in ranked]), strict=True):
        weigh(item[1], lexical)
    # At the same score a belief stands before the memory it rests on, and what the scope itself knows before what a
    # scope above it does, such as a copy that was promoted from here.
    ranked.sort(
        key=lambda pair: (
            -pair[1]["score"],
            pair[1]["kind"],
            -len(pair[0]["scope_path"]),
            -pair[1]["signals"]["confidence"],
            pair[1]["id"],
        )
    )
    return list(distinct(item for _, item in ranked))


def _used(results: Sequence[Mapping[str, Any]]) -> list[UUID]:
    """The memories an answer rests on: those returned, and those that support a returned belief."""
    ids = [
        memory_id
        for item in results
        for memory_id in (
            [item["id"]]
            if item["kind"] == "memory"
            else [one["memory_id"] for one in item["evidence"] if one["role"] == "supports"]
        )
    ]
    return [UUID(memory_id) for memory_id in dict.fromkeys(ids)]
