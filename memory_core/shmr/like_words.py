"""Words compared: which of two lists of words say the same, nearly the same, or the opposite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS
from memory_core.shmr.lemmas import can_be, lemmas, same_family
from memory_core.shmr.word_groups import OPPOSITES, SAME_GROUPS

EMPTY = (
    FUNCTION_WORDS
    | AUXILIARIES
    | {"there", "it", "its", "their", "his", "her", "my", "our", "your", "than", "per", "every", "each", "all"}
)
"""Words that carry no meaning of their own beside others."""


def meaning(words: Sequence[str]) -> frozenset[str]:
    """The words that carry meaning."""
    return frozenset(word for word in words if word not in EMPTY)


def without_common(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """The words of each list that the other does not hold in any form."""
    left, right = list(left), list(right)
    for word in list(left):
        match = next((each for each in right if same_family(each, word) or _same_hour(each, word)), None)
        if match is not None:
            left.remove(word)
            right.remove(match)
    return left, right


def without_same_meaning(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """The words of each list that have no word of nearly the same meaning in the other."""
    for word in list(left):
        match = next((each for each in right if same_groups(each) & same_groups(word)), None)
        if match is not None:
            left.remove(word)
            right.remove(match)
    return left, right


def _same_hour(first: str, second: str) -> bool:
    """Whether one is a bare number and the other that full hour ("at 2", "at 02:00")."""
    number, clock = sorted((first, second), key=len)
    return number.isdigit() and clock == f"{int(number):02d}:00"


@lru_cache(maxsize=65_536)
def same_groups(word: str) -> frozenset[int]:
    """The groups of like words that a word belongs to."""
    return frozenset().union(*(SAME_GROUPS.get(form, frozenset()) for form in lemmas(word)))


@lru_cache(maxsize=65_536)
def _opposites(word: str) -> frozenset[str]:
    return frozenset().union(*(OPPOSITES.get(form, frozenset()) for form in lemmas(word)))


def are_opposite(first: str, second: str) -> bool:
    """Whether two words exclude one another."""
    opposites = _opposites(first)
    if opposites and not opposites.isdisjoint(lemmas(second)):
        return True
    shorter, longer = sorted((first, second), key=len)
    return len(shorter) >= 4 and longer in (
        f"un{shorter}",
        f"in{shorter}",
        f"dis{shorter}",
        f"non{shorter}",
        f"im{shorter}",
    )


def only_says_how(word: str) -> bool:
    """Whether a word is an adverb of manner or degree."""
    return word.endswith("ly") and can_be(word, "ADV") and not can_be(word, "ADJ")
