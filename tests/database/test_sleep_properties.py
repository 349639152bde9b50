"""What holds of every night over every tenant: small tenants and nights at random, all phases switched on."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.database.engine import Database
from memory_core.database.registry import REGISTRY
from memory_core.runs.checksum import table_checksums
from memory_core.scope import TenantScope
from memory_core.sleep.cooccurrence import STEP as COOCCURRENCE
from memory_core.sleep.phases import SLEEP_STEPS
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from tests.builders import NIGHT, add_access, add_memory
from tests.nights import Night, edges, importance_of, rows, sleep, undo
from tests.random_tenants import AGES, PLACES, TENANTS, RandomTenant, before_night, fill

FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""Each example sleeps through whole nights, so there are few of them, and the same ones every time."""

LATER = st.lists(st.sampled_from([1, 90, 400, 1_440, 11_000]), max_size=3)
"""Minutes from one night to the next."""


def new_scope() -> TenantScope:
    """The scope of a tenant that no other example knows."""
    return TenantScope.root("tenant", f"t-{uuid.uuid4()}")


async def whole_night(
    database: Database, scope: TenantScope, tenant: RandomTenant, at: datetime = NIGHT, seed: str = ""
) -> Night:
    """All phases, those too that are off by default; every one of them must work."""
    night = await sleep(database, scope, SLEEP_STEPS, at=at, pending_connections=tenant.connections(seed), accept=True)
    assert night.status == "applied", [result.error for result in night.results if result.error]
    return night


async def checksums(database: Database, scope: TenantScope) -> dict[str, str]:
    """What an undo restores, by table."""
    async with database.scoped(scope) as connection:
        return await table_checksums(connection)


async def everything(database: Database, scope: TenantScope) -> dict[str, list[Any]]:
    """Every row of the scope in every table, to the last column."""
    found: dict[str, list[Any]] = {}
    for entry in REGISTRY:
        if "scope_path" in entry.table.columns:
            sql = (
                f"SELECT to_jsonb(t)::text AS row FROM {entry.name} t "
                "WHERE t.tenant_id = :tenant_id AND t.scope_path = :scope_path ORDER BY 1"
            )
            found[entry.name] = [row["row"] for row in await rows(database, scope, sql)]
    return found


async def memory_ids(database: Database, scope: TenantScope) -> set[uuid.UUID]:
    """The ids of all memories of the scope, retired ones too."""
    found = await rows(
        database, scope, "SELECT id FROM memories WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
    )
    return {row["id"] for row in found}


@given(tenant=TENANTS, minutes=st.lists(st.integers(0, 4), min_size=1, max_size=2))
@FEW
async def test_any_number_of_sleeps_equals_one(database: Database, tenant: RandomTenant, minutes: list[int]) -> None:
    """Slept again over the same evidence, at the same time or minutes later, the store stays the same (F04, F11)."""
    scope = new_scope()
    await fill(database, scope, tenant)
    await whole_night(database, scope, tenant)
    once = await checksums(database, scope)
    at = NIGHT
    for later in minutes:
        at += timedelta(minutes=later)
        # Decay is the one phase that time alone moves; its own test holds it to the closed form.
        steps = SLEEP_STEPS if at == NIGHT else tuple(step for step in SLEEP_STEPS if step.name != "decay")
        night = await sleep(database, scope, steps, at=at, pending_connections=tenant.connections(), accept=True)
        assert night.status == "applied"
        assert await checksums(database, scope) == once, at
        assert {result.step: result.outcome.changed for result in night.results if result.outcome} == {
            step.name: 0 for step in steps
        }


@given(tenant=TENANTS, gaps=LATER)
@FEW
async def test_nights_are_undone_one_by_one(database: Database, tenant: RandomTenant, gaps: list[int]) -> None:
    """Newest first, each undo restores the checksum of before its night, whatever the nights did."""
    scope = new_scope()
    await fill(database, scope, tenant)
    at, nights = NIGHT, []
    for gap in (0, *gaps):
        at += timedelta(minutes=gap)
        before = await checksums(database, scope)
        nights.append((before, await whole_night(database, scope, tenant, at)))
    for before, night in reversed(nights):
        result = await undo(database, scope, night, *SLEEP_STEPS)
        assert result.refused == ()
        assert await checksums(database, scope) == before


@given(tenant=TENANTS, gaps=LATER, accesses=st.lists(st.tuples(PLACES, AGES), max_size=3))
@FEW
async def test_a_night_writes_its_own_scope_and_deletes_nothing(
    database: Database, tenant: RandomTenant, gaps: list[int], accesses: list[tuple[int, int]]
) -> None:
    """Relatives and another tenant keep every row and column, and no memory of the own scope is gone (F33, F41)."""
    top = new_scope()
    brand = top.child("brand", "one")
    own = brand.child("conversation", "c1")
    children = [own.child("part", name) for name in "pq"]
    others = (top, brand, *children, brand.child("conversation", "c2"), new_scope())
    for place, scope in enumerate((own, *others)):
        await fill(database, scope, tenant, seed=str(place))
    for memory, age in accesses:
        # Used from the child: the parent's memories are its neighbours and its evidence, and still not its own.
        ids = tenant.ids("2")
        await add_access(database, brand, ids[memory % len(ids)], before_night(age))
    kept = [await everything(database, scope) for scope in others]
    before = await memory_ids(database, own)
    at = NIGHT
    for gap in (0, *gaps):
        at += timedelta(minutes=gap)
        night = await whole_night(database, own, tenant, at, seed="0")
        assert await memory_ids(database, own) >= before
        before = await memory_ids(database, own)
        assert len(night.results) == len(SLEEP_STEPS)
    for scope, rows_before in zip(others, kept, strict=True):
        after = await everything(database, scope)
        assert {name for name in after if after[name] != rows_before[name]} == set(), str(scope)


@given(
    start=st.sampled_from([1.0, 3.9, 5.0, 9.99]),
    pieces=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    rate=st.sampled_from([0.05, 0.1, 0.5]),
)
@FEW
async def test_evidence_counts_the_same_however_nights_divide_it(
    database: Database, start: float, pieces: list[int], rate: float
) -> None:
    """n pieces over k nights lift importance i to i + (ceiling - i) (1 - (1 - rate)^n), as in one night (F04)."""
    scope = new_scope()
    memory = await add_memory(database, scope, "fact", importance=start, observed_at=before_night(100_000))
    for number, count in enumerate(pieces):
        at = NIGHT + timedelta(hours=6 * number)
        for place in range(count):
            await add_access(database, scope, memory, at - timedelta(minutes=1 + place))
        night = await sleep(database, scope, STRENGTHEN, at=at, settings={"strengthen": {"rate": rate}})
        assert night.outcome.counts["evidence_consumed"] == count
    expected = start + (10 - start) * (1 - (1 - rate) ** sum(pieces))
    assert await importance_of(database, scope, memory) == pytest.approx(expected, abs=1e-9)


@given(tenant=TENANTS, nearest=st.integers(1, 3), nights=st.integers(1, 3))
@FEW
async def test_links_are_few_bounded_and_the_same_in_any_order(
    database: Database, tenant: RandomTenant, nearest: int, nights: int
) -> None:
    """At most k links a memory a night, weights in (0, 1], and rows in the opposite order make the same (F10, F17)."""
    forwards, backwards = new_scope(), new_scope()
    ids = await fill(database, forwards, tenant)
    await fill(database, backwards, tenant, backwards=True)
    given_edges = set(await edges(database, forwards))
    for number in range(nights):
        at = NIGHT + timedelta(days=number)
        for scope in (forwards, backwards):
            for place in sorted(range(len(ids)), reverse=scope is backwards):
                moment = at - timedelta(minutes=30 + 7 * (place % 3))
                await add_access(database, scope, ids[place], moment)
        before = await edges(database, forwards)
        for scope in (forwards, backwards):
            await sleep(database, scope, COOCCURRENCE, at=at, settings={"cooccurrence": {"nearest": nearest}})
        found = await edges(database, forwards)
        touched = [key for key, row in found.items() if key not in before or row["weight"] != before[key]["weight"]]
        links = Counter(end for source, target, _ in touched for end in (source, target))
        assert max(links.values(), default=0) <= nearest
        assert all(0 < row["weight"] <= 1 for row in found.values())
        assert {key[2] for key in set(found) - given_edges} <= {"CO_OCCURRED"}
        columns = ("weight", "evidence_count", "last_evidence_at", "status", "kind")
        told = [
            {key: tuple(row[name] for name in columns) for key, row in (await edges(database, scope)).items()}
            for scope in (forwards, backwards)
        ]
        assert told[0] == told[1]
