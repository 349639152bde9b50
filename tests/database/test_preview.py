"""The dry run: what it says is what the run then does, and the store never moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import ModelTimeout, TransactionConflict
from memory_core.runs.changes import changes_of
from memory_core.runs.context import RunContext, Step
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.preview import Preview, preview, record_preview
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory
from tests.nights import rows, sleep, state
from tests.steps import context_of, failing, importance, retire, step


async def ahead(database: Database, scope: TenantScope, *steps: Step) -> Preview:
    run = await begin_run(database, scope, "sleep", NIGHT, dry_run=True)
    return await preview(database, context_of(database, run), steps)


def asking(name: str, sql: str, *, error: Exception | None = None, asked: list[str] | None = None) -> Step:
    """A step that reads something, is answered with no transaction open, and writes the answer."""

    async def read(connection: ScopedConnection, context: RunContext) -> int:
        return int(await connection.scalar("SELECT sum(importance) FROM memory_state WHERE tenant_id = :tenant_id"))

    async def call(request: int, context: RunContext, database: Database) -> int:
        if asked is not None:
            asked.append(f"{name} {request}")
        if error is not None:
            raise error
        return request // 2

    async def write(connection: ScopedConnection, context: RunContext, answer: int) -> StepOutcome:
        return StepOutcome(changed=(await connection.execute(sql, value=answer)).rowcount)

    return Step(name, write, read=read, call=call)


SET = "UPDATE memory_state SET importance = :value WHERE tenant_id = :tenant_id"


async def test_answers_build_on_what_came_before(database: Database, scope: TenantScope) -> None:
    """Each question sees the steps before it, is asked once, and the diff is the real run's."""
    await add_memory(database, scope, "Ann likes tea")
    asked: list[str] = []
    steps = (asking("first", SET, asked=asked), asking("second", SET, asked=asked))
    before = await state(database, scope)
    found = await ahead(database, scope, *steps)
    assert asked == ["first 5", "second 2"]
    assert (found.status, await state(database, scope)) == ("applied", before)
    night = await sleep(database, scope, steps)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == found.changes


@pytest.mark.parametrize("error", [ModelTimeout("The model sleeps."), ValueError("no answer")])
async def test_a_model_that_fails_fails_its_step_alone(
    database: Database, scope: TenantScope, error: Exception
) -> None:
    """The preview goes on as the run would, and shows what the other steps do."""
    tea = await add_memory(database, scope, "Ann likes tea")
    steps = (asking("first", SET, error=error), step(name="needy", needs=("first",)), step(importance(tea, 7)))
    found = await ahead(database, scope, *steps)
    assert [result.status for result in found.results] == ["failed", "skipped", "done"]
    assert found.results[0].error["message"] == str(error)  # type: ignore[index]
    assert found.status == "partial"
    assert found.changes["changed"][0]["after"] == {"importance": 7}


async def test_a_step_that_fails_leaves_nothing_in_the_diff(database: Database, scope: TenantScope) -> None:
    """Neither its writes nor its error reach the next step."""
    tea = await add_memory(database, scope, "Ann likes tea")
    broken = step(("UPDATE memory_state SET importance = 99 WHERE tenant_id = :tenant_id", {}), name="broken")
    raising = failing(ValueError("no"), importance(tea, 9), name="raising")
    found = await ahead(database, scope, broken, raising, step(importance(tea, 7), name="last"))
    assert [result.status for result in found.results] == ["failed", "failed", "done"]
    assert [one["steps"] for one in found.changes["changed"]] == [["last"]]


async def test_a_conflict_is_not_a_failed_step(database: Database, scope: TenantScope) -> None:
    """What can pass is raised, so that the preview can be asked for again."""
    await add_memory(database, scope, "Ann likes tea")
    with pytest.raises(TransactionConflict):
        await ahead(database, scope, failing(TransactionConflict("somebody else was here")))


async def test_a_refusal_shows_what_it_refuses(database: Database, scope: TenantScope) -> None:
    """Who is told to look at it with --dry-run sees the memories that would go."""
    memories = [await add_memory(database, scope, f"memory {number}") for number in range(12)]
    before = await state(database, scope)
    found = await ahead(database, scope, step(retire(*memories), guarded=True), step(name="never"))
    assert found.status == "refused"
    assert found.refusal["number"] == 12  # type: ignore[index]
    assert {one["key"]["id"] for one in found.changes["changed"]} == {str(memory) for memory in memories}
    assert await state(database, scope) == before


async def test_parts_that_succeed_stay_in_the_diff(database: Database, scope: TenantScope) -> None:
    """A step that commits part by part keeps in the preview what it would keep in the run."""
    tea = await add_memory(database, scope, "Ann likes tea")

    async def parts(connection: ScopedConnection, context: RunContext) -> Sequence[str]:
        return ["a", "b"]

    async def write_part(connection: ScopedConnection, context: RunContext, part: str) -> StepOutcome:
        sql, values = importance(tea, 6 if part == "a" else 7)
        await connection.execute(sql, **values)
        if part == "b":
            raise ValueError("b is not ready")
        return StepOutcome(changed=1)

    work = step(name="apply", parts=parts, write_part=write_part)
    found = await ahead(database, scope, work)
    assert found.changes["changed"][0]["after"] == {"importance": 6}
    night = await sleep(database, scope, work)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == found.changes


async def test_a_preview_is_kept_as_a_run_of_its_own(database: Database, scope: TenantScope) -> None:
    """Each one is kept, and none of them is in the way of the real run."""
    tea = await add_memory(database, scope, "Ann likes tea")
    run = await begin_run(database, scope, "sleep", NIGHT, dry_run=True)
    context = context_of(database, run)
    found = await preview(database, context, [step(importance(tea, 7))])
    report: dict[str, Any] = {"text": "a \x00 model's \ud800 word", "number": float("nan")}
    kept = {await record_preview(database, context, found, report, requested_by="person") for _ in range(2)}
    assert len(kept) == 2
    stored = await rows(database, scope, "SELECT status, report FROM runs WHERE tenant_id = :tenant_id")
    assert {row["status"] for row in stored} == {"previewed"}
    assert stored[0]["report"]["diff"] == found.changes
    assert (await sleep(database, scope, step(importance(tea, 7)))).run.id == run.id
