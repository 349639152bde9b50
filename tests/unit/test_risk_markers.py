"""Which words of a text speak of a real risk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.sleep.risk_language import families
from memory_core.sleep.risk_markers import RiskMarkers
from memory_core.sleep.risk_words import LANGUAGES
from tests.benchmarks import risk

ENGLISH = RiskMarkers.of(("en",))
GERMAN = RiskMarkers.of(("de",))

CONFUSING = ["no", "not", "without", "risk", "crash", "if", ",", ".", ":", "and", "is", "danger", "free", "avoided"]

RISKS = [
    ("Production outage since 9am", ("outage",)),
    ("The customer reports fraud on two cards", ("fraud",)),
    ("The pump crashed twice last night", ("crashed",)),
    ("They filed a lawsuit against the supplier", ("lawsuit",)),
    ("RISK: the only key holder leaves in May", ("risk",)),
    ("CRITICAL: disk full", ("critical", "disk full")),
    ("It is a high-risk, error-prone procedure", ("risk", "error")),
    ("There is a risk that both pumps fail", ("risk", "fail")),
    ("No backup, risk of data loss", ("risk", "data loss")),
    ("The move was not without risk", ("risk",)),
    ("We could not prevent the outage", ("outage",)),
    ("The crash could not be ruled out", ("crash",)),
    ("It is not only slow but dangerous", ("dangerous",)),
    ("There is no doubt about the danger", ("danger",)),
    ("No answer since the outage", ("outage",)),
    ("Working without gloves is dangerous", ("dangerous",)),
    ("Low pressure is a hazard", ("hazard",)),
    ("Tom's passport was stolen; nothing else", ("stolen",)),
    ("The new tenant left bad and negative reviews", ("negative reviews",)),
    ("Sales declined by a third", ("declined",)),
    ("We don’t know it yet: the flat was burgled", ("burgled",)),
]

NO_RISKS = [
    "This plan is risk-free",
    "A risk free trial, and riskless too",
    "There is no risk at all",
    "There is no risk, danger or threat",
    "Without any danger to the children",
    "That is not a threat",
    "The door isn't dangerous",
    "The door isn’t dangerous",
    "It has never crashed",
    "Nothing critical was found",
    "No one is in danger",
    "Neither is a threat",
    "No sign of fraud",
    "She tested negative for an infection",
    "The infection test came back negative",
    "The fraud was ruled out",
    "A failure is unlikely",
    "They averted a crash",
    "Two-factor login prevents fraud",
    "Low risk, says the broker",
    "Errors: none",
    "A non-critical anti-fraud note",
    "Press the asterisk key",
    "Uses lossless PNG",
    "See the glossary",
    "Cherry blossoms in April",
    "Covid test negative, all healthy",
    "uncritical praise",
    "Frisky puppy",
    "a terror of a toddler",
    "Maya reads The Fraud by Zadie Smith",
    "We played Crash Bandicoot all afternoon",
    "She takes a crash course in Greek",
    "Ann is in the fraud detection team",
    "The field error_log is in crash.py",
    "See https://example.org/risk/error-page or mail risk@example.org",
    "The word risk has four letters",
    "He called it 'the film Crash'",
    "If the export fails, restart the worker",
    "She is writing a novel about fraud",
    "I declined the invitation",
    "By accident we met again",
    "   ",
    "",
]


@pytest.mark.parametrize(("text", "words"), RISKS)
def test_real_risks_are_found_with_their_words(text: str, words: tuple[str, ...]) -> None:
    """Whole words in any inflection earn the tag, and the tag says which."""
    assert ENGLISH.words(text) == words


@pytest.mark.parametrize("text", NO_RISKS)
def test_denied_risks_and_look_alikes_are_left_alone(text: str) -> None:
    """Negation, endings such as -free, look-alikes, names, addresses and what is only supposed are no risk (F01)."""
    assert ENGLISH.words(text) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Die Ausfälle gefährden den Betrieb", ("ausfälle", "gefährden")),
        ("Ein Sicherheitsrisiko im Keller", ("sicherheitsrisiko",)),
        ("Es gibt kein Risiko", ()),
        ("Das Verfahren ist risikofrei und ungefährlich", ()),
        ("Der Betrug wurde ausgeschlossen", ()),
        ("Wenn die Pumpe einen Ausfall hat, Tom anrufen", ()),
        ("Nicht nur teuer, auch gefährlich", ("gefährlich",)),
    ],
)
def test_a_second_language_is_only_data(text: str, words: tuple[str, ...]) -> None:
    """The same rules read German, compounds included."""
    assert GERMAN.words(text) == words


def test_languages_are_used_side_by_side() -> None:
    """Each language's words are found by its own rules, in the order in which they stand."""
    both = RiskMarkers.of(("en", "de"))
    assert both.words("Kein Risiko, says Ben; but a leak in the cellar, und ein Wasserschaden") == (
        "leak",
        "wasserschaden",
    )


def test_label_and_content_are_read_and_each_word_is_named_once() -> None:
    """A word in both label and content is one word."""
    assert ENGLISH.words("Outage report", "The outage and a second OUTAGE led to a lawsuit") == ("outage", "lawsuit")
    assert ENGLISH.words(None, "a leak") == ("leak",)


def test_markers_of_ones_own() -> None:
    """A further marker is found in its plural too; an ignored one goes with all its forms; what a person says wins."""
    own = RiskMarkers.of(("en",), extra=("moth", "dry rot", "crash course"), ignored=("error",))
    assert own.words("Moths in the coat, and dry rot") == ("moths", "dry rot")
    assert own.words("Three errors, one erroneous") == ()
    assert own.words("a crash course") == ("crash course",)
    assert own.words("no moths") == ()


def test_the_fingerprint_changes_with_the_lists() -> None:
    """Texts are looked at again exactly when the lists or the rules changed."""
    assert RiskMarkers.of(("en",)).fingerprint == RiskMarkers.of(("en",), (), ()).fingerprint
    others = {
        RiskMarkers.of(*arguments).fingerprint
        for arguments in [(("en",),), (("de",),), (("en", "de"),), (("en",), ("moth",)), (("en",), (), ("error",))]
    }
    assert len(others) == 5


def test_no_form_is_in_two_families() -> None:
    """Ignoring one word must not leave it in another family."""
    for language in LANGUAGES.values():
        forms = [form for family in language.markers for form in family]
        assert sorted(forms) == sorted(set(forms)), language.code


def test_a_list_reads_forms_comments_and_case() -> None:
    """The data format is what the module says."""
    assert families("Risk, RISKS # twice\n\n# nothing\nlate  fee") == (("risk", "risks"), ("late fee",))


@given(st.text(max_size=200))
def test_any_text_can_be_scanned(text: str) -> None:
    """No text breaks the scan, and nothing is found in a text without letters."""
    found = RiskMarkers.of(("en", "de")).words(text, text)
    assert len(found) == len(set(found))
    if not any(character.isalpha() for character in text):
        assert found == ()


@given(st.lists(st.sampled_from(CONFUSING), max_size=14))
def test_a_marker_in_a_clause_of_its_own_is_always_found(words: list[str]) -> None:
    """Whatever stands in the sentence before, a plain report in a sentence of its own earns the tag."""
    assert "outage" in ENGLISH.words(" ".join(words) + " . There was an outage")


@pytest.mark.parametrize(("half", "least"), [("tuned", 0.9), ("held_out", 0.85)])
@pytest.mark.parametrize("language", ["en", "de"])
def test_labelled_sentences_are_told_apart(half: str, least: float, language: str) -> None:
    """Precision and recall on the labelled sentences, and far better than looking for substrings."""
    figures = risk.measure(half)
    tagger, substrings = figures["tagger"][language], figures["substrings"][language]
    assert min(tagger["precision"], tagger["recall"]) >= least
    assert substrings["f1"] < tagger["f1"] / 2
