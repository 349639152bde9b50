"""SHMR's step cluster: groups what may say the same or contradict one another, and keeps the groups worth a look.

A group is kept where at least one member waits and its fingerprint has no decision yet. Everything that was looked
at leaves the queue here; what a later step could not finish is put back by that step.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.clustering import Cluster
from memory_core.shmr.clustering import cluster as group
from memory_core.shmr.collect import pass_over, waiting
from memory_core.shmr.near_sentences import near_sentences
from memory_core.shmr.phrases import learn_phrases
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot, slot_of
from memory_core.shmr.stored import Collected, all_candidates, member_documents, shmr_settings

NAME = "cluster"

_DECIDED = """
SELECT decision_key, verdict FROM decisions
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND phase = 'harmonize' AND decision_key = ANY(:fingerprints)
"""

_INSERT = """
INSERT INTO memory_resonance_clusters (tenant_id, scope_path, run_id, cluster_id, fingerprint, members)
SELECT :tenant_id, :scope_path, :run_id, c.cluster_id, c.fingerprint, c.members
FROM jsonb_to_recordset(CAST(:clusters AS jsonb)) AS c(cluster_id text, fingerprint text, members jsonb)
"""

_LOOKED_AT = """
UPDATE harmonize_queue SET harmonized_by_run = :run_id, passed_over_at = NULL
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = ANY(CAST(:ids AS uuid[]))
  AND harmonized_by_run IS NULL
"""


async def cluster(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Group the waiting memories with everything comparable, and keep what has no decision yet."""
    found = await waiting(connection, context)
    looked_at = [*found.reasons, *found.closed]
    await pass_over(connection, found)
    if not found.reasons:
        await connection.execute(_LOOKED_AT, ids=looked_at)
        reason = "what waits has no vector yet" if found.unembedded else "nothing new since the last run"
        return StepOutcome(counts={"clusters_found": 0}, reason=reason)
    collected = await all_candidates(connection, context.embedding.model)
    slots, clusters = await asyncio.to_thread(_group, collected, shmr_settings(context))
    ids = [candidate.memory_id for candidate in collected.candidates]
    fingerprints = [each.fingerprint for each in clusters]
    decided = {
        row["decision_key"]: row["verdict"] for row in await connection.rows(_DECIDED, fingerprints=fingerprints)
    }
    kept: list[Cluster] = []
    skipped: Counter[str] = Counter()
    for each in clusters:
        reasons = {found.reasons[ids[i]] for i in each.members if ids[i] in found.reasons}
        verdict = decided.get(each.fingerprint)
        if not reasons:
            skipped["nothing new in it"] += 1
        elif verdict == "undone" and not context.reconsider:
            skipped["taken back by a person"] += 1
        elif verdict not in (None, "undone") and reasons == {"new"}:
            skipped["already decided"] += 1
        else:
            kept.append(each)
    documents = [
        {
            "cluster_id": each.key,
            "fingerprint": each.fingerprint,
            "members": member_documents(
                [collected.candidates[i] for i in each.members], [slots[i] for i in each.members]
            ),
        }
        for each in kept
    ]
    await connection.execute(_INSERT, clusters=json.dumps(documents))
    await connection.execute(_LOOKED_AT, ids=looked_at)
    return StepOutcome(
        candidates=len(ids),
        changed=len(kept),
        skipped=dict(skipped),
        sample=tuple(each.key for each in kept[:SAMPLE_SIZE]),
        counts={
            "clusters_found": len(kept),
            "clustered": sum(len(each.members) for each in kept),
            "largest": max((len(each.members) for each in kept), default=0),
            "slots": sum(1 for slot in slots if slot is not None),
        },
        reason=""
        if kept
        else "no new memory belongs with another"
        if not skipped
        else "every cluster is decided or unchanged",
    )


def _group(collected: Collected, settings: ShmrSettings) -> tuple[list[Slot | None], list[Cluster]]:
    learned = learn_phrases(
        [candidate.content for candidate in collected.candidates],
        collected.content_vectors,
        [candidate.observed_at.timestamp() for candidate in collected.candidates],
    )
    slots = [slot_of(candidate, learned) for candidate in collected.candidates]
    near = near_sentences(collected.candidates, slots, collected.content_vectors, settings.similarity_threshold)
    clusters = group(
        collected.candidates, slots, collected.content_vectors, collected.slot_vectors, settings, list(near)
    )
    return slots, clusters


STEP = Step(NAME, cluster, needs=("collect",))
