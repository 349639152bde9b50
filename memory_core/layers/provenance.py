"""Where a promoted memory comes from: the list `properties.promoted_from`, one entry a memory that it was taken from.

An entry is a JSON document with `scope_path` (materialised), `memory_id`, `confidence` (the source's, 0 to 1, as it was
then), `promoted_at` (ISO 8601), `promoted_by`, and `run_id` where a run did it. Scopes and memories are compared as
whole values, never as parts of text: taking `chat=c-1` away leaves `chat=c-12`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

PROMOTED_FROM = "promoted_from"
"""The property that holds the list."""

PROMOTION_SOURCE = "promotion"
"""`source` of a memory that was promoted; only of such a one is the list what it rests on."""

Provenance = list[dict[str, Any]]


def provenance_of(properties: Mapping[str, Any], source: str | None) -> Provenance:
    """The entries of a memory; none where it was not promoted. What is not an entry is left out.

    Args:
        properties: the memory's.
        source: the memory's; a list under the same name in somebody's own properties is no provenance.
    """
    written = properties.get(PROMOTED_FROM)
    if source != PROMOTION_SOURCE or not isinstance(written, list):
        return []
    return [dict(entry) for entry in written if isinstance(entry, dict) and all(_key(entry))]


def promoted(sources: Iterable[Mapping[str, Any]], *, at: datetime, by: str, run_id: UUID | None = None) -> Provenance:
    """The entries of one act of promotion.

    Args:
        sources: of each, `scope_path`, `memory_id` and `confidence`; further keys are not taken over.
        by: the person, or the phase.
        run_id: the run that did it; None where a person did.
    """
    act = {"promoted_at": at.isoformat(), "promoted_by": by, **({} if run_id is None else {"run_id": str(run_id)})}
    return [
        {
            "scope_path": source["scope_path"],
            "memory_id": str(source["memory_id"]),
            "confidence": source["confidence"],
            **act,
        }
        for source in sources
    ]


def with_sources(
    provenance: Sequence[Mapping[str, Any]], entries: Sequence[Mapping[str, Any]]
) -> tuple[Provenance, int]:
    """The provenance with the entries that name a memory it does not name yet.

    Returns:
        the whole list, the known ones first and as they were, and how many were added.
    """
    whole = [dict(entry) for entry in provenance]
    known = {_key(entry) for entry in whole}
    for entry in entries:
        if _key(entry) not in known:
            known.add(_key(entry))
            whole.append(dict(entry))
    return whole, len(whole) - len(provenance)


def without_source(
    provenance: Sequence[Mapping[str, Any]], scope_path: str, memory_id: UUID | str | None = None
) -> tuple[Provenance, bool]:
    """The provenance after a scope, or one memory of it, was erased.

    Args:
        scope_path: the materialised path of exactly that scope; scopes below it are others.
        memory_id: that memory alone; None for all of the scope.

    Returns:
        the entries that are left, and whether that is none, so that the promoted memory has nothing left to rest on.
    """
    erased = None if memory_id is None else str(memory_id)
    left = [
        dict(entry)
        for entry in provenance
        if entry.get("scope_path") != scope_path or (erased is not None and str(entry.get("memory_id")) != erased)
    ]
    return left, not left


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    return str(entry.get("scope_path") or ""), str(entry.get("memory_id") or "")
