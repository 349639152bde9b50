"""Phase 3: stale, unimportant, unlinked memories are retired; what is protected stays, and why is said."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.cooccurrence import STEP as COOCCURRENCE
from memory_core.sleep.prune_orphans import STEP
from tests.builders import NIGHT, add_access, add_edge, add_memory, ago
from tests.nights import change, edges, look_ahead, rows, sleep, state, undo

OLD = ago(days=60)


@pytest.fixture
async def used_scope(database: Database, scope: TenantScope) -> TenantScope:
    """A scope in which something was used, so that it may be pruned at all."""
    await add_memory(database, scope, "the fact in daily use", importance=9, observed_at=OLD, access_at=(ago(hours=2),))
    return scope


async def stale(
    database: Database,
    scope: TenantScope,
    name: str,
    importance: float = 2.0,
    seen: datetime | None = OLD,
    **fields: Any,
) -> uuid.UUID:
    """A memory of sixty days ago that a night has seen then."""
    memory_id = await add_memory(
        database, scope, name, importance=importance, observed_at=fields.pop("observed_at", OLD), **fields
    )
    await change(
        database, scope, "UPDATE memory_state SET first_night = :at WHERE memory_id = :id", at=seen, id=memory_id
    )
    return memory_id


async def retired(database: Database, scope: TenantScope) -> dict[str, str]:
    """The retired memories' reasons by content."""
    found = await rows(
        database,
        scope,
        "SELECT content, retired_reason FROM memories WHERE scope_path = :scope_path AND retired_at IS NOT NULL",
    )
    return {row["content"]: row["retired_reason"] for row in found}


async def add_belief(
    database: Database, scope: TenantScope, memory_id: uuid.UUID, status: str = "held", role: str = "supports"
) -> uuid.UUID:
    """A belief that rests on the memory."""
    belief_id = uuid.uuid4()
    await change(
        database,
        scope,
        "WITH belief AS (INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, "
        "content, status, valid_from, cluster_id, model, rules_version, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, 's', 'p', 'o', 'c', :status, :at, 'c', 'rules', '1', :at)) "
        "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
        "VALUES (:tenant_id, :id, :memory, :role, :scope_path)",
        id=belief_id,
        memory=memory_id,
        status=status,
        role=role,
        at=OLD,
    )
    return belief_id


async def test_noise_is_retired_with_its_reason_and_nothing_is_deleted(
    database: Database, used_scope: TenantScope
) -> None:
    """The documented rule on the true degree and activity: retired by the run, in words, the row and its edges stay."""
    alone = await stale(database, used_scope, "alone")
    leaf = await stale(database, used_scope, "leaf", importance=3.9)
    hub = await stale(database, used_scope, "hub", importance=5)
    await add_edge(database, used_scope, leaf, hub, "OF")
    night = await sleep(database, used_scope, STEP)
    assert await retired(database, used_scope) == {
        "alone": "noise: not used for 60 days, importance 2.0, linked to nothing",
        "leaf": "noise: not used for 60 days, importance 3.9, linked to one memory",
    }
    gone = await rows(database, used_scope, "SELECT * FROM memories WHERE retired_at IS NOT NULL")
    assert {(row["retired_at"], row["retired_by_run"]) for row in gone} == {(NIGHT, night.run.id)}
    assert len(await edges(database, used_scope)) == 1
    assert night.outcome.counts["nodes_pruned"] == night.outcome.changed == night.outcome.candidates == 2
    assert set(night.outcome.sample) == {str(alone), str(leaf)}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"observed_at": ago(days=7)}, "active or first seen in the last 7 days"),
        ({"access_at": (ago(days=6),)}, "active or first seen in the last 7 days"),
        ({"seen": ago(days=7)}, "active or first seen in the last 7 days"),
        ({"seen": None}, "active or first seen in the last 7 days"),
        ({"label": "SOUL: user.name"}, "identity or persona"),
        ({"label": "AGENT_IDENTITY: name"}, "identity or persona"),
        ({"label": "PERSONA: tone"}, "identity or persona"),
        ({"pinned": True}, "pinned"),
        ({"access_at": (ago(days=29),)}, "used in the last 30 days"),
    ],
    ids=["week", "used", "just seen", "never seen", "soul", "identity", "persona", "pinned", "used in the month"],
)
async def test_what_is_protected(
    database: Database, used_scope: TenantScope, fields: dict[str, Any], reason: str
) -> None:
    """F14, F15, F18, F54, F62: identity, pinned, used and new memories stay; exactly seven days is not yet stale."""
    await stale(database, used_scope, "kept", **fields)
    night = await sleep(database, used_scope, STEP)
    assert await retired(database, used_scope) == {}
    assert (night.outcome.candidates, night.outcome.skipped) == (1, {reason: 1})
    assert night.outcome.reason == "every memory of low importance is active, linked or protected"


@pytest.mark.parametrize("fields", [{"access_at": (ago(days=31),)}, {"seen": ago(days=7, seconds=1)}])
async def test_just_beyond_the_bounds(database: Database, used_scope: TenantScope, fields: dict[str, Any]) -> None:
    """A second more than seven days since the first night, or a use more than thirty days ago, protects nothing."""
    await stale(database, used_scope, "gone", **fields)
    await sleep(database, used_scope, STEP)
    assert set(await retired(database, used_scope)) == {"gone"}


@pytest.mark.parametrize(
    "fields",
    [
        {"layer": "procedural"},
        {"layer": "prospective"},
        {"layer": "working"},
        {"derived_key": "meta:TEA"},
        {"importance": 4.0},
        {"expires_at": ago(days=1)},
    ],
    ids=["procedural", "prospective", "working", "derived", "importance", "expired"],
)
async def test_what_is_no_candidate(database: Database, used_scope: TenantScope, fields: dict[str, Any]) -> None:
    """Other layers, what phases made, what is not current, and importance 4.0 of 10 are not looked at."""
    await stale(database, used_scope, "kept", **fields)
    night = await sleep(database, used_scope, STEP)
    assert await retired(database, used_scope) == {}
    assert (night.outcome.candidates, night.outcome.reason) == (0, "no current memory is less important than 4")


async def test_an_import_of_old_memories_is_not_pruned_on_its_first_night(
    database: Database, used_scope: TenantScope
) -> None:
    """F62: age counts from the first night that saw the memory, which the phase notes and undo forgets."""
    await add_memory(database, used_scope, "imported", importance=2, observed_at=OLD)
    before = await state(database, used_scope)
    first = await sleep(database, used_scope, STEP)
    assert (first.outcome.changed, first.outcome.counts["first_seen"]) == (0, 2)
    nights = await rows(database, used_scope, "SELECT DISTINCT first_night FROM memory_state")
    assert [row["first_night"] for row in nights] == [NIGHT]
    await undo(database, used_scope, first, STEP)
    assert await state(database, used_scope) == before
    await sleep(database, used_scope, STEP)
    await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=7))
    assert await retired(database, used_scope) == {}
    await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=8))
    assert set(await retired(database, used_scope)) == {"imported"}


async def test_neighbours_are_distinct_current_and_real(database: Database, used_scope: TenantScope) -> None:
    """F16: parallel edges are one neighbour; co-occurrence, unconfirmed, retired edges and gone neighbours are none."""
    hub = await stale(database, used_scope, "hub", importance=5)
    other = await stale(database, used_scope, "other hub", importance=5)
    gone = await stale(database, used_scope, "gone hub", importance=5, retired_at=OLD, retired_reason="wrong")
    names = ["parallel", "co-occurred", "inferred", "retired edge", "gone neighbour", "two", "confirmed"]
    leaf = {name: await stale(database, used_scope, name) for name in names}
    for name in names:
        await add_edge(database, used_scope, leaf[name], hub, "OF")
    await add_edge(database, used_scope, leaf["parallel"], hub, "ABOUT")
    await add_edge(database, used_scope, hub, leaf["parallel"], "HAS")
    await add_edge(database, used_scope, leaf["co-occurred"], other, "CO_OCCURRED", kind="co_occurred")
    await add_edge(database, used_scope, leaf["inferred"], other, "MAYBE", kind="inferred")
    await add_edge(database, used_scope, leaf["retired edge"], other, "WAS", status="retired")
    await add_edge(database, used_scope, leaf["gone neighbour"], gone, "OF")
    await add_edge(database, used_scope, other, leaf["two"], "HAS")
    await add_edge(database, used_scope, leaf["confirmed"], other, "IS", kind="inferred", status="confirmed")
    night = await sleep(database, used_scope, STEP)
    assert set(names) - set(await retired(database, used_scope)) == {"two", "confirmed"}
    assert night.outcome.skipped == {"more than 1 distinct neighbours": 2}


async def test_the_last_link_of_an_important_memory_stays(database: Database, used_scope: TenantScope) -> None:
    """F14: the only detail of a patient is kept; so is the best of several that would all go in one night."""
    ann = await stale(database, used_scope, "PATIENT: Ann", importance=10)
    allergy = await stale(database, used_scope, "ALLERGY: penicillin")
    await add_edge(database, used_scope, ann, allergy, "HAS")
    bo = await stale(database, used_scope, "PATIENT: Bo", importance=8)
    for name, importance in (("shoe size", 1.0), ("ALLERGY: nuts", 3.0), ("hat size", 1.5)):
        await add_edge(database, used_scope, await stale(database, used_scope, name, importance=importance), bo, "OF")
    cy = await stale(database, used_scope, "PATIENT: Cy", importance=9)
    await add_edge(database, used_scope, cy, await stale(database, used_scope, "cy's job", importance=5), "HAS")
    await add_edge(database, used_scope, cy, await stale(database, used_scope, "cy's bus line"), "HAS")
    lamp = await stale(database, used_scope, "lamp", importance=7.9)
    await add_edge(database, used_scope, lamp, await stale(database, used_scope, "lamp's colour"), "HAS")
    night = await sleep(database, used_scope, STEP)
    expected = {"shoe size", "hat size", "cy's bus line", "lamp's colour"}
    assert set(await retired(database, used_scope)) == expected
    assert night.outcome.skipped == {"last link of an important memory": 2}
    await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=30))
    assert set(await retired(database, used_scope)) == expected


@pytest.mark.parametrize("reverse", [False, True])
async def test_the_order_of_rows_decides_nothing(database: Database, used_scope: TenantScope, reverse: bool) -> None:
    """F17: a stale star loses its leaves and keeps its hub, whichever row comes first, and again in a second run."""
    names = ["hub", *(f"leaf {number}" for number in range(3))]
    node = {name: await stale(database, used_scope, name) for name in (reversed(names) if reverse else names)}
    for name in names[1:]:
        await add_edge(database, used_scope, node["hub"], node[name], "HAS")
    await sleep(database, used_scope, STEP)
    assert set(await retired(database, used_scope)) == set(names[1:])
    after = await state(database, used_scope)
    again = await sleep(database, used_scope, STEP)
    tomorrow = await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=1))
    assert (again.outcome.changed, tomorrow.outcome.changed) == (0, 0)
    assert await state(database, used_scope) == after
    await sleep(database, used_scope, STEP, at=NIGHT + timedelta(days=8))
    assert set(await retired(database, used_scope)) == set(names)


@pytest.mark.parametrize(
    ("status", "role", "kept"),
    [
        ("held", "supports", True),
        ("contested", "supports", True),
        ("contested", "contradicts", True),
        ("stale", "supports", False),
        ("superseded", "supports", False),
        ("held", "superseded", False),
    ],
)
async def test_evidence_of_a_belief_stays(
    database: Database, used_scope: TenantScope, status: str, role: str, kept: bool
) -> None:
    """What a held or contested belief rests on is protected; what a former one rested on is not."""
    memory = await stale(database, used_scope, "evidence")
    await add_belief(database, used_scope, memory, status, role)
    night = await sleep(database, used_scope, STEP)
    assert bool(await retired(database, used_scope)) is not kept
    assert night.outcome.skipped == ({"evidence of a belief": 1} if kept else {})


async def test_winners_and_corrections_stay(database: Database, used_scope: TenantScope) -> None:
    """A memory that others gave way to, one that corrects another, and one that a person corrected are kept."""
    winner = await stale(database, used_scope, "winner")
    await stale(database, used_scope, "loser", superseded_by=winner, superseded_reason="update", superseded_at=OLD)
    await stale(database, used_scope, "correction", corrects=winner)
    corrected = await stale(database, used_scope, "corrected")
    await change(
        database,
        used_scope,
        "INSERT INTO corrections (tenant_id, id, scope_path, memory_id, who, at, what) "
        "VALUES (:tenant_id, gen_random_uuid(), :scope_path, :memory, 'ann', :at, '{\"content\": \"x\"}')",
        memory=corrected,
        at=OLD,
    )
    night = await sleep(database, used_scope, STEP)
    assert await retired(database, used_scope) == {}
    assert night.outcome.skipped == {"a person corrected it": 2, "others gave way to it": 1}


async def test_a_scope_without_any_use_is_not_pruned(database: Database, scope: TenantScope) -> None:
    """Where nobody ever read anything, age says nothing; that is the reason given, and a setting allows it."""
    await stale(database, scope, "unread")
    night = await sleep(database, scope, STEP)
    assert (night.outcome.changed, night.outcome.reason) == (0, "the scope has no evidence of use")
    assert night.outcome.skipped == {"the scope has no evidence of use": 1}
    allowed = await sleep(database, scope, STEP, settings={"prune_orphans": {"allow_without_use": True}})
    assert allowed.outcome.changed == 1


async def test_rolled_up_uses_still_count(database: Database, scope: TenantScope) -> None:
    """Old access rows may be dropped once they are consumed; the state that remembers them protects and allows."""
    kept = await stale(database, scope, "read two weeks ago")
    await stale(database, scope, "never read")
    await change(
        database,
        scope,
        "UPDATE memory_state SET access_count = 3, last_access_at = :at WHERE memory_id = :id",
        at=ago(days=14),
        id=kept,
    )
    night = await sleep(database, scope, STEP)
    assert set(await retired(database, scope)) == {"never read"}
    assert night.outcome.skipped == {"used in the last 30 days": 1}


async def test_a_night_of_the_past_sees_no_later_use(database: Database, scope: TenantScope) -> None:
    """As of T only what was recorded and used by T counts: later reads neither protect nor allow."""
    memory = await stale(database, scope, "read later")
    await add_access(database, scope, memory, NIGHT + timedelta(days=1))
    assert (await sleep(database, scope, STEP)).outcome.reason == "the scope has no evidence of use"
    await add_memory(database, scope, "used", importance=9, observed_at=OLD, access_at=(ago(hours=2),))
    assert (await sleep(database, scope, STEP)).outcome.changed == 1


async def test_only_the_own_scope_is_pruned(database: Database, used_scope: TenantScope) -> None:
    """F33: a child's run leaves its ancestor's memories alone, and an ancestor may be the neighbour that counts."""
    child = used_scope.child("conversation", "c1")
    await stale(database, used_scope, "above")
    first, second = [await stale(database, used_scope, name, importance=9) for name in ("org", "brand")]
    leaf = await stale(database, child, "leaf")
    await add_memory(database, child, "in use", observed_at=OLD, access_at=(ago(hours=1),))
    await add_edge(database, child, leaf, first, "OF")
    await add_edge(database, child, leaf, second, "OF")
    night = await sleep(database, child, STEP)
    assert night.outcome.skipped == {"more than 1 distinct neighbours": 1}
    assert await retired(database, used_scope) == await retired(database, child) == {}


async def test_the_guard_refuses_the_whole_run(database: Database, used_scope: TenantScope) -> None:
    """Too much at once is refused for the scope, everything of the run is taken back, and a person may accept it."""
    for number in range(6):
        await stale(database, used_scope, f"noise {number}", access_at=(ago(days=40, minutes=number),))
    before = await state(database, used_scope)
    night = await sleep(database, used_scope, (COOCCURRENCE, STEP))
    assert night.status == "refused"
    assert night.results[-1].error is not None
    assert (night.results[-1].error["error"], night.results[-1].error["number"]) == ("GuardTripped", 6)
    assert await state(database, used_scope) == before
    accepted = await sleep(database, used_scope, STEP, accept=True)
    assert accepted.outcome.changed == 6


async def test_no_belief_loses_what_it_rests_on(database: Database, used_scope: TenantScope) -> None:
    """Evidence that gave way to a duplicate rests on that one, which is kept for it; the belief is held on."""
    winner = await stale(database, used_scope, "noise")
    duplicate = await stale(
        database, used_scope, "noise!", superseded_by=winner, superseded_reason="duplicate", superseded_at=OLD
    )
    await add_belief(database, used_scope, duplicate)
    await stale(database, used_scope, "other noise")
    night = await sleep(database, used_scope, STEP)
    assert night.outcome.skipped == {"others gave way to it": 1}
    assert night.outcome.counts == {"nodes_pruned": 1, "first_seen": 1, "beliefs_affected": 0}
    (belief,) = await rows(database, used_scope, "SELECT status FROM harmonic_beliefs")
    assert belief["status"] == "held"


async def test_preview_equals_the_run_and_undo_is_exact_and_remembered(
    database: Database, used_scope: TenantScope
) -> None:
    """What a person brought back by undo stays until its text changes or a run is asked to reconsider."""
    memory = await stale(database, used_scope, "noise")
    before = await state(database, used_scope)
    foreseen = await look_ahead(database, used_scope, STEP)
    night = await sleep(database, used_scope, STEP)
    async with database.scoped(used_scope) as connection:
        assert await changes_of(connection, night.run.id) == foreseen
    assert (await undo(database, used_scope, night, STEP)).refused == ()
    assert await state(database, used_scope) == before
    again = await sleep(database, used_scope, STEP)
    assert (again.outcome.changed, again.outcome.skipped) == (0, {"taken back by a person": 1})
    asked = await sleep(database, used_scope, STEP, reconsider=True)
    assert asked.outcome.changed == 1
    await undo(database, used_scope, asked, STEP)
    await change(database, used_scope, "UPDATE memories SET content_hash = 'another' WHERE id = :id", id=memory)
    assert (await sleep(database, used_scope, STEP)).outcome.changed == 1
