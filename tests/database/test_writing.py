"""Writing memories: what is new, what is a new version, what is known, and what comes with each."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from memory_core.database.engine import Database
from memory_core.errors import EmbeddingMismatch, InvalidScope
from memory_core.layers.records import NewMemory
from memory_core.layers.references import ResolvedReferences, resolve_references
from memory_core.layers.vectors import TextVectors
from memory_core.layers.writing import WriteResult, write_memories
from memory_core.models.embedding import embedding_provider
from memory_core.runs.checksum import checksum
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, ago

DAY = datetime(2026, 2, 1, 9, tzinfo=UTC)


def memory(content: str, **fields: Any) -> NewMemory:
    return NewMemory.read({"content": content, **fields})


async def write(
    database: Database, scope: TenantScope, memories: Sequence[NewMemory], *, now: datetime = NIGHT
) -> tuple[WriteResult, ResolvedReferences]:
    provider = embedding_provider("hash:64")
    texts = [text for item in memories for text in (item.content, item.slot_text) if text]
    vectors = TextVectors("hash:64", dict(zip(texts, await provider.embed(texts), strict=True)))
    async with database.scoped(scope) as connection:
        result = await write_memories(connection, memories, now=now, vectors=vectors)
        resolved = await resolve_references(connection, result.references)
        await connection.commit()
    return result, resolved


async def rows(database: Database, scope: TenantScope, sql: str, **parameters: Any) -> list[dict[str, Any]]:
    async with database.scoped(scope) as connection:
        return [dict(row) for row in await connection.rows(sql, **parameters)]


async def test_every_field_is_kept(database: Database, scope: TenantScope) -> None:
    """What is written comes back as it was given, vectors to the last bit."""
    given = memory(
        "Cafe\u0301 \x00 closes at six",
        label="PLACE: café",
        subject="café",
        predicate="closes_at",
        object="six",
        importance=8,
        confidence=0.9,
        observed_at="2026-02-01T10:00:00+01:00",
        recorded_at="2026-02-02T09:00:00Z",
        expires_at="2026-04-01T00:00:00Z",
        source="user",
        properties={"mood": "dr\x00y", "n": 1.5},
        external_id=7,
        pinned=True,
        accesses=[{"kind": "confirm", "at": "2026-02-03T00:00:00Z"}],
    )
    result, _ = await write(database, scope, [given])
    [row] = await rows(
        database,
        scope,
        "SELECT m.*, s.importance, s.confidence FROM memories m JOIN memory_state s ON s.memory_id = m.id",
    )
    assert (row["content"], row["label"]) == ("Café  closes at six", "PLACE: café")
    assert (row["subject"], row["predicate"], row["object"]) == ("café", "closes_at", "six")
    assert (row["importance"], row["confidence"], row["pinned"], row["source"]) == (8, 0.9, True, "user")
    assert (row["observed_at"], row["recorded_at"]) == (DAY, datetime(2026, 2, 2, 9, tzinfo=UTC))
    assert (row["last_activity_at"], row["expires_at"].month) == (datetime(2026, 2, 3, tzinfo=UTC), 4)
    assert (row["properties"], row["external_id"], row["is_latest"]) == ({"mood": "dry", "n": 1.5}, "7", True)
    assert row["id"] == result.writes[0].id
    assert row["id"].version == 7
    stored = await rows(database, scope, "SELECT aspect, dimension, embedding FROM memory_embeddings ORDER BY aspect")
    expected = await embedding_provider("hash:64").embed(["Café  closes at six", "café closes_at"])
    assert [row["aspect"] for row in stored] == ["content", "slot"]
    for row, vector in zip(stored, expected, strict=True):
        text = row["embedding"] if isinstance(row["embedding"], str) else str(list(row["embedding"]))
        assert np.array_equal(np.array(text.strip("[]").split(","), dtype=np.float32), vector)


async def test_the_same_again_changes_nothing(database: Database, scope: TenantScope) -> None:
    """Dated, undated, with and without external id: the second write adds no row and changes none (F40, F58)."""
    memories = [
        memory("Ann likes tea", external_id="a", observed_at="2026-02-01T00:00:00Z"),
        memory("Ann likes jam", observed_at="2026-02-01T00:00:00Z"),
        memory("Ann likes rain"),
        memory("Ann likes snow", external_id="s", edges=[{"to": "a", "relationship": "ALSO"}]),
        memory("Ann likes hail", external_id="h", corrects="a"),
    ]
    first, resolved = await write(database, scope, memories)
    assert [item.outcome for item in first.writes] == ["inserted"] * 5
    # The correction takes over the corrected memory's edge as well.
    assert (resolved.edges, resolved.corrections, resolved.unresolved) == (1, 1, ())
    async with database.scoped(scope) as connection:
        before = await checksum(connection)
    second, resolved = await write(database, scope, memories, now=ago(hours=-5))
    assert [item.outcome for item in second.writes] == ["unchanged"] * 5
    assert [item.id for item in second.writes] == [item.id for item in first.writes]
    assert (resolved.edges, resolved.corrections) == (0, 0)
    async with database.scoped(scope) as connection:
        assert await checksum(connection) == before


async def test_the_same_dated_memory_has_the_same_id_in_another_store(database: Database, scope: TenantScope) -> None:
    """Ids come from what is said, where and when; another scope gives another id."""
    item = memory("Ann likes tea", external_id="a", observed_at="2026-02-01T00:00:00Z")
    result, _ = await write(database, scope, [item])
    sibling, _ = await write(database, scope.child("chat", "1"), [item])
    assert sibling.writes[0].id != result.writes[0].id
    assert int(str(result.writes[0].id).replace("-", "")[:12], 16) == int(item.observed_at.timestamp() * 1000)


async def test_changed_text_is_a_new_version(database: Database, scope: TenantScope) -> None:
    """The old row stays, superseded; what nights and people gave it goes on: importance, pin, edges."""
    old, _ = await write(
        database,
        scope,
        [
            memory("The limit is 30", external_id="limit", observed_at="2026-02-01T00:00:00Z", importance=4),
            memory("About the limit", external_id="about", edges=[{"to": "limit", "relationship": "ABOUT"}]),
        ],
    )
    old_id = old.writes[0].id
    async with database.scoped(scope) as connection:
        await connection.execute("UPDATE memory_state SET importance = 9 WHERE memory_id = :id", id=old_id)
        await connection.execute("UPDATE memories SET pinned = true WHERE id = :id", id=old_id)
        await connection.commit()
    new, _ = await write(
        database, scope, [memory("The limit is 50", external_id="limit", observed_at="2026-02-03T00:00:00Z")]
    )
    assert new.writes[0].outcome == "new_version"
    versions = await rows(
        database,
        scope,
        "SELECT m.*, s.importance FROM memories m JOIN memory_state s ON s.memory_id = m.id "
        "WHERE external_id = 'limit' ORDER BY recorded_at",
    )
    assert [row["is_latest"] for row in versions] == [False, True]
    assert (versions[0]["superseded_by"], versions[0]["superseded_reason"]) == (new.writes[0].id, "update")
    assert versions[0]["superseded_at"] == datetime(2026, 2, 3, tzinfo=UTC)
    assert (versions[1]["importance"], versions[1]["pinned"]) == (9, True)
    edges = await rows(database, scope, "SELECT target_id FROM memory_edges WHERE relationship = 'ABOUT'")
    assert {row["target_id"] for row in edges} == {old_id, new.writes[0].id}


async def test_an_old_file_does_not_bring_an_old_version_back(database: Database, scope: TenantScope) -> None:
    """A text that is an earlier version already is known, and said so; a later return to it is a new version."""
    first = memory("The limit is 30", external_id="limit", observed_at="2026-02-01T00:00:00Z")
    second = memory("The limit is 50", external_id="limit", observed_at="2026-02-03T00:00:00Z")
    await write(database, scope, [first, second])
    again, _ = await write(database, scope, [first])
    assert again.writes[0].outcome == "earlier_version"
    undated, _ = await write(database, scope, [memory("The limit is 30", external_id="limit")])
    assert undated.writes[0].outcome == "earlier_version"
    back, _ = await write(
        database, scope, [memory("The limit is 30", external_id="limit", observed_at="2026-02-09T00:00:00Z")]
    )
    assert back.writes[0].outcome == "new_version"
    current = await rows(
        database, scope, "SELECT content FROM memories WHERE external_id = 'limit' AND superseded_reason IS NULL"
    )
    assert [row["content"] for row in current] == ["The limit is 30"]


async def test_versions_within_one_batch_form_a_chain(database: Database, scope: TenantScope) -> None:
    """Three texts of one id in one batch give one current row, whatever the store held before."""
    await write(database, scope, [memory("v0", external_id="x", observed_at="2026-01-01T00:00:00Z")])
    result, _ = await write(
        database,
        scope,
        [memory(f"v{n}", external_id="x", observed_at=f"2026-02-0{n}T00:00:00Z") for n in (1, 2, 3)],
    )
    assert [item.outcome for item in result.writes] == ["new_version"] * 3
    chain = await rows(
        database,
        scope,
        "SELECT o.content, n.content AS next, o.is_latest "
        "FROM memories o LEFT JOIN memories n ON n.id = o.superseded_by ORDER BY o.content",
    )
    assert [(row["content"], row["next"], row["is_latest"]) for row in chain] == [
        ("v0", "v1", False),
        ("v1", "v2", False),
        ("v2", "v3", False),
        ("v3", None, True),
    ]


async def test_a_correction_reaches_the_version_of_its_time(database: Database, scope: TenantScope) -> None:
    """What the source says after a correction is not superseded by it, and the correction stays a correction."""
    await write(
        database,
        scope,
        [
            memory("Seats: 40", external_id="seats", observed_at="2026-02-01T00:00:00Z"),
            memory("Seats: 45, I counted", external_id="fix", corrects="seats", observed_at="2026-02-02T00:00:00Z"),
            memory("Seats: 44", external_id="seats", observed_at="2026-02-05T00:00:00Z"),
        ],
    )
    found = {
        row["content"]: row
        for row in await rows(database, scope, "SELECT content, id, corrects, superseded_reason FROM memories")
    }
    assert found["Seats: 40"]["superseded_reason"] == "correction"
    assert found["Seats: 44"]["superseded_reason"] is None
    assert found["Seats: 45, I counted"]["corrects"] == found["Seats: 40"]["id"]


async def test_a_corrected_memory_sent_anew_stays_corrected(database: Database, scope: TenantScope) -> None:
    """A later version of a corrected memory supersedes nothing that a person said."""
    await write(
        database,
        scope,
        [
            memory("Seats: 40", external_id="seats", observed_at="2026-02-01T00:00:00Z"),
            memory("Seats: 45", external_id="fix", corrects="seats", observed_at="2026-02-02T00:00:00Z"),
        ],
    )
    await write(database, scope, [memory("Seats: 41", external_id="seats", observed_at="2026-02-06T00:00:00Z")])
    [old] = await rows(
        database,
        scope,
        "SELECT o.superseded_reason, o.is_latest, n.content FROM memories o JOIN memories n ON n.id = o.superseded_by "
        "WHERE o.content = 'Seats: 40'",
    )
    assert (old["superseded_reason"], old["content"], old["is_latest"]) == ("correction", "Seats: 45", False)


async def test_a_belief_goes_stale_with_the_version_it_rests_on(database: Database, scope: TenantScope) -> None:
    """A new version withdraws the old one's support in the same transaction."""
    result, _ = await write(database, scope, [memory("The limit is 30", external_id="limit")])
    belief = uuid.uuid4()
    await hold(database, scope, belief, {"supports": [result.writes[0].id]})
    await write(database, scope, [memory("The limit is 50", external_id="limit")])
    [row] = await rows(database, scope, "SELECT status FROM harmonic_beliefs")
    assert row["status"] == "stale"


async def hold(
    database: Database,
    scope: TenantScope,
    belief: uuid.UUID,
    evidence: dict[str, list[uuid.UUID]],
    status: str = "held",
) -> None:
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, "
            "status, valid_from, cluster_id, model, rules_version, recorded_at) "
            "VALUES (:tenant_id, :id, :scope_path, 's', 'p', 'o', 'c', :status, :at, 'k', 'rules', '1', :at)",
            id=belief,
            status=status,
            at=DAY,
        )
        for role, ids in evidence.items():
            for memory_id in ids:
                await connection.execute(
                    "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
                    "VALUES (:tenant_id, :belief, :memory, :role, :scope_path)",
                    belief=belief,
                    memory=memory_id,
                    role=role,
                )
        await connection.commit()


async def test_companions_come_with_their_memory(database: Database, scope: TenantScope) -> None:
    """Reminders have triggers, procedures skills, a user's profile lines corrections; a new version replaces them."""
    day_one, day_two = "2026-02-01T09:00:00Z", "2026-02-02T09:00:00Z"
    reminder = {"layer": "prospective", "external_id": "r", "properties": {"due_at": "2026-03-02T12:00:00Z"}}
    recipe = {"layer": "procedural", "label": "HOWTO: loaf", "external_id": "p"}
    soul = {"soul": {"field": "units", "value": "metric"}}
    await write(
        database,
        scope,
        [
            memory("Pay the rent", observed_at=day_one, **reminder),
            memory("Bake", observed_at=day_one, properties={"steps": ["mix", "bake"]}, **recipe),
            memory("Another loaf", layer="procedural", label="HOWTO: loaf", properties={"steps": ["buy"]}),
            memory("Use metric", source="user", properties=soul),
            memory("The page says metric", source="web", properties=soul),
        ],
    )
    await write(
        database,
        scope,
        [
            memory("Pay the rent to Marta", observed_at=day_two, **reminder),
            memory("Bake longer", observed_at=day_two, properties={"steps": ["mix", "wait"], "active": True}, **recipe),
        ],
    )
    triggers = await rows(database, scope, "SELECT state, due_at FROM triggers ORDER BY recorded_at")
    assert [row["state"] for row in triggers] == ["cancelled", "pending"]
    assert triggers[1]["due_at"] == datetime(2026, 3, 2, 12, tzinfo=UTC)
    skills = await rows(database, scope, "SELECT name, steps, status, active FROM skills ORDER BY length(name)")
    assert (skills[0]["name"], skills[0]["steps"]) == ("HOWTO: loaf", ["mix", "wait"])
    assert (skills[0]["status"], skills[0]["active"]) == ("approved", True)
    assert (skills[1]["steps"], skills[1]["status"], len(skills)) == (["buy"], "draft", 2)
    corrections = await rows(database, scope, "SELECT who, what FROM corrections")
    assert corrections == [{"who": "user", "what": {"fields": {"units": "metric"}}}]


async def test_new_uses_of_a_known_memory_count(database: Database, scope: TenantScope) -> None:
    """Accesses are added once, and move the last activity forward only."""
    early = {"kind": "recall", "at": "2026-02-10T00:00:00Z"}
    late = {"kind": "hydrate", "at": "2026-02-20T00:00:00Z"}
    first, _ = await write(
        database, scope, [memory("Ann likes tea", observed_at="2026-02-01T00:00:00Z", accesses=[early, early])]
    )
    again, _ = await write(
        database, scope, [memory("Ann likes tea", observed_at="2026-02-01T00:00:00Z", accesses=[early, late])]
    )
    assert (first.accesses, again.accesses) == (1, 1)
    [row] = await rows(database, scope, "SELECT last_activity_at FROM memories")
    assert row["last_activity_at"] == datetime(2026, 2, 20, tzinfo=UTC)


async def test_references_reach_ancestors_but_never_change_them(database: Database, scope: TenantScope) -> None:
    """An edge may lead up the scope path, the nearest of two names wins; a correction of an ancestor is refused."""
    await write(database, scope, [memory("House rule", external_id="rule"), memory("Shared", external_id="both")])
    child = scope.child("chat", "1")
    own, resolved = await write(
        database,
        child,
        [
            memory("Own", external_id="both"),
            memory(
                "Note",
                edges=[{"to": "rule", "relationship": "ABOUT"}, {"to": "both", "relationship": "ABOUT"}],
                corrects="rule",
            ),
            memory("Lost", edges=[{"to": "nowhere", "relationship": "ABOUT"}]),
        ],
    )
    assert (resolved.edges, resolved.corrections) == (2, 0)
    assert [item.reason for item in resolved.unresolved] == [
        "'rule' belongs to tenant=acme; correct it there",
        "no memory has the external id 'nowhere'",
    ]
    edges = await rows(database, child, "SELECT target_id FROM memory_edges WHERE scope_path = :scope_path")
    assert own.writes[0].id in {row["target_id"] for row in edges}
    [rule] = await rows(database, scope, "SELECT superseded_reason FROM memories WHERE external_id = 'rule'")
    assert rule["superseded_reason"] is None


async def test_a_vector_it_brings_is_kept_and_mixing_is_refused(database: Database, scope: TenantScope) -> None:
    """A given vector is stored at length 1 under its model and never computed anew; another dimension is refused."""
    await write(database, scope, [memory("Given", embedding=[3, 4], embedding_model="mine")])
    stored = await rows(database, scope, "SELECT model, aspect, CAST(embedding AS text) AS v FROM memory_embeddings")
    assert [(row["model"], row["aspect"], row["v"]) for row in stored] == [("mine", "content", "[0.6,0.8]")]
    with pytest.raises(EmbeddingMismatch):
        await write(database, scope, [memory("Other", embedding=[1, 2, 3], embedding_model="mine")])


async def test_another_root_kind_of_a_known_tenant_is_refused(database: Database, scope: TenantScope) -> None:
    """Memories under org=acme would be invisible under tenant=acme, so the mistake is named."""
    await add_memory(database, scope, "Ann likes tea")
    with pytest.raises(InvalidScope, match="tenant=acme"):
        await write(database, TenantScope.root("org", "acme"), [memory("Bob likes jam")])


async def test_what_the_database_refuses_leaves_nothing(
    database: Database, scope: TenantScope, database_url: str
) -> None:
    """A batch is whole or not at all."""
    forbid(database_url, "content <> 'poison'")
    with pytest.raises(DBAPIError):
        await write(database, scope, [memory("fine"), memory("poison")])
    assert await rows(database, scope, "SELECT id FROM memories") == []


def forbid(database_url: str, condition: str) -> None:
    """Let the database refuse rows, as its owner."""
    engine = create_engine(database_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE slowwave.memories ADD CONSTRAINT forbidden CHECK ({condition})"))
