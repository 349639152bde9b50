"""What a decision does to memories: some give way, some lose confidence. All of it under the protection of persons."""

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
from memory_core.shmr.decisions import Dampen, Supersede
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import CURRENT

# Rows of ancestors cannot be locked, and need not: they are evidence, never changed here.
_LOCK = """
SELECT id FROM memories
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = ANY(CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
"""

_SOURCES = f"""
SELECT m.id, m.version, m.content_hash, m.pinned, m.scope_path <> :scope_path AS read_only, {CURRENT} AS current,
       m.observed_at, m.corrects IS NOT NULL OR m.pinned OR c.confirmed_at IS NOT NULL AS by_person,
       c.confirmed_at IS NOT NULL AND m.corrects IS NULL AND NOT m.pinned AS confirmed_only, c.confirmed_at
FROM memories m
CROSS JOIN LATERAL (SELECT max(a.at) AS confirmed_at FROM memory_accesses a
                    WHERE a.tenant_id = :tenant_id AND a.memory_id = m.id
                      AND a.kind = 'confirm' AND a.at <= :as_of) AS c
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
        CAST(:against_ids AS uuid[]))
           AS t(target, against, target_id, against_id)) AS p
ORDER BY key, p.target_id
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


async def lock_sources(connection: ScopedConnection, members: Sequence[Mapping[str, Any]]) -> Sources:
    """Lock the scope's own members and compare every version with the one that was decided on."""
    expected = {UUID(member["memory_id"]): member["version"] for member in members}
    ids = sorted(expected)
    await connection.execute(_LOCK, ids=ids)
    found = {row["id"]: row for row in await connection.rows(_SOURCES, ids=ids)}
    changed = tuple(
        memory_id
        for memory_id in ids
        if memory_id not in found
        or not found[memory_id]["current"]
        or found[memory_id]["version"] != expected[memory_id]
    )
    return Sources(found, changed)


async def supersede(
    connection: ScopedConnection,
    context: RunContext,
    decided: Sequence[Supersede],
    sources: Sources,
    believed: Mapping[UUID, str],
    skipped: Counter[str],
) -> list[UUID]:
    """Let losers give way; returns those that did, and counts the others by reason.

    Args:
        believed: contents of the decision's beliefs by id: a winner may be one of these.
    """
    pairs = []
    for each in decided:
        loser, winner = sources.by_id.get(each.loser), sources.by_id.get(each.winner)
        if loser is None or loser["read_only"] or (winner is None and each.winner not in believed):
            skipped["not a memory of this cluster and scope"] += 1
        elif loser["pinned"]:
            skipped["pinned"] += 1
        elif _stands(loser, winner):
            skipped["corrected or confirmed by a person"] += 1
        else:
            mark = believed[each.winner] if winner is None else winner["content_hash"]
            pairs.append((each, loser["content_hash"], mark))
    undone = await taken_back(connection, [(loser, mark) for _, loser, mark in pairs], reconsider=context.reconsider)
    if undone:
        skipped["taken back by a person"] += len(undone)
    kept = [
        Replacement(
            loser=each.loser,
            winner=each.winner if each.winner in sources.by_id else None,
            belief=None if each.winner in sources.by_id else each.winner,
            reason=each.reason,
        )
        for position, (each, _, _) in enumerate(pairs)
        if position not in undone
    ]
    await supersede_memories(connection, kept)
    return sorted((each.loser for each in kept), key=str)


def _stands(loser: RowMapping, winner: RowMapping | None) -> bool:
    """Whether a person's word keeps the loser: a confirmation does so against what was said before it."""
    if not loser["by_person"] or (winner is not None and winner["by_person"]):
        return False
    said_later = winner is not None and winner["observed_at"] > (loser["confirmed_at"] or winner["observed_at"])
    return not (loser["confirmed_only"] and said_later)


async def dampen(
    connection: ScopedConnection,
    context: RunContext,
    decided: Sequence[Dampen],
    sources: Sources,
    settings: ShmrSettings,
    skipped: Counter[str],
) -> list[UUID]:
    """Lower confidence once for each pair of memories, never below the floor, never upwards; returns the memories."""
    chosen: list[Dampen] = []
    for each in decided:
        target, against = sources.by_id.get(each.target), sources.by_id.get(each.against)
        if target is None or against is None or target["read_only"]:
            skipped["not a memory of this cluster and scope"] += 1
        elif target["by_person"]:
            skipped["corrected or confirmed by a person"] += 1
        else:
            chosen.append(each)
    if not chosen:
        return []
    rows = await connection.rows(
        _REMEMBER_DAMPENED,
        targets=[sources.by_id[each.target]["content_hash"] for each in chosen],
        againsts=[sources.by_id[each.against]["content_hash"] for each in chosen],
        target_ids=[each.target for each in chosen],
        against_ids=[each.against for each in chosen],
        reconsider=context.reconsider,
    )
    again = len(chosen) - len(rows)
    if again:
        skipped["dampened for this before, or taken back"] += again
    ids = sorted({UUID(row["target_id"]) for row in rows})
    lowered = await connection.rows(_DAMPEN, ids=ids, step=settings.dampen_step, floor=settings.dampen_floor)
    return sorted(row["memory_id"] for row in lowered)
