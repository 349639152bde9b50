"""Relations: which learned phrases say the same thing in other words, in which direction, and how many values hold.

Two phrases are one relation where grammar says so ("The capital of X is Y", "Y is the capital of X", "X's capital is
Y"; "X was founded by Y", "Y founded X"), or where they are spoken about the same heads and the same values, and the
statements that they make lie near one another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from memory_core.layers.components import Vectors
from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS
from memory_core.shmr.lemmas import verb_of
from memory_core.shmr.readings import POSSESSIVE, Frame
from memory_core.shmr.word_groups import ENCOUNTERS
from memory_core.shmr.wording import MANY_VALUED, values_of_relation

MIN_HEADS = 3
MIN_HEADS_TO_JUDGE = 8
"""Heads a relation needs before its values say whether it is single- or many-valued."""

MIN_CLOSENESS = 0.5
"""Cosine of two phrases' mean statements, each less the mean of all, from which on they may be one relation."""

CLOSE_WHERE_SOME_AGREE = 0.4
CLOSE_WHERE_MANY_AGREE = 0.1
"""The same where two, or three and more, heads have the same value in both: more than chance would give."""

MANY_FRAMES = 200
"""A head or value that more phrases share says nothing about any two of them."""

MIN_REPLACED = 20
MOST_COLLECTED = 0.05

_BE = ("is", "was", "are", "were")
_BEFORE_NOUNS = ("of", "in", "for", "at")
_DETERMINERS = ("a", "an", "the", "its", "his", "her", "their", "it", "hi")
_NAMING = ("have", "name", "appoint", "elect", "choose", "select", "list", "give", "pick")
_RELATIVE = ("where", "that", "which", "who", "whose", "whom")
_ABLE = ("can", "could", "may", "might")
_LOOSE = ("name of the ", "current ", "present ")


@dataclass(frozen=True, slots=True)
class Said:
    """One statement as a frame reads it: its row among the statements, and its normalised head and value."""

    row: int
    head: str
    value: str


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
    participles = {word for frame in said if (word := _passive(frame))}
    by_grammar: dict[str, tuple[Frame, bool]] = {}
    for frame in sorted(said, key=str):
        found = _grammar(frame, participles)
        if found is not None:
            key, inverted = found
            other, turned = by_grammar.setdefault(key, (frame, inverted))
            groups.join(frame, other, inverted != turned)
    if vectors is not None:
        for _, first, second, inverted in sorted(_alike(said, vectors), key=lambda each: (-each[0], str(each[1:]))):
            if not _would_hold_many(groups, first, second, said, participles, inverted=inverted):
                groups.join(first, second, inverted)
    replacing = _values_replace_one_another(groups.members(), said)
    relations: dict[Frame, Relation] = {}
    for members in groups.members():
        relations |= _judged(members, said, participles, replacing)
    return relations


class _Groups:
    """Frames joined to groups, each with its direction inside its group (a union-find with parity)."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self._parent = {frame: frame for frame in frames}
        self._turned = dict.fromkeys(self._parent, False)

    def find(self, frame: Frame) -> tuple[Frame, bool]:
        turned = False
        while self._parent[frame] != frame:
            turned ^= self._turned[frame]
            frame = self._parent[frame]
        return frame, turned

    def of(self, frame: Frame) -> dict[Frame, bool]:
        """The frames of a frame's group, and whether each runs against it."""
        root, turned = self.find(frame)
        return {each: turned ^ found[1] for each in self._parent if (found := self.find(each))[0] == root}

    def join(self, first: Frame, second: Frame, inverted: bool) -> None:
        (one, one_turned), (other, other_turned) = self.find(first), self.find(second)
        if one != other:
            self._parent[other] = one
            self._turned[other] = one_turned ^ other_turned ^ inverted

    def members(self) -> list[dict[Frame, bool]]:
        found: dict[Frame, dict[Frame, bool]] = defaultdict(dict)
        for frame in self._parent:
            root, turned = self.find(frame)
            found[root][frame] = turned
        return list(found.values())


def _grammar(frame: Frame, participles: Collection[str]) -> tuple[str, bool] | None:
    """The word by which grammar names the frame's relation, and whether the frame has the value first."""
    noun = _noun(frame)
    if noun is not None:
        return f"noun {noun[0]}", noun[1]
    passive = _passive(frame)
    if passive is not None:
        return f"verb {passive}", False
    if not frame.lead and not frame.tail and len(frame.middle) == 1:
        for participle in participles:
            if frame.middle[0] in (participle, participle.removesuffix("d"), participle.removesuffix("ed")):
                return f"verb {participle}", True
    return None


def _noun(frame: Frame) -> tuple[str, bool] | None:
    lead, middle, tail = frame.lead, frame.middle, frame.tail
    if lead[:1] == ("it",) and lead[1:2] and lead[1] in _BE:
        # "It is Y that runs X": what is put in front is the value.
        return " ".join((*lead[2:], *middle, *tail)), True
    if lead[:1] == ("the",) and lead[-1] in _BEFORE_NOUNS and len(middle) == 1 and middle[0] in _BE and not tail:
        words, inverted = lead[1:-1], False
    elif lead or not middle:
        return None
    elif middle[0] in _BE and middle[-1] in _RELATIVE:
        # "Y is where X lives", "Y is the place where X lives".
        return " ".join((*middle[1:], *tail)), True
    elif middle[0] == POSSESSIVE and middle[-1] in _BE and not tail:
        words, inverted = middle[1:-1], False
    elif middle[0] in _BE and middle[1:2] == ("the",) and middle[-1] in _BEFORE_NOUNS and not tail:
        words, inverted = middle[2:-1], True
    elif len(middle) == 1 and middle[0] in _BE and tail[:1] == (POSSESSIVE,):
        words, inverted = tail[1:], True
    elif middle == ("is", "home", "to") and not tail:
        words, inverted = ("home",), True
    elif len(middle) == 1 and verb_of(middle[0]) in _NAMING and tail[:1] == ("as",):
        # "X has Y as its capital", "X names Y as the heir".
        words, inverted = tail[2:] if tail[1:2] and tail[1] in _DETERMINERS else tail[1:], False
    else:
        return None
    name = " ".join(words)
    for loose in _LOOSE:
        name = name.removeprefix(loose)
    plain = all(word not in AUXILIARIES and word not in _RELATIVE for word in words)
    return (name, inverted) if name and plain else None


def _passive(frame: Frame) -> str | None:
    middle = frame.middle
    if frame.lead or frame.tail or len(middle) not in (3, 4) or middle[-1] != "by" or middle[0] not in AUXILIARIES:
        return None
    return middle[-2] if middle[-2] not in FUNCTION_WORDS else None


def _definite(frame: Frame) -> bool:
    """Whether grammar names one thing: "the … of X is Y", "X is of the religion of Y"."""
    if _noun(frame) is not None or (frame.lead[:1] == ("the",) and frame.middle[-1] in _BE and not frame.tail):
        return True
    return frame.middle[-1] in ("of",) and "the" in frame.middle and not frame.tail


def _collecting(frame: Frame) -> bool:
    """Whether a word of the frame says that it holds many values ("speaks", as against "the mother tongue of")."""
    return _by_words(frame) is True or (
        _noun(frame) is None and not MANY_VALUED.isdisjoint(set(frame.middle) - FUNCTION_WORDS)
    )


def _takes_object(frame: Frame) -> bool:
    """Whether the value is the direct object of a verb ("wrote", "founded"): anyone may do it to several things."""
    middle = frame.middle
    if frame.lead or _noun(frame) is not None:
        return False
    return middle[-1] not in FUNCTION_WORDS and middle[0] not in AUXILIARIES and middle[0] != POSSESSIVE


def _alike(said: Mapping[Frame, Sequence[Said]], vectors: Vectors) -> Iterable[tuple[float, Frame, Frame, bool]]:
    """Pairs of frames that share heads and values and whose statements lie near one another; True: value first."""
    frames = [frame for frame in sorted(said, key=str) if len(said[frame]) >= MIN_HEADS]
    if len(frames) < 2:
        return
    means = np.stack([vectors[[each.row for each in said[frame]]].mean(axis=0) for frame in frames])
    means = means - vectors.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    facts = [_Facts(said[frame]) for frame in frames]
    for i, j in sorted(_sharing(facts)):
        closeness = float(means[i] @ means[j])
        straight = facts[i].shared(facts[j].heads, facts[j].values)
        turned = facts[i].shared(facts[j].values, facts[j].heads)
        inverted = min(turned) > min(straight)
        heads, values = turned if inverted else straight
        if min(heads, values) < 1 or heads + values < 3 or _collecting(frames[i]) != _collecting(frames[j]):
            continue
        agreed = facts[i].agreement(facts[j], inverted=inverted)
        if closeness < (MIN_CLOSENESS, CLOSE_WHERE_SOME_AGREE, CLOSE_WHERE_MANY_AGREE)[agreed]:
            continue
        nouns = _noun(frames[i]), _noun(frames[j])
        # Two nouns name two relations ("mother", "father") unless they are seen to say the same.
        if agreed or (None in nouns and not facts[i].speaks_of_other_things(facts[j], inverted=inverted)):
            yield closeness + agreed, frames[i], frames[j], inverted


class _Facts:
    """What the statements of one frame are about."""

    def __init__(self, statements: Sequence[Said]) -> None:
        self.by_head: dict[str, set[str]] = defaultdict(set)
        self.by_value: dict[str, set[str]] = defaultdict(set)
        for each in statements:
            self.by_head[each.head].add(each.value)
            self.by_value[each.value].add(each.head)

    @property
    def heads(self) -> Collection[str]:
        return self.by_head.keys()

    @property
    def values(self) -> Collection[str]:
        return self.by_value.keys()

    def shared(self, heads: Collection[str], values: Collection[str]) -> tuple[int, int]:
        return len(self.by_head.keys() & heads), len(self.by_value.keys() & values)

    def agreement(self, other: _Facts, *, inverted: bool) -> int:
        """How often both say the same of a head, above what chance gives: 0 hardly, 1 somewhat, 2 clearly.

        By chance, two phrases about other things name the same value as often as their values' shares meet.
        """
        theirs = other.by_value if inverted else other.by_head
        their_values = other.by_head if inverted else other.by_value
        both = [head for head in self.by_head if head in theirs]
        agreed = sum(1 for head in both if not self.by_head[head].isdisjoint(theirs[head]))
        ours = sum(len(heads) for heads in self.by_value.values())
        others = sum(len(heads) for heads in their_values.values())
        meeting = sum(len(heads) * len(their_values.get(value, ())) for value, heads in self.by_value.items())
        if agreed < 4 * len(both) * meeting / (ours * others):
            return 0
        return 2 if agreed >= 3 else 1 if agreed == 2 else 0

    def speaks_of_other_things(self, other: _Facts, *, inverted: bool) -> bool:
        """Whether heads that both frames speak of nearly always have another value in each ("born in", "lives in").

        Two wordings of one relation disagree about as often as one wording disagrees with itself.
        """
        theirs = other.by_value if inverted else other.by_head
        both = [head for head in self.by_head if head in theirs]
        differ = sum(1 for head in both if self.by_head[head].isdisjoint(theirs[head]))
        within = sum(1 for facts in (self.by_head, theirs) for values in facts.values() if len(values) > 1)
        return differ >= 4 and differ > 0.6 * min(len(self.by_head), len(theirs)) and differ > 3 * within


def _sharing(facts: Sequence[_Facts]) -> set[tuple[int, int]]:
    spoken_of: dict[str, set[int]] = defaultdict(set)
    for number, each in enumerate(facts):
        for name in (*each.heads, *each.values):
            spoken_of[name].add(number)
    pairs: Counter[tuple[int, int]] = Counter()
    for numbers in spoken_of.values():
        if len(numbers) <= MANY_FRAMES:
            ordered = sorted(numbers)
            pairs.update((i, j) for position, j in enumerate(ordered) for i in ordered[:position])
    return {pair for pair, count in pairs.items() if count >= MIN_HEADS}


def _by_first(
    members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], *, turned: bool
) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for frame, inverted in members.items():
        for each in said[frame]:
            first, second = (each.value, each.head) if inverted != turned else (each.head, each.value)
            found[first].add(second)
    return found


def _values_replace_one_another(groups: Iterable[Mapping[Frame, bool]], said: Mapping[Frame, Sequence[Said]]) -> bool:
    """Whether in this text a head with a second value hardly ever gets a third: then values replace one another.

    Where values are collected, a head that was spoken of twice is spoken of a third time as easily.
    """
    second = third = 0
    for members in groups:
        sizes = [len(values) for values in _by_first(members, said, turned=False).values()]
        if len(sizes) >= MIN_HEADS and not any(_takes_object(frame) for frame in members):
            second += sum(1 for size in sizes if size >= 2)
            third += sum(1 for size in sizes if size >= 3)
    return second >= MIN_REPLACED and third <= MOST_COLLECTED * second


def _judged(
    members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], participles: Collection[str], replacing: bool
) -> dict[Frame, Relation]:
    turned = _turned(members, said, participles)
    by_head = _by_first(members, said, turned=turned)
    weight = {frame: len(said[frame]) for frame in members}
    straight = [frame for frame in members if members[frame] == turned] or list(members)
    name = str(max(straight, key=lambda frame: (weight[frame], str(frame))))
    settled = sum(weight[frame] for frame in members if _definite(frame)) * 2 >= sum(weight.values())
    many = _many(members, straight, weight, by_head, settled=settled, replacing=replacing)
    return {frame: Relation(name, members[frame] != turned, many, settled) for frame in members}


def _turned(members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], participles: Collection[str]) -> bool:
    """Whether the group's relation runs against the direction in which its frames were joined."""
    vote = 0.0
    for frame, inverted in members.items():
        found = _grammar(frame, participles)
        if found is not None:
            vote += len(said[frame]) * (1 if found[1] == inverted else -1) * 3
        elif not _takes_object(frame):
            vote += len(said[frame]) * (-1 if inverted else 1)
    if len(members) > 1 or not vote:
        # One thing has one value: the side that would have many is not the head.
        straight = _mean(_by_first(members, said, turned=False))
        turned = _mean(_by_first(members, said, turned=True))
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
    apart = [_sizes(each, said, turned=turned) for each in (one, other)]
    return _collects(_sizes(both, said, turned=turned)) and not any(_collects(sizes) for sizes in apart)


def _sizes(members: Mapping[Frame, bool], said: Mapping[Frame, Sequence[Said]], *, turned: bool) -> list[int]:
    return [len(values) for values in _by_first(members, said, turned=turned).values()]


def _collects(sizes: Sequence[int]) -> bool:
    return max(sizes) > 3 or sum(sizes) / len(sizes) > 2


def _mean(by_head: Mapping[str, set[str]]) -> float:
    return sum(len(values) for values in by_head.values()) / len(by_head)


def _many(
    members: Mapping[Frame, bool],
    straight: Sequence[Frame],
    weight: Mapping[Frame, int],
    by_head: Mapping[str, set[str]],
    *,
    settled: bool,
    replacing: bool,
) -> bool | None:
    sizes = [len(values) for values in by_head.values()]
    if _collects(sizes):
        return True
    votes: Counter[bool | None] = Counter()
    for frame in straight:
        votes[_by_words(frame)] += weight[frame]
    by_words = True if votes[True] > votes[False] else False if votes[False] else None
    if by_words is not None:
        return by_words
    bare = all(not frame.content for frame in members)
    if bare or all(_takes_object(frame) for frame in members):
        return None
    if settled or len(sizes) >= MIN_HEADS_TO_JUDGE or replacing:
        return False
    return None


def _by_words(frame: Frame) -> bool | None:
    """What the frame's words say: "The capital of X is Y" is judged by "capital", "X lives in Y" by "lives in"."""
    noun = _noun(frame)
    if (
        noun is None
        and (
            frame.middle[0] in _ABLE
            # "has a child named": what one has a piece of, one may have another of.
            or (frame.middle[0] in ("has", "have") and frame.middle[1:2] in (("a",), ("an",)))
            or any(verb_of(word) in ENCOUNTERS for word in frame.middle if word not in FUNCTION_WORDS)
        )
    ):
        return True
    if noun is not None:
        words = noun[0]
    elif frame.lead[:1] == ("the",) and frame.middle[-1] in _BE:
        words = " ".join(takewhile(lambda word: word not in FUNCTION_WORDS, frame.lead[1:]))
    else:
        # "X has been Y" says nothing that only one value could hold.
        words = " ".join(frame.content if frame.middle[-1] in _BE and frame.content else frame.middle)
    bare = noun is None and not _definite(frame) and frame.middle[0] in _BE and frame.content
    if bare and frame.content[-1] in MANY_VALUED:
        # "is a parent of", "is home to".
        return True
    return values_of_relation(words, named=False)
