"""English words: the ones that carry grammar alone, and the form that a word is compared in."""

from __future__ import annotations

from functools import lru_cache


def words_of(text: str) -> frozenset[str]:
    """The words of a space-separated list."""
    return frozenset(text.split())


AUXILIARIES = words_of(
    "is are was were be been am has have had do does did can could will would shall should may might must"
)
FUNCTION_WORDS = AUXILIARIES | words_of(
    "a an the of in on at to for from by with as into onto about over under between through and or that which who "
    "whom whose where when than then so"
)
"""Words that carry grammar, not content: a relation phrase may end in one, a subject may not be one."""

_INVARIABLE = words_of("is has was does this its always perhaps")


@lru_cache(maxsize=65_536)
def word_key(word: str) -> str:
    """What a word is compared by: its stem, case folded."""
    return stem(word.casefold())


def stem(word: str) -> str:
    """A lower-case word without its plural or third-person s."""
    if len(word) > 3 and word.endswith("s") and word not in _INVARIABLE and word[-2] not in "sui'":
        return word[:-1]
    return word
