"""A model's valid proposals as a decision about the cluster: the same kind of decision that rules make."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from uuid import UUID

from memory_core.layers.normal_text import normalise_value
from memory_core.scope import TenantScope
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.decisions import (
    BeliefProposal,
    ClusterDecision,
    Dampen,
    Rejected,
    Supersede,
    SupersedeReason,
)
from memory_core.shmr.grounding import objection, speaking_against, supporting
from memory_core.shmr.proposals import ProposedBelief
from memory_core.shmr.slots import Slot, contradict, slot_of


def belief_id(scope: TenantScope, belief: BeliefProposal) -> UUID:
    """A belief's content-addressed id: over scope and NFC-normalised subject, predicate and object."""
    parts = (belief.subject, belief.predicate, belief.object)
    return scope.derived_id("belief", *(unicodedata.normalize("NFC", part) for part in parts))


def belief_slot(belief: BeliefProposal) -> Slot | None:
    """The slot of a held belief's triple; None for a contested one, which states nothing."""
    if belief.status != "held" or not belief.supports:
        return None
    return slot_of(
        Candidate(
            memory_id=belief.supports[0],
            version=1,
            content_hash="",
            layer="semantic",
            content=belief.content,
            subject=belief.subject,
            predicate=belief.predicate,
            object=belief.object,
            observed_at=belief.valid_from,
            confidence=belief.confidence,
            source=None,
        )
    )


def decision_of(
    scope: TenantScope,
    items: Sequence[ProposedBelief],
    members: dict[str, Candidate],
    slots: dict[str, Slot | None],
) -> ClusterDecision:
    """Turn proposals into a decision.

    `create` makes a belief with the cited evidence; `update` also supersedes its target, by the cited memory that
    states the new value, else by the belief itself; `dampen` lowers the target's confidence and makes no belief.
    What a person corrected or confirmed is neither superseded nor dampened on anything less, and no belief that
    contradicts it is held; nor is one that its evidence does not bear (`grounding.py`).

    Args:
        members: the cluster's memories by handle.
        slots: their slots by handle.
    """
    supersedes: list[Supersede] = []
    dampens: list[Dampen] = []
    beliefs: list[BeliefProposal] = []
    rejected: list[Rejected] = []
    for item in items:
        statement = f"{item.subject} {item.predicate} {item.object}"
        cited = [members[handle] for handle in item.evidence]
        target = members[item.target] if item.target is not None else None
        by_person = any(each.by_person for each in cited if each is not target)
        if target is not None and target.by_person and not (item.action == "update" and by_person):
            rejected.append(Rejected(statement, "the target was corrected or confirmed by a person"))
            continue
        if item.action == "dampen" and target is not None:
            against = next((members[handle] for handle in speaking_against(item, slots)), None)
            if against is None:
                rejected.append(
                    Rejected(statement, "nothing that says something else than the target is cited for dampening it")
                )
            else:
                dampens.append(
                    Dampen(target.memory_id, against.memory_id, item.rationale or "weakened by other evidence")
                )
            continue
        if ungrounded := objection(item, members, slots):
            rejected.append(Rejected(statement, ungrounded))
            continue
        supports = [members[handle] for handle in supporting(item, slots)]
        belief = BeliefProposal(
            subject=item.subject,
            predicate=item.predicate,
            object=item.object,
            content=statement,
            status="held",
            confidence=min(item.confidence, max(each.confidence for each in supports)),
            supports=tuple(each.memory_id for each in supports),
            contradicts=tuple(members[handle].memory_id for handle in item.contradicts if handle != item.target),
            superseded=(target.memory_id,) if target is not None else (),
            rationale=item.rationale,
            valid_from=min(each.observed_at for each in supports),
        )
        if otherwise := _person_says_otherwise(belief, members, slots):
            rejected.append(Rejected(statement, otherwise))
            continue
        beliefs.append(belief)
        if target is not None:
            supersedes.append(_replacement(scope, belief, target, supports, item))
    said = bool(supersedes or dampens or beliefs)
    return ClusterDecision(
        supersedes=tuple(sorted(supersedes, key=lambda each: str(each.loser))),
        dampens=tuple(dampens),
        beliefs=tuple(beliefs),
        rejected=tuple(rejected),
        outcome="decided" if said else "nothing_to_say",
    )


def _replacement(
    scope: TenantScope,
    belief: BeliefProposal,
    target: Candidate,
    supports: Sequence[Candidate],
    item: ProposedBelief,
) -> Supersede:
    value = normalise_value(item.object)
    stating = [
        each
        for each in supports
        if (each.object is not None and normalise_value(each.object) == value)
        or (each.object is None and f" {value}" in f" {normalise_value(each.content)}")
    ]
    winner = max(stating, key=lambda each: (each.by_person, each.observed_at, str(each.memory_id)), default=None)
    latest = max(each.observed_at for each in supports)
    reason: SupersedeReason = "update" if latest > target.observed_at else "contradiction"
    if winner is not None and winner.corrects == target.memory_id:
        reason = "correction"
    winner_id = belief_id(scope, belief) if winner is None else winner.memory_id
    return Supersede(target.memory_id, winner_id, reason, item.rationale or "replaced by what the evidence says now")


def _person_says_otherwise(belief: BeliefProposal, members: dict[str, Candidate], slots: dict[str, Slot | None]) -> str:
    slot = belief_slot(belief)
    for handle, member in members.items():
        other = slots[handle]
        if (
            member.by_person
            and slot is not None
            and other is not None
            and member.memory_id not in belief.superseded
            and contradict(slot, other)
        ):
            return "a person's correction or confirmation says otherwise"
    return ""
