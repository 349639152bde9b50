"""The vectors of memories that are being written: which texts need one, and the rows that keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import EmbeddingMismatch, SlowwaveError
from memory_core.layers.known import PlannedWrite
from memory_core.layers.staging import staged_insert, vector_text
from memory_core.models.embedding import EmbeddingProvider, unit_rows

_DIMENSIONS = """
SELECT model, (SELECT e.dimension FROM memory_embeddings e WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path
               AND e.model = asked.model AND e.aspect = 'content' LIMIT 1) AS dimension
FROM unnest(CAST(:models AS text[])) AS asked(model)
"""


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Vectors by their text, computed before the transaction that stores them.

    Attributes:
        model: the model that they are of; empty where there are none.
        by_text: each of shape (dimension,), float32, length 1.
        problem: why there are none, in words; empty where there are.
    """

    model: str = ""
    by_text: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    problem: str = ""


def texts_to_embed(writes: Sequence[PlannedWrite], model: str) -> list[str]:
    """The texts of new memories that need a vector, each once.

    A memory that brings its own vector is not embedded again, by whatever model.
    """
    texts: dict[str, None] = {}
    for write in writes:
        if write.is_new and write.memory.embedding is None:
            texts[write.memory.content] = None
        if write.is_new and write.memory.slot_text and write.memory.embedding_model in (None, model):
            texts[write.memory.slot_text] = None
    return list(texts)


async def embed_texts(provider: EmbeddingProvider, texts: Sequence[str]) -> TextVectors:
    """Embed texts; a provider that fails is no reason to lose a memory.

    What is stored without a vector gets one in the next night's first step, or the step says why not.
    """
    if not texts:
        return TextVectors(provider.model)
    try:
        vectors = await provider.embed(texts)
    except SlowwaveError as error:
        return TextVectors(problem=str(error))
    return TextVectors(provider.model, dict(zip(texts, vectors, strict=True)))


async def write_vectors(connection: ScopedConnection, writes: Sequence[PlannedWrite], vectors: TextVectors) -> int:
    """Store content and slot vectors; a known memory keeps those it has.

    Returns:
        how many new memories stay without a vector of any model.

    Raises:
        EmbeddingMismatch: a memory brings a vector of another dimension than its model's vectors have here.
    """
    await _check_dimensions(connection, writes, vectors)
    rows: dict[tuple[object, ...], tuple[int, str]] = {}
    without = 0
    for write in writes:
        memory = write.memory
        if memory.embedding is not None and memory.embedding_model is not None:
            own = unit_rows([memory.embedding], model=memory.embedding_model, dimension=0)[0]
            rows[write.id, memory.embedding_model, "content"] = (len(own), vector_text(own.tolist()))
        elif write.is_new:
            content = vectors.by_text.get(memory.content)
            if content is None:
                without += 1
            else:
                rows[write.id, vectors.model, "content"] = (len(content), vector_text(content.tolist()))
        slot = vectors.by_text.get(memory.slot_text) if write.is_new and memory.slot_text else None
        if slot is not None and memory.embedding_model in (None, vectors.model):
            rows[write.id, vectors.model, "slot"] = (len(slot), vector_text(slot.tolist()))
    await staged_insert(
        connection,
        "memory_embeddings",
        ("memory_id", "model", "aspect", "dimension", "embedding"),
        ((*key, *row) for key, row in rows.items()),
        conflict="ON CONFLICT DO NOTHING",
    )
    return without


def stored_vectors(stored: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Vectors from pgvector's binary form (`vector_send`): two 16-bit numbers, then the big-endian floats.

    Returns:
        shape (n, d), float32, rows of length 1; zeros where there is no vector, or one of another dimension.
    """
    dimension = next((len(each) // 4 - 1 for each in stored if each is not None), 1)
    vectors = np.zeros((len(stored), dimension), dtype=np.float32)
    for i, each in enumerate(stored):
        # A vector of another dimension under the same model name cannot be compared; its memory keeps a row of zeros.
        if each is not None and len(each) // 4 - 1 == dimension:
            vectors[i] = np.frombuffer(each, dtype=">f4", offset=4)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0), dtype=np.float32)


async def _check_dimensions(connection: ScopedConnection, writes: Sequence[PlannedWrite], vectors: TextVectors) -> None:
    brought = [
        (write.memory.embedding_model, len(write.memory.embedding))
        for write in writes
        if write.memory.embedding is not None and write.memory.embedding_model is not None
    ]
    if not brought:
        return
    dimensions = {
        row["model"]: row["dimension"]
        for row in await connection.rows(_DIMENSIONS, models=sorted({model for model, _ in brought}))
        if row["dimension"] is not None
    }
    for vector in vectors.by_text.values():
        dimensions.setdefault(vectors.model, len(vector))
        break
    for model, dimension in brought:
        expected = dimensions.setdefault(model, dimension)
        if dimension != expected:
            raise EmbeddingMismatch(
                f"The embedding has {dimension} numbers, and vectors of {model} have {expected} here.",
                hint="Name the model that made it, or leave embedding and embedding_model out.",
                model=model,
                expected=expected,
                found=dimension,
            )
