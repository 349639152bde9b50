"""The sections of the morning report: one a subject, made from the highlights of a run's document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_core.sleep.morning_words import day, plain, quoted, sentence

TEXT = 160
"""Characters of a statement in the report."""

SIDE = 90
"""Characters of a statement that shares its line with another."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line under an item: a piece of evidence, a reason.

    Attributes:
        label: what the line is to the item, such as `because`.
        text: the statement, in quotation marks where it is one.
        origin: when it was said, and by whom.
    """

    label: str
    text: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a section: its cells, one a column, and the notes under it."""

    cells: tuple[str, ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """What was done of one kind.

    Attributes:
        glyph: one character, and its stand-in for a terminal that knows ASCII alone.
        columns: names of the items' cells.
        total: how many there were; more than the items where there were many.
        lead: items that a terminal shows; markdown has them all.
    """

    title: str
    glyph: tuple[str, str]
    columns: tuple[str, ...]
    items: tuple[Item, ...]
    total: int
    lead: int = 8

    @property
    def with_notes(self) -> bool:
        """Whether an item has lines under it, so that a table would not hold them."""
        return any(item.notes for item in self.items)


def sections_of(highlights: Mapping[str, Any], *, dry: bool) -> tuple[Section, ...]:
    """The sections in reading order: what is believed first, what is gone last; empty ones are left out."""
    beliefs = highlights.get("beliefs") or {}
    found = []
    for kind in _KINDS:
        group = beliefs.get(kind.name[8:]) if kind.name.startswith("beliefs.") else highlights.get(kind.name)
        if group and group.get("total"):
            items = tuple(item for told in group["items"] for item in kind.items(told))
            title = kind.would if dry else kind.title
            found.append(Section(title, kind.glyph, kind.columns, items, group["total"], kind.lead))
    return tuple(found)


def matter(belief: Mapping[str, Any]) -> str:
    """What a contested belief is about, and its sides: shorter than all that was said about it."""
    about = [str(belief.get(name) or "").replace("_", " ") for name in ("subject", "predicate", "object")]
    return "{}, {}: {}".format(*about) if all(about) else str(belief["content"])


def _belief(item: Mapping[str, Any]) -> Iterable[Item]:
    cells = (plain(item["content"], TEXT), f"confidence {item['confidence']:.2f}")
    yield Item(cells, (*_former(item), *_evidence(item)))


def _contested(item: Mapping[str, Any]) -> Iterable[Item]:
    labels = {"supports": "one says", "contradicts": "another says", "superseded": "said before"}
    yield Item((plain(matter(item), TEXT), "undecided"), (*_former(item), *_evidence(item, labels)))


def _withdrawn(item: Mapping[str, Any]) -> Iterable[Item]:
    why = Note("why", sentence(str(item.get("reason") or "no reason was kept")))
    yield Item((plain(item["content"], TEXT), str(item["status"])), (why,))


def _former(item: Mapping[str, Any]) -> Iterable[Note]:
    former = item.get("former")
    if former:
        yield Note("was", quoted(former["content"], TEXT), f"believed since {day(former.get('valid_from'))}")
    yield from _rationale(item)


def _rationale(item: Mapping[str, Any]) -> Iterable[Note]:
    if item.get("rationale"):
        yield Note("why", sentence(str(item["rationale"])))


_ROLES = {"supports": "because", "contradicts": "against it", "superseded": "no longer"}


def _evidence(item: Mapping[str, Any], labels: Mapping[str, str] = _ROLES) -> Iterable[Note]:
    pieces = item.get("evidence") or ()
    former = (item.get("former") or {}).get("content", "")
    for piece in pieces:
        if piece["role"] == "superseded" and _same(piece["content"], former):
            continue  # said already as what the belief was
        source = f", {plain(piece['source'], 40)}" if piece.get("source") else ""
        label = labels.get(piece["role"], plain(piece["role"], 20))
        text = "the same words" if _same(piece["content"], item["content"]) else quoted(piece["content"], TEXT)
        yield Note(label, text, f"{day(piece.get('observed_at'))}{source}")
    more = (item.get("evidence_total") or 0) - len(pieces)
    if more > 0:
        yield Note("and", f"{more} more")


def _strengthened(item: Mapping[str, Any]) -> Iterable[Item]:
    uses = ", ".join(f"{number} × {plain(kind, 20)}" for kind, number in sorted((item.get("kinds") or {}).items()))
    yield Item((plain(item["content"], TEXT), f"{item['before']:.1f} → {item['after']:.1f}", uses))


def _linked(item: Mapping[str, Any]) -> Iterable[Item]:
    together = item["relationship"] == "CO_OCCURRED"
    relationship = "together with" if together else plain(str(item["relationship"]).replace("_", " ").lower(), 40)
    times = item.get("nights") or 1
    state = "new" if item["new"] else f"{times} nights" if together else f"confirmed {times} times"
    yield Item((plain(item["source_content"], SIDE), relationship, plain(item["target_content"], SIDE), state))


def _flagged(item: Mapping[str, Any]) -> Iterable[Item]:
    yield Item((plain(item["content"], TEXT), ", ".join(plain(word, 40) for word in item.get("words") or ())))


def _summarised(item: Mapping[str, Any]) -> Iterable[Item]:
    label = str(item.get("label") or "").removeprefix("META: ")
    members = f"{item.get('member_count') or 0} members" if item["state"] != "retired" else "members are gone"
    # A summary begins with its group's name and number of members, which stand beside it.
    head, _, rest = str(item["content"]).partition(": ")
    text = rest if rest and head.casefold().startswith(label.casefold()) else item["content"]
    yield Item((plain(label, 60), members, str(item["state"]), plain(text, SIDE)))


def _corrected(item: Mapping[str, Any]) -> Iterable[Item]:
    was = "" if item.get("previous") is None else plain(item["previous"], SIDE)
    said = ", ".join(part for part in (plain(item.get("who") or item["source"], 40), day(item.get("at"))) if part)
    yield Item((plain(item["field"], 60), f"{was or 'not set'} → {plain(item['value'], SIDE)}", said))


def _not_corrected(item: Mapping[str, Any]) -> Iterable[Item]:
    reasons = item.get("reasons")
    told = reasons.items() if isinstance(reasons, Mapping) else [("correction", reasons)]
    yield from (Item((plain(field, 60), sentence(str(reason)))) for field, reason in told if reason)


def _superseded(item: Mapping[str, Any]) -> Iterable[Item]:
    by = item.get("by")
    now = "" if by is None else plain(by, SIDE)
    same = item["reason"] == "duplicate" and by is not None and _same(by, item["content"])
    yield Item(
        (plain(item["content"], SIDE), day(item.get("observed_at")), "the same words" if same else now, item["reason"])
    )


def _same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _retired(item: Mapping[str, Any]) -> Iterable[Item]:
    yield Item((plain(item["content"], TEXT), sentence(str(item.get("reason") or "no reason was kept"))))


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    title: str
    would: str
    glyph: tuple[str, str]
    columns: tuple[str, ...]
    items: Callable[[Mapping[str, Any]], Iterable[Item]]
    lead: int = 8


_KINDS = (
    _Kind("beliefs.contested", "Contested", "Would be contested", ("?", "?"), ("belief", "state"), _contested),
    _Kind(
        "beliefs.changed", "Beliefs changed", "Beliefs that would change", ("◆", "*"), ("belief", "confidence"), _belief
    ),
    _Kind("beliefs.new", "New beliefs", "Beliefs that would be new", ("◆", "*"), ("belief", "confidence"), _belief),
    _Kind(
        "beliefs.supported",
        "Beliefs with new evidence",
        "Beliefs that would have new evidence",
        ("◇", "*"),
        ("belief", "confidence"),
        _belief,
    ),
    _Kind(
        "beliefs.withdrawn",
        "No longer believed",
        "Would no longer be believed",
        ("◇", "x"),
        ("belief", "state"),
        _withdrawn,
    ),
    _Kind(
        "corrected", "Profile corrected", "Profile corrections", ("✓", "+"), ("field", "change", "said by"), _corrected
    ),
    _Kind(
        "not_corrected",
        "Corrections refused",
        "Corrections that would be refused",
        ("✗", "x"),
        ("field", "why"),
        _not_corrected,
    ),
    _Kind(
        "superseded",
        "Statements replaced",
        "Statements that would be replaced",
        ("→", ">"),
        ("said", "on", "now", "why"),
        _superseded,
    ),
    _Kind("flagged", "Risks flagged", "Risks that would be flagged", ("!", "!"), ("memory", "words"), _flagged),
    _Kind("unflagged", "Flags withdrawn", "Flags that would be withdrawn", ("!", "!"), ("memory", "words"), _flagged),
    _Kind(
        "strengthened",
        "Strengthened",
        "Would be strengthened",
        ("↑", "^"),
        ("memory", "importance", "used"),
        _strengthened,
        5,
    ),
    _Kind("linked", "Linked", "Would be linked", ("↔", "-"), ("memory", "link", "memory", "state"), _linked, 4),
    _Kind(
        "summarised",
        "Summaries",
        "Summaries that would change",
        ("≡", "="),
        ("group", "members", "state", "summary"),
        _summarised,
        5,
    ),
    _Kind("retired", "Retired", "Would be retired", ("↓", "v"), ("memory", "why"), _retired),
)
