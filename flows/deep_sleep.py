"""The seven phases of sleep over the scopes of one or more tenants."""

from __future__ import annotations

from typing import Any

from prefect import State, flow

from flows.consolidation import consolidate, run_name
from flows.parameters import DeepSleepParameters


@flow(name="deep-sleep", flow_run_name=run_name, persist_result=False, retries=0)
async def deep_sleep(parameters: DeepSleepParameters) -> State[Any]:
    """The seven phases of sleep over the scopes of one or more tenants.

    Args:
        parameters: what to run on, and how.
    """
    return await consolidate("sleep", parameters)
