"""Whether an answer about a cluster is coherent: valid items, no contradiction, and a fit with the evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_core.models.embedding import EmbeddingProvider
from memory_core.scope import TenantScope
from memory_core.shmr.coherence import conflicts, harmony
from memory_core.shmr.decided import Decided
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.proposals import validate_items
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster
from memory_core.shmr.translation import belief_slot, decision_of

CONTRADICTION = "Proposed beliefs contradict each other or the evidence that they cite."


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges answers by the settings of a run."""

    embedding: EmbeddingProvider
    settings: ShmrSettings
    scope: TenantScope

    async def judge(
        self, cluster: StoredCluster, shown: Collection[str], items: Sequence[object], result: Decided
    ) -> list[str]:
        """Make the decision of an answer, in `result`; returns why it is turned down, empty where it is kept.

        Args:
            shown: the handles that the model was shown.
            items: the answer as it was read.
        """
        members = dict(zip(cluster.handles, cluster.members, strict=True))
        slots = dict(zip(cluster.handles, cluster.slots, strict=True))
        accepted, refused = validate_items(
            items,
            shown,
            read_only=[handle for handle, member in members.items() if member.read_only],
            max_items=self.settings.max_beliefs_per_cluster,
        )
        attempt = result.iteration
        result.rejected += [{"attempt": attempt, "item": each.index, "reason": each.reason} for each in refused]
        decision = decision_of(self.scope, accepted, members, slots)
        result.rejected += [{"attempt": attempt, "reason": each.reason} for each in decision.rejected]
        if decision.outcome == "nothing_to_say":
            reasons = [each.critique for each in refused] + [
                f"{each.reason.capitalize()}." for each in decision.rejected
            ]
            return reasons or ["No item could be used."]
        if contradicts(cluster, decision):
            result.rejected.append({"attempt": attempt, "reason": "contradicts"})
            return [CONTRADICTION]
        if decision.beliefs:
            result.vectors = await self.embedding.embed([belief.content for belief in decision.beliefs])
            if far_off := self._far_off(cluster, decision, result.vectors, result):
                return [far_off]
        result.status, result.decision, result.reason = "proposed", decision, ""
        return []

    def join(self, cluster: StoredCluster, whole: Decided, parts: Sequence[Decided]) -> Decided:
        """One result of what was decided about the parts of a cluster, judged together as it would be in one answer.

        Where they do not cohere nothing is proposed. A cluster of which a part could not be paid for waits as a whole;
        the answers about the others are kept.
        """
        proposed = [part for part in parts if part.status == "proposed" and part.decision is not None]
        unpaid = any(part.status == "budget_exhausted" for part in parts)
        if unpaid or not proposed:
            order = ("budget_exhausted", "parse_error", "rejected", "nothing_to_say", "proposed")
            worst = min(parts, key=lambda part: order.index(part.status))
            whole.status, whole.reason, whole.call_key = worst.status, worst.reason, worst.call_key
            whole.decision = ClusterDecision() if worst.status == "nothing_to_say" else None
            return whole
        decision = _together([part.decision for part in proposed if part.decision is not None])
        whole.call_key = proposed[0].call_key
        whole.call_keys = tuple(
            part.call_key for part in proposed if part.decision is not None for _ in part.decision.beliefs
        )
        if contradicts(cluster, decision):
            whole.rejected.append({"attempt": whole.iteration, "reason": "contradicts"})
            whole.status, whole.reason = "rejected", CONTRADICTION
            return whole
        vectors = [part.vectors for part in proposed if part.vectors is not None and part.decision is not None]
        if decision.beliefs:
            whole.vectors = np.concatenate(vectors)
            if far_off := self._far_off(cluster, decision, whole.vectors, whole):
                whole.status, whole.reason = "rejected", far_off
                return whole
        whole.status, whole.decision, whole.reason = "proposed", decision, ""
        return whole

    def _far_off(
        self, cluster: StoredCluster, decision: ClusterDecision, vectors: NDArray[np.float32], result: Decided
    ) -> str:
        """Score the beliefs, in `result`; returns why they are turned down, empty where they fit the evidence."""
        weights = [belief.confidence for belief in decision.beliefs]
        score = result.score = harmony(vectors, weights, cluster.vectors.mean(axis=0))
        limit = self.settings.harmony_threshold
        if score >= limit:
            return ""
        result.rejected.append({"attempt": result.iteration, "reason": "harmony", "score": round(score, 3)})
        return f"The beliefs are not about what the memories say (harmony {score:.2f}, needed {limit:.2f})."


def contradicts(cluster: StoredCluster, decision: ClusterDecision) -> bool:
    """Whether beliefs contradict one another or the evidence they cite."""
    by_id = {member.memory_id: slot for member, slot in zip(cluster.members, cluster.slots, strict=True)}
    found = conflicts(
        [belief_slot(belief) for belief in decision.beliefs],
        [[by_id.get(memory_id) for memory_id in belief.supports] for belief in decision.beliefs],
    )
    return bool(found)


def _together(decisions: Sequence[ClusterDecision]) -> ClusterDecision:
    return ClusterDecision(
        supersedes=tuple(
            sorted((each for one in decisions for each in one.supersedes), key=lambda each: str(each.loser))
        ),
        dampens=tuple(each for one in decisions for each in one.dampens),
        beliefs=tuple(each for one in decisions for each in one.beliefs),
        rejected=tuple(each for one in decisions for each in one.rejected),
        outcome="decided",
    )
