"""Extractive summaries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core.sleep.summaries import shortened, summarise


def test_the_most_central_are_quoted_once_as_far_as_the_length_allows() -> None:
    """Repeated texts are quoted once, and one that does not fit makes room for a shorter one."""
    texts = ["Ann likes tea.", "ann  likes tea.", "b" * 60, "Ben likes rye."]
    found = summarise("TEA", 9, texts, length=60, quote_length=60)
    assert found.content == "TEA, 9 memories: Ann likes tea. · Ben likes rye."
    assert found.cited == (0, 3)


def test_long_texts_are_cut_at_a_word() -> None:
    """A quotation is one line, and says that it was cut."""
    assert shortened("one two\nthree, four five", 16) == "one two three…"
    assert shortened("x" * 30, 10) == "x" * 9 + "…"
    assert shortened(" a \n b ", 10) == "a b"


@given(st.lists(st.text(max_size=80), max_size=8), st.integers(80, 300), st.integers(20, 100))
def test_a_summary_keeps_its_length_and_cites_what_it_quotes(texts: list[str], length: int, quote_length: int) -> None:
    """Whatever the texts: bounded, never blank, and every cited position exists, once."""
    found = summarise("X", len(texts), texts, length=length, quote_length=quote_length)
    assert len(found.content) <= max(length, len("X, 8 memories: ") + quote_length)
    assert found.content.strip()
    assert sorted(set(found.cited)) == list(found.cited)
    assert all(position < len(texts) for position in found.cited)
