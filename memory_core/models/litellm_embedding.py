"""Embeddings by any service that LiteLLM knows, or any server that speaks OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from memory_core.errors import InvalidSettings, ModelOutputInvalid, ModelRejected, ModelUnreachable, SlowwaveError
from memory_core.models.embedding import RecentVectors, Vectors, prepared_text, unit_rows
from memory_core.models.model_errors import load_litellm, model_error

TEXTS_PER_CALL = 64
BLANK_STAND_IN = "(empty)"
"""Sent in place of blank text, which several services refuse; so all blank texts have the vector of this word."""

_NO_KEY = "none"
"""Sent to an address of the user's own without a key, so that a key meant for another host never goes there."""


class LiteLLMEmbedding:
    """One embedding model of one service.

    A service may answer with other last bits each time it is asked; within this object a text keeps the vector that
    came first while it is among the last 4,096 asked for.

    Args:
        name: LiteLLM's name of the model, such as `openai/text-embedding-3-small` or `ollama/nomic-embed-text`.
        api_base: the address of the service; where None or empty, the provider's own.
        api_key: its key; where None or empty, LiteLLM reads the provider's environment variable, but only for the
            provider's own address.
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
        self._api_base = api_base or None
        self._api_key = api_key or (_NO_KEY if api_base else None)
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
        litellm = await asyncio.to_thread(_load_without_retries)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await litellm.aembedding(
                    model=self._name,
                    input=texts,
                    api_base=self._api_base,
                    api_key=self._api_key,
                    timeout=self._timeout,
                    num_retries=0,
                    max_retries=0,
                )
            return _vectors_in_order(answer.data, count=len(texts), model=self.model)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
            raise ModelOutputInvalid(
                f"The answer of {self.model} is not a list of embeddings.", model=self.model, cause=type(error).__name__
            ) from error
        except Exception as error:
            raise self._mapped(error) from error

    def _mapped(self, error: Exception) -> SlowwaveError:
        found = model_error(error, model=self.model, timeout=self._timeout)
        kind = type(found)
        if "Missing credentials" in str(error):
            # LiteLLM reports an absent key as a fault of the server, which a retry would never cure.
            kind = ModelRejected
        elif isinstance(error, OSError) and not isinstance(error, TimeoutError):
            kind = ModelUnreachable
        message = found.message.replace(self._api_key, "…") if self._api_key else found.message
        return kind(message, hint=found.hint, **found.data)


def _load_without_retries() -> Any:
    litellm = load_litellm()
    # A call's `max_retries=0` counts there as "not given", and two hidden retries would follow, each after as long a
    # wait as the service asks for. Whether and when to retry is the caller's to say.
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


def _is_this_machine(address: str | None) -> bool:
    host = urlsplit(address).hostname if address else None
    if host is None or host == "localhost":
        return host == "localhost"
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
