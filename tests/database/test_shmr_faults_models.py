"""Faults that an earlier system showed when its models failed (F1 to F10), each in its right form."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from memory_core import harmonize as harmonize_scope
from memory_core import recall_beliefs
from memory_core.database.engine import Database
from memory_core.errors import TransientError
from memory_core.models.embedding import embedding_provider
from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest, language_model
from memory_core.models.model_errors import load_litellm
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory, ago
from tests.openai_server import Behaviour, OpenAIServer, RecordedRequest, answer, status
from tests.scripted_model import PEOPLE, Scripted, homes, items, many_homes, moved
from tests.shmr_runs import beliefs, harmonize, rows, superseded, waiting


@pytest.fixture(scope="module", autouse=True)
def _litellm_is_loaded() -> None:
    """Pay for the import once, outside of what is timed."""
    load_litellm()


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    """A provider that says of everybody that they live in Bergen now."""
    with OpenAIServer(otherwise=lambda request: answer(moved(request.text))) as running:
        yield running


def at(server: OpenAIServer) -> LanguageModel:
    """The model that the server serves."""
    found = language_model("openai/test", api_base=server.url, api_key="k", timeout=5)
    assert found is not None
    return found


async def test_the_shipped_parts_work_together(settings: Settings, scope: TenantScope) -> None:
    """F1: the migrated schema, the default embedding and the library's own entry points reconcile two statements."""
    shipped = settings.model_copy(update={"embedding": "minilm"})
    async with Database.open(shipped) as database:
        old, new = await homes(database, scope)
        found = await harmonize_scope(database, scope, as_of=NIGHT)
        assert (found["status"], found["beliefs_generated"], found["contradictions_resolved"]) == ("harmonized", 1, 1)
        assert await superseded(database, scope) == {old: (new, "update")}
        (recalled,) = await recall_beliefs(database, scope, "where does Ann live?")
        assert recalled["content"] == "Ann lives in Bergen"


@pytest.mark.parametrize("name", ["minilm", "hash:64"])
async def test_a_text_has_one_vector_whatever_its_length(database: Database, scope: TenantScope, name: str) -> None:
    """F2: three letters and thirty words get one vector each, of the dimension that the provider names."""
    provider = embedding_provider(name)
    texts = ["tea", "coffee", "tea " * 30]
    assert (await provider.embed(texts)).shape == (3, provider.dimension)
    for text in texts:
        await add_memory(database, scope, text)
    await harmonize(database, scope, embedding=provider)
    kept = await rows(
        database, scope, "SELECT model, dimension, vector_dims(embedding) AS length FROM memory_embeddings"
    )
    assert [tuple(row.values()) for row in kept] == [(name, provider.dimension, provider.dimension)] * 3


async def test_a_server_of_ones_own_is_reached_with_all_it_needs(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F3: system message and temperature arrive at a server on this machine, and its answer is applied."""
    old, new = await homes(database, scope)
    await harmonize(database, scope, language=at(provider), settings={"shmr": {"temperature": 0.3}})
    (post,) = provider.posts()
    assert [message["role"] for message in post.body["messages"]] == ["system", "user"]
    assert post.body["temperature"] == 0.3
    assert await superseded(database, scope) == {old: (new, "update")}


async def test_a_wrong_adapter_is_no_quiet_night(database: Database, scope: TenantScope) -> None:
    """F3: a model that cannot be called as it is called fails the step with its error, and everything waits."""

    class Misfit(Scripted):
        async def complete(self, request: ModelRequest) -> ModelAnswer:
            raise TypeError("unexpected keyword argument 'system'")

    ids = await homes(database, scope)
    run = await harmonize(database, scope, language=Misfit("[]"))
    assert (run.status, run.summary["status"]) == ("partial", "failed")
    assert "unexpected keyword argument 'system'" in run.summary["reason"]
    assert await waiting(database, scope) == set(ids)
    (logged,) = await rows(database, scope, "SELECT status FROM memory_resonance_log")
    assert logged["status"] == "failed"


def embedding_server(broken: Callable[[str], list[float] | None]) -> OpenAIServer:
    """A provider of embeddings that gives some texts another vector."""

    def behave(request: RecordedRequest) -> Behaviour:
        given = request.body["input"]
        texts = [given] if isinstance(given, str) else given
        data = []
        for index, text in enumerate(texts):
            vector = broken(text)
            if vector is None:
                vector = [1.0 + (len(text) % 7), 2.0, float(index + 1), 0.5]
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Behaviour(raw=json.dumps({"object": "list", "model": "test", "data": data, "usage": usage}))

    return OpenAIServer(otherwise=behave)


@pytest.mark.parametrize(
    "vector",
    [[float("nan")] * 4, [0.0] * 4, [1.0, 2.0]],
    ids=["NaN", "zeros", "another dimension"],
)
async def test_a_bad_vector_is_left_out_and_counted(
    database: Database, scope: TenantScope, vector: list[float]
) -> None:
    """F4: the text it was given for waits alone, night after night, and is counted; the others are harmonised."""
    (bad, _), (old, new), *_ = await many_homes(database, scope, 6)
    with embedding_server(lambda text: vector if text == f"{PEOPLE[0]} lives in Oslo" else None) as server:
        provider = embedding_provider("litellm:openai/test", api_base=server.url, api_key="k", dimension=4)
        for night in (1, 2):
            run = await harmonize(database, scope, ago(hours=2 - night), embedding=provider)
            assert (await superseded(database, scope))[old] == (new, "update")
            assert await waiting(database, scope) == {bad}
            assert "embedding unavailable" in run.summary["reason"]
    logged = await rows(database, scope, "SELECT status, counts FROM memory_resonance_log ORDER BY as_of")
    assert [row["status"] for row in logged] == ["partial", "embedding_unavailable"]
    assert [row["counts"]["no_vector"] for row in logged] == [1, 1]
    assert (
        await rows(
            database, scope, "SELECT 1 FROM memory_embeddings WHERE memory_id = :id AND aspect = 'content'", id=bad
        )
        == []
    )


async def test_a_model_without_one_usable_vector_is_asked_a_bounded_number_of_times(
    database: Database, scope: TenantScope
) -> None:
    """F4: the run ends, its row says what was wrong, nothing is stored, and the next night does the work."""
    for number in range(40):
        await add_memory(database, scope, f"Shelf {number} is in hall {number % 7}")
    with embedding_server(lambda _: [0.0] * 4) as server:
        provider = embedding_provider("litellm:openai/test", api_base=server.url, api_key="k")
        run = await harmonize(database, scope, embedding=provider)
        assert len(server.posts()) < 60
    assert (run.status, run.summary["status"]) == ("applied", "embedding_unavailable")
    assert await rows(database, scope, "SELECT 1 FROM memory_embeddings") == []
    assert len(await waiting(database, scope)) == 40
    assert (await harmonize(database, scope)).summary["status"] != "embedding_unavailable"


async def test_each_way_to_say_nothing_has_its_own_status(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F5: nobody there, unreadable, turned down, nothing to say and agreed are five statuses of five clusters."""
    await many_homes(database, scope, 5)
    by_name = {
        PEOPLE[0]: status(503),
        PEOPLE[1]: answer("I would rather not say."),
        PEOPLE[2]: answer(items({"subject": PEOPLE[2], "confidence": 3})),
        PEOPLE[3]: answer("[]"),
    }

    def behave(request: RecordedRequest) -> Behaviour:
        found = next((each for name, each in by_name.items() if f'"subject": "{name}"' in request.text), None)
        return found or answer(moved(request.text))

    provider.otherwise = behave
    run = await harmonize(database, scope, language=at(provider))
    assert run.summary["clusters"] == {
        "model_unavailable": 1,
        "parse_error": 1,
        "rejected": 1,
        "nothing_to_say": 1,
        "applied": 1,
    }
    reasons = await rows(
        database, scope, "SELECT status, reason FROM memory_resonance_clusters WHERE status <> 'applied'"
    )
    assert len({row["reason"] for row in reasons}) == 4


async def test_an_absent_model_costs_no_call_and_no_sleep(database: Database, scope: TenantScope) -> None:
    """F5: eight clusters and nobody at the address: one look, no call for any of them, and the status says so."""
    pairs = await many_homes(database, scope, 8)
    with OpenAIServer() as gone:
        model = at(gone)
    started = time.monotonic()
    run = await harmonize(database, scope, language=model)
    assert time.monotonic() - started < 6
    assert (run.summary["status"], run.summary["model_calls"]) == ("model_unavailable", 0)
    assert run.summary["clusters"] == {"model_unavailable": 8}
    assert await waiting(database, scope) == {memory_id for pair in pairs for memory_id in pair}


@pytest.mark.parametrize("name", ["rules", "openai/gpt-4o-mini"])
async def test_nothing_leaves_the_machine_unasked(
    database: Database, scope: TenantScope, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """F6: without a model, and with one whose key nobody gave, no host is looked up and no connection opened."""
    reached: list[object] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            reached.append(address)
            raise OSError("no network in this test")
        connect(self, address)

    def looked_up(*arguments: object, **_: object) -> Sequence[object]:
        reached.append(arguments)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    for variable in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    await add_memory(database, scope, "The salary of Ann is 123", subject="Ann", predicate="salary", object="123")
    await add_memory(
        database, scope, "The salary of Ann is 456", subject="Ann", predicate="salary", object="456",
        observed_at=ago(hours=1),
    )  # fmt: skip
    run = await harmonize(database, scope, language=language_model(name))
    assert reached == []
    assert run.summary["status"] == ("harmonized" if name == "rules" else "model_unavailable")


async def test_an_empty_list_is_believed_at_once(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F7: one call, a status of its own, a remembered decision, and no second question the next night."""
    await homes(database, scope)
    provider.otherwise = answer('{"beliefs": []}')
    run = await harmonize(database, scope, ago(hours=1), language=at(provider))
    assert run.summary["clusters"] == {"nothing_to_say": 1}
    assert [row["verdict"] for row in await rows(database, scope, "SELECT verdict FROM decisions")] == [
        "nothing_to_say"
    ]
    await harmonize(database, scope, language=at(provider))
    assert len(provider.posts()) == 1


async def test_one_cluster_in_trouble_is_retried_alone(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F8: the others are asked once; the step asks to be tried again, and then only what failed is asked about."""
    pairs = await many_homes(database, scope, 3)
    failing = [True]

    def behave(request: RecordedRequest) -> Behaviour:
        in_trouble = failing[0] and f'"subject": "{PEOPLE[1]}"' in request.text
        return status(503) if in_trouble else answer(moved(request.text))

    provider.otherwise = behave
    with pytest.raises(TransientError):
        await harmonize(database, scope, language=at(provider), last_attempt=False)
    run = await harmonize(database, scope, language=at(provider))
    assert run.run.resumed
    assert run.summary["clusters"] == {"applied": 2, "model_unavailable": 1}
    assert await waiting(database, scope) == set(pairs[1])
    assert len(provider.posts()) == 4
    failing[0] = False
    assert (await harmonize(database, scope, language=at(provider))).summary["clusters"] == {"applied": 1}
    assert len(provider.posts()) == 5


async def test_every_rejected_item_has_its_reason(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F9: items of wrong types are turned down one by one with place and reason, and the raw answer is kept."""
    await homes(database, scope)
    bad = items({"object": ["Bergen"]}, {"confidence": "sure"}, {"evidence": "m2"})
    provider.otherwise = answer(bad)
    await harmonize(database, scope, language=at(provider))
    (cluster,) = await rows(database, scope, "SELECT status, rejected FROM memory_resonance_clusters")
    first = [(each["item"], each["reason"]) for each in cluster["rejected"] if each["attempt"] == 1]
    assert (cluster["status"], first) == ("rejected", [(0, "wrong_type"), (1, "bad_confidence"), (2, "bad_handle")])
    kept = await rows(database, scope, "SELECT answer FROM model_calls")
    assert [row["answer"] for row in kept] == [bad, bad]


async def test_five_hundred_beliefs_are_five_at_most(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """F10: what is beyond the limit is turned down as such, and only what is within can be held."""
    await homes(database, scope)
    many = [{"object": f"Bergen, in flat {number}"} for number in range(500)]
    provider.otherwise = answer(items(*many))
    await harmonize(database, scope, language=at(provider))
    (cluster,) = await rows(database, scope, "SELECT rejected FROM memory_resonance_clusters")
    beyond = [each["item"] for each in cluster["rejected"] if each["reason"] == "too_many" and each["attempt"] == 1]
    assert len(beyond) == 195
    assert len(await beliefs(database, scope)) <= 5
    assert await superseded(database, scope) == {}
