"""Holds beliefs: content-addressed, with their evidence, in place of what was believed before about the same thing.

Everything works on many beliefs at once; the number of statements does not depend on how many they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_core.beliefs.evidence import add_evidence
from memory_core.beliefs.vectors import keep_vectors
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.decisions import not_undone

# What a person retracted, or took back with a whole run, is not believed again by itself.
_REFUSED = f"""
SELECT v.number, b.status = 'retracted' AS retracted
FROM unnest(CAST(:ids AS uuid[]), CAST(:contents AS text[])) WITH ORDINALITY AS v(id, content, number)
LEFT JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.belief_id = v.id
WHERE NOT CAST(:reconsider AS boolean) AND (b.status = 'retracted' OR NOT {not_undone("belief", "v.content")})
"""

# Never more sure than the memories it rests on are now.
_UPSERT = """
WITH supported AS MATERIALIZED (
  SELECT v.belief, max(s.confidence) AS most
  FROM unnest(CAST(:supported AS uuid[]), CAST(:supports AS uuid[])) AS v(belief, memory_id)
  JOIN memory_state s ON s.tenant_id = :tenant_id AND s.scope_path = ANY(:visible_paths)
    AND s.memory_id = ANY(CAST(:supports AS uuid[])) AND s.memory_id = v.memory_id
  GROUP BY v.belief
)
INSERT INTO harmonic_beliefs AS b (
  tenant_id, belief_id, scope_path, subject, predicate, object, content, confidence, provenance, status, valid_from,
  cluster_id, iteration, model, rules_version, model_call_key, rationale, recorded_at, created_by_run
)
SELECT CAST(:tenant_id AS text), v.id, CAST(:scope_path AS text), v.subject, v.predicate, v.object, v.content,
       least(v.confidence, s.most), v.provenance, v.status, v.valid_from, v.cluster_id, v.iteration, v.model,
       v.version, v.call_key, v.rationale, CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM jsonb_to_recordset(CAST(:beliefs AS jsonb)) AS v(
  id uuid, subject text, predicate text, object text, content text, confidence double precision, provenance jsonb,
  status text, valid_from timestamptz, cluster_id text, iteration integer, model text, version text, call_key text,
  rationale text)
LEFT JOIN supported s ON s.belief = v.id
ON CONFLICT (tenant_id, belief_id) DO UPDATE
SET content = excluded.content, confidence = excluded.confidence, provenance = excluded.provenance,
    status = excluded.status, status_reason = NULL, valid_to = NULL, superseded_by_belief = NULL,
    valid_from = CASE WHEN b.status IN ('held', 'contested') THEN least(b.valid_from, excluded.valid_from)
                      ELSE excluded.valid_from END,
    cluster_id = excluded.cluster_id, iteration = excluded.iteration, model = excluded.model,
    rules_version = excluded.rules_version, model_call_key = excluded.model_call_key, rationale = excluded.rationale,
    updated_at = clock_timestamp()
WHERE b.scope_path = :scope_path
RETURNING belief_id, xmax = 0 AS is_new
"""

_PROVENANCE = """
UPDATE harmonic_beliefs b SET provenance = p.provenance
FROM (SELECT e.belief_id, jsonb_agg(e.memory_id ORDER BY e.memory_id) AS provenance FROM belief_evidence e
      WHERE e.tenant_id = :tenant_id AND e.belief_id = ANY(CAST(:ids AS uuid[]))
        AND e.role IN ('supports', 'contradicts')
      GROUP BY e.belief_id) AS p
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = ANY(CAST(:ids AS uuid[]))
  AND b.belief_id = p.belief_id AND b.provenance IS DISTINCT FROM p.provenance
"""

# A former belief about the same thing rests on some of the same memories; same words alone do not make it one.
# Two statements rather than a join: with the statistics of before a first night a join would read all beliefs for each.
_SHARING = """
SELECT e.memory_id, e.belief_id FROM belief_evidence e
WHERE e.tenant_id = :tenant_id AND e.memory_id = ANY(CAST(:evidence AS uuid[]))
  AND e.role IN ('supports', 'contradicts')
ORDER BY e.belief_id
"""

_STANDING = """
SELECT b.belief_id, b.subject, b.predicate FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = ANY(CAST(:ids AS uuid[]))
  AND b.status IN ('held', 'contested')
"""

_REPLACE = """
UPDATE harmonic_beliefs b
SET status = 'superseded', status_reason = v.reason, superseded_by_belief = v.by,
    valid_to = CASE WHEN v.valid_from > b.valid_from THEN v.valid_from ELSE :as_of END,
    updated_at = clock_timestamp()
FROM unnest(CAST(:former AS uuid[]), CAST(:by AS uuid[]), CAST(:valid_from AS timestamptz[]), CAST(:reasons AS text[]))
     AS v(former, by, valid_from, reason)
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.belief_id = ANY(CAST(:former AS uuid[]))
  AND b.belief_id = v.former
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
        vector: its embedding, shape (d,), float32, length 1; None to leave it to the embed step.
        vector_of: the memory that it says the same as, word for word, so that its vector is this memory's.
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
    vector: NDArray[np.float32] | None = None
    vector_of: UUID | None = None


@dataclass(frozen=True, slots=True)
class FormerBelief:
    """A held or contested belief that rests on some of the memories of the new belief at `position`."""

    position: int
    belief_id: UUID
    subject: str
    predicate: str


async def refused_beliefs(
    connection: ScopedConnection, beliefs: Sequence[tuple[UUID, str]], *, reconsider: bool
) -> dict[int, str]:
    """The positions of those beliefs (id and content) that a person retracted or took back, each with the reason."""
    if not beliefs:
        return {}
    rows = await connection.rows(
        _REFUSED, ids=[id for id, _ in beliefs], contents=[content for _, content in beliefs], reconsider=reconsider
    )
    return {
        row["number"] - 1: "retracted by a person" if row["retracted"] else "taken back by a person" for row in rows
    }


async def former_beliefs(connection: ScopedConnection, beliefs: Sequence[NewBelief]) -> list[FormerBelief]:
    """Held and contested beliefs that share evidence with new ones; the caller says which are about the same thing."""
    evidence = [{each for memory_ids in belief.evidence.values() for each in memory_ids} for belief in beliefs]
    everything = sorted(set().union(*evidence))
    sharing: dict[UUID, list[UUID]] = {}
    for row in await connection.rows(_SHARING, evidence=everything) if everything else ():
        sharing.setdefault(row["memory_id"], []).append(row["belief_id"])
    if not sharing:
        return []
    ids = sorted({belief_id for belief_ids in sharing.values() for belief_id in belief_ids})
    standing = {row["belief_id"]: row for row in await connection.rows(_STANDING, ids=ids)}
    return [
        FormerBelief(position, id, standing[id]["subject"], standing[id]["predicate"])
        for position, memory_ids in enumerate(evidence)
        for id in sorted({id for memory_id in memory_ids for id in sharing.get(memory_id, ())} & standing.keys())
    ]


async def hold_beliefs(connection: ScopedConnection, beliefs: Sequence[NewBelief], embedding_model: str) -> None:
    """Hold beliefs with their evidence and vectors, in a run; one that is named twice gathers both evidences."""
    for wave in _waves(beliefs):
        ids = [belief.belief_id for belief in wave]
        supports = [(belief.belief_id, id) for belief in wave for id in belief.evidence.get("supports", ())]
        rows = await connection.rows(
            _UPSERT,
            beliefs=json.dumps([_document(belief) for belief in wave]),
            supported=[belief_id for belief_id, _ in supports],
            supports=[memory_id for _, memory_id in supports],
        )
        new = {row["belief_id"] for row in rows if row["is_new"]}
        await add_evidence(connection, {belief.belief_id: belief.evidence for belief in wave}, new=new)
        known = [id for id in ids if id not in new]
        if known:
            await connection.execute(_PROVENANCE, ids=known)
        await keep_vectors(
            connection,
            embedding_model,
            own={each.belief_id: each.vector for each in wave if each.vector is not None},
            shared={each.belief_id: each.vector_of for each in wave if each.vector_of is not None},
        )


async def replace_beliefs(connection: ScopedConnection, replaced: Mapping[UUID, NewBelief]) -> None:
    """Let former beliefs, by their ids, give way to new ones that are held already, in a run."""
    if not replaced:
        return
    former = sorted(replaced)
    await connection.execute(
        _REPLACE,
        former=former,
        by=[replaced[id].belief_id for id in former],
        valid_from=[replaced[id].valid_from for id in former],
        reasons=[f"replaced: {replaced[id].rationale}"[:2000] for id in former],
    )


def _waves(beliefs: Sequence[NewBelief]) -> Iterator[list[NewBelief]]:
    """The beliefs in as few rounds as their ids are distinct within each, in their order."""
    rest = list(beliefs)
    while rest:
        wave: dict[UUID, NewBelief] = {}
        later = []
        for belief in rest:
            if wave.setdefault(belief.belief_id, belief) is not belief:
                later.append(belief)
        yield list(wave.values())
        rest = later


def _document(belief: NewBelief) -> dict[str, Any]:
    evidence = (id for role in ("supports", "contradicts") for id in belief.evidence.get(role, ()))
    return {
        "id": str(belief.belief_id),
        "subject": belief.subject,
        "predicate": belief.predicate,
        "object": belief.object,
        "content": belief.content,
        "confidence": belief.confidence,
        "provenance": sorted(str(each) for each in evidence),
        "status": belief.status,
        "valid_from": belief.valid_from.isoformat(),
        "cluster_id": belief.cluster_id,
        "iteration": belief.iteration,
        "model": belief.model,
        "version": belief.version,
        "call_key": belief.call_key,
        "rationale": belief.rationale,
    }
