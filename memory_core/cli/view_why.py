"""What `slowwave why` says on a terminal, from the document that --json prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memory_core.cli.output import day_and_time, plain
from memory_core.cli.view_texts import Document, cut

_BOOKKEEPING = ("risk_checked", "first_night")


def explanation(document: Document) -> None:
    """Why a memory or belief is as it is."""
    for line in _belief(document) if document["kind"] == "belief" else _memory(document):
        print(plain(line))


def _belief(document: Document) -> Iterable[str]:
    belief, made = document["belief"], document["made_by"]
    yield f"Belief {belief['belief_id']}"
    yield f"  {belief['content']}"
    yield f"  {belief['status']}, confidence {belief['confidence']:.2f}, since {day_and_time(belief['valid_from'])}"
    if belief["status_reason"]:
        yield f"  because {belief['status_reason']}"
    yield from _listed("Evidence", (_piece(piece) for piece in document["evidence"]))
    over = document["overrides"]
    yield from _listed("It overrides", (_brief(item) for item in [*over["memories"], *over["beliefs"]]))
    yield "Made by"
    yield f"  run {made['run']}, cluster {made['cluster']}, iteration {made['iteration']}"
    call = f", model call {made['model_call_key']}" if made["model_call_key"] else ""
    yield f"  {made['model']} (version {made['version']}){call}"
    if belief["rationale"]:
        yield f"  {belief['rationale']}"
    yield from _decisions(document["clusters"])
    yield from _changes(document["changes"])


def _memory(document: Document) -> Iterable[str]:
    memory = document["memory"]
    named = f" ({memory['external_id']})" if memory["external_id"] else ""
    yield f"Memory {memory['id']}{named}"
    yield f"  {memory['content']}"
    yield f"  {_standing(memory)}, observed {day_and_time(memory['observed_at'])}"
    if memory["importance"] is not None:
        measures = (f"importance {memory['importance']:.1f}", f"confidence {memory['confidence']:.2f}")
        yield f"  {', '.join(measures)}, used {memory['access_count']} times"
    if document["because"] and memory["status"] == "superseded":
        yield f"  because {document['because']}"
    if len(document["versions"]) > 1:
        yield from _listed("Versions, oldest first", (_brief(item) for item in document["versions"]))
    yield from _listed(
        "Beliefs that name it",
        (f"{item['role']}: {item['content']} ({item['status']}, {item['belief_id']})" for item in document["beliefs"]),
    )
    yield from _listed(
        "Corrections",
        (f"{day_and_time(item['at'])} by {item['who']}: {cut(item['what'])}" for item in document["corrections"]),
    )
    yield from _decisions(document["clusters"])
    yield from _changes(document["changes"])


def _decisions(clusters: Iterable[Document]) -> Iterable[str]:
    lines = []
    for item in clusters:
        why = f": {item['reason']}" if item["reason"] else ""
        lines.append(
            f"run {item['run']}: {item['status']}{why} (cluster {item['cluster']}, {item['model'] or 'no model'})"
        )
        lines += [f"  rejected: {cut(rejected)}" for rejected in item["rejected"]]
    yield from _listed("Decided in", lines)


def _changes(changes: Iterable[Document]) -> Iterable[str]:
    yield from _listed("Changed by", (line for item in changes if (line := _change(item))))


def _change(change: Document) -> str:
    """One change by a run; empty where it only noted that it had looked."""
    after: dict[str, Any] = change["after"] or {}
    what = "; ".join(
        f"{name}: {cut(value) or 'nothing'} → {cut(after.get(name)) or 'nothing'}"
        for name, value in change["before"].items()
        if name not in _BOOKKEEPING
    )
    return f"run {change['run_id']} ({change['status']}), {change['step']}: {what}" if what else ""


def _piece(piece: Document) -> str:
    named = piece["external_id"] or piece["memory_id"]
    return f"{piece['role']}: {cut(piece['content'])} ({named}, {day_and_time(piece['observed_at'])})"


def _brief(item: Document) -> str:
    when = day_and_time(item.get("observed_at") or item.get("valid_from"))
    return f"{cut(item['content'])} ({_standing(item)}, {when}, {item.get('id') or item.get('belief_id')})"


def _standing(item: Document) -> str:
    if item.get("retired_reason"):
        return f"retired: {item['retired_reason']}"
    if item.get("superseded_reason"):
        return f"superseded: {item['superseded_reason']}"
    return str(item.get("status", "current"))


def _listed(title: str, lines: Iterable[str]) -> Iterable[str]:
    listed = [f"  {line}" for line in lines]
    if listed:
        yield title
        yield from listed
