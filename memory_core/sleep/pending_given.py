"""Pending connections as an activation log holds them, and what may become the name of an edge."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from memory_core.errors import InvalidInput
from memory_core.scope import TenantScope

PENDING_STATUS = "PENDING CONSOLIDATION"
INFERRED = "INFERRED"
"""The relationship of a connection that names none."""

RESERVED_RELATIONSHIPS = frozenset({"CO_OCCURRED", "CLUSTERS"})
"""Relationships that other phases make and keep; nobody else may write them."""

LONGEST_RELATIONSHIP = 64
LONGEST_NAME = 10_000

_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")


def relationship_name(given: str) -> str | None:
    """The relationship in upper case with underscores between words; None where it cannot be one.

    `works with`, `worksWith` and `WORKS-WITH` are all `WORKS_WITH`. It begins with a letter, has at most 64
    characters, and is none of those that phases make themselves.
    """
    composed = unicodedata.normalize("NFC", given.strip())
    name = "_".join(part for part in _BETWEEN_WORDS.split(composed) if part).upper()
    if not name or not name[0].isalpha() or len(name) > LONGEST_RELATIONSHIP or name in RESERVED_RELATIONSHIPS:
        return None
    return name


def given_connections(scope: TenantScope, given: Any) -> tuple[dict[UUID, dict[str, str]], int, int]:
    """The rows of a list of pending connections, by their ids.

    The id follows from scope, ends and relationship, so that the same connection given twice is one row; one that
    does not wait has its status in it too, so that it is not taken for one that does. Where an item has `source_id` or
    `target_id`, that names the end, and the label does not.

    Args:
        given: a list of `{source, relationship, target, status}`; None where nothing was given.

    Returns:
        the rows, how many items are no connection at all, and how many repeat another one of the list.

    Raises:
        InvalidInput: it is not a list.
    """
    if given is None:
        return {}, 0, 0
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput(
            "The pending connections are not a list.",
            hint="Give the list `pending_connections` of an activation log: [{source, relationship, target, status}].",
        )
    rows: dict[UUID, dict[str, str]] = {}
    malformed = repeated = 0
    for item in given:
        row = _row(item)
        if row is None:
            malformed += 1
            continue
        key = [
            row["source"],
            row["relationship"],
            row["target"],
            *([] if is_pending(row["status"]) else [row["status"]]),
        ]
        row_id = scope.derived_id("pending_connection", *key)
        repeated += row_id in rows
        rows[row_id] = row
    return rows, malformed, repeated


def is_pending(status: str) -> bool:
    """Whether a connection still waits: `PENDING CONSOLIDATION`, or another status that begins so."""
    return status.strip().upper().startswith("PENDING")


def _row(item: Any) -> dict[str, str] | None:
    if not isinstance(item, Mapping):
        return None
    row = {
        "source": item.get("source_id") or item.get("source"),
        "target": item.get("target_id") or item.get("target"),
        "relationship": item.get("relationship", INFERRED),
        "status": item.get("status") or PENDING_STATUS,
    }
    texts = {name: str(value) if isinstance(value, UUID) else value for name, value in row.items()}
    if not all(_storable(value) for value in texts.values()):
        return None
    found = {name: value.strip() for name, value in texts.items()}
    return found if found["source"] and found["target"] else None


def _storable(value: Any) -> bool:
    # Postgres keeps no NUL, and UTF-8 has no lone surrogates.
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_NAME
        and "\x00" not in value
        and not any("\ud800" <= character <= "\udfff" for character in value)
    )
