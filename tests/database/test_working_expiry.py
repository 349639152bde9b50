"""Working-layer expiry: what was only for the moment is retired when it is over, never deleted, and can come back."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.layers import editing
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.prune_orphans import STEP as PRUNE_ORPHANS
from memory_core.sleep.working_expiry import STEP, WorkingExpirySettings
from tests.builders import NIGHT, add_memory, add_scope, ago
from tests.nights import change, look_ahead, rows, sleep, state, undo
from tests.steps import begun, retire, step

REASON = "working memory expired"


async def working(database: Database, scope: TenantScope, content: str, **fields: Any) -> uuid.UUID:
    """One working memory of two days ago, unless said otherwise."""
    return await add_memory(
        database, scope, content, **{"layer": "working", "observed_at": ago(days=2), "label": "TODAY: x", **fields}
    )


async def retired(database: Database, scope: TenantScope) -> dict[str, tuple[str, datetime]]:
    """Reason and time of the retired memories by content."""
    found = await rows(
        database,
        scope,
        "SELECT content, retired_reason, retired_at FROM memories "
        "WHERE scope_path = :scope_path AND retired_at IS NOT NULL",
    )
    return {row["content"]: (row["retired_reason"], row["retired_at"]) for row in found}


async def test_what_is_over_is_retired_by_its_own_time_or_after_a_day(database: Database, scope: TenantScope) -> None:
    """Its expires_at where it has one, else 24 hours since it was recorded; both limits count as over."""
    await working(database, scope, "said its end", observed_at=ago(hours=2), expires_at=NIGHT)
    await working(database, scope, "a day old", observed_at=ago(hours=24))
    await working(database, scope, "for a week", expires_at=NIGHT + timedelta(days=5))
    await working(database, scope, "almost a day old", observed_at=ago(hours=23.9))
    await add_memory(database, scope, "a fact with an end", observed_at=ago(days=9), expires_at=ago(days=1))
    before = await rows(database, scope, "SELECT id, expires_at, last_activity_at FROM memories ORDER BY id")
    night = await sleep(database, scope, STEP)
    assert await retired(database, scope) == {"said its end": (REASON, NIGHT), "a day old": (REASON, NIGHT)}
    assert await rows(database, scope, "SELECT id, expires_at, last_activity_at FROM memories ORDER BY id") == before
    assert (night.outcome.candidates, night.outcome.changed) == (2, 2)
    assert night.outcome.counts["working_expired"] == 2


async def test_the_lifetime_is_a_setting(database: Database, scope: TenantScope) -> None:
    """Two hours for those that say none; an end that was said is not moved by it."""
    await working(database, scope, "three hours old", observed_at=ago(hours=3))
    await working(database, scope, "said its end", observed_at=ago(hours=3), expires_at=NIGHT + timedelta(hours=1))
    await sleep(database, scope, STEP, settings={"working_expiry": {"default_hours": 2}})
    assert list(await retired(database, scope)) == ["three hours old"]


async def test_reading_prolongs_nothing(database: Database, scope: TenantScope) -> None:
    """F18: a row that was read an hour ago ends when it was to end."""
    await working(database, scope, "read lately", access_at=(ago(hours=1),))
    await working(database, scope, "read lately, with an end", expires_at=ago(hours=2), access_at=(ago(hours=1),))
    await sleep(database, scope, STEP)
    assert set(await retired(database, scope)) == {"read lately", "read lately, with an end"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"pinned": True}, "pinned"), ({"label": "SOUL: user.name"}, "identity or persona")],
    ids=["pinned", "identity"],
)
async def test_what_is_protected(database: Database, scope: TenantScope, fields: dict[str, Any], reason: str) -> None:
    """F18: pinned rows and who the agent is stay, whatever their time, and why is said."""
    await working(database, scope, "kept", expires_at=ago(days=1), **fields)
    night = await sleep(database, scope, STEP)
    assert await retired(database, scope) == {}
    assert dict(night.outcome.skipped) == {reason: 1}
    assert night.outcome.reason == "every working memory that is over is protected"


async def test_nothing_to_do_is_said(database: Database, scope: TenantScope) -> None:
    """No working memory, and none that is over, are two reasons."""
    await add_memory(database, scope, "a fact", observed_at=ago(days=9))
    assert (await sleep(database, scope, STEP)).outcome.reason == "there is no working memory"
    await working(database, scope, "fresh", observed_at=ago(hours=1))
    again = await sleep(database, scope, STEP, again=True)
    assert again.outcome.reason == "no working memory is over yet"


async def test_the_guard_does_not_count_what_expires(database: Database, scope: TenantScope) -> None:
    """All of a hundred working lines may end in one night, and in thirty days of nights."""
    for number in range(100):
        await working(database, scope, f"line {number}")
    await add_memory(database, scope, "a fact")
    night = await sleep(database, scope, (STEP, step(guarded=True)))
    assert night.status == "applied"
    assert len(await retired(database, scope)) == 100


async def test_the_guard_is_no_wider_for_what_expires(database: Database, scope: TenantScope) -> None:
    """A hundred working lines make no room for a sixth of twenty facts, before they expire or after."""
    for number in range(100):
        await working(database, scope, f"line {number}", observed_at=ago(hours=1))
    facts = [await add_memory(database, scope, f"fact {number}") for number in range(20)]
    night = await sleep(database, scope, step(retire(*facts[:6]), guarded=True))
    assert (night.status, (night.results[-1].error or {}).get("guard")) == ("refused", "retire_share")
    assert (await sleep(database, scope, step(retire(*facts[:5]), guarded=True))).status == "applied"


async def test_it_does_not_use_up_what_prune_may_take(database: Database, scope: TenantScope) -> None:
    """In one night, expiry of many lines leaves prune's allowance as it was."""
    for number in range(30):
        await working(database, scope, f"line {number}")
    await add_memory(database, scope, "in use", importance=9, access_at=(ago(hours=2),))
    for number in range(5):
        noise = await add_memory(database, scope, f"noise {number}", importance=2, observed_at=ago(days=60))
        await change(
            database,
            scope,
            "UPDATE memory_state SET first_night = :at WHERE memory_id = :id",
            at=ago(days=60),
            id=noise,
        )
    night = await sleep(database, scope, (STEP, PRUNE_ORPHANS))
    assert (night.status, night.outcome.changed) == ("applied", 5)


async def test_its_reminder_is_called_off(database: Database, scope: TenantScope) -> None:
    """What hung on the working memory follows it in the same transaction."""
    memory = await working(database, scope, "call back today")
    await change(
        database,
        scope,
        "INSERT INTO triggers (tenant_id, scope_path, id, memory_id, condition, state, recorded_at) "
        "VALUES (:tenant_id, :scope_path, :id, :memory, 'today', 'pending', :at)",
        at=ago(days=2),
        id=uuid.uuid4(),
        memory=memory,
    )
    await sleep(database, scope, STEP)
    assert [row["state"] for row in await rows(database, scope, "SELECT state FROM triggers")] == ["cancelled"]


async def test_another_scope_is_left_alone(database: Database, scope: TenantScope) -> None:
    """A run retires its own scope's rows only."""
    await working(database, scope, "above")
    await working(database, scope.child("team", "a"), "own")
    await sleep(database, scope.child("team", "a"), STEP)
    assert await retired(database, scope) == {}
    assert list(await retired(database, scope.child("team", "a"))) == ["own"]


async def test_twice_is_once_and_a_dry_run_says_the_same(database: Database, scope: TenantScope) -> None:
    """A second run finds nothing, and the preview is the later run's diff."""
    await working(database, scope, "over")
    ahead = await look_ahead(database, scope, STEP)
    night = await sleep(database, scope, STEP)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == ahead
    before = await state(database, scope)
    assert (await sleep(database, scope, STEP, again=True)).outcome.candidates == 0
    assert await state(database, scope) == before


async def test_undo_brings_it_back_for_good(database: Database, scope: TenantScope) -> None:
    """What a person undid is not retired again by the next night; another line with the same words is."""
    await working(database, scope, "over")
    before = await state(database, scope)
    night = await sleep(database, scope, STEP)
    assert (await undo(database, scope, night, STEP)).refused == ()
    assert await state(database, scope) == before
    twin = await working(database, scope, "over")
    again = await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert dict(again.outcome.skipped) == {"taken back by a person": 1}
    assert again.outcome.sample == (str(twin),)
    asked = await sleep(database, scope, STEP, NIGHT + timedelta(days=2), reconsider=True)
    assert asked.outcome.changed == 1


@pytest.mark.parametrize("whole_run", [False, True], ids=["one memory", "the run"])
async def test_restore_brings_it_back_for_good(database: Database, scope: TenantScope, whole_run: bool) -> None:
    """A restored working memory stays, although its time is over."""
    memory = await working(database, scope, "over")
    night = await sleep(database, scope, STEP)
    if whole_run:
        await editing.restore_run(database, scope, night.run.id, who="ann", at=NIGHT + timedelta(hours=1))
    else:
        await editing.restore(database, scope, memory, who="ann", at=NIGHT + timedelta(hours=1))
    assert await retired(database, scope) == {}
    again = await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert dict(again.outcome.skipped) == {"taken back by a person": 1}
    kept = await rows(database, scope, "SELECT phase, verdict FROM decisions WHERE scope_path = :scope_path")
    assert [tuple(row.values()) for row in kept] == [("working_expiry", "undone")]


async def test_it_is_off_unless_switched_on(database: Database, scope: TenantScope) -> None:
    """Without the setting the step is left out of a night; with it, it is in."""
    await add_scope(database, scope)
    assert STEP.enabled is not None
    assert not WorkingExpirySettings().enabled
    assert not STEP.enabled(await begun(database, scope))
    assert STEP.enabled(await begun(database, scope, settings={"working_expiry": {"enabled": True}}))
