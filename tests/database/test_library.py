"""The core as a library: a night and its beliefs without Prefect and without the command line."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

import memory_core
from memory_core import (
    ConsolidationReport,
    Database,
    SleepConsolidator,
    TenantScope,
    get_resonance_log,
    harmonize,
    recall_beliefs,
)
from memory_core.errors import GuardTripped, InvalidInput, LaterRunsExist, NotFound, ScopeBusy
from memory_core.night.consolidate import consolidate
from memory_core.runs.locks import held_scopes
from tests.builders import NIGHT, add_home, add_memory, ago
from tests.nights import change, edges, rows, state
from tests.small_tenant import PENDING, fill_small_tenant


async def test_a_sleep_is_the_one_of_the_command_line(database: Database, scope: TenantScope) -> None:
    """The same counts and the same store as a run of kind `sleep` over an equal tenant."""
    other = TenantScope.root("tenant", "zeta")
    for each in (scope, other):
        await fill_small_tenant(database, each)
    (document,) = await consolidate(database, [other], "sleep", NIGHT, parameters={"pending_connections": PENDING})
    report = await SleepConsolidator(database).run(scope, pending_connections=PENDING, as_of=NIGHT)
    assert isinstance(report, ConsolidationReport)
    found, expected = report.to_dict(), document["sleep"]
    counted = [name for name in expected if name not in ("tenant_id", "scope", "started_at", "finished_at", "phases")]
    assert {name: found[name] for name in counted} == {name: expected[name] for name in counted}
    assert report.edges_created > 0
    assert report.errors == []
    assert report.started_at is not None
    assert report.finished_at is not None
    assert report.started_at.tzinfo is not None
    assert list(report.phases) == list(expected["phases"])
    assert len(await edges(database, scope)) == len(await edges(database, other))
    (run,) = await rows(database, scope, "SELECT kind, requested_by, status FROM runs WHERE tenant_id = :tenant_id")
    assert dict(run) == {"kind": "sleep", "requested_by": "library", "status": "applied"}


async def test_a_sleep_of_now_takes_a_schema_of_python_types(database: Database, scope: TenantScope) -> None:
    """The schema types what was corrected; without `as_of` it is the present; the look-back is the caller's."""
    used = datetime.now(UTC) - timedelta(hours=40)
    await add_memory(database, scope, "Ann likes tea", observed_at=used, access_at=(used,))
    await change(
        database,
        scope,
        "INSERT INTO corrections (tenant_id, id, scope_path, who, at, what) VALUES (:tenant_id, "
        "'00000000-0000-0000-0000-000000000001', :scope_path, 'ann', :at, '{\"fields\": {\"age\": \"41\"}}')",
        at=used,
    )
    report = await SleepConsolidator(database, lookback_hours=48).run(scope, soul_schema={"age": int})
    assert (report.soul_updates, report.nodes_strengthened) == (1, 1)
    (field,) = await rows(database, scope, "SELECT value, type FROM soul_profiles WHERE tenant_id = :tenant_id")
    assert dict(field) == {"value": 41, "type": "int"}


async def test_a_sleep_that_did_not_happen_is_an_error_and_changes_nothing(
    database: Database, scope: TenantScope
) -> None:
    """Busy, unknown, too early, or stopped by a guard: a report of counts would read as if it had."""
    consolidator = SleepConsolidator(database)
    with pytest.raises(NotFound):
        await consolidator.run(scope, as_of=NIGHT)
    for number in range(12):
        await add_memory(database, scope, f"trifle number {number}", importance=1.5, observed_at=ago(days=60))
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2),))
    await change(
        database, scope, "UPDATE memory_state SET first_night = :at WHERE tenant_id = :tenant_id", at=ago(days=50)
    )
    before = await state(database, scope)
    async with held_scopes(database, [scope]):
        with pytest.raises(ScopeBusy) as busy:
            await consolidator.run(scope, as_of=NIGHT)
    assert busy.value.hint
    with pytest.raises(GuardTripped) as tripped:
        await consolidator.run(scope, as_of=NIGHT)
    assert (tripped.value.data["number"], tripped.value.data["of"]) == (12, 13)
    assert await state(database, scope) == before
    assert (await consolidator.run(scope, as_of=NIGHT, accept=True)).nodes_pruned == 12
    with pytest.raises(LaterRunsExist):
        await consolidator.run(scope, as_of=ago(days=1))


async def test_beliefs_are_made_recalled_and_logged(database: Database, scope: TenantScope) -> None:
    """From two statements to the belief that answers a question in plain words, and the row of the pass."""
    for day, place in ((9, "Oslo"), (2, "Bergen")):
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
        )
    result = await harmonize(database, scope, as_of=NIGHT, max_iterations=2, similarity_threshold=0.75)
    assert (result["status"], result["beliefs_generated"], result["contradictions_resolved"]) == ("harmonized", 1, 1)
    (belief,) = await recall_beliefs(database, scope, "where Ann lives", top_k=3)
    assert (belief["content"], belief["status"]) == ("Ann lives in Bergen", "held")
    (logged,) = await get_resonance_log(database, scope)
    assert (logged["run_id"], logged["status"]) == (result["run_id"], "harmonized")
    asked = {name: logged["parameters"][name] for name in ("max_iterations", "similarity_threshold", "batch_size")}
    assert asked == {"max_iterations": 2, "similarity_threshold": 0.75, "batch_size": 50}
    async with held_scopes(database, [scope]):
        with pytest.raises(ScopeBusy):
            await harmonize(database, scope, as_of=NIGHT)
    with pytest.raises(InvalidInput):
        await recall_beliefs(database, scope, " ")


def test_every_name_is_there_and_none_is_loaded_before_it_is_used() -> None:
    """The command line imports the package on every start, and must not pay for the library."""
    for name in memory_core.__all__:
        assert getattr(memory_core, name) is not None
    assert set(memory_core.__all__) <= set(dir(memory_core))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = memory_core.nonsense
    code = "import sys, memory_core; print(sorted(name for name in sys.modules if name.startswith('memory_core.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
