"""Reads what SHMR concluded: beliefs by their relevance to a question."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memory_core.beliefs.evidence import evidence_of
from memory_core.beliefs.vectors import vector_text
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import EmbeddingMismatch, InvalidInput

MOST = 1000

# Every stored vector is compared; the dimension is checked inside, so that a row of another one is never compared.
_NEAREST = """
SELECT b.belief_id, b.subject, b.predicate, b.object, b.content, b.status, b.confidence, b.valid_from, b.valid_to,
       b.rationale,
       1 - (e.embedding <=> CAST(:vector AS vector)) AS similarity
FROM harmonic_beliefs b
JOIN belief_embeddings e ON e.tenant_id = b.tenant_id AND e.belief_id = b.belief_id AND e.model = :model
  AND e.dimension = :dimension
WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths) AND b.status IN ('held', 'contested')
ORDER BY round(CAST(1 - (e.embedding <=> CAST(:vector AS vector)) AS numeric), 6) DESC, b.confidence DESC, b.belief_id
LIMIT :limit
"""

_OTHER_DIMENSION = """
SELECT e.dimension FROM belief_embeddings e
WHERE e.tenant_id = :tenant_id AND e.scope_path = ANY(:visible_paths) AND e.model = :model
  AND e.dimension <> :dimension LIMIT 1
"""


async def nearest_beliefs(
    connection: ScopedConnection, query_vector: ArrayLike, *, model: str, top_k: int = 10
) -> list[dict[str, Any]]:
    """Held and contested beliefs by relevance to a query, then by confidence; ancestors' beliefs included.

    Args:
        query_vector: shape (d,): the query's vector of `model`.
        model: the embedding model whose stored vectors are compared; those of others are not.
        top_k: 1 to 1000.

    Returns:
        best first: kind (`belief`), id, subject, predicate, object, content, status, confidence, score (cosine, 0 to
        1), observed_at (of the newest support), valid_from, valid_to, rationale, and evidence with roles. Beliefs
        that point away from the query are left out. What is contested says so in its status.

    Raises:
        InvalidInput: `top_k` is out of range, or the vector is empty, not finite or all zeros.
        EmbeddingMismatch: the stored vectors of that model have another dimension.
    """
    if not 1 <= top_k <= MOST:
        raise InvalidInput(f"top_k must be from 1 to {MOST}; it is {top_k}.")
    vector = np.asarray(query_vector, dtype=np.float32).reshape(-1)
    if not vector.size or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInput("The query's vector is empty, not finite, or all zeros.")
    rows = await connection.rows(_NEAREST, vector=vector_text(vector), model=model, dimension=vector.size, limit=top_k)
    if not rows and (other := await connection.scalar(_OTHER_DIMENSION, model=model, dimension=vector.size)):
        raise EmbeddingMismatch(
            f"The query's vector has {vector.size} dimensions, and the beliefs' vectors of {model} have {other}.",
            hint="Embed the query with the model that the store was embedded with.",
        )
    found = [row for row in rows if row["similarity"] > 0]
    evidence = await evidence_of(connection, [row["belief_id"] for row in found])
    return [
        {
            "kind": "belief",
            "id": str(row["belief_id"]),
            "subject": row["subject"],
            "predicate": row["predicate"],
            "object": row["object"],
            "content": row["content"],
            "status": row["status"],
            "confidence": row["confidence"],
            "score": round(float(row["similarity"]), 6),
            "observed_at": max(
                (each["observed_at"] for each in evidence[row["belief_id"]] if each["role"] == "supports"),
                default=row["valid_from"].isoformat(),
                key=datetime.fromisoformat,
            ),
            "valid_from": row["valid_from"].isoformat(),
            "valid_to": None if row["valid_to"] is None else row["valid_to"].isoformat(),
            "rationale": row["rationale"],
            "evidence": evidence[row["belief_id"]],
        }
        for row in found
    ]
