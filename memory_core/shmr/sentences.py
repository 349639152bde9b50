"""What plain sentences of one cluster say of one another where no learned slot settles it.

Found here is what is likely, never certain: sentences that say the same are held together as one belief, and those
that cannot both hold become a contested one. Nothing is superseded on these grounds.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from uuid import UUID

from memory_core.layers.components import Components, Vectors
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.comparison import Verdict
from memory_core.shmr.decisions import BeliefProposal
from memory_core.shmr.slots import Slot
from memory_core.shmr.told import Told, told_by, verdict

_SPEAKS = re.compile(r"\b(?:i|my|me|we|our)\b", re.IGNORECASE)


@dataclass(slots=True)
class Sentences:
    """The sentences of one cluster with their clauses, in the order of time.

    Args:
        members: n memories; only those without a triple are compared.
        slots: n slots.
        vectors: shape (n, d), rows of length 1; without vectors nothing is compared.
        settled: ids of memories that gave way already or stand in a belief.
    """

    members: Sequence[Candidate]
    slots: Sequence[Slot | None]
    vectors: Vectors | None
    settled: Container[UUID]
    _told: dict[int, Told] = field(init=False)

    def __post_init__(self) -> None:
        order = sorted(range(len(self.members)), key=lambda i: self.members[i].in_time)
        self._told = {
            i: told_by(self.members[i].content)
            for i in order
            if not self.members[i].has_triple and self.members[i].memory_id not in self.settled
        }

    def beliefs(self) -> list[BeliefProposal]:
        """One belief for each group of sentences that say the same, and one for each pair of rivals."""
        if self.vectors is None or len(self._told) < 2:
            return []
        verdicts = list(self._verdicts())
        alike = Components(len(self.members))
        alike.join((i, j) for i, j, found in verdicts if found.kind == "same")
        place = {i: number for number, i in enumerate(self._told)}
        rivals = [each for each in verdicts if each[2].kind == "rival"]
        rivals.sort(key=lambda each: (place[each[1]], place[each[0]]))
        contested = {i for first, second, _ in rivals for i in (first, second)}
        beliefs = []
        for group in alike.groups():
            if len(group) > 1 and contested.isdisjoint(group) and not all(self.members[i].read_only for i in group):
                beliefs.append(self._held(group))
        taken: set[int] = set()
        # The latest rivals first: what was said last is what is asked about.
        for i, j, found in reversed(rivals):
            if taken.isdisjoint((i, j)):
                taken.update((i, j))
                beliefs.append(self._contested(i, j, found))
        return beliefs

    def _verdicts(self) -> Iterator[tuple[int, int, Verdict]]:
        assert self.vectors is not None
        for i, j in combinations(self._told, 2):
            one, other = self.members[i], self.members[j]
            if (one.read_only and other.read_only) or not same_speaker(one, other):
                continue
            found = verdict(self._told[i], self._told[j], float(self.vectors[i] @ self.vectors[j]))
            if found.kind == "same" or (found.kind == "rival" and not self._side_by_side(i, j)):
                yield i, j, found

    def _side_by_side(self, i: int, j: int) -> bool:
        """Whether the tenant's text shows that both may hold: one slot of many values."""
        one, other = self.slots[i], self.slots[j]
        if one is None or other is None or one.key != other.key:
            return False
        # "X is Y" may say any number of things, and what is counted or denied is not one more value.
        many = bool(one.multi_valued or other.multi_valued) and one.predicate not in ("is", "was")
        counted = any(map(str.isdigit, one.value)) and any(map(str.isdigit, other.value))
        return many and one.polarity and other.polarity and not counted

    def _held(self, group: Sequence[int]) -> BeliefProposal:
        kept = max((self.members[i] for i in group), key=lambda each: (each.by_person, len(each.content)))
        said = [self.members[i] for i in group]
        sources = len({each.source for each in said})
        return BeliefProposal(
            *self._triple(next(i for i in group if self.members[i] is kept)),
            content=kept.content,
            status="held",
            confidence=max(each.confidence for each in said),
            supports=tuple(each.memory_id for each in said),
            contradicts=(),
            superseded=(),
            rationale=f"said {len(said)} times in other words by {sources} source(s)",
            valid_from=min(each.observed_at for each in said),
        )

    def _contested(self, i: int, j: int, found: Verdict) -> BeliefProposal:
        earlier, later = self.members[i], self.members[j]
        subject, predicate, value = self._triple(j)
        return BeliefProposal(
            subject,
            predicate,
            f"{value} / {self._triple(i)[2]}",
            content=f"{later.content} / {earlier.content}",
            status="contested",
            confidence=min(earlier.confidence, later.confidence),
            supports=(later.memory_id,),
            contradicts=(earlier.memory_id,),
            superseded=(),
            rationale=f"both can hardly hold ({found.because}), and which of them does is not certain",
            valid_from=earlier.observed_at,
        )

    def _triple(self, i: int) -> tuple[str, str, str]:
        slot, clause = self.slots[i], self._told[i].clause
        if slot is not None:
            return slot.subject, slot.predicate, slot.value if slot.polarity else f"not {slot.value}"
        if clause is None:
            return "user", "said", self.members[i].content
        value = " ".join((*clause.rest, *clause.times)) or self.members[i].content
        return (
            " ".join(clause.subject) or "user",
            clause.verb or "is",
            value if clause.affirmed else f"not {value}",
        )


def same_speaker(first: Candidate, second: Candidate) -> bool:
    """Whether "I" means the same person in both, or it is not spoken of oneself."""
    return first.source == second.source or _SPEAKS.search(first.content) is None
