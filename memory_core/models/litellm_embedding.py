"""Embeddings by any service that LiteLLM knows, or any server that speaks OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import asyncio
import email.utils
import ipaddress
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from memory_core.errors import (
    DependencyMissing,
    InvalidSettings,
    ModelOutputInvalid,
    ModelRateLimited,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    SlowwaveError,
)
from memory_core.models.embedding import RecentVectors, Vectors, prepared_text, unit_rows

TEXTS_PER_CALL = 64
BLANK_STAND_IN = "(empty)"
"""Sent in place of blank text, which several services refuse; so all blank texts have the vector of this word."""

LONGEST_MESSAGE = 300
"""Characters of a service's error message that are kept."""

_TIMEOUT_STATUS = frozenset({408, 504})


class LiteLLMEmbedding:
    """One embedding model of one service.

    A service may answer with other last bits each time it is asked; within this object a text keeps the vector that
    came first while it is among the last 4,096 asked for.

    Args:
        name: LiteLLM's name of the model, such as `openai/text-embedding-3-small` or `ollama/nomic-embed-text`.
        api_base: the address of the service; where None, the provider's own.
        api_key: its key; where None, LiteLLM reads the provider's environment variable.
        timeout: seconds a call may take, above 0.
        dimension: what the vectors must have; where None, the first answer decides.

    Raises:
        InvalidSettings: the timeout or the dimension is not above 0.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        dimension: int | None = None,
    ) -> None:
        if timeout <= 0 or (dimension is not None and dimension <= 0):
            raise InvalidSettings(
                f"The timeout and the dimension of litellm:{name} must be above 0.", setting="embedding"
            )
        self.model = f"litellm:{name}"
        self.dimension = dimension or 0
        self.network = not _is_this_machine(api_base)
        self._name = name
        self._api_base = api_base
        self._api_key = api_key
        self._timeout = timeout
        self._recent = RecentVectors()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one row each, at most 64 distinct ones a call; see `EmbeddingProvider.embed`.

        Raises:
            ModelTimeout, ModelRateLimited, ModelUnreachable: worth a retry, which is the caller's to make.
            ModelRejected: the service refused the key, the model or the texts.
            ModelOutputInvalid: the answer holds no usable vector for each text.
            EmbeddingMismatch: the vectors have another dimension than expected.
            DependencyMissing: LiteLLM is not installed.
        """
        prepared = [text if (text := prepared_text(raw)).strip() else BLANK_STAND_IN for raw in texts]
        found = {text: vector for text in prepared if (vector := self._recent.get(text)) is not None}
        missing = [text for text in dict.fromkeys(prepared) if text not in found]
        for start in range(0, len(missing), TEXTS_PER_CALL):
            call = missing[start : start + TEXTS_PER_CALL]
            vectors = unit_rows(await self._ask(call), model=self.model, dimension=self.dimension)
            self.dimension = vectors.shape[1]
            for text, vector in zip(call, vectors, strict=True):
                found[text] = self._recent.put(text, vector.copy())
        if not prepared:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([found[text] for text in prepared])

    async def _ask(self, texts: list[str]) -> list[Any]:
        litellm = await asyncio.to_thread(_litellm)
        from openai import OpenAIError

        try:
            async with asyncio.timeout(self._timeout):
                answer = await litellm.aembedding(
                    model=self._name,
                    input=texts,
                    api_base=self._api_base,
                    api_key=self._key(),
                    timeout=self._timeout,
                    num_retries=0,
                    max_retries=0,
                )
            return _vectors_in_order(answer.data, count=len(texts), model=self.model)
        except SlowwaveError:
            raise
        except TimeoutError as error:
            raise self._timed_out() from error
        except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
            raise ModelOutputInvalid(
                f"The answer of {self.model} is not a list of embeddings.", model=self.model, cause=type(error).__name__
            ) from error
        except (OpenAIError, OSError) as error:
            raise self._mapped(error) from error

    def _key(self) -> str | None:
        if self._api_key is None and self._api_base and self._name.startswith("openai/"):
            # A compatible server of one's own often needs no key, but the client refuses to call without one.
            return os.environ.get("OPENAI_API_KEY") or "none"
        return self._api_key

    def _timed_out(self) -> ModelTimeout:
        return ModelTimeout(f"{self.model} did not answer within {self._timeout:g} seconds.", model=self.model)

    def _mapped(self, error: Exception) -> SlowwaveError:
        from openai import APITimeoutError

        status = getattr(error, "status_code", None)
        said = " ".join(str(error).split())
        if self._api_key:
            said = said.replace(self._api_key, "…")
        said = said[:LONGEST_MESSAGE]
        if isinstance(error, APITimeoutError) or status in _TIMEOUT_STATUS:
            return self._timed_out()
        if status == 429:
            return ModelRateLimited(
                f"{self.model} asked for fewer calls: {said}",
                model=self.model,
                retry_after=_retry_after(_headers(error)),
            )
        # LiteLLM reports an absent key as a fault of the server, which a retry would never cure.
        if "Missing credentials" in said or (isinstance(status, int) and 400 <= status < 500):
            return ModelRejected(
                f"{self.model} refused the call: {said}",
                hint="Check the model's name, its key and its address.",
                model=self.model,
                status=status,
            )
        return ModelUnreachable(f"{self.model} cannot be reached: {said}", model=self.model, status=status)


def _litellm() -> Any:
    # Without this, importing LiteLLM fetches a price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    try:
        import litellm
    except ImportError as error:
        raise DependencyMissing("Embedding by a service needs the package litellm.", hint="Install litellm.") from error
    litellm.telemetry = False
    # Its advice goes to stdout, where a command prints its one JSON document.
    litellm.suppress_debug_info = True
    # `max_retries=0` of a call reads as "not given" there, and two hidden retries, each as long as the service asks
    # one to wait, would follow.
    vars(litellm)["DEFAULT_MAX_RETRIES"] = 0
    return litellm


def _vectors_in_order(data: Sequence[Any], *, count: int, model: str) -> list[Any]:
    if len(data) != count:
        raise ModelOutputInvalid(
            f"{model} answered {count} texts with {len(data)} vectors.", model=model, expected=count, found=len(data)
        )
    items = [item if isinstance(item, Mapping) else item.model_dump() for item in data]
    indexes = [item.get("index") for item in items]
    if sorted(index for index in indexes if isinstance(index, int)) == list(range(count)):
        items.sort(key=lambda item: int(item["index"]))
    return [item["embedding"] for item in items]


def _headers(error: Exception) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    found = getattr(response, "headers", None) or getattr(error, "litellm_response_headers", None) or {}
    return {str(name).lower(): str(value) for name, value in found.items()}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the header Retry-After (RFC 9110, 10.2.3): a number, or a date beside the answer's own."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            until = email.utils.parsedate_to_datetime(value)
            seconds = (until - email.utils.parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if np.isfinite(seconds) else None


def _is_this_machine(address: str | None) -> bool:
    host = urlsplit(address).hostname if address else None
    if host is None or host == "localhost":
        return host == "localhost"
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
