"""A chunk of scopes: what fails for one fails for it alone, and is said."""

from __future__ import annotations

import uuid

import pytest
from sqlalchemy import create_engine, text

from memory_core.database.engine import Database
from memory_core.models.embedding import embedding_provider
from memory_core.night.consolidate import consolidate
from memory_core.runs.checksum import checksum
from memory_core.runs.locks import held_scopes
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, ago

POISON = """
CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'this row cannot be written'; END $$;
CREATE TRIGGER poison BEFORE UPDATE ON slowwave.memory_state
  FOR EACH ROW WHEN (OLD.memory_id = '{id}') EXECUTE FUNCTION poison();
CREATE TRIGGER poison BEFORE UPDATE ON slowwave.harmonize_queue
  FOR EACH ROW WHEN (OLD.memory_id = '{id}') EXECUTE FUNCTION poison();
"""


async def add(database: Database, scope: TenantScope, content: str, **fields: object) -> uuid.UUID:
    vector = (await embedding_provider("hash:64").embed([content]))[0].tolist()
    return await add_memory(database, scope, content, vector=vector, **fields)  # type: ignore[arg-type]


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


@pytest.mark.faults
async def test_97_of_100_scopes_sleep(database: Database) -> None:
    """One poisoned row, one guard, one busy scope: three are named, nothing of theirs changed, the rest slept (F28)."""
    scopes = [TenantScope.root("tenant", f"t{number:03}") for number in range(100)]
    poisoned, guarded, busy = scopes[17], scopes[42], scopes[99]
    for scope in scopes:
        used = await add(database, scope, f"{scope.tenant_id} drinks tea", access_at=(ago(hours=2),))
        if scope is poisoned:
            engine = create_engine(database.url)
            with engine.begin() as connection:
                connection.execute(text(POISON.format(id=used)))
            engine.dispose()
    for number in range(12):
        await add(database, guarded, f"trifle number {number}", importance=1.5, observed_at=ago(days=60))
    async with database.scoped(guarded) as connection:
        await connection.execute(
            "UPDATE memory_state SET first_night = :at WHERE tenant_id = :tenant_id", at=ago(days=50)
        )
        await connection.commit()
    before = {scope: await state(database, scope) for scope in scopes}

    async with held_scopes(database, [busy]):
        documents = await consolidate(database, scopes, "nightly", NIGHT)

    by_scope = dict(zip(scopes, documents, strict=True))
    slept = [scope for scope in scopes if by_scope[scope]["status"] == "applied"]
    assert len(slept) == 97
    assert all(by_scope[scope]["sleep"]["nodes_strengthened"] == 1 for scope in slept)
    for scope in slept:
        assert await state(database, scope) != before[scope], str(scope)

    assert by_scope[poisoned]["status"] in ("partial", "failed")
    assert "this row cannot be written" in str(by_scope[poisoned]["error"])
    assert by_scope[guarded]["status"] == "refused"
    assert by_scope[guarded]["error"]["error"] == "GuardTripped"
    assert (by_scope[guarded]["error"]["number"], by_scope[guarded]["error"]["of"]) == (12, 13)
    assert by_scope[busy]["status"] == "busy"
    assert by_scope[busy]["error"]["hint"]
    for scope in (poisoned, guarded, busy):
        assert await state(database, scope) == before[scope], str(scope)


@pytest.mark.faults
async def test_an_accepted_run_passes_the_guard(database: Database, scope: TenantScope) -> None:
    """A person who looked at it may accept what the guard refuses."""
    for number in range(12):
        await add(database, scope, f"trifle number {number}", importance=1.5, observed_at=ago(days=60))
    await add(database, scope, "acme drinks tea", access_at=(ago(hours=2),))
    async with database.scoped(scope) as connection:
        await connection.execute(
            "UPDATE memory_state SET first_night = :at WHERE tenant_id = :tenant_id", at=ago(days=50)
        )
        await connection.commit()
    refused = (await consolidate(database, [scope], "nightly", NIGHT))[0]
    assert refused["status"] == "refused"
    previewed = (await consolidate(database, [scope], "nightly", NIGHT, dry_run=True))[0]
    assert (previewed["status"], previewed["error"]["error"]) == ("refused", "GuardTripped")
    accepted = (await consolidate(database, [scope], "nightly", NIGHT, parameters={"accept": True}))[0]
    assert (accepted["status"], accepted["sleep"]["nodes_pruned"]) == ("applied", 12)
