"""A person promotes a memory: a scope above keeps the same, once, with where it came from; the original stays."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidScope, InvalidTime, NotFound
from memory_core.layers import editing
from memory_core.layers.promotion import ancestor_named, promote
from memory_core.layers.records import NewMemory
from memory_core.models.embedding import embedding_provider
from memory_core.retrieval.search import recall
from memory_core.scope import TenantScope
from memory_core.sleep.promotion import STEP
from tests.builders import NIGHT, add_scope, ago
from tests.nights import change, rows, sleep, state, undo

PROVIDER = embedding_provider("hash:64")
PORTO = {
    "content": "Ann lives in Porto",
    "label": "PERSON: Ann",
    "subject": "Ann",
    "predicate": "lives_in",
    "object": "Porto",
    "importance": 8.0,
    "confidence": 0.8,
    "properties": {"speaker": "Bo", "soul": {"field": "city", "value": "Porto"}},
}
ALL = """
SELECT to_jsonb(m) AS memory, to_jsonb(s) AS state FROM memories m JOIN memory_state s ON s.memory_id = m.id
WHERE m.scope_path = :scope_path ORDER BY m.id
"""


@pytest.fixture
def brand(scope: TenantScope) -> TenantScope:
    """A scope below the tenant, with chats below it."""
    return scope.child("brand", "x")


def chat(brand: TenantScope, name: str) -> TenantScope:
    return brand.child("chat", name)


async def said(database: Database, scope: TenantScope, **fields: Any) -> uuid.UUID:
    memory = NewMemory.read({**PORTO, "observed_at": ago(days=3), **fields})
    return uuid.UUID((await editing.remember(database, scope, PROVIDER, memory, now=NIGHT))["id"])


async def lift(
    database: Database, scope: TenantScope, memory: uuid.UUID | str, to: TenantScope | None = None, **options: Any
) -> dict[str, Any]:
    return await promote(database, scope, PROVIDER, memory, to=to, **{"who": "Bo", "at": NIGHT, **options})


async def kept(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    sql = (
        "SELECT m.*, s.importance, s.confidence FROM memories m JOIN memory_state s ON s.memory_id = m.id "
        "WHERE m.scope_path = :scope_path ORDER BY m.id"
    )
    return [dict(row) for row in await rows(database, scope, sql)]


async def test_the_scope_above_keeps_the_same_and_the_original_stays(database: Database, brand: TenantScope) -> None:
    """Words, times and weights are the original's; it says where it came from, and waits for SHMR like any other."""
    original = await said(database, chat(brand, "1"), external_id="m-1", pinned=True)
    before = await rows(database, chat(brand, "1"), ALL)
    done = await lift(database, chat(brand, "1"), "m-1")
    assert (done["status"], done["memory"], done["sources"]) == ("promoted", str(original), 1)
    assert (done["scope"], done["to"]) == (str(chat(brand, "1")), str(brand))
    assert await rows(database, chat(brand, "1"), ALL) == before
    (copy,) = await kept(database, brand)
    assert str(copy["id"]) == done["id"]
    for name in ("content", "label", "subject", "predicate", "object", "importance", "confidence"):
        assert copy[name] == PORTO[name], name
    assert (copy["observed_at"], copy["recorded_at"], copy["source"]) == (ago(days=3), NIGHT, "promotion")
    assert (copy["external_id"], copy["pinned"]) == (None, False)
    assert copy["properties"] == {
        "speaker": "Bo",
        "promoted_from": [
            {
                "scope_path": chat(brand, "1").scope_path,
                "memory_id": str(original),
                "confidence": 0.8,
                "promoted_at": NIGHT.isoformat(),
                "promoted_by": "Bo",
            }
        ],
    }
    count = "SELECT count(*) AS n FROM {} WHERE scope_path = :scope_path"
    assert (await rows(database, brand, count.format("memory_embeddings")))[0]["n"] == 2, "content and slot"
    assert (await rows(database, brand, count.format("harmonize_queue")))[0]["n"] == 1
    assert (await rows(database, brand, count.format("corrections")))[0]["n"] == 0, "a profile is not promoted"


async def test_promoting_again_changes_nothing(database: Database, brand: TenantScope) -> None:
    """The same memory is named once, by whomever and however late."""
    original = await said(database, chat(brand, "1"))
    first = await lift(database, chat(brand, "1"), original)
    before = await state(database, brand)
    again = await lift(database, chat(brand, "1"), original, who="Cy", at=ago(days=-3))
    assert (again["status"], again["id"], again["sources"]) == ("unchanged", first["id"], 1)
    assert await state(database, brand) == before


async def test_the_same_from_elsewhere_is_one_more_source(database: Database, brand: TenantScope) -> None:
    """No second memory, the higher confidence, and every other property as it was."""
    first = await said(database, chat(brand, "1"))
    second = await said(
        database, chat(brand, "2"), confidence=0.9, properties={"speaker": "Cy"}, observed_at=ago(days=1)
    )
    doubtful = await said(database, chat(brand, "12"), confidence=0.2)
    done = await lift(database, chat(brand, "1"), first)
    for name, memory, sources in (("2", second, 2), ("12", doubtful, 3)):
        more = await lift(database, chat(brand, name), memory)
        assert (more["status"], more["id"], more["sources"]) == ("source_added", done["id"], sources)
    (copy,) = await kept(database, brand)
    assert (copy["confidence"], copy["observed_at"], copy["properties"]["speaker"]) == (0.9, ago(days=3), "Bo")
    assert [entry["memory_id"] for entry in copy["properties"]["promoted_from"]] == [
        str(memory) for memory in (first, second, doubtful)
    ]


async def test_what_the_scope_above_knows_by_itself_stays_untouched(database: Database, brand: TenantScope) -> None:
    """Its own memory does not come from below, so it gets no provenance."""
    own = await said(database, brand, observed_at=ago(days=9))
    original = await said(database, chat(brand, "1"))
    before = await state(database, brand)
    done = await lift(database, chat(brand, "1"), original)
    assert (done["status"], done["id"], await state(database, brand)) == ("already_known", str(own), before)


async def test_any_scope_above_can_be_meant(database: Database, scope: TenantScope, brand: TenantScope) -> None:
    """Past the brand to the tenant; and a copy that rises further names where it began."""
    original = await said(database, chat(brand, "1"))
    await lift(database, chat(brand, "1"), original, scope)
    assert await kept(database, brand) == []
    other = await said(database, chat(brand, "2"), content="Ann has a cat", subject=None, predicate=None, object=None)
    copy = await lift(database, chat(brand, "2"), other)
    done = await lift(database, brand, copy["id"])
    (risen,) = [memory for memory in await kept(database, scope) if str(memory["id"]) == done["id"]]
    (entry,) = risen["properties"]["promoted_from"]
    assert (entry["scope_path"], entry["memory_id"]) == (chat(brand, "2").scope_path, str(other))


@pytest.mark.parametrize(
    ("change_to", "said_so"),
    [
        ("layer = 'working'", "working layer"),
        ("retired_at = now(), retired_reason = 'wrong'", "is retired: wrong"),
        ("expires_at = '2026-01-01Z'", "expired at 2026-01-01"),
        ("derived_key = 'meta:X'", "summary"),
        ("superseded_by = NULL, superseded_by_belief = id, superseded_reason = 'update'", "is superseded"),
    ],
)
async def test_what_does_not_hold_is_refused(
    database: Database, brand: TenantScope, change_to: str, said_so: str
) -> None:
    """Nothing is written above, and the message says what to do."""
    original = await said(database, chat(brand, "1"))
    await change(database, chat(brand, "1"), f"UPDATE memories SET {change_to} WHERE id = :id", id=original)
    with pytest.raises(InvalidInput, match=said_so) as refused:
        await lift(database, chat(brand, "1"), original)
    assert refused.value.hint
    assert await kept(database, brand) == []


async def test_where_it_may_not_go_is_refused(database: Database, scope: TenantScope, brand: TenantScope) -> None:
    """Not beside, below, to itself, to another tenant, nor above the tenant; and only what the scope itself holds."""
    original = await said(database, chat(brand, "1"))
    stranger = TenantScope.root("tenant", "globex")
    for to in (chat(brand, "2"), chat(brand, "1"), scope.child("brand", "y"), stranger, stranger.child("brand", "x")):
        with pytest.raises(InvalidScope, match="is not a scope above") as refused:
            await lift(database, chat(brand, "1"), original, to)
        assert refused.value.data["above"] == [str(brand), str(scope)]
    top = await said(database, scope, content="Everybody is off")
    with pytest.raises(InvalidScope, match="none above"):
        await lift(database, scope, top)
    for asking in (chat(brand, "2"), stranger.child("brand", "x"), brand):
        with pytest.raises(NotFound):
            await lift(database, asking, original)
    with pytest.raises(NotFound, match="belongs to"):
        await lift(database, chat(brand, "1"), top)
    with pytest.raises(NotFound):
        await lift(database, chat(brand, "1"), uuid.uuid4())
    with pytest.raises(InvalidTime):
        await lift(database, chat(brand, "1"), original, at=datetime(2026, 3, 1))  # noqa: DTZ001
    assert await kept(database, brand) == []


async def test_what_was_taken_out_above_is_not_made_anew(database: Database, brand: TenantScope) -> None:
    """A retracted copy is told of, and restored it is named again."""
    original = await said(database, chat(brand, "1"))
    copy = await lift(database, chat(brand, "1"), original)
    await editing.retract(database, brand, uuid.UUID(copy["id"]), "outdated", who="Bo", at=NIGHT)
    with pytest.raises(InvalidInput, match="is retired there") as refused:
        await lift(database, chat(brand, "1"), original)
    assert "slowwave restore" in refused.value.hint
    await editing.restore(database, brand, uuid.UUID(copy["id"]), who="Bo", at=NIGHT)
    assert (await lift(database, chat(brand, "1"), original))["status"] == "unchanged"


@pytest.mark.parametrize(
    ("text", "depth"), [("brand=x", 2), ("tenant=acme/brand=x", 2), ("tenant=acme", 1), ("tenant=acme/", 1)]
)
def test_a_scope_above_is_named_as_scopes_are_written(brand: TenantScope, text: str, depth: int) -> None:
    """Below the tenant as --scope is, or in full; the tenant by its own level."""
    assert ancestor_named(chat(brand, "1"), text).scope_depth == depth


@pytest.mark.parametrize("text", ["", "/", "brand=y", "brand=x/chat=1", "x", "tenant=globex", "brand=x2", "acme"])
def test_no_other_scope_is_taken_for_one_above(brand: TenantScope, text: str) -> None:
    """Whole names only."""
    with pytest.raises(InvalidScope, match="is not a scope above"):
        ancestor_named(chat(brand, "1"), text)


async def test_the_nearer_of_two_equal_texts_is_recalled(database: Database, brand: TenantScope) -> None:
    """Where it was said, the original answers; beside it, the copy does. Never both."""
    original = await said(database, chat(brand, "1"), confidence=0.4)
    await said(database, chat(brand, "2"), content="Bo has a dog", subject=None, predicate=None, object=None)
    done = await lift(database, chat(brand, "1"), original)
    await change(database, brand, "UPDATE memory_state SET confidence = 0.99 WHERE memory_id = :id", id=done["id"])
    for name, expected in (("1", str(original)), ("2", done["id"])):
        found = await recall(database, chat(brand, name), PROVIDER, "Ann lives in Porto", now=NIGHT, record=False)
        same = [item["id"] for item in found["results"] if item["content"] == PORTO["content"]]
        assert same == [expected]


async def test_an_undo_keeps_what_a_person_promoted_since(database: Database, brand: TenantScope) -> None:
    """A source that a person named is a use of the memory: the undo says so and leaves it."""
    await add_scope(database, brand)
    for name in ("1", "2"):
        await said(database, chat(brand, name))
    night = await sleep(database, brand, STEP)
    third = await said(database, chat(brand, "3"))
    done = await lift(database, chat(brand, "3"), third)
    assert (done["status"], done["sources"]) == ("source_added", 3)
    result = await undo(database, brand, night, STEP)
    assert [(item["table"], item["reason"]) for item in result.refused] == [("memories", "in use since")]
    (memory,) = await kept(database, brand)
    assert str(memory["id"]) == done["id"]


async def test_a_night_adds_to_what_a_person_promoted(database: Database, brand: TenantScope) -> None:
    """There is one memory of it, whoever promoted it first, and undoing the night leaves the person's part."""
    first = await said(database, chat(brand, "1"))
    done = await lift(database, chat(brand, "1"), first, at=ago(days=1))
    await said(database, chat(brand, "2"), content="Porto is where Ann lives", confidence=0.95)
    before = await state(database, brand)
    night = await sleep(database, brand, STEP)
    (memory,) = await kept(database, brand)
    assert (str(memory["id"]), memory["content"], memory["confidence"]) == (done["id"], PORTO["content"], 0.8)
    assert [entry["promoted_by"] for entry in memory["properties"]["promoted_from"]] == ["Bo", "promotion"]
    assert (await undo(database, brand, night, STEP)).refused == ()
    assert await state(database, brand) == before
