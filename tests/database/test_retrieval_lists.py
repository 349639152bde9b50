"""Lists of memories, beliefs and runs, and finding what a person calls by an id, over a real database."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, NotFound
from memory_core.retrieval.history import diff_of_run, list_runs, show_run
from memory_core.retrieval.listing import list_beliefs, list_memories
from memory_core.retrieval.overview import scope_states
from memory_core.retrieval.resolve import locate
from memory_core.runs.advance import advance, close_run
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import preview, record_preview
from memory_core.scope import TenantScope
from memory_core.sleep.strengthen import STEP
from tests.builders import NIGHT, add_scope, ago
from tests.knowledge import EMBEDDING, ROW, believe, change, remember, supersede


async def listed(database: Database, scope: TenantScope, **options):
    async with database.scoped(scope) as connection:
        return await list_memories(connection, now=NIGHT, **options)


async def test_memories_are_listed_by_status_layer_and_label(database: Database, scope: TenantScope) -> None:
    """Each memory has one status, and what replaced or retired it is told with it; no label is a pattern (F39)."""
    new = await remember(database, scope, "Ann lives in Porto", label="PERSON: Ann", external_id="m-2")
    old = await remember(database, scope, "Ann lives in Leeds", label="PERSON: Ann", external_id="m-1")
    await supersede(database, scope, old, new)
    gone = await remember(database, scope, "Noise", retired_at=NIGHT, retired_reason="orphan: nothing links to it")
    over = await remember(database, scope, "Offer", expires_at=ago(hours=1), layer="working")
    percent = await remember(database, scope, "Odd label", label="PERSON% x")

    async def ids(**options) -> set[str]:
        return {row["id"] for row in (await listed(database, scope, **options))["memories"]}

    assert await ids() == {str(new), str(percent)}
    assert await ids(status="superseded") == {str(old)}
    assert await ids(status="retired") == {str(gone)}
    assert await ids(status="expired") == {str(over)}
    assert await ids(status="all") == {str(id) for id in (new, old, gone, over, percent)}
    assert await ids(status="all", layer="working") == {str(over)}
    assert await ids(status="all", label_prefix="PERSON:") == {str(new), str(old)}
    assert await ids(label_prefix="PERSON%") == {str(percent)}

    superseded = (await listed(database, scope, status="superseded"))["memories"][0]
    assert superseded["superseded_by"] == str(new)
    assert superseded["superseded_reason"] == "update"
    assert superseded["external_id"] == "m-1"
    assert "risk" not in superseded
    retired = (await listed(database, scope, status="retired"))["memories"][0]
    assert retired["retired_reason"] == "orphan: nothing links to it"
    with pytest.raises(InvalidInput, match="no status 'old'"):
        await listed(database, scope, status="old")
    with pytest.raises(InvalidInput, match="no layer 'deep'"):
        await listed(database, scope, layer="deep")


async def test_a_risk_is_told_with_the_memory(database: Database, scope: TenantScope) -> None:
    """A tagged memory says which words earned the tag and when."""
    memory = await remember(database, scope, "The deploy may crash")
    await change(
        database,
        scope,
        f"UPDATE memory_state SET risk_words = '[\"crash\"]', risk_tagged_at = :at WHERE {ROW} AND memory_id = :id",
        at=NIGHT,
        id=memory,
    )
    row = (await listed(database, scope))["memories"][0]
    assert row["risk"] == {"words": ["crash"], "tagged_at": NIGHT.isoformat()}


async def test_pages_cover_everything_once(database: Database, scope: TenantScope) -> None:
    """Keyset pages neither repeat nor miss a memory, also among equal times."""
    made = {str(await remember(database, scope, f"Fact {number}", observed_at=ago(hours=5))) for number in range(7)}
    seen: list[str] = []
    after = None
    while True:
        page = await listed(database, scope, limit=3, after=after)
        seen += [row["id"] for row in page["memories"]]
        if page["next"] is None:
            break
        after = uuid.UUID(page["next"])
    assert len(seen) == 7
    assert set(seen) == made
    with pytest.raises(NotFound):
        await listed(database, scope, after=uuid.uuid4())
    with pytest.raises(InvalidInput, match="at least 1"):
        await listed(database, scope, limit=0)


async def test_beliefs_are_listed_with_their_evidence(database: Database, scope: TenantScope) -> None:
    """Held and contested ones by default, each with memory, external id and role."""
    one = await remember(database, scope, "Ann lives in Porto", external_id="m-1")
    two = await remember(database, scope, "Ann lives in Leeds")
    held = await believe(database, scope, "Ann lives in Porto", {one: "supports", two: "superseded"})
    contested = await believe(database, scope, "Ann drinks", {one: "supports", two: "contradicts"}, status="contested")
    stale = await believe(database, scope, "Ann runs", {one: "supports"}, status="stale", valid_to=NIGHT)
    async with database.scoped(scope) as connection:
        believed = (await list_beliefs(connection))["beliefs"]
        every = (await list_beliefs(connection, status="all"))["beliefs"]
        only = (await list_beliefs(connection, status="stale"))["beliefs"]
        with pytest.raises(InvalidInput):
            await list_beliefs(connection, status="doubted")
    assert {row["id"] for row in believed} == {str(held), str(contested)}
    assert len(every) == 3
    assert [row["id"] for row in only] == [str(stale)]
    evidence = next(row["evidence"] for row in believed if row["id"] == str(held))
    assert [(piece["memory_id"], piece["external_id"], piece["role"]) for piece in evidence] == [
        (str(one), "m-1", "supports"),
        (str(two), None, "superseded"),
    ]


async def test_a_run_is_shown_with_its_steps_and_its_diff(database: Database, scope: TenantScope) -> None:
    """A preview's stored diff is the diff of the real run after it, and the list has both, newest first."""
    await remember(database, scope, "Ann likes tea", access_at=(ago(hours=2),))
    planned = await begin_run(database, scope, "sleep", NIGHT, {}, dry_run=True)
    context = RunContext(planned, database.settings, EMBEDDING, None)
    found = await preview(database, context, (STEP,))
    preview_id = uuid.UUID(await record_preview(database, context, found, {"kept": 1}, requested_by="person"))
    run = await begin_run(database, scope, "sleep", NIGHT, {})
    context = RunContext(run, database.settings, EMBEDDING, None)
    await advance(database, context, (STEP,), 0)
    await close_run(database, context, {"words": "fine"})

    async with database.scoped(scope) as connection:
        rows = await list_runs(connection)
        shown = await show_run(connection, run.id)
        before, after = await diff_of_run(connection, preview_id), await diff_of_run(connection, run.id)
        previewed = await show_run(connection, preview_id)
        assert len(await list_runs(connection, limit=1)) == 1
        with pytest.raises(NotFound):
            await show_run(connection, uuid.uuid4())
    assert [(row["run_id"], row["status"], row["dry_run"]) for row in rows] == [
        (str(run.id), "applied", False),
        (str(preview_id), "previewed", True),
    ]
    assert shown["report"] == {"words": "fine"}
    assert [(step["step"], step["status"], step["changed"]) for step in shown["steps"]] == [("strengthen", "done", 1)]
    assert "diff" not in previewed["report"]
    assert before["diff"] == after["diff"]
    assert after["counts"]["memory_state"] == {"changed": 1, "created": 0}


async def test_an_id_is_found_whole_by_its_start_or_by_an_external_id(database: Database, scope: TenantScope) -> None:
    """Whatever a person copies from a list names the row it came from, in whichever scope it is."""
    chat = scope.child("chat", "1")
    memory = await remember(database, scope, "Ann likes tea", external_id="m-1")
    below = await remember(database, chat, "Ann likes tea", external_id="m-2")
    belief = await believe(database, chat, "Ann likes tea", {below: "supports"})
    both = [scope, chat]
    for text in (str(memory), str(memory)[:8], str(memory).upper(), memory.hex, "m-1"):
        assert (await locate(database, both, text, ["memory"])).id == memory
    located = await locate(database, both, str(belief)[:13], ["memory", "belief"])
    assert (located.kind, located.id, located.scope) == ("belief", belief, chat)
    assert (await locate(database, [chat], "m-1", ["memory"], ancestors=True)).scope == scope
    with pytest.raises(NotFound):
        await locate(database, [chat], "m-1", ["memory"])
    with pytest.raises(NotFound, match="no run"):
        await locate(database, both, str(memory), ["run"])
    with pytest.raises(NotFound, match="at least 8 digits"):
        await locate(database, both, str(memory)[:7], ["memory"])
    with pytest.raises(InvalidInput, match="blank"):
        await locate(database, both, " ", ["memory"])


async def test_what_names_several_things_is_refused_with_a_list(database: Database, scope: TenantScope) -> None:
    """An external id in two scopes, or a start that two ids share, is not guessed at."""
    other = TenantScope.root("tenant", "globex")
    first = await remember(database, scope, "Ann likes tea", external_id="m-1")
    second = await remember(database, other, "Ann likes tea", external_id="m-1")
    with pytest.raises(InvalidInput, match="may mean 2 things") as caught:
        await locate(database, [scope, other], "m-1", ["memory"])
    assert {item["id"] for item in caught.value.data["candidates"]} == {str(first), str(second)}
    assert (await locate(database, [other], "m-1", ["memory"])).id == second
    named = await remember(database, scope, "Named like an id", external_id=str(first)[:8])
    assert (await locate(database, [scope], str(first)[:8], ["memory"])).id == named


async def test_scopes_are_told_with_their_backlog(database: Database, scope: TenantScope) -> None:
    """Each known scope of every tenant, with what it holds and what waits."""
    await remember(database, scope, "Ann likes tea", observed_at=ago(days=2))
    await add_scope(database, scope.child("chat", "1"))
    states = await scope_states(database)
    assert [(state["scope"], state["memories"], state["backlog"]) for state in states] == [
        ("tenant=acme", 1, 1),
        ("tenant=acme/chat=1", 0, 0),
    ]
    assert states[0]["last_slept_at"] is None
    assert datetime.fromisoformat(states[0]["waiting_since"]) == ago(days=2).astimezone(UTC)
