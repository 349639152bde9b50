"""Restore: what a person brings back is recalled again, stays for good, and beliefs follow at the next night."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, NotFound
from memory_core.layers import editing
from memory_core.layers.records import NewMemory
from memory_core.models.embedding import embedding_provider
from memory_core.retrieval.search import recall
from memory_core.scope import TenantScope
from memory_core.sleep.prune_orphans import STEP
from tests.builders import NIGHT, add_memory, ago
from tests.nights import Night, change, rows, sleep, undo
from tests.shmr_runs import beliefs, harmonize

PROVIDER = embedding_provider("hash:64")
MORNING = NIGHT + timedelta(hours=5)
NOISE = "The printer on the second floor hums"


@pytest.fixture
async def noise(database: Database, scope: TenantScope) -> uuid.UUID:
    """A stale memory that nothing protects, in a scope that is in use."""
    await add_memory(database, scope, "The fact in use", importance=9, observed_at=ago(days=60), access_at=(ago(),))
    return await add_noise(database, scope, NOISE)


async def add_noise(database: Database, scope: TenantScope, content: str, **fields: Any) -> uuid.UUID:
    """A memory that the next night prunes."""
    (vector,) = (await PROVIDER.embed([content])).tolist()
    memory_id = await add_memory(
        database, scope, content, importance=2, observed_at=ago(days=60), vector=vector, **fields
    )
    await change(
        database,
        scope,
        "UPDATE memory_state SET first_night = :at WHERE memory_id = :id",
        at=ago(days=60),
        id=memory_id,
    )
    return memory_id


async def pruned(database: Database, scope: TenantScope, memory_id: uuid.UUID, **parameters: Any) -> Night:
    """The night that prunes it."""
    night = await sleep(database, scope, STEP, **parameters)
    assert str(memory_id) in night.outcome.sample
    return night


async def recalled(database: Database, scope: TenantScope, query: str) -> list[str]:
    """What default recall finds."""
    found = await recall(database, scope, PROVIDER, query, now=MORNING, record=False)
    return [result["content"] for result in found["results"]]


async def test_a_pruned_memory_is_recalled_again_and_no_night_prunes_it(
    database: Database, scope: TenantScope, noise: uuid.UUID
) -> None:
    """A restore is a person's word: also weeks later, and in a night as of before it, the memory stays."""
    await pruned(database, scope, noise)
    assert NOISE not in await recalled(database, scope, NOISE)
    done = await editing.restore(database, scope, noise, who="ann", at=MORNING)
    assert (done["status"], done["reason"], done["beliefs_held"], done["gave_way"]) == ("current", "", [], [])
    assert done["was_retired"].startswith("noise: not used for 60 days")
    assert NOISE in await recalled(database, scope, NOISE)
    again = await sleep(database, scope, STEP)
    assert (again.outcome.changed, again.outcome.skipped) == (0, {"taken back by a person": 1})
    soon = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1))
    assert soon.outcome.skipped == {"active or first seen in the last 7 days": 1}
    late = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=90))
    assert late.outcome.skipped == {"taken back by a person": 1}
    asked = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=91), reconsider=True)
    assert asked.outcome.changed == 1


async def test_a_restored_text_that_changes_may_be_pruned_again(
    database: Database, scope: TenantScope, noise: uuid.UUID
) -> None:
    """The person's word was about that content; another content is judged by itself."""
    await pruned(database, scope, noise)
    await editing.restore(database, scope, noise, who="ann", at=MORNING)
    await change(database, scope, "UPDATE memories SET content_hash = 'another' WHERE id = :id", id=noise)
    assert (await sleep(database, scope, STEP, at=NIGHT + timedelta(days=90))).outcome.changed == 1


async def test_a_run_of_which_one_memory_was_restored_can_be_undone(
    database: Database, scope: TenantScope, noise: uuid.UUID
) -> None:
    """The undo finds that one as it was before, refuses nothing, and both stay from then on."""
    await add_noise(database, scope, "The lift creaks")
    night = await pruned(database, scope, noise)
    await editing.restore(database, scope, noise, who="ann", at=MORNING)
    assert (await undo(database, scope, night, STEP)).refused == ()
    later = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=90))
    assert later.outcome.skipped == {"taken back by a person": 2}
    done = await editing.restore_run(database, scope, night.run.id, who="ann", at=MORNING)
    assert (done["status"], done["not_restored"]) == ("nothing to restore", {"brought back before": 2})


async def test_a_belief_comes_back_with_its_evidence(database: Database, scope: TenantScope) -> None:
    """What went stale for want of the memory is held again at once, and the next SHMR leaves it so."""
    triple: dict[str, Any] = {"subject": "Ann", "predicate": "lives_in", "object": "Bergen"}
    facts = []
    for content, days, source in (("Ann lives in Bergen", 2, "chat"), ("Ann lives in Bergen.", 1, "mail")):
        (vector,) = (await PROVIDER.embed([content])).tolist()
        facts.append(
            await add_memory(
                database, scope, content, observed_at=ago(days=days), source=source, vector=vector, **triple
            )
        )
    await harmonize(database, scope)
    (belief,) = await beliefs(database, scope)
    assert belief["status"] == "held"
    (loser,) = await rows(database, scope, "SELECT id, superseded_by FROM memories WHERE superseded_by IS NOT NULL")
    standing = loser["superseded_by"]
    await editing.retract(database, scope, standing, "outdated", who="ann", at=MORNING)
    (belief,) = await beliefs(database, scope)
    assert belief["status"] == "stale"
    await harmonize(database, scope, NIGHT + timedelta(days=1))
    done = await editing.restore(database, scope, standing, who="ann", at=NIGHT + timedelta(days=1, hours=5))
    assert (done["beliefs_held"], done["beliefs_waiting"]) == ([str(belief["belief_id"])], [])
    await harmonize(database, scope, NIGHT + timedelta(days=2))
    (again,) = await beliefs(database, scope)
    assert (again["status"], again["valid_to"], again["confidence"]) == ("held", None, belief["confidence"])


@pytest.mark.parametrize("meanwhile", ["another is believed", "two sides", "its other half is gone"])
async def test_a_belief_that_is_not_only_short_of_it_waits(
    database: Database, scope: TenantScope, meanwhile: str
) -> None:
    """Believed otherwise by now, contested, or resting on what is gone all the same: stale still, and that is said."""
    gone: dict[str, Any] = {"retired_at": ago(days=1), "retired_reason": "outdated"}
    memory, other = await add_memory(database, scope, "One", **gone), await add_memory(database, scope, "Other")
    expired = await add_memory(database, scope, "Expired", expires_at=ago(hours=1), **gone)
    roles = {memory: "supports", **({other: "contradicts"} if meanwhile == "two sides" else {})}
    if meanwhile == "its other half is gone":
        roles, memory = {expired: "supports"}, expired
    stale = await believe(database, scope, "Ann", "stale", roles)
    await believe(database, scope, "ann" if meanwhile == "another is believed" else "Bo", "held", {other: "supports"})
    done = await editing.restore(database, scope, memory, who="ann", at=MORNING)
    assert (done["beliefs_held"], done["beliefs_waiting"]) == ([], [str(stale)])
    assert done["waiting_for"] == "the next harmonize or nightly run decides on them"
    (row,) = await rows(database, scope, "SELECT status FROM harmonic_beliefs WHERE belief_id = :id", id=stale)
    assert row["status"] == "stale"


async def test_a_version_restored_is_the_newest_of_its_source_again(database: Database, scope: TenantScope) -> None:
    """Taking "wrong" back puts both versions where they were, and the next import replaces the right one."""
    versions = []
    for content, day in (("The limit is 30", 1), ("The limit is 50", 2)):
        item = NewMemory.read({"content": content, "external_id": "limit", "observed_at": f"2026-02-0{day}T00:00:00Z"})
        versions.append(await editing.remember(database, scope, PROVIDER, item, now=NIGHT))
    newest = versions[-1]
    wrong = await editing.retract(database, scope, "limit", "wrong", who="ann", at=NIGHT)
    assert len(wrong["revived"]) == 1
    done = await editing.restore(database, scope, uuid.UUID(newest["id"]), who="ann", at=MORNING)
    assert done["gave_way"] == wrong["revived"]
    found = await rows(
        database, scope, "SELECT content, is_latest, superseded_by, superseded_reason FROM memories ORDER BY content"
    )
    assert [dict(row) for row in found] == [
        {
            "content": "The limit is 30",
            "is_latest": False,
            "superseded_by": uuid.UUID(newest["id"]),
            "superseded_reason": "update",
        },
        {"content": "The limit is 50", "is_latest": True, "superseded_by": None, "superseded_reason": None},
    ]
    item = NewMemory.read({"content": "The limit is 60", "external_id": "limit"})
    third = await editing.remember(database, scope, PROVIDER, item, now=MORNING + timedelta(hours=1))
    assert third["supersedes"] == newest["id"]


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"superseded_reason": "update", "superseded_at": ago(days=1)}, "superseded", "retract what replaced it"),
        ({"expires_at": ago(hours=1)}, "expired", "its own time is over"),
    ],
)
async def test_what_is_out_of_recall_for_another_reason_says_so(
    database: Database, scope: TenantScope, fields: dict[str, Any], status: str, reason: str
) -> None:
    """Not retired any more and yet not recalled: the status is the true one, and the reason says what to do."""
    if "superseded_reason" in fields:
        fields = {**fields, "superseded_by": await add_memory(database, scope, "The winner")}
    memory = await add_memory(
        database, scope, "Both retired and more", retired_at=ago(days=1), retired_reason="outdated", **fields
    )
    done = await editing.restore(database, scope, memory, who="ann", at=MORNING)
    assert done["status"] == status
    assert reason in done["reason"]


async def test_what_cannot_be_restored_is_said(database: Database, scope: TenantScope) -> None:
    """Current, superseded, a summary, erased, unknown, an ancestor's and a sibling's: each has its own message."""
    child, sibling = scope.child("chat", "1"), scope.child("chat", "2")
    current = await add_memory(database, child, "Current")
    old = await add_memory(
        database, child, "Old", superseded_by=current, superseded_reason="update", superseded_at=ago(days=1)
    )
    gone: dict[str, Any] = {"retired_at": ago(days=1), "retired_reason": "wrong"}
    summary = await add_memory(database, child, "Summary", derived_key="meta:X", **gone)
    above = await add_memory(database, scope, "House rule", **gone)
    beside = await add_memory(database, sibling, "Secret", **gone)
    cases: list[tuple[uuid.UUID | str, type[Exception], str]] = [
        (current, InvalidInput, "not retired"),
        (old, InvalidInput, r"not retired but superseded \(update\).*Retract what replaced it"),
        (summary, InvalidInput, "a summary that a phase made"),
        (above, NotFound, "belongs to tenant=acme"),
        (beside, NotFound, "There is no memory"),
        (uuid.uuid4(), NotFound, "There is no memory"),
        ("no such name", NotFound, "There is no memory"),
    ]
    for name, kind, message in cases:
        with pytest.raises(kind, match=message):
            await editing.restore(database, child, name, who="ann", at=MORNING)
    assert (
        await rows(
            database,
            child,
            "SELECT memory_id FROM harmonize_queue WHERE tenant_id = :tenant_id AND reason = 'restored'",
        )
        == []
    )


async def test_a_run_is_restored_as_far_as_it_can_be(database: Database, scope: TenantScope, noise: uuid.UUID) -> None:
    """All that it retired comes back for good; what could not, and why, is counted and named."""
    more = {
        name: await add_noise(database, scope, name)
        for name in ("brought back", "again", "superseded", "expired", "erased")
    }
    night = await pruned(database, scope, noise, accept=True)
    assert night.outcome.changed == 6
    await editing.restore(database, scope, more["brought back"], who="ann", at=MORNING)
    await editing.restore(database, scope, more["again"], who="ann", at=MORNING)
    await editing.retract(database, scope, more["again"], "wrong", who="ann", at=MORNING)
    await change(
        database,
        scope,
        "UPDATE memories SET superseded_by = :by, superseded_reason = 'duplicate', superseded_at = :at WHERE id = :id",
        id=more["superseded"],
        by=noise,
        at=NIGHT,
    )
    await change(database, scope, "UPDATE memories SET expires_at = :at WHERE id = :id", id=more["expired"], at=MORNING)
    await erase(database, scope, more["erased"])
    done = await editing.restore_run(database, scope, night.run.id, who="ann", at=MORNING)
    assert done["status"] == "partly restored"
    assert set(done["restored"]) == {str(noise), str(more["superseded"]), str(more["expired"])}
    assert done["not_restored"] == {
        "brought back before": 1,
        "erased": 1,
        "no longer retired, but expired": 1,
        "no longer retired, but superseded": 1,
        "retired again since, for another reason": 1,
    }
    assert {item["id"] for item in done["left"]} == {
        str(more[name]) for name in ("again", "superseded", "expired", "erased")
    }
    json.dumps(done)
    later = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=90))
    assert later.outcome.skipped == {"others gave way to it": 1, "taken back by a person": 1}
    again = await editing.restore_run(database, scope, night.run.id, who="ann", at=MORNING)
    assert (again["restored"], again["status"]) == ([], "nothing to restore")


async def test_a_run_that_retired_nothing_says_so(database: Database, scope: TenantScope, noise: uuid.UUID) -> None:
    """With how the run ended; a run of another scope is not there at all."""
    await editing.pin(database, scope, noise)
    night = await sleep(database, scope, STEP)
    done = await editing.restore_run(database, scope, night.run.id, who="ann", at=MORNING)
    assert (done["status"], done["reason"]) == ("nothing to restore", "the run was applied, and retired nothing")
    for other in (scope.child("chat", "1"), TenantScope.root("tenant", "other")):
        with pytest.raises(NotFound, match="There is no run"):
            await editing.restore_run(database, other, night.run.id, who="ann", at=MORNING)


async def test_statements_do_not_follow_the_memories(database: Database, scope: TenantScope, noise: uuid.UUID) -> None:
    """A run of forty is restored in as many statements as one of one."""
    from sqlalchemy import event

    async def counted(night: Night) -> int:
        seen: list[object] = []
        listen = lambda *given: seen.append(given[2])  # noqa: E731
        event.listen(database.app.sync_engine, "before_cursor_execute", listen)
        done = await editing.restore_run(database, scope, night.run.id, who="ann", at=MORNING)
        event.remove(database.app.sync_engine, "before_cursor_execute", listen)
        assert len(done["restored"]) == night.outcome.changed
        return len(seen)

    first = await counted(await pruned(database, scope, noise))
    for number in range(40):
        await add_noise(database, scope, f"noise {number}")
    night = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1), accept=True)
    assert night.outcome.changed == 40
    assert await counted(night) == first


async def believe(
    database: Database, scope: TenantScope, subject: str, status: str, roles: dict[uuid.UUID, str]
) -> uuid.UUID:
    """A belief about where somebody lives, with its evidence."""
    belief_id = uuid.uuid4()
    await change(
        database,
        scope,
        "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, status, "
        "valid_from, cluster_id, model, rules_version, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, :subject, 'lives_in', 'o', 'c', :status, :at, 'c', 'rules', '1', :at)",
        id=belief_id,
        subject=subject,
        status=status,
        at=ago(days=2),
    )
    for memory_id, role in roles.items():
        await change(
            database,
            scope,
            "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
            "VALUES (:tenant_id, :id, :memory, :role, :scope_path)",
            id=belief_id,
            memory=memory_id,
            role=role,
        )
    return belief_id


async def erase(database: Database, scope: TenantScope, memory_id: uuid.UUID) -> None:
    """Take a memory away with all that hangs on it, as the right to be forgotten does."""
    for table in ("harmonize_queue", "memory_embeddings", "memory_accesses", "memory_state"):
        await change(database, scope, f"DELETE FROM {table} WHERE memory_id = :id", id=memory_id)
    await change(database, scope, "DELETE FROM memories WHERE id = :id", id=memory_id)
