"""Small tenants at random, for properties: what the phases read, in every shape, written with one statement a table."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from memory_core.database.engine import Database
from memory_core.layers.identity import content_hash
from memory_core.models.embedding import embedding_provider
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_scope

MOST = 6
"""Memories at random beside those that every tenant has."""

# Minutes before the night: within the look-back, before it, stale; never within ten minutes of a bound of any phase.
AGES = st.sampled_from([20, 65, 95, 130, 400, 1_450, 2_900, 14_450, 60_000, 100_000])
LABELS = st.sampled_from(
    [None, "", "TEA: a", "TEA: b", "tea:  c", "TAX: d", "SOUL: name", "PERSONA: tone", "plain", "a"]
)
TEXTS = st.sampled_from(
    [
        "Ann drinks green tea",
        "The payment service had an outage",
        "There is no risk at all",
        "Somebody mentioned a bakery",
        "A leak in the cellar flooded the archive",
        "Bo works with Cy",
    ]
)
MEMORIES = st.fixed_dictionaries(
    {
        "label": LABELS,
        "text": TEXTS,
        "importance": st.sampled_from([1.0, 2.0, 3.9, 4.0, 5.0, 8.0, 10.0]),
        "age": AGES,
        "seen": st.booleans(),
        "pinned": st.sampled_from([False, False, False, True]),
        "layer": st.sampled_from(["semantic", "semantic", "semantic", "episodic", "working", "procedural"]),
        "expires": st.sampled_from([None, None, None, -500, 50_000]),
        "vector": st.booleans(),
    }
)
# In every tenant, so that every phase has something to do in most of them: a group, noise, and two that say the same.
ALWAYS: tuple[dict[str, Any], ...] = tuple(
    {"seen": True, "pinned": False, "layer": "semantic", "expires": None, "vector": True, **memory}
    for memory in (
        {"label": "TEA: x", "text": "Tea comes from Assam", "importance": 2.0, "age": 100_000},
        {"label": "TEA: y", "text": "Tea grows in Ceylon", "importance": 5.0, "age": 130},
        {"label": "TEA: z", "text": "Tea ships from Darjeeling", "importance": 3.9, "age": 2_900},
        {"label": None, "text": "Somebody mentioned a bakery", "importance": 2.0, "age": 60_000},
        {"label": None, "text": "Bo works with Cy", "importance": 5.0, "age": 400},
        {"label": None, "text": "Bo works with Cy", "importance": 5.0, "age": 2_900},
    )
)
PLACES = st.integers(0, len(ALWAYS) + MOST - 1)
RELATIONSHIPS = st.sampled_from(["KNOWS", "WORKS_WITH", "LINKED_SEMANTIC", "", "co_occurred"])


@dataclass(frozen=True)
class RandomTenant:
    """What a scope holds; memories are named by their place, modulo their number.

    Attributes:
        accesses: place, minutes before the night, kind.
        edges: two places, relationship, kind, status.
        pending: two places, relationship; as an activation log holds them.
        corrections: field, value, minutes before the night.
    """

    memories: Sequence[dict[str, Any]]
    accesses: Sequence[tuple[int, int, str]]
    edges: Sequence[tuple[int, int, str, str, str]]
    pending: Sequence[tuple[int, int, str]]
    corrections: Sequence[tuple[str, Any, int]]

    def ids(self, seed: str = "") -> list[uuid.UUID]:
        """The memories' ids: by place, the same in every scope that is given the same seed."""
        return [uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{place}") for place in range(len(self.memories))]

    def connections(self, seed: str = "") -> list[dict[str, str]]:
        """The pending connections, by the memories' ids."""
        ids = self.ids(seed)
        return [
            {
                "source": str(ids[one % len(ids)]),
                "target": str(ids[other % len(ids)]),
                "relationship": relationship,
                "status": "PENDING CONSOLIDATION",
            }
            for one, other, relationship in self.pending
        ]


TENANTS = st.builds(
    RandomTenant,
    memories=st.lists(MEMORIES, max_size=MOST).map(lambda found: [*ALWAYS, *found]),
    accesses=st.lists(
        st.tuples(PLACES, AGES, st.sampled_from(["recall", "hydrate", "mention", "confirm"])), max_size=10
    ),
    edges=st.lists(
        st.tuples(
            PLACES,
            PLACES,
            st.sampled_from(["KNOWS", "OF", "CO_OCCURRED"]),
            st.sampled_from(["explicit", "inferred", "co_occurred"]),
            st.sampled_from(["active", "confirmed", "retired"]),
        ),
        max_size=6,
        unique_by=lambda edge: edge[:3],
    ),
    pending=st.lists(st.tuples(PLACES, PLACES, RELATIONSHIPS), max_size=4),
    corrections=st.lists(
        st.tuples(
            st.sampled_from(["city", "age"]), st.one_of(st.integers(0, 99), st.sampled_from(["Porto", ""])), AGES
        ),
        max_size=3,
    ),
)


def before_night(minutes: int) -> datetime:
    """So many minutes before `NIGHT`."""
    return NIGHT - timedelta(minutes=minutes)


async def fill(
    database: Database, scope: TenantScope, tenant: RandomTenant, seed: str = "", *, backwards: bool = False
) -> list[uuid.UUID]:
    """Write the tenant into the scope; returns the memories' ids by place.

    Args:
        seed: what the ids are made from.
        backwards: whether every table's rows are written last first.
    """
    await add_scope(database, scope)
    ids = tenant.ids(seed)
    vectors = await embedding_provider("hash:64").embed([one["text"] for one in tenant.memories])
    memories = [
        {
            "id": str(memory_id),
            **one,
            "at": before_night(one["age"]).isoformat(),
            "expires_at": None if one["expires"] is None else before_night(-one["expires"]).isoformat(),
            "hash": content_hash(one["layer"], one["label"], one["text"], None, None, None),
            "embedding": str(vector.tolist()),
            "first_night": before_night(50_000).isoformat() if one["seen"] else None,
        }
        for memory_id, one, vector in zip(ids, tenant.memories, vectors, strict=True)
    ]

    def number(kind: str, place: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{kind}/{place}"))

    accesses = [
        {
            "id": number("access", place),
            "memory": str(ids[memory % len(ids)]),
            "at": before_night(age).isoformat(),
            "kind": kind,
        }
        for place, (memory, age, kind) in enumerate(tenant.accesses)
    ]
    edges = {
        (one % len(ids), other % len(ids), relationship): {
            "id": number("edge", place),
            "source": str(ids[one % len(ids)]),
            "target": str(ids[other % len(ids)]),
            "relationship": relationship,
            "kind": kind,
            "status": status,
        }
        for place, (one, other, relationship, kind, status) in enumerate(tenant.edges)
        if one % len(ids) != other % len(ids)
    }
    corrections = [
        {
            "id": number("correction", place),
            "at": before_night(age).isoformat(),
            "what": {"fields": {field: value}},
        }
        for place, (field, value, age) in enumerate(tenant.corrections)
    ]
    async with database.scoped(scope) as connection:
        for sql, found in (
            (_MEMORIES, memories),
            (_STATES, memories),
            (_VECTORS, memories),
            (_ACCESSES, accesses),
            (_ACTIVITY, accesses),
            (_EDGES, list(edges.values())),
            (_CORRECTIONS, corrections),
        ):
            for row in reversed(found) if backwards else found:
                await connection.execute(sql, row=json.dumps(row))
        await connection.commit()
    return ids


_MEMORIES = """
INSERT INTO memories (tenant_id, scope_path, id, layer, label, content, observed_at, recorded_at, last_activity_at,
                      expires_at, pinned, content_hash)
SELECT :tenant_id, :scope_path, id, layer, label, text, at, at, at, expires_at, pinned, hash
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, layer text, label text, text text, at timestamptz,
     expires_at timestamptz, pinned boolean, hash text)
"""
_STATES = """
INSERT INTO memory_state (tenant_id, scope_path, memory_id, importance, first_night)
SELECT :tenant_id, :scope_path, id, importance, first_night
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, importance double precision, first_night timestamptz)
"""
_VECTORS = """
INSERT INTO memory_embeddings (tenant_id, scope_path, memory_id, model, dimension, embedding)
SELECT :tenant_id, :scope_path, id, 'hash:64', 64, CAST(embedding AS vector)
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, embedding text, vector boolean) WHERE vector
"""
_ACCESSES = """
INSERT INTO memory_accesses (tenant_id, scope_path, id, memory_id, kind, at)
SELECT :tenant_id, :scope_path, id, memory, kind, at
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, memory uuid, kind text, at timestamptz)
"""
_ACTIVITY = """
UPDATE memories m SET last_activity_at = greatest(m.last_activity_at, r.at)
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (memory uuid, at timestamptz)
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.id = r.memory
"""
_EDGES = """
INSERT INTO memory_edges (tenant_id, scope_path, id, source_id, target_id, relationship, kind, status, recorded_at)
SELECT :tenant_id, :scope_path, id, source, target, relationship, kind, status, TIMESTAMPTZ '2026-01-01 00:00+00'
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, source uuid, target uuid, relationship text, kind text,
     status text)
"""
_CORRECTIONS = """
INSERT INTO corrections (tenant_id, scope_path, id, who, at, what)
SELECT :tenant_id, :scope_path, id, 'Ann', at, what
FROM jsonb_to_record(CAST(:row AS jsonb)) AS r (id uuid, at timestamptz, what jsonb)
"""
