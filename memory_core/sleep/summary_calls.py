"""Asks a model about groups of memories, one call a group, within a budget; no transaction is open.

Whatever the model fails to do is counted with its reason. Errors that are not the model's go up to the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.errors import BudgetExhausted, ModelOutputInvalid
from memory_core.models.language import ModelRequest
from memory_core.models.paid_model import MODEL_ERRORS, PaidModel
from memory_core.sleep.summary_prompt import (
    PROMPT_VERSION,
    RESPONSE_SCHEMA,
    SummaryText,
    read_summary,
    summary_prompt,
)

OUTPUT_TOKENS = 800
FAILURES_IN_A_ROW = 2
"""Calls that may fail one after another before the rest is not tried any more."""

BUDGET_SPENT = "the budget is spent"


@dataclass(frozen=True, slots=True)
class Group:
    """A summary that a model is asked about.

    Attributes:
        memory_id: the summary's own.
        member_count: how many members the group has; those shown may be fewer.
        member_ids, texts: of the members shown, in the same order.
    """

    memory_id: str
    name: str
    member_count: int
    member_ids: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(slots=True)
class Answers:
    """What came of asking.

    Attributes:
        asked: groups that were asked about, kept answers included.
        summaries: memory_id, content, cited (members' ids), model and call_key of each summary that was taken.
        turned_down: summaries whose answer could not be used: asking the same again is of no use.
        failed: how many were asked in vain, by reason.
        sentences_left_out: sentences that were not taken from answers that were.
        calls, tokens: spent on this; kept answers cost nothing.
    """

    asked: int = 0
    summaries: list[dict[str, Any]] = field(default_factory=list)
    turned_down: list[str] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    sentences_left_out: int = 0
    calls: int = 0
    tokens: int = 0


async def ask_about_groups(groups: Sequence[Group], model: PaidModel) -> Answers:
    """Ask about each group until the budget is spent or the model keeps failing.

    Where kept answers alone are used, one that is missing says nothing of the next.
    """
    answers = Answers()
    budget = model.budget
    calls, tokens = budget.calls, budget.tokens
    failures = 0
    for group in groups:
        answers.asked += 1
        try:
            await _ask(group, model, answers)
            failures = 0
        except BudgetExhausted:
            answers.failed[BUDGET_SPENT] += 1
            break
        except ModelOutputInvalid as error:
            answers.turned_down.append(group.memory_id)
            answers.failed[f"the answer was {error.data.get('reason', 'unusable')}"] += 1
            failures = 0
        except MODEL_ERRORS as error:
            answers.failed[f"{model.name} failed: {type(error).__name__}"] += 1
            failures += 1
            if failures == FAILURES_IN_A_ROW and not model.cache.replay_only:
                break
    answers.calls, answers.tokens = budget.calls - calls, budget.tokens - tokens
    return answers


async def _ask(group: Group, model: PaidModel, answers: Answers) -> None:
    system, prompt = summary_prompt(group.name, group.texts, member_count=group.member_count)
    request = ModelRequest(
        purpose="summarise",
        model=model.name,
        system=system,
        prompt=prompt,
        response_schema=RESPONSE_SCHEMA,
        temperature=0.0,
        max_output_tokens=OUTPUT_TOKENS,
        schema_version=PROMPT_VERSION,
    )
    paid = await model.ask(request)
    found = read_summary(paid.answer.text, len(group.texts))
    if not isinstance(found, SummaryText):
        await model.turn_down(paid)
        answers.turned_down.append(group.memory_id)
        answers.failed[found] += 1
        return
    await model.keep(paid)
    answers.sentences_left_out += found.left_out
    answers.summaries.append(
        {
            "memory_id": group.memory_id,
            "content": found.content,
            "cited": [group.member_ids[position] for position in found.cited],
            "model": paid.answer.model,
            "call_key": request.cache_key(),
        }
    )
