"""One run a scope at a time, for as long as its holder lives and no longer."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

import pytest
from sqlalchemy import create_engine, text

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.runs.ledger import begin_run
from memory_core.runs.locks import held_scopes
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory, ago
from tests.nights import rows, sleep
from tests.steps import importance, step

END_HOLDERS = """
SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


OPEN_TRANSACTIONS = """
SELECT query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
"""

SLEEPER = """
import asyncio, json, sys
from datetime import UTC, datetime
from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from memory_core.settings import Settings

async def night(url, home, path, hour):
    settings = Settings.load(database_url=url, home=home, embedding="hash:64", scope_wait=60)
    async with Database.open(settings) as database:
        at = datetime(2026, 3, 1, int(hour), tzinfo=UTC)
        return (await consolidate(database, [TenantScope.from_path(path)], "sleep", at))[0]

found = asyncio.run(night(*sys.argv[1:]))
print(json.dumps({"status": found["status"], "strengthened": found.get("sleep", {}).get("nodes_strengthened")}))
"""


@asynccontextmanager
async def waiting_for(settings: Settings, seconds: float) -> AsyncIterator[Database]:
    """A database of its own, as of another process, whose runs wait so long for a busy scope."""
    async with Database.open(settings.model_copy(update={"scope_wait": seconds})) as database:
        yield database


async def until_slept(database: Database, *scopes: TenantScope) -> None:
    """Wait until the scopes have an applied run, and nobody holds them any more."""
    async with asyncio.timeout(20):
        while True:
            done = [await rows(database, each, "SELECT id FROM runs WHERE status = 'applied'") for each in scopes]
            async with held_scopes(database, scopes) as free:
                if all(done) and len(free) == len(scopes):
                    return
            await asyncio.sleep(0.05)


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
        async with waiting_for(settings, 20) as patient, waiting_for(settings, 0.2) as hurried:
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
    assert "--wait" in in_vain[0]["error"]["hint"]
    assert waited["status"] == "applied"


async def test_nobody_waits_for_somebody_elses_scope(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Free scopes of the chunk sleep at once and are let go of, the busy ones as they become free, in any order."""
    one, two, three, four = (TenantScope.root("tenant", name) for name in ("one", "two", "three", "four"))
    async with Database.open(settings) as holder, waiting_for(settings, 30) as patient:
        for each in (one, two, three, four):
            await add_memory(holder, each, "Ann likes tea")
        async with held_scopes(holder, [one]), AsyncExitStack() as later:
            await later.enter_async_context(held_scopes(holder, [four]))
            night = asyncio.create_task(consolidate(patient, [one, two, three, four], "sleep", NIGHT))
            await until_slept(holder, two, three)
            async with held_scopes(holder, [two, three]) as free:
                assert free == {two, three}
            await later.aclose()
            await until_slept(holder, four)
            assert not night.done()
        documents = await night
    assert [(document["tenant"], document["status"]) for document in documents] == [
        (name, "applied") for name in ("one", "two", "three", "four")
    ]
    assert "Another run holds tenant=four, tenant=one; waiting" in caplog.text


async def test_two_that_wait_for_each_others_scopes_both_end(settings: Settings) -> None:
    """Each holds what the other wants: as nothing is held while waiting, they do not wait in a circle."""
    one, two = (TenantScope.root("tenant", name) for name in ("one", "two"))
    async with waiting_for(settings, 30) as first, waiting_for(settings, 30) as second:
        for each in (one, two):
            await add_memory(first, each, "Ann likes tea")
        async with held_scopes(first, [one]), held_scopes(second, [two]):
            nights = [
                asyncio.create_task(consolidate(database, [one, two], "sleep", NIGHT)) for database in (first, second)
            ]
            await asyncio.sleep(0.3)
        began = monotonic()
        found = await asyncio.gather(*nights)
        assert monotonic() - began < 20
    assert [document["status"] for documents in found for document in documents] == ["applied"] * 4


async def test_nothing_is_open_while_it_waits(settings: Settings, scope: TenantScope) -> None:
    """A run that waits for hours has no transaction that would keep the database from cleaning up."""
    async with Database.open(settings) as holder, waiting_for(settings, 5) as patient:
        await add_memory(holder, scope, "Ann likes tea")
        async with held_scopes(holder, [scope]):
            night = asyncio.create_task(consolidate(patient, [scope], "sleep", NIGHT))
            await asyncio.sleep(0.5)
            engine = create_engine(settings.database_url)
            with engine.connect() as connection:
                open_ones = connection.execute(text(OPEN_TRANSACTIONS)).scalars().all()
            engine.dispose()
        await night
    assert open_ones == []


def test_two_processes_sleep_one_after_the_other(settings: Settings, scope: TenantScope) -> None:
    """Of two processes that are asked for the same scope at once one waits, and one night comes of each."""

    async def fill() -> None:
        async with Database.open(settings) as database:
            for number in range(300):
                await add_memory(database, scope, f"fact {number}", access_at=(ago(hours=2),))

    asyncio.run(fill())
    arguments = [settings.database_url, str(settings.home), scope.scope_path]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SLEEPER, *arguments, str(hour)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for hour in (3, 3)
    ]
    told = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    reports = [json.loads(out) for out, _ in told]
    assert [report["status"] for report in reports] == ["applied", "applied"]
    assert sorted(report["strengthened"] for report in reports) == [0, 300]
