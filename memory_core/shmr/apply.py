"""SHMR's step apply: carries out the accepted clusters, those of a model each in a transaction of its own.

What rules decided is carried out by the page: a page is one transaction and a constant number of statements, however
many clusters it has. A page that fails is halved until the cluster that makes it fail stands alone, so that one
cluster's fault takes no other with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import RowMapping

from memory_core.beliefs import superseding
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import GuardTripped, TransientError
from memory_core.runs.context import RunContext, Step
from memory_core.runs.guards import GuardSettings, check_guards
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.page import carry_out, close_clusters
from memory_core.shmr.queue import put_back

NAME = "apply"

PAGE = 500
"""Clusters decided by rules that are carried out in one transaction."""

_BETWEEN = ".."

_ACCEPTED = """
SELECT cluster_id, members, proposal, iteration, model_call_key FROM memory_resonance_clusters
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id
  AND cluster_id BETWEEN :first AND :last AND status = 'accepted' AND (:first = :last OR model = 'rules')
ORDER BY cluster_id
"""

# The parts that are done stay in the list, so that a resumed run finds their outcomes.
_PARTS = """
SELECT cluster_id, model = 'rules' AS by_rules FROM memory_resonance_clusters
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

    Returns:
        the first and the last cluster of each page of those decided by rules, then each of a model's clusters.

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
    rows = await connection.rows(_PARTS)
    by_rules = [row["cluster_id"] for row in rows if row["by_rules"]]
    pages = [by_rules[start : start + PAGE] for start in range(0, len(by_rules), PAGE)]
    return [
        *(f"{page[0]}{_BETWEEN}{page[-1]}" for page in pages),
        *(row["cluster_id"] for row in rows if not row["by_rules"]),
    ]


async def apply_part(connection: ScopedConnection, context: RunContext, part: str) -> StepOutcome:
    """Carry out one cluster or one page of them. What fails for one cluster fails for it alone."""
    first, _, last = part.partition(_BETWEEN)
    clusters = await connection.rows(_ACCEPTED, first=first, last=last or first)
    if not clusters:
        return StepOutcome(reason="closed already")
    return _sum_of(await _apply(connection, context, clusters))


async def _apply(
    connection: ScopedConnection, context: RunContext, clusters: Sequence[RowMapping]
) -> list[StepOutcome]:
    try:
        async with connection.raw.begin_nested():
            return [await carry_out(connection, context, clusters)]
    except (TransientError, GuardTripped):
        raise
    except Exception as error:  # one cluster's fault must not keep the others from being applied
        if len(clusters) > 1:
            middle = len(clusters) // 2
            halves = (clusters[:middle], clusters[middle:])
            return [outcome for half in halves for outcome in await _apply(connection, context, half)]
        reason = f"{type(error).__name__} while it was applied"
        failed = [clusters[0]["cluster_id"]]
        await close_clusters(connection, failed, "failed", reason)
        await put_back(connection, failed)
        return [StepOutcome(candidates=1, skipped={"failed": 1}, reason=reason)]


def _sum_of(outcomes: Sequence[StepOutcome]) -> StepOutcome:
    counts: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.counts)
        skipped.update(outcome.skipped)
    return StepOutcome(
        candidates=sum(outcome.candidates for outcome in outcomes),
        changed=sum(outcome.changed for outcome in outcomes),
        skipped=dict(skipped),
        sample=tuple(item for outcome in outcomes for item in outcome.sample)[:SAMPLE_SIZE],
        counts=dict(counts),
        reason="; ".join(dict.fromkeys(outcome.reason for outcome in outcomes if outcome.reason)),
    )


async def apply(connection: ScopedConnection, context: RunContext, answer: Sequence[StepOutcome]) -> StepOutcome:
    """Add up what the clusters came to, under the guard."""
    await check_guards(connection, context)
    found = _sum_of(answer or ())
    reason = "no cluster was accepted" if not answer else "; ".join(sorted(found.skipped)) or "nothing to change"
    return replace(found, reason="" if found.changed else reason)


STEP = Step(NAME, apply, parts=parts, write_part=apply_part, needs=("score",), undone=UNDONE)
