"""Embeddings from hashed words: deterministic on every machine, no model, no network. For tests and first trials.

Signed feature hashing (Weinberger and others, "Feature Hashing for Large Scale Multitask Learning", 2009): each word
and each pair of neighbouring words adds or subtracts its weight at a position, both chosen by its hash. Texts that
share words are similar in proportion; meaning beyond the words is not seen.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from memory_core.errors import InvalidSettings
from memory_core.models.embedding import Vectors, prepared_text, unit_rows

DEFAULT_DIMENSION = 64
SMALLEST_DIMENSION = 16
LARGEST_DIMENSION = 4096
PAIR_WEIGHT = 0.5
"""A pair's weight beside 1 for a word: order matters, the words themselves matter more."""

# The digest belongs to the stored vectors: changing this changes what `hash:<dimension>` means.
_PERSONALISATION = b"slowwave hash 1"
_WORD = re.compile(r"\w+")


class HashEmbedding:
    """Signed hashing of case-folded words and word pairs.

    Args:
        dimension: 16 to 4096. Chance similarity of unrelated texts is about 1 / sqrt(dimension).

    Raises:
        InvalidSettings: the dimension is outside that range.
    """

    network = False

    def __init__(self, dimension: int = DEFAULT_DIMENSION) -> None:
        if not SMALLEST_DIMENSION <= dimension <= LARGEST_DIMENSION:
            raise InvalidSettings(
                f"The dimension {dimension} of the hash embedding is not between"
                f" {SMALLEST_DIMENSION} and {LARGEST_DIMENSION}.",
                hint="Write hash:64, say.",
                setting="embedding",
                value=f"hash:{dimension}",
            )
        self.dimension = dimension
        self.model = f"hash:{dimension}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one row each; see `EmbeddingProvider.embed`."""
        rows = np.zeros((len(texts), self.dimension))
        for row, text in zip(rows, texts, strict=True):
            folded = unicodedata.normalize("NFC", prepared_text(text).casefold())
            for feature, weight in _features(folded):
                self._add(row, feature, weight)
            if not row.any():
                # The text is blank, or its features cancelled each other: the whole of it still is a feature.
                self._add(row, "\0" + folded.strip(), 1.0)
        return unit_rows(rows, model=self.model, dimension=self.dimension)

    def _add(self, row: np.ndarray[tuple[int], np.dtype[np.float64]], feature: str, weight: float) -> None:
        digest = hashlib.blake2b(feature.encode(), digest_size=9, person=_PERSONALISATION).digest()
        sign = 1.0 if digest[8] & 1 else -1.0
        row[int.from_bytes(digest[:8], "big") % self.dimension] += sign * weight


def _features(text: str) -> Iterator[tuple[str, float]]:
    # Text without any word (emoji, punctuation) is told apart by its characters.
    words = _WORD.findall(text) or [character for character in text if not character.isspace()]
    for word in words:
        yield word, 1.0
    for first, second in pairwise(words):
        yield f"{first} {second}", PAIR_WEIGHT
