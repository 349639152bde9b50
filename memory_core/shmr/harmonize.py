"""SHMR's step harmonize: decides each cluster, by rules or with a model, while no transaction is open.

A model that fails never becomes a silent fall-back: `on_model_failure` says whether the cluster waits for another
night or is decided by rules, and the cluster says which it was.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import DependencyMissing, SlowwaveError, TransientError
from memory_core.models.budgets import Budget
from memory_core.models.paid_model import MODEL_ERRORS
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.runs.spending import budget_left
from memory_core.shmr.belief_vectors import pack
from memory_core.shmr.by_model import Asked, ask_model
from memory_core.shmr.decided import Decided
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.queue import keep_decisions, put_back
from memory_core.shmr.rules import RULES_VERSION, harmonize_by_rules
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster, clusters_of_run, shmr_settings

NAME = "harmonize"

DEFERRED = ("parse_error", "model_unavailable", "budget_exhausted", "failed")
"""Outcomes that decide nothing: the members wait for another night."""

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
    """What is to be decided, and what may be spent on it; None where no model is asked."""

    clusters: list[StoredCluster]
    budget: Budget | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of each cluster, in their order; `spending` is what a model was expected to cost, and did."""

    decided: list[Decided]
    spending: dict[str, Any] = field(default_factory=dict)


async def read(connection: ScopedConnection, context: RunContext) -> Question:
    """The run's pending clusters with their members, and what the run may still spend."""
    clusters = await clusters_of_run(connection, context.embedding.model, ["pending"])
    budget = None if context.language is None else await budget_left(connection, context)
    return Question(clusters, budget)


async def call(question: Question, context: RunContext, database: Database) -> Answer:
    """Decide every cluster.

    Raises:
        TransientError: the model failed for a passing reason, and the step is tried again: what it answered is kept
            and not bought again, and the longest wait that its provider asked for is in `retry_after`.
    """
    if not question.clusters:
        return Answer([])
    if context.language is None or question.budget is None:
        return Answer(await asyncio.to_thread(_by_rules, question.clusters, shmr_settings(context)))
    try:
        if context.settings.model_cache != "replay":
            await context.language.check()
    except (*MODEL_ERRORS, DependencyMissing) as error:
        if isinstance(error, TransientError) and not (context.last_attempt or context.run.dry_run):
            raise
        return Answer(_without_model(question.clusters, context, error))
    asked = await ask_model(question.clusters, question.budget, context, database, context.language)
    return Answer(_in_order(question.clusters, asked, context), asked.spending)


async def harmonize(connection: ScopedConnection, context: RunContext, found: Answer) -> StepOutcome:
    """Store what was decided; what was not waits again, and what has nothing to say is not asked again."""
    answer = found.decided
    await connection.execute(_STORE, decided=json.dumps([_document(each) for each in answer]))
    await put_back(connection, [each.cluster_id for each in answer if each.status in DEFERRED])
    for status in ("nothing_to_say", "rejected"):
        versions = {each.cluster_id: each.version for each in answer if each.status == status}
        await keep_decisions(connection, versions, status)
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
            "items_rejected": sum("left_out" not in entry for each in answer for entry in each.rejected),
        },
        details={
            "decided_by": dict(Counter(each.by for each in answer)),
            "not_all_shown": sum(any("left_out" in entry for entry in each.rejected) for each in answer),
            **_stood_in(answer),
            **found.spending,
        },
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


def _in_order(clusters: list[StoredCluster], asked: Asked, context: RunContext) -> list[Decided]:
    results: list[Decided] = []
    for position, cluster in enumerate(clusters):
        if position in asked.decided:
            results.append(asked.decided[position])
        elif error := asked.failed.get(position) or asked.error:
            results += _without_model([cluster], context, error)
        else:
            results.append(Decided(cluster.cluster_id, "budget_exhausted", _model(context), "", reason=asked.fruitless))
    return results


def _without_model(clusters: list[StoredCluster], context: RunContext, error: SlowwaveError) -> list[Decided]:
    """What becomes of clusters that the configured model could not be asked about."""
    name = _model(context)
    if context.settings.on_model_failure == "rules":
        decided = _by_rules(clusters, shmr_settings(context))
        for each in decided:
            reason = f"{name} failed, so rules decided: {type(error).__name__}"
            each.rejected.append({"reason": reason, "instead_of": name, "error": str(error)})
        return decided
    reason = f"{name} failed: {error}"
    return [Decided(each.cluster_id, "model_unavailable", name, "", reason=reason) for each in clusters]


def _model(context: RunContext) -> str:
    return context.language.name if context.language is not None else "rules"


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
    proposal: dict[str, Any] | None = None
    if decided.decision is not None:
        proposal = {
            "decision": decided.decision.to_dict(),
            "by": decided.by,
            "version": decided.version,
            "vectors": pack(decided.vectors),
        }
        if decided.call_keys:
            proposal["call_keys"] = list(decided.call_keys)
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
