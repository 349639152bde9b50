"""The form of recall's results, and which of several that say the same is shown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from memory_core.scope import TenantScope

LEXICAL_WEIGHT = 0.1
"""Weight of the lexical signal beside the cosine's 1."""


def memory_result(row: RowMapping) -> dict[str, Any]:
    """A row of memories as a result."""
    cosine = round(float(row["cosine"]), 6)
    return {
        "content": row["content"],
        "kind": "memory",
        "id": str(row["id"]),
        "external_id": row["external_id"],
        "scope": str(TenantScope.from_path(row["scope_path"])),
        "layer": row["layer"],
        "label": row["label"],
        "score": cosine,
        "signals": {"cosine": cosine, "confidence": row["confidence"] or 0.0, "importance": row["importance"]},
        "status": "current",
        "observed_at": row["observed_at"].isoformat(),
        "evidence": [],
    }


def belief_result(row: RowMapping) -> dict[str, Any]:
    """A row of beliefs as a result; it was observed when the newest of its support was."""
    signals = {name: round(float(row[name]), 6) for name in ("own_cosine", "evidence_cosine") if row[name] is not None}
    supports = [item["observed_at"] for item in row["evidence"] if item["role"] == "supports"]
    return {
        "content": row["content"],
        "kind": "belief",
        "id": str(row["belief_id"]),
        "scope": str(TenantScope.from_path(row["scope_path"])),
        "subject": row["subject"],
        "predicate": row["predicate"],
        "object": row["object"],
        "score": max(signals.values()),
        "signals": {**signals, "confidence": row["confidence"]},
        "status": row["status"],
        "observed_at": max(map(datetime.fromisoformat, supports), default=row["valid_from"]).isoformat(),
        "evidence": row["evidence"],
    }


def said_by(result: dict[str, Any]) -> str:
    """All that a result says in words: its content, and that of a belief's support; a contested one has both sides."""
    roles = ("supports", "contradicts") if result["status"] == "contested" else ("supports",)
    return " ".join((result["content"], *(piece["content"] for piece in result["evidence"] if piece["role"] in roles)))


def weigh(result: dict[str, Any], lexical: float) -> None:
    """Let the share of the question's words that a result says count for a tenth of what its vector does."""
    result["signals"]["lexical"] = round(lexical, 6)
    result["score"] = round((result["score"] + LEXICAL_WEIGHT * lexical) / (1 + LEXICAL_WEIGHT), 6)


def distinct(found: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """One result a content: of equal ones the first, which is the belief where one says the same."""
    seen: set[str] = set()
    for item in found:
        words = " ".join(item["content"].casefold().split())
        if words not in seen:
            seen.add(words)
            yield item


def without_evidence(ranked: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results without each memory that a belief before it is supported or contradicted by."""
    kept: list[dict[str, Any]] = []
    told: set[str] = set()
    for item in ranked:
        if item["id"] not in told:
            kept.append(item)
            told |= {piece["memory_id"] for piece in item["evidence"] if piece["role"] in ("supports", "contradicts")}
    return kept
