"""A parent's run that is taken back while scopes below rest on what it made: their rows are theirs, and stay."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from memory_core.database.engine import Database
from memory_core.database.used_below import references_to_memories
from memory_core.errors import MissingRight
from memory_core.night.consolidate import consolidate
from memory_core.night.consolidate import undo as undo_of_a_person
from memory_core.scope import TenantScope
from memory_core.sleep.meta_nodes import STEP as META_NODES
from tests.builders import NIGHT, add_edge, add_memory, add_scope, ago
from tests.knowledge import believe, supersede
from tests.nights import Night, change, rows, sleep, state, undo

PROMOTING = {"settings": {"promotion": {"enabled": True}}}


async def summarised(database: Database, scope: TenantScope) -> tuple[Night, uuid.UUID]:
    """A night that made a summary, and the summary."""
    for number in range(3):
        await add_memory(database, scope, f"tea fact {number}", label=f"TEA: {number}")
    night = await sleep(database, scope, META_NODES)
    (meta,) = await rows(
        database, scope, "SELECT id FROM memories WHERE scope_path = :scope_path AND derived_key IS NOT NULL"
    )
    return night, meta["id"]


async def use(database: Database, scope: TenantScope, how: str, above: uuid.UUID) -> None:
    """Let the scope rest on a memory above it, in one of the ways in which a row may."""
    own = await add_memory(database, scope, "the conversation's own")
    table, column = how.split(".")
    if table == "memory_edges":
        ends = (own, above) if column == "target_id" else (above, own)
        await add_edge(database, scope, *ends, "ABOUT")
    elif how == "memories.superseded_by":
        await supersede(database, scope, own, above)
    elif how == "memories.corrects":
        await change(database, scope, "UPDATE memories SET corrects = :above WHERE id = :own", above=above, own=own)
    elif table == "belief_evidence":
        await believe(database, scope, "Ann likes tea", {above: "supports"})
    else:
        columns: dict[str, Any] = {
            "corrections": {"id": uuid.uuid4(), "who": "ann", "at": ago(days=1), "what": "{}"},
            "skills": {"id": uuid.uuid4(), "name": "brew tea", "recorded_at": ago(days=1)},
            "triggers": {"id": uuid.uuid4(), "recorded_at": ago(days=1)},
        }[table]
        await change(
            database,
            scope,
            f"INSERT INTO {table} (tenant_id, scope_path, memory_id, {', '.join(columns)}) "
            f"VALUES (:tenant_id, :scope_path, :above, {', '.join(f':{name}' for name in columns)})",
            above=above,
            **columns,
        )


@pytest.mark.parametrize("how", [f"{table}.{column}" for table, column in references_to_memories()])
@pytest.mark.parametrize("deep", [False, True], ids=["child", "grandchild"])
async def test_what_scopes_below_rest_on_stays(database: Database, scope: TenantScope, how: str, deep: bool) -> None:
    """An undo neither fails nor takes a row below with it: it leaves the one memory, says so, and removes the rest."""
    below = scope.child("conversation", "c-1").child("turn", "7") if deep else scope.child("conversation", "c-1")
    night, meta = await summarised(database, scope)
    await use(database, below, how, meta)
    before = await state(database, below)
    result = await undo(database, scope, night, META_NODES)
    assert [(row["table"], row["key"], row["reason"]) for row in result.refused] == [
        ("memories", {"id": str(meta)}, "in use since")
    ]
    assert await state(database, below) == before
    assert [row["id"] for row in await rows(database, below, "SELECT id FROM memories WHERE id = :id", id=meta)]
    # What was in the way goes, and with the second undo the memory too.
    await change(database, below, "DELETE FROM harmonic_beliefs WHERE scope_path = :scope_path")
    await change(database, below, "DELETE FROM memory_edges WHERE scope_path = :scope_path")
    for table in ("corrections", "skills", "triggers"):
        await change(database, below, f"DELETE FROM {table} WHERE scope_path = :scope_path")
    await change(database, below, "DELETE FROM memories WHERE scope_path = :scope_path")
    later = await undo_of_a_person(database, scope, night.run.id, at=NIGHT + timedelta(days=1))
    assert later.refused == ()
    assert await rows(database, scope, "SELECT id FROM memories WHERE id = :id", id=meta) == []


async def test_what_only_the_scope_itself_uses_goes(database: Database, scope: TenantScope) -> None:
    """Uses of other memories, beside or above, keep nothing."""
    child, sibling = scope.child("conversation", "c-1"), scope.child("conversation", "c-12")
    night, meta = await summarised(database, child)
    one, other = [await add_memory(database, sibling, text) for text in ("one", "other")]
    await add_edge(database, sibling, one, other, "ABOUT")
    result = await undo(database, child, night, META_NODES)
    assert result.refused == ()
    assert await rows(database, child, "SELECT id FROM memories WHERE id = :id", id=meta) == []


async def test_a_use_by_a_conversation_keeps_nothing(database: Database, scope: TenantScope) -> None:
    """That a summary was read is no reason to keep it: its uses lie at its own level and go with it."""
    child = scope.child("conversation", "c-1")
    await add_scope(database, child)
    night, meta = await summarised(database, scope)
    await change(
        database,
        child,
        "INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at) "
        "VALUES (:tenant_id, gen_random_uuid(), :above, :id, 'recall', :at)",
        above=scope.scope_path,
        id=meta,
        at=NIGHT,
    )
    assert (await undo(database, scope, night, META_NODES)).refused == ()


async def test_a_scope_is_told_of_its_own_memories_only(database: Database, scope: TenantScope) -> None:
    """Not of those below, beside or above, nor of another tenant's, though somebody rests on each of them."""
    brand, sibling = scope.child("brand", "x"), scope.child("brand", "xx")
    conversation = brand.child("conversation", "c-1")
    stranger = TenantScope.root("tenant", "zeta")
    known = {}
    for each, below in (
        (scope, brand),
        (brand, conversation),
        (conversation, conversation.child("turn", "7")),
        (sibling, sibling.child("conversation", "c-1")),
        (stranger, stranger.child("conversation", "c-1")),
    ):
        known[each] = await add_memory(database, each, f"of {each}")
        await add_edge(database, below, known[each], await add_memory(database, below, "its own"), "ABOUT")
    asked = list(known.values())
    for each, memory in known.items():
        found = await rows(database, each, "SELECT slowwave.used_below(:ids) AS id", ids=asked)
        assert [row["id"] for row in found] == [memory], str(each)
    async with database.app.connect() as connection:
        unbound = await connection.execute(text("SELECT slowwave.used_below(:ids)"), {"ids": asked})
        assert unbound.all() == []
    with pytest.raises(MissingRight):
        await database.operator_rows("SELECT slowwave.used_below(:ids)", ids=asked)


async def test_a_belief_of_a_conversation_about_what_was_promoted(database: Database, scope: TenantScope) -> None:
    """A belief that cites the promoted memory keeps its evidence when the promotion is taken back."""
    ann: dict[str, Any] = {"subject": "Ann", "predicate": "lives_in"}
    for name in ("c-1", "c-2"):
        await add_memory(
            database, scope.child("conversation", name), "Ann lives in Bergen", object="Bergen", source=name, **ann
        )
    await add_scope(database, scope)
    (promoting,) = await consolidate(database, [scope], "nightly", NIGHT, parameters=PROMOTING)
    (promoted,) = await rows(database, scope, "SELECT id FROM memories WHERE source = 'promotion'")
    third, later = scope.child("conversation", "c-3"), NIGHT + timedelta(days=1)
    former = await add_memory(
        database, third, "Ann lives in Oslo", object="Oslo", source="c-3", observed_at=ago(days=9), **ann
    )
    (harmonized,) = await consolidate(database, [third], "harmonize", later)
    assert harmonized["shmr"]["beliefs_generated"] == 1
    evidence = "SELECT memory_id FROM belief_evidence WHERE scope_path = :scope_path"
    assert {row["memory_id"] for row in await rows(database, third, evidence)} == {promoted["id"], former}
    before = await state(database, third)
    result = await undo_of_a_person(database, scope, uuid.UUID(promoting["run_id"]), at=later)
    assert {"id": str(promoted["id"])} in [row["key"] for row in result.refused]
    assert await state(database, third) == before
