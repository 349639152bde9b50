"""Summaries beside old episodes, over a real database."""

from __future__ import annotations

from typing import Any

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from memory_core.sleep.episodic_summaries import STEP
from tests.builders import NIGHT, add_memory, ago
from tests.nights import rows, sleep, state, undo


def small(**settings: Any) -> dict[str, Any]:
    """The run's own settings: ten episodes may wait, four go into one summary."""
    return {"settings": {"episodic_summaries": {"enabled": True, "max_entries": 10, "batch_size": 4, **settings}}}


async def add_episodes(database: Database, scope: TenantScope, count: int, *, first: int = 0) -> None:
    """Episodes an hour apart, the oldest sixty days ago."""
    for number in range(first, first + count):
        await add_memory(
            database, scope, f"Episode {number} happened", layer="episodic", observed_at=ago(days=60, hours=-number)
        )


async def summaries(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """The summaries with what they are linked to, oldest first."""
    found = await rows(
        database,
        scope,
        "SELECT m.content, m.layer, m.properties, "
        "(SELECT array_agg(t.content ORDER BY t.observed_at) FROM memory_edges e "
        "JOIN memories t ON t.tenant_id = e.tenant_id AND t.id = e.target_id WHERE e.tenant_id = m.tenant_id "
        "AND e.source_id = m.id AND e.kind = 'clusters') AS of FROM memories m "
        "WHERE m.tenant_id = :tenant_id AND starts_with(m.derived_key, 'episodes:') ORDER BY m.observed_at",
    )
    return [dict(row) for row in found]


async def test_the_oldest_are_summed_up_and_stay(database: Database, scope: TenantScope) -> None:
    """In whole batches until few enough wait; every episode is kept; again changes nothing; undo restores (F41)."""
    await add_episodes(database, scope, 17)
    before = await state(database, scope)
    night = await sleep(database, scope, STEP, **small())
    assert (night.outcome.candidates, night.outcome.changed) == (17, 8)
    assert night.outcome.skipped == {"left for later, oldest first": 9}
    first, second = await summaries(database, scope)
    assert first["of"] == [f"Episode {number} happened" for number in range(4)]
    assert second["of"] == [f"Episode {number} happened" for number in range(4, 8)]
    assert first["content"].startswith("Episodes from 2025-12-31 to 2025-12-31, 4 memories: ")
    assert (first["layer"], first["properties"]["member_count"]) == ("episodic", 4)
    current = await rows(
        database,
        scope,
        "SELECT count(*) AS n FROM memories WHERE tenant_id = :tenant_id AND derived_key IS NULL "
        "AND retired_at IS NULL AND superseded_reason IS NULL",
    )
    assert current[0]["n"] == 17
    after = await state(database, scope)
    again = await sleep(database, scope, STEP, **small())
    assert (again.outcome.changed, await state(database, scope)) == (0, after)
    await undo(database, scope, night, STEP)
    assert await state(database, scope) == before
    assert (await sleep(database, scope, STEP, **small())).outcome.changed == 0
    assert (await sleep(database, scope, STEP, reconsider=True, **small())).outcome.changed == 8


async def test_young_and_few_episodes_are_left_alone(database: Database, scope: TenantScope) -> None:
    """Exactly as many as may wait are too few; those of the last day do not count; facts are no episodes."""
    await add_episodes(database, scope, 10)
    for number in range(5):
        await add_memory(database, scope, f"Today {number}", layer="episodic", observed_at=ago(hours=number))
        await add_memory(database, scope, f"Fact {number}", observed_at=ago(days=50))
    night = await sleep(database, scope, STEP, **small())
    assert (night.outcome.candidates, night.outcome.changed) == (10, 0)
    assert "no more than 10 episodes" in night.outcome.reason
    await add_episodes(database, scope, 1, first=10)
    assert (await sleep(database, scope, STEP, at=NIGHT.replace(hour=4), **small())).outcome.changed == 4


async def test_a_night_makes_a_bounded_number(database: Database, scope: TenantScope) -> None:
    """What is left is counted and comes the next night."""
    await add_episodes(database, scope, 30)
    night = await sleep(database, scope, STEP, **small(most_batches=2))
    assert night.outcome.counts == {"episodes_summarized": 8, "episodic_summaries_created": 2}
    later = await sleep(database, scope, STEP, at=NIGHT.replace(hour=5), **small(most_batches=2))
    assert later.outcome.counts == {"episodes_summarized": 8, "episodic_summaries_created": 2}
    assert len(await summaries(database, scope)) == 4
