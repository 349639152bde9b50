"""Phase 5 over a real database."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput
from memory_core.layers.editing import correct_profile
from memory_core.layers.profile import read_profile
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import advance, close_run
from memory_core.runs.changes import changes_of
from memory_core.runs.checksum import checksum
from memory_core.runs.context import Run, RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.preview import preview
from memory_core.runs.undo import undo_run
from memory_core.scope import TenantScope
from memory_core.sleep.soul_corrections import STEP, UNDONE
from memory_core.sleep.soul_schemas import set_soul_schema
from tests.builders import NIGHT, add_memory, add_scope, ago


async def add_correction(
    database: Database, scope: TenantScope, at: datetime, *, memory_id: UUID | None = None, **what: Any
) -> UUID:
    await add_scope(database, scope)
    correction_id = uuid.uuid4()
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO corrections (tenant_id, scope_path, id, memory_id, who, at, what) "
            "VALUES (:tenant_id, :scope_path, :id, :memory_id, 'Ann', :at, CAST(:what AS jsonb))",
            id=correction_id,
            memory_id=memory_id,
            at=at,
            what=json.dumps(what),
        )
        await connection.commit()
    return correction_id


async def set_schema(database: Database, scope: TenantScope, **types: str) -> None:
    await add_scope(database, scope)
    async with database.scoped(scope) as connection:
        for field, type_name in types.items():
            await connection.execute(
                "INSERT INTO soul_schemas (tenant_id, scope_path, field, type) "
                "VALUES (:tenant_id, :scope_path, :field, :type)",
                field=field,
                type=type_name,
            )
        await connection.commit()


async def sleep_once(
    database: Database, scope: TenantScope, at: datetime = NIGHT, **parameters: Any
) -> tuple[Run, StepOutcome]:
    run = await begin_run(database, scope, "sleep", at, parameters)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    result = await advance(database, context, (STEP,), 0)
    assert result.error is None, result.error
    assert result.outcome is not None
    await close_run(database, context, {})
    return run, result.outcome


async def profile(database: Database, scope: TenantScope) -> dict[str, Any]:
    async with database.scoped(scope) as connection:
        rows = await connection.rows(
            "SELECT field, value, type, previous, source, at, correction_id FROM soul_profiles "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
        )
    return {row["field"]: row for row in rows}


async def outcome_of(database: Database, scope: TenantScope, correction_id: UUID) -> Any:
    async with database.scoped(scope) as connection:
        return await connection.row(
            "SELECT outcome, reasons, consumed_by_run FROM corrections WHERE tenant_id = :tenant_id AND id = :id",
            id=correction_id,
        )


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def test_the_newest_correction_wins_and_says_where_it_came_from(database: Database, scope: TenantScope) -> None:
    """Time order, provenance by field, the former value kept (F26)."""
    newest = await add_correction(database, scope, ago(hours=1), fields={"role": "CEO", "age": 36})
    older = await add_correction(database, scope, ago(hours=2), fields={"role": "CTO"})
    run, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.changed, outcome.counts["soul_updates"]) == (2, 2, 2)
    found = await profile(database, scope)
    role = found["role"]
    assert (role["value"], role["previous"], role["type"]) == ("CEO", "CTO", "str")
    assert (role["source"], role["at"], role["correction_id"]) == ("user-correction", ago(hours=1), newest)
    assert (found["age"]["value"], found["age"]["previous"], found["age"]["type"]) == (36, None, "int")
    done = await outcome_of(database, scope, older)
    assert (done["outcome"], done["reasons"], done["consumed_by_run"]) == ("applied", {"role": "applied"}, run.id)
    assert outcome.details["fields"][1]["value"] == "CEO"


async def test_a_correction_is_consumed_once(database: Database, scope: TenantScope) -> None:
    """It cannot come back and override what the user set later (F27)."""
    await add_correction(database, scope, ago(hours=3), fields={"role": "CTO"})
    await sleep_once(database, scope)
    await add_correction(database, scope, NIGHT + timedelta(hours=1), fields={"role": "CEO"})
    late = await add_correction(database, scope, ago(hours=4), fields={"role": "dev"})
    _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert outcome.candidates == 2
    found = (await profile(database, scope))["role"]
    assert (found["value"], found["previous"]) == ("CEO", "CTO")
    assert (await outcome_of(database, scope, late))["outcome"] == "rejected"
    after = await state(database, scope)
    _, third = await sleep_once(database, scope, NIGHT + timedelta(days=2))
    assert (third.candidates, third.changed, third.reason) == (0, 0, "no new correction")
    assert await state(database, scope) == after
    # An old one that arrives late does not override either.
    later = await add_correction(database, scope, ago(hours=5), fields={"role": "intern"})
    _, fourth = await sleep_once(database, scope, NIGHT + timedelta(days=3))
    assert (fourth.changed, fourth.counts["corrections_rejected"]) == (0, 1)
    assert "older than the present value" in (await outcome_of(database, scope, later))["reasons"]["role"]


async def test_the_schema_of_the_nearest_scope_counts(database: Database, scope: TenantScope) -> None:
    """A scope without a schema of its own uses its ancestor's; rejected fields say why; nothing is emptied."""
    brand = scope.child("brand", "halo")
    await set_schema(database, scope, age="int", city="str")
    first = await add_correction(database, brand, ago(hours=2), fields={"age": "36", "shoe": 44, "city": " "})
    _, outcome = await sleep_once(database, brand)
    assert (outcome.changed, outcome.skipped["rejected, each with its reason"]) == (1, 2)
    assert (await profile(database, brand))["age"]["value"] == 36
    reasons = (await outcome_of(database, brand, first))["reasons"]
    assert "no field 'shoe'" in reasons["shoe"]
    assert "never emptied" in reasons["city"]
    assert await profile(database, scope) == {}

    await set_schema(database, brand, shoe="int")
    second = await add_correction(database, brand, NIGHT, fields={"age": 37, "shoe": 44})
    await sleep_once(database, brand, NIGHT + timedelta(days=1))
    assert (await outcome_of(database, brand, second))["outcome"] == "partly_applied"
    assert (await profile(database, brand))["shoe"]["value"] == 44


async def test_the_runs_schema_stands_for_the_stored_one(database: Database, scope: TenantScope) -> None:
    """`soul_schema` given to a run is used for that run and changes nothing stored."""
    await set_schema(database, scope, city="str")
    await add_correction(database, scope, ago(hours=2), fields={"languages": "English, German", "city": "Porto"})
    _, outcome = await sleep_once(database, scope, soul_schema={"languages": "list"})
    assert outcome.changed == 1
    assert (await profile(database, scope))["languages"]["value"] == ["English", "German"]
    await add_correction(database, scope, ago(hours=1), fields={"city": "Porto"})
    _, stored = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert stored.changed == 1


async def test_a_schema_that_changes_between_nights_judges_what_comes_after(
    database: Database, scope: TenantScope
) -> None:
    """What was applied stays as it was until it is corrected anew; what was rejected is not asked again by itself."""
    await set_schema(database, scope, age="str")
    await add_correction(database, scope, ago(hours=3), fields={"age": "thirty-six"})
    shoe = await add_correction(database, scope, ago(hours=2), fields={"shoe": "44"})
    await sleep_once(database, scope)
    async with database.scoped(scope) as connection:
        await connection.execute("UPDATE soul_schemas SET type = 'int' WHERE tenant_id = :tenant_id")
        await connection.commit()
    await set_schema(database, scope, shoe="int")
    after = await state(database, scope)
    _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (outcome.reason, await state(database, scope)) == ("no new correction", after)
    assert (await outcome_of(database, scope, shoe))["outcome"] == "rejected"
    await add_correction(database, scope, NIGHT + timedelta(days=1), fields={"age": "36", "shoe": "44"})
    await sleep_once(database, scope, NIGHT + timedelta(days=2))
    found = await profile(database, scope)
    assert (found["age"]["value"], found["age"]["type"], found["age"]["previous"]) == (36, "int", "thirty-six")
    assert (found["shoe"]["value"], found["shoe"]["previous"]) == (44, None)


async def test_what_cannot_be_read_is_rejected_and_stops_nothing(database: Database, scope: TenantScope) -> None:
    """Postgres keeps numbers and depths that Python does not read: such a correction is used up with a reason."""
    await add_scope(database, scope)
    async with database.scoped(scope) as connection:
        for what in (
            '{"fields": {"age": ' + "9" * 5_000 + "}}",
            '{"fields": {"age": ' + "[" * 3_000 + "]" * 3_000 + "}}",
        ):
            await connection.execute(
                "INSERT INTO corrections (tenant_id, scope_path, id, who, at, what) "
                "VALUES (:tenant_id, :scope_path, :id, 'Ann', :at, CAST(:what AS jsonb))",
                id=uuid.uuid4(),
                at=ago(hours=2),
                what=what,
            )
        await connection.commit()
    await add_correction(database, scope, ago(hours=1), fields={"age": 36})
    _, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.changed, outcome.counts["corrections_rejected"]) == (3, 1, 2)
    assert (await profile(database, scope))["age"]["value"] == 36


async def test_no_value_that_a_person_gives_breaks_the_night(database: Database, scope: TenantScope) -> None:
    """Every kind of bad value of each type, in one correction: each refused by name, the good one applied."""
    bad: dict[str, Any] = {
        "null": None,
        "blank": " ",
        "invisible": "\u200b",
        "empty list": [],
        "list of nothing": ["", None],
        "nested": {"a": [[[{}]]]},
        "bool": True,
        "huge": 10**30,
        "long": "x" * 20_000,
        "digits": "\u0663\u0664",
        "date": "2026-02-30",
        "unknown": 1,
    }
    types = dict.fromkeys(set(bad) - {"unknown"}, "int")
    await set_schema(
        database, scope, **{**types, "date": "date", "long": "str", "list of nothing": "list", "good": "int"}
    )
    given = await add_correction(database, scope, ago(hours=1), fields={**bad, "good": "7"})
    _, outcome = await sleep_once(database, scope)
    assert set(await profile(database, scope)) == {"good"}
    done = await outcome_of(database, scope, given)
    assert done["outcome"] == "partly_applied"
    assert set(done["reasons"]) == {*bad, "good"}
    assert all(len(reason) < 250 for reason in done["reasons"].values())
    assert outcome.skipped == {"rejected, each with its reason": len(bad)}


async def test_corrections_of_one_instant_and_late_ones(database: Database, scope: TenantScope) -> None:
    """One of the same moment that comes a night later is applied over the first; an earlier one never is."""
    await add_correction(database, scope, ago(hours=2), fields={"role": "CTO"})
    await sleep_once(database, scope)
    await add_correction(database, scope, ago(hours=2), fields={"role": "CEO"})
    await add_correction(database, scope, ago(hours=2, seconds=1), fields={"role": "dev"})
    _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (outcome.candidates, outcome.changed, outcome.counts["corrections_rejected"]) == (2, 1, 1)
    found = (await profile(database, scope))["role"]
    assert (found["value"], found["previous"], found["at"]) == ("CEO", "CTO", ago(hours=2))


async def test_a_bad_schema_of_a_run_is_refused_with_a_hint(database: Database, scope: TenantScope) -> None:
    """What is no mapping, or names an unknown type, fails the step, and the corrections wait on."""
    waiting = await add_correction(database, scope, ago(hours=2), fields={"role": "CTO"})
    for schema in (["role"], {"role": "complex"}, {"role": None}):
        run = await begin_run(database, scope, "sleep", NIGHT, {"soul_schema": schema})
        context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
        result = await advance(database, context, (STEP,), 0)
        await close_run(database, context, {})
        assert result.error is not None
        assert (result.error["error"], bool(result.error["hint"])) == ("InvalidInput", True)
    assert (await outcome_of(database, scope, waiting))["consumed_by_run"] is None


async def test_only_rows_of_the_profile_are_written(database: Database, scope: TenantScope) -> None:
    """A memory that merely looks like a profile stays as it is (F25), and content corrections are only marked done."""
    bakery = await add_memory(database, scope, "The SOULMATE bakery opens at six", label="SOULMATE bakery")
    content = await add_correction(database, scope, ago(hours=2), memory_id=bakery, content="It opens at seven")
    await add_correction(database, scope, ago(hours=1), memory_id=bakery, fields={"role": "CTO"})
    run, outcome = await sleep_once(database, scope)
    assert outcome.sample == (str(bakery),)
    assert (await outcome_of(database, scope, content))["reasons"] == {"content": "content, applied when it was made"}
    async with database.scoped(scope) as connection:
        found = await changes_of(connection, run.id)
    assert {item["table"] for item in found["changed"]} == {"corrections"}
    assert {item["table"] for item in found["created"]} == {"soul_profiles"}


async def test_what_is_not_yet_known_or_no_longer_said(database: Database, scope: TenantScope) -> None:
    """Later corrections wait, another scope's are its own, and one whose memory the user took back is rejected."""
    child = scope.child("brand", "halo")
    await add_correction(database, child, ago(hours=1), fields={"role": "child"})
    await add_correction(database, scope, NIGHT + timedelta(hours=1), fields={"role": "later"})
    unknown = await add_memory(database, scope, "Known only tomorrow", observed_at=NIGHT + timedelta(days=1))
    await add_correction(database, scope, ago(hours=1), memory_id=unknown, fields={"role": "unknown"})
    wrong = await add_memory(
        database, scope, "I am the CFO", retired_at=ago(minutes=5), retired_reason="wrong", source="user"
    )
    taken_back = await add_correction(database, scope, ago(hours=1), memory_id=wrong, fields={"role": "CFO"})
    _, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.changed) == (1, 0)
    assert "taken back: wrong" in (await outcome_of(database, scope, taken_back))["reasons"]["role"]
    assert await profile(database, scope) == {}


async def test_a_preview_equals_the_run_and_undo_is_exact(database: Database, scope: TenantScope) -> None:
    """The dry run shows the same changes; undone corrections wait until they are asked for again."""
    await add_correction(database, scope, ago(days=2), fields={"role": "dev"})
    await sleep_once(database, scope, ago(days=1))
    await add_correction(database, scope, ago(hours=1), fields={"role": "CEO", "city": "Porto"})
    before = await state(database, scope)
    dry = await begin_run(database, scope, "sleep", NIGHT, {}, dry_run=True)
    shown = await preview(database, RunContext(dry, database.settings, embedding_provider("hash:64"), None), (STEP,))
    run, _ = await sleep_once(database, scope)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, run.id) == shown.changes
    assert (await profile(database, scope))["role"]["previous"] == "dev"

    undone = await undo_run(database, scope, run.id, at=NIGHT, decisions=[UNDONE])
    assert undone.refused == ()
    assert await state(database, scope) == before
    _, again = await sleep_once(database, scope)
    assert (again.changed, again.skipped) == (0, {"taken back by a person": 1})
    _, asked = await sleep_once(database, scope, reconsider=True)
    assert asked.changed == 2


async def test_statements_do_not_follow_the_corrections(database: Database, scope: TenantScope) -> None:
    """Two hundred corrections take as many statements as one."""
    statements: list[str] = []
    event.listen(database.app.sync_engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    counted = []
    for night, number in ((0, 1), (1, 200)):
        for index in range(number):
            await add_correction(database, scope, ago(hours=200 - index), fields={f"field {night} {index}": index})
        statements.clear()
        _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=night))
        assert outcome.changed == number
        counted.append(len(statements))
    assert counted[0] == counted[1]


async def test_a_scope_is_given_its_schema(database: Database, scope: TenantScope) -> None:
    """As a whole, checked, each type by its own name; an empty one gives the ancestor's its place again."""
    child = scope.child("chat", "1")
    await set_soul_schema(database, scope, {"city": "string"})
    kept = await set_soul_schema(database, child, {" age ": int, "shoe": "number"})
    assert kept == {"age": "int", "shoe": "float"}
    assert await set_soul_schema(database, child, {"age": "integer"}) == {"age": "int"}
    await add_correction(database, child, ago(hours=2), fields={"age": "36", "shoe": 44})
    await sleep_once(database, child)
    async with database.scoped(child) as connection:
        shown = await read_profile(connection)
    assert shown["schema"] == {"age": "int"}
    assert {name: item["value"] for name, item in shown["fields"].items()} == {"age": 36}
    with pytest.raises(InvalidInput, match="complex"):
        await set_soul_schema(database, child, {"age": "complex"})
    await set_soul_schema(database, child, {})
    async with database.scoped(child) as connection:
        shown = await read_profile(connection)
    assert shown["schema"] == {"city": "str"}
    assert shown["fields"]["age"]["value"] == 36


async def test_a_field_that_json_cannot_hold_is_refused_when_it_is_said(database: Database, scope: TenantScope) -> None:
    """Not a number, too deep, or no JSON at all: an error with a hint, and nothing waits for the night."""
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for value in (float("nan"), deep, object(), 10**200):
        with pytest.raises(InvalidInput, match="A profile field") as refused:
            await correct_profile(database, scope, {"age": value}, who="Ann", at=NIGHT)
        assert refused.value.hint
    async with database.scoped(scope) as connection:
        assert await connection.scalar("SELECT count(*) FROM corrections WHERE tenant_id = :tenant_id") == 0
