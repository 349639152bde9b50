"""Where a night takes its settings from, and what a bad one of one tenant does to the others."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_settings import BaseSettings

import memory_core
from memory_core.database.engine import Database
from memory_core.errors import InvalidSettings
from memory_core.models.budgets import BudgetSettings
from memory_core.night.chunks import begin_chunk
from memory_core.night.consolidate import consolidate
from memory_core.night.context import language_for, language_named_by
from memory_core.night.sections import SECTIONS, check_sections
from memory_core.night.turns import hold
from memory_core.runs.context import Run
from memory_core.runs.spending import limits_of
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.resonance_log import read_resonance_log
from tests.builders import NIGHT, add_memory
from tests.nights import change
from tests.shmr_runs import context_of

TENANT_SETTINGS = "UPDATE tenants SET settings = CAST(:settings AS jsonb) WHERE tenant_id = :tenant_id"
THE_SEVEN = {
    "BATCH_SIZE": 11,
    "MAX_ITERATIONS": 4,
    "SIMILARITY_THRESHOLD": 0.71,
    "HARMONY_THRESHOLD": 0.61,
    "MIN_CLUSTER_SIZE": 3,
    "TEMPERATURE": 0.3,
    "MODEL": "rules",
}


@pytest.mark.parametrize("prefix", ["SLOWWAVE_SHMR_", "MNEMOSYNE_SHMR_"])
async def test_a_run_reads_the_seven_documented_settings_by_either_prefix(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """What the resonance log says a run went by is what the environment said."""
    for name, value in THE_SEVEN.items():
        monkeypatch.setenv(f"{prefix}{name}", str(value))
    await add_memory(database, scope, "Ann likes tea")
    await consolidate(database, [scope], "harmonize", NIGHT)
    async with database.scoped(scope) as connection:
        (row,) = await read_resonance_log(connection)
    assert {name: row["parameters"][name.lower()] for name in THE_SEVEN} == THE_SEVEN


def test_the_model_of_shmr_comes_from_call_tenant_environment_file_and_the_general_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stands back for the one before it, and the source can be named."""
    settings = settings.model_copy(update={"model": "ollama/general"})

    def asked(tenant: dict[str, Any], call: dict[str, Any]) -> str:
        model = language_for(settings, tenant, call)
        assert model is not None
        return model.name

    assert asked({}, {}) == "ollama/general"
    assert language_named_by(settings) == "SLOWWAVE_MODEL"
    settings.home.mkdir(exist_ok=True)
    (settings.home / "slowwave.toml").write_text('[shmr]\nmodel = "ollama/file"\n')
    assert asked({}, {}) == "ollama/file"
    assert language_named_by(settings) == "[shmr] in slowwave.toml"
    for variable in ("SHMR_MODEL", "MNEMOSYNE_SHMR_MODEL", "SLOWWAVE_SHMR_MODEL"):
        monkeypatch.setenv(variable, f"ollama/{variable}")
        assert asked({}, {}) == f"ollama/{variable}"
        assert language_named_by(settings) == variable
    tenant = {"shmr": {"model": "ollama/tenant"}}
    assert asked(tenant, {}) == "ollama/tenant"
    assert asked(tenant, {"settings": {"shmr": {"model": "ollama/call"}}}) == "ollama/call"


@pytest.mark.parametrize("settings_of_one", [{"shmr": {"model": "rules,ollama/x"}}, {"shmr": {"model": 5}}])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_bad_model_of_one_tenant_stops_that_tenant_alone(
    database: Database, settings_of_one: dict[str, Any], dry_run: bool
) -> None:
    """Its scope is reported as failed, with the setting named; the others sleep."""
    scopes = [TenantScope.root("tenant", name) for name in ("ann", "bad", "cy")]
    for each in scopes:
        await add_memory(database, each, f"{each.tenant_id} likes tea")
    await change(database, scopes[1], TENANT_SETTINGS, settings=json.dumps(settings_of_one))
    documents = await consolidate(database, scopes, "nightly", NIGHT, dry_run=dry_run)
    assert [document["status"] == "failed" for document in documents] == [False, True, False]
    assert documents[1]["error"]["error"] == "InvalidSettings"
    async with database.scoped(scopes[1]) as connection:
        assert await connection.scalar("SELECT count(*) FROM runs WHERE tenant_id = :tenant_id") == 0


async def test_a_bad_model_of_the_process_is_refused_before_any_run_begins(
    database: Database, scope: TenantScope
) -> None:
    """It would fail everywhere alike, so nothing is begun that nobody would end."""
    await add_memory(database, scope, "Ann likes tea")
    misled = database.settings.model_copy(update={"model": "rules,ollama/x"})
    async with Database.open(misled) as other, hold(other, [scope]) as held:
        with pytest.raises(InvalidSettings):
            await begin_chunk(other, [scope], "nightly", NIGHT, held=held)
    async with database.scoped(scope) as connection:
        assert await connection.scalar("SELECT count(*) FROM runs WHERE tenant_id = :tenant_id") == 0


def test_every_section_is_checked_before_a_night(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new phase's settings cannot be forgotten; a bad value is named with its section."""
    modules = [
        importlib.import_module(each.name)
        for each in pkgutil.walk_packages(memory_core.__path__, "memory_core.")
        if "migrations" not in each.name
    ]
    found = {
        value
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("Settings") and isinstance(value, type) and issubclass(value, BaseModel)
    }
    assert {each for each in found if not issubclass(each, BaseSettings)} == set(SECTIONS.values())
    check_sections(settings)
    monkeypatch.setenv("SLOWWAVE_PRUNE_ORPHANS_STALE_DAYS", "0")
    with pytest.raises(InvalidSettings, match=r"prune_orphans.*stale_days"):
        check_sections(settings)


def test_a_tenants_budget_stands_before_the_environment_and_behind_the_call(
    settings: Settings, scope: TenantScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented precedence holds where it costs money; a limit that is misspelt is no missing limit."""

    def limits(budgets: dict[str, Any], **asked: Any) -> BudgetSettings:
        parameters = {"settings": {"budget": asked}}
        run = Run(scope.derived_id("run"), scope, "harmonize", NIGHT, parameters)
        return limits_of(context_of(run, settings), budgets)

    assert limits({}) == BudgetSettings()
    monkeypatch.setenv("SLOWWAVE_BUDGET_CALLS", "100")
    monkeypatch.setenv("SLOWWAVE_BUDGET_TOKENS", "9000")
    assert limits({"calls": 5}) == BudgetSettings(calls=5, tokens=9000)
    assert limits({"calls": 5}, calls=7).calls == 7
    with pytest.raises(InvalidSettings, match=r"'call'.*budget"):
        limits({"call": 5})
