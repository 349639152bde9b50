"""Summaries by a model, over a real database and a server that speaks the OpenAI protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate, undo
from memory_core.retrieval.listing import list_memories
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory
from tests.nights import change, rows, state
from tests.openai_server import OpenAIServer, answer, status

ON = {"meta_nodes": {"model_summaries": True}}


def summary(text: str = "Two teas are green.", *cites: str) -> str:
    """A model's answer of one sentence."""
    return json.dumps({"sentences": [{"text": text, "cites": list(cites or ("M1", "M2"))}]})


@pytest.fixture
def model() -> Any:
    """A server that answers as told."""
    with OpenAIServer() as running:
        yield running


@pytest.fixture
async def store(database_url: str, tmp_path: Path, model: OpenAIServer) -> AsyncIterator[Database]:
    """A fresh store with a model configured."""
    settings = Settings.load(
        home=tmp_path / "home",
        database_url=database_url,
        embedding="hash:64",
        model="openai/test",
        model_api_base=model.url,
        model_api_key="k",
    )
    async with Database.open(settings) as opened:
        yield opened


async def fill(database: Database, scope: TenantScope, *prefixes: str) -> None:
    """Three memories of each prefix, unlike any other."""
    for prefix in prefixes or ("TEA",):
        for number, text in enumerate(("sencha from Japan", "longjing from China", "rooibos is red")):
            await add_memory(database, scope, f"{prefix} {text}", label=f"{prefix}: {number}")


async def sleep(database: Database, scope: TenantScope, day: int = 0, **asked: Any) -> dict[str, Any]:
    """A sleep with model summaries; its document."""
    settings = {**ON, **asked.pop("settings", {})}
    (document,) = await consolidate(
        database, [scope], "sleep", NIGHT + timedelta(days=day), parameters={"settings": settings, **asked}
    )
    return document


async def test_a_model_writes_beside_the_extractive_summary(
    store: Database, scope: TenantScope, model: OpenAIServer
) -> None:
    """Its text is in a table of its own and in the listing, never among the memories; a second night asks nothing."""
    await fill(store, scope)
    before = await state(store, scope)
    model.script(answer(summary()))
    document = await sleep(store, scope)
    assert document["status"] == "applied", document["error"]
    assert document["sleep"]["phases"]["model_summaries"]["counts"] == {"model_summaries_created": 1}
    async with store.scoped(scope) as connection:
        listed = (await list_memories(connection, now=datetime.now(UTC)))["memories"]
    (meta,) = [memory for memory in listed if memory["source"] == "meta_nodes"]
    assert meta["summary"]["content"] == "Two teas are green."
    assert len(meta["summary"]["cited"]) == 2
    assert "Two teas" not in meta["content"]
    assert not [memory for memory in listed if "Two teas" in memory["content"]]
    asked = len(model.posts())
    again = await sleep(store, scope, day=1)
    assert (again["sleep"]["phases"]["model_summaries"]["changed"], len(model.posts())) == (0, asked)
    for run in await rows(store, scope, "SELECT id FROM runs ORDER BY as_of DESC"):
        await undo(store, scope, run["id"], at=NIGHT)
    assert await state(store, scope) == before
    again = await sleep(store, scope, day=2)
    assert again["sleep"]["phases"]["model_summaries"]["changed"] == 0


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (answer("I would rather not."), "the answer is not the JSON object"),
        (answer(summary("Made up.", "M9")), "no sentence cites"),
        (status(500), "failed"),
        (status(401), "failed"),
    ],
    ids=["prose", "foreign-handle", "500", "401"],
)
async def test_whatever_fails_the_extractive_summary_stays(
    store: Database, scope: TenantScope, model: OpenAIServer, behaviour: Any, reason: str
) -> None:
    """The run is applied, the reason is counted, nothing of the answer is kept, and the next night asks again."""
    await fill(store, scope)
    model.script(behaviour)
    document = await sleep(store, scope)
    phase = document["sleep"]["phases"]["model_summaries"]
    assert (document["status"], phase["changed"]) == ("applied", 0)
    assert any(reason in skipped for skipped in phase["skipped"])
    assert document["sleep"]["meta_nodes_created"] == 1
    assert await rows(store, scope, "SELECT 1 FROM memory_summaries") == []
    model.script(answer(summary()))
    assert (await sleep(store, scope, day=1))["sleep"]["phases"]["model_summaries"]["changed"] == 1


async def test_a_night_asks_a_bounded_number_within_its_budget(
    store: Database, scope: TenantScope, model: OpenAIServer
) -> None:
    """Most groups wait for a later night; the tenant's budget ends the asking, and the reason says so."""
    await fill(store, scope, "TEA", "BREAD", "BIKE")
    model.script(answer(summary()), answer(summary()))
    few = {"meta_nodes": {"model_summaries": True, "most_model_summaries": 2}}
    phase = (await sleep(store, scope, settings=few))["sleep"]["phases"]["model_summaries"]
    assert (phase["changed"], phase["skipped"]) == (2, {"left for a later night": 1})
    await change(store, scope, "UPDATE tenants SET budgets = '{\"calls\": 0}' WHERE tenant_id = :tenant_id")
    phase = (await sleep(store, scope, day=1))["sleep"]["phases"]["model_summaries"]
    assert phase["changed"] == 0
    assert "the budget is spent; the extractive summary stays" in phase["skipped"]


async def test_it_is_off_unless_switched_on(store: Database, scope: TenantScope, model: OpenAIServer) -> None:
    """A configured model alone is not asked."""
    await fill(store, scope)
    (document,) = await consolidate(store, [scope], "sleep", NIGHT)
    assert "model_summaries" not in document["sleep"]["phases"]
    assert model.posts() == []
