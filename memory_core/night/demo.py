"""The demo: six weeks of two invented tenants, slept through night by night, and what is believed before and after.

*Before* is what a plain vector search over everything that was ever said answers first: a store that only appends.
*After* is what `recall` answers first once the nights are done, over the same memories with the same vectors. Both
are asked the same questions, and both are shown as they are, right or wrong.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import PermanentError
from memory_core.models.embedding import EmbeddingProvider, prepared_text
from memory_core.night.context import embedding_for
from memory_core.night.demo_store import URL_VARIABLE, DemoStore, fresh_demo_store, questions
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.sleep.morning_words import day

FIRST_NIGHT = datetime(2026, 1, 19, 3, tzinfo=UTC)
LAST_NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
NIGHTS = tuple(FIRST_NIGHT + timedelta(days=day) for day in range((LAST_NIGHT - FIRST_NIGHT).days + 1))

BEFORE = "a plain vector search over everything that was said, before any night"
AFTER = "recall, after the last night"

Replay = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Sends a request to the Prefect side (`flows.runner`) and returns its answer; not from a running event loop."""

Progress = Callable[[int, int, str], None]
"""Called with the nights done, the nights in all, and what comes next in words."""

_IMPORTED = ("lines", "inserted", "accesses", "edges", "corrections", "rejected", "unresolved")

_SHOWN = ("kind", "id", "external_id", "content", "subject", "predicate", "object", "score", "status", "observed_at")

_NEAREST = """
SELECT m.id, m.content, m.observed_at, m.source, 1 - (e.embedding <=> CAST(:vector AS vector)) AS score
FROM memory_embeddings e JOIN memories m ON m.tenant_id = e.tenant_id AND m.id = e.memory_id
WHERE e.tenant_id = :tenant_id AND e.scope_path = :scope_path AND e.model = :model AND e.aspect = 'content'
  AND e.dimension = :dimension AND m.derived_key IS NULL
ORDER BY e.embedding <=> CAST(:vector AS vector), m.id LIMIT 1
"""

# What an answer gave reasons for: the statements under it, and those that it replaced, directly or as a duplicate.
_REASONS = """
WITH RECURSIVE supports AS (
  SELECT CAST(:id AS uuid) AS id WHERE :kind = 'memory'
  UNION
  SELECT memory_id FROM belief_evidence
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND belief_id = CAST(:id AS uuid)
    AND role IN ('supports', 'contradicts')
), replaced AS (
  SELECT m.id, m.superseded_reason AS reason FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
    AND (m.superseded_by IN (SELECT id FROM supports) OR m.superseded_by_belief = CAST(:id AS uuid))
  UNION
  -- A repetition of what was replaced says the old thing too.
  SELECT m.id, CASE r.reason WHEN 'duplicate' THEN m.superseded_reason ELSE r.reason END
  FROM memories m JOIN replaced r ON m.superseded_by = r.id
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
)
SELECT 'supports' AS role, m.id, m.content, m.observed_at, m.source,
       NULL AS reason, m.derived_key IS NOT NULL AS derived
FROM supports s JOIN memories m ON m.tenant_id = :tenant_id AND m.id = s.id
WHERE m.superseded_reason IS DISTINCT FROM 'duplicate'
UNION ALL
SELECT CASE r.reason WHEN 'duplicate' THEN 'repeats' ELSE 'replaced' END, m.id, m.content, m.observed_at, m.source,
       r.reason, false
FROM replaced r JOIN memories m ON m.tenant_id = :tenant_id AND m.id = r.id
ORDER BY role, observed_at DESC, id
"""


def run_demo(settings: Settings, *, replay: Replay, progress: Progress | None = None) -> dict[str, Any]:
    """Tell the story; returns it as a JSON-able document, which `demo_report` shows.

    Args:
        settings: yours; the demo has a store of its own beside it.
        replay: how the nights are run: the entry point of the Prefect side.
        progress: told what is done.

    Raises:
        ScopeBusy: another demo is being told in this data folder.
        SlowwaveError: the store cannot be made, or the replay could not begin.
    """
    tell = progress or (lambda done, total, what: None)
    started = time.monotonic()
    tell(0, len(NIGHTS), "preparing the demo's own store")
    with fresh_demo_store(settings) as store:
        prepared = time.monotonic()
        tell(0, len(NIGHTS), "importing the sample")
        imported, before = asyncio.run(_before(store))
        asked = {
            "command": "replay",
            "tenants": list(imported),
            "nights": [night.isoformat() for night in NIGHTS],
            "requested_by": "demo",
            "progress": progress,
        }
        replaying = time.monotonic()
        replayed = replay(asked)
        asking = time.monotonic()
        tell(len(NIGHTS), len(NIGHTS), "asking again")
        answers = asyncio.run(_after(store, before))
    ended = time.monotonic()
    runs = list(replayed["runs"])
    return {
        "status": "done" if _all_well(replayed["nights"]) else "partial",
        "home": str(store.home),
        "imported": imported,
        "nights": list(replayed["nights"]),
        "runs": runs,
        "labels": {"before": BEFORE, "after": AFTER},
        "questions": answers,
        "answered": {
            "questions": len(answers),
            **{when: dict(Counter(answer[when]["answer"] for answer in answers)) for when in ("before", "after")},
        },
        "try": commands(store, runs, answers),
        "seconds": {
            "store": round(prepared - started, 2),
            "import": round(replaying - prepared, 2),
            "nights": round(asking - replaying, 2),
            "questions": round(ended - asking, 2),
            "all": round(ended - started, 2),
        },
    }


def commands(
    store: DemoStore, runs: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Commands to go on with, each with what it shows; they name the demo's folder, so yours is never meant."""
    # What is in the environment outranks the folder's settings file.
    outside = f"env -u {URL_VARIABLE} " if os.environ.get(URL_VARIABLE) else ""
    home = f"--home {shlex.quote(str(store.home))}"
    found: list[tuple[str, str]] = []
    beliefs = [answer for answer in answers if answer["after"].get("kind") == "belief"]
    changed = [answer for answer in beliefs if answer["before"]["answer"] != answer["after"]["answer"]] or beliefs
    if changed:
        answer = changed[0]
        found.append(
            (
                f"slowwave why {answer['after']['id']} --tenant {answer['tenant']}",
                "how a belief came to be, piece by piece",
            )
        )
    for run in runs[:1]:
        tenant = run["tenant"]
        question = shlex.quote(next((each["question"] for each in answers if each["tenant"] == tenant), "what is new"))
        found.append((f"slowwave recall {question} --tenant {tenant}", "ask for yourself"))
        found.append(
            (f"slowwave beliefs --tenant {tenant} --status contested", "what could not be decided, with both sides")
        )
        if run.get("run_id"):
            found.append(
                (f"slowwave run diff {run['run_id']} --tenant {tenant}", "every row that the last night changed")
            )
            found.append((f"slowwave run undo {run['run_id']} --tenant {tenant}", "take the last night back, exactly"))
    return [{"command": f"{outside}{command} {home}", "shows": shows} for command, shows in found]


async def _before(store: DemoStore) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from memory_core.interchange.importing import import_file

    provider = embedding_for(store.settings)
    imported: dict[str, Any] = {}
    answers: list[dict[str, Any]] = []
    async with Database.open(store.settings) as database:
        for (tenant, asked), file in zip(questions().items(), store.files, strict=True):
            scope = _scope(tenant, store.settings)
            report = (await import_file(database, provider, file, now=LAST_NIGHT, scope=scope)).to_dict()
            if report["rejects"]:
                first = report["rejects"][0]
                raise PermanentError(
                    f"The sample {file.name} was not taken whole: line {first['line']}: {first['reason']}"
                )
            imported[tenant] = {name: report[name] for name in _IMPORTED}
            async with database.scoped(scope) as connection:
                for question in asked:
                    found = await _nearest(connection, provider, question["question"])
                    answers.append({"tenant": tenant, **question, "before": _judged(found, question)})
    return imported, answers


async def _after(store: DemoStore, before: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from memory_core.retrieval.search import recall

    provider = embedding_for(store.settings)
    answers: list[dict[str, Any]] = []
    async with Database.open(store.settings) as database:
        for asked in before:
            scope = _scope(asked["tenant"], store.settings)
            found = await recall(database, scope, provider, asked["question"], now=LAST_NIGHT, k=1, record=False)
            first = next(iter(found["results"]), None)
            after: dict[str, Any] = {"content": None, "reasons": []}
            if first is not None:
                after = {name: first.get(name) for name in _SHOWN}
                async with database.scoped(scope) as connection:
                    after["reasons"] = await _reasons(connection, first["kind"], first["id"])
            answers.append({**asked, "after": _judged(after, asked), "why": why_in_words(after)})
    return answers


def why_in_words(answer: Mapping[str, Any]) -> str:
    """Why this is the answer: who said it when, how often, and what it replaced."""
    reasons: Sequence[Mapping[str, Any]] = answer.get("reasons") or ()
    by_role = {role: [each for each in reasons if each["role"] == role] for role in ("supports", "repeats", "replaced")}
    said, replaced = by_role["supports"], by_role["replaced"]
    if not said:
        return "no statement is known under it"
    if answer.get("status") == "contested":
        sides = "; ".join(f"“{each['content']}” ({_origin(each)})" for each in said)
        return f"undecided, and both sides are kept: {sides}"
    if said[0].get("derived"):
        return f"a summary of its group, as of {day(said[0]['observed_at'])}"
    more = len(said) - 1 + len(by_role["repeats"])
    told = f"said {_origin(said[0])}" + (f", and {more} more {'time' if more == 1 else 'times'}" if more else "")
    if not replaced:
        return f"{told}; no night found anything that it replaces"
    earlier = len(replaced) - 1
    rest = f" and {earlier} earlier {'one' if earlier == 1 else 'ones'}" if earlier else ""
    return f"{told}; {replaced[0]['reason']} of “{replaced[0]['content']}” ({_origin(replaced[0])}){rest}"


def _origin(reason: Mapping[str, Any]) -> str:
    return " by ".join(part for part in (day(reason["observed_at"]), reason.get("source") or "") if part)


def _scope(tenant: str, settings: Settings) -> TenantScope:
    return TenantScope.parse(tenant, root_kind=settings.root_kind)


def _judged(answer: Mapping[str, Any], question: Mapping[str, str]) -> dict[str, Any]:
    """The answer and whether it holds what is true now, what was true once, neither, or both sides undecided."""
    content = str(answer.get("content") or "")
    if answer.get("status") == "contested":
        return {**answer, "answer": "undecided"}
    judged = "current" if question["current"] in content else "outdated" if question["outdated"] in content else "other"
    return {**answer, "answer": judged}


async def _nearest(connection: ScopedConnection, provider: EmbeddingProvider, question: str) -> dict[str, Any]:
    vector = (await provider.embed([prepared_text(question)]))[0]
    row = await connection.row(
        _NEAREST,
        vector="[" + ",".join(map(str, vector.tolist())) + "]",
        model=provider.model,
        dimension=len(vector),
    )
    if row is None:
        return {"content": None}
    return {
        "id": str(row["id"]),
        "content": row["content"],
        "observed_at": row["observed_at"].isoformat(),
        "score": round(float(row["score"]), 4),
    }


async def _reasons(connection: ScopedConnection, kind: str, id: str) -> list[dict[str, Any]]:
    return [
        {**row, "id": str(row["id"]), "observed_at": row["observed_at"].isoformat()}
        for row in await connection.rows(_REASONS, id=id, kind=kind)
    ]


def _all_well(nights: Sequence[Mapping[str, Any]]) -> bool:
    return all(set(night["statuses"]) <= {"applied"} for night in nights)
