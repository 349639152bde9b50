"""The lexical signal: rare words of the question tell texts apart that mean nearly the same."""

from __future__ import annotations

from memory_core.retrieval.lexical import lexical_agreement


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    """Of texts about one thing, the one with the question's own name comes first."""
    texts = ["The harbour of Velmora is deep", "The harbour of Quistham is deep", "The harbour of Orlden is deep"]
    scores = lexical_agreement("How deep is the harbour of Quistham?", texts)
    assert max(scores) == scores[1] == 1.0
    assert scores[0] == scores[2] < 0.6


def test_plural_possessive_and_case_make_no_other_word() -> None:
    """ "Rosa's keys" holds both words of "rosa key"."""
    assert lexical_agreement("rosa key", ["Where Rosa's keys are"]) == [1.0]


def test_a_question_without_content_says_nothing() -> None:
    """Function words alone give 0 for every text, and no texts give no numbers."""
    assert lexical_agreement("what is it that was", ["this", ""])[1] == 0.0
    assert lexical_agreement("what is the", ["the", "is"]) == [0.0, 0.0]
    assert lexical_agreement("anything", []) == []
