"""Whether two facts say the same in the same words: form does not count, every word that carries content does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.sleep.same_wording import wording_key

SAME = [
    ("The user prefers dark mode.", "user prefers dark mode"),
    ("User  prefers\nDark Mode!", "The user prefers the dark mode"),
    ("Alice doesn't eat meat", "Alice does not eat meat."),
    ("Alice doesn’t eat meat", "Alice doesn't eat meat"),
    ("Bob can't come on Monday", "Bob cannot come on Monday"),
    ("The call is at 3 pm", "Call is at 15:00"),
    ("The review is on May 5th, 2026", "The review is on 5 May 2026"),
    ("Anna has two dogs", "Anna has 2 dogs"),
    ("The limit is 1,000 requests", "The limit is 1000 requests"),
    ("Alice also likes tea", "Alice likes tea"),
]

LONG = (
    "After every release, once the checks are green and the backup has been verified by two people, the nightly job "
    "may drop the {} database and build it anew from the last dump."
)

DIFFERENT = [
    ("drop the staging database", "drop the production database"),
    (LONG.format("staging"), LONG.format("production")),
    ("Alice eats meat", "Alice does not eat meat"),
    ("Alice no longer works here", "Alice never works here"),
    ("You should not eat nuts and should drink milk", "You should eat nuts and should not drink milk"),
    ("No, delete the backups", "No delete the backups"),
    ("Alice trusts Bob", "Bob trusts Alice"),
    ("Send 5 euros to Ann from Ben", "Send 5 euros to Ben from Ann"),
    ("The limit is 100", "The limit is 1000"),
    ("It was 5 degrees", "It was -5 degrees"),
    ("It costs $5", "It costs €5"),
    ("Retries must be < 5", "Retries must be > 5"),
    ("Uses port 8080", "Uses port 8081"),
    ("Writes C", "Writes C++"),
    ("Writes C#", "Writes C++"),
    ("The key is aBc1", "The key is abC1"),
    ("Moved to the US", "Moved to the us"),
    (".env is committed", "env is committed"),
    ("A few people came", "Few people came"),
    ("Needs vitamin a", "Needs vitamin"),
    ("The server is up", "Is the server up?"),
    ("The server is up", "The server is up?"),
    ("Alice likes tea", "Alice likes green tea"),
    ("Alice is the CTO", "Alice was the CTO"),
    ("Alice has a dog", "Alice has dogs"),
    ("lost his phone", "lost her phone"),
    ("The call is at 3 pm", "The call is at 3 am"),
    ("...", "!!!"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_form_does_not_count(one: str, other: str) -> None:
    """Case, space, last punctuation, articles, contractions and ways of writing numbers and times."""
    assert wording_key(one) == wording_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_content_counts(one: str, other: str) -> None:
    """One word, number, sign, negation, name or identifier more, less, other or elsewhere is another statement."""
    assert wording_key(one) != wording_key(other)


def test_label_and_triple_count() -> None:
    """The same sentence about another label or of another triple is another fact; their form does not count either."""
    triple = ("Ann", "lives_in", "Porto")
    assert wording_key("likes tea", "ANN: drinks") != wording_key("likes tea", "BEN: drinks")
    assert wording_key("likes tea", "ANN: drinks") != wording_key("likes tea")
    assert wording_key("likes tea", "The user: drinks.") == wording_key("Likes tea.", "user: drinks")
    assert wording_key("lives there", None, triple) != wording_key("lives there", None, ("Ann", "lives_in", "Leeds"))
    assert wording_key("lives there", None, triple) != wording_key("lives there")
    assert wording_key("lives there", None, triple) == wording_key("lives there", None, ("ann", "lives in", "Porto"))


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("I prefer tea", "s-"),
        ("Don't call me tomorrow!", "st"),
        ("I'm allergic to nuts", "s-"),
        ("The meeting is tomorrow.", "-t"),
        ("Alice prefers tea", "--"),
        ("Visited the Iberian coast", "--"),
    ],
)
def test_speaker_and_day_are_marked(text: str, marks: str) -> None:
    """What "I" and "tomorrow" mean depends on who said it when; whole words only."""
    assert wording_key(text)[:2] == marks
    assert len(wording_key(text)) == 34


@given(st.text())
def test_any_text_has_a_key(text: str) -> None:
    """Whatever was remembered has one key, the same each time."""
    assert wording_key(text) == wording_key(text)


WORDS = ["alice", "bob", "not", "never", "trusts", "staging", "production", "5", "50", "red"]


@given(st.lists(st.sampled_from(WORDS), min_size=1), st.data())
def test_one_word_changed_is_another_statement(words: list[str], data: st.DataObject) -> None:
    """In a sentence of any length, a word that carries content cannot be exchanged."""
    place = data.draw(st.integers(0, len(words) - 1))
    other = [*words[:place], "blue", *words[place + 1 :]]
    assert wording_key(" ".join(words)) != wording_key(" ".join(other))
