"""The embedding port: text in, vectors of length one out, and the factory that builds a provider from its name."""

from __future__ import annotations

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_core.errors import EmbeddingMismatch, InvalidSettings, ModelOutputInvalid

Vectors: TypeAlias = NDArray[np.float32]
"""float32, shape (n, dimension), C-contiguous; every row has Euclidean length 1."""

AVAILABLE = "minilm, hash, hash:<dimension 16 to 4096>, litellm:<provider/model>, fastembed:<model>"


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into vectors whose dot product is their cosine similarity."""

    @property
    def model(self) -> str:
        """The name stored beside each vector, such as `minilm` or `hash:64`; two names' vectors are never compared."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers in a vector; 0 while a provider that learns it from its first answer has not had one."""
        ...

    @property
    def network(self) -> bool:
        """Whether embedding may send or fetch something beyond this machine."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one row each, in their order.

        The same text gets the same bits, whatever else is in the call, in any order and as often as it is asked for.
        Blank text is allowed and has one fixed vector. No texts give an array of shape (0, dimension).

        Raises:
            ModelOutputInvalid: the model answered with NaN, an infinity, a vector of zeros, or too few vectors.
            EmbeddingMismatch: the model answered with another dimension than expected.
            DependencyMissing: a package that the provider needs is not installed.
            TransientError, ModelRejected: as the provider's service failed (only where `network` may be True).
        """
        ...


def prepared_text(text: str) -> str:
    """The text as every provider reads it: NFC, without NUL, lone surrogates replaced by U+FFFD.

    Canonically equal texts so get the same vector, and no text can break an encoder that wants valid UTF-8.
    """
    valid = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_surrogate(text) else text
    return unicodedata.normalize("NFC", valid.replace("\0", ""))


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def unit_rows(values: ArrayLike, *, model: str, dimension: int) -> Vectors:
    """Rows scaled to Euclidean length 1; each row's bits depend on that row alone.

    Args:
        values: shape (n, dimension), any float type.
        model: the model's name, for the messages.
        dimension: the dimension that is expected; 0 accepts any.

    Raises:
        ModelOutputInvalid: a row holds NaN or an infinity, is all zeros, or the rows are not numbers of one length.
        EmbeddingMismatch: the rows have another dimension.
    """
    try:
        rows = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelOutputInvalid(f"{model} answered with something other than vectors.", model=model) from error
    if rows.ndim != 2 or not rows.shape[1]:
        raise ModelOutputInvalid(
            f"{model} answered with an array of shape {rows.shape}, not a vector for each text.", model=model
        )
    if dimension and rows.shape[1] != dimension:
        raise EmbeddingMismatch(
            f"{model} answered with {rows.shape[1]} dimensions where {dimension} were expected.",
            hint="Name the model and dimension that the stored vectors have, or change models with `slowwave reembed`.",
            model=model,
            expected=dimension,
            found=rows.shape[1],
        )
    peaks = np.abs(rows).max(axis=1, keepdims=True)
    # A NaN or an infinity anywhere in a row makes its peak one too.
    for position in np.flatnonzero(~(np.isfinite(peaks[:, 0]) & (peaks[:, 0] > 0))):
        what = "all zeros" if peaks[position, 0] == 0 else "not finite"
        raise ModelOutputInvalid(
            f"The vector that {model} gave for text {int(position)} of the call is {what}.",
            hint="Check the embedding model; nothing was stored.",
            model=model,
            position=int(position),
        )
    # Dividing by the peak first keeps the squares of very large and very small numbers in range.
    scaled = rows / peaks
    lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    return np.asarray(scaled / lengths, dtype=np.float32)


class RecentVectors:
    """The vectors of the keys asked for most recently; may be shared between threads.

    Args:
        capacity: vectors kept; 4,096 of 384 dimensions take 6 MB.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[Hashable, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> NDArray[np.float32] | None:
        """The vector of a key, shape (dimension,), or None where it is not kept."""
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, key: Hashable, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Keep a vector, and give back the one that is kept: the first that came, if two threads computed it."""
        with self._lock:
            kept = self._vectors.setdefault(key, vector)
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
            return kept


def embedding_provider(
    name: str = "minilm",
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    dimension: int | None = None,
    threads: int | None = None,
) -> EmbeddingProvider:
    """Build the provider that a setting names. Nothing is loaded or called before the first `embed`.

    Args:
        name: `minilm` (offline, 384 dimensions), `hash` or `hash:<dimension>` (offline, words only, for tests),
            `litellm:<provider/model>` (any service LiteLLM knows), `fastembed:<model>` (extra `fastembed`).
        api_base: the address of an OpenAI-compatible server; `litellm` only.
        api_key: the key for that service; where None, LiteLLM looks into the provider's own environment variable, but
            only where `api_base` is None too.
        timeout: seconds a call to a service may take.
        dimension: what a service's vectors must have; where None, its first answer decides.
        threads: threads of `minilm` and `fastembed`; where None, the processors this process may use.

    Raises:
        InvalidSettings: there is no such provider, or its part after the colon is not valid.
    """
    kind, _, rest = name.strip().partition(":")
    builders: dict[str, Callable[[], EmbeddingProvider]] = {
        "minilm": lambda: _minilm(rest, threads),
        "hash": lambda: _hash(name, rest),
        "litellm": lambda: _litellm(rest, api_base, api_key, timeout, dimension),
        "fastembed": lambda: _fastembed(rest, threads),
    }
    if kind not in builders or (kind in ("litellm", "fastembed") and not rest.strip()) or (kind == "minilm" and rest):
        raise InvalidSettings(
            f"{name!r} is not an embedding provider.", hint=f"Use one of: {AVAILABLE}.", setting="embedding", value=name
        )
    return builders[kind]()


def _minilm(rest: str, threads: int | None) -> EmbeddingProvider:
    from memory_core.models.minilm import MiniLMEmbedding

    return MiniLMEmbedding(threads=threads)


def _hash(name: str, rest: str) -> EmbeddingProvider:
    from memory_core.models.hashing import DEFAULT_DIMENSION, HashEmbedding

    if not rest and ":" not in name:
        return HashEmbedding(DEFAULT_DIMENSION)
    if not rest.isascii() or not rest.isdigit():
        raise InvalidSettings(
            f"The dimension in {name!r} is not a whole number.",
            hint="Write hash:64, say.",
            setting="embedding",
            value=name,
        )
    return HashEmbedding(int(rest))


def _litellm(
    rest: str, api_base: str | None, api_key: str | None, timeout: float, dimension: int | None
) -> EmbeddingProvider:
    from memory_core.models.litellm_embedding import LiteLLMEmbedding

    return LiteLLMEmbedding(rest.strip(), api_base=api_base, api_key=api_key, timeout=timeout, dimension=dimension)


def _fastembed(rest: str, threads: int | None) -> EmbeddingProvider:
    from memory_core.models.fastembed_embedding import FastEmbedEmbedding

    return FastEmbedEmbedding(rest.strip(), threads=threads)
