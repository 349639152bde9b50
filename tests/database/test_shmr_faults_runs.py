"""Faults of runs that repeat, die, meet or are overtaken (F20, F21, F24, F34 to F38, F54), each in its right form."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from memory_core import harmonize as harmonize_scope
from memory_core import recall, recall_beliefs
from memory_core.database.engine import Database
from memory_core.errors import ScopeBusy
from memory_core.layers.editing import correct
from memory_core.layers.retiring import retract
from memory_core.models.embedding import embedding_provider
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.runs.advance import advance
from memory_core.runs.ledger import begin_run
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.steps import SHMR_STEPS
from tests.builders import NIGHT, ago
from tests.by_name import ByName
from tests.openai_server import Behaviour, OpenAIServer, RecordedRequest, slow
from tests.scripted_model import DAMPEN, UPDATE, Scripted, homes, items, many_homes
from tests.shmr_runs import beliefs, context_of, harmonize, rows, state, superseded, undo, waiting

CREATE = {"confidence": 0.7}


class Killed(BaseException):
    """The process has gone."""


async def confidences(database: Database, scope: TenantScope) -> list[float]:
    """Every memory's confidence, lowest first."""
    found = await rows(database, scope, "SELECT confidence FROM memory_state ORDER BY confidence")
    return [round(row["confidence"], 6) for row in found]


async def knowledge(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """Every memory, its state and every belief, without who looked at them."""
    return [
        row
        for table in ("memories", "memory_state", "harmonic_beliefs", "belief_evidence")
        for row in await rows(database, scope, f"SELECT to_jsonb(t) AS row FROM {table} t ORDER BY to_jsonb(t)")
    ]


async def test_eight_nights_are_as_one(database: Database, scope: TenantScope) -> None:
    """F20: the same answer to the same data changes rows in the first of eight nights and none in the others."""
    await homes(database, scope)
    model = Scripted(items(DAMPEN, CREATE))
    await harmonize(database, scope, ago(days=1), language=model)
    first, sure = await knowledge(database, scope), await confidences(database, scope)
    assert sure == [0.55, 0.7]
    for night in range(1, 8):
        async with database.scoped(scope) as connection:
            # As if somebody had put them back: the decision on the same contents stands all the same.
            await connection.execute("UPDATE harmonize_queue SET harmonized_by_run = NULL")
            await connection.commit()
        run = await harmonize(database, scope, ago(days=1) + timedelta(hours=night), language=model)
        assert run.summary["status"] == "nothing_changed"
    assert (await knowledge(database, scope), len(model.requests)) == (first, 1)
    assert (await confidences(database, scope), len(await beliefs(database, scope))) == (sure, 1)
    logged = await rows(database, scope, "SELECT status FROM memory_resonance_log ORDER BY as_of")
    assert [row["status"] for row in logged] == ["harmonized"] + ["nothing_changed"] * 7


async def test_twice_at_the_same_moment_is_once(database: Database, scope: TenantScope) -> None:
    """F21: two runs of one and the same time, the second of which finds nothing left to do."""
    await homes(database, scope)
    model = Scripted(items(DAMPEN, CREATE))
    await harmonize(database, scope, language=model)
    after = await state(database, scope)
    await harmonize(database, scope, language=model)
    assert (await state(database, scope), len(model.requests)) == (after, 1)
    assert await confidences(database, scope) == [0.55, 0.7]


async def test_others_write_while_a_model_thinks(database: Database, scope: TenantScope) -> None:
    """F24: during the call no transaction is open, and another connection changes the same memories without waiting."""
    await homes(database, scope)
    engine = create_engine(database.url)
    seen: list[Any] = []

    async def meanwhile() -> None:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            connection.execute(text("UPDATE slowwave.memory_state SET importance = 6"))
            connection.execute(text("UPDATE slowwave.memories SET updated_at = now()"))
            seen.append(
                connection.execute(
                    text(
                        "SELECT query FROM pg_stat_activity WHERE datname = current_database() "
                        "AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
                    )
                ).all()
            )

    run = await harmonize(database, scope, language=Scripted(items(UPDATE), before=meanwhile))
    engine.dispose()
    assert seen == [[]]
    assert run.summary["status"] == "harmonized"


async def test_a_run_killed_between_two_calls_goes_on(database: Database, scope: TenantScope) -> None:
    """F34: killed in the second of three calls, it is known as running; resumed, it pays for two and ends the same."""
    await many_homes(database, scope, 3)

    class Dying(ByName):
        async def complete(self, request: ModelRequest) -> ModelAnswer:
            if self.requests:
                raise Killed
            return await super().complete(request)

    one_by_one = {"settings": {"shmr": {"clusters_at_once": 1}}}
    with pytest.raises(Killed):
        await harmonize(database, scope, language=Dying({}), **one_by_one)
    assert [row["status"] for row in await rows(database, scope, "SELECT status FROM runs")] == ["running"]
    assert await superseded(database, scope) == {}
    model = ByName({})
    run = await harmonize(database, scope, language=model, **one_by_one)
    assert (run.run.resumed, len(model.requests)) == (True, 2)
    assert run.summary["clusters"] == {"applied": 3}
    resumed = {row["content"]: row["confidence"] for row in await beliefs(database, scope)}
    undone = await undo(database, scope, run.run)
    assert undone.refused == ()
    again = await harmonize(database, scope, language=ByName({}), reconsider=True, **one_by_one)
    assert again.summary["clusters"] == {"applied": 3}
    assert {row["content"]: row["confidence"] for row in await beliefs(database, scope)} == resumed


@pytest.mark.parametrize("killed_after", ["cluster", "harmonize", "score"])
async def test_what_a_dead_run_had_taken_waits_again(database: Database, scope: TenantScope, killed_after: str) -> None:
    """F54: a run that died with memories in hand is no end for them: the next night's run takes them up by itself."""
    old, new = await homes(database, scope)
    run = await begin_run(database, scope, "harmonize", ago(days=1), {})
    context = context_of(run, database.settings)
    for position, step in enumerate(SHMR_STEPS):
        await advance(database, context, SHMR_STEPS, position)
        if step.name == killed_after:
            break
    assert await waiting(database, scope) == set()
    following = await harmonize(database, scope)
    assert following.summary["status"] == "harmonized", following.summary
    assert await superseded(database, scope) == {old: (new, "update")}


async def test_the_clusters_of_a_dead_run_are_closed(database: Database, scope: TenantScope) -> None:
    """F54: they count as failed with the reason, once; it is said how many wait again, and both runs can be undone."""
    ids = await homes(database, scope)
    run = await begin_run(database, scope, "harmonize", ago(days=1), {})
    context = context_of(run, database.settings)
    for position in range(3):
        await advance(database, context, SHMR_STEPS, position)
    following = await harmonize(database, scope)
    assert following.outcome("collect")["counts"]["reclaimed"] == 2
    (closed,) = await rows(
        database, scope, "SELECT status, reason FROM memory_resonance_clusters WHERE run_id = :id", id=run.id
    )
    assert (closed["status"], closed["reason"]) == ("failed", "its run ended before it was finished")
    again = await harmonize(database, scope, NIGHT + timedelta(hours=1))
    assert again.outcome("collect")["counts"]["reclaimed"] == 0
    assert (await undo(database, scope, following.run)).refused == ()
    assert (await undo(database, scope, run)).refused == ()
    assert (await waiting(database, scope), await superseded(database, scope)) == (set(ids), {})


@pytest.mark.parametrize("moment", [timedelta(0), timedelta(seconds=2)], ids=["same time", "two seconds later"])
async def test_of_two_runs_at_once_one_has_an_effect(settings: Settings, scope: TenantScope, moment: timedelta) -> None:
    """F36: while one waits for its model the other is told that the scope is busy; one dampening, one belief."""
    asked = threading.Event()

    def think(_: RecordedRequest) -> Behaviour:
        asked.set()
        return slow(1.0, items(DAMPEN, CREATE))

    with OpenAIServer(otherwise=think) as server:
        asking = {"model": "openai/test", "model_api_base": server.url, "model_api_key": "k"}
        with_model = settings.model_copy(update=asking)
        async with Database.open(with_model) as one, Database.open(with_model) as other:
            await homes(one, scope)

            async def second() -> dict[str, Any]:
                assert await asyncio.to_thread(asked.wait, 20)
                return await harmonize_scope(other, scope, as_of=NIGHT + moment)

            first, refused = await asyncio.gather(
                harmonize_scope(one, scope, as_of=NIGHT), second(), return_exceptions=True
            )
            assert isinstance(first, dict)
            assert first["status"] == "harmonized"
            assert isinstance(refused, ScopeBusy)
            assert (await harmonize_scope(other, scope, as_of=NIGHT + moment))["status"] == "nothing_changed"
            assert await confidences(one, scope) == [0.55, 0.7]
            assert len(await beliefs(one, scope)) == 1
        assert len(server.posts()) == 1


async def test_what_a_person_says_meanwhile_is_what_holds(database: Database, scope: TenantScope) -> None:
    """F37: one source is retracted and the other corrected during the call: nothing of the answer is carried out."""
    old, new = await homes(database, scope)
    provider = embedding_provider("hash:64")

    async def person() -> None:
        await retract(database, scope, old, "wrong", who="Ann", at=NIGHT)
        await correct(database, scope, provider, new, content="Ann lives in Turku", who="Ann", at=NIGHT)

    run = await harmonize(database, scope, language=Scripted(items(UPDATE, CREATE), before=person))
    assert run.summary["clusters"] == {"changed_meanwhile": 1}
    assert await beliefs(database, scope) == []
    current = await rows(
        database,
        scope,
        "SELECT m.content, s.confidence FROM memories m JOIN memory_state s ON s.memory_id = m.id "
        "WHERE m.retired_at IS NULL AND m.superseded_reason IS NULL",
    )
    assert [(row["content"], row["confidence"] >= 0.95) for row in current] == [("Ann lives in Turku", True)]
    assert {reason for _, reason in (await superseded(database, scope)).values()} == {"correction"}


async def test_what_is_forgotten_is_forgotten_in_beliefs(database: Database, scope: TenantScope) -> None:
    """F38: a belief whose only support is retracted is neither held, recalled nor said; with one left it is."""
    _, new = await homes(database, scope)
    await harmonize(database, scope)
    (held,) = await beliefs(database, scope)
    assert held["status"] == "held"
    assert [each["id"] for each in await recall_beliefs(database, scope, "Ann lives in Bergen")] == [
        str(held["belief_id"])
    ]
    await retract(database, scope, new, "outdated", who="Ann", at=NIGHT)
    assert [row["status"] for row in await beliefs(database, scope)] == ["stale"]
    assert await recall_beliefs(database, scope, "Ann lives in Bergen") == []
    found = await recall(database, scope, "Ann lives in Bergen", record=False)
    assert [each for each in found["results"] if "Bergen" in each["content"]] == []


async def test_a_failure_inside_applying_leaves_nothing_of_it(database: Database, scope: TenantScope) -> None:
    """F35: where the database refuses the belief, the dampening before it is gone too, and the memories wait."""
    ids = await homes(database, scope)
    engine = create_engine(database.url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE slowwave.harmonic_beliefs ADD CHECK (content <> 'Ann lives in Bergen')"))
    engine.dispose()
    run = await harmonize(database, scope, language=Scripted(items(DAMPEN, CREATE)))
    assert run.summary["clusters"] == {"failed": 1}
    assert await confidences(database, scope) == [0.7, 0.7]
    assert await beliefs(database, scope) == []
    assert await rows(database, scope, "SELECT 1 FROM decisions") == []
    assert await waiting(database, scope) == set(ids)
