"""SHMR's step harmonize: decides each cluster, by rules or with a model, while no transaction is open.

A model that fails never becomes a silent fall-back: `on_model_failure` says whether the cluster waits for another
night or is decided by rules, and the cluster says which it was.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, PermanentError, SlowwaveError, TransientError
from memory_core.models.budgets import Budget
from memory_core.models.call_cache import CallCache
from memory_core.models.language import LanguageModel
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.runs.spending import limits_of
from memory_core.shmr.belief_vectors import pack
from memory_core.shmr.conversation import Conversation, Decided
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.queue import keep_decisions, put_back
from memory_core.shmr.rules import RULES_VERSION, harmonize_by_rules
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster, clusters_of_run, shmr_settings

NAME = "harmonize"

DEFERRED = ("parse_error", "model_unavailable", "budget_exhausted", "failed")
"""Outcomes that decide nothing: the members wait for another night."""

FAILURES_IN_A_ROW = 3
"""Calls that may fail one after another before the rest is not tried any more."""

_STORE = """
UPDATE memory_resonance_clusters c
SET status = d.status, reason = nullif(d.reason, ''), iteration = d.iteration, score = d.score, proposal = d.proposal,
    rejected = d.rejected, model = d.model, model_call_key = d.call_key
FROM jsonb_to_recordset(CAST(:decided AS jsonb)) AS d(cluster_id text, status text, reason text, iteration integer,
     score double precision, proposal jsonb, rejected jsonb, model text, call_key text)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.cluster_id = d.cluster_id
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be decided, and what may be spent on it."""

    clusters: list[StoredCluster]
    budgets: dict[str, Any]


async def read(connection: ScopedConnection, context: RunContext) -> Question:
    """The run's pending clusters with their members, and the tenant's budget."""
    clusters = await clusters_of_run(connection, context.embedding.model, ["pending"])
    budgets = await connection.scalar("SELECT budgets FROM tenants WHERE tenant_id = :tenant_id")
    return Question(clusters, budgets or {})


async def call(question: Question, context: RunContext, database: Database) -> list[Decided]:
    """Decide every cluster.

    Raises:
        TransientError: the model was there, and every call failed for a passing reason; nothing was decided.
    """
    settings = shmr_settings(context)
    if not question.clusters:
        return []
    if context.language is None:
        return await asyncio.to_thread(_by_rules, question.clusters, settings)
    try:
        if context.settings.model_cache != "replay":
            await context.language.check()
    except (TransientError, PermanentError) as error:
        return _without_model(question.clusters, context, settings, error)
    return await _with_model(question, context, database, context.language, settings)


async def harmonize(connection: ScopedConnection, context: RunContext, answer: list[Decided]) -> StepOutcome:
    """Store what was decided; what was not waits again, and what has nothing to say is not asked again."""
    await connection.execute(_STORE, decided=json.dumps([_document(each) for each in answer]))
    await put_back(connection, [each.cluster_id for each in answer if each.status in DEFERRED])
    for status in ("nothing_to_say", "rejected"):
        chosen = [each for each in answer if each.status == status]
        for version in sorted({each.version for each in chosen}):
            ids = [each.cluster_id for each in chosen if each.version == version]
            await keep_decisions(connection, ids, status, version)
    statuses = Counter(each.status for each in answer)
    proposed = statuses["proposed"]
    reasons = sorted({each.reason for each in answer if each.reason and each.status != "proposed"})
    return StepOutcome(
        candidates=len(answer),
        changed=proposed,
        skipped={status: count for status, count in sorted(statuses.items()) if status != "proposed"},
        sample=tuple(each.cluster_id for each in answer[:SAMPLE_SIZE] if each.status == "proposed"),
        counts={
            "proposed": proposed,
            "attempts": sum(each.iteration for each in answer if each.by != "rules"),
            "items_rejected": sum(len(each.rejected) for each in answer),
        },
        details={"decided_by": dict(Counter(each.by for each in answer)), **_stood_in(answer)},
        reason="" if proposed else "; ".join(reasons[:3]) or "there is no cluster to decide",
    )


def _stood_in(answer: list[Decided]) -> dict[str, Any]:
    """For how many clusters rules stood in for a model that failed, and how it failed first; empty where for none."""
    failed = [entry for each in answer for entry in each.rejected if "instead_of" in entry]
    if not failed:
        return {}
    return {
        "rules_instead_of": {"model": failed[0]["instead_of"], "clusters": len(failed), "error": failed[0]["error"]}
    }


async def _with_model(
    question: Question, context: RunContext, database: Database, language: LanguageModel, settings: ShmrSettings
) -> list[Decided]:
    run = context.run
    budget = Budget(limits_of(context, question.budgets))
    cache = CallCache(database, run.scope, run.id, context.settings.model_cache)
    conversation = Conversation(language, context.embedding, cache, budget, settings, run.scope)
    results: list[Decided] = []
    failures = 0
    last: SlowwaveError | None = None
    for position, cluster in enumerate(question.clusters):
        try:
            results.append(await conversation.about(cluster))
            failures = 0
        except InvalidInput as error:
            # Nothing is wrong with the model: this cluster cannot be put into a prompt as the settings are.
            results.append(Decided(cluster.cluster_id, "failed", language.name, "", reason=str(error)))
        except SlowwaveError as error:
            last = error
            failures += 1
            results += _without_model([cluster], context, settings, error)
        if failures >= FAILURES_IN_A_ROW and last is not None:
            results += _without_model(question.clusters[position + 1 :], context, settings, last)
            break
    nothing_done = all(each.status == "model_unavailable" for each in results)
    if nothing_done and isinstance(last, TransientError) and not run.dry_run:
        raise last
    return results


def _without_model(
    clusters: list[StoredCluster], context: RunContext, settings: ShmrSettings, error: SlowwaveError
) -> list[Decided]:
    """What becomes of clusters that the configured model could not be asked about."""
    name = context.language.name if context.language is not None else "rules"
    if context.settings.on_model_failure == "rules":
        decided = _by_rules(clusters, settings)
        for each in decided:
            reason = f"{name} failed, so rules decided: {type(error).__name__}"
            each.rejected.append({"reason": reason, "instead_of": name, "error": str(error)})
        return decided
    reason = f"{name} failed: {error}"
    return [Decided(each.cluster_id, "model_unavailable", name, "", reason=reason) for each in clusters]


def _by_rules(clusters: list[StoredCluster], settings: ShmrSettings) -> list[Decided]:
    version = f"rules:{RULES_VERSION}"
    results = []
    for each in clusters:
        decision = _stating_denials(each, harmonize_by_rules(each.members, each.slots, each.vectors, settings))
        status = "proposed" if decision.outcome == "decided" else "nothing_to_say"
        reason = "" if status == "proposed" else "the rules find no duplicate, update or contradiction in it"
        rejected = [{"attempt": 1, "reason": item.reason} for item in decision.rejected]
        results.append(
            Decided(each.cluster_id, status, "rules", version, decision, reason, iteration=1, rejected=rejected)
        )
    return results


def _stating_denials(cluster: StoredCluster, decision: ClusterDecision) -> ClusterDecision:
    """A sentence's denial is in its slot's polarity alone; the belief's triple must state it too."""
    denied = {
        member.content
        for member, slot in zip(cluster.members, cluster.slots, strict=True)
        if slot is not None and not slot.polarity and not member.has_triple
    }
    beliefs = tuple(
        replace(belief, object=f"not {belief.object}")
        if belief.status == "held" and belief.content in denied
        else belief
        for belief in decision.beliefs
    )
    return replace(decision, beliefs=beliefs)


def _document(decided: Decided) -> dict[str, Any]:
    proposal = None
    if decided.decision is not None:
        proposal = {
            "decision": decided.decision.to_dict(),
            "by": decided.by,
            "version": decided.version,
            "vectors": pack(decided.vectors),
        }
    return {
        "cluster_id": decided.cluster_id,
        "status": decided.status,
        "reason": decided.reason[:2000].replace("\0", ""),
        "iteration": decided.iteration,
        "score": decided.score,
        "proposal": proposal,
        "rejected": decided.rejected,
        "model": decided.by,
        "call_key": decided.call_key,
    }


STEP = Step(NAME, harmonize, read=read, call=call, needs=("cluster",))
