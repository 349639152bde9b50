"""What `slowwave why` says on a terminal, from the document that --json prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memory_core.cli.output import day_and_time, plain
from memory_core.cli.view_texts import Document, cut

_REASONS = {
    "contradicts": "it contradicts another proposal or the evidence that it cites",
    "harmony": "it is not about what the memories say",
    "truncated": "the answer was cut off",
    "refused": "the model refused to answer",
    "content_filter": "the provider's filter stopped the answer",
}
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
    if len(document["versions"]) > 1:
        yield from _listed("Versions, oldest first", (_brief(item) for item in document["versions"]))
    yield from _listed("Evidence", (_piece(piece) for piece in document["evidence"]))
    over = document["overrides"]
    yield from _listed("It overrides", (_brief(item) for item in [*over["memories"], *over["beliefs"]]))
    yield "Made by"
    yield f"  run {made['run']}, cluster {made['cluster']}, iteration {made['iteration']}"
    yield f"  {made['model']} (version {made['version']})"
    if made["model_call_key"]:
        yield f"  {_call(made['model_call_key'], made['model_call'])}"
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
    yield from _replaced(document["replaced_by"])
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


def _replaced(by: Document | None) -> Iterable[str]:
    """What the memory gave way to, when, why, and in which run."""
    if by is None:
        return
    run = f", run {by['run']}" if by["run"] else ""
    yield f"  gave way ({by['reason']}) {day_and_time(by['at'])}{run}"
    if by["content"]:
        yield f"  to the {by['kind']} {by['external_id'] or by['id']}: {cut(by['content'])}"
    if by["because"]:
        yield f"  because {by['because']}"


def _decisions(clusters: Iterable[Document]) -> Iterable[str]:
    lines = []
    for item in clusters:
        why = f": {item['reason']}" if item["reason"] else ""
        harmony = f", harmony {item['score']:.2f}" if item["score"] is not None else ""
        lines.append(
            f"run {item['run']}: {item['status']}{why} (cluster {item['cluster']}, "
            f"iteration {item['iteration']}, {item['model'] or 'no model'}{harmony})"
        )
        if item["model_call_key"]:
            lines.append(f"  {_call(item['model_call_key'], item['model_call'])}")
        lines += [
            _not_shown(entry) if "left_out" in entry else f"  rejected: {_rejected(entry)}"
            for entry in item["rejected"]
        ]
    yield from _listed("Decided in", lines)


def _call(key: str, call: Document | None) -> str:
    if call is None:
        return f"model call {key} (no answer was kept)"
    cost = "price unknown" if call["cost"] is None else f"${call['cost']:.6f}"
    tokens = f"{call['prompt_tokens']} + {call['completion_tokens']} tokens"
    return f"model call {key}: {call['model']}, {tokens}, {cost}, {day_and_time(call['called_at'])}"


def _rejected(entry: Document) -> str:
    """A proposal that was turned down: which one, and why, in words."""
    from memory_core.shmr.answers import UNREADABLE_REASONS
    from memory_core.shmr.proposals import REJECTION_REASONS

    words = {**UNREADABLE_REASONS, **REJECTION_REASONS, **_REASONS}
    where = [f"attempt {entry['attempt']}"] if "attempt" in entry else []
    where += [f"item {entry['item'] + 1}"] if "item" in entry else []
    reason = words.get(entry["reason"], entry["reason"])
    score = f" ({entry['score']})" if "score" in entry else ""
    error = f" ({cut(entry['error'])})" if entry.get("error") else ""
    return f"{', '.join(where)}{': ' if where else ''}{reason}{score}{error}"


def _not_shown(entry: Document) -> str:
    """Which memories a model saw in part, and which not at all, because of the prompt's token budget."""
    parts = {"shortened": "shown in part", "left_out": "not shown"}
    told = [f"{', '.join(entry[name])} {words}" for name, words in parts.items() if entry[name]]
    return f"  attempt {entry['attempt']}: {'; '.join(told)}"


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
