"""SHMR's clusters carried out by the page: the same as one by one, and one cluster's fault stays its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text

from memory_core.database.engine import Database
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import Preview, preview
from memory_core.scope import TenantScope
from memory_core.shmr import apply
from memory_core.shmr.steps import SHMR_STEPS
from tests.builders import NIGHT, add_access, add_memory, ago
from tests.shmr_runs import Harmonized, beliefs, context_of, harmonize, rows, state, superseded, undo, waiting

SMALL_CLUSTERS: dict[str, Any] = {"settings": {"shmr": {"max_cluster_size": 3}}}


@pytest.fixture
def owner(database_url: str) -> Iterator[Engine]:
    """The owner's engine, whom row-level security does not bind."""
    engine = create_engine(database_url, connect_args={"options": "-c search_path=slowwave,public"})
    yield engine
    engine.dispose()


async def say(database: Database, scope: TenantScope, subject: str, value: str, days: float, **fields: Any) -> Any:
    """Somebody lives somewhere, said so many days ago."""
    return await add_memory(
        database,
        scope,
        f"{subject} lives in {value}",
        subject=subject,
        predicate="lives_in",
        object=value,
        observed_at=ago(days=days),
        **fields,
    )


async def town(database: Database, scope: TenantScope) -> None:
    """Two nights of a town: moves, repetitions, a confirmed address, an undecidable one, and what was taken back."""
    for number in range(6):
        await say(database, scope, f"Person {number}", "Oslo", 40)
        await say(database, scope, f"Person {number}", "Bergen", 30 + number, confidence=0.5 + number / 20)
    for source in ("mail", "phone", "letter", "call", "note", "form", "visit"):
        await say(database, scope, "Person 6", "Molde", 35, source=source)
    taken_back = await harmonize(database, scope, ago(days=25), **SMALL_CLUSTERS)
    assert taken_back.status == "applied"
    assert (await undo(database, scope, taken_back.run, ago(days=25))).refused == ()
    for number in range(6, 12):
        await say(database, scope, f"Person {number}", "Oslo", 22)
        await say(database, scope, f"Person {number}", "Bergen", 21)
    first = await harmonize(database, scope, ago(days=20), **SMALL_CLUSTERS)
    assert first.outcome("apply")["counts"]["beliefs"] >= 6
    for number in range(3, 10):
        moved = await say(database, scope, f"Person {number}", "Voss", 10)
        if number == 4:
            await add_access(database, scope, moved, ago(days=9), kind="confirm")
    stays = await say(database, scope, "Person 12", "Oslo", 9)
    await add_access(database, scope, stays, ago(days=1), kind="confirm")
    for value in ("Bergen", "Voss"):
        await say(database, scope, "Person 12", value, 8, source=value)
        await say(database, scope, "Person 13", value, 8, source=value)
    for source in ("mail", "phone", "letter", "call", "note", "form", "visit"):
        await say(database, scope, "Person 14", "Molde", 5, source=source)


async def looked_ahead(database: Database, scope: TenantScope) -> Preview:
    """What a run as of `NIGHT` would do."""
    run = await begin_run(database, scope, "harmonize", NIGHT, {"accept": True, **SMALL_CLUSTERS}, dry_run=True)
    return await preview(database, context_of(run, database.settings), SHMR_STEPS)


def without_steps(changes: dict[str, list[dict[str, Any]]]) -> str:
    """The changes as text, without the names of the steps, which hold those of the pages."""
    bare = {kind: [{**row, "steps": None} for row in found] for kind, found in changes.items()}
    return json.dumps(bare, sort_keys=True, default=str)


async def test_a_page_does_what_its_clusters_do_one_by_one(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of a page, the same rows change in the same way, and the step reports the same numbers."""
    await town(database, scope)
    found = {}
    for size in (1, 3, 500):
        monkeypatch.setattr(apply, "PAGE", size)
        seen = await looked_ahead(database, scope)
        outcome = next(result.outcome for result in seen.results if result.step == "apply")
        assert outcome is not None
        created = [row["row"] for row in seen.changes["created"] if row["table"] == "harmonic_beliefs"]
        assert [row["content"] for row in created].count("Person 14 lives in Molde") == 1
        found[size] = (without_steps(seen.changes), replace(outcome, sample=()))
    assert found[1] == found[3] == found[500]
    assert found[500][1].candidates > 10
    assert found[500][1].counts["superseded"] > 10
    assert found[500][1].counts["beliefs"] > 6


async def night_with_a_fault(database: Database, scope: TenantScope, owner: Engine, victim: Any) -> Harmonized:
    """A run in which one memory cannot be superseded, for the database refuses it."""
    with owner.begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION slowwave.refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF NEW.id = '{victim}' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$"
            )
        )
        connection.execute(
            text(
                "CREATE TRIGGER refuse_one BEFORE UPDATE ON slowwave.memories "
                "FOR EACH ROW EXECUTE FUNCTION slowwave.refuse_one()"
            )
        )
    run = await harmonize(database, scope, accept=True)
    with owner.begin() as connection:
        connection.execute(text("DROP TRIGGER refuse_one ON slowwave.memories"))
        connection.execute(text("DROP FUNCTION slowwave.refuse_one()"))
    return run


async def test_one_cluster_that_fails_takes_no_other_with_it(
    database: Database, scope: TenantScope, owner: Engine
) -> None:
    """Of nine clusters of a page eight are applied; the ninth is closed as failed, and its members wait again."""
    old = [await say(database, scope, f"Person {number}", "Oslo", 20) for number in range(9)]
    new = [await say(database, scope, f"Person {number}", "Bergen", 10) for number in range(9)]
    run = await night_with_a_fault(database, scope, owner, old[4])
    assert (run.status, run.summary["status"]) == ("applied", "partial")
    assert set(await superseded(database, scope)) == {*old[:4], *old[5:]}
    assert await waiting(database, scope) == {old[4], new[4]}
    assert run.outcome("apply")["skipped"] == {"failed": 1}
    assert run.outcome("apply")["candidates"] == 9
    assert len(await beliefs(database, scope)) == 8
    (failed,) = await rows(database, scope, "SELECT * FROM memory_resonance_clusters WHERE status = 'failed'")
    assert "while it was applied" in failed["reason"]
    again = await harmonize(database, scope, accept=True, reconsider=True)
    assert again.summary["status"] == "harmonized"
    assert old[4] in await superseded(database, scope)


async def test_a_page_is_undone_to_the_last_column(database: Database, scope: TenantScope) -> None:
    """After a run in pages is undone, the scope's checksum is what it was."""
    await town(database, scope)
    before = await state(database, scope)
    run = await harmonize(database, scope, NIGHT, accept=True, **SMALL_CLUSTERS)
    assert await state(database, scope) != before
    assert (await undo(database, scope, run.run)).refused == ()
    assert await state(database, scope) == before


async def test_statements_do_not_grow_with_the_clusters(database: Database) -> None:
    """Every step from collect to log takes as many statements for four clusters as for eighty."""
    statements: list[str] = []
    event.listen(database.app.sync_engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    counted = []
    for clusters in (4, 80):
        scope = TenantScope.root("tenant", f"of-{clusters}")
        for number in range(clusters):
            await say(database, scope, f"Person {number}", "Oslo", 20)
            await say(database, scope, f"Person {number}", "Bergen", 10)
        statements.clear()
        run = await harmonize(database, scope, accept=True)
        assert run.outcome("apply")["counts"]["superseded"] == clusters
        counted.append(len(statements))
    assert counted[0] == counted[1]
