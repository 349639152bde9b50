"""Base forms of English words, and what part of speech a word can be, from a dictionary (lemminflect)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_DERIVED = 5
"""Letters that two words share at their beginning before they may be of one family ("allergic", "allergy")."""


@lru_cache(maxsize=65_536)
def _forms(word: str) -> Mapping[str, tuple[str, ...]]:
    from lemminflect import getAllLemmas

    found: Mapping[str, tuple[str, ...]] = getAllLemmas(word)
    return found


@lru_cache(maxsize=65_536)
def lemmas(word: str) -> frozenset[str]:
    """The base forms that a lower-case word can have, itself included: "wrote" has "write", "lives" life and live."""
    found = {lemma for forms in _forms(word).values() for lemma in forms}
    # "better" stays itself: the dictionary calls it a form of "good" and of "well".
    return frozenset({word} | {lemma for lemma in found if lemma[:2] == word[:2] or word not in found})


def can_be(word: str, part: str) -> bool:
    """Whether the dictionary knows a lower-case word as a part of speech: NOUN, VERB, ADJ, ADV."""
    return part in _forms(word)


def verb_of(word: str) -> str | None:
    """The base form of a lower-case word as a verb; None where it is none."""
    forms = _forms(word).get("VERB")
    return forms[0] if forms else None


def same_family(first: str, second: str) -> bool:
    """Whether two words share a base form, or one is derived from the other ("allergic", "allergy")."""
    if first == second or not lemmas(first).isdisjoint(lemmas(second)):
        return True
    shared = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        shared += 1
    return shared >= _DERIVED and shared >= max(len(first), len(second)) - 4
