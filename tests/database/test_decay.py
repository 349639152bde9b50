"""Decay: idle memories lose importance in closed form, however often a night asks, and nothing else changes."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.database.engine import Database
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.decay import STEP, DecaySettings
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from tests.builders import NIGHT, add_access, add_memory, add_scope, ago
from tests.nights import change, look_ahead, rows, sleep, state, undo
from tests.steps import begun

IMPORTANCE = "SELECT memory_id, importance, decayed_at FROM memory_state WHERE scope_path = :scope_path"


async def importances(database: Database, scope: TenantScope) -> dict[uuid.UUID, float]:
    """Importance by memory."""
    return {row["memory_id"]: row["importance"] for row in await rows(database, scope, IMPORTANCE)}


async def importance_of(database: Database, scope: TenantScope, memory_id: uuid.UUID) -> float:
    """One memory's importance."""
    return (await importances(database, scope))[memory_id]


async def test_half_of_what_is_above_the_floor_goes_in_a_half_life(database: Database, scope: TenantScope) -> None:
    """Idle for after_days plus a half-life: halfway to the floor; plus two: a quarter is left; not idle: nothing."""
    one = await add_memory(database, scope, "idle for a half-life", importance=5, observed_at=ago(days=60))
    two = await add_memory(database, scope, "idle for two", importance=7, layer="episodic", observed_at=ago(days=90))
    limit = await add_memory(database, scope, "idle for exactly 30 days", importance=5, observed_at=ago(days=30))
    fresh = await add_memory(database, scope, "said lately", importance=5, observed_at=ago(days=3))
    night = await sleep(database, scope, STEP)
    assert await importances(database, scope) == {
        one: pytest.approx(3, abs=1e-12),
        two: pytest.approx(2.5, abs=1e-12),
        limit: 5,
        fresh: 5,
    }
    assert (night.outcome.candidates, night.outcome.changed, night.outcome.counts) == (2, 2, {"nodes_decayed": 2})
    assert set(night.outcome.sample) == {str(one), str(two)}


async def test_floor_half_life_and_rest_are_settings(database: Database, scope: TenantScope) -> None:
    """The formula with other constants; what is below the floor already is not raised to it."""
    high = await add_memory(database, scope, "high", importance=6, observed_at=ago(days=17))
    low = await add_memory(database, scope, "low", importance=1.5, observed_at=ago(days=17))
    chosen = {"decay": {"after_days": 7, "half_life_days": 10, "floor": 2}}
    await sleep(database, scope, STEP, settings=chosen)
    assert await importances(database, scope) == {high: pytest.approx(4, abs=1e-12), low: 1.5}


@given(
    hours=st.lists(st.integers(1, 24 * 400), min_size=1, max_size=8, unique=True),
    used=st.lists(st.integers(0, 24 * 99), max_size=2),
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_number_of_nights_equals_one(database: Database, hours: list[int], used: list[int]) -> None:
    """Whatever nights lie between, the last importance is that of one night, to the ninth digit."""
    many = TenantScope.root("tenant", f"many-{uuid.uuid4().hex}")
    once = TenantScope.root("tenant", f"once-{uuid.uuid4().hex}")
    begin = NIGHT - timedelta(days=100)
    for scope in (many, once):
        for importance, said in ((5.0, 0), (7.9, 40), (1.2, 90), (3.3, 71)):
            await add_memory(
                database,
                scope,
                f"of importance {importance}",
                importance=importance,
                observed_at=begin + timedelta(days=said),
                access_at=tuple(begin + timedelta(hours=hour) for hour in used) if said < 50 else (),
            )
    nights = [NIGHT + timedelta(hours=hour) for hour in sorted(hours)]
    for at in nights:
        await sleep(database, many, STEP, at)
    await sleep(database, once, STEP, nights[-1])
    ended = [sorted((await importances(database, scope)).values()) for scope in (many, once)]
    assert ended[0] == pytest.approx(ended[1], abs=1e-9, rel=0)


async def test_a_second_run_at_the_same_time_changes_nothing(database: Database, scope: TenantScope) -> None:
    """Nothing is left to apply, and that is said."""
    await add_memory(database, scope, "idle", importance=5, observed_at=ago(days=60))
    await sleep(database, scope, STEP)
    before = await state(database, scope)
    again = await sleep(database, scope, STEP, again=True)
    assert (again.outcome.changed, again.outcome.reason) == (0, "every memory was active or lowered lately")
    assert await state(database, scope) == before


async def test_new_activity_starts_a_new_rest(database: Database, scope: TenantScope) -> None:
    """What decayed and is then used keeps its importance for after_days, and decays from there."""
    memory = await add_memory(database, scope, "used again", importance=5, observed_at=ago(days=60))
    await sleep(database, scope, STEP)
    await add_access(database, scope, memory, NIGHT + timedelta(days=1))
    await sleep(database, scope, STEP, NIGHT + timedelta(days=31))
    assert await importance_of(database, scope, memory) == pytest.approx(3, abs=1e-12)
    await sleep(database, scope, STEP, NIGHT + timedelta(days=61))
    assert await importance_of(database, scope, memory) == pytest.approx(2, abs=1e-12)


async def test_a_night_of_the_past_sees_no_later_activity(database: Database, scope: TenantScope) -> None:
    """An access after as_of protects from nothing; one before it does."""
    later = await add_memory(
        database, scope, "used later", importance=5, observed_at=ago(days=60), access_at=(NIGHT + timedelta(days=1),)
    )
    both = await add_memory(
        database,
        scope,
        "used before and later",
        importance=5,
        observed_at=ago(days=90),
        access_at=(ago(days=60), NIGHT + timedelta(days=1)),
    )
    await sleep(database, scope, STEP)
    assert await importances(database, scope) == {later: pytest.approx(3), both: pytest.approx(3)}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"importance": 8.0}, "importance of 8 or more"),
        ({"label": "SOUL: user.name"}, "identity or persona"),
        ({"label": "PERSONA: tone"}, "identity or persona"),
        ({"pinned": True}, "pinned"),
        ({"derived_key": "meta:TEAM"}, None),
        ({"layer": "procedural"}, None),
        ({"expires_at": ago(days=1)}, None),
        ({"retired_at": ago(days=2), "retired_reason": "noise"}, None),
        ({"recorded_at": NIGHT + timedelta(hours=1)}, None),
    ],
    ids=["important", "soul", "persona", "pinned", "derived", "procedure", "expired", "retired", "not yet known"],
)
async def test_what_does_not_decay(
    database: Database, scope: TenantScope, fields: dict[str, Any], reason: str | None
) -> None:
    """Important, protected, derived and not current memories keep their importance, and the first say why."""
    fields = {"importance": 5.0, **fields}
    kept = await add_memory(database, scope, "kept", observed_at=ago(days=400), **fields)
    night = await sleep(database, scope, STEP)
    assert await importance_of(database, scope, kept) == fields["importance"]
    assert dict(night.outcome.skipped) == ({reason: 1} if reason else {})
    assert night.outcome.reason


async def test_another_scope_is_left_alone(database: Database, scope: TenantScope) -> None:
    """A run writes its own scope only, in both directions of the path."""
    child = scope.child("team", "a")
    above = await add_memory(database, scope, "above", importance=5, observed_at=ago(days=60))
    below = await add_memory(database, child.child("person", "b"), "below", importance=5, observed_at=ago(days=60))
    own = await add_memory(database, child, "own", importance=5, observed_at=ago(days=60))
    await sleep(database, child, STEP)
    assert await importance_of(database, scope, above) == 5
    assert await importance_of(database, child.child("person", "b"), below) == 5
    assert await importance_of(database, child, own) == pytest.approx(3)


async def test_decay_is_no_activity(database: Database, scope: TenantScope) -> None:
    """F07: nothing that says when a memory was used or written moves; only importance and the mark do."""
    await add_memory(database, scope, "idle", importance=5, observed_at=ago(days=60))
    night = await sleep(database, scope, STEP)
    changes = await rows(
        database, scope, "SELECT table_name, after FROM run_changes WHERE run_id = :run", run=night.run.id
    )
    assert [(row["table_name"], set(row["after"])) for row in changes] == [
        ("memory_state", {"importance", "decayed_at"})
    ]


async def test_strengthening_after_decay_starts_from_what_is_left(database: Database, scope: TenantScope) -> None:
    """The two phases of one night compose: new evidence lifts the lowered importance, and rest begins anew."""
    memory = await add_memory(database, scope, "used again", importance=5, observed_at=ago(days=60))
    await sleep(database, scope, STEP)
    await add_access(database, scope, memory, NIGHT + timedelta(hours=20))
    night = await sleep(database, scope, (STRENGTHEN, STEP), NIGHT + timedelta(days=1))
    assert await importance_of(database, scope, memory) == pytest.approx(3 + 0.1 * 7)
    assert night.outcome.changed == 0


async def test_undo_restores_and_is_remembered(database: Database, scope: TenantScope) -> None:
    """An undone decay is not done again by itself; asked to reconsider, it is made up for from where it was."""
    memory = await add_memory(database, scope, "idle", importance=5, observed_at=ago(days=60))
    before = await state(database, scope)
    ahead = await look_ahead(database, scope, STEP)
    night = await sleep(database, scope, STEP)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == ahead
    assert (await undo(database, scope, night, STEP)).refused == ()
    assert await state(database, scope) == before
    again = await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert dict(again.outcome.skipped) == {"taken back by a person": 1}
    assert await state(database, scope) == before
    await sleep(database, scope, STEP, NIGHT + timedelta(days=30), reconsider=True)
    assert await importance_of(database, scope, memory) == pytest.approx(2, abs=1e-12)


async def test_an_undo_leaves_what_was_changed_since_whole(database: Database, scope: TenantScope) -> None:
    """Importance set by a person after the night stays, and the mark with it: otherwise decay would come twice."""
    await add_memory(database, scope, "idle", importance=5, observed_at=ago(days=60))
    night = await sleep(database, scope, STEP)
    await change(database, scope, "UPDATE memory_state SET importance = 7 WHERE scope_path = :scope_path")
    refused = (await undo(database, scope, night, STEP)).refused
    assert {row["column"] for row in refused} == {"importance", "decayed_at"}
    found = await rows(database, scope, IMPORTANCE)
    assert [(row["importance"], row["decayed_at"]) for row in found] == [(7, NIGHT)]


async def test_it_is_off_unless_switched_on(database: Database, scope: TenantScope) -> None:
    """Without the setting the step is left out of a night; with it, it is in."""
    await add_scope(database, scope)
    assert STEP.enabled is not None
    assert not DecaySettings().enabled
    assert not STEP.enabled(await begun(database, scope))
    assert STEP.enabled(await begun(database, scope, settings={"decay": {"enabled": True}}))
