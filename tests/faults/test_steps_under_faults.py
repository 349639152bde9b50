"""A step is done exactly once or not at all, whatever happens around it."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import DatabaseUnavailable, LaterRunsExist, TransactionConflict, TransientError
from memory_core.models.embedding import embedding_provider
from memory_core.night import chunks
from memory_core.night.consolidate import consolidate
from memory_core.runs import advance as advance_module
from memory_core.runs.advance import advance, close_run
from memory_core.runs.checksum import checksum
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run, steps_of
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.perform import perform_step
from memory_core.runs.undo import undo_run
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory, ago
from tests.nights import change, rows, sleep, state
from tests.steps import begun, context_of, failing, hooked, importance, link, retire, step

pytestmark = pytest.mark.faults

ADD_ONE = ("UPDATE memory_state SET access_count = access_count + 1 WHERE tenant_id = :tenant_id", {})


async def counted(database: Database, scope: TenantScope) -> int:
    """How often `ADD_ONE` was done."""
    return int((await rows(database, scope, "SELECT max(access_count) AS n FROM memory_state"))[0]["n"])


def terminate(database: Database, pid: int) -> None:
    """End one connection from outside, as a restart or a network failure does."""
    engine = create_engine(database.url)
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    engine.dispose()


async def test_a_step_that_raises_leaves_nothing(database: Database, scope: TenantScope) -> None:
    """Its writes are gone, its reason is in the ledger, and the run goes on."""
    tea = await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    broken = failing(ValueError("no such \x00 \ud800 thing"), importance(tea, 9), name="broken")
    night = await sleep(database, scope, [broken, step(name="after"), step(name="needy", needs=("broken",))])
    assert [result.status for result in night.results] == ["failed", "done", "skipped"]
    assert night.status == "partial"
    assert await state(database, scope) == before
    async with database.scoped(scope) as connection:
        steps = {row["step"]: row for row in await steps_of(connection, night.run.id)}
    assert steps["broken"]["outcome"]["error"]["message"].startswith("no such")
    assert "broken" in steps["needy"]["outcome"]["reason"]
    assert await rows(database, scope, "SELECT 1 FROM run_changes WHERE tenant_id = :tenant_id") == []


async def test_an_error_of_the_database_tells_no_memory(database: Database, scope: TenantScope) -> None:
    """The ledger keeps what was wrong, and not the row it was wrong with."""
    tea = await add_memory(database, scope, "Ann's secret is tea")
    half = ("UPDATE memories SET retired_reason = 'noise' WHERE tenant_id = :tenant_id AND id = :id", {"id": tea})
    night = await sleep(database, scope, step(half))
    assert night.status == "failed"
    assert "retired_with_reason" in str(night.results[0].error)
    assert "secret" not in str(night.results[0].error)


async def test_two_processes_do_a_step_once(database: Database, scope: TenantScope, settings: Settings) -> None:
    """The second waits, is told of a conflict before it has done anything, and then finds the result (F30, F31)."""
    await add_memory(database, scope, "Ann likes tea")
    context = await begun(database, scope)
    entered = 0
    first_is_in = asyncio.Event()

    async def slowly(_: ScopedConnection) -> None:
        nonlocal entered
        entered += 1
        first_is_in.set()
        await asyncio.sleep(0.5)

    work = hooked(step(ADD_ONE), after=slowly)
    async with Database.open(settings) as other:
        first = asyncio.create_task(perform_step(database, context, work, 0))
        await first_is_in.wait()
        with pytest.raises(TransactionConflict):
            await perform_step(other, context, work, 0)
        outcome = await first
        assert await perform_step(other, context, work, 0) == outcome
    assert (entered, await counted(database, scope)) == (1, 1)


async def at_work(connection: ScopedConnection, database: Database) -> None:
    terminate(database, await connection.scalar("SELECT pg_backend_pid()"))


async def test_a_connection_lost_in_a_step(database: Database, scope: TenantScope) -> None:
    """It is a passing failure; nothing is left, and the next attempt does the work once."""
    await add_memory(database, scope, "Ann likes tea")
    context = await begun(database, scope)

    async def lose(connection: ScopedConnection) -> None:
        await at_work(connection, database)
        await connection.scalar("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await advance(database, context, [hooked(step(ADD_ONE), after=lose)], 0)
    assert await counted(database, scope) == 0
    assert (await advance(database, context, [step(ADD_ONE)], 0)).status == "done"
    assert await counted(database, scope) == 1


@pytest.mark.parametrize("arrived", [False, True])
async def test_a_connection_lost_at_the_commit(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """Whether the commit arrived or not, the next attempt finds it or does the work: once in all."""
    await add_memory(database, scope, "Ann likes tea")
    context = await begun(database, scope)
    pids: list[int] = []
    commit = database.app.sync_engine.dialect.do_commit

    async def note(connection: ScopedConnection) -> None:
        pids.append(await connection.scalar("SELECT pg_backend_pid()"))

    def lose(connection: Any) -> None:
        if not pids:
            commit(connection)
        elif arrived:
            commit(connection)
            terminate(database, pids.pop())
            connection.cursor().execute("SELECT 1")  # the answer to the commit never comes
        else:
            terminate(database, pids.pop())
            commit(connection)

    monkeypatch.setattr(database.app.sync_engine.dialect, "do_commit", lose)
    with pytest.raises(DatabaseUnavailable):
        await advance(database, context, [hooked(step(ADD_ONE), after=note)], 0)
    assert await counted(database, scope) == int(arrived)
    assert (await advance(database, context, [step(ADD_ONE)], 0)).status == "done"
    assert await counted(database, scope) == 1


async def test_waiting_and_taking_too_long_may_pass(database: Database, scope: TenantScope, settings: Settings) -> None:
    """A row lock and a statement that last too long are worth another attempt."""
    tea = await add_memory(database, scope, "Ann likes tea")
    impatient = settings.model_copy(update={"lock_timeout": 1, "statement_timeout": 1})
    async with Database.open(impatient) as hurried, database.scoped(scope) as holding:
        context = context_of(hurried, await begin_run(hurried, scope, "sleep", NIGHT))
        await holding.execute("SELECT 1 FROM memory_state WHERE tenant_id = :tenant_id FOR UPDATE")
        with pytest.raises(TransientError, match=r"stayed locked|ran longer"):
            await perform_step(hurried, context, step(importance(tea, 6)), 0)
        with pytest.raises(TransientError, match="statement_timeout"):
            await perform_step(hurried, context, step(("SELECT pg_sleep(5)", {})), 0)


async def test_no_free_connection_may_pass(scope: TenantScope, database: Database, settings: Settings) -> None:
    """A pool that is used up is no permanent failure."""
    async with Database.open(settings.model_copy(update={"pool_size": 1})) as small:
        small.app.sync_engine.pool._timeout = 0.1  # type: ignore[attr-defined]
        taken = [await small.app.connect() for _ in range(3)]
        with pytest.raises(DatabaseUnavailable, match="in use"):
            async with small.scoped(scope):
                pass
        for connection in taken:
            await connection.close()


async def test_a_night_retries_a_conflict(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that somebody changes under a phase costs another attempt and nothing else."""
    vector = (await embedding_provider("hash:64").embed(["Ann likes tea"]))[0].tolist()
    await add_memory(database, scope, "Ann likes tea", vector=vector, access_at=(ago(hours=1),))
    attempts = 0
    undisturbed = advance_module.perform_step

    async def disturbed(database: Database, context: RunContext, phase: object, position: int) -> StepOutcome:
        nonlocal attempts
        name = getattr(phase, "name", "")
        if name == "strengthen":
            attempts += 1
            if attempts == 1:
                write = phase.write  # type: ignore[attr-defined]

                async def race(connection: ScopedConnection, context: RunContext, answer: object) -> StepOutcome:
                    await connection.scalar("SELECT 1")
                    await change(
                        database, scope, "UPDATE memory_state SET confidence = 0.9 WHERE tenant_id = :tenant_id"
                    )
                    return await write(connection, context, answer)

                phase = type(phase)(name, race)  # type: ignore[call-arg]
        return await undisturbed(database, context, phase, position)  # type: ignore[arg-type]

    monkeypatch.setattr(advance_module, "perform_step", disturbed)
    document = (await consolidate(database, [scope], "sleep", NIGHT))[0]
    assert document["status"] == "applied"
    assert attempts == 2
    assert document["sleep"]["nodes_strengthened"] == 1


async def test_a_database_that_goes_away_for_good_is_named(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night that cannot even record its failure ends with the database's own words, and is done when it is back."""
    await add_memory(database, scope, "Ann likes tea")

    async def gone(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("The connection to the database failed: the server was stopped.")

    with monkeypatch.context() as patched:
        patched.setattr(chunks, "load_run", gone)
        with pytest.raises(DatabaseUnavailable, match="the server was stopped") as raised:
            await consolidate(database, [scope], "sleep", NIGHT)
    assert "goes on where it was" in raised.value.hint
    (document,) = await consolidate(database, [scope], "sleep", NIGHT)
    assert document["status"] == "applied"


async def too_many(database: Database, scope: TenantScope) -> list[uuid.UUID]:
    return [await add_memory(database, scope, f"memory {number}") for number in range(12)]


async def test_a_refused_run_is_taken_back_exactly(database: Database, scope: TenantScope) -> None:
    """What earlier steps committed goes with the step that tripped the guard, and the reason stays."""
    memories = await too_many(database, scope)
    before = await state(database, scope)
    early = step(importance(memories[0], 9), link(uuid.uuid4(), memories[0], memories[1]), name="early")
    night = await sleep(database, scope, [early, step(retire(*memories), name="prune", guarded=True)])
    assert (night.status, night.results[1].error["error"]) == ("refused", "GuardTripped")  # type: ignore[index]
    assert await state(database, scope) == before
    scopes = await rows(database, scope, "SELECT last_status FROM scopes WHERE tenant_id = :tenant_id")
    assert scopes[0]["last_status"] == "refused"


@pytest.mark.parametrize("accept", [False, True])
async def test_a_process_that_dies_refusing(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch, accept: bool
) -> None:
    """Killed at any statement of taking back, the run is still whole: asked again it ends refused, accepted applied."""
    memories = await too_many(database, scope)
    before = await state(database, scope)
    steps = [step(importance(memories[0], 9), name="early"), step(retire(*memories), name="prune", guarded=True)]

    async def dies(*_: object) -> None:
        raise asyncio.CancelledError

    context = await begun(database, scope)
    assert (await advance(database, context, steps, 0)).status == "done"
    with monkeypatch.context() as patch:
        patch.setattr(advance_module, "take_back", dies)
        with pytest.raises(asyncio.CancelledError):
            await advance(database, context, steps, 1)
    async with database.scoped(scope) as connection:
        assert [row["step"] for row in await steps_of(connection, context.run.id)] == ["early"]

    resumed = await begun(database, scope, accept=accept)
    assert (resumed.run.id, resumed.run.resumed) == (context.run.id, True)
    for index in range(2):
        await advance(database, resumed, steps, index)
    assert await close_run(database, resumed, {}) == ("applied" if accept else "refused")
    assert (await state(database, scope) == before) is not accept


async def test_what_was_changed_meanwhile_is_named_by_a_refusal(database: Database, scope: TenantScope) -> None:
    """A person's change between two steps survives the refusal, and the run's error names it."""
    memories = await too_many(database, scope)
    steps = [step(importance(memories[0], 9), name="early"), step(retire(*memories), name="prune", guarded=True)]
    context = await begun(database, scope)
    await advance(database, context, steps, 0)
    await change(database, scope, "UPDATE memory_state SET importance = 2 WHERE tenant_id = :tenant_id")
    await advance(database, context, steps, 1)
    error = (await rows(database, scope, "SELECT error FROM runs WHERE tenant_id = :tenant_id"))[0]["error"]
    assert [(one["column"], one["reason"]) for one in error["kept"]] == [("importance", "changed since")]


async def test_another_request_interrupts_a_dead_run(database: Database, scope: TenantScope) -> None:
    """The dead one is closed and can be undone; its process, if it lives, does nothing more."""
    tea = await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    dead = await begun(database, scope, kind="nightly")
    await advance(database, dead, [step(importance(tea, 6), name="first")], 0)
    other = await begun(database, scope, kind="sleep")
    assert other.run.id != dead.run.id
    with pytest.raises(TransactionConflict, match="is interrupted"):
        await perform_step(database, dead, step(importance(tea, 7), name="second"), 1)
    assert await close_run(database, dead, {}) == "interrupted"
    assert await close_run(database, other, {}) == "applied"
    assert (await undo_run(database, scope, dead.run.id, at=NIGHT)).refused == ()
    assert await state(database, scope) == before
    again = await begun(database, scope, kind="nightly")
    assert again.run.id != dead.run.id


@pytest.mark.parametrize("interrupted", [False, True])
async def test_no_night_before_one_that_was_begun(database: Database, scope: TenantScope, interrupted: bool) -> None:
    """A later run that died has changed the scope as well: it is undone first, which needs no other run."""
    tea = await add_memory(database, scope, "Ann likes tea")
    later = await begun(database, scope, NIGHT + timedelta(days=1))
    await advance(database, later, [step(importance(tea, 6))], 0)
    if interrupted:
        other = await begun(database, scope, NIGHT + timedelta(days=1), kind="harmonize")
        await undo_run(database, scope, other.run.id, at=NIGHT)
    for dry_run in (True, False):
        with pytest.raises(LaterRunsExist, match=str(later.run.id)):
            await begin_run(database, scope, "sleep", NIGHT, dry_run=dry_run)
    await undo_run(database, scope, later.run.id, at=NIGHT)
    assert (await begin_run(database, scope, "sleep", NIGHT)).as_of == NIGHT


async def test_a_step_nobody_did_is_no_success(database: Database, scope: TenantScope) -> None:
    """A run closed before all its steps were tried says which were not."""
    await add_memory(database, scope, "Ann likes tea")
    context = await begun(database, scope)
    await advance(database, context, [step(name="first")], 0)
    assert await close_run(database, context, {}, expected=["first", "second"]) == "partial"
    error = (await rows(database, scope, "SELECT error FROM runs WHERE tenant_id = :tenant_id"))[0]["error"]
    assert "second" in error["message"]


async def test_parts_that_were_done_are_found_and_can_be_undone(database: Database, scope: TenantScope) -> None:
    """A step that fails after some of its parts leaves a partial run, and goes on where it stopped."""
    tea = await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    tried: list[str] = []

    async def parts(connection: ScopedConnection, context: RunContext) -> list[str]:
        return ["a", "b"]

    async def write_part(connection: ScopedConnection, context: RunContext, part: str) -> StepOutcome:
        tried.append(part)
        if tried == ["a", "b"]:
            raise ValueError("b is not ready")
        sql, values = importance(tea, 6 if part == "a" else 7)
        await connection.execute(sql, **values)
        return StepOutcome(changed=1)

    work = step(name="apply", parts=parts, write_part=write_part)
    context = await begun(database, scope)
    assert (await advance(database, context, [work], 0)).status == "failed"
    assert (await advance(database, context, [work], 0)).status == "done"
    assert (await advance(database, context, [work], 0)).status == "done"
    assert tried == ["a", "b", "b"]
    assert await close_run(database, context, {}) == "applied"
    await undo_run(database, scope, context.run.id, at=NIGHT)
    assert await state(database, scope) == before


async def test_a_run_of_which_only_parts_were_done_is_partial(database: Database, scope: TenantScope) -> None:
    """What was committed can be undone although the only step failed."""
    tea = await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)

    async def parts(connection: ScopedConnection, context: RunContext) -> list[str]:
        return ["a", "b"]

    async def write_part(connection: ScopedConnection, context: RunContext, part: str) -> StepOutcome:
        if part == "b":
            raise ValueError("b is not ready")
        sql, values = importance(tea, 6)
        await connection.execute(sql, **values)
        return StepOutcome(changed=1)

    night = await sleep(database, scope, step(name="apply", parts=parts, write_part=write_part))
    assert (night.results[0].status, night.status) == ("failed", "partial")
    assert await state(database, scope) != before
    await undo_run(database, scope, night.run.id, at=NIGHT)
    async with database.scoped(scope) as connection:
        assert await checksum(connection) == before
