"""What a model is asked about one cluster, attempt by attempt, until an answer is coherent or the attempts are spent.

A rejected attempt comes back as reasons only: it never becomes evidence, and the centroid it is measured against is
that of the memories, fixed before the first attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import BudgetExhausted, InvalidInput, ModelOutputInvalid
from memory_core.models.budgets import Budget
from memory_core.models.call_cache import CallCache
from memory_core.models.embedding import EmbeddingProvider
from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest
from memory_core.scope import TenantScope
from memory_core.shmr.answers import UNREADABLE_REASONS, parse_answer
from memory_core.shmr.coherence import conflicts, harmony
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.prompt import PROMPT_VERSION, PromptText, build_prompt
from memory_core.shmr.prompt_items import PromptItem
from memory_core.shmr.proposals import RESPONSE_SCHEMA, validate_items
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster
from memory_core.shmr.translation import belief_slot, decision_of

TRUST = {True: 1.0, False: 0.7}
"""How far a source is trusted: a person who corrected or confirmed fully, any other by default."""


@dataclass(slots=True)
class Decided:
    """What became of one cluster.

    Attributes:
        status: `proposed`, `nothing_to_say`, `rejected`, `parse_error`, `model_unavailable` or `budget_exhausted`.
        by: `rules`, or the model's name.
        version: of the rules or of the prompt.
        rejected: what was turned down, with attempt and reason; never free text of a model.
        vectors: one a belief, where they were computed already.
    """

    cluster_id: str
    status: str
    by: str
    version: str
    decision: ClusterDecision | None = None
    reason: str = ""
    iteration: int = 0
    score: float | None = None
    call_key: str | None = None
    rejected: list[dict[str, Any]] = field(default_factory=list)
    vectors: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One cluster after another with one model.

    Attributes:
        budget: of the run; shared by all its clusters.
    """

    language: LanguageModel
    embedding: EmbeddingProvider
    cache: CallCache
    budget: Budget
    settings: ShmrSettings
    scope: TenantScope

    async def about(self, cluster: StoredCluster) -> Decided:
        """Ask about a cluster until an answer is coherent, empty, or the attempts are spent.

        Raises:
            TransientError: the model failed in a way that may pass.
            ModelRejected: the provider refused the call as such.
        """
        result = Decided(cluster.cluster_id, "rejected", self.language.name, f"prompt:{PROMPT_VERSION}")
        critique: list[str] = []
        readable = False
        room = self.settings.max_output_tokens
        for attempt in range(1, self.settings.max_iterations + 1):
            result.iteration = attempt
            prompt = self._prompt(cluster, critique)
            request = self._request(prompt, room)
            result.call_key = request.cache_key()
            try:
                answer, kept = await self._ask(request, prompt)
            except BudgetExhausted as error:
                result.status, result.reason = "budget_exhausted", str(error)
                return result
            except ModelOutputInvalid as error:
                problem = str(error.data.get("reason", "unusable"))
                result.rejected.append({"attempt": attempt, "reason": problem})
                result.reason = f"the answer was {problem}"
                if problem in ("refused", "content_filter"):
                    result.status = "rejected"
                    return result
                room *= 2 if problem == "truncated" else 1
                continue
            parsed = parse_answer(answer.text)
            if parsed.method == "none":
                why = UNREADABLE_REASONS[parsed.reason or "no_json"]
                result.rejected.append({"attempt": attempt, "reason": parsed.reason})
                critique = [f"The answer could not be read: {why}."]
                continue
            readable = True
            if not kept:
                await self.cache.store(request, answer)
            if parsed.nothing_to_say:
                result.status, result.decision = "nothing_to_say", ClusterDecision()
                result.reason = "the model found nothing stable to say"
                return result
            critique = await self._judge(cluster, prompt, parsed.items, result)
            if not critique:
                return result
            result.reason = critique[0]
        result.status = "rejected" if readable else "parse_error"
        result.reason = result.reason or "no answer could be read"
        result.decision = None
        return result

    async def _judge(
        self, cluster: StoredCluster, prompt: PromptText, items: Sequence[object], result: Decided
    ) -> list[str]:
        """Make the decision of an answer; returns why it is turned down, empty where it is kept."""
        members = dict(zip(cluster.handles, cluster.members, strict=True))
        slots = dict(zip(cluster.handles, cluster.slots, strict=True))
        accepted, refused = validate_items(
            items,
            prompt.included_handles,
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
        by_id = {member.memory_id: slots[handle] for handle, member in members.items()}
        found = conflicts(
            [belief_slot(belief) for belief in decision.beliefs],
            [[by_id.get(memory_id) for memory_id in belief.supports] for belief in decision.beliefs],
        )
        if found:
            result.rejected += [{"attempt": attempt, "reason": "contradicts"} for _ in found]
            return ["Proposed beliefs contradict each other or the evidence that they cite."]
        if decision.beliefs:
            vectors = await self.embedding.embed([belief.content for belief in decision.beliefs])
            score = harmony(vectors, [belief.confidence for belief in decision.beliefs], cluster.vectors.mean(axis=0))
            result.score, result.vectors = score, vectors
            if score < self.settings.harmony_threshold:
                result.rejected.append({"attempt": attempt, "reason": "harmony", "score": round(score, 3)})
                limit = self.settings.harmony_threshold
                return [f"The beliefs are not about what the memories say (harmony {score:.2f}, needed {limit:.2f})."]
        result.status, result.decision, result.reason = "proposed", decision, ""
        return []

    async def _ask(self, request: ModelRequest, prompt: PromptText) -> tuple[ModelAnswer, bool]:
        """The answer, and whether it was a kept one."""
        found = await self.cache.find(request)
        if found is not None:
            return found, True
        self.budget.reserve(prompt.estimated_tokens + request.max_output_tokens)
        answer = await self.language.complete(request)
        self.budget.spend(answer)
        return answer, False

    def _request(self, prompt: PromptText, room: int) -> ModelRequest:
        return ModelRequest(
            purpose="harmonize",
            model=self.language.name,
            system=prompt.system,
            prompt=prompt.prompt,
            response_schema=RESPONSE_SCHEMA,
            temperature=self.settings.temperature,
            max_output_tokens=room,
            schema_version=PROMPT_VERSION,
        )

    def _prompt(self, cluster: StoredCluster, critique: Sequence[str]) -> PromptText:
        order = sorted(
            range(len(cluster.members)),
            key=lambda i: (
                not cluster.members[i].by_person,
                -cluster.members[i].observed_at.timestamp(),
                cluster.handles[i],
            ),
        )
        items = [
            PromptItem(
                handle=cluster.handles[i],
                subject=member.subject,
                predicate=member.predicate,
                object=member.object,
                content=member.content,
                observed_at=member.observed_at,
                confidence=member.confidence,
                source_trust=TRUST[member.by_person],
                is_correction=member.by_person,
                read_only=member.read_only,
            )
            for i in order
            for member in (cluster.members[i],)
        ]
        for number in range(3):
            # A text that holds the hash of its own cluster cannot be met by accident; a second nonce costs nothing.
            nonce = hashlib.sha256(f"{cluster.fingerprint}:{PROMPT_VERSION}:{number}".encode()).hexdigest()[:16]
            if not any(nonce in member.content for member in cluster.members):
                return build_prompt(
                    items,
                    nonce=nonce,
                    critique=critique,
                    token_budget=self.settings.token_budget,
                    max_beliefs=self.settings.max_beliefs_per_cluster,
                )
        raise InvalidInput("The memories of a cluster contain every nonce of their prompt.")
