"""Facts of invented people, firms and places, each relation in several wordings, with what truly replaces what.

The wordings stand in `tests/data/reworded`; the names are made here, so that no statement is known from elsewhere.
The same arguments always give the same statements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

REWORDED = Path(__file__).parents[1] / "data" / "reworded"
WORDINGS = ("looked_at", "held_out")
"""The two sets of wordings; the second is only ever counted over."""

_NAMES = json.loads((REWORDED / "names.json").read_text("utf-8"))
"""Syllables and endings of invented names; `words` are the kinds of value that are words of the language."""


@dataclass(frozen=True)
class Relation:
    """One relation with its wordings; the field names are those of the data files."""

    head: str
    value: str
    one_to_one: bool
    single_valued: bool
    wordings: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """One sentence; `serial` counts from 0 in the order of telling, `fact` is (head, relation)."""

    sentence: str
    fact: tuple[str, str]
    value: str
    serial: int
    single_valued: bool


def relations(wordings: str) -> dict[str, Relation]:
    """The relations of one set of wordings, by name; raises FileNotFoundError for an unknown set."""
    found = json.loads((REWORDED / f"{wordings}.json").read_text("utf-8"))["relations"]
    return {name: Relation(**{**one, "wordings": tuple(one["wordings"])}) for name, one in found.items()}


def reworded_facts(
    seed: int,
    wordings: str,
    *,
    heads: int = 40,
    updates_share: float = 0.3,
    repeats_share: float = 0.15,
    distractors_share: float = 0.1,
) -> list[Statement]:
    """The statements in the order of telling.

    Each of `heads` heads of each single-valued relation is stated once. Of these, `updates_share` are stated again
    later with another value (a true update) and `repeats_share` others with the same value; `distractors_share` of
    all statements are of relations whose values coexist, two to four to a head. Each statement draws its wording.
    """
    random, known = Random(f"{seed}/{wordings}"), relations(wordings)
    names = _Names(random)
    shared = {kind: names.some(kind, heads) for kind in sorted({one.head for one in known.values()})}
    pools = {kind: names.some(kind, max(heads, 4)) for kind in ("person", "town", "company", "country")}
    told: list[tuple[float, str, str, str]] = []
    for name, one in known.items():
        if one.single_valued:
            values = _Values(names, one, pools, random)
            for head in shared[one.head]:
                told += _single(random, name, head, values, updates_share, repeats_share)
    wanted = round(len(told) * distractors_share / (1 - distractors_share))
    coexisting = [(name, one) for name, one in known.items() if not one.single_valued]
    coexisting_values = {name: _Values(names, one, pools, random) for name, one in coexisting}
    extra: list[tuple[float, str, str, str]] = []
    for at, (head, (name, _)) in enumerate((head, each) for head in shared["person"] for each in coexisting):
        if len(extra) >= wanted:
            break
        extra += [(random.random(), name, head, value) for value in coexisting_values[name].different(2 + at % 3)]
    return [
        Statement(_worded(random, known[name], head, value), (head, name), value, serial, known[name].single_valued)
        for serial, (_, name, head, value) in enumerate(sorted([*told, *extra]))
    ]


def replaced(statements: Iterable[Statement]) -> set[int]:
    """The serials of those that must give way: a later statement of the same fact has another value."""
    latest: dict[tuple[str, str], Statement] = {}
    told = [one for one in statements if one.single_valued]
    for one in told:
        latest[one.fact] = one
    return {one.serial for one in told if latest[one.fact].value != one.value}


def _single(
    random: Random, name: str, head: str, values: _Values, updates_share: float, repeats_share: float
) -> list[tuple[float, str, str, str]]:
    """One fact told once, or twice with another or the same value; each with its place in time in [0, 1)."""
    at, drawn, again = random.random(), random.random(), random.random()
    first, other = values.different(2)
    found = [(at, name, head, first)]
    if drawn < updates_share + repeats_share:
        found.append((at + (1 - at) * (0.01 + 0.99 * again), name, head, other if drawn < updates_share else first))
    return found


def _worded(random: Random, relation: Relation, head: str, value: str) -> str:
    """The statement in one of the relation's wordings, its first letter a capital."""
    sentence = random.choice(relation.wordings).format(head=head, value=value).replace("..", ".")
    return sentence[0].upper() + sentence[1:]


class _Values:
    """Where one relation's values come from: fresh names where no two heads may share one, else a shared list."""

    def __init__(self, names: _Names, relation: Relation, pools: dict[str, list[str]], random: Random) -> None:
        self._names, self._relation, self._random = names, relation, random
        self._pool = _NAMES["words"].get(relation.value) or pools[relation.value]

    def different(self, count: int) -> list[str]:
        """`count` values that differ from one another."""
        if self._relation.one_to_one:
            return self._names.some(self._relation.value, count)
        return self._random.sample(self._pool, count)


class _Names:
    """Draws names of each kind, none of them twice."""

    def __init__(self, random: Random) -> None:
        self._random, self._given = random, set[str]()

    def some(self, kind: str, count: int) -> list[str]:
        """`count` new names of a kind."""
        found: list[str] = []
        while len(found) < count:
            name = self._one(kind)
            if name not in self._given:
                self._given.add(name)
                found.append(name)
        return found

    def _word(self) -> str:
        parts = _NAMES["parts"]
        return "".join(self._random.choice(parts[which]) for which in ("starts", "middles", "ends"))

    def _one(self, kind: str) -> str:
        random, word = self._random, self._word()
        if kind == "person":
            particle = random.choice(_NAMES["parts"]["particles"]) if random.random() < 0.2 else ""
            return f"{word} {particle}{self._word()}"
        ending: str = random.choice(_NAMES["endings"][kind])
        return f"The {word}{ending}" if kind == "book" else word + ending
