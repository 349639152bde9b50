"""Summaries by a model, off unless switched on: beside the extractive one of a group, each sentence citing members.

No model's text enters the memories: it is kept in a table of its own, for the very members that it was made from. A
group whose members change has a new extractive summary, and so a new question. Whatever the model fails to do, the
extractive summary stays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.models.budgets import Budget
from memory_core.models.call_cache import CallCache
from memory_core.models.paid_model import PaidModel
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.runs.spending import budget_left
from memory_core.sleep.meta_rows import MetaNodesSettings
from memory_core.sleep.summary_calls import Answers, Group, ask_about_groups
from memory_core.sleep.summary_prompt import PROMPT_VERSION

NAME = "model_summaries"
SECTION = "meta_nodes"
LONGEST_TEXT = 600
"""Characters of one member that a model is shown."""

MOST_SHOWN = 60
"""Members of one group that a model is shown; those that the extractive summary quotes come first."""

_QUESTION = ("m.derived_key", "m.properties ->> 'members_hash'")
_KEY = f"slowwave.decision_key('{NAME}', {', '.join(_QUESTION)})"

_READ = f"""
WITH without AS MATERIALIZED (
  SELECT m.id, m.label, m.properties, CAST(m.properties ->> 'member_count' AS integer) AS member_count,
         NOT {not_undone(NAME, *_QUESTION)} AS taken_back,
         NOT CAST(:reconsider AS boolean) AND EXISTS (
           SELECT FROM decisions d
           WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.decision_key = {_KEY}
             AND d.verdict = 'rejected' AND d.rules_version = :version) AS turned_down
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NOT NULL
    AND m.source IN ('meta_nodes', 'episodic_summaries') AND m.retired_at IS NULL AND m.recorded_at <= :as_of
    AND NOT EXISTS (SELECT FROM memory_summaries s WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path
                    AND s.memory_id = m.id)
), counts AS (
  SELECT count(*) AS candidates, count(*) FILTER (WHERE taken_back) AS taken_back,
         count(*) FILTER (WHERE turned_down AND NOT taken_back) AS turned_down
  FROM without
), chosen AS (
  SELECT * FROM without WHERE NOT taken_back AND NOT turned_down
  ORDER BY member_count DESC NULLS LAST, id LIMIT :most
)
SELECT n.candidates, n.taken_back, n.turned_down, c.id, c.label, c.member_count, t.id AS member_id, t.content
FROM counts n
LEFT JOIN chosen c ON true
LEFT JOIN LATERAL (
  SELECT t.id, t.observed_at, left(t.content, {LONGEST_TEXT}) AS content
  FROM memory_edges e JOIN memories t ON t.tenant_id = :tenant_id AND t.id = e.target_id
  WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.source_id = c.id
    AND e.kind = 'clusters' AND e.status <> 'retired'
  ORDER BY jsonb_exists(c.properties -> 'cited', CAST(t.id AS text)) DESC, t.observed_at, t.id
  LIMIT {MOST_SHOWN}
) AS t ON true
ORDER BY c.member_count DESC NULLS LAST, c.id, t.observed_at, t.id
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

# What a model could not answer is not asked again in the same words: it would cost as much and bring as little.
_TURN_DOWN = f"""
INSERT INTO decisions AS d (tenant_id, scope_path, decision_key, phase, verdict, members, rules_version, run_id,
                            decided_at, created_by_run)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), {_KEY}, '{NAME}', 'rejected', jsonb_build_array(m.id),
       CAST(:version AS text), CAST(:run_id AS uuid), CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = ANY (CAST(:ids AS uuid[]))
ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
SET verdict = excluded.verdict, members = excluded.members, rules_version = excluded.rules_version,
    run_id = excluded.run_id, decided_at = excluded.decided_at
"""

UNDONE = f"""
SELECT '{NAME}' AS phase, {_KEY} AS decision_key, jsonb_build_array(m.id) AS members
FROM memory_summaries s JOIN memories m ON m.tenant_id = s.tenant_id AND m.id = s.memory_id
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.created_by_run = CAST(:id AS uuid)
"""


@dataclass(frozen=True, slots=True)
class _Question:
    candidates: int
    skipped: dict[str, int]
    groups: tuple[Group, ...]
    budget: Budget


@dataclass(frozen=True, slots=True)
class _Answered:
    question: _Question
    answers: Answers


async def read(connection: ScopedConnection, context: RunContext) -> _Question:
    """The summaries without a model's text, the largest groups first, with the members that they are linked to."""
    settings = context.section(SECTION, MetaNodesSettings)
    rows = await connection.rows(
        _READ, most=settings.most_model_summaries, reconsider=context.reconsider, version=_version(context)
    )
    counts = rows[0]
    groups = [
        Group(
            memory_id=str(memory_id),
            name=members[0]["label"].removeprefix("META: "),
            member_count=members[0]["member_count"] or len(members),
            member_ids=tuple(str(row["member_id"]) for row in members),
            texts=tuple(row["content"] for row in members),
        )
        for memory_id, found in groupby((row for row in rows if row["member_id"] is not None), lambda row: row["id"])
        for members in [list(found)]
    ]
    skipped = {
        "taken back by a person": counts["taken_back"],
        "an answer was turned down before, and its members are unchanged": counts["turned_down"],
    }
    return _Question(counts["candidates"], skipped, tuple(groups), await budget_left(connection, context))


async def call(question: _Question, context: RunContext, database: Database) -> _Answered:
    """Ask about each group; no transaction is open. A model that keeps failing is not asked further."""
    if context.language is None or not question.groups:
        return _Answered(question, Answers())
    cache = CallCache(database, context.run.scope, context.run.id, context.settings.model_cache)
    model = PaidModel(context.language, cache, question.budget)
    return _Answered(question, await ask_about_groups(question.groups, model))


async def model_summaries(connection: ScopedConnection, context: RunContext, answered: _Answered) -> StepOutcome:
    """Keep what the model wrote, beside the summaries that it is about."""
    question, answers = answered.question, answered.answers
    written: list[Any] = []
    if answers.summaries:
        result = await connection.execute(_WRITE, summaries=json.dumps(answers.summaries))
        written = list(result.scalars())
    if answers.turned_down:
        await connection.execute(_TURN_DOWN, ids=answers.turned_down, version=_version(context))
    skipped = {
        **question.skipped,
        **{f"{reason}; the extractive summary stays": count for reason, count in answers.failed.items()},
        "left for a later night": question.candidates - sum(question.skipped.values()) - answers.asked,
        "its members changed meanwhile": len(answers.summaries) - len(written),
    }
    return StepOutcome(
        candidates=question.candidates,
        changed=len(written),
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(str(memory_id) for memory_id in sorted(written, key=str)[:SAMPLE_SIZE]),
        counts={
            "model_summaries_created": len(written),
            "sentences_left_out": answers.sentences_left_out,
            "model_calls": answers.calls,
            "model_tokens": answers.tokens,
        },
        reason=""
        if written
        else "every summary has a model's text already"
        if not question.candidates
        else "; ".join(answers.failed) or "no summary could be asked about",
    )


def _version(context: RunContext) -> str:
    """Who was asked with which words: another model, or another prompt, may do better."""
    return f"prompt:{PROMPT_VERSION}:{context.language.name if context.language is not None else ''}"


def _is_enabled(context: RunContext) -> bool:
    return context.language is not None and context.section(SECTION, MetaNodesSettings).model_summaries


STEP = Step(NAME, model_summaries, read=read, call=call, undone=UNDONE, enabled=_is_enabled)
