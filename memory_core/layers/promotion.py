"""What a person promotes: one memory of a scope becomes known in a scope above it, with where it came from.

The original stays as it is. What an ancestor keeps is a memory of its own, so it also stays when the original goes;
its provenance (`provenance.py`) says what it was taken from.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidScope, InvalidTime
from memory_core.layers.own_rows import own_memory
from memory_core.layers.provenance import (
    PROMOTED_FROM,
    PROMOTION_SOURCE,
    Provenance,
    promoted,
    provenance_of,
    with_sources,
)
from memory_core.layers.records import NewMemory
from memory_core.layers.scopes import enter_scope
from memory_core.layers.vectors import TextVectors, embed_texts
from memory_core.layers.writing import write_memories
from memory_core.models.embedding import EmbeddingProvider
from memory_core.scope import TenantScope

# Of several, one that holds; and of these, one that was promoted, so that its provenance grows.
_SAME = """
SELECT m.id, m.source, m.properties, m.retired_at, m.superseded_reason,
       m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :at) AS stands
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.content_hash = :content_hash
ORDER BY stands DESC, m.source IS NOT DISTINCT FROM :promotion DESC, m.recorded_at DESC, m.id LIMIT 1
"""

_ADD = """
UPDATE memories SET properties = properties || CAST(:provenance AS jsonb)
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)
"""

_SURER = """
UPDATE memory_state SET confidence = greatest(confidence, :confidence)
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND memory_id = CAST(:id AS uuid)
"""


async def promote(
    database: Database,
    scope: TenantScope,
    provider: EmbeddingProvider,
    memory: UUID | str,
    *,
    to: TenantScope | None = None,
    who: str,
    at: datetime,
) -> dict[str, Any]:
    """Promote one current memory of a scope to a scope above it.

    Content, label, triple, properties, importance, confidence, expiry and `observed_at` are the original's; its
    external id and pin are not taken over. Where the ancestor keeps the same as promoted already, the memory is named
    there as one more source, and the confidence is the higher one; what the ancestor knows by itself stays untouched.

    Args:
        memory: its id or external id.
        to: the ancestor; None for the scope right above.
        who: the person.

    Returns:
        status (`promoted`, `source_added`, `unchanged` where it was named as a source before, `already_known`), id (the
        ancestor's memory), memory (the original's id), scope, to, content, sources, who, at, vector_problem.

    Raises:
        NotFound: there is no such memory in the scope itself.
        InvalidScope: `to` is not above the scope, or nothing is.
        InvalidInput: the memory is of the working layer, not current, or a summary that nights make; or the ancestor
            has the same and took it out of use.
    """
    if at.utcoffset() is None:
        raise InvalidTime("The time has no zone.", hint="Give it as UTC.")
    target = _above(scope, to)
    async with database.scoped(scope) as connection:
        original = await own_memory(connection, memory)
    _check(original, at)
    sources = provenance_of(original["properties"], original["source"]) or [
        {"scope_path": scope.scope_path, "memory_id": original["id"], "confidence": original["confidence"]}
    ]
    entries = promoted(sources, at=at, by=who)
    new = _copy(original, entries, at)
    vectors = await embed_texts(provider, list(filter(None, (new.content, new.slot_text))))
    async with database.scoped(target) as connection:
        written = await _write(connection, new, entries, at, vectors)
        await connection.commit()
    return {
        **written,
        "memory": str(original["id"]),
        "content": original["content"],
        "scope": str(scope),
        "to": str(target),
        "who": who,
        "at": at.isoformat(),
        "vector_problem": vectors.problem,
    }


def ancestor_named(scope: TenantScope, text: str) -> TenantScope:
    """The scope above that a person means.

    Args:
        text: `kind=id/kind=id` below the tenant, as `--scope` is written, or with the tenant before it. The tenant's
            own level alone (`org=acme`) is the tenant itself.

    Raises:
        InvalidScope: no scope above is called so.
    """
    named = text.strip().strip("/")
    for ancestor in _ancestors(scope):
        below = "/".join(str(level) for level in ancestor.levels[1:])
        if named and named in (str(ancestor), below):
            return ancestor
    raise _not_above(scope, repr(text))


def _ancestors(scope: TenantScope) -> list[TenantScope]:
    """The scopes above, the nearest first."""
    found = []
    while (parent := scope.parent) is not None:
        found.append(parent)
        scope = parent
    return found


def _above(scope: TenantScope, to: TenantScope | None) -> TenantScope:
    ancestors = _ancestors(scope)
    if not ancestors:
        raise InvalidScope(
            f"{scope} is a tenant's own scope, and there is none above it.", hint="Name a memory of a scope below it."
        )
    if to is None:
        return ancestors[0]
    if to not in ancestors:
        raise _not_above(scope, str(to))
    return to


def _not_above(scope: TenantScope, named: str) -> InvalidScope:
    above = [str(ancestor) for ancestor in _ancestors(scope)]
    return InvalidScope(
        f"{named} is not a scope above {scope}.",
        hint=f"It is one of: {', '.join(above)}." if above else "There is none: it is a tenant's own scope.",
        above=above,
    )


def _check(original: RowMapping, at: datetime) -> None:
    """Raise where a memory cannot be promoted."""
    wrong, hint = "", ""
    if original["layer"] == "working":
        wrong, hint = "is of the working layer, which is for the moment", "Remember it as a fact to keep it."
    elif original["derived_key"] is not None:
        wrong, hint = "is a summary that nights make", "Promote what it summarises."
    elif original["retired_at"] is not None:
        wrong, hint = f"is retired: {original['retired_reason']}", "`slowwave restore` brings it back."
    elif original["superseded_reason"] is not None:
        wrong, hint = f"is superseded ({original['superseded_reason']})", "`slowwave why` names what holds instead."
    elif original["expires_at"] is not None and original["expires_at"] <= at:
        wrong, hint = f"expired at {original['expires_at'].isoformat()}", "Remember it anew where it still holds."
    if wrong:
        raise InvalidInput(f"The memory {original['id']} {wrong}.", hint=hint, id=str(original["id"]))


def _copy(original: RowMapping, entries: Provenance, at: datetime) -> NewMemory:
    """The ancestor's memory. `soul` stays behind: it corrects the profile of the scope it was said in."""
    kept = {name: value for name, value in original["properties"].items() if name != "soul"}
    return NewMemory.read(
        {
            **{name: original[name] for name in ("content", "layer", "label", "subject", "predicate", "object")},
            "importance": original["importance"],
            "confidence": original["confidence"],
            "observed_at": original["observed_at"],
            "recorded_at": at,
            "expires_at": original["expires_at"],
            "source": PROMOTION_SOURCE,
            "properties": {**kept, PROMOTED_FROM: entries},
        }
    )


async def _write(
    connection: ScopedConnection, new: NewMemory, entries: Provenance, at: datetime, vectors: TextVectors
) -> dict[str, Any]:
    """Write the ancestor's memory, or name one more source of the one that is there."""
    await enter_scope(connection)
    same = await connection.row(_SAME, content_hash=new.content_hash, at=at, promotion=PROMOTION_SOURCE)
    if same is not None and same["stands"]:
        return await _add_sources(connection, same, new, entries)
    result = await write_memories(connection, [new], now=at, vectors=vectors)
    write = result.writes[0]
    if not write.is_new:
        assert same is not None  # nothing but the same content makes a write known
        raise _taken_out(connection.scope, same)
    return {"status": "promoted", "id": str(write.id), "sources": len(entries)}


async def _add_sources(
    connection: ScopedConnection, same: RowMapping, new: NewMemory, entries: Provenance
) -> dict[str, Any]:
    found = {"id": str(same["id"])}
    if same["source"] != PROMOTION_SOURCE:
        return {"status": "already_known", **found, "sources": 0}
    whole, added = with_sources(provenance_of(same["properties"], same["source"]), entries)
    if not added:
        return {"status": "unchanged", **found, "sources": len(whole)}
    await connection.execute(_ADD, id=same["id"], provenance=json.dumps({PROMOTED_FROM: whole}))
    await connection.execute(_SURER, id=same["id"], confidence=new.confidence)
    return {"status": "source_added", **found, "sources": len(whole)}


def _taken_out(target: TenantScope, same: RowMapping) -> InvalidInput:
    retired = same["retired_at"] is not None
    how = "retired" if retired else "superseded" if same["superseded_reason"] is not None else "expired"
    return InvalidInput(
        f"{target} has the same as {same['id']}, which is {how} there.",
        hint="`slowwave restore` brings it back." if retired else "`slowwave why` tells what became of it.",
        id=str(same["id"]),
    )
