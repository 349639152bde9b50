"""A language model that answers from the call cache where it can, and otherwise within a budget.

Everybody who asks a model asks through here, so that every attempt is reserved before, counted after, and recorded,
whatever became of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.errors import (
    ModelOutputInvalid,
    ModelRateLimited,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    SlowwaveError,
)
from memory_core.models.budgets import Budget, Estimate, Usage
from memory_core.models.call_cache import CallCache
from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest
from memory_core.models.prices import price
from memory_core.models.tokens import estimate_call, estimate_tokens

MODEL_ERRORS = (ModelTimeout, ModelRateLimited, ModelUnreachable, ModelRejected)
"""The model, or the way to it, failed; its answer was not the reason."""

_OUTCOMES = {
    ModelTimeout: "timeout",
    ModelRateLimited: "rate_limited",
    ModelUnreachable: "unreachable",
    ModelRejected: "rejected",
}


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """An answer, and whether it was bought now.

    Attributes:
        kept: it came from the cache and cost nothing.
        usage: what it came to; of an answer whose tokens the provider did not count, an estimate.
    """

    request: ModelRequest
    answer: ModelAnswer
    kept: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class PaidModel:
    """A model to ask, and what it takes to ask it.

    Attributes:
        budget: shared by all who ask on behalf of one run.
    """

    language: LanguageModel
    cache: CallCache
    budget: Budget

    @property
    def name(self) -> str:
        """The model's name."""
        return self.language.name

    async def ask(self, request: ModelRequest) -> PaidAnswer:
        """The kept answer, or a new one. The caller reads it and then calls `keep` or `turn_down`.

        Raises:
            BudgetExhausted: the attempt does not fit into the budget any more.
            ModelOutputInvalid: the answer is of no use as such; that is recorded.
            ModelTimeout, ModelRateLimited, ModelUnreachable, ModelRejected: as `LanguageModel.complete`; recorded.
        """
        found = await self.cache.find(request)
        if found is not None:
            return PaidAnswer(request, found, True, Usage())
        priced = self.budget.limits.cost is not None
        reserved = await self.budget.reserve_in_turn(await estimate_call(request, priced=priced))
        usage = Usage()
        try:
            answer = await self.language.complete(request)
            usage = _usage(request, answer, priced=priced)
        except ModelOutputInvalid as error:
            usage = _usage_of_unusable(error)
            await self._record(request, error, str(error.data.get("reason") or "malformed"), usage)
            raise
        except MODEL_ERRORS as error:
            usage = _usage_of_failure(error, reserved)
            await self._record(request, error, _OUTCOMES[type(error)], usage)
            raise
        finally:
            self.budget.settle(reserved, usage)
        return PaidAnswer(request, answer, False, usage)

    async def keep(self, paid: PaidAnswer) -> None:
        """Keep an answer that could be read."""
        if not paid.kept:
            await self.cache.store(paid.request, paid.answer, paid.usage)

    async def turn_down(self, paid: PaidAnswer) -> None:
        """Record an answer that could not be read, so that it is not used again."""
        if not paid.kept:
            await self.cache.record_failure(
                paid.request,
                "unreadable",
                model=paid.answer.model,
                usage=paid.usage,
                answer=paid.answer.text,
                duration_ms=paid.answer.duration_ms,
            )

    async def _record(self, request: ModelRequest, error: SlowwaveError, outcome: str, usage: Usage) -> None:
        await self.cache.record_failure(
            request,
            outcome,
            model=str(error.data.get("model") or self.name),
            usage=usage,
            answer=error.data.get("answer"),
            duration_ms=int(error.data.get("duration_ms") or 0),
        )


def _usage(request: ModelRequest, answer: ModelAnswer, *, priced: bool) -> Usage:
    if answer.prompt_tokens or answer.completion_tokens:
        return Usage(answer.prompt_tokens, answer.completion_tokens, answer.cost)
    # A provider that does not count must not make the budget endless.
    read = estimate_tokens(request.system) + estimate_tokens(request.prompt)
    written = estimate_tokens(answer.text)
    return Usage(read, written, price(answer.model, read, written) if priced else answer.cost)


def _usage_of_unusable(error: ModelOutputInvalid) -> Usage:
    cost = error.data.get("cost")
    return Usage(
        int(error.data.get("prompt_tokens") or 0),
        int(error.data.get("completion_tokens") or 0),
        None if cost is None else float(cost),
    )


def _usage_of_failure(error: SlowwaveError, reserved: Estimate) -> Usage:
    if isinstance(error, ModelTimeout):
        # The provider has most likely read the prompt, and charges for it.
        return Usage(reserved.read_tokens, 0, reserved.read_cost)
    return Usage()
