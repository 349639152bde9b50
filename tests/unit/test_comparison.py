"""Two sentences compared word by word: the same thing first, then another value; what is only likely is not certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.shmr.clauses import clause_of
from memory_core.shmr.comparison import compare
from memory_core.shmr.expressions import expression_of


def kind(earlier: str, later: str, cosine: float = 0.8) -> str:
    """What the comparison of two sentences finds; `unread` where one is no clause."""
    first, second = clause_of(earlier), clause_of(later)
    return compare(first, second, cosine).kind if first and second else "unread"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The gate is closed", "The gate is open"),
        ("Nora moved to Graz in spring", "Nora lives in Bergen"),
        ("The audit is planned for 3 May", "The audit was postponed to 9 May"),
        ("Ivo eats fish", "Ivo does not eat fish any more"),
        ("Ivo can't drive", "Ivo can drive now"),
        ("The pump is working", "The pump is broken"),
        ("The crew has seven members", "The crew has nine members"),
        ("The fee is 30 euros", "The fee went up to €35"),
        ("Ida drives a van", "Ida sold the van"),
        ("The course is in room 3", "The course meets in room 5"),
        ("The door is locked", "The door is unlocked"),
        ("Mara smokes", "Mara quit smoking"),
        ("The mural was painted by Ivo", "The mural was painted by Nora"),
    ],
)
def test_what_cannot_both_hold_is_told(earlier: str, later: str) -> None:
    """Another value, an opposite, a denial, a change and an end of the same thing exclude what was said before."""
    assert kind(earlier, later) == "rival"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Lena wrote the report", "The report was written by Lena"),
        ("Lena owns the barn", "The barn belongs to Lena"),
        ("The mast is 150 cm high", "The mast has a height of 1.5 metres"),
        ("The trial takes a fortnight", "The trial takes 14 days"),
        ("The fee is $30", "The fee is 30 dollars"),
        ("Ines is thirty-six years old", "Ines is 36 years old"),
        ("The shop opens at half past nine", "The shop opens at 9:30"),
        ("Omar likes long walks", "Omar is fond of long walks"),
        ("The gate isn't open", "The gate is closed"),
        ("FYI, the gate is closed", "The gate is closed"),
    ],
)
def test_other_words_for_the_same_are_told(earlier: str, later: str) -> None:
    """Voice, converse verbs, units, sums, number words, idioms and openers change nothing of what is said."""
    assert kind(earlier, later) == "same"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Room 4 is full", "Room 5 is empty"),
        ("Ann's car is red", "Ben's car is blue"),
        ("Ann visited Rome", "Ann visited Oslo"),
        ("Ann likes tea", "Ann likes coffee"),
        ("Ann speaks Danish", "Ann speaks Dutch"),
        ("The team met Eva on Monday", "The team met Eva on Friday"),
        ("Trains run on Mondays", "Trains run on Fridays too"),
        ("Ann trusts Ben", "Ben trusts Ann"),
        ("Ann eats fish", "Ann does not eat fish on Fridays"),
        ("Ann works at Acme", "Ann works at night"),
        ("If it rains the gate is closed", "The gate is open"),
        ("Some tickets are urgent", "Some tickets are not urgent"),
        ("My sister lives in Rome", "My sister lives in Oslo"),
        ("Ann bought a bike", "Ann sold a bike"),
        ("The hut was visited by Ivo", "The hut was visited by Nora"),
        ("The office moved to a new building", "The new office building has a terrace"),
    ],
)
def test_other_things_and_times_have_nothing_to_settle(earlier: str, later: str) -> None:
    """Another subject, identifier, time, event or one of several values contradicts nothing."""
    assert kind(earlier, later) == "apart"


def test_the_same_meaning_needs_the_same_names_and_numbers() -> None:
    """A high cosine makes two short sentences one statement only where names, numbers and quantities are the same."""
    assert kind("Helga runs the bakery", "Helga is the manager of the bakery", 0.9) == "same"
    assert kind("Helga runs the bakery", "Helga is the manager of the bakery", 0.7) == "apart"
    assert kind("The bakery feeds all guests", "The bakery caters for some guests", 0.95) == "apart"


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_text_can_be_compared(earlier: str, later: str) -> None:
    """Whatever is written, reading and comparing it ends without an error, and no sentence is its own rival."""
    assert kind(earlier, later) in ("same", "rival", "apart", "unread")
    assert kind(earlier, earlier, 1.0) != "rival"
    assert expression_of(earlier) == expression_of(earlier)
