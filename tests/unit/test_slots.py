"""Slots of triples and of plain sentences."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_core.errors import InvalidTime
from memory_core.layers.normal_text import normalise, normalise_value
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.phrases import LearnedPhrases, learn_phrases
from memory_core.shmr.slots import Slot, contradict, slot_of
from memory_core.shmr.wording import (
    normalise_predicate,
    same_words,
    split_negation,
    values_of_relation,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


def statement(content: str, *triple: str, source: str | None = None) -> Candidate:
    subject, predicate, value = triple or (None, None, None)
    return Candidate(UUID(int=1), 1, "hash", "semantic", content, subject, predicate, value, AT, 0.7, source)


def slots_of(*contents: str, among: tuple[str, ...] = ()) -> list[Slot | None]:
    learned = learn_phrases([*contents, *among])
    return [slot_of(statement(content), learned) for content in contents]


def slot_of_triple(subject: str, predicate: str, value: str, **given: str) -> Slot:
    slot = slot_of(statement(f"{subject} {predicate} {value}", subject, predicate, value, **given))
    assert slot is not None
    return slot


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The  User.", "user"),
        ("CAFE\u0301", "café"),
        ("an apple!", "apple"),
        ("Straße", "strasse"),
        ("the", "the"),
    ],
)
def test_text_has_one_form(text: str, same: str) -> None:
    """Case, spacing, Unicode form, articles and end punctuation do not make a text another one."""
    assert normalise(text) == same
    assert normalise(normalise(text)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,240 euros", "1240 EUR"),
        ("8 a.m.", "08:00"),
        ("12 PM", "12:00"),
        ("12 am", "00:00"),
        ("9:30", "09:30"),
        ("12 March", "March 12th"),
        ("May 29, 2025", "29 May 2025"),
        ("two cats", "2 cats"),
        ("ten kilometres", "10 km"),
    ],
)
def test_numbers_dates_times_and_units_have_one_form(one: str, other: str) -> None:
    """Two ways to write the same measure give the same value."""
    assert normalise_value(one) == normalise_value(other)


@pytest.mark.parametrize(("one", "other"), [("8 am", "8 pm"), ("1 May", "1 June"), ("1,240", "1,420"), ("1.5", "15")])
def test_different_measures_stay_different(one: str, other: str) -> None:
    """Normalising never makes two measures equal."""
    assert normalise_value(one) != normalise_value(other)


@pytest.mark.parametrize(
    ("text", "affirmed"),
    [
        ("is required", True),
        ("is not required", False),
        ("isn't required", False),
        ("never eats fish", False),
        ("no longer works there", False),
        ("cannot log in", False),
        ("is not unknown, never not used", False),
        ("not only tea", True),
        ("lives at no. 5", True),
        ("is in Norway", True),
    ],
)
def test_negation_is_counted(text: str, affirmed: bool) -> None:
    """An odd number of negations denies; words that only look like one do not."""
    assert split_negation(text)[1] is affirmed


def test_predicates_have_one_form() -> None:
    """Underscores, camel case, copulas and endings do not make a relation another one."""
    assert normalise_predicate("lives_in") == normalise_predicate("livesIn") == normalise_predicate("live in")
    assert normalise_predicate("deadline is") == normalise_predicate("deadline")
    assert normalise_predicate("is") == "is"
    assert normalise_predicate("was owner of") != normalise_predicate("is owner of")


def test_a_triple_names_its_slot() -> None:
    """A triple gives its slot without anything learned, denial and time set apart."""
    slot = slot_of_triple("The User", "does not live_in", "Berlin in May")
    assert slot == Slot("user", "live in", "berlin", False, "in may", False)
    assert slot_of_triple("Meeting", "date", "May 29").qualifier is None


def test_i_means_whoever_said_it() -> None:
    """The first person of two sources is two subjects."""
    ann, ben = (slot_of_triple("I", "lives in", "Rome", source=source) for source in ("ann", "ben"))
    assert ann.key != ben.key


def test_pronouns_give_no_slot() -> None:
    """A subject that only a context explains is no subject (false conflicts otherwise)."""
    assert slot_of(statement("She lives in Rome", "She", "lives in", "Rome")) is None
    assert slots_of("It opens at 8", "It opens at 9") == [None, None]


def test_relation_phrases_are_learned_from_their_recurrence() -> None:
    """A phrase between several heads and values becomes a slot, with words before and after the head."""
    old, new, other = slots_of(
        "The warden of Northgate Tower is Ilse Varga.",
        "The warden of Northgate Tower is Pavel Brandt.",
        "The warden of Mill House is Ottoline Reyes.",
        among=("The warden of Salt Pier is Jun Okafor.", "The warden of Old Bridge is Ilse Varga."),
    )
    assert old is not None
    assert new is not None
    assert other is not None
    assert old.subject == "northgate tower"
    assert (old.value, new.value) == ("ilse varga", "pavel brandt")
    assert old.key == new.key != other.key


def test_a_name_does_not_become_part_of_a_phrase() -> None:
    """A content word ends a phrase only where the words before it predict it."""
    names = ("Aster", "Birch", "Cedar", "Dogwood", "Elm", "Fir")
    cities = ("north harbour", "north lake", "north field", "south gate", "old port", "west hill")
    slots = slots_of(*(f"{n} is stored in the city of {c}." for n, c in zip(names, cities, strict=True)))
    assert [slot.value for slot in slots if slot] == list(cities)


def test_a_relation_with_many_values_is_recognised_in_the_text() -> None:
    """Heads with many values each show that values stand side by side; heads with one or two show the opposite."""
    many = [f"{name} curates the {thing}." for name in ("Ada", "Bo", "Cy", "Di") for thing in "abcd"]
    assert {slot.multi_valued for slot in slots_of(*many) if slot} == {True}
    single = [f"{name} is kept in the {thing}." for name, thing in zip("ABCDEFGHIJ", "klmnopqrst", strict=True)]
    assert {slot.multi_valued for slot in slots_of(*single) if slot} == {False}


def test_bare_auxiliaries_never_become_single_valued() -> None:
    """However many people "have been" something, one of it does not replace another."""
    slots = slots_of(*(f"{name} has been {doing}." for name, doing in zip("ABCDEFGHIJ", "klmnopqrst", strict=True)))
    assert False not in {slot.multi_valued for slot in slots if slot}


def test_statements_that_differ_at_the_end_are_aligned() -> None:
    """Two statements are enough where they share their beginning."""
    first, second = slots_of("Dan reports to Priya.", "Dan reports to Oleg.")
    assert first == Slot("dan", "report to", "priya", True, None, False)
    assert second is not None
    assert second.key == first.key


def test_negated_sentence_shares_the_slot_of_the_plain_one() -> None:
    """A denial is about the same thing as what it denies."""
    plain, denied = slots_of("Badges are needed on floor two.", "Badges are not needed on floor two.", among=(
        "Badges are sold at the desk.",))  # fmt: skip
    assert plain is not None
    assert denied is not None
    assert plain.key == denied.key
    assert contradict(plain, denied)


@pytest.mark.parametrize(
    ("predicate", "many"),
    [
        ("lives in", False),
        ("job_title", False),
        ("deadline is", False),
        ("prefers editor", False),
        ("plays the position of", None),
        ("plays", True),
        ("is allergic to", True),
        ("hobbies", True),
        ("hobby", True),
        ("speaks", True),
        ("preference", True),
        ("mentors", None),
        ("is interested in", None),
        ("visited", None),
    ],
)
def test_words_of_a_relation_hint_at_its_values(predicate: str, many: bool | None) -> None:
    """Where nothing was learned, a relation counts as single-valued only where its words say so."""
    assert values_of_relation(predicate, named=True) is many


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (("User", "lives in", "Berlin"), ("User", "lives in", "Paris"), True),
        (("User", "lives in", "Berlin"), ("Bob", "lives in", "Paris"), False),
        (("User", "lives in", "Lisbon"), ("User", "lives in", "Lisbon, Portugal"), False),
        (("User", "trip destination", "Rome in May"), ("User", "trip destination", "Oslo in June"), False),
        (("User", "likes", "tea"), ("User", "likes", "coffee"), False),
        (("User", "likes", "tea"), ("User", "does not like", "tea"), True),
        (("User", "city", "Oslo"), ("User", "city", "Bergen too"), False),
    ],
)
def test_what_contradicts_and_what_does_not(first: tuple[str, ...], second: tuple[str, ...], conflict: bool) -> None:
    """Another subject, another time, added detail and a many-valued relation are no contradictions."""
    one, other = slot_of_triple(*first), slot_of_triple(*second)
    assert contradict(one, other) is contradict(other, one) is conflict


def test_moved_words_are_the_same_and_swapped_names_are_not() -> None:
    """One part may move to the front; who does what to whom may not change."""
    assert same_words("every monday the shop opens", "shop opens every monday")
    assert not same_words("alice trusts bob", "bob trusts alice")
    assert not same_words("the door is open", "the door is closed")


def test_nothing_learned_gives_no_slot_and_raises_nothing() -> None:
    """Empty and odd text is no error."""
    learned = learn_phrases(["", " ", "one", "\ud800 is broken text here", "a " * 500])
    for text in ("", "one two", "x" * 10_000, "is is is is"):
        assert slot_of(statement(text), learned) is None
    assert slot_of(statement("Dan reports to Priya."), LearnedPhrases()) is None


def test_learning_grows_with_the_number_of_statements() -> None:
    """Eight times the statements take about eight times the work, and 16,000 a few seconds of it."""

    def seconds(count: int) -> float:
        statements = [f"The keeper of Room {i // 2} is Person {i % 97}." for i in range(count)]
        start = time.process_time()
        learned = learn_phrases(statements)
        assert all(slot_of(statement(text), learned) for text in statements)
        return time.process_time() - start

    small, large = seconds(2_000), seconds(16_000)
    assert large < 12
    assert large < 24 * small


def test_a_time_without_a_timezone_is_refused() -> None:
    """A naive time would order statements wrongly."""
    with pytest.raises(InvalidTime):
        Candidate(UUID(int=1), 1, "h", "semantic", "x", None, None, None, datetime(2026, 1, 1), 0.7, None)  # noqa: DTZ001
