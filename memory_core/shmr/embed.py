"""SHMR's step embed: gives every current memory and belief its vector of the current model.

Also what the sleep phases made this night. Without vectors nothing can be compared, so a provider that fails is
reported here, and what has no vector keeps waiting. A text for which the model gives no usable vector is found by
halving the page it is in, so that it alone waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_core.beliefs.vectors import vector_text
from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import EmbeddingMismatch, ModelOutputInvalid, SlowwaveError
from memory_core.models.embedding import EmbeddingProvider
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.stored import CURRENT

NAME = "embed"

PAGE = 500
"""Texts of one call, and rows of one statement."""

MOST_UNUSABLE = 20
"""Texts without a usable vector that are looked for in one run; with more of them the model is at fault."""

_MISSING = f"""
SELECT m.id, 'content' AS aspect, m.content AS text
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND {CURRENT}
  AND NOT EXISTS (SELECT FROM memory_embeddings e WHERE e.tenant_id = :tenant_id AND e.memory_id = m.id
                  AND e.model = :model AND e.aspect = 'content')
UNION ALL
SELECT m.id, 'slot', m.subject || ' ' || m.predicate
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND {CURRENT} AND m.subject IS NOT NULL
  AND NOT EXISTS (SELECT FROM memory_embeddings e WHERE e.tenant_id = :tenant_id AND e.memory_id = m.id
                  AND e.model = :model AND e.aspect = 'slot')
UNION ALL
SELECT b.belief_id, 'belief', b.content
FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.status IN ('held', 'contested')
  AND NOT EXISTS (SELECT FROM belief_embeddings e WHERE e.tenant_id = :tenant_id AND e.belief_id = b.belief_id
    AND e.model = :model)
ORDER BY aspect, id
"""

_OTHER_DIMENSION = """
SELECT dimension FROM memory_embeddings
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND model = :model AND dimension <> :dimension LIMIT 1
"""

# The memory or belief may have gone while the model worked, hence the joins.
_INSERT = """
INSERT INTO memory_embeddings (tenant_id, scope_path, memory_id, model, aspect, dimension, embedding, created_by_run)
SELECT :tenant_id, :scope_path, m.id, :model, v.aspect, :dimension, CAST(v.vector AS vector), :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:aspects AS text[]), CAST(:vectors AS text[])) AS v(id, aspect, vector)
JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = v.id
WHERE v.aspect <> 'belief'
ON CONFLICT DO NOTHING
"""
_INSERT_BELIEFS = """
INSERT INTO belief_embeddings (tenant_id, scope_path, belief_id, model, dimension, embedding, created_by_run)
SELECT :tenant_id, :scope_path, b.belief_id, :model, :dimension, CAST(v.vector AS vector), :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:aspects AS text[]), CAST(:vectors AS text[])) AS v(id, aspect, vector)
JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = v.id
WHERE v.aspect = 'belief'
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Text:
    """One text without a vector: of a memory (`content`, `slot`) or of a belief."""

    id: UUID
    aspect: str
    text: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """What the provider gave.

    Attributes:
        asked: how many texts had no vector.
        texts: n of them that have one now.
        vectors: shape (n, d).
        problem: why the others have none; empty where all have.
    """

    asked: int
    texts: Sequence[Text]
    vectors: NDArray[np.float32]
    problem: str = ""


async def read(connection: ScopedConnection, context: RunContext) -> list[Text]:
    """The texts that have no vector of the current model."""
    rows = await connection.rows(_MISSING, model=context.embedding.model)
    return [Text(row["id"], row["aspect"], row["text"]) for row in rows]


async def call(texts: list[Text], context: RunContext, _: Database) -> Embedded:
    """Embed page by page; what was done before a failure is kept, and so is what stands beside a text that fails."""
    pages: list[tuple[Sequence[Text], NDArray[np.float32]]] = []
    unusable: list[str] = []
    problem = ""
    for start in range(0, len(texts), PAGE):
        try:
            pages += await _usable(context.embedding, texts[start : start + PAGE], unusable)
        except SlowwaveError as error:
            problem = f"embedding unavailable: {error}"
            break
    if unusable and not problem:
        problem = f"embedding unavailable for {len(unusable)} of {len(texts)} texts: {unusable[0]}"
    vectors = np.concatenate([page for _, page in pages]) if pages else np.zeros((0, 0), dtype=np.float32)
    return Embedded(len(texts), [text for page, _ in pages for text in page], vectors, problem)


async def _usable(
    provider: EmbeddingProvider, texts: Sequence[Text], unusable: list[str], *, is_page: bool = True
) -> list[tuple[Sequence[Text], NDArray[np.float32]]]:
    """The texts of a page that have usable vectors, with these; adds to `unusable` why each of the others has none.

    Raises:
        SlowwaveError: the provider failed, or too many texts have no usable vector.
    """
    try:
        return [(texts, await provider.embed([each.text for each in texts]))]
    except (ModelOutputInvalid, EmbeddingMismatch) as error:
        # A whole page of another dimension is another model, not a bad text.
        if is_page and isinstance(error, EmbeddingMismatch):
            raise
        if len(texts) == 1:
            unusable.append(str(error))
            if len(unusable) > MOST_UNUSABLE:
                raise
            return []
    middle = len(texts) // 2
    return [
        part
        for half in (texts[:middle], texts[middle:])
        for part in await _usable(provider, half, unusable, is_page=False)
    ]


async def embed(connection: ScopedConnection, context: RunContext, answer: Embedded) -> StepOutcome:
    """Store the vectors; a vector of another dimension than the stored ones of the same model is refused."""
    done, problem = len(answer.vectors), answer.problem
    model = context.embedding.model
    if done:
        dimension = answer.vectors.shape[1]
        other = await connection.scalar(_OTHER_DIMENSION, model=model, dimension=dimension)
        if other is not None:
            done = 0
            problem = (
                f"embedding unavailable: {model} gave vectors of {dimension} dimensions, and those stored have {other}"
            )
    for start in range(0, done, PAGE):
        page = answer.texts[start : min(start + PAGE, done)]
        values = {
            "ids": [each.id for each in page],
            "aspects": [each.aspect for each in page],
            "vectors": [vector_text(row) for row in answer.vectors[start : start + len(page)]],
            "model": model,
            "dimension": answer.vectors.shape[1],
        }
        await connection.execute(_INSERT, **values)
        if any(each.aspect == "belief" for each in page):
            await connection.execute(_INSERT_BELIEFS, **values)
    return StepOutcome(
        candidates=answer.asked,
        changed=done,
        skipped={"no vector": answer.asked - done} if done < answer.asked else {},
        sample=tuple(dict.fromkeys(str(each.id) for each in answer.texts[:done]))[:SAMPLE_SIZE],
        counts={"embedded": done},
        details={"model": model},
        reason=problem or ("" if answer.asked else "everything has a vector"),
    )


STEP = Step(NAME, embed, read=read, call=call)
