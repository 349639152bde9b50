"""Sides: the statements of one slot grouped by what they say, and which of these groups cannot all hold."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from memory_core.shmr.candidates import Candidate
from memory_core.shmr.slots import Slot
from memory_core.shmr.wording import compatible, is_time


@dataclass(frozen=True, slots=True)
class Item:
    """A memory and its slot."""

    candidate: Candidate
    slot: Slot

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.candidate.memory_id


@dataclass(slots=True)
class Side:
    """Statements of one slot that say the same thing; `items` in order of time."""

    items: list[Item]

    @property
    def slot(self) -> Slot:
        """The most detailed of its slots."""
        return max((item.slot for item in self.items), key=lambda slot: (len(slot.value), slot.value))

    @property
    def first(self) -> Item:
        """The earliest statement."""
        return self.items[0]

    @property
    def last(self) -> Item:
        """The latest statement."""
        return self.items[-1]

    @property
    def own(self) -> list[Item]:
        """Those of this scope, which a decision may change."""
        return [item for item in self.items if not item.candidate.read_only]

    @property
    def by_person(self) -> bool:
        """Whether a person stands behind any of it."""
        return any(item.candidate.by_person for item in self.items)

    @property
    def by_own_person(self) -> bool:
        """Whether a person stands behind any of it in this scope."""
        return any(item.candidate.by_person for item in self.own)

    def stands_against(self, said_at: datetime, *, own: bool = False) -> bool:
        """Whether a person's word among them holds against something said at that time; `own`: in this scope."""
        return any(item.candidate.stands_against(said_at) for item in (self.own if own else self.items))

    @property
    def sources(self) -> int:
        """How many sources say it."""
        return len({item.candidate.source for item in self.items})

    @property
    def values(self) -> int:
        """How many forms of the value it holds."""
        return len({item.slot.value for item in self.items})

    @property
    def confidence(self) -> float:
        """That of its surest statement."""
        return max(item.candidate.confidence for item in self.items)

    @property
    def kept(self) -> Item:
        """What stands for the side: a correction, then confirmed, most detailed, earliest; a parent scope's last."""
        value = self.slot.value
        return min(
            self.own or self.items,
            key=lambda item: (
                item.candidate.corrects is None,
                not item.candidate.confirmed,
                item.slot.value != value,
                item.candidate.observed_at,
                str(item.id),
            ),
        )

    @property
    def ids(self) -> tuple[UUID, ...]:
        """The ids of all its memories."""
        return tuple(item.id for item in self.items)


def sides_of(items: list[Item]) -> list[Side]:
    """Items grouped by what they say; a value that only lacks the detail of exactly one other joins it."""
    by_value: dict[tuple[bool, str], list[Item]] = defaultdict(list)
    for item in items:
        by_value[item.slot.polarity, item.slot.value].append(item)
    for polarity, value in sorted(by_value, key=lambda key: -len(key[1])):
        fuller = [v for p, v in by_value if p == polarity and v.startswith((f"{value}, ", f"{value} ("))]
        if polarity and len(fuller) == 1:
            by_value[polarity, fuller[0]] += by_value.pop((polarity, value))
    sides = [Side(sorted(each, key=lambda item: item.candidate.in_time)) for each in by_value.values()]
    return sorted(sides, key=lambda side: side.first.candidate.in_time)


def holds_many(sides: list[Side]) -> bool | None:
    """Whether the slot holds many values: as its slots say, or because two values were stated in turns (A, B, A, B)."""
    hints = {item.slot.multi_valued for side in sides for item in side.items}
    if True in hints:
        return True
    timeline = sorted(
        ((item.candidate.observed_at, number) for number, side in enumerate(sides) for item in side.items)
    )
    values = [number for _, number in timeline]
    turns = sum(1 for earlier, later in pairwise(values) if earlier != later)
    if len(sides) > 1 and turns > len(sides):
        return True
    return None if None in hints else False


def rivals(sides: list[Side], many: bool | None) -> list[list[Side]]:
    """Groups of sides of which only one can hold."""
    affirmed = [side for side in sides if side.slot.polarity]
    denied = {side.slot.value: side for side in sides if not side.slot.polarity}
    pairs = [[side, denied[side.slot.value]] for side in affirmed if side.slot.value in denied]
    if many or len(affirmed) < 2:
        return pairs
    kinds = {is_time(side.slot.value) for side in affirmed}
    related = any(compatible(a.slot.value, b.slot.value) for a in affirmed for b in affirmed if a is not b)
    if pairs or related or len(kinds) > 1:
        # Values that only add words to one another, one that is denied as well, or "in Rome" beside "in 1990":
        # no clear set of rivals.
        return pairs
    stated = all(item.candidate.has_triple for side in affirmed for item in side.items)
    if many is None and not stated and not differ_in_numbers(affirmed):
        # A sentence's slot is a guess; without a relation known to be single-valued it is no ground for an objection.
        return pairs
    return [affirmed]


def differ_in_numbers(sides: list[Side]) -> bool:
    """Whether the values differ in their numbers alone ("08:00" / "09:00", "1240 eur" / "1420 eur")."""
    shapes = {re.sub(r"\d+", "0", side.slot.value) for side in sides}
    return len(shapes) == 1 and "0" in shapes.pop()


def is_denial(sides: list[Side]) -> bool:
    """Whether some sides affirm what others deny."""
    return len({side.slot.polarity for side in sides}) > 1
