"""The language-model port and its LiteLLM adapter, against a real HTTP server of our own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memory_core.errors import (
    InvalidInput,
    InvalidSettings,
    ModelOutputInvalid,
    ModelRateLimited,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    SlowwaveError,
    TransientError,
)
from memory_core.models.endpoints import endpoints
from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest, language_model
from memory_core.models.model_errors import load_litellm


def _load_server_module() -> ModuleType:
    """The test server, by its path: with import-mode importlib the folder of tests is no package."""
    path = Path(__file__).parents[1] / "openai_server.py"
    if "openai_server" not in sys.modules:
        spec = importlib.util.spec_from_file_location("openai_server", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["openai_server"] = module
        spec.loader.exec_module(module)
    return sys.modules["openai_server"]


fake = _load_server_module()

REQUEST = ModelRequest(
    purpose="harmonize",
    model="openai/test",
    system="Be brief.",
    prompt="What do you see?",
    response_schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    temperature=0.2,
    max_output_tokens=64,
    schema_version=1,
)


@pytest.fixture(scope="module", autouse=True)
def _litellm_is_loaded() -> None:
    """Pay for the import once, outside of the timeouts under test."""
    load_litellm()


@pytest.fixture
def server() -> Iterator[Any]:
    """A fresh server without a script."""
    with fake.OpenAIServer() as running:
        yield running


def model_at(server: Any, names: str = "openai/test", **options: Any) -> LanguageModel:
    """The model under test."""
    found = language_model(names, **{"api_base": server.url, "api_key": "test-key", "timeout": 10.0, **options})
    assert found is not None
    return found


async def test_an_answer_comes_with_its_tokens_and_duration(server: Any) -> None:
    """One request goes out as configured; text, counts and model come back."""
    server.script(fake.answer('{"beliefs": []}', usage=(123, 45)))
    answer = await model_at(server).complete(REQUEST)
    assert (answer.text, answer.model, answer.finish_reason) == ('{"beliefs": []}', "openai/test", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost) == (123, 45, None)
    assert 0 <= answer.duration_ms < 10_000
    (sent,) = server.posts()
    assert sent.headers["authorization"] == "Bearer test-key"
    assert sent.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What do you see?"},
    ]
    assert (sent.body["model"], sent.body["temperature"], sent.body["max_tokens"]) == ("test", 0.2, 64)
    assert "response_format" not in sent.body


async def test_a_known_model_gets_the_schema_and_a_price(server: Any) -> None:
    """Where LiteLLM knows that a model takes a schema and what it costs, both are used."""
    server.script(fake.answer("{}", usage=(1000, 1000)))
    request = replace(REQUEST, model="openai/gpt-4o-mini")
    answer = await model_at(server, "openai/gpt-4o-mini").complete(request)
    schema = server.posts()[0].body["response_format"]["json_schema"]
    assert schema == {"name": "harmonize", "schema": REQUEST.response_schema, "strict": True}
    assert answer.cost is not None
    assert 0 < answer.cost < 0.1


async def test_missing_usage_counts_as_zero(server: Any) -> None:
    """A server that does not count tokens is no failure."""
    server.script(fake.answer("x", usage=None))
    answer = await model_at(server).complete(REQUEST)
    assert (answer.prompt_tokens, answer.completion_tokens) == (0, 0)


FAULTS: list[tuple[Any, type[SlowwaveError], dict[str, Any]]] = [
    (fake.rate_limit(1.5), ModelRateLimited, {"retry_after": 1.5, "status": 429}),
    (fake.rate_limit(), ModelRateLimited, {"retry_after": None}),
    (fake.status(500), ModelUnreachable, {}),
    (fake.status(502), ModelUnreachable, {}),
    (fake.status(503), ModelUnreachable, {"status": 503}),
    (fake.status(401), ModelRejected, {"reason": "key"}),
    (fake.status(403), ModelRejected, {"reason": "key"}),
    (fake.status(404), ModelRejected, {"reason": "unknown_model"}),
    (fake.status(400), ModelRejected, {"reason": "bad_request"}),
    (fake.status(400, "This model's maximum context length is 10 tokens."), ModelRejected, {"reason": "too_long"}),
    (fake.cut_connection(), ModelUnreachable, {}),
    (fake.cut_connection("middle"), ModelUnreachable, {}),
    (fake.garbage(), ModelUnreachable, {}),
    (fake.truncated('[{"subject": "a"'), ModelOutputInvalid, {"reason": "truncated", "prompt_tokens": 11}),
    (fake.refusal(), ModelOutputInvalid, {"reason": "refused", "completion_tokens": 7}),
    (fake.content_filter(), ModelOutputInvalid, {"reason": "content_filter"}),
    (fake.answer(" \n"), ModelOutputInvalid, {"reason": "empty"}),
]


@pytest.mark.parametrize(("fault", "kind", "data"), FAULTS)
async def test_each_fault_is_one_error_after_one_request(
    server: Any, fault: Any, kind: type[SlowwaveError], data: dict[str, Any]
) -> None:
    """No fault is retried here, and each arrives as the error that decides whether the caller retries."""
    server.script(fault, fake.answer("too late"))
    with pytest.raises(kind) as caught:
        await model_at(server).complete(REQUEST)
    assert len(server.posts()) == 1
    assert data.items() <= caught.value.data.items()
    assert caught.value.data["model"] == "openai/test"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.data) == (kind, caught.value.data)
    json.dumps(caught.value.to_dict())


async def test_a_slow_model_times_out_in_time(server: Any) -> None:
    """The limit is for the whole call, and the error is worth a retry."""
    server.script(fake.slow(20))
    with pytest.raises(ModelTimeout, match=r"within 0\.3 s") as caught:
        await model_at(server, timeout=0.3).complete(REQUEST)
    assert isinstance(caught.value, TransientError)


async def test_a_key_never_appears_in_an_error(server: Any) -> None:
    """Providers repeat the key in their message; ours does not."""
    server.script(fake.status(401, "Incorrect API key provided: sk-secret1234567890"))
    with pytest.raises(ModelRejected) as caught:
        await model_at(server, api_key="sk-secret1234567890").complete(REQUEST)
    assert "secret" not in json.dumps(caught.value.to_dict())
    assert "secret" not in repr(endpoints(["openai/x"], api_base=server.url, api_key="sk-secret"))


async def test_nothing_is_printed_on_stdout(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """`--json` prints one document on stdout; a failing model must not add to it."""
    server.script(fake.status(500))
    with pytest.raises(ModelUnreachable):
        await model_at(server).complete(REQUEST)
    assert capfd.readouterr().out == ""


async def test_the_next_model_is_asked_only_when_one_is_unreachable(server: Any) -> None:
    """A dead local server hands over to the next model; a rate limit or a refused key does not."""
    with fake.OpenAIServer() as gone:
        dead = gone.url
    names = f"openai/local@{dead},openai/second"
    model = model_at(server, names)
    request = replace(REQUEST, model=model.name)
    server.script(fake.answer("hello"))
    answer = await model.complete(request)
    assert (answer.text, answer.model, model.name) == ("hello", "openai/second", "openai/local,openai/second")
    with fake.OpenAIServer() as first:
        first.script(fake.rate_limit(1), fake.status(401))
        model = model_at(server, f"openai/local@{first.url},openai/second")
        with pytest.raises(ModelRateLimited):
            await model.complete(request)
        with pytest.raises(ModelRejected):
            await model.complete(request)
        assert first.posts()[0].headers["authorization"] == "Bearer none"
    assert len(server.posts()) == 1


async def test_the_last_unreachable_model_is_the_error(server: Any) -> None:
    """With no model left, the error is unreachable and names the last one tried."""
    server.script(fake.status(503), fake.status(503))
    model = model_at(server, "openai/a,openai/b")
    with pytest.raises(ModelUnreachable) as caught:
        await model.complete(replace(REQUEST, model=model.name))
    assert caught.value.data["model"] == "openai/b"
    assert len(server.posts()) == 2


async def test_a_request_for_another_model_is_refused(server: Any) -> None:
    """The cache key names the model, so that answering with another one would poison the cache."""
    with pytest.raises(InvalidInput, match="openai/other"):
        await model_at(server).complete(replace(REQUEST, model="openai/other"))
    assert server.requests == []


def test_one_model_serves_one_event_loop_after_another(server: Any) -> None:
    """Flows start loops of their own; nothing kept from the first may break the second."""
    server.script(fake.answer("one"), fake.answer("two"))
    model = model_at(server)
    answers: list[ModelAnswer] = [asyncio.run(model.complete(REQUEST)) for _ in range(2)]
    assert [answer.text for answer in answers] == ["one", "two"]


async def test_check_costs_no_tokens_and_tells_the_states_apart(server: Any) -> None:
    """A running server passes without a POST; a stopped one is unreachable; one of two is enough."""
    await model_at(server).check()
    assert [request.path for request in server.requests] == ["/v1/models"]
    with fake.OpenAIServer() as gone:
        dead = gone.url
    with pytest.raises(ModelUnreachable, match="Nothing answers"):
        await model_at(server, api_base=dead).check()
    await model_at(server, f"openai/local@{dead},openai/second").check()


async def test_check_names_a_missing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address and a key, the check says which variable is missing and contacts nobody."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = language_model("openai/gpt-4o-mini")
    assert model is not None
    with pytest.raises(ModelRejected, match="OPENAI_API_KEY"):
        await model.check()


@pytest.mark.parametrize("names", ["", "rules", " rules ", [], ["rules"], ["", " "]])
def test_no_model_is_the_default(names: Any) -> None:
    """`rules` and nothing both mean that no model is asked."""
    assert language_model(names) is None


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("rules,openai/x", {}),
        ("gpt-4", {}),
        ("openai/", {}),
        ("/x", {}),
        ("openai/a b", {}),
        ("openai/x,openai/x", {}),
        ("openai/x", {"api_base": "localhost:8000"}),
        ("openai/x", {"timeout": 0}),
        ("openai/x", {"timeout": float("nan")}),
    ],
)
def test_a_wrong_configuration_is_refused_at_once(names: str, options: dict[str, Any]) -> None:
    """A mistake shows when the setting is read, not in the middle of the night."""
    with pytest.raises(InvalidSettings):
        language_model(names, **options)


def test_address_and_key_go_only_where_they_belong() -> None:
    """The address covers the first model's provider; another provider never sees the address or the key."""
    found = endpoints(
        ["openai/a", "openai/b", "anthropic/c", "openai/d@https://example.org/v1"],
        api_base="http://here/v1",
        api_key="k",
    )
    assert [(endpoint.api_base, endpoint.api_key) for endpoint in found] == [
        ("http://here/v1", "k"),
        ("http://here/v1", "k"),
        (None, None),
        ("https://example.org/v1", "none"),
    ]


def test_the_ambient_key_is_not_sent_to_an_address_of_ones_own(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_API_KEY in the environment is for OpenAI, not for the server in the next room."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ambient")
    server.script(fake.answer("x"))
    asyncio.run(model_at(server, api_key=None).complete(REQUEST))
    assert "sk-ambient" not in json.dumps(server.posts()[0].headers)


def test_the_cache_key_covers_everything_that_changes_the_answer() -> None:
    """Each field but the purpose changes the key; equal content in another order does not."""
    changes: dict[str, Any] = {
        "model": "openai/other",
        "system": "",
        "prompt": "Else?",
        "response_schema": None,
        "temperature": 0.3,
        "max_output_tokens": 65,
        "schema_version": 2,
    }
    keys = {replace(REQUEST, **{name: value}).cache_key() for name, value in changes.items()}
    assert len(keys | {REQUEST.cache_key()}) == len(changes) + 1
    assert replace(REQUEST, purpose="reflect").cache_key() == REQUEST.cache_key()
    assert REQUEST.response_schema is not None
    backwards = dict(reversed(REQUEST.response_schema.items()))
    assert replace(REQUEST, response_schema=backwards).cache_key() == REQUEST.cache_key()
    assert replace(REQUEST, temperature=1).cache_key() == replace(REQUEST, temperature=1.0).cache_key()
    assert replace(REQUEST, prompt="\ud800").cache_key() != REQUEST.cache_key()


@pytest.mark.parametrize(
    "change", [{"prompt": " "}, {"temperature": float("nan")}, {"temperature": 2.1}, {"max_output_tokens": 0}]
)
def test_an_impossible_request_is_refused(change: dict[str, Any]) -> None:
    """A request that no provider can answer is not made."""
    with pytest.raises(InvalidInput):
        replace(REQUEST, **change)


def test_configuring_a_model_imports_no_provider_library() -> None:
    """The command line starts fast: litellm is imported at the first call, not by the configuration."""
    code = (
        "import sys; from memory_core.models.language import language_model;"
        "assert language_model('openai/x') is not None;"
        "sys.exit(sum(name in sys.modules for name in ('litellm', 'openai', 'httpx')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


def test_loading_litellm_reads_no_file_and_asks_no_network(tmp_path: Path) -> None:
    """A .env file in the working folder configures nothing, and no connection is opened at import."""
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-a-file\n")
    code = (
        "import os, socket\n"
        "def refuse(*_): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = refuse\n"
        "from memory_core.models.model_errors import load_litellm\n"
        "load_litellm()\n"
        "raise SystemExit(1 if os.environ.get('OPENAI_API_KEY') else 0)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "LITELLM"))}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_first_call_says_nothing_on_stderr(server: Any) -> None:
    """Parts of litellm are imported by its first call, and warn of their own types; that is nobody's concern here."""
    server.script(fake.answer("[]"))
    code = (
        "import asyncio, sys\n"
        "from memory_core.models.language import ModelRequest, language_model\n"
        "model = language_model('openai/x', api_base=sys.argv[1], api_key='k')\n"
        "print(asyncio.run(model.complete(ModelRequest('a', 'openai/x', '', 'hi', None, 0.1, 10, 1))).text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server.url],
        cwd=Path(__file__).parents[2],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
