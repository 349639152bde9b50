"""Labelled pairs of statements, read from a file: what belongs together, and what only looks alike.

One JSON object a line, or one JSON document with them in `pairs`:

    {"relation": "contradiction", "earlier": "Ann lives in Oslo.", "later": "Ann moved to Bergen."}

`relation` is `contradiction`, `duplicate` or `update` (they belong together), or `compatible` or `unrelated` (they do
not). A statement is a sentence, or an object with `subject`, `predicate` and `object`. A document may also hold
`contradicting` (facts with `object_old` and `object_new`) and `distractors` (facts about other subjects).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core.errors import InvalidInput

TOGETHER = ("contradiction", "duplicate", "update")
"""Relations of statements that are to be compared: one may replace the other, or say it again."""
APART = ("compatible", "unrelated")
"""Relations of statements that have nothing to settle."""

LARGEST_FILE = 50_000_000
"""Bytes of a file that is read; ten times what anybody labels by hand."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, and its triple where it is given as one.

    Attributes:
        slot: subject and predicate as one text; empty where there is no triple.
        subject: case-folded; empty where there is no triple.
    """

    text: str
    subject: str = ""
    slot: str = ""


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two statements, and whether they belong together."""

    relation: str
    earlier: Statement
    later: Statement

    @property
    def together(self) -> bool:
        """Whether they are to be compared."""
        return self.relation in TOGETHER


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What could not be used: the number of the line or entry, from 1, and why."""

    number: int
    reason: str


def read_pairs(path: Path) -> tuple[list[LabelledPair], list[Unreadable]]:
    """The pairs of a file, and what could not be used of it.

    Raises:
        InvalidInput: the file cannot be read, is too large or not UTF-8, or holds no pair at all.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InvalidInput(f"{path} is larger than {LARGEST_FILE:,} bytes.", hint="Give a part of it.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}.", hint="Give a file of labelled pairs."
        ) from error
    pairs: list[LabelledPair] = []
    unreadable: list[Unreadable] = []
    for number, entry in _entries(text):
        found = entry if isinstance(entry, str) else _pairs(entry)
        if isinstance(found, str):
            unreadable.append(Unreadable(number, found))
        else:
            pairs += found
    if not pairs:
        first = f" The first problem, at {unreadable[0].number}: {unreadable[0].reason}." if unreadable else ""
        raise InvalidInput(
            f"{path} holds no labelled pair.{first}",
            hint='Write one a line: {"relation": "contradiction", "earlier": "…", "later": "…"}.',
        )
    return pairs, unreadable


def _entries(text: str) -> Iterator[tuple[int, Any]]:
    """Numbered entries: JSON values, or the reason why a line is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "relation" not in document:
        yield from enumerate(_of_document(document), 1)
    elif isinstance(document, list):
        yield from enumerate(document, 1)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield number, _line(line)


def _line(line: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({getattr(error, 'msg', type(error).__name__)})"
    return value if isinstance(value, dict) else "not a JSON object"


def _of_document(document: Mapping[str, Any]) -> Iterable[Any]:
    def listed(name: str) -> list[Any]:
        value = document.get(name, [])
        return value if isinstance(value, list) else [f"{name!r} is not a list"]

    yield from listed("pairs")
    planted = listed("contradicting")
    yield from planted
    for fact in listed("distractors"):
        if not isinstance(fact, Mapping):
            yield fact
            continue
        # A look-alike shares its predicate or its object with what it is set beside, and not its subject.
        yield [
            {"relation": "unrelated", "earlier": _side(other, side), "later": fact}
            for other in planted
            if isinstance(other, Mapping) and other.get("subject") != fact.get("subject")
            for side in ("object_old", "object_new")
            if other.get("predicate") == fact.get("predicate") or other.get(side) == fact.get("object")
        ]


def _pairs(entry: Any) -> list[LabelledPair] | str:
    if isinstance(entry, list):
        found = [_pairs(each) for each in entry]
        problem = next((each for each in found if isinstance(each, str)), None)
        return problem or [pair for each in found if isinstance(each, list) for pair in each]
    if not isinstance(entry, Mapping):
        return "not a JSON object"
    if "object_old" in entry or "object_new" in entry:
        sides = {name: _side(entry, side) for name, side in (("earlier", "object_old"), ("later", "object_new"))}
        entry = {"relation": "contradiction", **sides}
    relation = entry.get("relation")
    if relation not in (*TOGETHER, *APART):
        return f"the relation is {relation!r}, and not one of {', '.join((*TOGETHER, *APART))}"
    earlier, later = (_statement(entry.get(name)) for name in ("earlier", "later"))
    if earlier is None or later is None:
        name = "earlier" if earlier is None else "later"
        return f"{name!r} is neither a sentence nor an object with subject, predicate and object"
    return [LabelledPair(str(relation), earlier, later)]


def _side(fact: Mapping[str, Any], side: str) -> dict[str, Any]:
    return {"subject": fact.get("subject"), "predicate": fact.get("predicate"), "object": fact.get(side)}


def _statement(value: Any) -> Statement | None:
    if isinstance(value, str):
        return Statement(value.strip()) if value.strip() else None
    if not isinstance(value, Mapping):
        return None
    parts = [value.get(name) for name in ("subject", "predicate", "object")]
    texts = [part.replace("_", " ").strip() for part in parts if isinstance(part, str) and part.strip()]
    if len(texts) < len(parts):
        return None
    return Statement(" ".join(texts), texts[0].casefold(), f"{texts[0]} {texts[1]}")
