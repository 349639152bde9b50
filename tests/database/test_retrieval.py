"""Recall, lists, and finding what a person calls by an id, over a real database."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime, NotFound
from memory_core.models.embedding import embedding_provider
from memory_core.retrieval.history import diff_of_run, list_runs, resonance_log, show_run
from memory_core.retrieval.listing import list_beliefs, list_memories
from memory_core.retrieval.overview import scope_states
from memory_core.retrieval.resolve import locate
from memory_core.retrieval.search import recall
from memory_core.runs.advance import advance, close_run
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import preview, record_preview
from memory_core.scope import TenantScope
from memory_core.sleep.strengthen import STEP
from tests.builders import NIGHT, add_edge, add_memory, add_scope, ago

EMBEDDING = embedding_provider("hash:64")
ROW = "tenant_id = :tenant_id AND scope_path = :scope_path"


async def remember(database: Database, scope: TenantScope, content: str, **fields) -> uuid.UUID:
    """A memory with its vector."""
    vector = (await EMBEDDING.embed([content]))[0].tolist()
    return await add_memory(database, scope, content, vector=vector, **fields)


async def change(database: Database, scope: TenantScope, sql: str, **parameters) -> None:
    async with database.scoped(scope) as connection:
        result = await connection.execute(sql, **parameters)
        assert result.rowcount == 1
        await connection.commit()


async def supersede(
    database: Database, scope: TenantScope, old: uuid.UUID, new: uuid.UUID, at: datetime = NIGHT
) -> None:
    await change(
        database,
        scope,
        f"UPDATE memories SET superseded_by = CAST(:new AS uuid), superseded_reason = 'update', superseded_at = :at "
        f"WHERE {ROW} AND id = CAST(:old AS uuid)",
        old=old,
        new=new,
        at=at,
    )


async def believe(
    database: Database,
    scope: TenantScope,
    content: str,
    evidence: dict[uuid.UUID, str],
    *,
    status: str = "held",
    recorded_at: datetime = NIGHT,
    valid_to: datetime | None = None,
    vector_of: str | None = None,
) -> uuid.UUID:
    """A belief with its vector and evidence (memory to role)."""
    belief_id = uuid.uuid4()
    vector = (await EMBEDDING.embed([vector_of or content]))[0].tolist()
    await change(
        database,
        scope,
        "INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, "
        "confidence, status, valid_from, valid_to, cluster_id, model, rules_version, recorded_at) VALUES (:tenant_id, "
        ":id, :scope_path, 's', 'p', 'o', :content, 0.6, :status, :at, :valid_to, 'c', 'rules', '1', :at)",
        id=belief_id,
        content=content,
        status=status,
        at=recorded_at,
        valid_to=valid_to,
    )
    await change(
        database,
        scope,
        "INSERT INTO belief_embeddings (tenant_id, belief_id, scope_path, model, dimension, embedding) "
        "VALUES (:tenant_id, :id, :scope_path, 'hash:64', 64, CAST(:vector AS vector))",
        id=belief_id,
        vector=str(vector),
    )
    for memory_id, role in evidence.items():
        await change(
            database,
            scope,
            "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
            "VALUES (:tenant_id, :id, :memory_id, :role, :scope_path)",
            id=belief_id,
            memory_id=memory_id,
            role=role,
        )
    return belief_id


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
    assert best["signals"]["cosine"] == best["score"] > found["results"][1]["score"]
    assert datetime.fromisoformat(best["observed_at"]).tzinfo is not None
    assert len((await ask(database, scope, "tea", k=1))["results"]) == 1


async def test_recall_records_the_use_of_what_it_returns_only(database: Database, scope: TenantScope) -> None:
    """One use a returned memory, at the time of the call; none with record=False or as_of."""
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
    assert first["score"] == first["signals"]["evidence_cosine"] == pytest.approx(1.0, abs=1e-5)
    assert {(piece["memory_id"], piece["role"]) for piece in first["evidence"]} == {
        (str(same), "supports"),
        (str(more), "supports"),
    }
    assert set(await accesses(database, scope)) == {same, more}


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
    assert set(await accesses(database, chat)) == {own}
    assert await accesses(database, scope) == {}
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


async def listed(database: Database, scope: TenantScope, **options):
    async with database.scoped(scope) as connection:
        return await list_memories(connection, now=NIGHT, **options)


async def test_memories_are_listed_by_status_layer_and_label(database: Database, scope: TenantScope) -> None:
    """Each memory has one status, and what replaced or retired it is told with it."""
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
        assert await resonance_log(connection) == []
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
