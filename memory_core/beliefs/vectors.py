"""The vectors of beliefs: their own, or those of the memories whose words they repeat."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_core.database.scoped import ScopedConnection

_OWN = """
INSERT INTO belief_embeddings (tenant_id, scope_path, belief_id, model, dimension, embedding, created_by_run)
SELECT :tenant_id, :scope_path, v.id, :model, v.dimension, CAST(v.vector AS vector), :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:dimensions AS integer[]), CAST(:vectors AS text[])) AS v(id, dimension, vector)
ON CONFLICT (tenant_id, belief_id, model) DO NOTHING
"""

_SHARED = """
INSERT INTO belief_embeddings (tenant_id, scope_path, belief_id, model, dimension, embedding, created_by_run)
SELECT :tenant_id, :scope_path, v.id, :model, e.dimension, e.embedding, :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:memory_ids AS uuid[])) AS v(id, memory_id)
JOIN memory_embeddings e ON e.tenant_id = :tenant_id AND e.scope_path = ANY(:visible_paths) AND e.model = :model
  AND e.aspect = 'content' AND e.memory_id = ANY(CAST(:memory_ids AS uuid[])) AND e.memory_id = v.memory_id
ON CONFLICT (tenant_id, belief_id, model) DO NOTHING
"""


async def keep_vectors(
    connection: ScopedConnection,
    model: str,
    *,
    own: Mapping[UUID, NDArray[np.float32]],
    shared: Mapping[UUID, UUID],
) -> None:
    """Store vectors of beliefs, in a run; a belief that has one of the model keeps it.

    Args:
        model: the embedding model that they are of.
        own: vectors by belief, each of shape (d,).
        shared: for a belief that repeats a memory word for word, that memory; the vector is copied in the database.
    """
    if own:
        ids = sorted(own)
        await connection.execute(
            _OWN,
            model=model,
            ids=ids,
            dimensions=[len(own[id]) for id in ids],
            vectors=[vector_text(own[id]) for id in ids],
        )
    if shared:
        ids = sorted(shared)
        await connection.execute(_SHARED, model=model, ids=ids, memory_ids=[shared[id] for id in ids])


def vector_text(row: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it; nine digits give the same float32 back."""
    return "[" + ",".join(f"{value:.9g}" for value in row.tolist()) + "]"
