"""SHMR over the scopes of one or more tenants: contradictions become beliefs."""

from __future__ import annotations

from typing import Any

from prefect import State, flow

from flows.consolidation import consolidate, run_name
from flows.parameters import HarmonizeParameters


@flow(name="harmonize", flow_run_name=run_name, persist_result=False, retries=0)
async def harmonize(parameters: HarmonizeParameters) -> State[Any]:
    """SHMR over the scopes of one or more tenants: contradictions become beliefs.

    Args:
        parameters: what to run on, and how.
    """
    return await consolidate("harmonize", parameters)
