"""What a person does: remember, correct, pin, retract, restore, settle a contested belief, correct the profile."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime, NotFound
from memory_core.layers import editing
from memory_core.layers.profile import read_profile
from memory_core.layers.records import NewMemory
from memory_core.layers.triples import edited_object
from memory_core.models.embedding import embedding_provider
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_edge, add_memory, ago

PROVIDER = embedding_provider("hash:64")
LEEDS = {"subject": "Ann", "predicate": "lives_in", "object": "Leeds"}


async def rows(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> list[dict[str, Any]]:
    async with database.scoped(scope) as connection:
        return [dict(row) for row in await connection.rows(sql, **parameters)]


async def one(database: Database, scope: TenantScope, memory_id: uuid.UUID | str) -> dict[str, Any]:
    [row] = await rows(
        database,
        scope,
        "SELECT m.*, s.importance, s.confidence, q.harmonized_by_run, q.reason AS queued FROM memories m "
        "JOIN memory_state s ON s.memory_id = m.id LEFT JOIN harmonize_queue q ON q.memory_id = m.id "
        "WHERE m.id = CAST(:id AS uuid)",
        id=memory_id,
    )
    return row


async def execute(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> None:
    async with database.scoped(scope) as connection:
        await connection.execute(sql, **parameters)
        await connection.commit()


async def believe(
    database: Database, scope: TenantScope, status: str, evidence: dict[str, list[uuid.UUID]]
) -> uuid.UUID:
    belief = uuid.uuid4()
    await execute(
        database,
        scope,
        "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, status, "
        "valid_from, cluster_id, model, rules_version, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, 's', 'p', 'o', 'c', :status, :at, 'k', 'rules', '1', :at)",
        id=belief,
        status=status,
        at=ago(days=1),
    )
    for role, ids in evidence.items():
        for memory_id in ids:
            await execute(
                database,
                scope,
                "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
                "VALUES (:tenant_id, :belief, :memory, :role, :scope_path)",
                belief=belief,
                memory=memory_id,
                role=role,
            )
    return belief


async def belief_status(database: Database, scope: TenantScope, belief: uuid.UUID) -> str:
    [row] = await rows(database, scope, "SELECT status FROM harmonic_beliefs WHERE belief_id = :id", id=belief)
    return str(row["status"])


async def test_remember_says_what_became_of_it(database: Database, scope: TenantScope) -> None:
    """A new memory with its vector; the same again at the same time is known; a lost reference is said."""
    item = NewMemory.read({"content": "Ann likes tea", "edges": [{"to": "nobody", "relationship": "KNOWS"}]})
    first = await editing.remember(database, scope, PROVIDER, item, now=NIGHT)
    assert (first["status"], first["vector_problem"]) == ("inserted", "")
    assert first["unresolved"][0]["reason"] == "no memory has the external id 'nobody'"
    assert (await editing.remember(database, scope, PROVIDER, item, now=NIGHT))["status"] == "unchanged"
    later = await editing.remember(database, scope, PROVIDER, item, now=ago(hours=-1))
    assert later["status"] == "inserted"  # said again on another occasion: SHMR finds the duplicate
    json.dumps(first)
    vectors = await rows(database, scope, "SELECT memory_id FROM memory_embeddings")
    assert len(vectors) == 2


async def test_a_correction_supersedes_and_keeps_what_belongs_to_it(database: Database, scope: TenantScope) -> None:
    """New row, old one superseded as a correction; label, layer, importance, pin, edges stay; the triple follows."""
    old = await add_memory(
        database,
        scope,
        "Ann lives in Leeds now",
        importance=8,
        confidence=0.5,
        label="PERSON: Ann",
        pinned=True,
        properties={"room": 4, "soul": {"field": "city", "value": "Leeds"}, "mood": "dry"},
        **LEEDS,
    )
    friend = await add_memory(database, scope, "Bob is a friend")
    await add_edge(database, scope, friend, old, "FRIEND_OF")
    belief = await believe(database, scope, "held", {"supports": [old]})

    done = await editing.correct(
        database,
        scope,
        PROVIDER,
        old,
        content="Ann lives in Porto now",
        properties={"mood": None, "floor": 2},
        who="ann",
        at=NIGHT,
    )
    assert (done["object"], done["triple"], done["corrects"]) == ("Porto", "followed the sentence", str(old))
    before, after = await one(database, scope, old), await one(database, scope, done["id"])
    assert (before["superseded_reason"], before["superseded_by"], before["superseded_at"]) == (
        "correction",
        after["id"],
        NIGHT,
    )
    assert (after["corrects"], after["label"], after["importance"], after["pinned"]) == (old, "PERSON: Ann", 8, True)
    assert (after["confidence"], after["source"], after["recorded_at"]) == (0.95, "user", NIGHT)
    assert after["properties"] == {"room": 4, "floor": 2, "corrected_by": "ann"}
    assert after["harmonized_by_run"] is None
    assert await belief_status(database, scope, belief) == "stale"
    edges = await rows(database, scope, "SELECT target_id FROM memory_edges WHERE source_id = :id", id=friend)
    assert {row["target_id"] for row in edges} == {old, after["id"]}
    aspects = await rows(database, scope, "SELECT aspect FROM memory_embeddings WHERE memory_id = :id", id=after["id"])
    assert {row["aspect"] for row in aspects} == {"content", "slot"}
    [kept] = await rows(database, scope, "SELECT who, what FROM corrections")
    assert kept == {"who": "ann", "what": {"content": "Ann lives in Porto now"}}


async def test_correcting_the_old_text_again_corrects_what_stands(database: Database, scope: TenantScope) -> None:
    """The name of a corrected memory leads to its correction, also by external id."""
    old = await add_memory(database, scope, "Ann lives in Leeds", external_id="home", **LEEDS)
    first = await editing.correct(database, scope, PROVIDER, "home", content="Ann lives in Porto", who="u", at=NIGHT)
    second = await editing.correct(
        database, scope, PROVIDER, "home", content="Ann moved to Faro, by the sea", who="u", at=ago(hours=-1)
    )
    assert second["corrects"] == first["id"]
    assert second["subject"] is None
    assert second["triple"].startswith("dropped")
    assert (await one(database, scope, old))["superseded_by"] == uuid.UUID(first["id"])
    with pytest.raises(InvalidInput, match="says that already"):
        await editing.correct(
            database, scope, PROVIDER, old, content=" Ann moved to Faro, by the sea ", who="u", at=ago(hours=-2)
        )
    current = await rows(database, scope, "SELECT content FROM memories WHERE superseded_reason IS NULL")
    assert [row["content"] for row in current] == ["Ann moved to Faro, by the sea"]


@pytest.mark.parametrize(
    ("content", "object", "edited", "expected"),
    [
        ("Ann lives in Leeds", "Leeds", "Ann lives in Porto", "Porto"),
        ("Ann lives in Leeds now", "Leeds", "Ann lives in New York now", "New York"),
        ("Ann lives in Leeds", "Leeds", "Ann never lived in Leeds", None),
        ("Leeds is in Leeds", "Leeds", "Leeds is in Porto", None),
        ("Ann lives in Leeds now", "Leeds", "Ann lives in now", None),
        ("Ann lives there", "Leeds", "Ann lives here", None),
        ("aXa", "X", "a", None),
    ],
)
def test_the_object_follows_only_a_plain_edit(content: str, object: str, edited: str, expected: str | None) -> None:
    """A triple is never guessed: more than the object edited means no triple."""
    assert edited_object(content, object, edited) == expected


async def test_pin_and_unpin_say_whether_they_changed_something(database: Database, scope: TenantScope) -> None:
    """Twice is once, and says so."""
    memory_id = await add_memory(database, scope, "Ann likes tea")
    assert (await editing.pin(database, scope, memory_id))["changed"]
    again = await editing.pin(database, scope, memory_id)
    assert (again["changed"], again["reason"]) == (False, "it was pinned already")
    assert (await one(database, scope, memory_id))["pinned"]
    assert (await editing.unpin(database, scope, memory_id))["changed"]
    assert not (await one(database, scope, memory_id))["pinned"]


async def test_a_wrong_memory_gives_back_what_it_replaced(database: Database, scope: TenantScope) -> None:
    """Retracting as wrong revives the older version, which is the newest of its external id again."""
    for content, day in (("The limit is 30", 1), ("The limit is 50", 2)):
        item = NewMemory.read({"content": content, "external_id": "limit", "observed_at": f"2026-02-0{day}T00:00:00Z"})
        await editing.remember(database, scope, PROVIDER, item, now=NIGHT)
    done = await editing.retract(database, scope, "limit", "wrong", who="ann", at=NIGHT)
    assert len(done["revived"]) == 1
    old = await one(database, scope, done["revived"][0])
    assert (old["content"], old["is_latest"], old["superseded_reason"]) == ("The limit is 30", True, None)
    new = await one(database, scope, done["id"])
    assert (new["retired_at"], new["retired_reason"], new["is_latest"]) == (NIGHT, "wrong", False)
    assert new["properties"] == {"retracted_by": "ann"}
    # The source sends a third text: it replaces the version that stands.
    item = NewMemory.read({"content": "The limit is 60", "external_id": "limit"})
    third = await editing.remember(database, scope, PROVIDER, item, now=ago(hours=-1))
    assert third["supersedes"] == done["revived"][0]


async def test_an_outdated_memory_gives_nothing_back(database: Database, scope: TenantScope) -> None:
    """Outdated was right once: what it replaced stays replaced, beliefs go stale, reminders are called off."""
    item = NewMemory.read(
        {"content": "Pay the rent", "layer": "prospective", "properties": {"due_at": "2026-03-02T12:00:00Z"}}
    )
    memory = uuid.UUID((await editing.remember(database, scope, PROVIDER, item, now=ago(days=1)))["id"])
    older = await add_memory(
        database, scope, "Pay", superseded_by=memory, superseded_reason="update", superseded_at=ago(days=1)
    )
    belief = await believe(database, scope, "held", {"supports": [memory]})
    done = await editing.retract(database, scope, memory, "outdated", who="ann", at=NIGHT)
    assert (done["revived"], done["beliefs_changed"]) == ([], 1)
    assert (await one(database, scope, older))["superseded_reason"] == "update"
    assert await belief_status(database, scope, belief) == "stale"
    assert await rows(database, scope, "SELECT state FROM triggers") == [{"state": "cancelled"}]
    with pytest.raises(InvalidInput, match="retired already"):
        await editing.retract(database, scope, memory, "wrong", who="ann", at=NIGHT)

    restored = await editing.restore(database, scope, memory, who="ann", at=ago(hours=-1))
    assert (restored["status"], restored["was_retired"]) == ("current", "outdated")
    row = await one(database, scope, memory)
    assert (row["retired_at"], row["last_activity_at"]) == (None, ago(hours=-1))
    assert "retracted_by" not in row["properties"]
    assert await rows(database, scope, "SELECT state FROM triggers") == [{"state": "pending"}]
    with pytest.raises(InvalidInput, match="not retired"):
        await editing.restore(database, scope, memory, who="ann", at=NIGHT)


async def test_restore_brings_back_what_one_run_retired(database: Database, scope: TenantScope) -> None:
    """Only that run's, they wait for SHMR again; a second time there is nothing left, and that is said."""
    run, other = uuid.uuid4(), uuid.uuid4()
    retired = {"retired_at": ago(hours=1), "retired_reason": "stale"}
    memories = [
        await add_memory(database, scope, f"memory {n}", retired_by_run=by, **retired)
        for n, by in enumerate((run, run, other))
    ]
    await execute(database, scope, "UPDATE harmonize_queue SET harmonized_by_run = :run", run=run)
    await execute(
        database,
        scope,
        "INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters_hash) "
        "VALUES (:tenant_id, :run, :scope_path, 'sleep', :at, 'applied', 0, '')",
        run=run,
        at=ago(hours=1),
    )
    done = await editing.restore_run(database, scope, run, who="ann", at=NIGHT)
    assert set(done["restored"]) == {str(memories[0]), str(memories[1])}
    row = await one(database, scope, memories[0])
    assert (row["retired_by_run"], row["queued"], row["harmonized_by_run"]) == (None, "restored", None)
    assert (await one(database, scope, memories[2]))["retired_by_run"] == other
    again = await editing.restore_run(database, scope, run, who="ann", at=NIGHT)
    assert (again["restored"], again["status"]) == ([], "nothing to restore")
    with pytest.raises(NotFound):
        await editing.restore_run(database, scope, uuid.uuid4(), who="ann", at=NIGHT)


async def test_a_person_settles_a_contested_belief(database: Database, scope: TenantScope) -> None:
    """The winner counts as confirmed, those that say otherwise are superseded, what agrees stays."""
    facts = {
        name: await add_memory(database, scope, f"Ann lives in {name}", **{**LEEDS, "object": name.split()[0]})
        for name in ("Leeds", "Porto", "Porto, I think", "Faro")
    }
    facts["Porto again"] = facts.pop("Porto, I think")
    await execute(database, scope, "UPDATE memories SET object = 'Porto' WHERE id = :id", id=facts["Porto again"])
    belief = await believe(
        database,
        scope,
        "contested",
        {"supports": [facts["Leeds"]], "contradicts": [facts["Porto"], facts["Porto again"], facts["Faro"]]},
    )
    done = await editing.resolve_belief(database, scope, belief, facts["Porto"], who="ann", at=NIGHT)
    assert set(done["superseded"]) == {str(facts["Leeds"]), str(facts["Faro"])}
    loser = await one(database, scope, facts["Faro"])
    assert (loser["superseded_by"], loser["superseded_reason"]) == (facts["Porto"], "correction")
    assert (await one(database, scope, facts["Porto again"]))["superseded_reason"] is None
    assert await belief_status(database, scope, belief) == "superseded"
    [access] = await rows(database, scope, "SELECT memory_id, kind, at FROM memory_accesses")
    assert access == {"memory_id": facts["Porto"], "kind": "confirm", "at": NIGHT}
    with pytest.raises(InvalidInput, match="not contested"):
        await editing.resolve_belief(database, scope, belief, facts["Porto"], who="ann", at=NIGHT)


async def test_only_current_evidence_can_win(database: Database, scope: TenantScope) -> None:
    """A stranger or a retired memory is refused, and nothing changes."""
    stranger = await add_memory(database, scope, "Bob likes jam")
    first, second = await add_memory(database, scope, "Ann is up"), await add_memory(database, scope, "Ann is down")
    belief = await believe(database, scope, "contested", {"supports": [first], "contradicts": [second]})
    with pytest.raises(InvalidInput, match="not current evidence"):
        await editing.resolve_belief(database, scope, belief, stranger, who="ann", at=NIGHT)
    assert await belief_status(database, scope, belief) == "contested"


async def test_the_profile_inherits_and_shows_what_waits(database: Database, scope: TenantScope) -> None:
    """The nearest value wins; a correction waits for the next sleep, and the profile says so."""
    child = scope.child("chat", "1")
    for owner, field, value in ((scope, "tone", "dry"), (scope, "city", "Leeds"), (child, "city", "Porto")):
        await add_memory(database, owner, f"{owner} {field}")
        await execute(
            database,
            owner,
            "INSERT INTO soul_profiles (tenant_id, scope_path, field, value, type, source, at) "
            "VALUES (:tenant_id, :scope_path, :field, CAST(:value AS jsonb), 'str', 'user-correction', :at)",
            field=field,
            value=json.dumps(value),
            at=ago(days=1),
        )
    done = await editing.correct_profile(database, child, {" units ": "metric"}, who="ann", at=NIGHT)
    assert (done["status"], done["fields"]) == ("waiting", {"units": "metric"})
    async with database.scoped(child) as connection:
        found = await read_profile(connection)
    assert {name: (item["value"], item["inherited"]) for name, item in found["fields"].items()} == {
        "city": ("Porto", False),
        "tone": ("dry", True),
    }
    assert found["waiting"] == [{"at": NIGHT.isoformat(), "who": "ann", "fields": {"units": "metric"}}]
    for fields in ({}, {" ": 1}, {"units": None}):
        with pytest.raises(InvalidInput):
            await editing.correct_profile(database, child, fields, who="ann", at=NIGHT)


async def test_other_scopes_memories_are_out_of_reach(database: Database, scope: TenantScope) -> None:
    """An ancestor's memory can be read and never edited; a sibling's is not even there."""
    above = await add_memory(database, scope, "House rule", external_id="rule")
    child, sibling = scope.child("chat", "1"), scope.child("chat", "2")
    beside = await add_memory(database, sibling, "Secret")
    for name, reason in ((above, "belongs to tenant=acme"), ("rule", "belongs to"), (beside, "no memory")):
        for attempt in (
            editing.pin(database, child, name),
            editing.retract(database, child, name, "wrong", who="u", at=NIGHT),
            editing.restore(database, child, name, who="u", at=NIGHT),
            editing.correct(database, child, PROVIDER, name, content="x", who="u", at=NIGHT),
        ):
            with pytest.raises(NotFound, match=reason):
                await attempt
    assert (await one(database, scope, above))["superseded_reason"] is None


async def test_a_naive_time_is_refused(database: Database, scope: TenantScope) -> None:
    """Every edit is dated in UTC, or not made (F55)."""
    memory_id = await add_memory(database, scope, "Ann likes tea")
    naive = datetime(2026, 3, 1)  # noqa: DTZ001
    for attempt in (
        editing.retract(database, scope, memory_id, "wrong", who="u", at=naive),
        editing.correct(database, scope, PROVIDER, memory_id, content="x", who="u", at=naive),
        editing.correct_profile(database, scope, {"a": 1}, who="u", at=naive),
        editing.remember(database, scope, PROVIDER, NewMemory.read({"content": "x"}), now=naive),
    ):
        with pytest.raises(InvalidTime):
            await attempt
