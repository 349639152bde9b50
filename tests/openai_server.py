"""A real HTTP server that speaks the OpenAI protocol, for tests: scripted answers and scripted faults.

It stands where a model provider would stand, so that the adapters are tested through real sockets and a real
client library. It binds to 127.0.0.1 on a free port and never talks to anything else.

    with OpenAIServer() as server:
        server.script(rate_limit(0.1), answer('{"beliefs": []}'))
        model = language_model("openai/test", api_base=server.url, api_key="key")
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived.

    Args:
        method: `GET` or `POST`.
        path: the path with its query, such as `/v1/chat/completions`.
        headers: header names in lower case.
        body: the decoded JSON body; None where there was none.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def text(self) -> str:
        """All message contents of a chat request, joined by line ends."""
        return "\n".join(str(message["content"]) for message in (self.body or {}).get("messages", []))


@dataclass(frozen=True)
class Behaviour:
    """How the server treats one chat or embedding request.

    Args:
        status: the HTTP status.
        text: what the assistant says, for status 200.
        finish_reason: `stop`, `length` or `content_filter`.
        refusal: the assistant's refusal; the content is then null.
        headers: extra response headers.
        error: the provider's error message and code for any other status.
        delay: seconds to wait before anything is sent.
        cut: close the connection: `before` the first byte or in the `middle` of the body.
        raw: a body to send as it is, instead of a well-formed one.
        usage: prompt and completion tokens reported; None leaves the count out.
    """

    status: int = 200
    text: str = ""
    finish_reason: str = "stop"
    refusal: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    error: tuple[str, str] = ("injected fault", "injected_fault")
    delay: float = 0.0
    cut: str | None = None
    raw: str | None = None
    usage: tuple[int, int] | None = (11, 7)


def answer(text: str, *, usage: tuple[int, int] | None = (11, 7)) -> Behaviour:
    """The assistant answers with `text`."""
    return Behaviour(text=text, usage=usage)


def rate_limit(retry_after: float | None = None) -> Behaviour:
    """A 429; `retry_after` in seconds becomes the Retry-After header."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Behaviour(status=429, headers=headers, error=("Rate limit reached", "rate_limit_exceeded"))


def status(code: int, message: str = "injected fault", error_code: str = "injected_fault") -> Behaviour:
    """Any error status with the provider's message."""
    return Behaviour(status=code, error=(message, error_code))


def slow(seconds: float, text: str = "[]") -> Behaviour:
    """A good answer that comes late."""
    return Behaviour(text=text, delay=seconds)


def cut_connection(where: str = "before") -> Behaviour:
    """The connection closes `before` the first byte, or in the `middle` of the body."""
    return Behaviour(text="[" + " " * 500 + "]", cut=where)


def truncated(text: str) -> Behaviour:
    """The answer hit the token limit: finish_reason `length`."""
    return Behaviour(text=text, finish_reason="length")


def refusal(text: str = "I cannot help with that.") -> Behaviour:
    """The assistant refuses in the field that the protocol has for it."""
    return Behaviour(refusal=text)


def content_filter() -> Behaviour:
    """The provider's filter stopped the answer."""
    return Behaviour(finish_reason="content_filter")


def garbage(body: str = "<html>proxy error</html>") -> Behaviour:
    """Status 200 with a body that is not the protocol."""
    return Behaviour(raw=body)


class OpenAIServer:
    """The server, as a context manager.

    Args:
        otherwise: what happens when the script is used up: a behaviour, or a function of the request that returns one.
            None answers 500 and says so, so that a test that makes too many calls notices.
        dimension: length of the embeddings it returns; they are deterministic in the text.
    """

    def __init__(
        self, *, otherwise: Behaviour | Callable[[RecordedRequest], Behaviour] | None = None, dimension: int = 8
    ) -> None:
        self.otherwise = otherwise
        self.dimension = dimension
        self.requests: list[RecordedRequest] = []
        self._script: deque[Behaviour] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler_class())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The `api_base` to configure, ending in `/v1`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def script(self, *behaviours: Behaviour) -> None:
        """Append behaviours; each chat or embedding request uses up one."""
        with self._lock:
            self._script.extend(behaviours)

    def posts(self) -> list[RecordedRequest]:
        """The POST requests so far (chat and embeddings), oldest first."""
        with self._lock:
            return [request for request in self.requests if request.method == "POST"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def _next(self, request: RecordedRequest) -> Behaviour:
        with self._lock:
            if self._script:
                return self._script.popleft()
        if callable(self.otherwise):
            return self.otherwise(request)
        return self.otherwise or status(500, "no behaviour is scripted for this request", "nothing_scripted")

    def _record(self, request: RecordedRequest) -> None:
        with self._lock:
            self.requests.append(request)

    def _handler_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._record(RecordedRequest("GET", self.path, self._lower_headers(), None))
                if self.path.split("?")[0] == "/v1/models":
                    self._send(200, {"object": "list", "data": [{"id": "test", "object": "model"}]})
                else:
                    self._send(404, _error("no such path", "not_found"))

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                request = RecordedRequest("POST", self.path, self._lower_headers(), body)
                server._record(request)
                builders = {"/v1/chat/completions": _chat, "/v1/embeddings": server._embeddings}
                builder = builders.get(self.path.split("?")[0])
                if builder is None:
                    self._send(404, _error("no such path", "not_found"))
                    return
                behaviour = server._next(request)
                if behaviour.delay and server._closing.wait(behaviour.delay):
                    self.close_connection = True
                    return
                self._perform(behaviour, builder(body, behaviour))

            def _perform(self, behaviour: Behaviour, good: dict[str, Any]) -> None:
                if behaviour.cut == "before":
                    self._cut()
                elif behaviour.cut == "middle":
                    payload = json.dumps(good).encode()
                    self._start(200, len(payload), {})
                    self.wfile.write(payload[: len(payload) // 2])
                    self.wfile.flush()
                    self._cut()
                elif behaviour.raw is not None:
                    self._send(behaviour.status, behaviour.raw, behaviour.headers)
                elif behaviour.status != 200:
                    self._send(behaviour.status, _error(*behaviour.error), behaviour.headers)
                else:
                    self._send(200, good, behaviour.headers)

            def _cut(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def _lower_headers(self) -> dict[str, str]:
                return {name.lower(): value for name, value in self.headers.items()}

            def _start(self, code: int, length: int, headers: dict[str, str]) -> None:
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(length))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def _send(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
                payload = (body if isinstance(body, str) else json.dumps(body)).encode()
                try:
                    self._start(code, len(payload), headers or {})
                    self.wfile.write(payload)
                except (BrokenPipeError, ConnectionResetError):
                    # A client that gave up waiting is one of the cases under test.
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test output quiet; the requests are recorded instead."""

        return Handler

    def _embeddings(self, body: Any, behaviour: Behaviour) -> dict[str, Any]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [
            {"object": "embedding", "index": index, "embedding": _vector(text, self.dimension)}
            for index, text in enumerate(texts)
        ]
        return {"object": "list", "model": body.get("model"), "data": data, "usage": _usage(behaviour)}


def _chat(body: Any, behaviour: Behaviour) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.text}
    if behaviour.refusal is not None:
        message |= {"content": None, "refusal": behaviour.refusal}
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": behaviour.finish_reason}],
        "usage": _usage(behaviour),
    }


def _usage(behaviour: Behaviour) -> dict[str, int] | None:
    if behaviour.usage is None:
        return None
    prompt, completion = behaviour.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _error(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def _vector(text: Any, dimension: int) -> list[float]:
    digest = hashlib.shake_256(str(text).encode("utf-8", "surrogatepass")).digest(dimension)
    return [byte / 255 - 0.5 for byte in digest]
