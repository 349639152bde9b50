"""Frames that are spoken about the same heads and values, and whose statements lie near one another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory_core.layers.components import Vectors
from memory_core.shmr.frame_grammar import collects_by_words, noun_of
from memory_core.shmr.readings import Frame

MIN_HEADS = 3
MIN_CLOSENESS = 0.5
"""Cosine of two phrases' mean statements, each less the mean of all, from which on they may be one relation."""

CLOSE_WHERE_SOME_AGREE = 0.4
CLOSE_WHERE_MANY_AGREE = 0.1
"""The same where two, or three and more, heads have the same value in both: more than chance would give."""

AGREEING = 0.2
"""Share of the heads of both that agree, below which two phrases say different things that meet now and then."""

MANY_FRAMES = 200
"""A head or value that more phrases share says nothing about any two of them."""


@dataclass(frozen=True, slots=True)
class Said:
    """One statement as a frame reads it: its row among the statements, its normalised head and value, and when."""

    row: int
    head: str
    value: str
    at: float = 0.0


def alike(said: Mapping[Frame, Sequence[Said]], vectors: Vectors) -> Iterable[tuple[float, Frame, Frame, bool]]:
    """Pairs of frames that share heads and values and whose statements lie near one another; True: value first."""
    frames = [frame for frame in sorted(said, key=str) if len(said[frame]) >= MIN_HEADS]
    if len(frames) < 2:
        return
    means = np.stack([vectors[[each.row for each in said[frame]]].mean(axis=0) for frame in frames])
    means = means - vectors.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    facts = [FrameFacts(said[frame]) for frame in frames]
    collecting = [collects_by_words(frame) for frame in frames]
    nouns = [noun_of(frame) for frame in frames]
    for i, j in sorted(_sharing(facts)):
        closeness = float(means[i] @ means[j])
        straight = facts[i].shared(facts[j].heads, facts[j].values)
        turned = facts[i].shared(facts[j].values, facts[j].heads)
        inverted = min(turned) > min(straight)
        heads, values = turned if inverted else straight
        if min(heads, values) < 1 or heads + values < 3 or collecting[i] != collecting[j]:
            continue
        agreed = facts[i].agreement(facts[j], inverted=inverted)
        if closeness < (MIN_CLOSENESS, CLOSE_WHERE_SOME_AGREE, CLOSE_WHERE_MANY_AGREE)[agreed]:
            continue
        both_named = nouns[i] is not None and nouns[j] is not None
        # Two nouns name two relations ("mother", "father") unless they are seen to say the same.
        if agreed or (not both_named and not facts[i].speaks_of_other_things(facts[j], inverted=inverted)):
            yield closeness + agreed, frames[i], frames[j], inverted


class FrameFacts:
    """What the statements of one frame are about."""

    def __init__(self, statements: Sequence[Said]) -> None:
        self.by_head: dict[str, set[str]] = defaultdict(set)
        self.by_value: dict[str, set[str]] = defaultdict(set)
        for each in statements:
            self.by_head[each.head].add(each.value)
            self.by_value[each.value].add(each.head)

    @property
    def heads(self) -> Collection[str]:
        """Everything that the frame is spoken about."""
        return self.by_head.keys()

    @property
    def values(self) -> Collection[str]:
        """Everything that it says of them."""
        return self.by_value.keys()

    def shared(self, heads: Collection[str], values: Collection[str]) -> tuple[int, int]:
        """How many of these heads and of these values the frame has too."""
        return len(self.by_head.keys() & heads), len(self.by_value.keys() & values)

    def agreement(self, other: FrameFacts, *, inverted: bool) -> int:
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
        if agreed < 2 or agreed < AGREEING * len(both):
            return 0
        return 2 if agreed >= 3 else 1

    def speaks_of_other_things(self, other: FrameFacts, *, inverted: bool) -> bool:
        """Whether heads that both frames speak of nearly always have another value in each ("born in", "lives in").

        Two wordings of one relation disagree about as often as one wording disagrees with itself.
        """
        theirs = other.by_value if inverted else other.by_head
        both = [head for head in self.by_head if head in theirs]
        differ = sum(1 for head in both if self.by_head[head].isdisjoint(theirs[head]))
        within = sum(1 for facts in (self.by_head, theirs) for values in facts.values() if len(values) > 1)
        return differ >= 4 and differ > 0.6 * min(len(self.by_head), len(theirs)) and differ > 3 * within


def _sharing(facts: Sequence[FrameFacts]) -> set[tuple[int, int]]:
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
