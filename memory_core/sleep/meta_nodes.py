"""Phase 4, meta-nodes: one summary for each group of memories that share a label prefix ("PREFIX: detail"), or a topic.

A summary quotes the most central members; no model's text enters the memories. It is never overwritten: where the
members changed, the old row is retired and a new one made, and where they came back, the former row is revived. A
unique key over rows in use holds it to one a group, whatever runs at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.meta_groups import PREFIXES, Grouping, compare_groups
from memory_core.sleep.meta_rows import MetaNodesSettings, make_meta_nodes
from memory_core.sleep.topics import group_by_topic

NAME = "meta_nodes"
GONE = "its members are gone"
REFRESHED = "refreshed"
SHOWN = 20
"""Summaries that the morning report shows."""

_RETIRE = """
UPDATE memories m SET retired_at = :as_of, retired_reason = r.reason, retired_by_run = :run_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS r (id, reason)
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.id AND m.retired_at IS NULL
"""

_REVIVE = """
UPDATE memories m SET retired_at = NULL, retired_reason = NULL, retired_by_run = NULL
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = ANY (CAST(:ids AS uuid[]))
  AND m.retired_at IS NOT NULL
RETURNING m.id
"""

UNDONE = f"""
SELECT 'meta_nodes' AS phase,
       slowwave.decision_key('meta_nodes', m.derived_key, m.properties ->> 'members_hash') AS decision_key,
       jsonb_build_array(m.derived_key, m.properties ->> 'members_hash') AS members
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.created_by_run = CAST(:id AS uuid)
  AND m.source = '{NAME}'
UNION ALL
SELECT 'meta_nodes',
       slowwave.decision_key('meta_nodes', m.derived_key,
         CASE WHEN c.after ->> 'retired_reason' IS NULL THEN '' ELSE 'retired ' END
           || (m.properties ->> 'members_hash')),
       jsonb_build_array(m.derived_key, m.properties ->> 'members_hash')
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'id' AS uuid)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid) AND c.step = 'meta_nodes'
  AND c.table_name = 'memories' AND (c.after ->> 'retired_reason' IS NULL OR c.after ->> 'retired_reason' = '{GONE}')
"""


async def meta_nodes(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Make, refresh and retire the summaries of the scope's groups."""
    settings = context.section(NAME, MetaNodesSettings)
    outcome = await _summarise_groups(connection, context, settings, PREFIXES, settings.smallest)
    if settings.topics:
        grouping, skipped = await group_by_topic(connection, settings, context.embedding.model)
        of_topics = await _summarise_groups(connection, context, settings, grouping, settings.topic_smallest)
        outcome = _both(outcome, replace(of_topics, skipped={**of_topics.skipped, **skipped}))
    return outcome


async def _summarise_groups(
    connection: ScopedConnection,
    context: RunContext,
    settings: MetaNodesSettings,
    grouping: Grouping,
    smallest: int,
) -> StepOutcome:
    counts, work = await compare_groups(connection, grouping, smallest=smallest, reconsider=context.reconsider)
    given_up = [row for row in work if row["action"] != "create"]
    if given_up:
        await connection.execute(
            _RETIRE,
            ids=[row["former_id"] for row in given_up],
            reasons=[GONE if row["action"] == "retire" else REFRESHED for row in given_up],
        )
    wanted = {row["key"]: row for row in work if row["action"] != "retire"}
    # The same members make the same row, so what came back is revived rather than made again.
    ids = {key: connection.scope.derived_id(grouping.kind, key, row["members_hash"]) for key, row in wanted.items()}
    revived = set()
    if ids:
        revived = set((await connection.execute(_REVIVE, ids=list(ids.values()))).scalars())
    shown: list[dict[str, Any]] = []
    new = [row for key, row in wanted.items() if ids[key] not in revived]
    async for node in make_meta_nodes(connection, settings, grouping, new, ids, model=context.embedding.model):
        if len(shown) < SHOWN:
            shown.append({"memory_id": str(node.id), "label": node.label, "content": node.content})
    return _outcome(counts, work, ids, revived, smallest, shown)


def _outcome(
    counts: RowMapping,
    work: Sequence[RowMapping],
    ids: Mapping[str, UUID],
    revived: set[UUID],
    smallest: int,
    shown: list[dict[str, Any]],
) -> StepOutcome:
    actions = [row["action"] for row in work]
    skipped = {
        f"fewer than {smallest} members": counts["small"],
        "its members are unchanged": counts["unchanged"],
        "taken back by a person": counts["taken_back"],
    }
    return StepOutcome(
        candidates=counts["candidates"],
        changed=len(work),
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(str(memory_id) for memory_id in ids.values())[:SAMPLE_SIZE],
        counts={
            "meta_nodes_created": actions.count("create"),
            "meta_nodes_refreshed": actions.count("refresh"),
            "meta_nodes_retired": actions.count("retire"),
            "meta_nodes_revived": len(revived),
        },
        details={"summaries": shown} if shown else {},
        reason=""
        if work
        else "no memory has a label with a prefix (PREFIX: detail)"
        if not counts["candidates"]
        else "no group of enough members changed",
    )


def _both(first: StepOutcome, second: StepOutcome) -> StepOutcome:
    """Two groupings as one outcome."""
    shown = [*first.details.get("summaries", ()), *second.details.get("summaries", ())][:SHOWN]
    return StepOutcome(
        candidates=first.candidates + second.candidates,
        changed=first.changed + second.changed,
        skipped=dict(Counter(first.skipped) + Counter(second.skipped)),
        sample=(*first.sample, *second.sample)[:SAMPLE_SIZE],
        counts={name: count + second.counts[name] for name, count in first.counts.items()},
        details={"summaries": shown} if shown else {},
        reason="" if first.changed or second.changed else "no group of enough members changed",
    )


STEP = Step(NAME, meta_nodes, undone=UNDONE)
