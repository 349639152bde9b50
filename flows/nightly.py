"""A whole night: the seven phases, then SHMR, then the morning report."""

from __future__ import annotations

from typing import Any

from prefect import State, flow

from flows.consolidation import consolidate, run_name
from flows.parameters import NightlyParameters


@flow(name="nightly", flow_run_name=run_name, persist_result=False, retries=0)
async def nightly(parameters: NightlyParameters) -> State[Any]:
    """A whole night: the seven phases, then SHMR, then the morning report.

    Args:
        parameters: what to run on, and how.
    """
    return await consolidate("nightly", parameters)
