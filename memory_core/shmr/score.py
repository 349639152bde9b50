"""SHMR's step score: how well proposed beliefs fit their evidence, and whether they contradict anything they rest on.

The harmony score says what beliefs are about, never whether they are right, so the conflict check decides beside it.
A model's beliefs need both: their score was the gate of each attempt, and is taken again here. What rules decide
restates a memory; its score is kept for the record, and the conflict check alone accepts it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import SlowwaveError
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.belief_vectors import BeliefVectors, Vector
from memory_core.shmr.coherence import find_conflicts, harmony
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.queue import keep_decisions
from memory_core.shmr.slots import Slot
from memory_core.shmr.stored import LONGEST_EPISODE, StoredCluster, clusters_of_run, shmr_settings
from memory_core.shmr.translation import belief_slot

NAME = "score"

_STORE = """
UPDATE memory_resonance_clusters c
SET status = d.status, reason = nullif(d.reason, ''), score = d.score, proposal = c.proposal || d.proposal,
  rejected = c.rejected || d.rejected
FROM jsonb_to_recordset(CAST(:scored AS jsonb))
     AS d(cluster_id text, status text, reason text, score double precision, proposal jsonb, rejected jsonb)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.cluster_id = d.cluster_id
"""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed cluster, and the vectors of its beliefs so far."""

    cluster: StoredCluster
    decision: ClusterDecision
    vectors: BeliefVectors


@dataclass(frozen=True, slots=True)
class Embedded:
    """Proposed clusters with vectors; where beliefs could not be embedded, `problem` says why."""

    proposed: list[Proposed]
    problem: str = ""


async def read(connection: ScopedConnection, context: RunContext) -> list[Proposed]:
    """The proposed clusters of the run. A belief that restates a memory has that memory's vector."""
    clusters = await clusters_of_run(connection, context.embedding.model, ["proposed"])
    return [_proposed(each) for each in clusters]


async def call(proposed: list[Proposed], context: RunContext, _: Database) -> Embedded:
    """Embed what has no vector yet, in one call; a failing provider leaves it without."""
    missing = [(number, position) for number, each in enumerate(proposed) for position in each.vectors.missing()]
    if not missing:
        return Embedded(proposed)
    try:
        vectors = await context.embedding.embed(
            [proposed[number].decision.beliefs[position].content for number, position in missing]
        )
    except SlowwaveError as error:
        return Embedded(proposed, f"embedding unavailable: {error}")
    found: dict[int, dict[int, Vector]] = {}
    for (number, position), vector in zip(missing, vectors, strict=True):
        found.setdefault(number, {})[position] = vector
    return Embedded(
        [
            replace(each, vectors=each.vectors.filled(found[number])) if number in found else each
            for number, each in enumerate(proposed)
        ]
    )


async def score(connection: ScopedConnection, context: RunContext, answer: Embedded) -> StepOutcome:
    """Accept or reject each proposed cluster, with the reason."""
    threshold = shmr_settings(context).harmony_threshold
    scored = [_scored(each, threshold) for each in answer.proposed]
    await connection.execute(_STORE, scored=json.dumps(scored))
    rejected = {each["cluster_id"]: each["version"] for each in scored if each["status"] == "rejected"}
    await keep_decisions(connection, rejected, "rejected")
    statuses = Counter(each["status"] for each in scored)
    values = [each["score"] for each in scored if each["status"] == "accepted" and each["score"] is not None]
    reasons = sorted({each["reason"] for each in scored if each["status"] == "rejected"})
    return StepOutcome(
        candidates=len(scored),
        changed=statuses["accepted"],
        skipped={"rejected": statuses["rejected"]} if statuses["rejected"] else {},
        sample=tuple(each["cluster_id"] for each in scored[:SAMPLE_SIZE] if each["status"] == "accepted"),
        counts={"accepted": statuses["accepted"], "rejected": statuses["rejected"]},
        details={"harmony_score_avg": round(float(np.mean(values)), 4) if values else 0.0, "problem": answer.problem},
        reason="" if statuses["accepted"] else "; ".join(reasons[:3]) or "there is no proposal to score",
    )


def _proposed(cluster: StoredCluster) -> Proposed:
    decision = ClusterDecision.from_dict(cluster.proposal["decision"])
    vectors = BeliefVectors.from_proposal(cluster.proposal)
    # A longer episode is compared by its beginning, and its vector is of the whole.
    whole = {
        member.content: member.memory_id
        for member, vector in zip(cluster.members, cluster.vectors, strict=True)
        if vector.any() and (member.layer != "episodic" or len(member.content) < LONGEST_EPISODE)
    }
    restated = tuple(
        whole.get(belief.content) if own is None else None
        for belief, own in zip(decision.beliefs, vectors.own, strict=True)
    )
    return Proposed(cluster, decision, replace(vectors, of_memories=restated))


def _scored(proposed: Proposed, threshold: float) -> dict[str, Any]:
    cluster, decision, vectors = proposed.cluster, proposed.decision, proposed.vectors
    by_rules = cluster.proposal["by"] == "rules"
    slots = dict(zip((member.memory_id for member in cluster.members), cluster.slots, strict=True))
    found = find_conflicts(
        belief_slots(cluster, decision),
        [[slots.get(memory_id) for memory_id in belief.supports] for belief in decision.beliefs],
    )
    value = None
    if decision.beliefs and not vectors.missing() and len(cluster.vectors):
        rows = _rows(cluster, vectors)
        value = harmony(rows, [belief.confidence for belief in decision.beliefs], cluster.vectors.mean(axis=0))
    status, reason = "accepted", ""
    rejected = [{"reason": "contradicts", "beliefs": list(each.beliefs)} for each in found]
    changes: dict[str, Any] = {}
    if found and by_rules:
        # What rules found out about duplicates and updates stands without the beliefs.
        out = {position for each in found for position in each.beliefs}
        kept = [position for position in range(len(decision.beliefs)) if position not in out]
        decision = replace(decision, beliefs=tuple(decision.beliefs[position] for position in kept))
        vectors = vectors.only(kept)
        changes["decision"] = decision.to_dict()
        if not (decision.beliefs or decision.supersedes or decision.dampens):
            status, reason = "rejected", found[0].reason
    elif found:
        status, reason = "rejected", found[0].reason
    elif not by_rules and decision.beliefs and value is not None and value < threshold:
        status, reason = "rejected", f"harmony {value:.2f} is below {threshold:.2f}"
    return {
        "cluster_id": cluster.cluster_id,
        "status": status,
        "reason": reason,
        "score": value,
        "proposal": {**changes, **vectors.to_proposal()},
        "rejected": rejected,
        "version": cluster.proposal["version"],
    }


def _rows(cluster: StoredCluster, vectors: BeliefVectors) -> Vector:
    """The beliefs' vectors, shape (n, d); none is missing."""
    of_members = dict(zip((member.memory_id for member in cluster.members), cluster.vectors, strict=True))
    rows = []
    for own, memory_id in zip(vectors.own, vectors.of_memories, strict=True):
        if own is not None:
            rows.append(own)
        elif memory_id is not None:
            rows.append(of_members[memory_id])
    return np.stack(rows)


def belief_slots(cluster: StoredCluster, decision: ClusterDecision) -> list[Slot | None]:
    """The beliefs' slots. A belief that restates a member has that member's; a contested one has none."""
    restated = {member.content: slot for member, slot in zip(cluster.members, cluster.slots, strict=True)}
    return [
        None
        if belief.status != "held"
        else restated[belief.content]
        if belief.content in restated
        else belief_slot(belief)
        for belief in decision.beliefs
    ]


STEP = Step(NAME, score, read=read, call=call, needs=("harmonize",))
