"""Carries out a page of clusters at once: one cluster or many, by the same statements.

Every source is locked and its version compared first: a cluster whose sources changed while it was decided is left
out, and its members wait again. SHMR inserts nothing into `memories`: losers give way to a memory or to a belief, a
dampened memory loses confidence once for a reason, and beliefs carry their evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs.beliefs import (
    NewBelief,
    former_beliefs,
    hold_beliefs,
    refused_beliefs,
    replace_beliefs,
)
from memory_core.beliefs.cascade import withdraw_support
from memory_core.database.scoped import ScopedConnection
from memory_core.layers.normal_text import normalise
from memory_core.runs.context import RunContext
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.belief_vectors import BeliefVectors
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.effects import Case, Sources, dampen, lock_sources, supersede
from memory_core.shmr.queue import keep_decisions, put_back
from memory_core.shmr.stored import shmr_settings
from memory_core.shmr.translation import belief_id
from memory_core.shmr.wording import normalise_predicate, split_negation

_CLOSE = """
UPDATE memory_resonance_clusters SET status = :status, reason = nullif(CAST(:reason AS text), ''),
  proposal = proposal - ARRAY['vectors', 'vectors_of']
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id AND cluster_id = ANY(:ids)
"""


async def close_clusters(connection: ScopedConnection, cluster_ids: Sequence[str], status: str, reason: str) -> None:
    """Give clusters of the run their last status; the vectors of what was proposed are not needed any more."""
    if cluster_ids:
        await connection.execute(_CLOSE, ids=list(cluster_ids), status=status, reason=reason)


async def carry_out(connection: ScopedConnection, context: RunContext, clusters: Sequence[RowMapping]) -> StepOutcome:
    """Carry out accepted clusters that share no memory, in the open transaction.

    Beliefs that rested on memories of several of the clusters follow all of these together.

    Args:
        clusters: rows of `memory_resonance_clusters`.
    """
    skipped: Counter[str] = Counter()
    sources = await lock_sources(connection, [cluster["members"] for cluster in clusters])
    await _leave_out_changed(connection, clusters, sources, skipped)
    unchanged = [(cluster, source) for cluster, source in zip(clusters, sources, strict=True) if not source.changed]
    cases = await _cases(connection, context, unchanged, skipped)
    replaced = await supersede(connection, context, cases, skipped)
    dampened = await dampen(connection, context, cases, shmr_settings(context), skipped)
    held = await _hold(connection, context, cases, set(replaced), skipped)
    withdrawn = await withdraw_support(
        connection, [*replaced, *dampened], "what it rested on was replaced or weakened", at=connection.as_of
    )
    versions = {case.cluster["cluster_id"]: case.cluster["proposal"]["version"] for case in cases}
    await keep_decisions(connection, versions, "decided")
    await close_clusters(connection, [case.cluster["cluster_id"] for case in cases], "applied", "")
    return StepOutcome(
        candidates=len(clusters),
        changed=len(replaced) + len(dampened) + held,
        skipped=dict(skipped),
        sample=tuple(str(memory_id) for memory_id in replaced[:SAMPLE_SIZE]),
        counts={
            "superseded": len(replaced),
            "dampened": len(dampened),
            "beliefs": held,
            "beliefs_withdrawn": withdrawn,
        },
    )


async def _leave_out_changed(
    connection: ScopedConnection,
    clusters: Sequence[RowMapping],
    sources: Sequence[Sources],
    skipped: Counter[str],
) -> None:
    by_reason: dict[str, list[str]] = {}
    for cluster, source in zip(clusters, sources, strict=True):
        if source.changed:
            reason = f"{len(source.changed)} of its memories changed while it was decided"
            by_reason.setdefault(reason, []).append(cluster["cluster_id"])
    for reason, cluster_ids in by_reason.items():
        skipped["changed meanwhile"] += len(cluster_ids)
        await close_clusters(connection, cluster_ids, "changed_meanwhile", reason)
    await put_back(connection, [cluster_id for cluster_ids in by_reason.values() for cluster_id in cluster_ids])


async def _cases(
    connection: ScopedConnection,
    context: RunContext,
    clusters: Sequence[tuple[RowMapping, Sources]],
    skipped: Counter[str],
) -> list[Case]:
    decisions = [ClusterDecision.from_dict(cluster["proposal"]["decision"]) for cluster, _ in clusters]
    ids = [[belief_id(context.run.scope, belief) for belief in decision.beliefs] for decision in decisions]
    offered = [
        (position, id, belief.content)
        for position, decision in enumerate(decisions)
        for id, belief in zip(ids[position], decision.beliefs, strict=True)
    ]
    refused = await refused_beliefs(
        connection, [(id, content) for _, id, content in offered], reconsider=context.reconsider
    )
    skipped.update(refused.values())
    believed: list[dict[UUID, str]] = [{} for _ in clusters]
    for number, (position, id, content) in enumerate(offered):
        if number not in refused:
            believed[position][id] = content
    return [
        Case(cluster, source, decisions[position], ids[position], believed[position])
        for position, (cluster, source) in enumerate(clusters)
    ]


async def _hold(
    connection: ScopedConnection,
    context: RunContext,
    cases: Sequence[Case],
    gone: set[UUID],
    skipped: Counter[str],
) -> int:
    held: list[NewBelief] = []
    together: list[set[UUID]] = []
    for case in cases:
        new = _beliefs_of(case, gone, skipped)
        held += new
        together += [set(case.belief_ids)] * len(new)
    if not held:
        return 0
    former = await former_beliefs(connection, held)
    await hold_beliefs(connection, held, context.embedding.model)
    last = {belief.belief_id: position for position, belief in enumerate(held)}
    replaced: dict[UUID, NewBelief] = {}
    for each in former:
        new_belief = held[each.position]
        # Beliefs of one decision stand side by side, and what a later cluster says again is not replaced.
        if each.belief_id in together[each.position] or last.get(each.belief_id, -1) > each.position:
            continue
        if _slot_key(each.subject, each.predicate) == _slot_key(new_belief.subject, new_belief.predicate):
            replaced.setdefault(each.belief_id, new_belief)
    await replace_beliefs(connection, replaced)
    return len(held)


def _beliefs_of(case: Case, gone: set[UUID], skipped: Counter[str]) -> list[NewBelief]:
    cluster, proposal = case.cluster, case.cluster["proposal"]
    vectors = BeliefVectors.from_proposal(proposal)
    # A model that was asked in several calls has told each belief in one of them.
    calls = proposal.get("call_keys") or [cluster["model_call_key"]] * len(case.decision.beliefs)
    beliefs = []
    for position, belief in enumerate(case.decision.beliefs):
        if case.belief_ids[position] not in case.believed:
            continue
        # What was to be overridden and was not still speaks against it.
        standing = [memory_id for memory_id in belief.superseded if memory_id not in gone]
        by_id = case.sources.by_id
        if any(by_id[memory_id]["by_person"] for memory_id in standing if memory_id in by_id):
            skipped["a person's correction or confirmation says otherwise"] += 1
            continue
        beliefs.append(
            NewBelief(
                belief_id=case.belief_ids[position],
                subject=belief.subject,
                predicate=belief.predicate,
                object=belief.object,
                content=belief.content,
                status=belief.status,
                confidence=belief.confidence,
                evidence={
                    "supports": belief.supports,
                    "contradicts": [*belief.contradicts, *standing],
                    "superseded": [memory_id for memory_id in belief.superseded if memory_id in gone],
                },
                rationale=belief.rationale,
                valid_from=belief.valid_from,
                cluster_id=cluster["cluster_id"],
                iteration=cluster["iteration"],
                model=proposal["by"],
                version=proposal["version"],
                call_key=calls[position],
                vector=vectors.own[position],
                vector_of=vectors.of_memories[position],
            )
        )
    return beliefs


def _slot_key(subject: str, predicate: str) -> tuple[str, str]:
    return normalise(subject), normalise_predicate(split_negation(predicate.replace("_", " "))[0])
