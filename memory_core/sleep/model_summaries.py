"""Summaries by a model, off unless switched on: beside the extractive one of a group, each sentence citing members.

No model's text enters the memories: it is kept in a table of its own, for the very members that it was made from. A
group whose members change has a new extractive summary, and so a new question. Whatever the model fails to do, the
extractive summary stays.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import BudgetExhausted, ModelOutputInvalid, SlowwaveError
from memory_core.models.budgets import Budget
from memory_core.models.call_cache import CallCache
from memory_core.models.language import LanguageModel, ModelRequest
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.runs.spending import budget_left
from memory_core.sleep.meta_rows import MetaNodesSettings
from memory_core.sleep.summary_prompt import (
    PROMPT_VERSION,
    RESPONSE_SCHEMA,
    SummaryText,
    read_summary,
    summary_prompt,
)

NAME = "model_summaries"
SECTION = "meta_nodes"
LONGEST_TEXT = 600
"""Characters of one member that a model is shown."""

OUTPUT_TOKENS = 800
FAILURES_IN_A_ROW = 2

_READ = f"""
WITH waiting AS MATERIALIZED (
  SELECT m.id, m.label, m.content_hash, CAST(m.properties ->> 'member_count' AS integer) AS members
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NOT NULL
    AND m.source IN ('meta_nodes', 'episodic_summaries') AND m.retired_at IS NULL AND m.recorded_at <= :as_of
    AND NOT EXISTS (SELECT FROM memory_summaries s WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path
                    AND s.memory_id = m.id)
    AND {not_undone(NAME, "m.content_hash")}
), chosen AS (
  SELECT * FROM waiting ORDER BY members DESC NULLS LAST, id LIMIT :most
)
SELECT (SELECT count(*) FROM waiting) AS waiting, c.id, c.label, c.members, t.id AS member_id,
       left(t.content, {LONGEST_TEXT}) AS content
FROM (SELECT 1) AS one
LEFT JOIN chosen c ON true
LEFT JOIN memory_edges e ON e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.source_id = c.id
  AND e.kind = 'clusters' AND e.status <> 'retired'
LEFT JOIN memories t ON t.tenant_id = :tenant_id AND t.id = e.target_id
ORDER BY c.members DESC NULLS LAST, c.id, t.observed_at, t.id
"""

_WRITE = """
INSERT INTO memory_summaries (tenant_id, memory_id, scope_path, content, cited, model, call_key, recorded_at,
                              created_by_run)
SELECT CAST(:tenant_id AS text), r.memory_id, CAST(:scope_path AS text), r.content, r.cited, r.model, r.call_key,
       CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM jsonb_to_recordset(CAST(:summaries AS jsonb))
  AS r (memory_id uuid, content text, cited jsonb, model text, call_key text)
-- The group may have changed while the model was thinking.
JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.memory_id
WHERE m.retired_at IS NULL
ON CONFLICT DO NOTHING
RETURNING memory_id
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, slowwave.decision_key('{NAME}', m.content_hash) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM memory_summaries s JOIN memories m ON m.tenant_id = s.tenant_id AND m.id = s.memory_id
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.created_by_run = CAST(:id AS uuid)
"""


@dataclass(frozen=True, slots=True)
class _Group:
    memory_id: str
    name: str
    member_ids: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    waiting: int
    groups: tuple[_Group, ...]
    budget: Budget


@dataclass(slots=True)
class _Answers:
    waiting: int
    asked: int = 0
    summaries: list[dict[str, Any]] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


async def read(connection: ScopedConnection, context: RunContext) -> _Question:
    """The summaries without a model's text, the largest groups first, with the members that they are linked to."""
    settings = context.section(SECTION, MetaNodesSettings)
    rows = await connection.rows(_READ, most=settings.most_model_summaries, reconsider=context.reconsider)
    groups = [
        _Group(
            str(memory_id),
            members[0]["label"].removeprefix("META: "),
            tuple(str(row["member_id"]) for row in members),
            tuple(row["content"] for row in members),
        )
        for memory_id, found in groupby((row for row in rows if row["member_id"] is not None), lambda row: row["id"])
        for members in [list(found)]
    ]
    return _Question(rows[0]["waiting"], tuple(groups), await budget_left(connection, context))


async def call(question: _Question, context: RunContext, database: Database) -> _Answers:
    """Ask about each group; no transaction is open. A model that keeps failing is not asked further."""
    answers = _Answers(question.waiting)
    language = context.language
    if language is None or not question.groups:
        return answers
    cache = CallCache(database, context.run.scope, context.run.id, context.settings.model_cache)
    failures = 0
    for group in question.groups:
        answers.asked += 1
        try:
            found, key, model = await _ask(group, language, cache, question.budget)
        except BudgetExhausted:
            answers.failed["the budget is spent"] += 1
            break
        except ModelOutputInvalid as error:
            answers.failed[f"the answer was {error.data.get('reason', 'unusable')}"] += 1
            continue
        except SlowwaveError as error:
            failures += 1
            answers.failed[f"{language.name} failed: {type(error).__name__}"] += 1
            if failures == FAILURES_IN_A_ROW:
                break
            continue
        failures = 0
        if isinstance(found, str):
            answers.failed[found] += 1
            continue
        cited = [group.member_ids[position] for position in found.cited]
        answers.summaries.append(
            {"memory_id": group.memory_id, "content": found.content, "cited": cited, "model": model, "call_key": key}
        )
    return answers


async def model_summaries(connection: ScopedConnection, context: RunContext, answers: _Answers) -> StepOutcome:
    """Keep what the model wrote, beside the summaries that it is about."""
    written: list[Any] = []
    if answers.summaries:
        result = await connection.execute(_WRITE, summaries=json.dumps(answers.summaries))
        written = list(result.scalars())
    skipped = {f"{reason}; the extractive summary stays": count for reason, count in answers.failed.items()}
    left = answers.waiting - answers.asked
    if left:
        skipped["left for a later night"] = left
    if len(answers.summaries) > len(written):
        skipped["its members changed meanwhile"] = len(answers.summaries) - len(written)
    return StepOutcome(
        candidates=answers.waiting,
        changed=len(written),
        skipped=skipped,
        sample=tuple(str(memory_id) for memory_id in sorted(written, key=str)[:SAMPLE_SIZE]),
        counts={"model_summaries_created": len(written)},
        reason=""
        if written
        else "every summary has a model's text already"
        if not answers.waiting
        else "; ".join(answers.failed) or "no summary could be asked about",
    )


async def _ask(
    group: _Group, language: LanguageModel, cache: CallCache, budget: Budget
) -> tuple[SummaryText | str, str, str]:
    """The summary or why there is none, the call's key, and the model that answered."""
    system, prompt = summary_prompt(group.name, group.texts)
    request = ModelRequest(
        purpose="summarise",
        model=language.name,
        system=system,
        prompt=prompt,
        response_schema=RESPONSE_SCHEMA,
        temperature=0.0,
        max_output_tokens=OUTPUT_TOKENS,
        schema_version=PROMPT_VERSION,
    )
    answer = await cache.find(request)
    kept = answer is not None
    if answer is None:
        budget.reserve(len((system + prompt).encode("utf-8", "surrogatepass")) // 3 + OUTPUT_TOKENS)
        answer = await language.complete(request)
        budget.spend(answer)
    found = read_summary(answer.text, len(group.texts))
    if not kept and not isinstance(found, str):
        await cache.store(request, answer)
    return found, request.cache_key(), answer.model


def _is_enabled(context: RunContext) -> bool:
    return context.language is not None and context.section(SECTION, MetaNodesSettings).model_summaries


STEP = Step(NAME, model_summaries, read=read, call=call, undone=UNDONE, enabled=_is_enabled)
