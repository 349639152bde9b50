"""Every way in which a source falls takes its beliefs along in the same transaction, through any number of copies."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from memory_core.beliefs.cascade import withdraw_support
from memory_core.database.engine import Database
from memory_core.layers import editing, retiring
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, add_scope, ago
from tests.knowledge import EMBEDDING, believe, change, remember
from tests.shmr_runs import harmonize, rows, state, undo

MORNING = NIGHT + timedelta(hours=5)


async def status(database: Database, scope: TenantScope, belief: uuid.UUID) -> tuple[str, str | None]:
    """A belief's status and its reason."""
    (row,) = await rows(
        database, scope, "SELECT status, status_reason FROM harmonic_beliefs WHERE belief_id = :id", id=belief
    )
    return row["status"], row["status_reason"]


async def copies(database: Database, scope: TenantScope, length: int, **fields: Any) -> list[uuid.UUID]:
    """A statement, a duplicate that gave way to it, a duplicate of that, and so on."""
    chain = [await remember(database, scope, "Ann lives in Oslo", **fields)]
    for number in range(1, length):
        copy = await remember(database, scope, f"Ann lives in Oslo{'.' * number}")
        await change(
            database,
            scope,
            "UPDATE memories SET superseded_by = :by, superseded_reason = 'duplicate', superseded_at = :at "
            "WHERE id = :id",
            id=copy,
            by=chain[-1],
            at=ago(hours=1),
        )
        chain.append(copy)
    return chain


async def fall(database: Database, scope: TenantScope, how: str, memory: uuid.UUID) -> None:
    """Let a memory fall in one of the four ways."""
    if how in ("wrong", "outdated"):
        await retiring.retract(database, scope, memory, how, who="ann", at=MORNING)
    elif how == "corrected":
        await editing.correct(
            database, scope, EMBEDDING, memory, content="Ann has never lived in Oslo", who="ann", at=MORNING
        )
    elif how == "superseded":
        await remember(
            database,
            scope,
            "Ann lives in Bergen",
            subject="Ann",
            predicate="lives_in",
            object="Bergen",
            observed_at=ago(minutes=5),
        )
        run = await harmonize(database, scope, MORNING)
        assert run.summary["contradictions_resolved"] == 1
    else:
        # What an erasure does of this: nothing that the memory carried stands when its row goes.
        async with database.scoped(scope) as connection:
            await connection.execute(
                "UPDATE memories SET retired_at = :at, retired_reason = 'erased' WHERE id = :id", at=MORNING, id=memory
            )
            await withdraw_support(connection, [memory], "its evidence was erased", at=MORNING)
            await connection.execute("DELETE FROM memories WHERE id = :id", id=memory)
            await connection.commit()


@pytest.mark.parametrize("how", ["superseded", "wrong", "outdated", "corrected", "erased"])
async def test_a_belief_is_stale_as_soon_as_its_source_falls(database: Database, scope: TenantScope, how: str) -> None:
    """Superseded, retired, corrected or erased: the belief says why, and one that rests on more stays."""
    source = await remember(
        database,
        scope,
        "Ann lives in Oslo",
        subject="Ann",
        predicate="lives_in",
        object="Oslo",
        observed_at=ago(days=9),
    )
    other = await remember(database, scope, "Ann rows on the fjord")
    alone = await believe(database, scope, "Ann is at home in Oslo", {source: "supports"})
    shared = await believe(database, scope, "Ann is Norwegian", {source: "supports", other: "supports"})
    disputed = await believe(
        database, scope, "Ann rows or not", {other: "supports", source: "contradicts"}, status="contested"
    )
    untouched = await believe(database, scope, "Ann rows", {other: "supports"})
    await fall(database, scope, how, source)
    for fallen in (alone, disputed):
        found, reason = await status(database, scope, fallen)
        assert (found, bool(reason)) == ("stale", True), how
    for standing in (shared, untouched):
        assert (await status(database, scope, standing))[0] == "held", how


@pytest.mark.parametrize("how", ["superseded", "wrong", "outdated", "corrected"])
async def test_copies_of_copies_fall_with_the_statement(database: Database, scope: TenantScope, how: str) -> None:
    """A belief that rests on a copy's copy's copy alone does not outlive the first statement."""
    chain = await copies(
        database, scope, 4, subject="Ann", predicate="lives_in", object="Oslo", observed_at=ago(days=9)
    )
    belief = await believe(database, scope, "Ann is at home in Oslo", {chain[-1]: "supports"})
    assert (await status(database, scope, belief))[0] == "held"
    await fall(database, scope, how, chain[0])
    assert (await status(database, scope, belief))[0] == "stale"


async def test_an_undo_revives_exactly_what_its_run_made_stale(database: Database, scope: TenantScope) -> None:
    """What a person had retired before stays so, and so does what rested on it; the rest is as it was."""
    source = await remember(
        database,
        scope,
        "Ann lives in Oslo",
        subject="Ann",
        predicate="lives_in",
        object="Oslo",
        observed_at=ago(days=9),
    )
    wrong = await remember(database, scope, "Ann keeps goats", observed_at=ago(days=8))
    by_run = await believe(database, scope, "Ann is at home in Oslo", {source: "supports"})
    by_person = await believe(database, scope, "Ann is a farmer", {wrong: "supports"})
    await retiring.retract(database, scope, wrong, "wrong", who="ann", at=ago(hours=2))
    await remember(
        database,
        scope,
        "Ann lives in Bergen",
        subject="Ann",
        predicate="lives_in",
        object="Bergen",
        observed_at=ago(hours=1),
    )
    before = await state(database, scope)
    run = await harmonize(database, scope, NIGHT)
    assert (await status(database, scope, by_run))[0] == "stale"
    undone = await undo(database, scope, run.run, MORNING)
    assert undone.refused == ()
    assert await state(database, scope) == before
    assert await status(database, scope, by_run) == ("held", None)
    assert (await status(database, scope, by_person))[0] == "stale"


async def test_an_undo_does_not_revive_what_fell_again_meanwhile(database: Database, scope: TenantScope) -> None:
    """The run's supersession goes, but the source was retracted since: the belief stays stale."""
    source = await remember(
        database,
        scope,
        "Ann lives in Oslo",
        subject="Ann",
        predicate="lives_in",
        object="Oslo",
        observed_at=ago(days=9),
    )
    belief = await believe(database, scope, "Ann is at home in Oslo", {source: "supports"})
    await remember(
        database,
        scope,
        "Ann lives in Bergen",
        subject="Ann",
        predicate="lives_in",
        object="Bergen",
        observed_at=ago(hours=1),
    )
    run = await harmonize(database, scope, NIGHT)
    assert (await status(database, scope, belief))[0] == "stale"
    await retiring.retract(database, scope, source, "wrong", who="ann", at=MORNING)
    await undo(database, scope, run.run, MORNING)
    await harmonize(database, scope, NIGHT + timedelta(days=1))
    assert (await status(database, scope, belief))[0] == "stale"


async def test_a_child_follows_its_parents_correction_in_its_next_night(database: Database, scope: TenantScope) -> None:
    """A parent's transaction may not write below it; the child's collect finds it before anything is decided."""
    child = scope.child("brand", "halo")
    await add_scope(database, child)
    shared = await remember(database, scope, "Returns take 30 days")
    await add_memory(database, child, "The shop sells hats")
    belief = await believe(database, child, "Returns take 30 days", {shared: "supports"})
    await editing.correct(
        database, scope, EMBEDDING, shared, content="Returns take 14 days", who="ann", at=ago(hours=5)
    )
    assert (await status(database, child, belief))[0] == "held"
    run = await harmonize(database, child)
    assert run.outcome("collect")["counts"]["beliefs_withdrawn"] == 1
    assert (await status(database, child, belief))[0] == "stale"
