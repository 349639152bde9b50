"""Embeddings by the optional package FastEmbed: many ONNX models, run on this machine, fetched at their first use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import DependencyMissing, ModelRejected
from memory_core.models.embedding import RecentVectors, Vectors, prepared_text, unit_rows

TEXTS_PER_TURN = 256
"""Texts between two points where a cancelled call stops."""


class FastEmbedEmbedding:
    """One FastEmbed text model.

    `network` is True, because FastEmbed downloads a model that its cache does not hold; the texts stay on this machine.

    Args:
        name: FastEmbed's name of the model, such as `BAAI/bge-small-en-v1.5`.
        threads: threads of a run; where None, ONNX Runtime decides.
    """

    network = True

    def __init__(self, name: str, *, threads: int | None = None) -> None:
        self.model = f"fastembed:{name}"
        self.dimension = 0
        self._name = name
        self._threads = threads
        self._engine: Any = None
        self._recent = RecentVectors()
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one row each, in a worker thread; see `EmbeddingProvider.embed`.

        Raises:
            DependencyMissing: FastEmbed is not installed.
            ModelRejected: FastEmbed does not know the model, or could not get its files.
        """
        prepared = [prepared_text(text) for text in texts]
        found = {text: vector for text in prepared if (vector := self._recent.get(text)) is not None}
        missing = [text for text in dict.fromkeys(prepared) if text not in found]
        for start in range(0, len(missing), TEXTS_PER_TURN):
            turn = missing[start : start + TEXTS_PER_TURN]
            for text, vector in zip(turn, await asyncio.to_thread(self._embed_now, turn), strict=True):
                found[text] = self._recent.put(text, vector)
        if not prepared:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([found[text] for text in prepared])

    def _embed_now(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
            # One text a run: FastEmbed pads a batch to its longest text, and padding changes the last bits.
            rows: list[NDArray[Any]] = list(self._engine.embed(list(texts), batch_size=1))
            vectors = unit_rows(rows, model=self.model, dimension=self.dimension)
            self.dimension = vectors.shape[1]
        return vectors

    def _load(self) -> Any:
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise DependencyMissing(
                f"The embedding {self.model} needs the package fastembed, which is not installed.",
                hint="Install it with: pip install 'slowwave[fastembed]'.",
                package="fastembed",
            ) from error
        try:
            return TextEmbedding(model_name=self._name, threads=self._threads)
        except (ValueError, OSError) as error:
            raise ModelRejected(
                f"FastEmbed could not load the model {self._name!r}: {error}",
                hint="Check the model's name, and that its files are in FastEmbed's cache or can be fetched.",
                model=self.model,
            ) from error
