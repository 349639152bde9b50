"""SHMR by rules over the database, from the queue to beliefs and back."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from sqlalchemy import make_url

from memory_core.database.engine import Database
from memory_core.errors import TransientError
from memory_core.models.embedding import embedding_provider
from memory_core.runs.changes import changes_of
from memory_core.runs.context import Step
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import preview
from memory_core.scope import TenantScope
from memory_core.shmr.steps import SHMR_STEPS
from tests.builders import NIGHT, add_access, add_memory, add_scope, ago
from tests.conftest import clone, drop
from tests.shmr_runs import beliefs, context_of, harmonize, roles, rows, state, superseded, undo, waiting


async def add_fact(database: Database, scope: TenantScope, *triple: str, **fields: Any) -> uuid.UUID:
    """Add one memory with a triple; its content is the triple."""
    subject, predicate, object = triple
    content = fields.pop("content", f"{subject} {predicate.replace('_', ' ')} {object}")
    return await add_memory(database, scope, content, subject=subject, predicate=predicate, object=object, **fields)


async def moved(database: Database, scope: TenantScope) -> dict[str, uuid.UUID]:
    """Ann moved from Oslo to Bergen; her address was noted twice, and so was an unrelated fact once."""
    return {
        "old": await add_fact(database, scope, "Ann", "lives_in", "Oslo", observed_at=ago(days=20), confidence=0.6),
        "new": await add_fact(database, scope, "Ann", "lives_in", "Bergen", observed_at=ago(days=2), confidence=0.8),
        "again": await add_fact(
            database, scope, "Ann", "lives_in", "Bergen", observed_at=ago(days=1), confidence=0.9, source="mail"
        ),
        "other": await add_fact(database, scope, "The mill", "makes", "paper", observed_at=ago(days=3)),
    }


async def test_an_update_is_decided_and_explained(database: Database, scope: TenantScope) -> None:
    """The old value gives way, the duplicate supports the new one, and the belief names both with their roles."""
    ids = await moved(database, scope)
    run = await harmonize(database, scope)
    assert run.status == "applied", run.rows
    assert await superseded(database, scope) == {
        ids["old"]: (ids["new"], "update"),
        ids["again"]: (ids["new"], "duplicate"),
    }
    (belief,) = await beliefs(database, scope)
    assert (belief["status"], belief["object"], belief["confidence"]) == ("held", "Bergen", 0.9)
    assert belief["iteration"] == 1
    assert {uuid.UUID(each) for each in belief["provenance"]} == {ids["new"], ids["again"]}
    assert await roles(database, scope, belief["belief_id"]) == {
        ids["new"]: "supports",
        ids["again"]: "supports",
        ids["old"]: "superseded",
    }
    assert run.summary["status"] == "harmonized"
    assert (run.summary["clusters_found"], run.summary["beliefs_generated"]) == (1, 1)
    assert (run.summary["contradictions_resolved"], run.summary["duplicates"]) == (1, 1)
    assert run.summary["superseded"][0]["because"].startswith("stated later")
    (vector,) = await rows(database, scope, "SELECT dimension FROM belief_embeddings")
    assert vector["dimension"] == 64
    (logged,) = await rows(database, scope, "SELECT * FROM memory_resonance_log")
    assert (logged["status"], logged["model"], logged["cluster_count"]) == ("harmonized", "rules", 1)


async def test_a_second_run_changes_nothing(database: Database, scope: TenantScope) -> None:
    """Ten more runs on unchanged data leave every row as it is, confidence included (F20, F21)."""
    await moved(database, scope)
    await harmonize(database, scope)
    after = await state(database, scope)
    for _ in range(3):
        again = await harmonize(database, scope)
        assert await state(database, scope) == after
        assert again.summary["status"] == "nothing_changed"
        assert again.summary["reason"] == "nothing new since the last run"


async def test_undo_restores_and_is_remembered(database: Database, scope: TenantScope) -> None:
    """Undo gives back the checksum; the same is not done again by itself, also not beside a new memory."""
    ids = await moved(database, scope)
    before = await state(database, scope)
    run = await harmonize(database, scope)
    undone = await undo(database, scope, run.run)
    assert undone.refused == ()
    assert await state(database, scope) == before
    assert await waiting(database, scope) == set(ids.values())

    again = await harmonize(database, scope)
    assert await superseded(database, scope) == {}
    assert await beliefs(database, scope) == []
    assert again.outcome("cluster")["skipped"] == {"taken back by a person": 1}

    third = await add_fact(
        database, scope, "Ann", "lives_in", "Bergen", content="Ann moved into a flat in Bergen", source="phone"
    )
    await harmonize(database, scope)
    assert await superseded(database, scope) == {third: (ids["new"], "duplicate")}
    assert await beliefs(database, scope) == []

    await harmonize(database, scope, reconsider=True)
    assert set(await superseded(database, scope)) == {ids["old"], ids["again"], third}
    assert [belief["status"] for belief in await beliefs(database, scope)] == ["held"]


async def test_a_preview_equals_the_run(database: Database, scope: TenantScope) -> None:
    """A dry run changes nothing, and its diff is the diff of the real run."""
    await moved(database, scope)
    before = await state(database, scope)
    run = await begin_run(database, scope, "harmonize", NIGHT, {}, dry_run=True)
    found = await preview(database, context_of(run, database.settings), SHMR_STEPS)
    assert {result.status for result in found.results} == {"done"}
    assert await state(database, scope) == before
    assert await rows(database, scope, "SELECT 1 FROM memory_resonance_clusters") == []
    real = await harmonize(database, scope)
    assert real.run.id == run.id
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, run.id) == found.changes


async def test_an_undecidable_conflict_is_contested(database: Database, scope: TenantScope) -> None:
    """Both sides stay current; the belief has both and is no surer than the weaker one."""
    left = await add_fact(
        database, scope, "The valve", "located_in", "hall A", observed_at=ago(days=1), source="a", confidence=0.9
    )
    right = await add_fact(
        database, scope, "The valve", "located_in", "hall B", observed_at=ago(days=1), source="b", confidence=0.5
    )
    await harmonize(database, scope)
    assert await superseded(database, scope) == {}
    (belief,) = await beliefs(database, scope)
    assert (belief["status"], belief["confidence"]) == ("contested", 0.5)
    assert set((await roles(database, scope, belief["belief_id"])).values()) == {"supports", "contradicts"}

    newer = await add_fact(database, scope, "The valve", "located_in", "hall C", observed_at=ago(hours=2), source="a")
    await harmonize(database, scope)
    assert await superseded(database, scope) == {left: (newer, "update"), right: (newer, "update")}
    by_status = {belief["status"]: belief for belief in await beliefs(database, scope)}
    assert set(by_status) == {"held", "superseded"}
    assert by_status["superseded"]["superseded_by_belief"] == by_status["held"]["belief_id"]


async def test_a_value_that_comes_back_is_held_again(database: Database, scope: TenantScope) -> None:
    """Oslo, Bergen, Oslo: the belief about Oslo is held again, the one about Bergen superseded; nothing is stale."""
    for day, place in ((30, "Oslo"), (20, "Bergen")):
        await add_fact(database, scope, "Ann", "lives_in", place, observed_at=ago(days=day))
    await harmonize(database, scope, ago(days=15))
    await add_fact(database, scope, "Ann", "lives_in", "Oslo", observed_at=ago(days=10))
    await harmonize(database, scope, ago(days=5))
    held = {belief["object"]: belief["status"] for belief in await beliefs(database, scope)}
    assert held == {"Oslo": "held", "Bergen": "superseded"}
    assert (await harmonize(database, scope)).summary["status"] == "nothing_changed"


async def test_what_persons_set_is_protected(database: Database, scope: TenantScope) -> None:
    """Pinned memories never give way to a plain statement, confirmed ones not to what was said before that."""
    pinned = await add_fact(database, scope, "Ann", "lives_in", "Oslo", observed_at=ago(days=20), pinned=True)
    confirmed = await add_fact(database, scope, "Bo", "lives_in", "Rome", observed_at=ago(days=20))
    await add_access(database, scope, confirmed, ago(days=1), kind="confirm")
    await add_fact(database, scope, "Ann", "lives_in", "Bergen", observed_at=ago(days=2))
    await add_fact(database, scope, "Bo", "lives_in", "Bari", observed_at=ago(days=2))
    await harmonize(database, scope)
    assert not {pinned, confirmed} & set(await superseded(database, scope))
    assert {belief["status"] for belief in await beliefs(database, scope)} == {"contested"}


async def test_what_is_said_after_a_confirmation_may_replace_it(database: Database, scope: TenantScope) -> None:
    """To confirm says that it holds now, not that it will hold for ever."""
    old = await add_fact(database, scope, "Bo", "lives_in", "Rome", observed_at=ago(days=20))
    await add_access(database, scope, old, ago(days=10), kind="confirm")
    new = await add_fact(database, scope, "Bo", "lives_in", "Bari", observed_at=ago(days=2))
    await harmonize(database, scope)
    assert await superseded(database, scope) == {old: (new, "update")}


async def test_only_what_holds_here_is_looked_at(database: Database, scope: TenantScope) -> None:
    """Retired, expired, superseded, foreign, later, and derived rows and short episodes never take part (F43, F44)."""
    current = await add_fact(database, scope, "Ann", "lives_in", "Bergen", observed_at=ago(days=2))
    winner = await add_memory(database, scope, "A winner of something else entirely")
    old = {"observed_at": ago(days=20)}
    await add_fact(database, scope, "Ann", "lives_in", "Oslo", retired_at=ago(days=5), retired_reason="x", **old)
    await add_fact(database, scope, "Ann", "lives_in", "Rome", expires_at=ago(days=5), **old)
    await add_fact(database, scope, "Ann", "lives_in", "Bari", superseded_by=winner, superseded_reason="update", **old)
    await add_fact(database, scope, "Ann", "lives_in", "Nice", derived_key="meta:x", **old)
    await add_fact(database, scope, "Ann", "lives_in", "Lima", layer="working", **old)
    later = await add_fact(database, scope, "Ann", "lives_in", "Cork", observed_at=NIGHT + (NIGHT - ago(days=1)))
    await add_memory(database, scope, "Oslo", layer="episodic")
    sibling = TenantScope.root("tenant", "acme").child("brand", "other")
    await add_fact(database, sibling, "Ann", "lives_in", "Oslo", **old)
    stranger = TenantScope.root("tenant", "zeta")
    await add_fact(database, stranger, "Ann", "lives_in", "Oslo", **old)
    run = await harmonize(database, scope)
    assert await beliefs(database, scope) == []
    assert run.outcome("cluster")["candidates"] == 2
    assert current not in await superseded(database, scope)
    assert await waiting(database, scope) == {later}
    assert run.summary["status"] == "nothing_changed"


async def test_an_ancestor_is_evidence_and_never_changed(database: Database, scope: TenantScope) -> None:
    """A parent's statement supports a child's belief and keeps its row, its confidence and its scope."""
    child = scope.child("brand", "halo")
    await add_scope(database, child)
    shared = await add_fact(database, scope, "Returns", "due_on", "30 days", observed_at=ago(days=9), source="policy")
    own = await add_fact(database, child, "Returns", "due_on", "30 days", observed_at=ago(days=3), source="chat")
    parent = await state(database, scope)
    await harmonize(database, child)
    assert await state(database, scope) == parent
    assert await superseded(database, child) == {}
    (belief,) = await beliefs(database, child)
    assert await roles(database, child, belief["belief_id"]) == {shared: "supports", own: "supports"}


async def test_too_few_candidates_say_so(database: Database, scope: TenantScope) -> None:
    """One memory alone is not enough, and that is the status."""
    await add_memory(database, scope, "Ann likes green tea")
    run = await harmonize(database, scope)
    assert run.summary["status"] == "insufficient_candidates"
    assert run.outcome("collect")["reason"] == "insufficient candidates: 1, and 2 are needed"
    assert len(await rows(database, scope, "SELECT 1 FROM memory_resonance_log")) == 1


async def test_an_explicit_batch_bounds_a_run_oldest_first(database: Database, scope: TenantScope) -> None:
    """With batch_size the oldest are looked at, the rest later, and none waits for ever (F42)."""
    added = [
        await add_fact(database, scope, f"Room {i}", "painted_in", "white", observed_at=ago(days=30 - i))
        for i in range(7)
    ]
    batch = {"settings": {"shmr": {"batch_size": 3}}}
    for left in (4, 1, 0):
        await harmonize(database, scope, **batch)
        assert await waiting(database, scope) == set(added[7 - left :])


class _Failing:
    model, dimension, network = "hash:64", 64, True

    async def embed(self, texts: Any) -> Any:
        raise TransientError("The service is down.")


async def test_without_vectors_everything_waits(database: Database, scope: TenantScope) -> None:
    """A failing provider never fails the run: it is the reason given, and the next night does the work (F4)."""
    ids = await moved(database, scope)
    run = await harmonize(database, scope, embedding=_Failing())
    assert run.status == "applied"
    assert run.summary["status"] == "embedding_unavailable"
    assert "embedding unavailable: The service is down." in run.summary["reason"]
    assert await waiting(database, scope) == set(ids.values())
    assert (await harmonize(database, scope)).summary["status"] == "harmonized"


class _Wider(_Failing):
    dimension = 32

    async def embed(self, texts: Any) -> Any:
        import numpy as np

        return np.eye(32, dtype=np.float32)[[len(text) % 32 for text in texts]]


async def test_a_vector_of_another_dimension_is_refused(database: Database, scope: TenantScope) -> None:
    """Vectors of one model name and two dimensions are never mixed."""
    await add_memory(database, scope, "Ann likes green tea")
    await harmonize(database, scope)
    await add_memory(database, scope, "Bo likes black coffee")
    run = await harmonize(database, scope, embedding=_Wider())
    assert run.outcome("embed")["changed"] == 0
    assert "gave vectors of 32 dimensions, and those stored have 64" in run.outcome("embed")["reason"]


async def test_a_run_that_hides_too_much_is_refused_whole(database: Database, scope: TenantScope) -> None:
    """More than half of the scope: nothing is applied, the run says why, and accepted it passes."""
    for i in range(15):
        for day in (3, 2, 1):
            await add_fact(database, scope, f"Room {i}", "located_in", f"wing {day}", observed_at=ago(days=day))
    before = await state(database, scope)
    run = await harmonize(database, scope)
    assert run.status == "refused"
    assert "30 of 45" in run.rows["apply"]["outcome"]["error"]["message"]
    assert await state(database, scope) == before
    accepted = await harmonize(database, scope, accept=True)
    assert (accepted.status, len(await superseded(database, scope))) == ("applied", 30)


async def test_a_source_that_changed_meanwhile_drops_the_cluster(database: Database, scope: TenantScope) -> None:
    """What changed between the decision and its application is left alone and waits again (F37)."""
    from memory_core.runs.advance import advance, close_run

    ids = await moved(database, scope)
    run = await begin_run(database, scope, "harmonize", NIGHT, {})
    context = context_of(run, database.settings)
    for position in range(len(SHMR_STEPS)):
        if SHMR_STEPS[position].name == "apply":
            async with database.scoped(scope) as connection:
                await connection.execute(
                    "UPDATE memories SET observed_at = :at WHERE id = :id", at=ago(days=19), id=ids["old"]
                )
                await connection.commit()
        result = await advance(database, context, SHMR_STEPS, position)
        assert result.status == "done", result
    await close_run(database, context, {})
    assert await superseded(database, scope) == {}
    assert await beliefs(database, scope) == []
    assert await waiting(database, scope) == {ids["old"], ids["new"], ids["again"]}
    (logged,) = await rows(database, scope, "SELECT status FROM memory_resonance_log")
    assert logged["status"] == "partial"
    assert (await harmonize(database, scope)).summary["status"] == "harmonized"


async def test_a_step_that_fails_leaves_nothing_consumed(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When harmonize fails for good, the clusters are closed as failed and their members wait again."""
    from tests import shmr_runs

    ids = await moved(database, scope)

    async def broken(*_: object) -> Any:
        raise ValueError("broken")

    steps = tuple(
        Step(step.name, step.write, step.read, broken, needs=step.needs) if step.name == "harmonize" else step
        for step in SHMR_STEPS
    )
    monkeypatch.setattr(shmr_runs, "SHMR_STEPS", steps)
    run = await harmonize(database, scope)
    assert (run.status, run.summary["status"]) == ("partial", "failed")
    assert "harmonize failed: broken" in run.summary["reason"]
    assert await waiting(database, scope) == {ids["old"], ids["new"], ids["again"]}


async def test_a_killed_run_goes_on_to_the_same_end(server: Any, settings: Any, scope: TenantScope) -> None:
    """Killed at any statement, the resumed run ends with the checksum of an undisturbed one (F34)."""
    from memory_core.database.scoped import ScopedConnection

    class Killed(BaseException):
        pass

    source = make_url(settings.database_url).database
    async with Database.open(settings) as prepared:
        await moved(prepared, scope)
        for i in range(3):
            await add_fact(prepared, scope, f"Room {i}", "located_in", "wing A", observed_at=ago(days=4))
            await add_fact(prepared, scope, f"Room {i}", "located_in", "wing B", observed_at=ago(days=3))

    async def ended(name: str, kill_at: int | None) -> tuple[str, int]:
        clone(server, name, template=source)
        copy = settings.model_copy(update={"database_url": server.url(name)})
        counted = 0
        original = ScopedConnection.execute

        async def counting(self: Any, sql: str, **parameters: Any) -> Any:
            nonlocal counted
            counted += 1
            if counted == kill_at:
                raise Killed
            return await original(self, sql, **parameters)

        try:
            async with Database.open(copy) as opened:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(ScopedConnection, "execute", counting)
                    if kill_at is None:
                        run = await harmonize(opened, scope)
                    else:
                        with pytest.raises(Killed):
                            await harmonize(opened, scope)
                if kill_at is not None:
                    run = await harmonize(opened, scope)
                assert run.summary["status"] == "harmonized", run.summary
                return await state(opened, scope), counted
        finally:
            drop(server, name)

    undisturbed, statements = await ended("kill_none", None)
    for kill_at in range(2, statements, max(1, statements // 25)):
        assert (await ended(f"kill_{kill_at}", kill_at))[0] == undisturbed, kill_at


async def test_a_run_is_undone_after_the_embedding_model_changed(database: Database, scope: TenantScope) -> None:
    """Vectors that a later run gave a belief or a memory do not keep an earlier run from being undone."""
    ids = await moved(database, scope)
    run = await harmonize(database, scope)
    await harmonize(database, scope, embedding=embedding_provider("hash:128"))
    models = await rows(database, scope, "SELECT model FROM belief_embeddings ORDER BY model")
    assert [row["model"] for row in models] == ["hash:128", "hash:64"]
    await undo(database, scope, run.run)
    assert await superseded(database, scope) == {}
    assert await waiting(database, scope) == set(ids.values())
