"""The harmonizer without a model on plain sentences and on the planted data: little is decided, nothing wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memory_core.models.minilm import MiniLMEmbedding
from memory_core.shmr.decisions import ClusterDecision
from memory_core.shmr.phrases import learn_phrases
from memory_core.shmr.rules import harmonize_by_rules
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import slot_of
from tests.unit.small_clusters import decide, fact, moves, sentence

DATA = Path(__file__).parents[1] / "data"
PAIRS = json.loads((DATA / "text_pairs.json").read_text())["pairs"]
PLANTED = json.loads((DATA / "planted_slots.json").read_text())


def test_free_text_is_only_searched_for_duplicates() -> None:
    """The same text is a duplicate; near-identical text with another word, number or negation is not."""
    same = decide(sentence(1, "The door of the shed is green"), sentence(2, "the door of the shed is green."))
    assert (2, 1, "duplicate") in moves(same)
    vectors = np.ones((2, 1), dtype=np.float32)
    for one, other in (
        ("Mira bought a red bike for work", "Mira sold a red bike for work"),
        ("Alice trusts Bob with all keys", "Bob trusts Alice with all keys"),
        ("Room 4 has eleven chairs now", "Room 5 has eleven chairs now"),
    ):
        pair = sentence(1, one), sentence(2, other)
        assert harmonize_by_rules(pair, [None, None], vectors, ShmrSettings()) == ClusterDecision()
    moved = sentence(1, "Every Friday Alice waters plants"), sentence(2, "Alice waters plants every Friday")
    assert moves(harmonize_by_rules(moved, [None, None], vectors, ShmrSettings())) == {(2, 1, "duplicate")}


def test_sentences_that_cannot_both_hold_are_contested_not_replaced() -> None:
    """What words alone tell is likely, not certain: both sides stay, in a contested belief that supports the later."""
    vectors = np.ones((2, 1), dtype=np.float32)
    pair = sentence(1, "Lunch is before the review"), sentence(2, "Lunch is after the review")
    decision = harmonize_by_rules(pair, [None, None], vectors, ShmrSettings())
    assert decision.supersedes == ()
    (belief,) = decision.beliefs
    assert belief.status == "contested"
    assert (belief.supports, belief.contradicts) == ((pair[1].memory_id,), (pair[0].memory_id,))


def test_sentences_that_say_the_same_are_held_together() -> None:
    """Two wordings of one fact support one belief, and neither gives way."""
    vectors = np.ones((2, 1), dtype=np.float32)
    pair = sentence(1, "Rosa leads the night shift"), sentence(2, "The night shift is led by Rosa")
    decision = harmonize_by_rules(pair, [None, None], vectors, ShmrSettings())
    assert decision.supersedes == ()
    (belief,) = decision.beliefs
    assert (belief.status, set(belief.supports)) == ("held", {member.memory_id for member in pair})


def test_i_of_two_speakers_is_not_the_same() -> None:
    """The same words in the first person from two sources are two facts."""
    pair = sentence(1, "I am tired", source="ann"), sentence(2, "I am tired", source="ben")
    assert decide(*pair).supersedes == ()


async def test_text_pairs_are_never_wrongly_superseded() -> None:
    """No compatible pair loses a memory, and no contradicting pair loses the later one or is called a duplicate."""
    learned = learn_phrases([pair[side] for pair in PAIRS for side in ("earlier", "later")])
    provider = MiniLMEmbedding()
    for pair in PAIRS:
        members = [sentence(1, pair["earlier"]), sentence(2, pair["later"])]
        vectors = np.asarray(await provider.embed([member.content for member in members]))
        decision = harmonize_by_rules(members, [slot_of(m, learned) for m in members], vectors, ShmrSettings())
        allowed = {"contradiction": {(1, 2, "update")}, "duplicate": {(2, 1, "duplicate")}, "compatible": set()}
        assert moves(decision) <= allowed[pair["relation"]], pair
        for belief in decision.beliefs:
            contested = belief.status == "contested"
            assert pair["relation"] == ("contradiction" if contested or moves(decision) else "duplicate"), pair


def test_planted_contradictions_are_settled_and_look_alikes_untouched() -> None:
    """Most planted updates are decided for the new value, none for the old one, and no look-alike is touched."""
    number, facts, old = 0, [], set()
    for row in PLANTED["contradicting"]:
        for value in (row["object_old"], row["object_new"]):
            number += 1
            facts.append(fact(number, value, about=f"{row['subject']}|{row['predicate']}"))
        old.add(number - 1)
    for row in PLANTED["distractors"]:
        number += 1
        facts.append(fact(number, row["object"], about=f"{row['subject']}|{row['predicate']}"))
    losers = {loser for loser, _, _ in moves(decide(*facts))}
    assert losers <= old
    assert len(losers) >= 19


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bob works at Acme", "Bob works at night"),
        ("Bob works for Acme", "Bob works for free"),
        ("Bob lives in Berlin", "Bob lives in a small flat"),
        ("Bob lives in Berlin in summer", "Bob lives in Rome in winter"),
        ("Ann was born in Rome", "Ann was born in 1990"),
        ("Ann was born in May", "Ann was born in Italy"),
        ("Ben is married to Ann", "Ben is married to his job"),
        ("Ben reports to Ann", "Ben reports to Ann and Eva"),
        ("My sister lives in Rome", "My sister lives in Milan"),
        ("My favourite colour is blue", "My favourite food is pizza"),
        ("Mark said he lives in Rome", "Mark said he lives in Paris"),
        ("Maybe Ann lives in Rome", "Maybe Ann lives in Oslo"),
        ("If it rains Ann lives in Rome", "If it rains Ann lives in Oslo"),
        ("Is Ann based in Rome?", "Is Ann based in Oslo?"),
        ("Ann wants to live in Rome", "Ann wants to live in Oslo"),
        ("Ann used to live in Rome", "Ann used to live in Oslo"),
        ("Ann's brother and Ben live in Rome", "Ann's brother and Ben live in Oslo"),
        ("One of the servers is located in Rome", "One of the servers is located in Oslo"),
        ("Some tickets are not urgent", "Some tickets are urgent"),
        ("A colleague of Ann lives in Rome", "A colleague of Ann lives in Oslo"),
    ],
)
def test_sentences_that_only_look_like_rivals_are_left_alone(first: str, second: str) -> None:
    """The same words before different ends are no update where subject, kind of value or mood leave it open."""
    assert decide(sentence(1, first), sentence(2, second)) == ClusterDecision()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bob lives in Berlin", "Bob lives in Oslo"),
        ("The release is planned for 12 March", "The release is planned for 26 March"),
        ("My favourite colour is blue", "My favourite colour is green"),
        ("The owner of the archive is Sarah", "The owner of the archive is Miguel"),
        ("Ann works at Acme", "Ann no longer works at Acme"),
        ("The server is reachable", "The server is not reachable"),
    ],
)
def test_two_plain_sentences_are_enough_for_an_update(first: str, second: str) -> None:
    """Without a triple and without other text, a state that names one thing is replaced by its later value."""
    assert moves(decide(sentence(1, first), sentence(2, second))) == {(1, 2, "update")}
