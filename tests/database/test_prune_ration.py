"""Phase 3 with a ration: as many a night as the guards allow, rather than refused every night."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from memory_core.sleep.prune_orphans import STEP
from tests.builders import NIGHT, add_memory, ago
from tests.nights import change, rows, sleep, state

OLD = ago(days=60)
RATION = {"prune_orphans": {"ration": True}}


@pytest.fixture
async def used_scope(database: Database, scope: TenantScope) -> TenantScope:
    """A scope in which something was used, so that it may be pruned at all."""
    await add_memory(database, scope, "the fact in daily use", importance=9, observed_at=OLD, access_at=(ago(hours=2),))
    return scope


async def noise(
    database: Database, scope: TenantScope, name: str, importance: float = 2.0, since: datetime = OLD
) -> None:
    """A memory that nothing protects, idle since then."""
    memory_id = await add_memory(database, scope, name, importance=importance, observed_at=since)
    await change(
        database, scope, "UPDATE memory_state SET first_night = :at WHERE memory_id = :id", at=since, id=memory_id
    )


async def retired(database: Database, scope: TenantScope) -> set[str]:
    """What is retired."""
    found = await rows(
        database, scope, "SELECT content FROM memories WHERE scope_path = :scope_path AND retired_at IS NOT NULL"
    )
    return {row["content"] for row in found}


async def test_a_ration_takes_the_least_important_first_and_the_rest_waits(
    database: Database, used_scope: TenantScope
) -> None:
    """As many as the guards allow tonight, the longest idle of equals first; a second run of the night takes none."""
    for number in range(4):
        await noise(database, used_scope, f"middling {number}", importance=3.0)
    await noise(database, used_scope, "longer idle", importance=3.0, since=ago(days=61))
    for number in range(4):
        await noise(database, used_scope, f"trifle {number}", importance=1.0 + number / 10)
    night = await sleep(database, used_scope, STEP, settings=RATION)
    assert night.status == "applied"
    assert await retired(database, used_scope) == {"longer idle", *(f"trifle {number}" for number in range(4))}
    assert (night.outcome.changed, night.outcome.skipped) == (5, {"waiting for a later night": 4})
    after = await state(database, used_scope)
    again = await sleep(database, used_scope, STEP, settings=RATION)
    assert (again.outcome.changed, again.outcome.skipped) == (0, {"waiting for a later night": 4})
    assert again.outcome.reason == "the guards allow no more for now; the rest waits for a later night"
    assert await state(database, used_scope) == after


async def test_a_ration_keeps_to_the_thirty_days_too(database: Database, used_scope: TenantScope) -> None:
    """A tenth of the scope each night until a fifth has gone in thirty days; no night is refused, the last is done."""
    for number in range(30):
        await noise(database, used_scope, f"noise {number:02}")
    for number in range(30):
        await add_memory(database, used_scope, f"fact {number}", importance=9)
    days = (0, 1, 2, 15, 30, 31, 32, 61, 62, 63, 92)
    nights = [await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=day), settings=RATION) for day in days]
    assert {night.status for night in nights} == {"applied"}
    # 61 memories: 6, then 5 of 55, then one, and the next when the first ones are thirty days past.
    assert [night.outcome.changed for night in nights] == [6, 5, 1, 0, 5, 4, 0, 5, 3, 0, 1]


async def test_without_a_ration_or_with_a_persons_word_all_goes(database: Database, used_scope: TenantScope) -> None:
    """The ration is off unless asked for, and an accepted night retires everything whatever the ration."""
    for number in range(9):
        await noise(database, used_scope, f"noise {number}")
    assert (await sleep(database, used_scope, STEP)).status == "refused"
    accepted = await sleep(database, used_scope, STEP, settings=RATION, accept=True)
    assert (accepted.outcome.changed, accepted.outcome.skipped) == (9, {})
