"""Single pairs of sentences with their relation, and planted slot facts among look-alikes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.benchmarks.belief_store import APART, REPLACED, START, BeliefStore, Link, Told, in_order, tenant

OWN = Path(__file__).parents[1] / "data"
FILES = {
    "text_pairs": OWN / "text_pairs.json",
    "looked_at": OWN / "belief_pairs" / "looked_at.json",
    "held_out": OWN / "belief_pairs" / "held_out.json",
}
"""The files of pairs; of the last, nothing but counts is ever shown."""

RELATIONS = ("contradiction", "duplicate", "compatible")
AT_ONCE = 60
"""Scopes that one run of the library works through."""


async def pairs(store: BeliefStore, *, files: Sequence[str] = tuple(FILES), show: bool = False) -> dict[str, Any]:
    """Macro F1 and the confusion of each file of pairs.

    Each pair is imported into a tenant of its own, five minutes apart, and harmonised through the library, so that
    nothing but these two sentences can be learned from. One that gave way as update or contradiction, or both in a
    contested belief, is a predicted contradiction; one that gave way as duplicate, or both held together as support of
    one belief, a duplicate; else compatible.
    """
    return {name: await _pairs(store, name, show=show and name != "held_out") for name in files}


async def _pairs(store: BeliefStore, name: str, *, show: bool) -> dict[str, Any]:
    known = json.loads(FILES[name].read_text("utf-8"))["pairs"]
    scopes = [tenant("pair", name.replace("_", ""), number) for number in range(len(known))]
    told = {scope: in_order((pair["earlier"], pair["later"])) for scope, pair in zip(scopes, known, strict=True)}
    await store.tell(told)
    for start in range(0, len(scopes), AT_ONCE):
        await store.harmonize(scopes[start : start + AT_ONCE], START + timedelta(hours=1))
    links = [await store.links(scope) for scope in scopes]
    predicted = [relation_of(each) for each in links]
    found: dict[str, Any] = agreement((pair["relation"], said) for pair, said in zip(known, predicted, strict=True))
    found["later_one_gave_way_to_the_earlier"] = sum(
        link.loser == "1" for each in links for link in each if link.kind in REPLACED
    )
    if name != "held_out":
        found["right_by_kind"] = _by_kind(known, predicted)
    if show:
        found["wrong"] = [
            {**pair, "predicted": said} for pair, said in zip(known, predicted, strict=True) if said != pair["relation"]
        ]
    return found


def relation_of(links: Sequence[Link]) -> str:
    """What was decided of two memories, as one of `RELATIONS`."""
    kinds = {link.kind for link in links}
    if kinds & {*REPLACED, "contested"}:
        return "contradiction"
    return "duplicate" if kinds & {"duplicate", "held together"} else "compatible"


def agreement(judged: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Macro F1 over `RELATIONS` and the confusion, of (true, predicted) pairs; a relation never met has F1 0."""
    counted = Counter(judged)
    scores = {}
    for relation in RELATIONS:
        true = sum(n for (truth, _), n in counted.items() if truth == relation)
        said = sum(n for (_, predicted), n in counted.items() if predicted == relation)
        scores[relation] = 2 * counted[relation, relation] / (true + said) if true + said else 0.0
    return {
        "pairs": counted.total(),
        "macro_f1": round(sum(scores.values()) / len(scores), 3),
        "f1": {relation: round(score, 3) for relation, score in scores.items()},
        "true_to_predicted": {
            truth: {predicted: counted[truth, predicted] for predicted in RELATIONS} for truth in RELATIONS
        },
    }


def _by_kind(known: Sequence[dict[str, str]], predicted: Sequence[str]) -> dict[str, str]:
    seen: dict[str, list[bool]] = defaultdict(list)
    for pair, said in zip(known, predicted, strict=True):
        if "kind" in pair:
            seen[f"{pair['relation']}: {pair['kind']}"].append(said == pair["relation"])
    return {kind: f"{sum(right)} of {len(right)}" for kind, right in seen.items()}


async def planted(store: BeliefStore) -> dict[str, Any]:
    """The planted facts with their triples, and as sentences that say subject, predicate and object in a row."""
    return {
        "triples": await _planted(store, as_triples=True),
        "sentences": await _planted(store, as_triples=False),
    }


async def _planted(store: BeliefStore, *, as_triples: bool) -> dict[str, Any]:
    known = json.loads((OWN / "planted_slots.json").read_text("utf-8"))
    rivals, alike = known["contradicting"], known["distractors"]
    facts = [(row["subject"], row["predicate"], row[end]) for row in rivals for end in ("object_old", "object_new")]
    facts += [(row["subject"], row["predicate"], row["object"]) for row in alike]
    told = [
        Told(str(number), " ".join(fact), START + number * APART, fact if as_triples else None)
        for number, fact in enumerate(facts)
    ]
    scope = tenant("planted", "triples" if as_triples else "sentences")
    await store.tell({scope: told})
    await store.harmonize([scope], told[-1].at + timedelta(hours=1))
    groups = [[int(name) for name in members] for members in await store.clusters(scope)]
    together = {pair for members in groups for pair in combinations(sorted(members), 2)}
    links = await store.links(scope)
    ends = {(int(link.loser), int(link.winner), link.kind) for link in links}
    touched = sorted(
        {n for loser, winner, kind in ends for n in (loser, winner)[: 1 + (kind in ("contested", "held together"))]}
    )
    count = len(rivals)
    same = sum(facts[one][:2] == facts[other][:2] for one, other in together)
    return {
        "contradicting": count,
        "contradicting_in_one_cluster": round(sum((2 * n, 2 * n + 1) in together for n in range(count)) / count, 3),
        "pairs_in_one_cluster": len(together),
        "same_slot_precision": round(same / len(together), 3) if together else None,
        "settled_for_the_later": sum((2 * n, 2 * n + 1, kind) in ends for n in range(count) for kind in REPLACED),
        "settled_for_the_earlier": sum((2 * n + 1, 2 * n, kind) in ends for n in range(count) for kind in REPLACED),
        "contested": sum(kind == "contested" for *_, kind in ends),
        "look_alikes": len(alike),
        "look_alikes_touched": sum(n >= 2 * count for n in touched),
    }
