"""The words of the morning report: phases, statuses, numbers, times, and text made safe to show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

KINDS = {"nightly": "night", "sleep": "sleep", "harmonize": "harmonizing"}
"""A run of each kind, as a noun."""

PHASES = {
    "strengthen": "Strengthen",
    "decay": "Let idle memories fade",
    "cooccurrence": "Link",
    "tag_risk": "Flag risks",
    "pending_edges": "Pending links",
    "working_expiry": "Expire working memory",
    "prune_orphans": "Retire",
    "duplicate_merge": "Merge duplicates",
    "meta_nodes": "Summarise",
    "episodic_summaries": "Sum up episodes",
    "model_summaries": "Let the model sum up",
    "soul_corrections": "Correct the profile",
    "promotion": "Promote",
    "embed": "Compute vectors",
    "collect": "Collect",
    "cluster": "Cluster",
    "harmonize": "Harmonize",
    "score": "Score",
    "apply": "Apply beliefs",
    "log": "Log",
    "embed_summaries": "Compute vectors of summaries",
}
BACKLOG = ("waiting_to_harmonize", "uses_not_counted", "pending_connections", "corrections")
SHMR_STEPS = frozenset({"embed", "embed_summaries", "collect", "cluster", "harmonize", "score", "apply", "log"})

STATUSES = {
    "refused": "The run was refused.",
    "busy": "Another run holds the scope.",
    "harmonized": "",
    "no_convergence": "the model's proposals did not agree well enough",
    "insufficient_candidates": "too few new statements to compare",
    "nothing_changed": "nothing new contradicts or repeats what is known",
    "model_unavailable": "the language model was not available, so its work waits",
    "embedding_unavailable": "the embedding model was not available, so its work waits",
    "budget_exhausted": "the budget was spent, so the rest waits",
    "partial": "a part could not be decided",
    "failed": "it failed",
}

_NUMBERS = {
    "memories": ("memory", "memories"),
    "beliefs held": ("belief held", "beliefs held"),
    "strengthened": ("memory strengthened", "memories strengthened"),
    "linked": ("new link", "new links"),
    "reinforced": ("link reinforced", "links reinforced"),
    "flagged": ("risk flagged", "risks flagged"),
    "unflagged": ("flag withdrawn", "flags withdrawn"),
    "corrected": ("profile field corrected", "profile fields corrected"),
    "superseded": ("statement replaced", "statements replaced"),
    "settled": ("belief settled", "beliefs settled"),
    "contested": ("contested", "contested"),
    "withdrawn": ("belief withdrawn", "beliefs withdrawn"),
    "summarised": ("summary written", "summaries written"),
    "retired": ("memory retired", "memories retired"),
    "waiting_to_harmonize": ("statement waits to be harmonized", "statements wait to be harmonized"),
    "uses_not_counted": ("use is not counted yet", "uses are not counted yet"),
    "pending_connections": ("pending link waits", "pending links wait"),
    "corrections": ("correction waits", "corrections wait"),
    "groups": ("group of statements waits", "groups of statements wait"),
    "decided groups": ("group of statements", "groups of statements"),
}

_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain(text: object, limit: int) -> str:
    """Text on one line of at most `limit` characters; none steers a terminal or turns the reading direction."""
    composed = unicodedata.normalize("NFC", str(text))
    visible = "".join(" " if char.isspace() else char for char in composed if char.isspace() or not _unsafe(char))
    line = " ".join(visible.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def quoted(text: object, limit: int) -> str:
    """A statement in quotation marks."""
    return f"“{plain(text, limit)}”"


def sentence(text: str) -> str:
    """A reason as part of a line: on one line, without its full stop, an identifier read as words."""
    line = plain(text, 400).rstrip(".")
    return line.replace("_", " ") if re.fullmatch(r"[a-z]+(_[a-z]+)*", line) else line


def phase(name: str) -> str:
    """A step's name for people."""
    return PHASES.get(name, plain(name, 60))


def in_order(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The values in the order of the names, others last: a stored JSON document has an order of its own."""
    order = [name for name in names if name in values]
    return {name: values[name] for name in (*order, *(name for name in values if name not in order))}


def number_of(name: str, number: int) -> str:
    """Such as `1 new link` or `14 memories strengthened`."""
    one, many = _NUMBERS[name]
    return f"{number} {one if number == 1 else many}"


def counts_of_highlights(highlights: Mapping[str, Any]) -> list[tuple[str, int]]:
    """What was done in numbers, in the order of a headline."""

    def total(*path: str, field: str = "total") -> int:
        found: Any = highlights
        for name in path:
            found = found.get(name) or {}
        return int(found.get(field) or 0)

    new_links = total("linked", field="new")
    summaries = [item for item in (highlights.get("summarised") or {}).get("items", ()) if item["state"] == "retired"]
    return [
        ("strengthened", total("strengthened")),
        ("linked", new_links),
        ("reinforced", total("linked") - new_links),
        ("flagged", total("flagged")),
        ("unflagged", total("unflagged")),
        ("summarised", total("summarised") - len(summaries)),
        ("corrected", total("corrected")),
        ("superseded", total("superseded")),
        ("settled", total("beliefs", "new") + total("beliefs", "changed")),
        ("contested", total("beliefs", "contested")),
        ("withdrawn", total("beliefs", "withdrawn")),
        ("retired", total("retired")),
    ]


def counts_of_reports(document: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The same from the counters of a document without highlights."""
    sleep, shmr = document.get("sleep") or {}, document.get("shmr") or {}
    return [
        ("strengthened", int(sleep.get("nodes_strengthened") or 0)),
        ("linked", int(sleep.get("edges_created") or 0)),
        ("flagged", int(sleep.get("risk_nodes_tagged") or 0)),
        ("summarised", int(sleep.get("meta_nodes_created") or 0)),
        ("corrected", int(sleep.get("soul_updates") or 0)),
        ("settled", int(shmr.get("beliefs_generated") or 0)),
        ("retired", int(sleep.get("nodes_pruned") or 0)),
    ]


def model_facts(shmr: Mapping[str, Any]) -> Iterable[str]:
    """Which model decided, how often it was asked, and what that cost."""
    model = str(shmr.get("model") or "rules")
    calls = int(shmr.get("model_calls") or 0)
    if model == "rules" and not calls:
        yield "decided by rules, no model was called"
        return
    yield f"model {plain(model, 80)}"
    yield "no model call" if not calls else "1 model call" if calls == 1 else f"{calls} model calls"
    if shmr.get("tokens"):
        yield f"{int(shmr['tokens']):,} tokens"
    cost = shmr.get("cost")
    yield "cost unknown" if cost is None else f"cost ${float(cost):.4f}"
    expected = shmr.get("estimate") or {}
    if expected.get("calls"):
        money = expected.get("cost")
        price = "" if money is None else f", ${float(money):.4f}"
        yield f"expected for a first attempt at most {int(expected.get('tokens') or 0):,} tokens{price}"


def moment(time: object) -> str:
    """Such as `2026-03-01 03:00 UTC`; the text itself where it is no time."""
    try:
        parsed = datetime.fromisoformat(str(time))
    except ValueError:
        return plain(time, 40)
    return f"{parsed.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if parsed.tzinfo else plain(time, 40)


def day(time: object) -> str:
    """Such as `2026-02-11`; empty where there is no time."""
    return str(time)[:10] if time else ""


def duration(seconds: float) -> str:
    """Such as `0.8 s`, `12 s` or `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _unsafe(char: str) -> bool:
    # A joiner inside an emoji or a word of a joining script is harmless.
    return unicodedata.category(char) in _UNSAFE and char not in "\u200c\u200d"
