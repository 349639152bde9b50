"""A real Prefect server over the session's Postgres, and a way to run flows against it and look at what it kept."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from filelock import FileLock
from prefect import Flow, State
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_HOME,
    temporary_settings,
)

from flows.environment import QUIET
from flows.prefect_schema import prepare
from flows.records import send_logs, wait_until_recorded
from memory_core.database.embedded import ServerAddress
from memory_core.settings import Settings

START_SECONDS = 120


@dataclass(frozen=True)
class Finished:
    """A flow run that has ended, and what Prefect kept of it."""

    state: State[Any]
    result: Any
    run: FlowRun
    task_runs: dict[str, TaskRun]
    artifacts: dict[str, Any]

    @property
    def message(self) -> str:
        """The message of the final state."""
        return self.state.message or ""

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The document of each scope."""
        return self.result.data["documents"] if isinstance(self.result, Exception) else self.result


@dataclass(frozen=True)
class PrefectServer:
    """A Prefect server; runs flows in this process and reports to it."""

    url: str
    home: Path

    async def run(self, flow: Flow[..., Any], parameters: Any) -> Finished:
        """Run the flow to its end, whatever that is."""
        chosen = {
            PREFECT_API_URL: self.url,
            PREFECT_HOME: self.home,
            PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        }
        with temporary_settings(chosen):
            state = await flow(parameters, return_state=True)
            result = await state.aresult(raise_on_failure=False)
            await send_logs()
            flow_run_id = state.state_details.flow_run_id
            if not isinstance(result, Exception) or "documents" in getattr(result, "data", {}):
                assert await wait_until_recorded(flow_run_id, 20)
            async with get_client() as client:
                run = await client.read_flow_run(flow_run_id)
                only = FlowRunFilter.model_validate({"id": {"any_": [flow_run_id]}})
                task_runs = await client.read_task_runs(flow_run_filter=only)
                artifacts = await client.read_artifacts(artifact_filter=_of(flow_run_id))
        return Finished(
            state,
            result,
            run,
            {task_run.name: task_run for task_run in task_runs},
            {artifact.key: artifact.data for artifact in artifacts if artifact.key},
        )

    async def artifact(self, key: str) -> Artifact | None:
        """The newest artifact of that key."""
        with temporary_settings({PREFECT_API_URL: self.url}):
            return await Artifact.aget(key)


def _of(flow_run_id: UUID | None) -> ArtifactFilter:
    return ArtifactFilter.model_validate({"flow_run_id": {"any_": [flow_run_id]}})


@pytest.fixture(scope="session")
def prefect_server(
    server: ServerAddress, server_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrefectServer]:
    """The lasting server of `deployments/server.py`, whose database is in the embedded Postgres of the session."""
    port = _free_port()
    folder = tmp_path_factory.mktemp("prefect")
    environment = {**os.environ, **QUIET, "SLOWWAVE_HOME": str(server_home)}
    # Parallel workers share the Postgres; one after the other finds the schema prepared.
    with FileLock(server_home / "prefect.lock"):
        prepare(Settings.load(home=server_home))
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "deployments.server", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}/api"
        _wait_for(f"{url}/health", process, folder / "server.log")
        yield PrefectServer(url, folder / "home")
    finally:
        _stop(process)


@pytest.fixture
def flow_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the test's database, where flows look for them."""
    use(monkeypatch, settings)
    return settings


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without the waiting that gives a real database time to recover."""
    from flows.consolidation import TASKS

    for task in TASKS["nightly"]:
        monkeypatch.setattr(task, "retry_delay_seconds", [0.05])


def use(monkeypatch: pytest.MonkeyPatch, settings: Settings, database_url: str | None = None) -> None:
    """Let flows work on this store."""
    monkeypatch.setenv("SLOWWAVE_HOME", str(settings.home))
    monkeypatch.setenv("SLOWWAVE_DATABASE_URL", database_url or settings.database_url)
    monkeypatch.setenv("SLOWWAVE_EMBEDDING", settings.embedding)


async def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """What the condition finds, once it finds anything: the server takes in events after the fact."""
    deadline = time.monotonic() + seconds
    while True:
        found = await condition()
        if found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"The Prefect server did not start:\n{log.read_text()[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(timeout=15)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
