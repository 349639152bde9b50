"""What a model is asked about one cluster, attempt by attempt, until an answer is coherent or the attempts are spent.

A rejected attempt comes back as reasons only: it never becomes evidence, and the centroid it is measured against is
that of the memories, fixed before the first attempt. No attempt repeats the one before it: an answer that was cut off
gets more room, and a cluster that a model would not answer about is asked about in halves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from memory_core.errors import BudgetExhausted, ModelOutputInvalid, ModelRejected
from memory_core.models.embedding import EmbeddingProvider
from memory_core.models.paid_model import PaidModel
from memory_core.scope import TenantScope
from memory_core.shmr.answers import UNREADABLE_REASONS, parse_answer
from memory_core.shmr.decided import Decided
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.halves import halves
from memory_core.shmr.judging import Judge
from memory_core.shmr.prompt import PROMPT_VERSION
from memory_core.shmr.questions import cluster_prompt, cluster_request, not_shown
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster

MOST_ROOM = 100_000
"""Tokens that one answer may have, however often it was cut off."""


class _Next(Enum):
    """What follows an attempt."""

    DONE = "done"
    AGAIN = "again"
    SMALLER = "smaller"


@dataclass(slots=True)
class _Talk:
    """About which members, and what changes from attempt to attempt.

    Attributes:
        attempts: how many may still be made.
        room: most tokens of the next answer.
        text: most tokens of the next prompt.
        readable: whether an answer could be read.
    """

    positions: tuple[int, ...]
    attempts: int
    room: int
    text: int
    critique: list[str] = field(default_factory=list)
    readable: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """One model, to be asked about clusters, several at a time."""

    model: PaidModel
    embedding: EmbeddingProvider
    settings: ShmrSettings
    scope: TenantScope

    async def about(self, cluster: StoredCluster) -> Decided:
        """Ask about a cluster until an answer is coherent, empty, or the attempts are spent.

        Raises:
            ModelTimeout, ModelRateLimited, ModelUnreachable: the model failed in a way that may pass.
            ModelRejected: the provider refused the call as such.
            InvalidInput: the cluster cannot be put into a prompt as the settings are.
        """
        result = Decided(cluster.cluster_id, "rejected", self.model.name, f"prompt:{PROMPT_VERSION}")
        talk = self._talk(tuple(range(len(cluster.members))), self.settings.max_iterations)
        if await self._converse(cluster, talk, result) is _Next.DONE:
            return result
        parts = []
        for positions in halves(cluster) or ():
            # Attempts count on, and what was turned down is kept in one list.
            part = replace(result, status="rejected", reason="", decision=None, score=None, vectors=None)
            await self._converse(cluster, self._talk(positions, talk.attempts), part)
            result.iteration, result.bought = part.iteration, part.bought
            parts.append(part)
        return self._judge.join(cluster, result, parts)

    @property
    def _judge(self) -> Judge:
        return Judge(self.embedding, self.settings, self.scope)

    def _talk(self, positions: tuple[int, ...], attempts: int) -> _Talk:
        return _Talk(positions, attempts, self.settings.max_output_tokens, self.settings.token_budget)

    async def _converse(self, cluster: StoredCluster, talk: _Talk, result: Decided) -> _Next:
        """Ask until there is a result, or until only a smaller cluster can bring one."""
        whole = len(talk.positions) == len(cluster.members)
        while talk.attempts:
            talk.attempts -= 1
            result.iteration += 1
            can_split = whole and talk.attempts > 0 and halves(cluster) is not None
            following = await self._attempt(cluster, talk, result, can_split=can_split)
            if following is not _Next.AGAIN:
                return following
        result.status = "rejected" if talk.readable else "parse_error"
        result.reason = result.reason or "no answer could be read"
        result.decision = None
        return _Next.DONE

    async def _attempt(self, cluster: StoredCluster, talk: _Talk, result: Decided, *, can_split: bool) -> _Next:
        prompt = cluster_prompt(cluster, talk.positions, talk.critique, self.settings, token_budget=talk.text)
        request = cluster_request(self.model.name, prompt, self.settings, room=talk.room)
        result.call_key = request.cache_key()
        result.rejected += not_shown(prompt, result.iteration)
        try:
            paid = await self.model.ask(request)
        except BudgetExhausted as error:
            result.status, result.reason = "budget_exhausted", str(error)
            return _Next.DONE
        except ModelOutputInvalid as error:
            result.bought += 1
            problem = str(error.data.get("reason", "unusable"))
            result.rejected.append({"attempt": result.iteration, "reason": problem})
            result.reason = f"the answer was {problem}"
            return self._after_unusable(talk, problem, can_split=can_split)
        except ModelRejected as error:
            if error.data.get("reason") != "too_long" or talk.attempts == 0:
                raise
            result.bought += 1
            result.rejected.append({"attempt": result.iteration, "reason": "too_long"})
            if can_split:
                return _Next.SMALLER
            talk.text //= 2
            return _Next.AGAIN
        result.bought += not paid.kept
        parsed = parse_answer(paid.answer.text)
        if parsed.method == "none":
            await self.model.turn_down(paid)
            why = UNREADABLE_REASONS[parsed.reason or "no_json"]
            result.rejected.append({"attempt": result.iteration, "reason": parsed.reason})
            talk.critique = [f"The answer could not be read: {why}."]
            return _Next.AGAIN
        talk.readable = True
        await self.model.keep(paid)
        if parsed.nothing_to_say:
            result.status, result.decision = "nothing_to_say", ClusterDecision()
            result.reason = "the model found nothing stable to say"
            return _Next.DONE
        talk.critique = await self._judge.judge(cluster, prompt.included_handles, parsed.items, result)
        if not talk.critique:
            return _Next.DONE
        result.reason = talk.critique[0]
        return _Next.AGAIN

    def _after_unusable(self, talk: _Talk, problem: str, *, can_split: bool) -> _Next:
        """A refusal is answered by a smaller cluster, a cut answer by more room and then by a smaller cluster."""
        if problem in ("refused", "content_filter"):
            if can_split:
                return _Next.SMALLER
            # The same question would be refused again, and paid for again.
            talk.attempts, talk.readable = 0, True
            return _Next.AGAIN
        if problem == "truncated":
            if can_split and talk.room > self.settings.max_output_tokens:
                return _Next.SMALLER
            talk.room = min(2 * talk.room, MOST_ROOM)
            return _Next.AGAIN
        talk.critique = [f"The answer could not be read: it was {problem}."]
        return _Next.AGAIN
