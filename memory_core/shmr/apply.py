"""SHMR's step apply: carries out each accepted cluster in a transaction of its own.

Every source is locked and its version compared first: a cluster whose sources changed while a model was thinking is
dropped and its members wait again. SHMR inserts nothing into `memories`: losers give way to a memory or to a belief,
a dampened memory loses confidence once for a reason, and beliefs carry their evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs import superseding
from memory_core.beliefs.beliefs import NewBelief, former_beliefs, hold_belief, refused_beliefs
from memory_core.beliefs.cascade import withdraw_support
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import GuardTripped, TransientError
from memory_core.layers.normal_text import normalise
from memory_core.runs.context import RunContext, Step
from memory_core.runs.guards import GuardSettings, check_guards
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.effects import Sources, dampen, lock_sources, supersede
from memory_core.shmr.harmonize import unpack
from memory_core.shmr.queue import keep_decisions, put_back
from memory_core.shmr.stored import shmr_settings, vector_text
from memory_core.shmr.translation import belief_id
from memory_core.shmr.wording import normalise_predicate, split_negation

NAME = "apply"

_MARK = """
UPDATE memory_resonance_clusters SET status = :status, reason = nullif(CAST(:reason AS text), ''),
  proposal = proposal - 'vectors'
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id AND cluster_id = :cluster_id
"""

_ACCEPTED = """
SELECT cluster_id, members, proposal, iteration, model_call_key FROM memory_resonance_clusters
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id AND cluster_id = :cluster_id
  AND status = 'accepted'
"""

# The parts that are done stay in the list, so that a resumed run finds their outcomes.
_PARTS = """
SELECT cluster_id FROM memory_resonance_clusters
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id
  AND (status IN ('accepted', 'applied', 'changed_meanwhile') OR (status = 'failed' AND proposal IS NOT NULL))
ORDER BY cluster_id
"""

_WOULD_HIDE = """
SELECT count(*) FILTER (WHERE m.retired_at IS NULL AND m.superseded_reason IS NULL
                           OR m.retired_by_run = :run_id OR m.superseded_by_run = :run_id) AS before,
       count(*) FILTER (WHERE m.retired_by_run = :run_id OR m.superseded_by_run = :run_id OR
                        (m.retired_at IS NULL AND m.superseded_reason IS NULL AND m.id IN (
                          SELECT CAST(s ->> 'loser' AS uuid)
                          FROM memory_resonance_clusters c,
                            jsonb_array_elements(c.proposal -> 'decision' -> 'supersedes') AS s
                          WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id
                            AND c.status = 'accepted'
                        ))) AS hidden
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.recorded_at <= :as_of
"""

UNDONE = f"""
SELECT 'harmonize' AS phase, d.decision_key, d.members FROM decisions d
WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.run_id = CAST(:id AS uuid)
  AND d.phase = 'harmonize' AND d.verdict = 'decided'
UNION ALL
{superseding.UNDONE}UNION ALL
SELECT d.phase, d.decision_key, d.members FROM decisions d
WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.run_id = CAST(:id AS uuid)
  AND d.phase = 'dampen' AND d.verdict = 'decided'
UNION ALL
SELECT 'belief', slowwave.decision_key('belief', b.content), jsonb_build_array(b.belief_id)
FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = :scope_path AND b.created_by_run = CAST(:id AS uuid)
"""


async def parts(connection: ScopedConnection, context: RunContext) -> Sequence[str]:
    """The accepted clusters, after a look at what they would hide together.

    Raises:
        GuardTripped: they would take more out of default recall than one run may; nothing is applied.
    """
    found = await connection.row(_WOULD_HIDE)
    assert found is not None  # an aggregate without GROUP BY has one row
    settings = context.section("guards", GuardSettings)
    allowed = max(settings.hide_share * found["before"], settings.hide_at_least)
    if found["hidden"] > allowed and not context.accepted:
        raise GuardTripped(
            f"The run would take out of default recall {found['hidden']} of {found['before']} memories, "
            f"and the guard hide_share allows {int(allowed)}.",
            hint="Look at it with --dry-run; run it with --accept if that is right.",
            guard="hide_share",
            number=found["hidden"],
            of=found["before"],
            allowed=int(allowed),
        )
    return list((await connection.execute(_PARTS)).scalars())


async def apply_cluster(connection: ScopedConnection, context: RunContext, cluster_id: str) -> StepOutcome:
    """Carry out one cluster, or find that its sources changed meanwhile. What fails here fails for it alone."""
    found = await connection.row(_ACCEPTED, cluster_id=cluster_id)
    if found is None:
        return StepOutcome(reason="the cluster is closed already")
    try:
        async with connection.raw.begin_nested():
            return await _apply(connection, context, found)
    except (TransientError, GuardTripped):
        raise
    except Exception as error:  # one cluster's fault must not keep the others from being applied
        reason = f"{type(error).__name__} while it was applied"
        await connection.execute(_MARK, status="failed", reason=reason, cluster_id=cluster_id)
        await put_back(connection, [cluster_id])
        return StepOutcome(candidates=1, skipped={"failed": 1}, reason=reason)


async def _apply(connection: ScopedConnection, context: RunContext, cluster: RowMapping) -> StepOutcome:
    cluster_id, proposal = cluster["cluster_id"], cluster["proposal"]
    sources = await lock_sources(connection, cluster["members"])
    if sources.changed:
        reason = f"{len(sources.changed)} of its memories changed while it was decided"
        await connection.execute(_MARK, status="changed_meanwhile", reason=reason, cluster_id=cluster_id)
        await put_back(connection, [cluster_id])
        return StepOutcome(candidates=1, skipped={"changed meanwhile": 1}, reason=reason)
    decision = ClusterDecision.from_dict(proposal["decision"])
    skipped: Counter[str] = Counter()
    believed = {belief_id(context.run.scope, belief): belief.content for belief in decision.beliefs}
    refused = await refused_beliefs(connection, believed, reconsider=context.reconsider)
    skipped.update(refused.values())
    believed = {id: content for id, content in believed.items() if id not in refused}
    replaced = await supersede(connection, context, decision.supersedes, sources, believed, skipped)
    dampened = await dampen(connection, context, decision.dampens, sources, shmr_settings(context), skipped)
    held = await _hold(connection, context, cluster, decision, sources, replaced, believed, skipped)
    withdrawn = await withdraw_support(
        connection, [*replaced, *dampened], "what it rested on was replaced or weakened", at=connection.as_of
    )
    await keep_decisions(connection, [cluster_id], "decided", proposal["version"])
    await connection.execute(_MARK, status="applied", reason="", cluster_id=cluster_id)
    return StepOutcome(
        candidates=1,
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


async def _hold(
    connection: ScopedConnection,
    context: RunContext,
    cluster: RowMapping,
    decision: ClusterDecision,
    sources: Sources,
    replaced: Sequence[UUID],
    believed: Mapping[UUID, str],
    skipped: Counter[str],
) -> int:
    vectors = unpack(cluster["proposal"].get("vectors"))
    gone = set(replaced)
    ids = [belief_id(context.run.scope, belief) for belief in decision.beliefs]
    held = 0
    for position, belief in enumerate(decision.beliefs):
        if ids[position] not in believed:
            continue
        # What was to be overridden and was not still speaks against it.
        standing = [memory_id for memory_id in belief.superseded if memory_id not in gone]
        if any(sources.by_id[memory_id]["by_person"] for memory_id in standing if memory_id in sources.by_id):
            skipped["a person's correction or confirmation says otherwise"] += 1
            continue
        new = NewBelief(
            belief_id=ids[position],
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
            model=cluster["proposal"]["by"],
            version=cluster["proposal"]["version"],
            call_key=cluster["model_call_key"],
            embedding_model=context.embedding.model,
            vector=None if vectors is None else vector_text(vectors[position]),
            dimension=0 if vectors is None else vectors.shape[1],
        )
        former = await former_beliefs(connection, new, ids)
        about = _slot_key(belief.subject, belief.predicate)
        same = [row["belief_id"] for row in former if _slot_key(row["subject"], row["predicate"]) == about]
        await hold_belief(connection, new, former=same)
        held += 1
    return held


def _slot_key(subject: str, predicate: str) -> tuple[str, str]:
    return normalise(subject), normalise_predicate(split_negation(predicate.replace("_", " "))[0])


async def apply(connection: ScopedConnection, context: RunContext, answer: Sequence[StepOutcome]) -> StepOutcome:
    """Add up what the clusters came to, under the guard."""
    await check_guards(connection, context)
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for outcome in answer or ():
        counts.update(outcome.counts)
        skipped.update(outcome.skipped)
    changed = sum(outcome.changed for outcome in answer or ())
    return StepOutcome(
        candidates=len(answer or ()),
        changed=changed,
        skipped=dict(skipped),
        sample=tuple(item for outcome in answer or () for item in outcome.sample)[:SAMPLE_SIZE],
        counts=dict(counts),
        reason=""
        if changed
        else "no cluster was accepted"
        if not answer
        else "; ".join(sorted(skipped)) or "nothing to change",
    )


STEP = Step(NAME, apply, parts=parts, write_part=apply_cluster, needs=("score",), undone=UNDONE)
