"""What fails in a flow: tried again where it can pass, kept where it cannot, and said in the final state."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.client.schemas.objects import StateType
from sqlalchemy import NullPool, create_engine, text

from flows.deep_sleep import deep_sleep
from flows.nightly import nightly
from flows.parameters import DeepSleepParameters, NightlyParameters
from memory_core.database.engine import Database
from memory_core.errors import NotFound
from memory_core.night.turns import hold
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tasks import reporting
from tasks.phases import strengthen
from tests.builders import NIGHT, add_memory, ago
from tests.orchestration.conftest import PrefectServer

ASKED = DeepSleepParameters(tenants=["all"], as_of=NIGHT)


def break_strengthen(settings: Settings, body: str) -> None:
    """Let the database run this, in PL/pgSQL, before any importance changes."""
    engine = create_engine(settings.database_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        # As the owner: a sequence counts on where a transaction is rolled back.
        for statement in (
            "CREATE SEQUENCE slowwave.tries",
            "CREATE FUNCTION slowwave.break_it() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"AS $$ BEGIN {body} RETURN NEW; END $$",
            "CREATE TRIGGER break_it BEFORE UPDATE ON slowwave.memory_state FOR EACH ROW "
            "WHEN (NEW.importance <> OLD.importance) EXECUTE FUNCTION slowwave.break_it()",
        ):
            connection.execute(text(statement))


def failing(sqlstate: str, condition: str = "true") -> str:
    """PL/pgSQL that fails with a SQLSTATE while a condition holds."""
    return f"IF {condition} THEN RAISE EXCEPTION 'injected' USING ERRCODE = '{sqlstate}'; END IF;"


async def steps(database: Database, scope: TenantScope) -> dict[str, str]:
    """The ledger of the scope's run."""
    async with database.scoped(scope) as connection:
        rows = await connection.rows(
            "SELECT step, status FROM run_steps "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path ORDER BY position"
        )
    return {row["step"]: row["status"] for row in rows}


@pytest.fixture
async def used_memory(database: Database, scope: TenantScope) -> None:
    """A memory that strengthen has to do with."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2),))


@pytest.mark.usefixtures("quick_retries", "used_memory")
async def test_what_can_pass_is_tried_again(prefect_server: PrefectServer, flow_settings: Settings) -> None:
    """A step that meets two serialisation failures is done at the third try, once, and the night is whole."""
    break_strengthen(flow_settings, failing("40001", "nextval('slowwave.tries') <= 2"))
    found = await prefect_server.run(deep_sleep, ASKED)
    assert found.state.is_completed(), found.message
    assert found.documents[0]["sleep"]["nodes_strengthened"] == 1
    runs = {name.partition(" ")[0]: run.run_count for name, run in found.task_runs.items()}
    assert runs.pop("strengthen") == 3
    assert set(runs.values()) == {1}


@pytest.mark.usefixtures("quick_retries", "used_memory")
async def test_what_does_not_pass_in_time_is_a_failure_of_its_step(
    prefect_server: PrefectServer, flow_settings: Settings, database: Database, scope: TenantScope
) -> None:
    """The last try records the failure, with its reason, and the later phases go on."""
    break_strengthen(flow_settings, failing("40001"))
    found = await prefect_server.run(deep_sleep, ASKED)
    (document,) = found.documents
    assert document["status"] == "partial"
    assert document["steps"]["strengthen"]["error"]["error"] == "TransactionConflict"
    assert found.task_runs["strengthen · acme"].run_count == 4
    ledger = await steps(database, scope)
    assert ledger.pop("strengthen") == "failed"
    assert set(ledger.values()) == {"done"}


@pytest.mark.usefixtures("quick_retries", "used_memory")
async def test_what_cannot_pass_fails_at_once_and_is_named(
    prefect_server: PrefectServer, flow_settings: Settings
) -> None:
    """A permanent failure is tried once; the flow is Failed with a message that names phase and scope."""
    break_strengthen(flow_settings, failing("P0001"))
    found = await prefect_server.run(deep_sleep, ASKED)
    assert found.state.is_failed()
    assert found.message.startswith("0 of 1 scopes slept; 1 partial (strengthen in tenant=acme: injected")
    assert found.run.state_type == StateType.FAILED
    assert found.task_runs["strengthen · acme"].run_count == 1
    assert found.task_runs["strengthen · acme"].state_type == StateType.FAILED
    assert found.task_runs["tag_risk · acme"].state_type == StateType.COMPLETED
    assert "injected" in found.artifacts["phase-strengthen"]


@pytest.mark.usefixtures("quick_retries")
async def test_what_fails_for_one_scope_fails_for_it_alone(
    prefect_server: PrefectServer, flow_settings: Settings, database: Database
) -> None:
    """Of six scopes one is poisoned and one busy: four sleep, and the message says what became of the two."""
    scopes = [TenantScope.root("tenant", f"t{number}") for number in range(6)]
    for each in scopes:
        await add_memory(database, each, "Ann likes tea", access_at=(ago(hours=2),))
    break_strengthen(flow_settings, failing("P0001", "NEW.tenant_id = 't2'"))
    async with hold(database, [scopes[4]]):
        found = await prefect_server.run(deep_sleep, ASKED)
    assert found.state.is_failed()
    assert found.message.startswith(
        "4 of 6 scopes slept; 1 busy (tenant=t4), 1 partial (strengthen in tenant=t2: injected"
    )
    assert [document["status"] for document in found.documents] == [
        "applied",
        "applied",
        "partial",
        "applied",
        "busy",
        "applied",
    ]
    assert await steps(database, scopes[4]) == {}
    assert found.artifacts["phase-strengthen"].count('"status": "done"') == 4


@pytest.mark.usefixtures("used_memory")
async def test_a_step_that_is_cut_off_is_not_taken_for_done(
    prefect_server: PrefectServer,
    flow_settings: Settings,
    database: Database,
    scope: TenantScope,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task that runs out of time leaves a failure in the ledger, so that the run cannot end as applied."""
    break_strengthen(flow_settings, "PERFORM pg_sleep(30);")
    monkeypatch.setattr(strengthen, "timeout_seconds", 0.5)
    found = await prefect_server.run(deep_sleep, ASKED)
    assert found.documents[0]["status"] == "partial"
    assert "strengthen in tenant=acme: The task strengthen ended without a result" in found.message
    assert found.task_runs["strengthen · acme"].run_count == 1
    ledger = await steps(database, scope)
    assert ledger["strengthen"] == "failed"


@pytest.mark.usefixtures("used_memory")
async def test_a_report_that_cannot_be_written_does_not_fail_the_night(
    prefect_server: PrefectServer, flow_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's artifacts are a view: the night is whole without them."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no artifacts today")

    monkeypatch.setattr(reporting, "acreate_markdown_artifact", refuse)
    found = await prefect_server.run(deep_sleep, ASKED)
    assert found.state.is_completed()
    assert found.documents[0]["status"] == "applied"
    assert found.artifacts == {}


@pytest.mark.usefixtures("used_memory")
async def test_a_flow_that_cannot_begin_says_why(prefect_server: PrefectServer, flow_settings: Settings) -> None:
    """An unknown tenant and an unknown scope end the flow as Failed with the error's own words."""
    nobody = await prefect_server.run(nightly, NightlyParameters(tenants=["nobody"], as_of=NIGHT))
    assert nobody.state.is_failed()
    assert isinstance(nobody.result, NotFound)
    assert nobody.message == "There is no tenant 'nobody' here. Known: acme."
    assert nobody.task_runs == {}
    nowhere = await prefect_server.run(nightly, NightlyParameters(tenants=["acme"], scope="brand=x", as_of=NIGHT))
    assert isinstance(nowhere.result, NotFound)


@pytest.mark.usefixtures("used_memory")
async def test_an_earlier_night_is_refused(prefect_server: PrefectServer, flow_settings: Settings) -> None:
    """A scope that slept later is refused, does nothing, and the flow is Failed because nobody slept."""
    await prefect_server.run(deep_sleep, ASKED)
    found = await prefect_server.run(deep_sleep, ASKED.model_copy(update={"as_of": ago(days=1)}))
    assert found.state.is_failed()
    assert found.message.startswith("0 of 1 scopes slept; 1 refused because of later runs (tenant=acme: ")
    assert set(found.task_runs) == {"begin · acme", "close · acme"}
