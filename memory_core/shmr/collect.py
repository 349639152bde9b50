"""SHMR's step collect: finds what waits to be harmonised, oldest first, and what it is compared with.

Nothing is handed on in memory: the cluster step asks the same question in its own transaction, so that a killed run
goes on and a preview sees the same. Here the scope's beliefs first follow evidence that fell since the last night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from memory_core.beliefs.cascade import withdraw_fallen_support
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.queue import reclaim
from memory_core.shmr.stored import ELIGIBLE, shmr_settings

NAME = "collect"

_WAITING = f"""
SELECT q.memory_id, q.reason, m.layer, {ELIGIBLE} AS eligible, e.memory_id IS NOT NULL AS embedded
FROM harmonize_queue q
JOIN memories m ON m.tenant_id = q.tenant_id AND m.id = q.memory_id
LEFT JOIN memory_embeddings e ON e.tenant_id = q.tenant_id AND e.memory_id = q.memory_id AND e.model = :model
  AND e.aspect = 'content'
WHERE q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.harmonized_by_run IS NULL
  AND q.enqueued_at <= :as_of AND m.recorded_at <= :as_of
ORDER BY q.passed_over_at NULLS LAST, q.enqueued_at, q.memory_id
"""

_PASS_OVER = """
UPDATE harmonize_queue SET passed_over_at = :as_of
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = ANY(CAST(:ids AS uuid[]))
  AND passed_over_at IS NULL
"""

_UNDONE = """
SELECT DISTINCT CAST(member AS uuid) AS id
FROM decisions d, jsonb_array_elements_text(d.members) AS member
WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.verdict = 'undone' AND d.phase = 'harmonize'
ORDER BY 1
"""

_COUNT = f"""
SELECT count(*) FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND {ELIGIBLE}
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the queue holds for this run.

    Attributes:
        reasons: the memories to look at, longest waiting first, each with why it waits (`new`, `revived`, …).
        closed: memories that wait and are no candidates any more: retired, superseded, expired, or too short.
        unembedded: memories that keep waiting because they have no vector.
        later: memories left for a later run by an explicit `batch_size`.
    """

    reasons: Mapping[UUID, str]
    closed: tuple[UUID, ...]
    unembedded: int
    later: tuple[UUID, ...]


async def waiting(connection: ScopedConnection, context: RunContext) -> Waiting:
    """The queue of the scope as of the run; bounded only where the caller named a `batch_size`.

    A bounded run takes `batch_size` facts and half as many episodes: first what earlier runs left, in the order in
    which they left it, then the oldest. What arrives later never goes first, however old it says it is, so that what
    waits behind n others is reached in n / `batch_size` runs. A run that reconsiders also looks at what a person took
    back.
    """
    rows = await connection.rows(_WAITING, model=context.embedding.model)
    explicit = context.run.parameters.get("settings", {}).get("shmr", {}).get("batch_size") is not None
    limit = shmr_settings(context).batch_size
    room = {"semantic": limit, "episodic": max(1, limit // 2)}
    reasons: dict[UUID, str] = {}
    later: list[UUID] = []
    for row in rows:
        if not (row["eligible"] and row["embedded"]):
            continue
        if explicit and room[row["layer"]] == 0:
            later.append(row["memory_id"])
            continue
        room[row["layer"]] -= 1
        reasons[row["memory_id"]] = row["reason"]
    if context.reconsider:
        for row in await connection.rows(_UNDONE):
            reasons.setdefault(row["id"], "reconsidered")
    return Waiting(
        reasons=reasons,
        closed=tuple(row["memory_id"] for row in rows if not row["eligible"]),
        unembedded=sum(1 for row in rows if row["eligible"] and not row["embedded"]),
        later=tuple(later),
    )


async def pass_over(connection: ScopedConnection, found: Waiting) -> None:
    """Note which memories the run leaves for a later one, so that they go first then."""
    if found.later:
        await connection.execute(_PASS_OVER, ids=list(found.later))


async def collect(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Count what waits and what it can be compared with; make beliefs stale whose evidence fell.

    What a run that died had taken waits again, without anybody's doing.
    """
    stale = await withdraw_fallen_support(
        connection, "its evidence was retired, replaced or expired", at=connection.as_of
    )
    reclaimed = await reclaim(connection)
    found = await waiting(connection, context)
    candidates = await connection.scalar(_COUNT)
    skipped = {
        "no candidate any more": len(found.closed),
        "no vector": found.unembedded,
        "left for a later run by batch_size": len(found.later),
    }
    smallest = shmr_settings(context).min_cluster_size
    reason = ""
    if candidates < smallest:
        reason = f"insufficient candidates: {candidates}, and {smallest} are needed"
    elif not found.reasons and found.unembedded:
        reason = "what waits has no vector yet"
    elif not found.reasons:
        reason = "nothing new since the last run"
    return StepOutcome(
        candidates=len(found.reasons),
        changed=stale,
        skipped={name: count for name, count in skipped.items() if count},
        sample=tuple(str(memory_id) for memory_id in list(found.reasons)[:SAMPLE_SIZE]),
        counts={
            "waiting": len(found.reasons),
            "comparable": candidates,
            "beliefs_withdrawn": stale,
            "reclaimed": reclaimed,
        },
        reason=reason,
    )


STEP = Step(NAME, collect)
