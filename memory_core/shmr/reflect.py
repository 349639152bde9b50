"""Reflect: an answer to one question in a few cited sentences, from what recall found.

Without a model the sentences are the statements themselves, chosen by closeness; the same facts always give the same
answer. A model may write them instead, but every claim of its answer must cite facts it was given and stay near them;
an answer that does not is refused as a whole, and the statements stand in, which the document says.

Nothing is written here: the model's answer is kept by the call cache, and no transaction is open while it works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memory_core.errors import (
    BudgetExhausted,
    InvalidInput,
    ModelOutputInvalid,
    ModelRejected,
    TransientError,
)
from memory_core.models.embedding import EmbeddingProvider, prepared_text
from memory_core.models.language import ModelRequest
from memory_core.models.paid_model import PaidModel
from memory_core.shmr.facts import Fact
from memory_core.shmr.reflect_gaps import gaps_of
from memory_core.shmr.reflect_prompt import PROMPT_VERSION, RESPONSE_SCHEMA, Claim, read_claims, reflection_prompt
from memory_core.shmr.reflect_statements import (
    answer_text,
    best_score,
    closest_statements,
    contradiction,
    earlier,
    nearness,
)

NAME = "reflect"
"""The section of the settings, and the purpose of the model's calls."""

STATUSES = ("answered", "no_facts", "no_model", "model_unavailable", "refused", "budget_exhausted")
"""`answered` by a model; `no_facts`: nothing to answer from. In the others the statements themselves are the answer:
none is configured, it failed, it declined or its answer was not taken, or the budget is spent."""

LONGEST_QUESTION = 4000


class ReflectSettings(BaseModel):
    """How a question is answered from facts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    statements: int = Field(4, ge=1, le=50, description="Statements an answer without a model has at most.")
    close_share: float = Field(
        0.75, ge=0.0, le=1.0, description="Share of the best fact's score that a statement needs to be in the answer."
    )
    weak_score: float = Field(
        0.25, ge=0.0, le=1.0, description="Where the best score is below this, the answer says that nothing is close."
    )
    support_threshold: float = Field(
        0.4, ge=0.0, le=1.0, description="Cosine that a model's claim needs with a fact it cites."
    )
    old_days: int = Field(180, ge=1, description="Days after which the newest statement of an answer is called old.")
    token_budget: int = Field(6_000, ge=500, le=1_000_000, description="Most tokens of one prompt.")
    max_output_tokens: int = Field(600, ge=64, le=100_000, description="Most tokens of one answer.")


@dataclass(frozen=True, slots=True)
class Asker:
    """A model to ask, and the embedding that measures whether a claim stays near what it cites."""

    model: PaidModel
    embedding: EmbeddingProvider


@dataclass(frozen=True, slots=True)
class _Reply:
    """What came of asking a model: claims, None where there are none to show."""

    status: str
    claims: tuple[Claim, ...] | None = None
    reason: str = ""
    call: Mapping[str, Any] | None = None


async def reflect_on(
    question: str,
    facts: Sequence[Fact],
    *,
    settings: ReflectSettings,
    asker: Asker | None,
    as_of: datetime,
    notes: Sequence[str] = (),
    left_out: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Answer a question from facts, as a JSON-able document.

    Args:
        facts: in the order of `read_facts`.
        asker: None where no model is configured.
        as_of: the time that the answer is of; ages are told from it.
        notes: what was not searched, in sentences; joins the gaps.
        left_out: facts that do not stand any more, counted by status.

    Returns:
        `question`, `as_of`, `status` (one of `STATUSES`), `by` (`statements`, or the model's name), `reason`,
        `answer` (text; None where there are no facts), `claims` (text, cites, contested), `evidence` (the cited facts
        with ids, dates and the memories behind them), `contradictions` (each contested fact with both sides),
        `earlier` (what the cited beliefs replaced, and no longer so), `period`, `gaps`, `left_out`, `model_call`.

    Raises:
        InvalidInput: the question is blank or longer than 4,000 characters.
        EmbeddingMismatch, SlowwaveError: the embedding provider failed while a claim was compared.
    """
    question = " ".join(question.split())
    if not question:
        raise InvalidInput("The question is blank.", hint="Ask in plain words, such as: where does the user live")
    if len(question) > LONGEST_QUESTION:
        raise InvalidInput(f"The question has {len(question)} characters, and {LONGEST_QUESTION} are allowed.")
    document: dict[str, Any] = {"question": question, "as_of": as_of.isoformat()}
    if not facts:
        why = "nothing is known that could answer it" + (": what there is does not hold any more" if left_out else "")
        return {**document, **_nothing(why, notes, left_out)}
    reply = _Reply("no_model", reason="no model is configured, so the statements themselves are the answer")
    if asker is not None:
        reply = await _ask(question, facts, settings, asker)
    told = reply.claims is not None
    claims = (
        reply.claims
        if reply.claims is not None
        else closest_statements(facts, most=settings.statements, close_share=settings.close_share)
    )
    by_handle = {fact.handle: fact for fact in facts}
    cited = [by_handle[handle] for handle in dict.fromkeys(handle for claim in claims for handle in claim.cites)]
    dates = sorted(fact.observed_at for fact in cited if fact.observed_at is not None)
    return {
        **document,
        "status": reply.status,
        "by": asker.model.name if asker is not None and told else "statements",
        "reason": reply.reason,
        "answer": answer_text(claims, by_handle, weak=not told and best_score(facts) < settings.weak_score),
        "claims": [
            {
                "text": claim.text,
                "cites": list(claim.cites),
                "contested": any(by_handle[handle].contested for handle in claim.cites),
            }
            for claim in claims
        ],
        "evidence": [fact.document() for fact in cited],
        "contradictions": [contradiction(fact) for fact in facts if fact.contested],
        "earlier": earlier(cited),
        "period": {"from": dates[0].isoformat(), "to": dates[-1].isoformat()} if dates else None,
        "gaps": [
            *gaps_of(
                question,
                facts,
                cited,
                as_of=as_of,
                weak_score=settings.weak_score,
                old_days=settings.old_days,
            ),
            *notes,
        ],
        "left_out": dict(left_out or {}),
        "model_call": None if reply.call is None else dict(reply.call),
    }


def _nothing(why: str, notes: Sequence[str], left_out: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "status": "no_facts",
        "by": "statements",
        "reason": why,
        "answer": None,
        "claims": [],
        "evidence": [],
        "contradictions": [],
        "earlier": [],
        "period": None,
        "gaps": list(notes),
        "left_out": dict(left_out or {}),
        "model_call": None,
    }


async def _ask(question: str, facts: Sequence[Fact], settings: ReflectSettings, asker: Asker) -> _Reply:
    model = asker.model
    # Nearest first: over budget, facts are left out from the end.
    prompt = reflection_prompt(question, sorted(facts, key=nearness), token_budget=settings.token_budget)
    request = ModelRequest(
        purpose=NAME,
        model=model.name,
        system=prompt.system,
        prompt=prompt.prompt,
        response_schema=RESPONSE_SCHEMA,
        temperature=0.0,
        max_output_tokens=settings.max_output_tokens,
        schema_version=PROMPT_VERSION,
    )
    try:
        paid = await model.ask(request)
    except BudgetExhausted as error:
        return _Reply("budget_exhausted", reason=str(error))
    except ModelOutputInvalid as error:
        return _Reply("refused", reason=f"{model.name} gave no answer: {error.data.get('reason', 'unusable')}")
    except (TransientError, ModelRejected) as error:
        return _Reply("model_unavailable", reason=f"{model.name} failed: {error}")
    answer = paid.answer
    call = {
        "key": request.cache_key(),
        "model": answer.model,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cost": answer.cost,
        "kept": paid.kept,
    }
    claims = read_claims(answer.text, prompt, question)
    if not isinstance(claims, str):
        claims = await _near_what_they_cite(claims, prompt.shown, asker.embedding, settings.support_threshold)
    if isinstance(claims, str):
        await model.turn_down(paid)
        return _Reply("refused", reason=f"the answer of {answer.model} was refused: {claims}", call=call)
    await model.keep(paid)
    return _Reply("answered", tuple(claims), "" if claims else f"{answer.model} finds no answer in the facts", call)


async def _near_what_they_cite(
    claims: list[Claim], facts: Sequence[Fact], embedding: EmbeddingProvider, threshold: float
) -> list[Claim] | str:
    """The claims, or why one is refused: it cites a fact and says something else."""
    if not claims:
        return claims
    texts = {fact.handle: fact.texts for fact in facts}
    listed = [text for claim in claims for handle in claim.cites for text in texts[handle]]
    vectors = await embedding.embed([prepared_text(text) for text in (*(claim.text for claim in claims), *listed)])
    row = len(claims)
    for number, claim in enumerate(claims):
        count = sum(len(texts[handle]) for handle in claim.cites)
        nearest = float((vectors[row : row + count] @ vectors[number]).max())
        row += count
        if nearest < threshold:
            return f"claim {number + 1} says something else than what it cites (cosine {nearest:.2f})"
    return claims
