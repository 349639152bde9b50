"""Every window and threshold at its bound, just below and just above it: the settings say which side counts (F54)."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from memory_core.sleep import cooccurrence, decay, meta_nodes, prune_orphans, strengthen, working_expiry
from memory_core.sleep.cooccurrence import CooccurrenceSettings
from memory_core.sleep.decay import DecaySettings
from memory_core.sleep.meta_rows import MetaNodesSettings
from memory_core.sleep.prune_orphans import PruneOrphansSettings
from memory_core.sleep.strengthen import StrengthenSettings
from memory_core.sleep.working_expiry import WorkingExpirySettings
from tests.builders import NIGHT, add_access, add_edge, add_memory, ago
from tests.nights import change, edges, rows, sleep

JUST = timedelta(microseconds=1)
LONG_AGO = ago(days=90)
LITTLE = 1e-9


def around(moment: datetime) -> list[Any]:
    """A moment with the ones just before and just after it, as parameters."""
    return [
        pytest.param(moment - JUST, id="before"),
        pytest.param(moment, id="at"),
        pytest.param(moment + JUST, id="after"),
    ]


async def noise(database: Database, scope: TenantScope, **fields: Any) -> uuid.UUID:
    """A memory that prune retires but for what `fields` say, in a scope in which something was used."""
    await add_memory(database, scope, "in daily use", importance=9, observed_at=LONG_AGO, access_at=(ago(hours=1),))
    values = {"importance": 2.0, "observed_at": LONG_AGO, **fields}
    memory_id = await add_memory(database, scope, "noise", **values)
    await change(
        database, scope, "UPDATE memory_state SET first_night = :at WHERE memory_id = :id", at=LONG_AGO, id=memory_id
    )
    return memory_id


async def is_pruned(database: Database, scope: TenantScope, memory_id: uuid.UUID) -> bool:
    """Whether a night of prune retires the memory."""
    night = await sleep(database, scope, prune_orphans.STEP)
    (row,) = await rows(database, scope, "SELECT retired_at FROM memories WHERE id = :id", id=memory_id)
    assert (row["retired_at"] is not None) == bool(night.outcome.changed)
    return row["retired_at"] is not None


@pytest.mark.parametrize("at", around(ago(hours=24)))
async def test_the_look_back_begins_after_its_bound(database: Database, scope: TenantScope, at: datetime) -> None:
    """A use exactly 24 hours old no longer counts for strengthening or links; one a moment younger does."""
    for name in "ab":
        await add_memory(database, scope, name, observed_at=LONG_AGO, access_at=(at,))
    night = await sleep(database, scope, (strengthen.STEP, cooccurrence.STEP))
    counts = at > ago(hours=24)
    assert night.results[0].outcome is not None
    assert night.results[0].outcome.changed == (2 if counts else 0)
    assert night.outcome.changed == (1 if counts else 0)


@pytest.mark.parametrize("at", around(NIGHT))
async def test_the_night_ends_at_as_of_and_includes_it(database: Database, scope: TenantScope, at: datetime) -> None:
    """A use at the very time of the night counts for strengthening and links, one a moment later waits."""
    for name in "ab":
        await add_memory(database, scope, name, observed_at=LONG_AGO, access_at=(at,))
    night = await sleep(database, scope, (strengthen.STEP, cooccurrence.STEP))
    counts = at <= NIGHT
    assert night.results[0].outcome is not None
    assert night.results[0].outcome.changed == (2 if counts else 0)
    assert night.outcome.changed == (1 if counts else 0)
    waiting = await rows(database, scope, "SELECT 1 FROM memory_accesses WHERE consumed_by_run IS NULL")
    assert len(waiting) == (0 if counts else 2)


@pytest.mark.parametrize("at", around(NIGHT))
async def test_a_memory_is_known_from_the_moment_it_was_recorded(
    database: Database, scope: TenantScope, at: datetime
) -> None:
    """What was recorded at as_of is a member of its group, what a moment later was recorded is not."""
    for number in range(2):
        await add_memory(database, scope, f"fact {number}", label=f"TEA: {number}")
    await add_memory(database, scope, "fact 2", label="TEA: 2", observed_at=at)
    night = await sleep(database, scope, meta_nodes.STEP)
    assert night.outcome.changed == int(at <= NIGHT)


@pytest.mark.parametrize("apart", [timedelta(hours=1) - JUST, timedelta(hours=1), timedelta(hours=1) + JUST])
async def test_an_hour_apart_is_together(database: Database, scope: TenantScope, apart: timedelta) -> None:
    """Uses exactly one hour apart are in one window, a moment more apart they are not."""
    for at in (ago(hours=3), ago(hours=3) + apart):
        await add_memory(database, scope, str(at), observed_at=LONG_AGO, access_at=(at,))
    await sleep(database, scope, cooccurrence.STEP)
    assert len(await edges(database, scope)) == int(apart <= timedelta(hours=1))


@pytest.mark.parametrize("later", [timedelta(hours=12) - JUST, timedelta(hours=12), timedelta(hours=12) + JUST])
async def test_twelve_hours_make_another_night(database: Database, scope: TenantScope, later: timedelta) -> None:
    """New activity counts again for a link when its last evidence is exactly twelve hours old."""
    found = [await add_memory(database, scope, name, observed_at=LONG_AGO, access_at=(ago(hours=1),)) for name in "ab"]
    await sleep(database, scope, cooccurrence.STEP)
    for memory_id in found:
        await add_access(database, scope, memory_id, NIGHT + timedelta(hours=6))
    await sleep(database, scope, cooccurrence.STEP, at=NIGHT + later)
    ((_, edge),) = (await edges(database, scope)).items()
    assert edge["evidence_count"] == (2 if later >= timedelta(hours=12) else 1)


@pytest.mark.parametrize("at", around(ago(days=7)))
@pytest.mark.parametrize("by", ["recorded", "first night"])
async def test_seven_days_are_not_yet_stale(database: Database, scope: TenantScope, at: datetime, by: str) -> None:
    """Idle, or known to the nights, for exactly seven days is not stale; a moment longer is."""
    memory_id = await noise(database, scope, **({"observed_at": at} if by == "recorded" else {}))
    if by == "first night":
        await change(
            database, scope, "UPDATE memory_state SET first_night = :at WHERE memory_id = :id", at=at, id=memory_id
        )
    assert await is_pruned(database, scope, memory_id) == (at < ago(days=7))


@pytest.mark.parametrize("importance", [4.0 - LITTLE, 4.0, 4.0 + LITTLE])
async def test_importance_four_is_not_low(database: Database, scope: TenantScope, importance: float) -> None:
    """0.4 of the scale itself is kept; less than that is pruned."""
    memory_id = await noise(database, scope, importance=importance)
    assert await is_pruned(database, scope, memory_id) == (importance < 4.0)


@pytest.mark.parametrize("degree", [0, 1, 2])
async def test_one_neighbour_is_an_orphan_still(database: Database, scope: TenantScope, degree: int) -> None:
    """None and one distinct neighbour do not keep a memory, two do."""
    memory_id = await noise(database, scope)
    for number in range(degree):
        hub = await add_memory(database, scope, f"hub {number}", importance=5, observed_at=LONG_AGO)
        await add_edge(database, scope, memory_id, hub, "OF")
    assert await is_pruned(database, scope, memory_id) == (degree <= 1)


@pytest.mark.parametrize("at", around(ago(days=30)))
async def test_thirty_days_without_use_protect_no_more(database: Database, scope: TenantScope, at: datetime) -> None:
    """A use exactly thirty days ago no longer protects; one a moment later does."""
    memory_id = await noise(database, scope, access_at=(at,))
    assert await is_pruned(database, scope, memory_id) == (at <= ago(days=30))


@pytest.mark.parametrize("importance", [8.0 - LITTLE, 8.0, 8.0 + LITTLE])
async def test_the_last_link_of_an_eight_is_kept(database: Database, scope: TenantScope, importance: float) -> None:
    """From exactly 8.0 on a memory's only link is kept; of a less important one it is not."""
    memory_id = await noise(database, scope)
    hub = await add_memory(database, scope, "hub", importance=importance, observed_at=LONG_AGO)
    await add_edge(database, scope, memory_id, hub, "OF")
    assert await is_pruned(database, scope, memory_id) == (importance < 8.0)


@pytest.mark.parametrize("members", [2, 3, 4])
async def test_three_members_are_a_group(database: Database, scope: TenantScope, members: int) -> None:
    """A group of exactly three has a summary, one of two has none and says so."""
    for number in range(members):
        await add_memory(database, scope, f"fact {number}", label=f"TEA: {number}")
    night = await sleep(database, scope, meta_nodes.STEP)
    assert night.outcome.changed == int(members >= 3)
    assert night.outcome.skipped == ({} if members >= 3 else {"fewer than 3 members": 1})


@pytest.mark.parametrize("at", around(NIGHT))
async def test_what_expires_at_as_of_is_over(database: Database, scope: TenantScope, at: datetime) -> None:
    """A memory whose expiry is exactly the night's time is no member any more, one a moment later is."""
    for number in range(3):
        await add_memory(database, scope, f"fact {number}", label=f"TEA: {number}", expires_at=at)
    night = await sleep(database, scope, meta_nodes.STEP)
    assert night.outcome.changed == int(at > NIGHT)


@pytest.mark.parametrize("at", around(ago(hours=24)))
async def test_a_working_memory_is_over_at_its_very_end(database: Database, scope: TenantScope, at: datetime) -> None:
    """Exactly 24 hours after it was recorded it is retired; a moment earlier it is not."""
    await add_memory(database, scope, "line", layer="working", observed_at=at)
    night = await sleep(database, scope, working_expiry.STEP)
    assert night.outcome.changed == int(at <= ago(hours=24))


@pytest.mark.parametrize("at", around(ago(days=30)))
async def test_decay_begins_after_thirty_days(database: Database, scope: TenantScope, at: datetime) -> None:
    """Idle for exactly thirty days nothing decays; a moment longer is enough."""
    await add_memory(database, scope, "idle", observed_at=at)
    night = await sleep(database, scope, decay.STEP)
    assert night.outcome.changed == int(at < ago(days=30))


@pytest.mark.parametrize("importance", [8.0 - LITTLE, 8.0, 8.0 + LITTLE])
async def test_an_eight_does_not_decay(database: Database, scope: TenantScope, importance: float) -> None:
    """Importance of exactly 8.0 is exempt, less is not."""
    await add_memory(database, scope, "idle", importance=importance, observed_at=LONG_AGO)
    night = await sleep(database, scope, decay.STEP)
    assert night.outcome.changed == int(importance < 8.0)


@pytest.mark.parametrize(
    ("settings", "field", "said"),
    [
        (StrengthenSettings, "lookback_hours", "exactly so old no longer"),
        (CooccurrenceSettings, "lookback_hours", "exactly so old no longer"),
        (CooccurrenceSettings, "window_minutes", "this included"),
        (CooccurrenceSettings, "night_hours", "at least"),
        (PruneOrphansSettings, "stale_days", "longer than this"),
        (PruneOrphansSettings, "importance_below", "less importance than this"),
        (PruneOrphansSettings, "most_neighbours", "at most"),
        (PruneOrphansSettings, "important_from", "From this importance on"),
        (PruneOrphansSettings, "used_days", "less than so many days ago"),
        (MetaNodesSettings, "smallest", "from which"),
        (WorkingExpirySettings, "default_hours", "exactly so old is over"),
        (DecaySettings, "after_days", "longer than this"),
        (DecaySettings, "exempt_from", "at least"),
    ],
)
def test_the_settings_say_which_side_counts(settings: type[BaseModel], field: str, said: str) -> None:
    """Each description names its bound's side in words, and the tests above hold it to them."""
    assert said in (settings.model_fields[field].description or "")
