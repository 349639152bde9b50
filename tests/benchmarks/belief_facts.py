"""Facts that are replaced in the course of time: a public set of numbered statements, and reworded ones of our own."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.belief_store import REPLACED, BeliefStore, in_order, tenant
from tests.benchmarks.reworded_facts import WORDINGS, replaced, reworded_facts

FACTS = "factconsolidation_dev.json"
PARTS = ("multi_hop_6k", "single_hop_6k", "single_hop_32k")
"""What the entries of the file are, in its order."""

_VERBS = frozenset(
    {
        "is",
        "was",
        "are",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "does",
        "did",
        "can",
        "will",
        "may",
        "plays",
        "played",
        "speaks",
        "spoke",
        "works",
        "worked",
        "lives",
        "lived",
        "died",
        "holds",
        "held",
        "makes",
        "made",
        "wrote",
        "leads",
        "led",
        "runs",
        "ran",
    }
)
"""Common verbs: what is left after one is a value, not a subject."""
_MANY = 8
"""So many different endings after one word show that the word belongs to a relation rather than to a value."""


async def factconsolidation(store: BeliefStore, data: Path, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """Recall after harmonising, and what was wrongly taken out, for each part of the file.

    Truth is found here and not by the product: see `given_way`.
    """
    entries = json.loads((data / FACTS).read_text("utf-8"))
    found = {}
    for name, entry in zip(PARTS, entries, strict=True):
        if name in parts:
            found[name] = await _part(store, name, entry)
    return found


async def _part(store: BeliefStore, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    statements = re.findall(r"^\d+\. (.*)$", entry["context"], re.MULTILINE)
    gone, scope, told = given_way(statements), tenant("facts", name), in_order(statements)
    imported = await store.tell({scope: told})
    await store.harmonize([scope], told[-1].at + timedelta(hours=1))
    links = await store.links(scope)
    steps = await store.seconds(scope)
    taken = {int(link.loser) for link in links if link.kind in REPLACED}
    current = {plain(text) for number, text in enumerate(statements) if number not in gone}
    old = {plain(statements[number]) for number in gone} - current
    missed, stale = [], []
    for number, (question, answers) in enumerate(zip(entry["questions"], entry["answers"], strict=True)):
        first = plain(await store.first_answer(scope, question))
        if not any(f" {plain(answer)} " in f" {first} " for answer in answers):
            missed.append(number)
        if first in old:
            stale.append(number)
    wrong = sorted(taken - gone)
    same = {int(link.loser) for link in links if link.kind == "duplicate"}
    return {
        "statements": len(statements),
        "questions": len(entry["questions"]),
        "right": len(entry["questions"]) - len(missed),
        "questions_missed": missed if len(missed) < _MANY else len(missed),
        "superseded_recalled": len(stale),
        "questions_with_superseded": stale,
        "truly_replaced": len(gone),
        "superseded": len(taken),
        "superseded_wrongly": wrong,
        "duplicates_of_another_text": sorted(
            n for n in same if plain(statements[n]) not in {plain(s) for i, s in enumerate(statements) if i != n}
        ),
        "truly_replaced_left_current": len(gone - taken - same),
        "wrong_share_of_statements": round(len(wrong) / len(statements), 5),
        "contested": sum(link.kind == "contested" for link in links),
        "import_and_embedding_seconds": round(imported, 2),
        "harmonize_seconds": round(sum(steps.values()) - steps.get("embed", 0.0), 2),
        "seconds_by_step": steps,
    }


def plain(text: str) -> str:
    """Lower case, words only, one space between them."""
    return " ".join(re.findall(r"\w+", text.lower()))


def given_way(statements: Sequence[str]) -> set[int]:
    """The numbers of statements that a later one replaces, found by the longest beginning that two share.

    Two statements conflict where they share a beginning that holds a verb, and differ only in a value after it: no
    verb may be in what is left, and not both rests may start with a word of a relation, which is a lower-case word
    that the whole list continues in `_MANY` ways. Of the statements with one such beginning, those whose rest is not
    the last one's have given way. Works for lists in which subject and relation come before the value.
    """
    words = [text.rstrip(".").split() for text in statements]
    endings: dict[str, set[str]] = defaultdict(set)
    by_beginning: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, tokens in enumerate(words):
        for at in range(1, len(tokens)):
            by_beginning[tuple(tokens[:at])].append(number)
            if tokens[at].islower():
                endings[tokens[at]].add(" ".join(tokens[at + 1 :]))
    gone = set()
    for beginning, numbers in by_beginning.items():
        if len(numbers) < 2 or not _VERBS.intersection(word.removesuffix("'s") for word in beginning[1:]):
            continue
        rests = {number: words[number][len(beginning) :] for number in numbers}
        values = {n: rest for n, rest in rests.items() if not _VERBS.intersection(rest)}
        for number, rest in values.items():
            rivals = [other for n, other in values.items() if n > number and other[0] != rest[0]]
            if any(len(endings[rest[0]]) < _MANY or len(endings[other[0]]) < _MANY for other in rivals):
                gone.add(number)
    return gone


async def reworded(
    store: BeliefStore, *, seeds: Sequence[int] = (1, 2, 3), heads: int = 40, show: bool = False
) -> dict[str, Any]:
    """True updates found, and how many of all replacements are true, for each set of wordings.

    A duplicate between statements of one fact and value is right; any other is wrong, and counted as such.
    """
    return {wordings: await _reworded(store, wordings, seeds, heads, show) for wordings in WORDINGS}


async def _reworded(store: BeliefStore, wordings: str, seeds: Sequence[int], heads: int, show: bool) -> dict[str, Any]:
    shown: dict[str, list[Any]] = {"wrong": [], "missed": []}
    counted: dict[str, int] = defaultdict(int)
    relations: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for seed in seeds:
        facts = reworded_facts(seed, wordings, heads=heads)
        scope, told = tenant("reworded", wordings.replace("_", ""), seed), in_order(fact.sentence for fact in facts)
        await store.tell({scope: told})
        await store.harmonize([scope], told[-1].at + timedelta(hours=1))
        links = await store.links(scope)
        true = replaced(facts)
        taken = {int(link.loser) for link in links if link.kind in REPLACED}
        apart = [
            link
            for link in links
            if link.kind == "duplicate"
            and (facts[int(link.loser)].fact, facts[int(link.loser)].value)
            != (facts[int(link.winner)].fact, facts[int(link.winner)].value)
        ]
        wrong = (taken - true) | {int(link.loser) for link in apart}
        shown["wrong"] += [
            [link.kind, facts[int(link.loser)].sentence, facts[int(link.winner)].sentence]
            for link in links
            if int(link.loser) in wrong and link.kind != "contested"
        ]
        shown["missed"] += [[one.sentence for one in facts if one.fact == facts[n].fact] for n in sorted(true - taken)]
        for number in true | taken:
            seen = relations[facts[number].fact[1]]
            seen[0] += number in true
            seen[1] += number in true & taken
            seen[2] += number in taken - true
        counted["statements"] += len(facts)
        counted["true_updates"] += len(true)
        counted["found"] += len(true & taken)
        counted["wrong"] += len(wrong)
        counted["wrong_that_coexist"] += sum(not facts[number].single_valued for number in wrong)
        counted["contested"] += sum(link.kind == "contested" for link in links)
        counted["duplicates"] += sum(link.kind == "duplicate" for link in links)
    return {
        **counted,
        "recall": _share(counted["found"], counted["true_updates"]),
        "precision": _share(counted["found"], counted["found"] + counted["wrong"]),
        "by_relation": {name: dict(zip(("true", "found", "wrong"), n, strict=True)) for name, n in relations.items()},
        **(shown if show and wordings != "held_out" else {}),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
