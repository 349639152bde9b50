"""Language models through LiteLLM: any provider it knows, or any server that speaks the OpenAI protocol.

One call is one request: retries belong to the caller. LiteLLM itself is imported at the first call, never before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from memory_core.errors import (
    InvalidInput,
    InvalidSettings,
    ModelOutputInvalid,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    SlowwaveError,
)
from memory_core.models.endpoints import Endpoint
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.models.model_errors import load_litellm, model_error
from memory_core.models.prices import price

_CHECK_TIMEOUT = 5.0
_OLLAMA = ("ollama", "ollama_chat")
_OLLAMA_ADDRESS = "http://localhost:11434"


class LiteLLMLanguageModel:
    """An ordered list of models behind the `LanguageModel` port; the next is asked when one is unreachable.

    Args:
        endpoints: at least one.
        timeout: seconds for one call to one model in all.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, timeout: float) -> None:
        if not endpoints:
            raise InvalidSettings("A language model needs at least one name.")
        self._endpoints = tuple(endpoints)
        self._timeout = timeout

    @property
    def name(self) -> str:
        """The models' names joined by commas."""
        return ",".join(endpoint.model for endpoint in self._endpoints)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer with the first reachable model; see `LanguageModel.complete` for the errors.

        Raises:
            InvalidInput: the request names another model than this one.
        """
        chosen = [endpoint for endpoint in self._endpoints if request.model in (self.name, endpoint.model)]
        if not chosen:
            raise InvalidInput(f"The request is for the model {request.model!r}; this is {self.name!r}.")
        litellm = await asyncio.to_thread(load_litellm)
        unreachable: ModelUnreachable | None = None
        for endpoint in chosen:
            try:
                return await self._call(litellm, endpoint, request)
            except ModelUnreachable as error:
                unreachable = error
        assert unreachable is not None
        raise unreachable

    async def check(self) -> None:
        """Return if at least one of the models has a chance; see `LanguageModel.check` for the errors."""
        first: SlowwaveError | None = None
        for endpoint in self._endpoints:
            try:
                await _check(endpoint)
            except (ModelUnreachable, ModelTimeout, ModelRejected) as error:
                first = first or error
            else:
                return
        assert first is not None
        raise first

    async def _call(self, litellm: Any, endpoint: Endpoint, request: ModelRequest) -> ModelAnswer:
        arguments = await asyncio.to_thread(_arguments, litellm, endpoint, request)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                response = await litellm.acompletion(timeout=self._timeout, **arguments)
        except Exception as error:
            raise model_error(error, model=endpoint.model, timeout=self._timeout) from error
        duration_ms = round((time.perf_counter() - started) * 1000)
        return _answer(endpoint, response, duration_ms)


def _arguments(litellm: Any, endpoint: Endpoint, request: ModelRequest) -> dict[str, Any]:
    messages = [{"role": "user", "content": request.prompt}]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    arguments: dict[str, Any] = {
        "model": endpoint.model,
        "messages": messages,
        "temperature": request.temperature,
        "max_tokens": request.max_output_tokens,
        "api_base": endpoint.api_base,
        "api_key": endpoint.api_key,
        "num_retries": 0,
        # Some models take no temperature, or a fixed one; the answer is worth more than the setting.
        "drop_params": True,
    }
    if request.response_schema is not None and litellm.supports_response_schema(model=endpoint.model):
        schema = {"name": request.purpose, "schema": request.response_schema, "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    return arguments


def _answer(endpoint: Endpoint, response: Any, duration_ms: int) -> ModelAnswer:
    choices = getattr(response, "choices", None)
    message = choices[0].message if choices else None
    text = getattr(message, "content", None) or ""
    finish_reason = str(choices[0].finish_reason or "stop") if choices else ""
    usage = getattr(response, "usage", None)
    read = int(getattr(usage, "prompt_tokens", 0) or 0)
    written = int(getattr(usage, "completion_tokens", 0) or 0)
    answer = ModelAnswer(
        text=text,
        model=endpoint.model,
        prompt_tokens=read,
        completion_tokens=written,
        cost=price(endpoint.model, read, written),
        finish_reason=finish_reason,
        duration_ms=duration_ms,
    )
    refused = getattr(message, "refusal", None)
    if reason := _unusable(finish_reason, bool(refused), text):
        raise ModelOutputInvalid(
            f"The answer of {endpoint.model!r} cannot be used: {_UNUSABLE[reason]}.",
            reason=reason,
            model=answer.model,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            cost=answer.cost,
            duration_ms=answer.duration_ms,
            answer=text or str(refused or ""),
        )
    return answer


_UNUSABLE = {
    "content_filter": "the provider's filter stopped it",
    "refused": "the model refused",
    "truncated": "it reached the token limit before its end",
    "empty": "it is empty",
}


def _unusable(finish_reason: str, refused: bool, text: str) -> str | None:
    if finish_reason == "content_filter":
        return "content_filter"
    if refused:
        return "refused"
    if finish_reason == "length":
        return "truncated"
    return None if text.strip() else "empty"


async def _check(endpoint: Endpoint) -> None:
    if endpoint.api_base is None and endpoint.provider not in _OLLAMA:
        litellm = await asyncio.to_thread(load_litellm)
        found = litellm.validate_environment(model=endpoint.model, api_key=endpoint.api_key)
        if not found["keys_in_environment"] and found["missing_keys"]:
            missing = ", ".join(found["missing_keys"])
            raise ModelRejected(
                f"The model {endpoint.model!r} has no key.", hint=f"Set {missing}.", model=endpoint.model, reason="key"
            )
        return
    await _check_address(endpoint)


async def _check_address(endpoint: Endpoint) -> None:
    import httpx

    base = (endpoint.api_base or _OLLAMA_ADDRESS).rstrip("/")
    url = f"{base}/api/tags" if endpoint.provider in _OLLAMA else f"{base}/models"
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    try:
        async with httpx.AsyncClient(timeout=_CHECK_TIMEOUT) as client:
            status = (await client.get(url, headers=headers)).status_code
    except httpx.TimeoutException as error:
        raise ModelTimeout(f"Nothing answered at {base} within {_CHECK_TIMEOUT:g} s.", model=endpoint.model) from error
    except httpx.HTTPError as error:
        raise ModelUnreachable(
            f"Nothing answers at {base}.", hint="Check that the model server is running.", model=endpoint.model
        ) from error
    if status in (401, 403):
        raise ModelRejected(f"The server at {base} refused the key.", model=endpoint.model, status=status, reason="key")
    if status >= 500:
        raise ModelUnreachable(f"The server at {base} answered {status}.", model=endpoint.model, status=status)
