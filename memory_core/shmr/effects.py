"""What decisions do to memories: some give way, some lose confidence. All of it under the protection of persons.

Everything works on a page of clusters at once; the number of statements does not depend on how many they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.beliefs.superseding import Replacement, supersede_memories, taken_back
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import CURRENT

# Rows of ancestors cannot be locked, and need not: they are evidence, never changed here.
_LOCK = """
SELECT id FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
"""

_SOURCES = f"""
WITH confirmed AS MATERIALIZED (
  SELECT a.memory_id, max(a.at) AS confirmed_at FROM memory_accesses a
  WHERE a.tenant_id = :tenant_id AND a.memory_id = ANY(CAST(:ids AS uuid[])) AND a.kind = 'confirm' AND a.at <= :as_of
  GROUP BY a.memory_id
)
SELECT m.id, m.version, m.content_hash, m.pinned, m.scope_path <> :scope_path AS read_only, {CURRENT} AS current,
       m.observed_at, m.corrects IS NOT NULL OR m.pinned OR c.confirmed_at IS NOT NULL AS by_person,
       c.confirmed_at IS NOT NULL AND m.corrects IS NULL AND NOT m.pinned AS confirmed_only, c.confirmed_at
FROM memories m
LEFT JOIN confirmed c ON c.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.id = ANY(CAST(:ids AS uuid[]))
"""

# One dampening a pair, whatever else later joins or leaves the cluster.
_REMEMBER_DAMPENED = """
INSERT INTO decisions AS d (tenant_id, scope_path, decision_key, phase, verdict, members, run_id, decided_at,
  created_by_run)
SELECT DISTINCT ON (key) CAST(:tenant_id AS text), CAST(:scope_path AS text), key, 'dampen', 'decided',
       jsonb_build_array(p.target_id, p.against_id), CAST(:run_id AS uuid), CAST(:as_of AS timestamptz),
       CAST(:run_id AS uuid)
FROM (SELECT slowwave.decision_key('dampen', t.target, t.against) AS key, t.*
      FROM unnest(CAST(:targets AS text[]), CAST(:againsts AS text[]), CAST(:target_ids AS uuid[]),
        CAST(:against_ids AS uuid[])) WITH ORDINALITY
           AS t(target, against, target_id, against_id, number)) AS p
ORDER BY key, p.number
ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE SET verdict = 'decided', run_id = excluded.run_id
WHERE CAST(:reconsider AS boolean) AND d.verdict = 'undone'
RETURNING members ->> 0 AS target_id
"""

_DAMPEN = """
UPDATE memory_state SET confidence = greatest(confidence - :step, least(confidence, :floor))
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = ANY(CAST(:ids AS uuid[]))
  AND confidence > :floor
RETURNING memory_id
"""


@dataclass(frozen=True, slots=True)
class Sources:
    """A cluster's memories as they are now, locked.

    Attributes:
        by_id: those that are there.
        changed: members that are gone, no longer current, or of another version than when they were clustered.
    """

    by_id: Mapping[UUID, RowMapping]
    changed: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One cluster that is carried out.

    Attributes:
        cluster: its row.
        sources: its memories.
        decision: what was decided.
        belief_ids: the ids of the decision's beliefs, in their order.
        believed: contents by id of those beliefs that nobody refused: a winner may be one of these.
    """

    cluster: RowMapping
    sources: Sources
    decision: ClusterDecision
    belief_ids: Sequence[UUID]
    believed: Mapping[UUID, str]


async def lock_sources(
    connection: ScopedConnection, clusters: Sequence[Sequence[Mapping[str, Any]]]
) -> tuple[Sources, ...]:
    """Lock the scope's own members of clusters, and compare every version with the one that was decided on.

    Args:
        clusters: of each, its members as stored.

    Returns:
        the sources of each cluster.
    """
    expected = [{UUID(member["memory_id"]): member["version"] for member in members} for members in clusters]
    ids = sorted({memory_id for versions in expected for memory_id in versions})
    await connection.execute(_LOCK, ids=ids)
    found = {row["id"]: row for row in await connection.rows(_SOURCES, ids=ids)}
    return tuple(
        Sources(
            by_id={memory_id: found[memory_id] for memory_id in sorted(versions) if memory_id in found},
            changed=tuple(
                memory_id
                for memory_id in sorted(versions)
                if memory_id not in found
                or not found[memory_id]["current"]
                or found[memory_id]["version"] != versions[memory_id]
            ),
        )
        for versions in expected
    )


async def supersede(
    connection: ScopedConnection, context: RunContext, cases: Sequence[Case], skipped: Counter[str]
) -> list[UUID]:
    """Let losers give way; returns those that did, and counts the others by reason."""
    replacements: list[Replacement] = []
    contents: list[tuple[str, str]] = []
    for case in cases:
        for each in case.decision.supersedes:
            loser, winner = case.sources.by_id.get(each.loser), case.sources.by_id.get(each.winner)
            if loser is None or loser["read_only"] or (winner is None and each.winner not in case.believed):
                skipped["not a memory of this cluster and scope"] += 1
            elif loser["pinned"]:
                skipped["pinned"] += 1
            elif _stands(loser, winner):
                skipped["corrected or confirmed by a person"] += 1
            else:
                by_belief = winner is None
                replacements.append(
                    Replacement(
                        loser=each.loser,
                        winner=None if by_belief else each.winner,
                        belief=each.winner if by_belief else None,
                        reason=each.reason,
                    )
                )
                mark = case.believed[each.winner] if winner is None else winner["content_hash"]
                contents.append((loser["content_hash"], mark))
    undone = await taken_back(connection, contents, reconsider=context.reconsider)
    if undone:
        skipped["taken back by a person"] += len(undone)
    kept = [each for position, each in enumerate(replacements) if position not in undone]
    await supersede_memories(connection, kept)
    return sorted(each.loser for each in kept)


def _stands(loser: RowMapping, winner: RowMapping | None) -> bool:
    """Whether a person's word keeps the loser: a confirmation does so against what was said before it."""
    if not loser["by_person"] or (winner is not None and winner["by_person"]):
        return False
    said_later = winner is not None and winner["observed_at"] > (loser["confirmed_at"] or winner["observed_at"])
    return not (loser["confirmed_only"] and said_later)


async def dampen(
    connection: ScopedConnection,
    context: RunContext,
    cases: Sequence[Case],
    settings: ShmrSettings,
    skipped: Counter[str],
) -> list[UUID]:
    """Lower confidence once for each pair of memories, never below the floor, never upwards; returns the memories."""
    chosen: list[tuple[RowMapping, RowMapping]] = []
    for case in cases:
        for each in sorted(case.decision.dampens, key=lambda each: each.target):
            target, against = case.sources.by_id.get(each.target), case.sources.by_id.get(each.against)
            if target is None or against is None or target["read_only"]:
                skipped["not a memory of this cluster and scope"] += 1
            elif target["by_person"]:
                skipped["corrected or confirmed by a person"] += 1
            else:
                chosen.append((target, against))
    if not chosen:
        return []
    rows = await connection.rows(
        _REMEMBER_DAMPENED,
        targets=[target["content_hash"] for target, _ in chosen],
        againsts=[against["content_hash"] for _, against in chosen],
        target_ids=[target["id"] for target, _ in chosen],
        against_ids=[against["id"] for _, against in chosen],
        reconsider=context.reconsider,
    )
    again = len(chosen) - len(rows)
    if again:
        skipped["dampened for this before, or taken back"] += again
    ids = sorted({UUID(row["target_id"]) for row in rows})
    lowered = await connection.rows(_DAMPEN, ids=ids, step=settings.dampen_step, floor=settings.dampen_floor)
    return sorted(row["memory_id"] for row in lowered)
