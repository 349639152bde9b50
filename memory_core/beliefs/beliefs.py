"""Holds a belief: content-addressed, with its evidence, in place of what was believed before about the same thing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.beliefs.evidence import add_evidence
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.decisions import not_undone

# What a person retracted, or took back with a whole run, is not believed again by itself.
_REFUSED = f"""
SELECT v.id, b.status = 'retracted' AS retracted
FROM unnest(CAST(:ids AS uuid[]), CAST(:contents AS text[])) AS v(id, content)
LEFT JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.belief_id = v.id
WHERE NOT CAST(:reconsider AS boolean) AND (b.status = 'retracted' OR NOT {not_undone("belief", "v.content")})
"""

# Never more sure than the memories it rests on are now.
_UPSERT = """
INSERT INTO harmonic_beliefs AS b (
  tenant_id, belief_id, scope_path, subject, predicate, object, content, confidence, provenance, status, valid_from,
  cluster_id, iteration, model, rules_version, model_call_key, rationale, recorded_at, created_by_run
)
SELECT CAST(:tenant_id AS text), CAST(:id AS uuid), CAST(:scope_path AS text), CAST(:subject AS text),
       CAST(:predicate AS text), CAST(:object AS text), CAST(:content AS text),
       least(CAST(:confidence AS double precision), (
         SELECT max(s.confidence) FROM memory_state s
         WHERE s.tenant_id = :tenant_id AND s.scope_path = ANY(:visible_paths)
           AND s.memory_id = ANY(CAST(:supports AS uuid[])))),
       CAST(:provenance AS jsonb), CAST(:status AS text), CAST(:valid_from AS timestamptz), CAST(:cluster_id AS text),
       CAST(:iteration AS integer), CAST(:model AS text), CAST(:version AS text), CAST(:call_key AS text),
       CAST(:rationale AS text), CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
ON CONFLICT (tenant_id, belief_id) DO UPDATE
SET content = excluded.content, confidence = excluded.confidence, provenance = excluded.provenance,
    status = excluded.status, status_reason = NULL, valid_to = NULL, superseded_by_belief = NULL,
    valid_from = CASE WHEN b.status IN ('held', 'contested') THEN least(b.valid_from, excluded.valid_from)
                      ELSE excluded.valid_from END,
    cluster_id = excluded.cluster_id, iteration = excluded.iteration, model = excluded.model,
    rules_version = excluded.rules_version, model_call_key = excluded.model_call_key, rationale = excluded.rationale,
    updated_at = clock_timestamp()
WHERE b.scope_path = :scope_path
RETURNING xmax = 0 AS is_new
"""

_PROVENANCE = """
UPDATE harmonic_beliefs b SET provenance = p.provenance
FROM (SELECT jsonb_agg(e.memory_id ORDER BY e.memory_id) AS provenance FROM belief_evidence e
      WHERE e.tenant_id = :tenant_id AND e.belief_id = CAST(:id AS uuid) AND e.role IN ('supports', 'contradicts')) AS p
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = CAST(:id AS uuid)
  AND p.provenance IS NOT NULL AND b.provenance IS DISTINCT FROM p.provenance
"""

# A former belief about the same thing rests on some of the same memories; same words alone do not make it one.
_FORMER = """
SELECT b.belief_id, b.subject, b.predicate, b.status FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.status IN ('held', 'contested')
  AND b.belief_id <> ALL(CAST(:together AS uuid[]))
  AND b.belief_id = ANY(ARRAY(
    SELECT e.belief_id FROM belief_evidence e
    WHERE e.tenant_id = :tenant_id AND e.role IN ('supports', 'contradicts')
      AND e.memory_id = ANY(CAST(:evidence AS uuid[]))))
ORDER BY b.belief_id
"""

_REPLACE = """
UPDATE harmonic_beliefs b
SET status = 'superseded', status_reason = :reason, superseded_by_belief = CAST(:id AS uuid),
    valid_to = CASE WHEN CAST(:valid_from AS timestamptz) > b.valid_from THEN CAST(:valid_from AS timestamptz)
                    ELSE :as_of END,
    updated_at = clock_timestamp()
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = ANY(CAST(:former AS uuid[]))
"""

_VECTOR = """
INSERT INTO belief_embeddings AS v (tenant_id, scope_path, belief_id, model, dimension, embedding, created_by_run)
VALUES (:tenant_id, :scope_path, CAST(:id AS uuid), :model, :dimension, CAST(:vector AS vector), :run_id)
ON CONFLICT (tenant_id, belief_id, model) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class NewBelief:
    """A belief to hold.

    Attributes:
        belief_id: content-addressed; holding the same statement again adds to it.
        status: `held` or `contested`.
        confidence: 0 to 1; lowered to that of the surest support.
        evidence: memory ids by role.
        valid_from: when it came to be true.
        model: `rules`, or the model's name.
        version: of the rules or of the prompt.
        vector: its embedding as pgvector's text; None to leave it to the embed step.
        dimension: of the vector.
    """

    belief_id: UUID
    subject: str
    predicate: str
    object: str
    content: str
    status: str
    confidence: float
    evidence: Mapping[str, Sequence[UUID]]
    rationale: str
    valid_from: datetime
    cluster_id: str
    iteration: int
    model: str
    version: str
    call_key: str | None
    embedding_model: str
    vector: str | None = None
    dimension: int = 0


async def refused_beliefs(
    connection: ScopedConnection, beliefs: Mapping[UUID, str], *, reconsider: bool
) -> dict[UUID, str]:
    """Those of the beliefs (contents by id) that a person retracted or took back, each with the reason."""
    if not beliefs:
        return {}
    rows = await connection.rows(_REFUSED, ids=list(beliefs), contents=list(beliefs.values()), reconsider=reconsider)
    return {row["id"]: "retracted by a person" if row["retracted"] else "taken back by a person" for row in rows}


async def former_beliefs(
    connection: ScopedConnection, belief: NewBelief, together: Sequence[UUID]
) -> list[dict[str, Any]]:
    """Held and contested beliefs that share evidence with this one; the caller says which are about the same thing.

    Args:
        together: beliefs of the same decision, which do not replace one another.
    """
    evidence = sorted({memory_id for memory_ids in belief.evidence.values() for memory_id in memory_ids})
    rows = await connection.rows(_FORMER, together=[belief.belief_id, *together], evidence=evidence)
    return [dict(row) for row in rows]


async def hold_belief(connection: ScopedConnection, belief: NewBelief, *, former: Sequence[UUID]) -> None:
    """Hold a belief with its evidence and vector, in a run, and let former beliefs about the same thing give way."""
    is_new = await connection.scalar(
        _UPSERT,
        id=belief.belief_id,
        subject=belief.subject,
        predicate=belief.predicate,
        object=belief.object,
        content=belief.content,
        confidence=belief.confidence,
        supports=list(belief.evidence.get("supports", ())),
        provenance=json.dumps(
            sorted(str(each) for role in ("supports", "contradicts") for each in belief.evidence.get(role, ()))
        ),
        status=belief.status,
        valid_from=belief.valid_from,
        cluster_id=belief.cluster_id,
        iteration=belief.iteration,
        model=belief.model,
        version=belief.version,
        call_key=belief.call_key,
        rationale=belief.rationale,
    )
    await add_evidence(connection, belief.belief_id, belief.evidence, is_new=bool(is_new))
    if not is_new:
        await connection.execute(_PROVENANCE, id=belief.belief_id)
    if former:
        await connection.execute(
            _REPLACE,
            id=belief.belief_id,
            former=sorted(former),
            valid_from=belief.valid_from,
            reason=f"replaced: {belief.rationale}"[:2000],
        )
    if belief.vector is not None:
        await connection.execute(
            _VECTOR, id=belief.belief_id, model=belief.embedding_model, dimension=belief.dimension, vector=belief.vector
        )
