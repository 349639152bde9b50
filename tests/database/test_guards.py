"""The last net: each guard lets pass what it should and stops what is one too many."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory
from tests.nights import Night, change, sleep, state, undo
from tests.steps import Statement, importance, retire, step


async def memories_of(database: Database, scope: TenantScope, count: int, **fields: object) -> list[uuid.UUID]:
    return [await add_memory(database, scope, f"memory {n}", **fields) for n in range(count)]  # type: ignore[arg-type]


def supersede(memories: list[uuid.UUID], winner: uuid.UUID) -> Statement:
    return (
        """UPDATE memories SET superseded_by = :winner, superseded_reason = 'update', superseded_at = :as_of,
             superseded_by_run = :run_id
           WHERE tenant_id = :tenant_id AND id = ANY(:memories)""",
        {"memories": memories, "winner": winner},
    )


def tripped(night: Night) -> str | None:
    error = night.results[-1].error
    assert (error is not None) is (night.status == "refused")
    return None if error is None else error["guard"]


@pytest.mark.parametrize(
    ("of", "retired", "guard"),
    [(20, 5, None), (20, 6, "retire_share"), (60, 6, None), (60, 7, "retire_share"), (3, 3, None)],
)
async def test_one_run_may_retire_a_tenth_or_five(
    database: Database, scope: TenantScope, of: int, retired: int, guard: str | None
) -> None:
    """The larger of the two is the limit, counted over what was current before."""
    memories = await memories_of(database, scope, of)
    night = await sleep(database, scope, step(retire(*memories[:retired]), guarded=True))
    assert tripped(night) == guard


async def test_thirty_days_may_retire_a_fifth(database: Database, scope: TenantScope) -> None:
    """Small bites count together; what was undone, or is older, does not."""
    memories = await memories_of(database, scope, 40)
    day = timedelta(days=1)
    first = await sleep(database, scope, step(retire(*memories[:5]), guarded=True))
    second = await sleep(database, scope, step(retire(*memories[5:9]), guarded=True), NIGHT + day)
    assert (first.status, tripped(second)) == ("applied", "retire_share_of_30_days")
    await undo(database, scope, first)
    assert tripped(await sleep(database, scope, step(retire(*memories[:5]), guarded=True), NIGHT + 2 * day)) is None
    later = await sleep(database, scope, step(retire(*memories[9:13]), guarded=True), NIGHT + 40 * day)
    assert tripped(later) is None


async def test_one_run_may_hide_half(database: Database, scope: TenantScope) -> None:
    """Superseding is not retiring, and is bounded too; what earlier steps of the run did counts."""
    memories = await memories_of(database, scope, 30)
    half = [step(supersede(memories[:8], memories[29]), guarded=True, name="a")]
    half.append(step(supersede(memories[8:15], memories[29]), guarded=True, name="b"))
    night = await sleep(database, scope, half)
    assert tripped(night) is None
    more = [*half, step(supersede(memories[15:16], memories[29]), guarded=True, name="c")]
    await undo(database, scope, night)
    before = await state(database, scope)
    assert tripped(await sleep(database, scope, more)) == "hide_share"
    assert await state(database, scope) == before


@pytest.mark.parametrize("protected", ["pinned", "identity"])
async def test_a_protected_class_is_not_emptied(database: Database, scope: TenantScope, protected: str) -> None:
    """The last pinned memory and the last of who the agent is stay; a superseded one is no other."""
    fields = {"pinned": {"pinned": True}, "identity": {"label": "SOUL: name"}}[protected]
    memories = await memories_of(database, scope, 20)
    kept = await memories_of(database, scope, 2, **fields)
    first = await sleep(database, scope, step(retire(kept[0]), guarded=True))
    assert tripped(first) is None
    await undo(database, scope, first)
    by_person = "UPDATE memories SET superseded_by = :winner, superseded_reason = 'update' WHERE id = :id"
    await change(database, scope, by_person, winner=memories[0], id=kept[1])
    assert tripped(await sleep(database, scope, step(retire(kept[0]), guarded=True))) == f"protected_{protected}"


async def test_what_a_person_accepts_passes(database: Database, scope: TenantScope) -> None:
    """The same night, accepted, goes on under a run of its own; its limits can be set as well."""
    memories = await memories_of(database, scope, 20)
    work = step(importance(memories[0], 9), retire(*memories[:12]), guarded=True)
    assert (await sleep(database, scope, work)).status == "refused"
    assert (await sleep(database, scope, work, settings={"guards": {"retire_share": 0.5}})).status == "refused"
    accepted = await sleep(database, scope, work, accept=True)
    assert accepted.status == "applied"
    await undo(database, scope, accepted)
    limits = {"guards": {"retire_share": 0.6, "retire_share_of_30_days": 0.6, "hide_share": 0.6}}
    assert (await sleep(database, scope, work, settings=limits)).status == "applied"


async def test_a_derived_row_is_no_memory_taken_away(database: Database, scope: TenantScope) -> None:
    """Refreshing many summaries in one night is no loss."""
    await memories_of(database, scope, 5)
    derived = [await add_memory(database, scope, f"summary {n}", derived_key=f"meta:{n}") for n in range(12)]
    night = await sleep(database, scope, step(retire(*derived, reason="refreshed"), guarded=True))
    assert night.status == "applied"
