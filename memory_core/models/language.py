"""The language-model port: what is asked, what comes back, and who can answer.

A model is an optional guest. Nothing here imports a provider's library; `language_model` returns None where no
model is configured, and then nothing leaves the machine.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from memory_core.errors import InvalidInput, InvalidSettings

RULES = "rules"
"""The setting that means: no model, the deterministic rules."""

DEFAULT_TIMEOUT = 60.0
"""Seconds one call may take in all."""

_CACHE_KEY_VERSION = 1


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a language model.

    Args:
        purpose: what the answer is for, such as `harmonize`; kept for the audit and the budget, not sent.
        model: the name of the model that is meant to answer, `LanguageModel.name`.
        system: the system message; may be empty.
        prompt: the user message.
        response_schema: a JSON schema that the answer should follow; None for free text.
        temperature: sampling temperature, 0 to 2.
        max_output_tokens: the most tokens the answer may have, at least 1.
        schema_version: version of the prompt and its response model; a new one never meets old cached answers.

    Raises:
        InvalidInput: the prompt is blank, or a number is out of its range.
    """

    purpose: str
    model: str
    system: str
    prompt: str
    response_schema: dict[str, Any] | None
    temperature: float
    max_output_tokens: int
    schema_version: int

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise InvalidInput("The prompt of a model request is blank.")
        if not (math.isfinite(self.temperature) and 0.0 <= self.temperature <= 2.0):
            raise InvalidInput(f"The temperature {self.temperature} of a model request is not within 0 to 2.")
        if self.max_output_tokens < 1:
            raise InvalidInput(f"max_output_tokens must be at least 1; it is {self.max_output_tokens}.")

    def cache_key(self) -> str:
        """The sha256, as 64 hexadecimal digits, of everything that can change the answer.

        The purpose is left out: the same words to the same model get the same answer whatever it is for.
        """
        parts = {
            "key": _CACHE_KEY_VERSION,
            "model": self.model,
            "system": self.system,
            "prompt": self.prompt,
            "response_schema": self.response_schema,
            "temperature": float(self.temperature),
            "max_output_tokens": self.max_output_tokens,
            "schema_version": self.schema_version,
        }
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a language model answered.

    Args:
        text: the answer as it came, not yet parsed.
        model: the model that answered (of an ordered list, the one that was reachable).
        prompt_tokens: tokens read, as the provider counts them; 0 where it did not say.
        completion_tokens: tokens written; 0 where the provider did not say.
        cost: US dollars by the local price table; None where the model has no known price.
        finish_reason: why the model stopped, such as `stop`.
        duration_ms: wall time of the call in milliseconds.
    """

    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    finish_reason: str
    duration_ms: int


@runtime_checkable
class LanguageModel(Protocol):
    """Something that answers a `ModelRequest`."""

    @property
    def name(self) -> str:
        """The configured name: part of every cache key, shown in reports. Names of an ordered list joined by commas."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer the request with one call, without retrying.

        Raises:
            ModelTimeout: no answer in time.
            ModelRateLimited: the provider asks to wait; `retry_after` carries its seconds.
            ModelUnreachable: connection refused or lost, or a 5xx answer.
            ModelRejected: bad key, unknown model, or a request the provider does not take.
            ModelOutputInvalid: an answer came that cannot be used; `data["reason"]` says `truncated`, `refused`,
                `content_filter`, `empty` or `malformed`, and `data["answer"]` holds the text where there was one.
        """

    async def check(self) -> None:
        """Return if a call has a chance; costs no tokens.

        Raises:
            ModelUnreachable: nothing answers at the address.
            ModelTimeout: the address answers too slowly.
            ModelRejected: the key is missing or refused.
        """


def language_model(
    names: str | Sequence[str],
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> LanguageModel | None:
    """The configured language model; None where the configuration is `rules` or empty.

    Nothing is imported or contacted here.

    Args:
        names: one LiteLLM name (`openai/gpt-4o-mini`, `ollama/llama3.1`), or an ordered list, local first, also as
            one comma-separated string. The next one is tried only when the one before it is unreachable. A name may
            carry its own address: `openai/qwen@http://127.0.0.1:8000/v1`.
        api_base: address of the first model, and of others of the same provider that carry no address of their own.
        api_key: the key that goes with it, sent to the same models and to no other.
        timeout: seconds one call to one model may take in all.

    Raises:
        InvalidSettings: a name is malformed or given twice, `rules` stands beside a model, or the timeout is not
            positive.
    """
    given = names.split(",") if isinstance(names, str) else list(names)
    wanted = [name.strip() for name in given if name.strip()]
    if not (math.isfinite(timeout) and timeout > 0):
        raise InvalidSettings(f"The model timeout must be a positive number of seconds; it is {timeout}.")
    if wanted in ([], [RULES]):
        return None
    if RULES in wanted:
        raise InvalidSettings(
            f"{RULES!r} stands in the list of models {', '.join(wanted)!r}.",
            hint="Name models only, or rules alone; what happens when a model fails is the setting on_model_failure.",
        )
    from memory_core.models.endpoints import endpoints
    from memory_core.models.litellm_language import LiteLLMLanguageModel

    return LiteLLMLanguageModel(endpoints(wanted, api_base=api_base, api_key=api_key), timeout=timeout)
