"""What people said to one another: facts with hardly an update among them, and messages that contradict others."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.belief_store import APART, REPLACED, START, BeliefStore, Told, tenant

OBSERVED = "locomo_dev.json"
MESSAGES = "beam_pairs_dev.jsonl"


async def locomo(store: BeliefStore, data: Path, *, show: bool = False) -> dict[str, Any]:
    """How many observed facts gave way to another that says something else, and which: conversation and number.

    Hardly any of them replaces another, so that nearly all of what gave way did so wrongly. A fact was observed on
    the day of its session, a second later for each one before it in the session.
    """
    facts: dict[str, list[Told]] = {
        each["sample_id"]: _observations(each) for each in json.loads((data / OBSERVED).read_text("utf-8"))
    }
    scopes = {conversation: tenant("locomo", conversation) for conversation in facts}
    await store.tell({scopes[name]: told for name, told in facts.items()})
    counted: Counter[str] = Counter()
    gone: list[dict[str, Any]] = []
    for name, told in facts.items():
        await store.harmonize([scopes[name]], max(one.at for one in told) + timedelta(hours=1))
        for link in sorted(await store.links(scopes[name]), key=lambda link: int(link.loser)):
            counted[link.kind] += 1
            entry: dict[str, Any] = {
                "conversation": name,
                "number": int(link.loser),
                "other": int(link.winner),
                "kind": link.kind,
            }
            if show:
                entry |= {"text": told[int(link.loser)].content, "other_text": told[int(link.winner)].content}
            gone.append(entry)
    total = sum(map(len, facts.values()))
    replaced = len({(each["conversation"], each["number"]) for each in gone if each["kind"] in REPLACED})
    return {
        "facts": total,
        "superseded": replaced,
        "superseded_share": round(replaced / total, 5),
        "links_by_kind": dict(counted),
        "which": gone,
    }


def _observations(conversation: dict[str, Any]) -> list[Told]:
    told: list[Told] = []
    for name, speakers in conversation["observation"].items():
        said = conversation["conversation"][name.replace("observation", "date_time")]
        at = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for content, _ in sorted(_of_session(speakers), key=lambda each: each[1]):
            told.append(Told(str(len(told)), content, at))
            at += timedelta(seconds=1)
    return told


def _of_session(speakers: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each fact of a session with the number of the turn it was first heard in."""
    for facts in speakers.values():
        for content, turns in facts:
            numbers = re.findall(r"D\d+:(\d+)", " ".join(turns) if isinstance(turns, list) else turns)
            yield content, int(numbers[0]) if numbers else 0


async def beam(store: BeliefStore, data: Path, *, show: bool = False) -> dict[str, Any]:
    """Of the message pairs that contradict or update one another, how many were found, and how many found are true.

    The messages of each chat's pairs are told to one tenant in the order of their ids. A pair is found where a message
    of one side gave way to one of the other as update or contradiction, or both are sides of a contested belief. Rows
    whose two sides are the same messages are told, too, and not counted.
    """
    rows = [json.loads(line) for line in (data / MESSAGES).read_text("utf-8").splitlines()]
    chats: dict[str, dict[int, str]] = defaultdict(dict)
    for row in rows:
        for side in ("a", "b"):
            chats[row["chat"]].update(zip(row[f"{side}_ids"], row[side], strict=True))
    wanted = [row for row in rows if set(row["a_ids"]).isdisjoint(row["b_ids"])]
    true = {
        (row["chat"], *sorted((one, other))): number
        for number, row in enumerate(wanted)
        for one in row["a_ids"]
        for other in row["b_ids"]
    }
    found: set[tuple[str, int, int]] = set()
    for chat, messages in chats.items():
        scope = tenant("beam", chat)
        told = [Told(str(number), messages[number], START + number * APART) for number in sorted(messages)]
        await store.tell({scope: told})
        await store.harmonize([scope], told[-1].at + timedelta(hours=1))
        for link in await store.links(scope):
            if link.kind in (*REPLACED, "contested"):
                first, second = sorted((int(link.loser), int(link.winner)))
                found.add((chat, first, second))
    right = found & true.keys()
    result: dict[str, Any] = {
        "pairs": len(wanted),
        "messages": sum(map(len, chats.values())),
        "pairs_found": len({true[pair] for pair in right}),
        "links": len(found),
        "links_right": len(right),
        "recall": round(len({true[pair] for pair in right}) / len(wanted), 3),
        "precision": round(len(right) / len(found), 3) if found else None,
        "pairs_by_kind": _by_kind(wanted, {true[pair] for pair in right}),
    }
    if show:
        result["wrong"] = [[chats[c][one], chats[c][other]] for c, one, other in sorted(found - right)]
        result["missed"] = [
            [row["a"], row["b"]] for n, row in enumerate(wanted) if n not in {true[pair] for pair in right}
        ]
    return result


def _by_kind(wanted: list[dict[str, Any]], found: set[int]) -> dict[str, str]:
    kinds = sorted({row["kind"] for row in wanted})
    of = {kind: [number in found for number, row in enumerate(wanted) if row["kind"] == kind] for kind in kinds}
    return {kind: f"{sum(each)} of {len(each)}" for kind, each in of.items()}
