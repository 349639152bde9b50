"""Whether a valid proposal rests on what its evidence says: what a weak model gets wrong in well-formed answers.

Everything here is read off the memories themselves. It does not tell whether a belief is worth having, only that it
cannot be held on what is cited for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from memory_core.layers.normal_text import normalise, normalise_value
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.proposals import ProposedBelief
from memory_core.shmr.slots import Slot, contradict
from memory_core.shmr.wording import compatible, split_negation

LEAST_CONFIDENCE = 0.1
"""A belief of which its own author is less sure than this is none."""

_NUMBER = re.compile(r"\d+")


def objection(item: ProposedBelief, members: Mapping[str, Candidate], slots: Mapping[str, Slot | None]) -> str:
    """Why a `create` or an `update` cannot be held on its evidence; empty where it can.

    Args:
        item: a proposal whose handles are all in `members`.
        members: the cluster's memories by handle.
        slots: their slots by handle.
    """
    if item.confidence < LEAST_CONFIDENCE:
        return f"a belief needs a confidence of {LEAST_CONFIDENCE:g} at least"
    if _repeats_itself(item):
        return "subject, predicate and object repeat one another"
    cited = [members[handle] for handle in item.evidence]
    if _names_a_handle(item, members, cited):
        return "it names a memory by its handle where it should say what the memory is about"
    if not _numbers_are_cited(item, cited):
        return "it states a number that no cited memory states"
    if item.target is not None and (reason := _objection_to_replacing(item, item.target, members, slots)):
        return reason
    if _overlooks_a_later_one(item, members, slots):
        return "a later memory of the group, not cited, says otherwise"
    return ""


def supporting(item: ProposedBelief, slots: Mapping[str, Slot | None]) -> list[str]:
    """The cited handles that may count as support: not the target, and none that names another value beside it.

    A memory that states another value of something that has many ("allergic to nuts", "allergic to eggs") does not
    support this one. One that contradicts stays: to cite it is an error to be told, not to be mended.
    """
    handles = [handle for handle in item.evidence if handle != item.target]
    keys = {slot.key for handle in handles if (slot := slots[handle]) is not None and _says(slot, item)}
    return [handle for handle in handles if not _says_another(slots[handle], item, keys)]


def speaking_against(item: ProposedBelief, slots: Mapping[str, Slot | None]) -> list[str]:
    """The handles named by a `dampen` that may count against its target: not itself, and none that says the same."""
    target = slots[item.target] if item.target is not None else None
    handles = [handle for handle in (*item.evidence, *item.contradicts) if handle != item.target]
    return [handle for handle in handles if not _same(slots[handle], target)]


def _same(first: Slot | None, second: Slot | None) -> bool:
    if first is None or second is None or (first.key, first.polarity) != (second.key, second.polarity):
        return False
    return first.qualifier == second.qualifier and compatible(first.value, second.value)


def _says(slot: Slot, item: ProposedBelief) -> bool:
    return slot.subject == normalise(item.subject) and compatible(slot.value, normalise_value(item.object))


def _says_another(slot: Slot | None, item: ProposedBelief, keys: Collection[tuple[str, str]]) -> bool:
    if slot is None or slot.key not in keys or _says(slot, item):
        return False
    return not contradict(slot, replace(slot, value=normalise_value(item.object)))


def _repeats_itself(item: ProposedBelief) -> bool:
    subject, predicate, value = normalise(item.subject), normalise_value(item.predicate), normalise_value(item.object)
    return subject in (predicate, value) or f" {value} " in f" {predicate} "


def _numbers_are_cited(item: ProposedBelief, cited: Sequence[Candidate]) -> bool:
    stated = _numbers(item.subject, item.predicate, item.object)
    known = _numbers(*(part or "" for each in cited for part in (each.content, each.subject, each.object)))
    return stated <= known.union(*(_numbers(each.observed_at.date().isoformat()) for each in cited))


def _numbers(*texts: str) -> set[int]:
    return {int(found[:100]) for text in texts for found in _NUMBER.findall(normalise_value(text))}


def _names_a_handle(item: ProposedBelief, handles: Collection[str], cited: Sequence[Candidate]) -> bool:
    """Whether a part is a handle and no name: a memory may well be about an M2."""
    parts = {normalise(part) for part in (item.subject, item.predicate, item.object)} & set(handles)
    known = {word for each in cited for text in (each.content, each.subject, each.object) for word in _words(text)}
    return not parts <= known


def _words(text: str | None) -> list[str]:
    return [normalise(word) for word in (text or "").split()]


def _objection_to_replacing(
    item: ProposedBelief, target_handle: str, members: Mapping[str, Candidate], slots: Mapping[str, Slot | None]
) -> str:
    target = members[target_handle]
    if target.object is not None and normalise_value(target.object) == normalise_value(item.object):
        return "the memory to be replaced says the same"
    supports = [members[handle] for handle in supporting(item, slots)]
    older = all(each.observed_at < target.observed_at for each in supports)
    independent = {each.source for each in supports} - {target.source, None}
    if older and not any(each.by_person for each in supports) and len(independent) < 2:
        return "what is cited was said before what it should replace, and by no person and no two other sources"
    return ""


def _overlooks_a_later_one(
    item: ProposedBelief, members: Mapping[str, Candidate], slots: Mapping[str, Slot | None]
) -> bool:
    """Whether a memory that was said after all that is cited contradicts the statement, as its evidence words it."""
    handles = supporting(item, slots)
    affirmed = split_negation(item.predicate)[1] and split_negation(item.object)[1]
    if not affirmed or any(members[handle].by_person for handle in handles):
        return False
    value = normalise_value(item.object)
    wordings = [slots[item.target]] if item.target else [slots[handle] for handle in handles]
    said = [
        replace(slot, value=value, polarity=True)
        for slot in wordings
        if slot is not None and (item.target or (_says(slot, item) and slot.polarity))
    ]
    latest = max(members[handle].observed_at for handle in handles)
    return any(
        contradict(one, other)
        for handle, member in members.items()
        if member.observed_at > latest and handle not in (item.target, *item.evidence)
        if (other := slots[handle]) is not None
        for one in said
    )
