"""Names groups of texts by the words that set each apart: class-based TF-IDF. Pure."""

from __future__ import annotations

from collections.abc import Sequence

WORDS_A_NAME = 3


def topic_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group: its most telling words and word pairs, such as `olive oil, bread`.

    A term weighs tf * log(1 + A / f): how often it stands in the group, A the mean number of terms a group, and f how
    often it stands in all of them (class-based TF-IDF; M. Grootendorst, BERTopic, 2022, arXiv:2203.05794).

    Args:
        groups: the texts of each group.

    Returns:
        one name a group; a group without any word but stop words is called by its number. No two are alike.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    if not groups:
        return []
    vectorizer = CountVectorizer(stop_words="english", ngram_range=(1, 2), token_pattern=r"(?u)\b[^\W\d_][\w'-]+\b")
    try:
        counts = vectorizer.fit_transform("\n".join(texts) for texts in groups).tocsr()
    except ValueError:  # there is no word in any group
        return [f"number {number}" for number in range(1, len(groups) + 1)]
    import numpy as np

    terms = vectorizer.get_feature_names_out()
    rarity = np.log1p(counts.sum() / len(groups) / np.asarray(counts.sum(axis=0)).ravel())
    names: list[str] = []
    for number in range(1, len(groups) + 1):
        # Group by group, for all of them at once would take a number for each term in each.
        row = counts[[number - 1]]
        # Ties go by the alphabet, in which the terms stand.
        order = np.lexsort((row.indices, -row.data * rarity[row.indices]))
        name = ", ".join(_without_parts([str(terms[i]) for i in row.indices[order]])[:WORDS_A_NAME])
        name = name or f"number {number}"
        names.append(name if name not in names else f"{name} ({number})")
    return names


def _without_parts(terms: Sequence[str]) -> list[str]:
    """The terms without those whose words a better one holds already."""
    kept: list[str] = []
    taken: set[str] = set()
    for term in terms[: 10 * WORDS_A_NAME]:
        words = set(term.split())
        if not words & taken:
            kept.append(term)
            taken |= words
    return kept
