"""What a person does to memory: remember and correct here; pin, retract, restore and resolve in the modules beside.

Every function is one transaction over the scope itself (vectors are computed before it), and returns a JSON-able
document. A memory of an ancestor scope is refused with `NotFound`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import PydanticCustomError
from sqlalchemy import RowMapping

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidInput, InvalidTime, TransactionConflict
from memory_core.layers.contested import resolve_belief
from memory_core.layers.known import Known
from memory_core.layers.own_rows import own_memory
from memory_core.layers.records import NewMemory, clean_document
from memory_core.layers.references import correct_memories, resolve_references
from memory_core.layers.restoring import restore, restore_run
from memory_core.layers.retiring import pin, retract, unpin
from memory_core.layers.scopes import enter_scope
from memory_core.layers.triples import edited_object
from memory_core.layers.vectors import TextVectors, embed_texts, texts_to_embed
from memory_core.layers.writing import write_memories
from memory_core.models.embedding import EmbeddingProvider
from memory_core.scope import TenantScope

__all__ = [
    "correct",
    "correct_profile",
    "pin",
    "remember",
    "resolve_belief",
    "restore",
    "restore_run",
    "retract",
    "unpin",
]

PERSON_CONFIDENCE = 0.95
"""At least this sure is what a person said by correcting."""


async def remember(
    database: Database, scope: TenantScope, provider: EmbeddingProvider, memory: NewMemory, *, now: datetime
) -> dict[str, Any]:
    """Remember one thing; where it says no time, it was said now.

    Returns:
        id, status (`inserted`, `new_version`, `unchanged`, `earlier_version`), edges, accesses, unresolved (edges and
        corrections that lead nowhere, with reasons), and vector_problem where it has no vector yet.
    """
    _zoned(now)
    if not memory.dated:
        memory = memory.model_copy(update={"observed_at": now})
    vectors = await _vectors(database, scope, provider, memory, now)
    async with database.scoped(scope) as connection:
        result = await write_memories(connection, [memory], now=now, vectors=vectors)
        resolved = await resolve_references(connection, result.references)
        await connection.commit()
    write = result.writes[0]
    return {
        "id": str(write.id),
        "external_id": memory.external_id,
        "status": write.outcome,
        "supersedes": None if write.previous is None else str(write.previous.id),
        "content": memory.content,
        "scope": str(scope),
        "accesses": result.accesses,
        "edges": resolved.edges,
        "corrections": resolved.corrections,
        "unresolved": [{**item.reference.to_dict(), "reason": item.reason} for item in resolved.unresolved],
        "vector_problem": vectors.problem,
    }


async def correct(
    database: Database,
    scope: TenantScope,
    provider: EmbeddingProvider,
    memory: UUID | str,
    *,
    content: str,
    triple: tuple[str, str, str] | None = None,
    properties: Mapping[str, Any] | None = None,
    who: str,
    at: datetime,
) -> dict[str, Any]:
    """Say what is true instead of what a memory says: a new memory supersedes it with the reason `correction`.

    The new one keeps layer, label, importance, pin, expiry and explicit edges. A memory that already gave way to a
    newer version, a duplicate or an earlier correction stands for that one.

    Args:
        memory: its id or external id.
        content: what is true.
        triple: its subject, predicate and object. Where None and only the old object was edited in the sentence, the
            triple follows; where more was edited, the new memory has none, for a stale triple would say what is wrong.
        properties: changed properties (RFC 7386: null takes one away); the others are kept, except `soul`, which
            belongs to the old text.
        who: who says so.

    Raises:
        NotFound: there is no such memory in the scope itself.
        InvalidInput: it says that already, or a value is not valid.
        TransactionConflict: it was changed meanwhile; try again.
    """
    _zoned(at)
    async with database.scoped(scope) as connection:
        named = await own_memory(connection, memory)
        old = await _standing(connection, named)
    new, triple_from = _corrected(old, content, triple, properties or {}, who, at)
    vectors = await _vectors(database, scope, provider, new, at)
    async with database.scoped(scope) as connection:
        result = await write_memories(connection, [new], now=at, vectors=vectors)
        write = result.writes[0]
        if await connection.scalar(_VERSION, id=old["id"]) != old["version"]:
            raise TransactionConflict("The memory was changed while it was being corrected.", id=str(old["id"]))
        await correct_memories(connection, {write.id: old["id"]})
        await _keep_correction(connection, write.id, {"content": new.content}, who, at)
        await connection.commit()
    return {
        "id": str(write.id),
        "status": "corrected",
        "corrects": str(old["id"]),
        "external_id": old["external_id"],
        "before": old["content"],
        "content": new.content,
        "subject": new.subject,
        "predicate": new.predicate,
        "object": new.object,
        "triple": triple_from,
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
        "vector_problem": vectors.problem,
    }


async def correct_profile(
    database: Database,
    scope: TenantScope,
    fields: Mapping[str, Any],
    *,
    who: str,
    at: datetime,
    memory_id: UUID | None = None,
) -> dict[str, Any]:
    """Correct fields of the SOUL profile; the next night applies and checks them.

    Args:
        fields: values by field name; JSON-able, none of them null.
        memory_id: the memory in which the person said so.

    Raises:
        InvalidInput: there is no field, a name is blank, or a value is null or cannot be kept as JSON.
    """
    _zoned(at)
    try:
        cleaned = clean_document(dict(fields))
    except PydanticCustomError as error:
        raise InvalidInput(f"A profile field {error.message()}.", hint="Give a value that JSON can hold.") from None
    given = {name.strip(): value for name, value in cleaned.items()}
    blank = [name for name, value in given.items() if not name or value is None]
    if not given or blank:
        raise InvalidInput(
            "A profile field has no name or no value." if blank else "No profile field is given.",
            hint="Write it as --field name=value.",
        )
    async with database.scoped(scope) as connection:
        await enter_scope(connection)
        correction_id = await _keep_correction(connection, memory_id, {"fields": given}, who, at)
        await connection.commit()
    return {
        "id": str(correction_id),
        "status": "waiting",
        "fields": given,
        "who": who,
        "at": at.isoformat(),
        "scope": str(scope),
        "applied_by": "the next sleep",
    }


_VERSION = (
    "SELECT version FROM memories WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND id = CAST(:id AS uuid)"
)

# One that gave way to other words of the same statement stands for these; one that lost a conflict stands for itself.
_STANDING = """
WITH RECURSIVE chain(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION ALL
  SELECT m.superseded_by, c.step + 1
  FROM chain c JOIN memories m ON m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = c.id
  JOIN memories n ON n.tenant_id = :tenant_id AND n.scope_path = :scope_path AND n.id = m.superseded_by
  WHERE c.step < 100 AND (m.superseded_reason IN ('duplicate', 'correction')
                          OR (m.superseded_reason = 'update' AND n.external_id = m.external_id))
)
SELECT id FROM chain ORDER BY step DESC LIMIT 1
"""


async def _standing(connection: ScopedConnection, named: RowMapping) -> RowMapping:
    return await own_memory(connection, await connection.scalar(_STANDING, id=named["id"]))


def _corrected(
    old: RowMapping,
    content: str,
    triple: tuple[str, str, str] | None,
    properties: Mapping[str, Any],
    who: str,
    at: datetime,
) -> tuple[NewMemory, str]:
    kept = {name: value for name, value in old["properties"].items() if name != "soul"}
    merged = {**kept, **properties, "corrected_by": who}
    triple_from = "given" if triple else "none"
    if triple is None and old["object"] is not None:
        found = edited_object(old["content"], old["object"], content.strip())
        triple = None if found is None else (old["subject"], old["predicate"], found)
        triple_from = "followed the sentence" if triple else "dropped, because more than its object was edited"
    subject, predicate, object_ = triple or (None, None, None)
    new = NewMemory.read(
        {
            "content": content,
            "layer": old["layer"],
            "label": old["label"],
            "subject": subject,
            "predicate": predicate,
            "object": object_,
            "importance": old["importance"],
            "confidence": max(old["confidence"], PERSON_CONFIDENCE),
            "observed_at": at,
            "recorded_at": at,
            "expires_at": old["expires_at"],
            "source": "user",
            "pinned": old["pinned"],
            "properties": {name: value for name, value in merged.items() if value is not None},
        }
    )
    if new.content == old["content"] and (new.subject, new.predicate, new.object) == (
        old["subject"],
        old["predicate"],
        old["object"],
    ):
        raise InvalidInput("The memory says that already.", hint="`slowwave pin` protects it.", id=str(old["id"]))
    return new, triple_from


async def _keep_correction(
    connection: ScopedConnection, memory_id: UUID | None, what: Mapping[str, Any], who: str, at: datetime
) -> UUID:
    text = json.dumps(what, sort_keys=True)
    correction_id = connection.scope.derived_id("correction", str(memory_id or ""), who, at.isoformat(), text)
    await connection.execute(
        "INSERT INTO corrections (tenant_id, scope_path, id, memory_id, who, at, what) "
        "VALUES (:tenant_id, :scope_path, :id, CAST(:memory_id AS uuid), :who, :at, CAST(:what AS jsonb)) "
        "ON CONFLICT DO NOTHING",
        id=correction_id,
        memory_id=memory_id,
        who=who,
        at=at,
        what=text,
    )
    return correction_id


async def _vectors(
    database: Database, scope: TenantScope, provider: EmbeddingProvider, memory: NewMemory, now: datetime
) -> TextVectors:
    async with database.scoped(scope) as connection:
        writes = await Known().plan(connection, [memory], now)
    return await embed_texts(provider, texts_to_embed(writes, provider.model))


def _zoned(at: datetime) -> None:
    if at.utcoffset() is None:
        raise InvalidTime("The time has no zone.", hint="Give it as UTC.")
