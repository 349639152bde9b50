"""Relations: which learned phrases say the same thing in other words, in which direction, and how many values hold.

Two phrases are one relation where grammar says so ("The capital of X is Y", "Y is the capital of X", "X's capital is
Y"; "X was founded by Y", "Y founded X"), or where they are spoken about the same heads and the same values, and the
statements that they make lie near one another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_core.layers.components import Vectors
from memory_core.shmr.alike_frames import MIN_HEADS, Said, alike
from memory_core.shmr.frame_grammar import many_by_words, names_one_thing, passive_of, relation_word, takes_object
from memory_core.shmr.readings import Frame

MIN_HEADS_TO_JUDGE = 8
"""Heads a relation needs before its values say whether it is single- or many-valued."""

MOST_AT_ONCE = 3
MOST_EXCEPTIONS = 0.02
"""Values that a head of a relation of one value may have been told meanwhile, and the share of heads that had more."""

MIN_RETURNING = 2
MOST_RETURNING = 0.2
"""Heads that have a former value again, and their share of those with several, from which on values stand together."""

MIN_SHARED = 1.5
"""How many more heads a value has than a head has values, before it is a kind of thing that a head is or has one of."""

MIN_REPLACED = 20
MOST_COLLECTED = 0.05
"""Heads with a second value that a text needs, and the share of them with a third up to which values replace."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What a frame says.

    Attributes:
        name: the same for all frames of one relation.
        inverted: the frame has the value before the head ("Y is the capital of X").
        many: whether several values hold at once; None where the text does not show it.
        settled: its grammar names one thing ("the capital of"), so any short value is one of its values.
    """

    name: str
    inverted: bool = False
    many: bool | None = None
    settled: bool = False


def relations_of(said: Mapping[Frame, Sequence[Said]], vectors: Vectors | None) -> dict[Frame, Relation]:
    """The relation of each frame.

    Args:
        said: the statements that each frame reads.
        vectors: shape (n, d), of all statements; None links by grammar alone.
    """
    groups = _Groups(said)
    participles = {word for frame in said if (word := passive_of(frame))}
    by_grammar: dict[str, tuple[Frame, bool]] = {}
    for frame in sorted(said, key=str):
        found = relation_word(frame, participles)
        if found is not None:
            key, inverted = found
            other, turned = by_grammar.setdefault(key, (frame, inverted))
            groups.join(frame, other, inverted != turned)
    if vectors is not None:
        for _, first, second, inverted in sorted(alike(said, vectors), key=lambda each: (-each[0], str(each[1:]))):
            if not _would_hold_many(groups, first, second, said, participles, inverted=inverted):
                groups.join(first, second, inverted)
    replacing = _values_replace_one_another(groups.members(), said)
    relations: dict[Frame, Relation] = {}
    for members in groups.members():
        relations |= _judged(members, said, participles, replacing)
    return relations


class _Groups:
    """Frames joined to groups, each with its direction inside its group."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self._group = {frame: {frame: False} for frame in frames}

    def of(self, frame: Frame) -> dict[Frame, bool]:
        """The frames of a frame's group, and whether each runs against it."""
        group = self._group[frame]
        return {each: turned ^ group[frame] for each, turned in group.items()}

    def join(self, first: Frame, second: Frame, inverted: bool) -> None:
        one, other = self._group[first], self.of(second)
        if second not in one:
            one |= {each: turned ^ one[first] ^ inverted for each, turned in other.items()}
            self._group |= dict.fromkeys(other, one)

    def members(self) -> list[dict[Frame, bool]]:
        return list({id(group): group for group in self._group.values()}.values())


def _statements(
    members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], *, turned: bool
) -> Iterator[tuple[str, str, float]]:
    """What a group's frames say: head, value and when, in the group's direction or, turned, against it."""
    for frame, inverted in members.items():
        for each in said[frame]:
            first, second = (each.value, each.head) if inverted != turned else (each.head, each.value)
            yield first, second, each.at


def _values_replace_one_another(groups: Iterable[Mapping[Frame, bool]], said: Mapping[Frame, Sequence[Said]]) -> bool:
    """Whether in this text a head with a second value hardly ever gets a third: then values replace one another.

    Where values are collected, a head that was spoken of twice is spoken of a third time as easily.
    """
    second = third = 0
    for members in groups:
        sizes = _sizes(members, said, turned=False)
        if len(sizes) >= MIN_HEADS and not any(takes_object(frame) for frame in members):
            second += sum(1 for size in sizes if size >= 2)
            third += sum(1 for size in sizes if size >= 3)
    return second >= MIN_REPLACED and third <= MOST_COLLECTED * second


def _judged(
    members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], participles: Collection[str], replacing: bool
) -> dict[Frame, Relation]:
    turned = _turned(members, said, participles)
    sizes = _sizes(members, said, turned=turned)
    weight = {frame: len(said[frame]) for frame in members}
    straight = [frame for frame in members if members[frame] == turned] or list(members)
    name = str(max(straight, key=lambda frame: (weight[frame], str(frame))))
    settled = sum(weight[frame] for frame in members if names_one_thing(frame)) * 2 >= sum(weight.values())
    shared = _mean(_sizes(members, said, turned=not turned))
    returning = _returning(members, said, turned=turned)
    many = _many(members, straight, weight, sizes, shared, returning, settled=settled, replacing=replacing)
    return {frame: Relation(name, members[frame] != turned, many, settled) for frame in members}


def _turned(members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], participles: Collection[str]) -> bool:
    """Whether the group's relation runs against the direction in which its frames were joined."""
    vote = 0.0
    for frame, inverted in members.items():
        found = relation_word(frame, participles)
        if found is not None:
            vote += len(said[frame]) * (1 if found[1] == inverted else -1) * 3
        elif not takes_object(frame):
            vote += len(said[frame]) * (-1 if inverted else 1)
    if len(members) > 1 or not vote:
        # One thing has one value: the side that would have many is not the head.
        straight = _mean(_sizes(members, said, turned=False))
        turned = _mean(_sizes(members, said, turned=True))
        if max(straight, turned) > 2 * min(straight, turned):
            return straight > turned
    return vote < 0


def _would_hold_many(
    groups: _Groups,
    first: Frame,
    second: Frame,
    said: Mapping[Frame, Sequence[Said]],
    participles: Collection[str],
    *,
    inverted: bool,
) -> bool:
    """Whether two groups of one value at a time would together hold several: then they are two relations."""
    one, other = groups.of(first), {frame: turned ^ inverted for frame, turned in groups.of(second).items()}
    both = {**one, **other}
    turned = _turned(both, said, participles)
    if _collects(_sizes(both, said, turned=turned)):
        return not any(_collects(_sizes(each, said, turned=turned)) for each in (one, other))
    returning = _returning(both, said, turned=turned)
    before = sum(_returning(each, said, turned=turned) for each in (one, other))
    return returning >= MIN_RETURNING and returning > before


def _returning(members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], *, turned: bool) -> int:
    """How many heads are said to have a value again after they were said to have another: it was not replaced."""
    told: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for first, second, at in _statements(members, said, turned=turned):
        told[first].append((at, second))
    return sum(1 for values in told.values() if _comes_back(values))


def _comes_back(told: list[tuple[float, str]]) -> bool:
    seen: set[str] = set()
    last = None
    for _, value in sorted(told):
        if value != last and value in seen:
            return True
        seen.add(value)
        last = value
    return False


def _sizes(members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], *, turned: bool) -> list[int]:
    """How many values each head has."""
    values: dict[str, set[str]] = defaultdict(set)
    for first, second, _ in _statements(members, said, turned=turned):
        values[first].add(second)
    return [len(each) for each in values.values()]


def _collects(sizes: Sequence[int]) -> bool:
    many = sum(1 for size in sizes if size > MOST_AT_ONCE)
    return many > MOST_EXCEPTIONS * len(sizes) or _mean(sizes) > 2


def _mean(sizes: Sequence[int]) -> float:
    return sum(sizes) / len(sizes)


def _many(
    members: Mapping[Frame, bool],
    straight: Sequence[Frame],
    weight: Mapping[Frame, int],
    sizes: Sequence[int],
    shared: float,
    returning: int,
    *,
    settled: bool,
    replacing: bool,
) -> bool | None:
    if _collects(sizes) or returning >= max(MIN_RETURNING, MOST_RETURNING * sum(1 for size in sizes if size > 1)):
        return True
    votes: Counter[bool | None] = Counter()
    for frame in straight:
        votes[many_by_words(frame)] += weight[frame]
    by_words = True if votes[True] > votes[False] else False if votes[False] else None
    if by_words is not None:
        return by_words
    if all(not frame.content for frame in members):
        return None
    if all(takes_object(frame) for frame in members) and shared < MIN_SHARED * _mean(sizes):
        # "Y houses the offices of X": either end may be what is spoken of.
        return None
    if settled or len(sizes) >= MIN_HEADS_TO_JUDGE or replacing:
        return False
    return None
