"""Recall over a real database: what answers, in which order, as of when, and what counts as used."""

from __future__ import annotations

import uuid
from datetime import datetime

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime
from memory_core.retrieval.search import recall
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_edge, add_memory, ago
from tests.knowledge import EMBEDDING, ROW, believe, change, remember, supersede


async def ask(database: Database, scope: TenantScope, query: str, **options):
    return await recall(database, scope, EMBEDDING, query, now=NIGHT, **options)


async def accesses(database: Database, scope: TenantScope) -> dict[uuid.UUID, datetime]:
    async with database.scoped(scope) as connection:
        rows = await connection.rows(f"SELECT memory_id, kind, at FROM memory_accesses WHERE {ROW}")
    assert {row["kind"] for row in rows} <= {"recall"}
    assert len({row["memory_id"] for row in rows}) == len(rows)
    return {row["memory_id"]: row["at"] for row in rows}


async def test_recall_gives_the_nearest_current_memories_first(database: Database, scope: TenantScope) -> None:
    """Best first by cosine; superseded, retired and expired memories are never an answer."""
    tea = await remember(database, scope, "Ann drinks green tea")
    tram = await remember(database, scope, "The tram runs every ten minutes")
    old = await remember(database, scope, "Ann drinks green coffee")
    await supersede(database, scope, old, tea)
    await remember(
        database, scope, "Ann drinks green milk", retired_at=NIGHT, retired_reason="outdated", external_id="gone"
    )
    await remember(database, scope, "Ann drinks green juice", expires_at=ago(hours=1))

    found = await ask(database, scope, "Ann drinks green tea")
    assert [item["id"] for item in found["results"]] == [str(tea), str(tram)]
    best = found["results"][0]
    assert best["score"] == pytest.approx(1.0, abs=1e-5)
    assert (best["kind"], best["status"], best["evidence"]) == ("memory", "current", [])
    assert best["signals"]["cosine"] == pytest.approx(1.0, abs=1e-5)
    assert best["score"] > found["results"][1]["score"]
    assert datetime.fromisoformat(best["observed_at"]).tzinfo is not None
    assert len((await ask(database, scope, "tea", k=1))["results"]) == 1


async def test_recall_records_the_use_of_what_it_returns_only(database: Database, scope: TenantScope) -> None:
    """One use a returned memory, at the time of the call; none with record=False or as_of (F15)."""
    tea = await remember(database, scope, "Ann drinks green tea")
    await remember(database, scope, "The tram runs every ten minutes")
    await ask(database, scope, "green tea", k=1, record=False)
    await ask(database, scope, "green tea", k=1, as_of=NIGHT)
    assert await accesses(database, scope) == {}

    found = await ask(database, scope, "green tea", k=1)
    assert found["recorded"] == 1
    assert await accesses(database, scope) == {tea: NIGHT}
    async with database.scoped(scope) as connection:
        active = await connection.scalar(f"SELECT last_activity_at FROM memories WHERE {ROW} AND id = :id", id=tea)
    assert active == NIGHT
    assert (await ask(database, scope, "green tea", k=1))["recorded"] == 0, "the same use at the same time counts once"


async def test_a_belief_stands_before_its_memory_and_takes_the_place_of_an_equal_one(
    database: Database, scope: TenantScope
) -> None:
    """A belief ranks with its best evidence; a memory of the same words is not listed twice but counts as used."""
    same = await remember(database, scope, "Ann lives in Porto")
    more = await remember(database, scope, "Ann lives in Porto since spring")
    belief = await believe(
        database,
        scope,
        "Ann  lives in porto",
        {same: "supports", more: "supports"},
        vector_of="something else entirely",
    )
    found = await ask(database, scope, "Ann lives in Porto")
    assert [(item["kind"], item["id"]) for item in found["results"]] == [("belief", str(belief)), ("memory", str(more))]
    first = found["results"][0]
    assert first["status"] == "held"
    assert first["signals"]["evidence_cosine"] == pytest.approx(1.0, abs=1e-5)
    assert {(piece["memory_id"], piece["role"]) for piece in first["evidence"]} == {
        (str(same), "supports"),
        (str(more), "supports"),
    }
    assert set(await accesses(database, scope)) == {same, more}


async def test_a_contested_belief_stands_before_either_of_its_sides(database: Database, scope: TenantScope) -> None:
    """Whichever side a question is nearer to, that the matter is contested is told first; a held one gains nothing."""
    one = await remember(database, scope, "The boat leaves from pier four")
    other = await remember(database, scope, "The ferry goes from the old harbour")
    sides = {one: "supports", other: "contradicts"}
    contested = await believe(database, scope, "pier or harbour", sides, status="contested", vector_of="quite another")
    held = await believe(database, scope, "pier it is", sides, vector_of="quite another thing")
    for question in ("The boat leaves from pier four", "The ferry goes from the old harbour"):
        found = (await ask(database, scope, question))["results"]
        assert found[0]["id"] == str(contested) or found[1]["id"] == str(contested), "no memory stands before it"
        assert found[0]["kind"] == "belief"
    assert found[0]["id"] != str(held), "what speaks against a held belief lends it nothing"


async def test_exact_duplicates_are_one_answer(database: Database, scope: TenantScope) -> None:
    """Two memories of the same words would fill the list with one thing."""
    await remember(database, scope, "Ann drinks green tea")
    await remember(database, scope, "ann drinks  green tea")
    found = await ask(database, scope, "green tea")
    assert len(found["results"]) == 1


async def test_a_summary_of_something_outdated_is_no_answer(database: Database, scope: TenantScope) -> None:
    """A meta-node made before one of its members gave way would repeat what is no longer so."""
    old = await remember(database, scope, "Ann lives in Leeds")
    new = await remember(database, scope, "Ann lives in Porto")
    meta = await remember(database, scope, "PERSON: Ann lives in Leeds", derived_key="meta:PERSON")
    for member in (old, new):
        await add_edge(database, scope, meta, member, "CLUSTERS", kind="clusters")

    async def ids() -> set[str]:
        return {item["id"] for item in (await ask(database, scope, "Ann lives in Leeds", record=False))["results"]}

    assert await ids() == {str(old), str(new), str(meta)}
    await supersede(database, scope, old, new)
    assert await ids() == {str(new)}
    await change(
        database, scope, f"UPDATE memory_edges SET status = 'retired' WHERE {ROW} AND target_id = :old", old=old
    )
    assert await ids() == {str(new), str(meta)}


@pytest.mark.parametrize("status", ["superseded", "stale", "retracted"])
async def test_a_belief_that_is_over_is_no_answer(database: Database, scope: TenantScope, status: str) -> None:
    """Held and contested beliefs answer, others do not, whatever supports them."""
    memory = await remember(database, scope, "Ann lives in Porto")
    await believe(database, scope, "Ann lives in Leeds", {memory: "supports"}, status=status, valid_to=NIGHT)
    contested = await believe(database, scope, "Ann lives in Rome", {memory: "contradicts"}, status="contested")
    found = await ask(database, scope, "Ann lives in Leeds")
    assert {item["id"]: item["status"] for item in found["results"] if item["kind"] == "belief"} == {
        str(contested): "contested"
    }


async def test_recall_as_of_answers_as_it_would_have_then(database: Database, scope: TenantScope) -> None:
    """What was superseded later was current then; what was recorded later was not known."""
    leeds = await remember(database, scope, "Ann lives in Leeds", observed_at=ago(days=40))
    porto = await remember(database, scope, "Ann lives in Porto", observed_at=ago(days=10))
    await supersede(database, scope, leeds, porto, at=ago(days=9))
    was = await believe(
        database,
        scope,
        "Ann lives in Leeds, it is believed",
        {leeds: "supports"},
        status="superseded",
        recorded_at=ago(days=39),
        valid_to=ago(days=9),
    )
    then = await ask(database, scope, "Ann lives in", as_of=ago(days=20))
    assert {(item["id"], item["status"]) for item in then["results"]} == {(str(leeds), "current"), (str(was), "held")}
    after = await ask(database, scope, "Ann lives in", as_of=ago(days=1))
    assert [item["id"] for item in after["results"]] == [str(porto)]
    with pytest.raises(InvalidTime, match="no time zone"):
        await ask(database, scope, "Ann", as_of=NIGHT.replace(tzinfo=None))


async def test_recall_sees_the_ancestors_and_never_a_sibling(database: Database, scope: TenantScope) -> None:
    """A conversation recalls its tenant's memories and its own; their use is recorded where they belong."""
    chat, other = scope.child("chat", "1"), scope.child("chat", "2")
    shared = await remember(database, scope, "Ann drinks green tea")
    own = await remember(database, chat, "Ann drinks green tea today")
    await remember(database, other, "Ann drinks green tea tomorrow")
    await remember(database, TenantScope.root("tenant", "globex"), "Ann drinks green tea abroad")
    found = await ask(database, chat, "Ann drinks green tea")
    assert {item["id"] for item in found["results"]} == {str(shared), str(own)}
    assert set(await accesses(database, scope)) == {shared}
    assert {item["id"] for item in (await ask(database, scope, "tea"))["results"]} == {str(shared)}


async def test_recall_counts_what_it_could_not_search(database: Database, scope: TenantScope) -> None:
    """A memory without a vector of the model is not found, and the answer says so."""
    await add_memory(database, scope, "No vector yet")
    await remember(database, scope, "Ann drinks green tea")
    found = await ask(database, scope, "vector")
    assert (len(found["results"]), found["without_vector"]) == (1, 1)


@pytest.mark.parametrize(("query", "k"), [("  ", 10), ("tea", 0), ("tea", 1001)])
async def test_recall_refuses_what_makes_no_sense(database: Database, scope: TenantScope, query: str, k: int) -> None:
    """A blank question or no results at all is bad input."""
    with pytest.raises(InvalidInput):
        await ask(database, scope, query, k=k)


async def test_harmonic_recall_lets_a_belief_stand_for_its_memories(database: Database, scope: TenantScope) -> None:
    """Its memories are its evidence and take no place of their own; the beliefs are listed by themselves too."""
    porto = await remember(database, scope, "Ann lives in Porto now")
    leeds = await remember(database, scope, "Ann lives in Leeds now")
    tram = await remember(database, scope, "The tram runs every ten minutes")
    belief = await believe(
        database, scope, "Ann lives in Porto", {porto: "supports", leeds: "contradicts"}, status="contested"
    )
    plain = await ask(database, scope, "Ann lives in Porto", record=False)
    assert [item["id"] for item in plain["results"]] == [str(belief), str(porto), str(leeds), str(tram)]
    assert "beliefs" not in plain
    found = await ask(database, scope, "Ann lives in Porto", harmonic=True)
    assert [item["id"] for item in found["results"]] == [str(belief), str(tram)]
    assert [(item["id"], item["status"]) for item in found["beliefs"]] == [(str(belief), "contested")]
    assert {piece["memory_id"] for piece in found["beliefs"][0]["evidence"]} == {str(porto), str(leeds)}
    assert set(await accesses(database, scope)) == {porto, tram}


async def test_a_memory_that_is_nearer_than_the_belief_it_contradicts_stays(
    database: Database, scope: TenantScope
) -> None:
    """Only a belief that stands before it may speak for a memory."""
    leeds = await remember(database, scope, "Ann lives in Leeds now")
    porto = await remember(database, scope, "Something about Porto")
    belief = await believe(database, scope, "Porto it is", {porto: "supports", leeds: "contradicts"})
    found = await ask(database, scope, "Ann lives in Leeds now", harmonic=True, k=1)
    assert [item["id"] for item in found["results"]] == [str(leeds)]
    assert [item["id"] for item in found["beliefs"]] == [str(belief)]
