"""What a person calls a memory, belief or run, turned into its id: a full id, the start of one, or an external id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, NotFound
from memory_core.scope import TenantScope

Kind = Literal["memory", "belief", "run"]

SHORTEST_PREFIX = 8
"""Hexadecimal digits that the start of an id must have at least."""

_SHOWN = 8
_DIGITS = re.compile(r"[0-9a-f]{8,32}", re.IGNORECASE)

_FIND: dict[Kind, str] = {
    "memory": (
        "SELECT id, scope_path, coalesce(external_id = :text, false) AS named, left(content, 60) AS words "
        "FROM memories WHERE tenant_id = :tenant_id AND scope_path = ANY(CAST(:paths AS text[])) "
        "AND (id BETWEEN CAST(:low AS uuid) AND CAST(:high AS uuid) OR (external_id = :text AND is_latest)) "
        "ORDER BY id LIMIT 20"
    ),
    "belief": (
        "SELECT belief_id AS id, scope_path, false AS named, left(content, 60) AS words FROM harmonic_beliefs "
        "WHERE tenant_id = :tenant_id AND scope_path = ANY(CAST(:paths AS text[])) "
        "AND belief_id BETWEEN CAST(:low AS uuid) AND CAST(:high AS uuid) ORDER BY belief_id LIMIT 20"
    ),
    "run": (
        "SELECT id, scope_path, false AS named, kind || ' as of ' || as_of AS words FROM runs "
        "WHERE tenant_id = :tenant_id AND scope_path = ANY(CAST(:paths AS text[])) "
        "AND id BETWEEN CAST(:low AS uuid) AND CAST(:high AS uuid) ORDER BY id LIMIT 20"
    ),
}


@dataclass(frozen=True, slots=True)
class Located:
    """A row that was meant.

    Attributes:
        scope: the scope that owns it.
        words: how it begins, for a message.
    """

    kind: Kind
    id: UUID
    scope: TenantScope
    words: str

    def to_dict(self) -> dict[str, Any]:
        """As a JSON-able document."""
        return {"kind": self.kind, "id": str(self.id), "scope": str(self.scope), "content": self.words}


async def locate(
    database: Database, scopes: Sequence[TenantScope], text: str, kinds: Sequence[Kind], *, ancestors: bool = False
) -> Located:
    """The one row that `text` names, in any of the scopes.

    An external id counts before the start of an id. A full id ends the search where it is found.

    Args:
        text: a full id, at least 8 hexadecimal digits of its start, or a memory's external id.
        kinds: what it may be.
        ancestors: whether rows that a scope sees of its ancestors count, besides its own.

    Raises:
        NotFound: nothing is called so.
        InvalidInput: several things are, with `candidates` in the error's data; or the text is blank.
    """
    if not text.strip():
        raise InvalidInput("The id is blank.", hint="Give an id, the first 8 digits of one, or an external id.")
    found: dict[UUID, Located] = {}
    named: set[UUID] = set()
    whole = len(_digits(text)) == 32
    for scope in scopes:
        async with database.scoped(scope) as connection:
            for row, kind in await _matching(connection, text, kinds, ancestors=ancestors):
                found[row["id"]] = Located(kind, row["id"], TenantScope.from_path(row["scope_path"]), row["words"])
                if row["named"]:
                    named.add(row["id"])
        if whole and found:
            break
    if named:
        found = {id: located for id, located in found.items() if id in named}
    if not found:
        raise _not_found(text, kinds, scopes)
    if len(found) > 1:
        candidates = [located.to_dict() for located in list(found.values())[:_SHOWN]]
        listed = "; ".join(f"{item['kind']} {item['id']} in {item['scope']}" for item in candidates)
        raise InvalidInput(
            f"{text!r} may mean {len(found)} things: {listed}.",
            hint="Give more of the id, or say where with --tenant and --scope.",
            candidates=candidates,
        )
    return next(iter(found.values()))


async def _matching(
    connection: ScopedConnection, text: str, kinds: Sequence[Kind], *, ancestors: bool
) -> list[tuple[Any, Kind]]:
    digits = _digits(text)
    span = {
        "low": UUID(digits.ljust(32, "0")) if digits else None,
        "high": UUID(digits.ljust(32, "f")) if digits else None,
    }
    paths = list(connection.scope.visible_paths()) if ancestors else [connection.scope.scope_path]
    found: list[tuple[Any, Kind]] = []
    for kind in kinds:
        given = {**span, "paths": paths, **({"text": text} if kind == "memory" else {})}
        found += [(row, kind) for row in await connection.rows(_FIND[kind], **given)]
    return found


def _digits(text: str) -> str:
    """The hexadecimal digits of an id or of its start, in lower case; empty where the text is not one."""
    digits = text.strip().replace("-", "")
    return digits.lower() if _DIGITS.fullmatch(digits) else ""


def _not_found(text: str, kinds: Sequence[Kind], scopes: Sequence[TenantScope]) -> NotFound:
    what = " or ".join(kinds)
    if not scopes:
        return NotFound(
            f"There is no {what} {text!r}: nothing has been imported yet.", hint="`slowwave import FILE --tenant T`"
        )
    where = f"in {scopes[0]}" if len(scopes) == 1 else f"in any of {len(scopes)} scopes"
    short = re.fullmatch(rf"[0-9a-fA-F-]{{1,{SHORTEST_PREFIX - 1}}}", text.strip()) is not None
    hint = (
        f"The start of an id needs at least {SHORTEST_PREFIX} digits."
        if short
        else "Give an id, its first 8 digits or more, or an external id, as `slowwave memories` and `runs` list them."
    )
    return NotFound(f"There is no {what} {text!r} {where}.", hint=hint)
