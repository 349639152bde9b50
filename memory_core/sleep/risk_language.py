"""What the risk scan knows of one language, as plain data.

A list is a text of families separated by semicolons, or by line breaks where it has none, their forms separated by
commas; what follows `#` is a comment. A form is a word or several in a row, in any case; `a|b` in it stands for either
word, `~` for an article, a possessive or nothing, and `#` for a word with a digit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

Family = tuple[str, ...]
"""The forms of one word, folded."""


def folded(text: str) -> str:
    """The text as words are compared: NFC, case folded, typographic apostrophes made plain."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).replace("’", "'").casefold())


def families(text: str, determiners: Sequence[str] = ()) -> tuple[Family, ...]:
    """The families of a list.

    Args:
        determiners: what `~` stands for, beside nothing.
    """
    uncommented = "\n".join(line.partition("#")[0].strip() for line in folded(text).splitlines())
    return tuple(
        tuple(spelled for form in family.split(",") if form.strip() for spelled in _spelled(form, determiners))
        for family in uncommented.split(";" if ";" in uncommented else "\n")
        if family.strip()
    )


def _spelled(form: str, determiners: Sequence[str]) -> Iterator[str]:
    """The word rows that a form stands for."""
    choices = [("", *determiners) if word == "~" else tuple(word.split("|")) for word in form.split()]
    return (" ".join(filter(None, words)) for words in product(*choices))


def forms(text: str, determiners: Sequence[str] = ()) -> tuple[str, ...]:
    """The forms of a list whose families do not matter."""
    return tuple(form for family in families(text, determiners) for form in family)


@dataclass(frozen=True, slots=True)
class RiskLanguage:
    """One language.

    Attributes:
        code: ISO 639-1.
        markers: what makes a memory a risk.
        harmless: phrases that hold a marker and mean none, such as "crash course"; the longest match wins.
        negators: "no", "not": they deny a marker that follows in the same clause.
        negator_endings: endings of a word that denies, such as "n't".
        reversers: "without", "avoided", "low": they deny too, only as far as the next verb, and "not without" affirms.
        turners: what turns a reverser round beside the negators, such as "failed to".
        not_negators: phrases that hold a negator and deny nothing, such as "not only".
        breakers: words at which the reach of a negator ends.
        verbs: words at which the reach of a reverser ends as well.
        joiners: "and": the reach of a negator ends here unless a marker stands just before.
        set_aside: "if", "novel about": what follows in the same clause is supposed or told, not reported.
        frames: "role play", "crossword": before a marker in its sentence, they say that nobody is meant.
        all_clear: "turned out to be harmless": anywhere behind a marker, it takes it back.
        mentions: "the word", "the film": the marker just after it is a name.
        denials: what follows a marker in its clause and denies it, such as "ruled out".
        none: "none", "zero": deny a marker just before them, also after a colon ("Errors: none").
        free_endings: deny a marker that they are hyphened to, such as "free" in "risk-free".
        free_beginnings: likewise before it, such as "non" in "non-critical".
        compound_endings: a word that ends so is a marker, for languages that write compounds as one word.
        plural_endings: what a further marker may end in.
        articles: with a capital inside a sentence, they begin a title.
        names_are_capitalised: whether a capital inside a sentence means a name.
    """

    code: str
    markers: tuple[Family, ...]
    harmless: tuple[str, ...] = ()
    negators: tuple[str, ...] = ()
    negator_endings: tuple[str, ...] = ()
    reversers: tuple[str, ...] = ()
    turners: tuple[str, ...] = ()
    not_negators: tuple[str, ...] = ()
    breakers: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    joiners: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    all_clear: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    denials: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    free_endings: tuple[str, ...] = ()
    free_beginnings: tuple[str, ...] = ()
    compound_endings: tuple[str, ...] = ()
    plural_endings: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    names_are_capitalised: bool = False
