"""Steps that settings switch on: part of a run where they are, left out of it whole where they are not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.night.steps import steps_of_kind
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, ago
from tests.nights import change, rows

OPTIONAL = {step.name for step in steps_of_kind("nightly") if step.enabled is not None}
FADING = {"settings": {"decay": {"enabled": True}}}


async def steps_of(database: Database, scope: TenantScope, run_id: str) -> set[str]:
    """The steps that the ledger of a run knows."""
    found = await rows(
        database,
        scope,
        "SELECT step FROM run_steps WHERE tenant_id = :tenant_id AND run_id = CAST(:id AS uuid)",
        id=run_id,
    )
    return {row["step"] for row in found}


async def night(database: Database, scope: TenantScope, day: int = 0, **asked: Any) -> dict[str, Any]:
    """A nightly run; its document."""
    (document,) = await consolidate(database, [scope], "nightly", NIGHT + timedelta(days=day), **asked)
    return document


async def test_a_step_that_is_off_leaves_no_trace(database: Database, scope: TenantScope) -> None:
    """Neither ledger nor report name it, and the run is applied all the same."""
    await add_memory(database, scope, "idle for a year", observed_at=ago(days=365))
    document = await night(database, scope)
    assert document["status"] == "applied"
    assert OPTIONAL
    assert OPTIONAL.isdisjoint(document["sleep"]["phases"])
    assert OPTIONAL.isdisjoint(await steps_of(database, scope, document["run_id"]))


async def test_a_run_switches_a_step_on(database: Database, scope: TenantScope) -> None:
    """By the run's own settings, in a preview as in the run that it announces."""
    await add_memory(database, scope, "idle for a year", observed_at=ago(days=365))
    ahead = await night(database, scope, parameters=FADING, dry_run=True)
    document = await night(database, scope, parameters=FADING)
    assert ahead["sleep"]["phases"]["decay"]["changed"] == document["sleep"]["phases"]["decay"]["changed"] == 1
    assert OPTIONAL & await steps_of(database, scope, document["run_id"]) == {"decay"}


async def test_each_scope_of_a_chunk_has_its_own_steps(database: Database, scope: TenantScope) -> None:
    """What one tenant switches on is done for that tenant alone; a wrong setting fails its step, not in silence."""
    tenants = {name: TenantScope.root("tenant", name) for name in ("fading", "keeping", "wrong")}
    for tenant in tenants.values():
        await add_memory(database, tenant, "idle for a year", observed_at=ago(days=365))
    for name, settings in (("fading", '{"decay": {"enabled": true}}'), ("wrong", '{"decay": {"enabled": "perhaps"}}')):
        await change(
            database,
            tenants[name],
            "UPDATE tenants SET settings = CAST(:settings AS jsonb) WHERE tenant_id = :tenant_id",
            settings=settings,
        )
    documents = await consolidate(database, list(tenants.values()), "sleep", NIGHT)
    found = {document["tenant"]: document for document in documents}
    assert {name: document["status"] for name, document in found.items()} == {
        "fading": "applied",
        "keeping": "applied",
        "wrong": "partial",
    }
    assert found["fading"]["sleep"]["phases"]["decay"]["changed"] == 1
    assert "decay" not in found["keeping"]["sleep"]["phases"]
    assert "decay" in found["wrong"]["error"]["message"]
