"""Beliefs recalled and explained, and the resonance log."""

from __future__ import annotations

import json
import uuid

import pytest

from memory_core import get_resonance_log, recall_beliefs
from memory_core.beliefs.lineage import why
from memory_core.cli.view_why import explanation
from memory_core.database.engine import Database
from memory_core.errors import EmbeddingMismatch, InvalidInput, NotFound
from memory_core.models.embedding import embedding_provider
from memory_core.models.language import language_model
from memory_core.scope import TenantScope
from memory_core.shmr.recall import nearest_beliefs
from memory_core.shmr.resonance_log import read_resonance_log
from tests.builders import NIGHT, add_home, add_memory, add_scope, ago
from tests.knowledge import believe, change, remember
from tests.openai_server import OpenAIServer, answer
from tests.shmr_runs import beliefs, harmonize

HASH = embedding_provider("hash:64")


async def test_the_relevant_belief_is_found_among_surer_ones(database: Database, scope: TenantScope) -> None:
    """Relevance first, then confidence; the superseded statement is not a belief; a child sees it too (F25, F49)."""
    for day, place in ((9, "Oslo"), (2, "Bergen")):
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
            confidence=0.6,
        )
    for i in range(20):
        for source in ("a", "b"):
            await add_memory(
                database, scope, f"Shelf {i} holds bolts", observed_at=ago(days=5), confidence=1.0, source=source
            )
    await harmonize(database, scope)
    child = scope.child("brand", "halo")
    await add_scope(database, child)
    (query,) = await HASH.embed(["where Ann lives"])
    async with database.scoped(child) as connection:
        found = await nearest_beliefs(connection, query, model=HASH.model, top_k=3)
        assert (found[0]["content"], found[0]["status"]) == ("Ann lives in Bergen", "held")
        assert [each["role"] for each in found[0]["evidence"]] == ["supports", "superseded"]
        assert all("Oslo" not in each["content"] for each in found)
        assert all(0 < each["score"] <= 1.000001 for each in found)
        with pytest.raises(InvalidInput):
            await nearest_beliefs(connection, query, model=HASH.model, top_k=-1)
        with pytest.raises(InvalidInput):
            await nearest_beliefs(connection, [0.0] * 64, model=HASH.model)
        with pytest.raises(EmbeddingMismatch):
            await nearest_beliefs(connection, [1.0] * 8, model=HASH.model)
        assert await nearest_beliefs(connection, query, model="other") == []


async def test_why_explains_memory_and_belief(database: Database, scope: TenantScope) -> None:
    """Versions both ways, evidence, reasons, run and cluster, by id or external id; another tenant sees nothing."""
    for day, place in ((9, "Oslo"), (5, "Rome"), (2, "Bergen")):
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
            external_id=f"x-{place}",
        )
        run = await harmonize(database, scope, ago(days=day - 1))
    async with database.scoped(scope) as connection:
        document = await why(connection, "x-Rome")
        json.dumps(document)
        assert document["kind"] == "memory"
        assert document["memory"]["status"] == "superseded"
        assert document["because"].startswith("stated later")
        assert [each["content"][-4:] for each in document["versions"]] == ["Oslo", "Rome", "rgen"]
        assert {each["status"] for each in document["beliefs"]} == {"held", "superseded"}
        held = next(each for each in await beliefs(database, scope) if each["status"] == "held")
        belief = await why(connection, held["belief_id"])
        json.dumps(belief)
        assert belief["kind"] == "belief"
        assert belief["made_by"]["run"] == str(run.run.id)
        assert [(each["role"], each["external_id"]) for each in belief["evidence"]] == [
            ("supports", "x-Bergen"),
            ("superseded", "x-Rome"),
        ]
        assert [each["content"] for each in belief["overrides"]["beliefs"]] == ["Ann lives in Rome"]
        assert belief["clusters"][0]["status"] == "applied"
        with pytest.raises(NotFound):
            await why(connection, "x-nothing")
    async with database.scoped(TenantScope.root("tenant", "zeta")) as connection:
        with pytest.raises(NotFound):
            await why(connection, held["belief_id"])


async def test_the_log_lists_every_run(database: Database, scope: TenantScope) -> None:
    """Newest first, with status, model and counts; also for runs that did nothing."""
    await add_memory(database, scope, "Ann likes tea")
    await harmonize(database, scope, ago(days=0))
    await harmonize(database, scope)
    async with database.scoped(scope) as connection:
        found = await read_resonance_log(connection)
        json.dumps(found)
        assert [each["status"] for each in found] == ["nothing_changed", "insufficient_candidates"]
        assert found[0]["model"] == "rules"
        assert found[0]["parameters"]["batch_size"] == 50
        assert await read_resonance_log(connection, limit=1) == found[:1]
        assert await read_resonance_log(connection, limit=None) == found
        with pytest.raises(InvalidInput):
            await read_resonance_log(connection, limit=0)


async def test_an_exact_match_is_found_whatever_its_confidence(database: Database, scope: TenantScope) -> None:
    """Thirty surer beliefs do not hide it, negative scores are left out, and contested ones say so (F49)."""
    other = await remember(database, scope, "Shelves hold bolts")
    for i in range(30):
        await believe(database, scope, f"Shelf {i} holds bolts", {other: "supports"})
    ann = await remember(database, scope, "Ann lives in Porto")
    denied = await remember(database, scope, "Ann never lived in Porto")
    wanted = await believe(
        database, scope, "Ann lives in Porto", {ann: "supports", denied: "contradicts"}, status="contested"
    )
    await change(database, scope, "UPDATE harmonic_beliefs SET confidence = 0.2 WHERE belief_id = :id", id=wanted)
    found = await recall_beliefs(database, scope, "Ann lives in Porto", top_k=10)
    assert (found[0]["id"], found[0]["status"], found[0]["kind"]) == (str(wanted), "contested", "belief")
    assert {(each["memory_id"], each["role"]) for each in found[0]["evidence"]} == {
        (str(ann), "supports"),
        (str(denied), "contradicts"),
    }
    assert all(each["score"] > 0 for each in found)
    assert len(found) <= 10
    for query, top_k in (("", 10), (" \n", 10), ("Ann", 0), ("Ann", 1001)):
        with pytest.raises(InvalidInput):
            await recall_beliefs(database, scope, query, top_k=top_k)


async def test_equally_relevant_beliefs_come_by_confidence(database: Database, scope: TenantScope) -> None:
    """Relevance first; where it is the same the surer one is first."""
    ann = await remember(database, scope, "Ann lives in Porto")
    doubtful = await believe(database, scope, "Ann is in Porto", {ann: "supports"}, vector_of="Ann lives in Porto")
    sure = await believe(database, scope, "Ann has a home in Porto", {ann: "supports"}, vector_of="Ann lives in Porto")
    await change(database, scope, "UPDATE harmonic_beliefs SET confidence = 0.9 WHERE belief_id = :id", id=sure)
    found = await recall_beliefs(database, scope, "Ann lives in Porto")
    assert [each["id"] for each in found] == [str(sure), str(doubtful)]


async def test_the_log_is_newest_first_within_a_second_and_of_one_scope(database: Database, scope: TenantScope) -> None:
    """Five quick passes with a limit of three give the last three; another scope's are not among them."""
    child = scope.child("brand", "halo")
    await add_memory(database, child, "Ann likes tea")
    await add_memory(database, scope, "Ann likes tea")
    runs = []
    for minutes in range(5):
        runs.append(str((await harmonize(database, scope, ago(minutes=10 - minutes))).run.id))
        await harmonize(database, child, ago(minutes=10 - minutes))
    found = await get_resonance_log(database, scope, limit=3)
    assert [each["run_id"] for each in found] == runs[:1:-1]
    assert {each["scope"] for each in await get_resonance_log(database, scope, limit=None)} == {str(scope)}


async def homes(database: Database, scope: TenantScope) -> tuple[uuid.UUID, uuid.UUID]:
    """Two statements of where Ann lives; returns the earlier and the later."""
    earlier, later = [
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
            external_id=f"x-{place}",
        )
        for day, place in ((9, "Oslo"), (2, "Bergen"))
    ]
    return earlier, later


async def test_why_names_the_model_call_and_what_was_turned_down(
    database: Database, scope: TenantScope, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, model, tokens and cost of the call, each rejected proposal with its reason in words, in JSON and in text."""
    earlier, later = await homes(database, scope)
    good = {
        "subject": "Ann",
        "predicate": "lives in",
        "object": "Bergen",
        "confidence": 0.8,
        "action": "update",
        "target": "m1",
        "evidence": ["m2"],
        "contradicts": [],
        "rationale": "Said later.",
    }
    bad = {**good, "evidence": ["m7"]}
    with OpenAIServer() as server:
        server.script(answer(json.dumps({"beliefs": [bad]})), answer(json.dumps({"beliefs": [bad, good]})))
        model = language_model("openai/test", api_base=server.url, api_key="k")
        run = await harmonize(database, scope, language=model)
    assert run.summary["status"] == "harmonized"
    (held,) = await beliefs(database, scope)
    async with database.scoped(scope) as connection:
        belief, memory = await why(connection, held["belief_id"]), await why(connection, earlier)
    json.dumps([belief, memory])
    call = belief["made_by"]["model_call"]
    assert call["cache_key"] == belief["made_by"]["model_call_key"] == held["model_call_key"]
    assert (call["model"], call["prompt_tokens"], call["completion_tokens"]) == ("openai/test", 11, 7)
    assert belief["made_by"]["iteration"] == 2
    assert belief["clusters"][0]["model_call"] == call
    assert [(each["attempt"], each["reason"]) for each in belief["clusters"][0]["rejected"]] == [
        (1, "foreign_handle"),
        (2, "foreign_handle"),
    ]
    assert memory["replaced_by"] == {
        "kind": "memory",
        "id": str(later),
        "external_id": "x-Bergen",
        "content": "Ann lives in Bergen",
        "observed_at": ago(days=2).isoformat(),
        "reason": "update",
        "because": memory["because"],
        "at": NIGHT.isoformat(),
        "run": str(run.run.id),
    }
    explanation(belief)
    explanation(memory)
    text = capsys.readouterr().out
    assert f"model call {held['model_call_key']}: openai/test, 11 + 7 tokens, price unknown" in text
    assert "rejected: attempt 1, item 1: a handle is not one of the memories shown" in text
    assert "supports: Ann lives in Bergen (x-Bergen, 2026-02-27 03:00)" in text
    assert "gave way (update) 2026-03-01 03:00" in text
    assert "to the memory x-Bergen: Ann lives in Bergen" in text


async def test_why_follows_beliefs_through_their_versions(
    database: Database, scope: TenantScope, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked about any of three beliefs that replaced one another, all three are listed, oldest first."""
    for day, place in ((9, "Oslo"), (6, "Rome"), (4, "Turin"), (2, "Bergen")):
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=day),
        )
        await harmonize(database, scope, ago(days=day - 1))
    found = await beliefs(database, scope)
    assert len(found) == 3
    for each in found:
        async with database.scoped(scope) as connection:
            document = await why(connection, each["belief_id"])
        assert [version["content"][-5:] for version in document["versions"]] == [" Rome", "Turin", "ergen"]
        assert [version["status"] for version in document["versions"]] == ["superseded", "superseded", "held"]
    explanation(document)
    assert "Versions, oldest first" in capsys.readouterr().out


async def test_why_tells_what_a_belief_replaced_a_memory(database: Database, scope: TenantScope) -> None:
    """A memory that gave way to a belief names it; one that stands was replaced by nothing."""
    old = await add_memory(database, scope, "Ann lives in Oslo")
    new = await add_memory(database, scope, "Ann moved north")
    belief = await believe(database, scope, "Ann lives in Bergen", {new: "supports", old: "superseded"})
    await change(
        database,
        scope,
        "UPDATE memories SET superseded_by_belief = :belief, superseded_reason = 'update', superseded_at = :at "
        "WHERE id = :old",
        belief=belief,
        at=NIGHT,
        old=old,
    )
    async with database.scoped(scope) as connection:
        document = await why(connection, old)
        assert (document["replaced_by"]["kind"], document["replaced_by"]["id"]) == ("belief", str(belief))
        assert document["replaced_by"]["content"] == "Ann lives in Bergen"
        assert [(each["role"], each["belief_id"]) for each in document["beliefs"]] == [("superseded", str(belief))]
        assert (await why(connection, new))["replaced_by"] is None
