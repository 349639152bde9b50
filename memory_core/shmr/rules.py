"""The harmonizer without a model: duplicates, updates and contradictions decided by fixed rules, or left contested.

Inside one slot, equal statements are duplicates; different ones conflict unless they are about different times, add
detail, or belong to a relation that holds many values. A conflict is decided by explicit correction, then observed
time, then independent support (specificity has been settled before: the more detailed of two compatible values stays).
What these do not decide becomes a contested belief: a wrong retirement costs more than an open question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from memory_core.layers.components import Vectors
from memory_core.layers.normal_text import normalise_value
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.decisions import BeliefProposal, ClusterDecision, Rejected, Supersede, SupersedeReason
from memory_core.shmr.sentences import Sentences, same_speaker
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.sides import Item, Side, differ_in_numbers, holds_many, is_denial, rivals, sides_of
from memory_core.shmr.slots import Slot
from memory_core.shmr.wording import same_words, split_negation

RULES_VERSION = 2
"""Stored with every decision; raised when a rule changes. New rules do not decide old clusters again by themselves."""

CLEARLY_LATER = timedelta(minutes=1)
"""Two statements closer in time than this have no order."""


@dataclass(slots=True)
class _Decisions:
    supersedes: dict[UUID, Supersede] = field(default_factory=dict)
    beliefs: list[BeliefProposal] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def supersede(self, losers: Iterable[Candidate], winner: Candidate, reason: SupersedeReason, because: str) -> None:
        for loser in losers:
            if loser.memory_id != winner.memory_id and not loser.read_only and loser.memory_id not in self.supersedes:
                self.supersedes[loser.memory_id] = Supersede(loser.memory_id, winner.memory_id, reason, because)


def harmonize_by_rules(
    members: Sequence[Candidate],
    slots: Sequence[Slot | None],
    vectors: Vectors | None,
    settings: ShmrSettings,
) -> ClusterDecision:
    """Decide one cluster. The same members give the same decision, in whatever order they come.

    Args:
        members: n memories; those that are `read_only` support and contradict but are never superseded.
        slots: n slots; of a memory without one only duplicates are found.
        vectors: shape (n, d), rows of length 1: the members' content vectors; None to compare by words alone.
        settings: `duplicate_threshold` and `max_beliefs_per_cluster` are used.
    """
    order = sorted(range(len(members)), key=lambda i: members[i].in_time)
    decisions = _Decisions()
    corrections = _explicit_corrections([members[i] for i in order], decisions)
    _free_text_duplicates(order, members, slots, vectors, settings.duplicate_threshold, decisions)
    groups: dict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for i in order:
        slot = slots[i]
        if slot is not None:
            groups[(*slot.key, slot.qualifier or "")].append(Item(members[i], slot))
    for key in sorted(groups):
        if len(groups[key]) > 1:
            _settle(groups[key], corrections, decisions)
    decisions.beliefs += Sentences(members, slots, vectors, _spoken_for(decisions)).beliefs()
    beliefs = sorted(
        decisions.beliefs,
        key=lambda b: (-len(b.supports) - len(b.contradicts) - len(b.superseded), b.subject, b.predicate, b.object),
    )
    most = settings.max_beliefs_per_cluster
    too_many = [Rejected(belief.content, f"more than {most} beliefs in one cluster") for belief in beliefs[most:]]
    return ClusterDecision(
        supersedes=tuple(sorted(decisions.supersedes.values(), key=lambda each: str(each.loser))),
        beliefs=tuple(beliefs[:most]),
        rejected=(*decisions.rejected, *too_many),
        outcome="decided" if decisions.supersedes or beliefs else "nothing_to_say",
    )


def _spoken_for(decisions: _Decisions) -> set[UUID]:
    """Memories that gave way or stand in a belief already."""
    believed = {id for belief in decisions.beliefs for id in (*belief.supports, *belief.contradicts)}
    return believed | decisions.supersedes.keys()


def _explicit_corrections(members: list[Candidate], decisions: _Decisions) -> dict[UUID, UUID]:
    """What each corrected memory was corrected by; the later correction where there are several."""
    by_id = {member.memory_id: member for member in members}
    corrected = {m.corrects: m.memory_id for m in members if m.corrects in by_id and m.corrects is not None}
    circular = {target for target in corrected if _ends_in(target, corrected, {target})}
    for target, winner in list(corrected.items()):
        if target in circular:
            decisions.rejected.append(Rejected(str(target), "memories that correct one another in a circle"))
            del corrected[target]
        else:
            decisions.supersede([by_id[target]], by_id[winner], "correction", "explicitly corrected")
    return corrected


def _free_text_duplicates(
    order: list[int],
    members: Sequence[Candidate],
    slots: Sequence[Slot | None],
    vectors: Vectors | None,
    threshold: float,
    decisions: _Decisions,
) -> None:
    texts = {i: (normalise_value(members[i].content), split_negation(members[i].content)[1]) for i in order}
    # A memory with a slot stays before one without, then the most trusted, then the earliest.
    ranked = sorted(order, key=lambda i: (not members[i].by_person, slots[i] is None, members[i].read_only))
    for position, loser in enumerate(ranked):
        if slots[loser] is not None or members[loser].memory_id in decisions.supersedes:
            continue
        for winner in ranked[:position]:
            if members[winner].memory_id in decisions.supersedes or not same_speaker(members[winner], members[loser]):
                continue
            alike = vectors is not None and float(vectors[winner] @ vectors[loser]) >= threshold
            if texts[winner] == texts[loser]:
                decisions.supersede([members[loser]], members[winner], "duplicate", "the same text")
            elif alike and texts[winner][1] == texts[loser][1] and same_words(texts[winner][0], texts[loser][0]):
                decisions.supersede([members[loser]], members[winner], "duplicate", "the same words in another order")


def _settle(items: list[Item], corrections: dict[UUID, UUID], decisions: _Decisions) -> None:
    """Decide the statements of one slot and one time."""
    gone = {item.id for item in items if item.id in decisions.supersedes}
    sides = sides_of([item for item in items if item.id not in gone])
    many = holds_many(sides)
    contested: list[Side] = []
    winners = list(sides)
    overridden: dict[int, list[Side]] = defaultdict(list)
    for conflict in rivals(sides, many):
        winner, reason, because = _decide(conflict, many)
        if winner is None:
            contested += conflict
            _contest(conflict, because, decisions)
            continue
        for loser in conflict:
            if loser is not winner:
                decisions.supersede((item.candidate for item in loser.own), winner.kept.candidate, reason, because)
                overridden[id(winner)].append(loser)
                winners = [side for side in winners if side is not loser]
    for side in sides:
        because = "says the same" if side.values == 1 else "says the same, with no more detail"
        standing = [item.candidate for item in side.own if item.id not in decisions.supersedes]
        if not side.kept.candidate.read_only and side.kept.id not in decisions.supersedes:
            decisions.supersede(standing, side.kept.candidate, "duplicate", because)
    for side in winners:
        if any(side is each for each in contested):
            continue
        corrected = [item for item in items if item.id in gone and _ends_in(item.id, corrections, side.ids)]
        losers = overridden[id(side)]
        if len(side.items) > 1 or losers or corrected:
            _hold(side, losers, corrected, decisions)


def _ends_in(corrected: UUID, corrections: dict[UUID, UUID], ids: Container[UUID]) -> bool:
    """Whether following the corrections of a memory leads to one of `ids`."""
    seen: set[UUID] = set()
    while corrected in corrections and corrected not in seen:
        seen.add(corrected)
        corrected = corrections[corrected]
        if corrected in ids:
            return True
    return False


def _decide(sides: list[Side], many: bool | None) -> tuple[Side | None, SupersedeReason, str]:
    latest = max(sides, key=lambda side: side.last.candidate.in_time)
    others = [side for side in sides if side is not latest]
    by_time = all(
        latest.first.candidate.observed_at - side.last.candidate.observed_at >= CLEARLY_LATER for side in others
    )
    ordered = any(
        abs(side.last.candidate.observed_at - latest.last.candidate.observed_at) >= CLEARLY_LATER for side in others
    )
    said_at = latest.first.candidate.observed_at
    persons = [side for side in sides if side.stands_against(said_at)]
    # A person who speaks in a parent scope does not outweigh one who speaks in this one.
    outweighed = any(side.stands_against(said_at, own=True) for side in others) and not latest.by_own_person
    if outweighed or (persons and latest not in persons):
        return None, "contradiction", "a later statement differs from what a person corrected or confirmed"
    if not latest.own:
        return None, "contradiction", "the latest statement belongs to a parent scope"
    if many is None and not is_denial(sides) and not differ_in_numbers(sides):
        return None, "contradiction", "it is not known whether this relation holds one value or several"
    when = f"{latest.first.candidate.observed_at:%Y-%m-%d %H:%M}"
    if by_time and _may_replace(sides):
        return latest, "update", f"stated later ({when} UTC) than what it replaces"
    if by_time:
        return None, "contradiction", "a denial of something past is not known to replace it"
    if ordered:
        return None, "contradiction", "an older statement was repeated after the newer one"
    if len(persons) == 1 and persons[0].own:
        return persons[0], "contradiction", "a person confirmed it, and the times do not decide"
    best = max(sides, key=lambda side: side.sources)
    rest = [side for side in sides if side is not best]
    if not persons and best.own and best.sources > 1 and all(best.sources > side.sources for side in rest):
        return best, "contradiction", f"stated by {best.sources} independent sources, and the times do not decide"
    return None, "contradiction", "stated at the same time, with no independent support to decide"


def _may_replace(sides: list[Side]) -> bool:
    """A state may end and be denied later; a single past event may not ("slept well", "did not sleep well")."""
    predicate = f" {sides[0].slot.predicate} "
    past = any(word.endswith("ed") or word in ("was", "were", "did", "had") for word in predicate.split())
    return not (is_denial(sides) and past)


def _hold(side: Side, losers: list[Side], corrected: list[Item], decisions: _Decisions) -> None:
    overridden = [item for loser in losers for item in loser.items] + corrected
    reasons = sorted({s.because for item in overridden if (s := decisions.supersedes.get(item.id))})
    kept = side.kept
    decisions.beliefs.append(
        BeliefProposal(
            subject=kept.candidate.subject or kept.slot.subject,
            predicate=kept.candidate.predicate or kept.slot.predicate,
            object=kept.candidate.object or kept.slot.value,
            content=kept.candidate.content,
            status="held",
            confidence=side.confidence,
            supports=side.ids,
            contradicts=tuple(item.id for item in overridden if item.candidate.read_only),
            superseded=tuple(item.id for item in overridden if not item.candidate.read_only),
            rationale="; ".join(reasons) or f"stated {len(side.items)} times by {side.sources} source(s)",
            valid_from=side.first.candidate.observed_at,
        )
    )


def _contest(sides: list[Side], because: str, decisions: _Decisions) -> None:
    leading = max(sides, key=lambda side: (side.by_person, side.last.candidate.in_time))
    others = [side for side in sides if side is not leading]
    kept = [side.kept for side in (leading, *others)]
    decisions.beliefs.append(
        BeliefProposal(
            subject=kept[0].candidate.subject or kept[0].slot.subject,
            predicate=kept[0].candidate.predicate or kept[0].slot.predicate,
            object=" / ".join(item.candidate.object or item.slot.value for item in kept),
            content=" / ".join(item.candidate.content for item in kept),
            status="contested",
            confidence=min(side.confidence for side in sides),
            supports=leading.ids,
            contradicts=tuple(item.id for side in others for item in side.items),
            superseded=(),
            rationale=because,
            valid_from=min(side.first.candidate.observed_at for side in sides),
        )
    )
