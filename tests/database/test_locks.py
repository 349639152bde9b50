"""One run a scope at a time, for as long as its holder lives and no longer."""

from __future__ import annotations

import asyncio
import logging

import pytest
from sqlalchemy import create_engine, text

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.runs.ledger import begin_run
from memory_core.runs.locks import held_scopes
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory
from tests.nights import sleep
from tests.steps import importance, step

END_HOLDERS = """
SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def end_holders(database: Database) -> None:
    """End the connections that hold scopes, as a network failure does."""
    engine = create_engine(database.url)
    with engine.connect() as connection:
        assert connection.execute(text(END_HOLDERS)).all()
    engine.dispose()


async def test_a_held_scope_is_busy_and_its_neighbours_are_free(
    database: Database, settings: Settings, scope: TenantScope
) -> None:
    """Within a process and between processes; a parent, a child and a sibling are scopes of their own (F31)."""
    child, sibling = scope.child("brand", "one"), scope.child("brand", "two")
    async with held_scopes(database, [child, child]) as held, Database.open(settings) as other:
        assert held == {child}
        for another in (database, other):
            async with held_scopes(another, [scope, child, sibling]) as free:
                assert free == {scope, sibling}
    async with held_scopes(database, [scope, child, sibling]) as free:
        assert free == {scope, child, sibling}


async def test_a_holder_that_fails_or_is_cancelled_lets_go(database: Database, scope: TenantScope) -> None:
    """No scope stays busy behind an error."""

    async def fail() -> None:
        async with held_scopes(database, [scope]):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fail()

    async def hold() -> None:
        async with held_scopes(database, [scope]):
            await asyncio.sleep(60)

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0.2)
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    async with held_scopes(database, [scope]) as held:
        assert held == {scope}


async def test_a_lock_lost_under_way(database: Database, scope: TenantScope, caplog: pytest.LogCaptureFixture) -> None:
    """A run that is done stays done though the lock was lost meanwhile; it is said, and the scope is free again."""
    tea = await add_memory(database, scope, "Ann likes tea")
    with caplog.at_level(logging.WARNING, logger="memory_core.runs.locks"):
        async with held_scopes(database, [scope]):
            end_holders(database)
            async with held_scopes(database, [scope]) as other:
                assert other == {scope}
            night = await sleep(database, scope, step(importance(tea, 6)))
    assert night.status == "applied"
    assert "were lost" in caplog.text
    async with held_scopes(database, [scope]) as held:
        assert held == {scope}


async def test_an_error_is_not_hidden_by_a_lost_lock(database: Database, scope: TenantScope) -> None:
    """What went wrong inside is what is raised."""

    async def fail() -> None:
        async with held_scopes(database, [scope]):
            end_holders(database)
            raise ValueError("the reason")

    with pytest.raises(ValueError, match="the reason"):
        await fail()


async def test_a_run_that_begins_twice_is_one(database: Database, scope: TenantScope) -> None:
    """Without a lock, too, the same request is the same run."""
    await add_memory(database, scope, "Ann likes tea")
    runs = await asyncio.gather(*(begin_run(database, scope, "sleep", NIGHT) for _ in range(4)))
    assert len({run.id for run in runs}) == 1


async def test_a_busy_scope_is_waited_for_where_that_is_set(settings: Settings, scope: TenantScope) -> None:
    """The run that waits begins when the other has ended; without the setting, or in vain, it is left out as busy."""
    other = TenantScope.root("tenant", "zeta")
    async with Database.open(settings) as first, Database.open(settings) as second:
        for each in (scope, other):
            await add_memory(first, each, "Ann likes tea")
        patient = Database.open(settings.model_copy(update={"scope_wait": 20}))
        hurried = Database.open(settings.model_copy(update={"scope_wait": 0.2}))
        async with patient, hurried:
            async with held_scopes(first, [scope]):
                left_out = await consolidate(second, [scope, other], "sleep", NIGHT)
                in_vain = await consolidate(hurried, [scope], "sleep", NIGHT)
                waiting = asyncio.create_task(consolidate(patient, [scope], "sleep", NIGHT))
                await asyncio.sleep(0.3)
                assert not waiting.done()
            (waited,) = await waiting
    assert [document["status"] for document in left_out] == ["busy", "applied"]
    assert in_vain[0]["status"] == "busy"
    assert str(scope) in in_vain[0]["error"]["message"]
    assert waited["status"] == "applied"
