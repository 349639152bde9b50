"""What a flow run from a shell needs of Prefect around it: a server to report to, and a record that is complete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterParentFlowRunId
from prefect.logging.handlers import APILogHandler
from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

RECORD_SECONDS = 10.0
"""How long to wait for the temporary server to note what the tasks told it; the work itself is done by then."""

LAST_TASKS = ("close · ", "preview · ")
"""How the names of the task runs begin that a flow ends with."""


@contextmanager
def reporting_to(url: str | None) -> Iterator[None]:
    """Flow runs inside report to this server; None for the one that Prefect's settings name.

    They send no heartbeats, which would only keep the process waiting at its end; no variable can say so.
    """
    chosen: dict[Any, Any] = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
    if url is not None:
        chosen[PREFECT_API_URL] = url
    with temporary_settings(chosen):
        yield


async def send_logs() -> None:
    """Send the log lines that wait to be sent: once the server is gone, each would be reported as an error."""
    await APILogHandler.aflush()


async def wait_until_recorded(flow_run_id: UUID | None, seconds: float = RECORD_SECONDS) -> bool:
    """Wait until the server shows the task runs of the flow run as ended, and say whether it does.

    Task runs reach the server as events, in their order, which it takes in after the flow has ended; a temporary
    server that is stopped before would show them as running for ever.

    Args:
        flow_run_id: a flow run that has ended, and whose last task is one of `LAST_TASKS`, or its subflow's is.
    """
    if flow_run_id is None:
        return False
    deadline = time.monotonic() + seconds
    async with get_client() as client:
        children = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]))
        )
        runs_of = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id, *(child.id for child in children)]))
        while True:
            runs = await client.read_task_runs(flow_run_filter=runs_of)
            ended = all(run.state is not None and run.state.is_final() for run in runs)
            if ended and any(run.name.startswith(LAST_TASKS) for run in runs):
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.2)
