"""Promotion: what child scopes say in common is known above them, once, with where it came from; nothing else is."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.layers import editing
from memory_core.models.embedding import embedding_provider
from memory_core.runs.changes import changes_of
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run
from memory_core.scope import TenantScope
from memory_core.shmr.stored import ELIGIBLE
from memory_core.sleep.promotion import STEP, PromotionSettings
from tests.builders import NIGHT, add_memory, add_scope, ago
from tests.nights import Night, change, look_ahead, rows, sleep, state, undo

PROVIDER = embedding_provider("hash:64")
PORTO = {"subject": "Ann", "predicate": "lives_in", "object": "Porto"}
LEEDS = {**PORTO, "object": "Leeds"}
EVERY_ROW = """
SELECT to_jsonb(m) AS memory, to_jsonb(s) AS state FROM memories m JOIN memory_state s ON s.memory_id = m.id
WHERE m.scope_path = :scope_path ORDER BY m.id
"""


@pytest.fixture
async def brand(database: Database, scope: TenantScope) -> TenantScope:
    """The parent: a scope below the tenant."""
    brand = scope.child("brand", "x")
    await add_scope(database, scope)
    await add_scope(database, brand)
    return brand


def chat(brand: TenantScope, name: str) -> TenantScope:
    return brand.child("chat", name)


async def said(database: Database, scope: TenantScope, content: str = "Ann lives in Porto", **fields: Any) -> uuid.UUID:
    return await add_memory(database, scope, content, **{"observed_at": ago(days=2), **fields})


async def kept(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """The scope's own memories with their state."""
    sql = (
        "SELECT m.*, s.importance, s.confidence, s.first_night FROM memories m "
        "JOIN memory_state s ON s.memory_id = m.id WHERE m.scope_path = :scope_path ORDER BY m.content, m.id"
    )
    return [dict(row) for row in await rows(database, scope, sql)]


def skipped(night: Night) -> dict[str, int]:
    return dict(night.outcome.skipped)


def sources(memory: dict[str, Any]) -> set[tuple[str, str]]:
    return {(entry["scope_path"], entry["memory_id"]) for entry in memory["properties"]["promoted_from"]}


async def test_two_children_that_say_the_same_make_one_memory_above_them(
    database: Database, brand: TenantScope
) -> None:
    """The surest child's words are kept, with the highest confidence and importance, and every source is named."""
    first = await said(database, chat(brand, "1"), **PORTO, confidence=0.8, importance=9, label="PERSON: Ann")
    second = await said(
        database,
        chat(brand, "2"),
        "Ann's home is Porto.",
        subject="the ann",
        predicate="Lives in",
        object="porto.",
        confidence=0.95,
        properties={"speaker": "Bo", "private": "not told"},
        observed_at=ago(days=5),
        external_id="c-2",
        pinned=True,
    )
    before = [await rows(database, chat(brand, name), EVERY_ROW) for name in ("1", "2")]
    night = await sleep(database, brand, STEP)
    (memory,) = await kept(database, brand)
    assert memory["content"] == "Ann's home is Porto."
    assert (memory["subject"], memory["predicate"], memory["object"]) == ("the ann", "Lives in", "porto.")
    assert (memory["confidence"], memory["importance"]) == (0.95, 9)
    assert (memory["source"], memory["external_id"], memory["pinned"]) == ("promotion", None, False)
    assert (memory["observed_at"], memory["recorded_at"], memory["first_night"]) == (ago(days=5), NIGHT, NIGHT)
    assert memory["properties"].keys() == {"speaker", "promoted_from"}
    entries = {entry["memory_id"]: entry for entry in memory["properties"]["promoted_from"]}
    assert entries.keys() == {str(first), str(second)}
    assert entries[str(first)] == {
        "scope_path": chat(brand, "1").scope_path,
        "memory_id": str(first),
        "confidence": 0.8,
        "promoted_at": NIGHT.isoformat(),
        "promoted_by": "promotion",
        "run_id": str(night.run.id),
    }
    assert (night.outcome.candidates, night.outcome.changed, night.outcome.sample) == (1, 1, (str(memory["id"]),))
    assert night.outcome.counts == {"memories_promoted": 1, "sources_added": 0}
    assert [await rows(database, chat(brand, name), EVERY_ROW) for name in ("1", "2")] == before
    assert (await rows(database, brand, "SELECT memory_id FROM harmonize_queue"))[0]["memory_id"] == memory["id"]


async def test_the_same_words_without_a_triple_count_too(database: Database, brand: TenantScope) -> None:
    """The same content, and nothing that merely looks like it."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), "The office closes at six")
    await said(database, chat(brand, "1"), "The office opens at nine")
    await said(database, chat(brand, "2"), "The office opens at nine?")
    await sleep(database, brand, STEP)
    assert [memory["content"] for memory in await kept(database, brand)] == ["The office closes at six"]


async def test_a_second_night_and_a_preview_change_nothing(database: Database, brand: TenantScope) -> None:
    """A preview tells what the night then does; the next night finds it known."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    before = await state(database, brand)
    planned = await look_ahead(database, brand, STEP)
    assert await state(database, brand) == before
    night = await sleep(database, brand, STEP)
    async with database.scoped(brand) as connection:
        assert planned == await changes_of(connection, night.run.id)
    assert len(await kept(database, brand)) == 1
    once = await state(database, brand)
    again = await sleep(database, brand, STEP, at=ago(days=-1))
    assert await state(database, brand) == once
    assert (again.outcome.changed, skipped(again)) == (0, {"already known here": 1})
    assert again.outcome.reason


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"confidence": 0.69}, "not sure enough"),
        ({"layer": "working"}, "for the moment"),
        ({"layer": "prospective"}, "would remind twice"),
        ({"label": "SOUL: Ann"}, "identity"),
        ({"derived_key": "meta:X"}, "a summary"),
        ({"retired_at": ago(days=1), "retired_reason": "wrong"}, "retired"),
        ({"expires_at": ago(hours=1)}, "expired"),
        ({"observed_at": ago(days=-1)}, "not known yet"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_only_what_holds_in_both_children_counts(
    database: Database, brand: TenantScope, fields: dict[str, Any], why: str
) -> None:
    """One child's memory that does not count leaves the other's alone, which is one too few."""
    await said(database, chat(brand, "1"), **PORTO)
    await said(database, chat(brand, "2"), **PORTO, **fields)
    night = await sleep(database, brand, STEP)
    assert await kept(database, brand) == [], why
    assert night.outcome.reason == "no two child scopes say the same with enough confidence"


async def test_superseded_memories_do_not_count(database: Database, brand: TenantScope) -> None:
    """What a child replaced is no longer what it says, neither for nor against."""
    for name in ("1", "2"):
        new = await said(database, chat(brand, name), **PORTO)
        old = await said(database, chat(brand, name), "Ann lives in Leeds", **LEEDS)
        await change(
            database,
            chat(brand, name),
            "UPDATE memories SET superseded_by = :new, superseded_reason = 'update', superseded_at = :at "
            "WHERE id = :old",
            new=new,
            old=old,
            at=ago(days=1),
        )
    await sleep(database, brand, STEP)
    assert [memory["object"] for memory in await kept(database, brand)] == ["Porto"]


async def test_where_children_disagree_nothing_is_promoted(database: Database, brand: TenantScope) -> None:
    """Also not what most of them say; it is counted, and a doubtful voice does not stand in the way."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    against = await said(database, chat(brand, "3"), "Ann lives in Leeds", **LEEDS)
    night = await sleep(database, brand, STEP)
    assert await kept(database, brand) == []
    assert skipped(night) == {"children disagree": 1}
    assert night.outcome.reason == "the child scopes disagree"
    await change(
        database, chat(brand, "3"), "UPDATE memory_state SET confidence = 0.5 WHERE memory_id = :id", id=against
    )
    await sleep(database, brand, STEP, at=ago(days=-1))
    assert [memory["object"] for memory in await kept(database, brand)] == ["Porto"]


async def test_a_child_may_say_more_than_the_others(database: Database, brand: TenantScope) -> None:
    """Two kinds of tea in one chat do not deny the one that all of them name."""
    for name, drink in (("1", "green tea"), ("2", "green tea"), ("1", "black tea")):
        await said(database, chat(brand, name), f"Ann likes {drink}", subject="Ann", predicate="likes", object=drink)
    night = await sleep(database, brand, STEP)
    assert [memory["object"] for memory in await kept(database, brand)] == ["green tea"]
    assert skipped(night) == {}


async def test_as_many_children_as_the_setting_asks(database: Database, brand: TenantScope) -> None:
    """One child that says it three times is one child."""
    for name in ("1", "2", "2", "2"):
        await said(database, chat(brand, name), **PORTO, observed_at=ago(days=3))
    await sleep(database, brand, STEP, settings={"promotion": {"from_children": 3}})
    assert await kept(database, brand) == []
    await said(database, chat(brand, "3"), **PORTO)
    await sleep(database, brand, STEP, at=ago(days=-1), settings={"promotion": {"from_children": 3}})
    (memory,) = await kept(database, brand)
    assert len(sources(memory)) == 5


async def test_a_child_that_joins_later_is_named_and_an_undo_takes_that_back(
    database: Database, brand: TenantScope
) -> None:
    """The name is added in place, journalled, taken back alone, and not added again unless it is asked for."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    await sleep(database, brand, STEP)
    (first,) = await kept(database, brand)
    before = await state(database, brand)
    third = await said(database, chat(brand, "3"), **PORTO, confidence=1.0)
    night = await sleep(database, brand, STEP, at=ago(days=-1))
    (grown,) = await kept(database, brand)
    assert grown["id"] == first["id"]
    assert sources(grown) == sources(first) | {(chat(brand, "3").scope_path, str(third))}
    assert grown["properties"]["promoted_from"][:2] == first["properties"]["promoted_from"]
    assert night.outcome.counts == {"memories_promoted": 0, "sources_added": 1}
    result = await undo(database, brand, night, STEP)
    assert result.refused == ()
    assert await state(database, brand) == before
    again = await sleep(database, brand, STEP, at=ago(days=-2))
    assert (again.outcome.changed, await state(database, brand)) == (0, before)
    await sleep(database, brand, STEP, at=ago(days=-3), reconsider=True)
    assert len(sources((await kept(database, brand))[0])) == 3


async def test_what_a_person_undid_stays_undone(database: Database, brand: TenantScope) -> None:
    """The undo leaves the scope as it was; the same in other words is not promoted either, until it is asked for."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    before = await state(database, brand)
    night = await sleep(database, brand, STEP)
    assert await state(database, brand) != before
    result = await undo(database, brand, night, STEP)
    assert (result.refused, await state(database, brand)) == ((), before)
    await said(database, chat(brand, "3"), "Porto is where Ann lives", **PORTO, confidence=1.0)
    again = await sleep(database, brand, STEP, at=ago(days=-1))
    assert (await kept(database, brand), skipped(again)) == ([], {"taken back by a person": 1})
    await sleep(database, brand, STEP, at=ago(days=-2), reconsider=True)
    assert [memory["content"] for memory in await kept(database, brand)] == ["Porto is where Ann lives"]


@pytest.mark.parametrize("how", ["retracted", "corrected"])
async def test_what_a_person_took_out_above_does_not_come_back(
    database: Database, brand: TenantScope, how: str
) -> None:
    """A promoted memory that was retracted or corrected is not promoted again, whatever its children go on saying."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    await sleep(database, brand, STEP)
    (memory,) = await kept(database, brand)
    if how == "retracted":
        await editing.retract(database, brand, memory["id"], "wrong", who="Bo", at=ago(days=-1))
    else:
        await editing.correct(
            database, brand, PROVIDER, memory["id"], content="Ann lives in Lisbon", who="Bo", at=ago(days=-1)
        )
    before = await state(database, brand)
    night = await sleep(database, brand, STEP, at=ago(days=-2))
    assert await state(database, brand) == before
    assert skipped(night) == {"was known here, and is retired or replaced": 1}


async def test_what_the_scope_knows_by_itself_stays_untouched(database: Database, brand: TenantScope) -> None:
    """It says so already, in whatever words, and gets no provenance, since it does not come from there."""
    own = await said(database, brand, "Ann is at home in Porto", **PORTO, properties={"mine": 1})
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    before = await state(database, brand)
    night = await sleep(database, brand, STEP)
    assert (await state(database, brand), skipped(night)) == (before, {"already known here": 1})
    assert [memory["id"] for memory in await kept(database, brand)] == [own]


async def test_words_of_a_speaker_or_of_a_day_need_the_same_one(database: Database, brand: TenantScope) -> None:
    """ "I" of two persons and "tomorrow" of two days are not the same; of one person, and one day, they are."""
    for name, who in (("1", "ann"), ("2", "bo")):
        await said(database, chat(brand, name), "I like green tea", source=who)
        await said(database, chat(brand, name), "We moved to Porto", source="ann")
    for name, day in (("1", 2), ("2", 3)):
        await said(database, chat(brand, name), "The fair is tomorrow", observed_at=ago(days=day))
    night = await sleep(database, brand, STEP)
    assert [memory["content"] for memory in await kept(database, brand)] == ["We moved to Porto"]
    assert skipped(night) == {"each speaks of itself": 1, "words of a day, said on several days": 1}


async def test_it_rises_one_level_a_night_and_names_what_it_began_with(
    database: Database, scope: TenantScope, brand: TenantScope
) -> None:
    """The tenant's copy names the chats, so that erasing one reaches it, and no night reads two levels down."""
    other = scope.child("brand", "y")
    await add_scope(database, other)
    told = [await said(database, chat(brand, name), **PORTO) for name in ("1", "2")]
    here = await said(database, other, **PORTO)
    await sleep(database, scope, STEP)
    assert await kept(database, scope) == []
    await sleep(database, brand, STEP)
    await sleep(database, scope, STEP, at=ago(days=-1))
    (memory,) = await kept(database, scope)
    assert sources(memory) == {
        *((chat(brand, name).scope_path, str(id)) for name, id in zip(("1", "2"), told, strict=True)),
        (other.scope_path, str(here)),
    }


async def test_it_ends_when_the_last_of_its_sources_does(database: Database, brand: TenantScope) -> None:
    """Where one child says it for ever, so does the scope."""
    for name, ends in (("1", ago(days=-3)), ("2", ago(days=-9))):
        await said(database, chat(brand, name), "The fair is on", expires_at=ends)
        await said(database, chat(brand, name), "The shop is open", expires_at=ends if name == "1" else None)
    await sleep(database, brand, STEP)
    ends = {memory["content"]: memory["expires_at"] for memory in await kept(database, brand)}
    assert ends == {"The fair is on": ago(days=-9), "The shop is open": None}


async def test_many_statements_are_taken_page_by_page(database: Database, brand: TenantScope) -> None:
    """Twenty statements in pages of three are all promoted, each once."""
    for name in ("1", "2"):
        for number in range(20):
            await said(database, chat(brand, name), f"Fact number {number}", observed_at=ago(days=3))
    night = await sleep(database, brand, STEP, settings={"promotion": {"page_size": 3}})
    assert night.outcome.changed == 20
    assert len({memory["content"] for memory in await kept(database, brand)}) == 20


async def test_it_is_off_unless_switched_on(database: Database, brand: TenantScope) -> None:
    """A run can be told to, and so can a tenant; a tenant that says no is not overruled by a run."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)

    async def context(**parameters: Any) -> RunContext:
        run = await begin_run(database, brand, "sleep", ago(days=1), parameters)
        return RunContext(run, database.settings, PROVIDER, None)

    assert not PromotionSettings().enabled
    assert STEP.enabled is not None
    assert not STEP.enabled(await context())
    assert STEP.enabled(await context(settings={"promotion": {"enabled": True}}))
    await change(
        database,
        brand,
        'UPDATE tenants SET settings = \'{"promotion": {"enabled": false}}\' WHERE tenant_id = :tenant_id',
    )
    night = await sleep(database, brand, STEP, settings={"promotion": {"enabled": True}})
    assert (night.outcome.candidates, await kept(database, brand)) == (0, [])


async def test_a_copy_is_no_second_source_of_what_it_was_taken_from(database: Database, brand: TenantScope) -> None:
    """A child that said it does not compare it with its own echo; a child that did not, hears it from above."""
    for name in ("1", "2"):
        await said(database, chat(brand, name), **PORTO)
    await add_scope(database, chat(brand, "3"))
    await sleep(database, brand, STEP)
    sql = f"SELECT m.scope_path FROM memories m WHERE m.scope_path = ANY(:visible_paths) AND {ELIGIBLE}"
    for name, heard in (("1", [chat(brand, "1")]), ("2", [chat(brand, "2")]), ("3", [brand])):
        seen = await rows(database, chat(brand, name), sql, as_of=ago(days=-1))
        assert [row["scope_path"] for row in seen] == [each.scope_path for each in heard], name
