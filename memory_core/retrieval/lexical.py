"""How many of a question's words a text says: names and codes that vectors of whole sentences blur."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from memory_core.layers.words import FUNCTION_WORDS, word_key, words_of

_ASKING = words_of("what who whom whose which where when why how")
_WORD = re.compile(r"\w[\w'’.-]*\w|\w")


def lexical_agreement(question: str, texts: Sequence[str]) -> list[float]:
    """For each text, the share of the question's words that it holds, rare words weighing more.

    A word weighs log(1 + n / (1 + d)) where d of the n texts hold it (inverse document frequency over these texts
    alone: they are the candidates that have to be told apart). Function words and question words weigh nothing.

    Args:
        question: the question, in plain words.
        texts: n candidates.

    Returns:
        n numbers, 0 to 1; all 0 where the question has no word that weighs.
    """
    held = [_words(text) for text in texts]
    frequency = Counter(word for words in held for word in words)
    weights = {word: math.log(1 + len(texts) / (1 + frequency[word])) for word in _words(question)}
    total = sum(weights.values())
    if not total:
        return [0.0] * len(texts)
    return [sum(weight for word, weight in weights.items() if word in words) / total for words in held]


def _words(text: str) -> frozenset[str]:
    plain = (word.replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(word_key(word) for word in plain) - FUNCTION_WORDS - _ASKING
