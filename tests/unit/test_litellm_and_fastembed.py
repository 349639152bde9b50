"""Embeddings of services reached through LiteLLM, and of the extra FastEmbed."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memory_core.errors import (
    DependencyMissing,
    EmbeddingMismatch,
    ModelOutputInvalid,
    ModelRateLimited,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
)
from memory_core.models.embedding import embedding_provider, prepared_text, unit_rows
from memory_core.models.litellm_embedding import LiteLLMEmbedding

# --- LiteLLM against a real server ---

Answer = Callable[[list[str]], tuple[int, dict[str, str], Any]]


def vector_of(text: str) -> list[float]:
    """Some three numbers that tell texts apart."""
    return [1.0 + len(text), float(sum(text.encode()) % 97), -2.0]


def embeddings(texts: list[str], vector: Callable[[str], Any] = vector_of) -> dict[str, Any]:
    """A good answer, listed backwards: the index counts, not the place."""
    data = [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "x", "data": data[::-1], "usage": usage}


class EmbeddingServer:
    """Speaks `/v1/embeddings`; `answer` may be replaced, `asked` holds the texts of each request."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.keys: list[str | None] = []
        self.answer: Answer = lambda texts: (200, {}, embeddings(texts))
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                server.asked.append(texts)
                server.keys.append(self.headers["Authorization"])
                status, headers, document = server.answer(texts)
                body = json.dumps(document).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                # The test of the timeout has gone by then.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test's output clean."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def provider(self, **options: Any) -> LiteLLMEmbedding:
        """A provider that asks this server."""
        return LiteLLMEmbedding("openai/x", api_base=self.url, **({"api_key": "a-secret-of-ours"} | options))


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    thread = threading.Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield running
    running.http.shutdown()
    running.http.server_close()
    thread.join()


async def test_a_service_is_asked_in_batches_and_once_a_text(server: EmbeddingServer) -> None:
    """Distinct texts go out 64 a call; repeated ones, in this call or a later one, are not sent again."""
    provider = server.provider()
    texts = [f"note {number}" for number in range(70)]
    vectors = await provider.embed([*texts, *texts])
    assert [len(call) for call in server.asked] == [64, 6]
    assert provider.dimension == 3
    expected = unit_rows([vector_of(text) for text in texts], model="m", dimension=3)
    assert np.array_equal(vectors, np.concatenate([expected, expected]))
    assert np.array_equal((await provider.embed(texts[::-1])), expected[::-1])
    assert len(server.asked) == 2
    assert (await provider.embed([])).shape == (0, 3)


async def test_blank_and_broken_texts_reach_a_service_as_valid_ones(server: EmbeddingServer) -> None:
    """No blank text, NUL or lone surrogate is sent, and all blank texts have one vector."""
    vectors = await server.provider().embed(["", " ", "a\0b", "x\ud83d"])
    assert server.asked == [["(empty)", "ab", prepared_text("x\ud83d")]]
    assert np.array_equal(vectors[0], vectors[1])


async def test_no_key_of_another_host_is_sent(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of one's own gets the key given for it, and without one never the key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "for-another-host")
    await server.provider(api_key=None).embed(["a"])
    await server.provider().embed(["a"])
    assert server.keys == ["Bearer none", "Bearer a-secret-of-ours"]


@pytest.mark.parametrize("unset", [None, ""])
async def test_an_absent_key_is_not_worth_a_retry(monkeypatch: pytest.MonkeyPatch, unset: str | None) -> None:
    """Without any key for the provider's own address, no call is made and the error is permanent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelRejected, match="api_key"):
        await embedding_provider("litellm:openai/small", api_base=unset, api_key=unset).embed(["a"])


async def test_another_dimension_than_expected_is_refused(server: EmbeddingServer) -> None:
    """The dimension is that of the argument, else of the first answer; another one raises and stores nothing."""
    with pytest.raises(EmbeddingMismatch, match="3 dimensions where 1536"):
        await server.provider(dimension=1536).embed(["a"])
    provider = server.provider()
    await provider.embed(["a"])
    server.answer = lambda texts: (200, {}, embeddings(texts, lambda text: [1.0, 2.0]))
    with pytest.raises(EmbeddingMismatch) as caught:
        await provider.embed(["b"])
    assert (caught.value.data["expected"], caught.value.data["found"]) == (3, 2)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (lambda texts: embeddings(texts, lambda text: [1.0, float("nan")]), "not finite"),
        (lambda texts: embeddings(texts, lambda text: [1.0, float("inf")]), "not finite"),
        (lambda texts: embeddings(texts, lambda text: [0.0, 0.0]), "all zeros"),
        (lambda texts: embeddings(texts[1:]), "2 texts with 1 vectors"),
        (lambda texts: {"hello": "world"}, "not a list of embeddings"),
    ],
    ids=["nan", "infinity", "zeros", "too few", "another document"],
)
async def test_unusable_answers_of_a_service_are_refused(
    server: EmbeddingServer, document: Callable[[list[str]], Any], message: str
) -> None:
    """A service that answers nonsense politely is believed no more than one that fails."""
    server.answer = lambda texts: (200, {}, document(texts))
    with pytest.raises(ModelOutputInvalid, match=message):
        await server.provider().embed(["a", "b"])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ModelRejected),
        (401, ModelRejected),
        (403, ModelRejected),
        (404, ModelRejected),
        (429, ModelRateLimited),
        (500, ModelUnreachable),
        (503, ModelUnreachable),
    ],
)
async def test_failures_of_a_service_are_one_request_and_one_error(
    server: EmbeddingServer, capfd: pytest.CaptureFixture[str], status: int, error: type[Exception]
) -> None:
    """Each status has its place in our tree; nothing is retried in secret, printed, or told of the key."""
    said = {"error": {"message": "no: a-secret-of-ours", "type": "t", "code": None}}
    server.answer = lambda texts: (status, {"Retry-After": "7"}, said)
    with pytest.raises(error) as caught:
        await server.provider().embed(["a"])
    assert len(server.asked) == 1
    assert "a-secret-of-ours" not in str(caught.value)
    assert capfd.readouterr().out == ""
    if isinstance(caught.value, ModelRateLimited):
        assert caught.value.retry_after == 7.0


async def test_a_failed_call_loses_no_earlier_one(server: EmbeddingServer) -> None:
    """After a failure in the second batch, a retry asks for the second batch only."""
    provider = server.provider()
    texts = [f"note {number}" for number in range(70)]
    server.answer = lambda batch: (200, {}, embeddings(batch)) if len(batch) == 64 else (500, {}, {})
    with pytest.raises(ModelUnreachable):
        await provider.embed(texts)
    server.answer = lambda batch: (200, {}, embeddings(batch))
    assert (await provider.embed(texts)).shape == (70, 3)
    assert [len(call) for call in server.asked] == [64, 6, 6]


async def test_a_slow_service_times_out(server: EmbeddingServer) -> None:
    """The timeout holds for the whole call."""
    release = threading.Event()

    def slow(texts: list[str]) -> tuple[int, dict[str, str], Any]:
        release.wait(5)
        return 200, {}, embeddings(texts)

    await server.provider().embed(["warm, so that only the call is timed"])
    server.answer = slow
    started = time.perf_counter()
    with pytest.raises(ModelTimeout, match=r"0\.3"):
        await server.provider(timeout=0.3).embed(["a"])
    assert time.perf_counter() - started < 2
    server.answer = lambda texts: (200, {}, embeddings(texts))
    release.set()


async def test_nobody_at_the_address_is_unreachable(server: EmbeddingServer) -> None:
    """A refused connection may pass, so it is worth the caller's retry."""
    server.http.server_close()
    with pytest.raises(ModelUnreachable):
        await server.provider().embed(["a"])


# --- FastEmbed, the extra ---


async def test_the_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without FastEmbed, the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(DependencyMissing, match=r"slowwave\[fastembed\]"):
        await embedding_provider("fastembed:BAAI/bge-small-en-v1.5").embed(["a"])


async def test_fastembed_is_asked_one_text_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each distinct text goes through FastEmbed's documented call once, unpadded, and unknown models are refused."""
    calls: list[tuple[list[str], int]] = []

    class TextEmbedding:
        def __init__(self, model_name: str, threads: int | None) -> None:
            if model_name != "known/model":
                raise ValueError(f"Model {model_name} is not supported.")

        def embed(self, documents: list[str], batch_size: int) -> Iterator[np.ndarray]:
            calls.append((documents, batch_size))
            yield from (np.array(vector_of(text)) for text in documents)

    module = ModuleType("fastembed")
    monkeypatch.setattr(module, "TextEmbedding", TextEmbedding, raising=False)
    monkeypatch.setitem(sys.modules, "fastembed", module)
    provider = embedding_provider("fastembed:known/model")
    vectors = await provider.embed(["b", "a", "b"])
    assert calls == [(["b", "a"], 1)]
    assert np.array_equal(vectors, unit_rows([vector_of("b"), vector_of("a"), vector_of("b")], model="m", dimension=3))
    assert provider.dimension == 3
    with pytest.raises(ModelRejected, match="other/model"):
        await embedding_provider("fastembed:other/model").embed(["a"])
