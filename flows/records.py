"""What a flow run from a shell needs of Prefect around it: no heartbeats, and its record complete at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

RECORD_SECONDS = 10.0
"""How long to wait for the temporary server to note what the tasks told it; the work itself is done by then."""


@contextmanager
def heartbeats_off() -> Iterator[None]:
    """Flow runs inside send no heartbeats: nobody watches a run whose server ends with it. No variable can say so."""
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


async def wait_until_recorded(flow_run_id: UUID | None, seconds: float = RECORD_SECONDS) -> bool:
    """Wait until the server shows every task run of the flow run as ended, and say whether it does.

    Task runs reach the server as events, which it takes in after the flow has ended; a temporary server that is
    stopped before would show them as running for ever.
    """
    if flow_run_id is None:
        return False
    deadline = time.monotonic() + seconds
    async with get_client() as client:
        while True:
            runs = await client.read_task_runs(
                flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])),
            )
            if all(run.state is not None and run.state.is_final() for run in runs):
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.2)
