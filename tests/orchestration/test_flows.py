"""The flows on a real Prefect server: the same night as in process, and what a person sees of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events.filters import EventFilter
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.deep_sleep import deep_sleep
from flows.harmonize import harmonize
from flows.nightly import nightly
from flows.parameters import DeepSleepParameters, HarmonizeParameters, NightlyParameters, ReplayParameters
from flows.progress import listening
from flows.replay import replay
from memory_core.database.embedded import ServerAddress
from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.night.library import SleepConsolidator
from memory_core.night.steps import steps_of_kind
from memory_core.runs.checksum import table_checksums
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory, ago
from tests.conftest import clone, drop
from tests.nights import change
from tests.orchestration.conftest import PrefectServer, until, use
from tests.small_tenant import PENDING, fill_small_tenant


@pytest.fixture
def copies(server: ServerAddress) -> Iterator[Any]:
    """Makes copies of a database that nobody is connected to."""
    made: list[str] = []

    def copy(url: str) -> str:
        name = f"copy_{uuid.uuid4().hex[:12]}"
        clone(server, name, template=_name(url))
        made.append(name)
        return server.url(name)

    yield copy
    for name in made:
        drop(server, name)


def _name(url: str) -> str:
    return url.rpartition("@/")[2].partition("?")[0]


async def state_of(settings: Settings, url: str, *scopes: TenantScope) -> dict[str, dict[str, str]]:
    """The checksum of each table of each scope."""
    found = {}
    async with Database.open(settings.model_copy(update={"database_url": url})) as database:
        for scope in scopes:
            async with database.scoped(scope) as connection:
                found[str(scope)] = await table_checksums(connection)
    return found


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    """A document without what the machine's clock says."""
    timed = ("started", "finished", "started_at", "finished_at", "duration_ms", "seconds", "duration_seconds")
    return {
        name: without_times(value) if isinstance(value, dict) else value
        for name, value in document.items()
        if name not in timed
    }


def always(kind: str) -> list[str]:
    """The steps of a kind of run that no setting leaves out."""
    return [step.name for step in steps_of_kind(kind) if step.enabled is None]


async def test_a_night_is_the_same_through_prefect_and_in_process(
    prefect_server: PrefectServer,
    settings: Settings,
    database: Database,
    scope: TenantScope,
    copies: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two copies of one store, slept through once as a flow and once in process, end with the same checksums."""
    await fill_small_tenant(database, scope)
    switched_on = [step.name for step in steps_of_kind("nightly") if step.enabled and step.name != "model_summaries"]
    await change(
        database,
        scope,
        "UPDATE tenants SET settings = CAST(:settings AS jsonb) WHERE tenant_id = :tenant_id",
        settings=json.dumps({name: {"enabled": True} for name in switched_on}),
    )
    await database.close()
    by_flow, in_process = copies(settings.database_url), copies(settings.database_url)
    parameters = {"pending_connections": PENDING}

    async with Database.open(settings.model_copy(update={"database_url": in_process})) as other:
        (expected,) = await consolidate(other, [scope], "nightly", NIGHT, parameters=parameters)
    use(monkeypatch, settings, by_flow)
    found = await prefect_server.run(nightly, NightlyParameters(tenants=["acme"], as_of=NIGHT, **parameters))

    assert found.state.is_completed(), found.message
    assert found.message == "tenant=acme slept"
    (document,) = found.documents
    assert document["status"] == "applied"
    assert sum(step.get("changed", 0) for step in document["steps"].values()) >= 5
    assert without_times(document) == without_times(expected)
    assert await state_of(settings, by_flow, scope) == await state_of(settings, in_process, scope)
    assert await state_of(settings, by_flow, scope) != await state_of(settings, settings.database_url, scope)

    assert found.run.name == "nightly · acme · 2026-03-01"
    names = ["begin", *always("nightly"), *switched_on, "close"]
    assert set(found.task_runs) == {f"{name} · acme" for name in names}
    assert {run.state_type for run in found.task_runs.values()} == {StateType.COMPLETED}
    assert "slowwave" in found.task_runs["strengthen · acme"].tags
    assert "3 changed of" in (found.task_runs["strengthen · acme"].state.message or "")  # type: ignore[union-attr]


async def test_the_library_sleeps_as_the_flow_does(
    prefect_server: PrefectServer,
    settings: Settings,
    database: Database,
    scope: TenantScope,
    copies: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SleepConsolidator with a schema and pending connections, without Prefect: the same report and the same store."""
    await fill_small_tenant(database, scope)
    await database.close()
    by_flow, by_library = copies(settings.database_url), copies(settings.database_url)
    schema = {"name": "str", "age": "int", "city": "str"}
    async with Database.open(settings.model_copy(update={"database_url": by_library})) as other:
        report = await SleepConsolidator(other).run(scope, soul_schema=schema, pending_connections=PENDING, as_of=NIGHT)
    use(monkeypatch, settings, by_flow)
    asked = DeepSleepParameters(tenants=["acme"], as_of=NIGHT, soul_schema=schema, pending_connections=PENDING)
    found = await prefect_server.run(deep_sleep, asked)
    assert found.state.is_completed(), found.message
    told = report.to_dict()
    assert told["edges_created"] > 0
    assert without_times(found.documents[0]["sleep"]) == without_times(told)
    assert await state_of(settings, by_flow, scope) == await state_of(settings, by_library, scope)


async def test_what_a_night_did_can_be_read_in_the_ui(
    prefect_server: PrefectServer, flow_settings: Settings, database: Database, scope: TenantScope
) -> None:
    """Each step leaves an artifact under a constant key, the night its morning report and an event."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2),))
    found = await prefect_server.run(nightly, NightlyParameters(tenants=["acme"], as_of=NIGHT))

    assert set(found.artifacts) == {
        *(f"phase-{name.replace('_', '-')}" for name in always("sleep")),
        *(f"shmr-{name}" for name in always("harmonize")),
        "shmr-embed-summaries",
        "morning-report",
    }
    strengthened = found.artifacts["phase-strengthen"]
    assert strengthened.startswith("## strengthen · tenant=acme\n")
    assert "| done | 1 | 1 |" in strengthened
    assert "Nothing was done:" in found.artifacts["phase-prune-orphans"]
    assert "acme" in found.artifacts["morning-report"]

    async def announced() -> list[Any]:
        named = EventFilter.model_validate({"event": {"name": ["slowwave.run.finished"]}})
        with temporary_settings({PREFECT_API_URL: prefect_server.url}):
            async with get_client() as client:
                response = await client.request(
                    "POST", "/events/filter", json={"filter": named.model_dump(mode="json")}
                )
        # The same night of the same tenant has the same run id, also in another test on this server.
        here = f"prefect.flow-run.{found.run.id}"
        return [
            event
            for event in response.json()["events"]
            if here in [related["prefect.resource.id"] for related in event["related"]]
        ]

    (event,) = await until(announced)
    assert event["resource"]["prefect.resource.id"] == "slowwave.scope.tenant=acme"
    assert event["payload"]["status"] == "applied"
    assert event["payload"]["run_id"] == found.documents[0]["run_id"]


async def test_several_scopes_share_one_task_run_a_step(
    prefect_server: PrefectServer, flow_settings: Settings, database: Database
) -> None:
    """A chunk of scopes costs as many task runs as one scope, and its artifacts are tables with a row a scope."""
    scopes = [TenantScope.root("tenant", "acme"), TenantScope.root("tenant", "acme").child("brand", "x")]
    scopes.append(TenantScope.root("org", "beta"))
    for each in scopes:
        await add_memory(database, each, "Ann likes tea", access_at=(ago(hours=2),))
    found = await prefect_server.run(deep_sleep, DeepSleepParameters(tenants=["all"], as_of=NIGHT))
    assert found.message == "3 of 3 scopes slept"
    assert set(found.task_runs) == {f"{name} · 3 scopes" for name in ("begin", *always("sleep"), "close")}
    assert [document["scope"] for document in found.documents] == [str(each) for each in scopes]
    (table,) = [found.artifacts["phase-strengthen"]]
    assert table.count('"status": "done"') == 3
    assert "tenant=acme/brand=x" in table

    one = await prefect_server.run(
        harmonize, HarmonizeParameters(tenants=["tenant=acme"], scope="brand=x", as_of=NIGHT + timedelta(days=1))
    )
    assert one.message == "tenant=acme/brand=x harmonized"
    assert "harmonize · acme/brand=x" in one.task_runs
    assert one.run.name == "harmonize · tenant=acme/brand=x · 2026-03-02"


async def test_a_dry_run_is_one_task_and_changes_nothing(
    prefect_server: PrefectServer, flow_settings: Settings, database: Database, scope: TenantScope
) -> None:
    """The diff of a dry run is there, the store is as it was, and the real run that follows changes the same."""
    await fill_small_tenant(database, scope)
    before = await state_of(flow_settings, flow_settings.database_url, scope)
    asked = NightlyParameters(tenants=["acme"], as_of=NIGHT, dry_run=True)
    found = await prefect_server.run(nightly, asked)
    assert found.message == "tenant=acme would have slept"
    assert set(found.task_runs) == {"preview · acme"}
    assert found.run.name == "nightly · acme · 2026-03-01 · dry run"
    assert await state_of(flow_settings, flow_settings.database_url, scope) == before
    (document,) = found.documents
    assert document["dry_run"]
    assert document["diff"]["changed"]

    real = await prefect_server.run(nightly, asked.model_copy(update={"dry_run": False}))
    assert real.documents[0]["run_id"] == document["would_be_run_id"]
    assert {name: step.get("changed") for name, step in real.documents[0]["steps"].items()} == {
        name: step.get("changed") for name, step in document["steps"].items()
    }


async def test_a_replay_sleeps_through_the_nights_in_order(
    prefect_server: PrefectServer,
    settings: Settings,
    database: Database,
    copies: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nights given in any order are slept through in the order of time, as they would be one by one in process."""
    scopes = [TenantScope.root("tenant", name) for name in ("acme", "beta")]
    for each in scopes:
        await fill_small_tenant(database, each)
    await database.close()
    by_flow, in_process = copies(settings.database_url), copies(settings.database_url)
    nights = [NIGHT - timedelta(days=day) for day in (2, 1, 0)]
    async with Database.open(settings.model_copy(update={"database_url": in_process})) as other:
        for night in nights:
            await consolidate(other, scopes, "nightly", night)

    use(monkeypatch, settings, by_flow)
    told: list[tuple[int, int, str]] = []
    with listening(lambda done, total, what: told.append((done, total, what))):
        found = await prefect_server.run(
            replay, ReplayParameters(tenants=["acme", "beta"], nights=[nights[2], nights[0], nights[1]])
        )
    assert found.message == "3 nights of 2 scopes"
    assert [night["statuses"] for night in found.result["nights"]] == [{"applied": 2}] * 3
    assert [document["status"] for document in found.result["runs"]] == ["applied", "applied"]
    assert await state_of(settings, by_flow, *scopes) == await state_of(settings, in_process, *scopes)
    assert [(done, total) for done, total, _ in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert {name for name in found.task_runs if name.startswith("sleep_night")} == {
        "sleep_night of 2026-02-27 · 2 scopes",
        "sleep_night of 2026-02-28 · 2 scopes",
    }
    assert found.artifacts["replay-progress"] == 100.0
