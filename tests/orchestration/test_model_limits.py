"""How fast flows ask a model: as the provider asks, and as fast as all workers together may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from deployments.bootstrap import bootstrap
from flows.harmonize import harmonize
from flows.parameters import HarmonizeParameters
from memory_core.database.engine import Database
from memory_core.errors import SetupError, TransientError
from memory_core.models.model_errors import load_litellm
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tasks.limits import REQUESTS, SLOTS_A_REQUEST, TOKENS, SharedPace, model_limits, shared_pace
from tests.builders import NIGHT
from tests.openai_server import OpenAIServer, RecordedRequest, answer, rate_limit, slow, status
from tests.orchestration.conftest import PrefectServer
from tests.scripted_model import many_homes, moved
from tests.shmr_runs import rows

ASKED = HarmonizeParameters(tenants=["acme"], as_of=NIGHT, settings={"shmr": {"clusters_at_once": 4}})
GAPS = """
SELECT extract(epoch FROM max(called_at) - min(called_at)) AS span, array_agg(outcome ORDER BY sequence) AS outcomes
FROM model_attempts
"""


def good(request: RecordedRequest) -> object:
    """What the provider answers where it answers."""
    return answer(moved(request.text))


@pytest.fixture
def provider(flow_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A model that flows are configured to ask."""
    load_litellm()
    with OpenAIServer(otherwise=good) as running:  # type: ignore[arg-type]
        monkeypatch.setenv("SLOWWAVE_MODEL", "openai/test")
        monkeypatch.setenv("SLOWWAVE_MODEL_API_BASE", running.url)
        monkeypatch.setenv("SLOWWAVE_MODEL_API_KEY", "k")
        yield running


@pytest.fixture
async def no_limits(prefect_server: PrefectServer) -> AsyncIterator[None]:
    """The server without limits of model calls, before and after."""
    with temporary_settings({PREFECT_API_URL: prefect_server.url}):
        await remove_limits()
        yield
        await remove_limits()


async def remove_limits() -> None:
    """Delete what may be there."""
    async with get_client() as client:
        for each in await client.read_global_concurrency_limits(limit=100):
            if each.name in (REQUESTS, TOKENS):
                await client.delete_global_concurrency_limit_by_name(each.name)


async def kept_limits() -> dict[str, tuple[int, float]]:
    """The limits that the server keeps: slots, and how many come free a second."""
    async with get_client() as client:
        found = await client.read_global_concurrency_limits(limit=100)
    return {each.name: (each.limit, each.slot_decay_per_second) for each in found if each.name in (REQUESTS, TOKENS)}


@pytest.mark.usefixtures("quick_retries")
async def test_a_task_waits_as_long_as_the_provider_asks(
    prefect_server: PrefectServer, provider: OpenAIServer, database: Database, scope: TenantScope
) -> None:
    """One of three calls is told to come back in 1.5 s: the task does, for that one alone, and the run is whole."""
    await many_homes(database, scope, 3)
    provider.script(rate_limit(1.5))
    found = await prefect_server.run(harmonize, ASKED)
    assert found.state.is_completed(), found.message
    assert found.documents[0]["shmr"]["clusters"] == {"applied": 3}
    assert found.task_runs["harmonize · acme"].run_count == 2
    (seen,) = await rows(database, scope, GAPS)
    assert sorted(seen["outcomes"]) == ["rate_limited", "usable", "usable", "usable"]
    assert len(provider.posts()) == 4
    assert seen["span"] >= 1.5


@pytest.mark.usefixtures("quick_retries")
async def test_what_keeps_failing_waits_for_another_night(
    prefect_server: PrefectServer, provider: OpenAIServer, database: Database, scope: TenantScope
) -> None:
    """Four tries for the cluster that always fails, one call for the others; the run goes on to its end."""
    await many_homes(database, scope, 3)
    provider.otherwise = lambda request: status(503) if '"Bo"' in request.text else answer(moved(request.text))
    found = await prefect_server.run(harmonize, ASKED)
    assert found.state.is_completed(), found.message
    assert found.documents[0]["shmr"]["clusters"] == {"applied": 2, "model_unavailable": 1}
    assert found.documents[0]["shmr"]["status"] == "partial"
    assert found.task_runs["harmonize · acme"].run_count == 4
    assert len(provider.posts()) == 2 + 4


@pytest.mark.usefixtures("quick_retries")
async def test_a_slow_provider_is_tried_again(
    prefect_server: PrefectServer,
    provider: OpenAIServer,
    database: Database,
    scope: TenantScope,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that took too long is made again by the task, and the answers of the others are not bought again."""
    monkeypatch.setenv("SLOWWAVE_MODEL_TIMEOUT", "1.5")
    await many_homes(database, scope, 2)
    provider.script(slow(30))
    found = await prefect_server.run(harmonize, ASKED)
    assert found.documents[0]["shmr"]["clusters"] == {"applied": 2}
    assert len(provider.posts()) == 3


@pytest.mark.usefixtures("no_limits")
async def test_a_flow_keeps_the_rate(
    prefect_server: PrefectServer,
    provider: OpenAIServer,
    database: Database,
    scope: TenantScope,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five calls at 120 a minute take two seconds at least, and the server keeps a limit that other workers share."""
    monkeypatch.setenv("SLOWWAVE_MODEL_REQUESTS_PER_MINUTE", "120")
    await many_homes(database, scope, 5)
    found = await prefect_server.run(harmonize, ASKED)
    assert found.documents[0]["shmr"]["clusters"] == {"applied": 5}
    (seen,) = await rows(database, scope, GAPS)
    assert seen["span"] >= 1.8
    assert await kept_limits() == {REQUESTS: (3 * SLOTS_A_REQUEST, 2.0 * SLOTS_A_REQUEST)}


@pytest.mark.usefixtures("no_limits")
async def test_two_workers_share_one_rate(settings: Settings) -> None:
    """Twelve calls of two processes at 240 a minute: five at once, and then no more than four a second."""
    limited = settings.model_copy(update={"model_requests_per_minute": 240})
    workers = [SharedPace(limited), SharedPace(limited)]
    await asyncio.gather(*(worker.wait(1) for worker in workers))
    started = time.monotonic()

    async def six(worker: SharedPace) -> None:
        for _ in range(6):
            await worker.wait(1)

    await asyncio.wait_for(asyncio.gather(*map(six, workers)), 120)
    # 14 calls less the 5 that are free at first, at 4 a second; alone, each would take 1.5 s.
    assert time.monotonic() - started >= 2.0


@pytest.mark.usefixtures("no_limits")
async def test_tokens_are_kept_to_a_rate_too(settings: Settings) -> None:
    """A call larger than what may be taken at once waits for all of it."""
    pace = SharedPace(settings.model_copy(update={"model_tokens_per_minute": 60_000}))
    started = time.monotonic()
    await asyncio.wait_for(pace.wait(12_000), 60)
    assert time.monotonic() - started >= 1.8
    assert await kept_limits() == {TOKENS: (10_000, 1_000.0)}


@pytest.mark.usefixtures("no_limits")
async def test_the_bootstrap_can_be_run_again(settings: Settings) -> None:
    """Twice the same, then what the settings say now; where they limit nothing, nothing is made."""
    assert "neither" in (await bootstrap(settings))[0]
    assert await kept_limits() == {}
    limited = settings.model_copy(update={"model_requests_per_minute": 60, "model_tokens_per_minute": 6_000})
    first = await bootstrap(limited)
    made = await kept_limits()
    assert made == {REQUESTS: (120, 60.0), TOKENS: (1_000, 100.0)}
    assert (await bootstrap(limited), await kept_limits()) == (first, made)
    await bootstrap(limited.model_copy(update={"model_requests_per_minute": 6_000}))
    assert (await kept_limits())[REQUESTS] == (101 * 60, 6_000.0)


@pytest.mark.usefixtures("no_limits")
async def test_a_limit_that_a_person_set_stays(settings: Settings) -> None:
    """A worker creates what is missing and changes nothing; the bootstrap alone does."""
    async with get_client() as client:
        await client.upsert_global_concurrency_limit_by_name(REQUESTS, 600, 6_000.0)
    await SharedPace(settings.model_copy(update={"model_requests_per_minute": 60})).wait(1)
    assert await kept_limits() == {REQUESTS: (600, 6_000.0)}


async def test_a_server_that_is_away_is_worth_a_retry(settings: Settings) -> None:
    """A worker that cannot ask for its turn makes no call; the bootstrap names the address."""
    limited = settings.model_copy(update={"model_requests_per_minute": 60})
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        with pytest.raises(TransientError, match="paces calls to models"):
            await asyncio.wait_for(SharedPace(limited).wait(1), 60)
        with pytest.raises(SetupError, match="No Prefect server answers"):
            await bootstrap(limited)


def test_without_limits_nobody_waits_for_a_server(settings: Settings) -> None:
    """The default asks no server; the same settings share one pace in a process."""
    assert model_limits(settings) == []
    assert shared_pace(settings) is None
    limited = settings.model_copy(update={"model_requests_per_minute": 60})
    assert shared_pace(limited) is shared_pace(limited)
