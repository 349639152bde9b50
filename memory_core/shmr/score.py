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
from numpy.typing import NDArray

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import SlowwaveError
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.coherence import find_conflicts, harmony
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.harmonize import pack, unpack
from memory_core.shmr.queue import keep_decisions
from memory_core.shmr.slots import Slot
from memory_core.shmr.stored import StoredCluster, clusters_of_run, shmr_settings
from memory_core.shmr.translation import belief_slot

NAME = "score"

_STORE = """
UPDATE memory_resonance_clusters c
SET status = d.status, reason = nullif(d.reason, ''), score = d.score, proposal = d.proposal,
  rejected = c.rejected || d.rejected
FROM jsonb_to_recordset(CAST(:scored AS jsonb))
     AS d(cluster_id text, status text, reason text, score double precision, proposal jsonb, rejected jsonb)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.cluster_id = d.cluster_id
"""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The beliefs' vectors by cluster; a cluster that could not be embedded is missing, and `problem` says why."""

    by_cluster: dict[str, NDArray[np.float32]]
    problem: str = ""


async def read(connection: ScopedConnection, context: RunContext) -> dict[str, list[str]]:
    """The texts of proposed beliefs that have no vector yet, by cluster."""
    clusters = await clusters_of_run(connection, context.embedding.model, ["proposed"])
    return {
        each.cluster_id: [belief["content"] for belief in each.proposal["decision"]["beliefs"]]
        for each in clusters
        if not each.proposal.get("vectors") and each.proposal["decision"]["beliefs"]
    }


async def call(texts: dict[str, list[str]], context: RunContext, _: Database) -> Vectors:
    """Embed the texts in one call; a failing provider leaves them without."""
    flat = [text for each in texts.values() for text in each]
    if not flat:
        return Vectors({})
    try:
        vectors = await context.embedding.embed(flat)
    except SlowwaveError as error:
        return Vectors({}, f"embedding unavailable: {error}")
    found: dict[str, NDArray[np.float32]] = {}
    start = 0
    for cluster_id, each in texts.items():
        found[cluster_id] = vectors[start : start + len(each)]
        start += len(each)
    return Vectors(found)


async def score(connection: ScopedConnection, context: RunContext, answer: Vectors) -> StepOutcome:
    """Accept or reject each proposed cluster, with the reason."""
    threshold = shmr_settings(context).harmony_threshold
    clusters = await clusters_of_run(connection, context.embedding.model, ["proposed"])
    scored = [_scored(each, answer.by_cluster.get(each.cluster_id), threshold) for each in clusters]
    await connection.execute(_STORE, scored=json.dumps(scored))
    for version in sorted({each["version"] for each in scored}):
        rejected = [
            each["cluster_id"] for each in scored if each["status"] == "rejected" and each["version"] == version
        ]
        await keep_decisions(connection, rejected, "rejected", version)
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


def _scored(cluster: StoredCluster, computed: NDArray[np.float32] | None, threshold: float) -> dict[str, Any]:
    decision = ClusterDecision.from_dict(cluster.proposal["decision"])
    by_rules = cluster.proposal["by"] == "rules"
    vectors = unpack(cluster.proposal.get("vectors")) if computed is None else computed
    own = belief_slots(cluster, decision)
    slots = dict(zip((member.memory_id for member in cluster.members), cluster.slots, strict=True))
    found = find_conflicts(
        own, [[slots.get(memory_id) for memory_id in belief.supports] for belief in decision.beliefs]
    )
    value = None
    if vectors is not None and len(vectors) == len(decision.beliefs) and len(cluster.vectors):
        value = harmony(vectors, [belief.confidence for belief in decision.beliefs], cluster.vectors.mean(axis=0))
    status, reason = "accepted", ""
    rejected = [{"reason": "contradicts", "beliefs": list(each.beliefs)} for each in found]
    if found and by_rules:
        # What rules found out about duplicates and updates stands without the beliefs.
        out = {position for each in found for position in each.beliefs}
        kept = [position for position in range(len(decision.beliefs)) if position not in out]
        decision = replace(decision, beliefs=tuple(decision.beliefs[position] for position in kept))
        vectors = vectors[kept] if vectors is not None and kept else None
        if not (decision.beliefs or decision.supersedes or decision.dampens):
            status, reason = "rejected", found[0].reason
    elif found:
        status, reason = "rejected", found[0].reason
    elif not by_rules and decision.beliefs and value is not None and value < threshold:
        status, reason = "rejected", f"harmony {value:.2f} is below {threshold:.2f}"
    proposal = {**cluster.proposal, "decision": decision.to_dict(), "vectors": pack(vectors)}
    return {
        "cluster_id": cluster.cluster_id,
        "status": status,
        "reason": reason,
        "score": value,
        "proposal": proposal,
        "rejected": rejected,
        "version": cluster.proposal["version"],
    }


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
