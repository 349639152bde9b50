"""A small tenant in which every phase of a night, and SHMR, has something to do."""

from __future__ import annotations

import json
import uuid

from memory_core.database.engine import Database
from memory_core.models.embedding import embedding_provider
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_edge, add_memory, ago

PENDING = [
    {"source": "TEAM: Bo", "relationship": "works_with", "target": "TEAM: Cy", "status": "PENDING CONSOLIDATION"},
]


async def fill_small_tenant(database: Database, scope: TenantScope) -> dict[str, uuid.UUID]:
    """Fill the scope; returns the memories by a short name."""
    vectors = embedding_provider("hash:64")

    async def add(name: str, content: str, **fields: object) -> uuid.UUID:
        vector = (await vectors.embed([content]))[0].tolist()
        return await add_memory(database, scope, content, vector=vector, **fields)  # type: ignore[arg-type]

    known: dict[str, uuid.UUID] = {}
    used = (ago(hours=5), ago(hours=4.5))
    for name in ("Ann", "Bo", "Cy"):
        known[name] = await add(
            name, f"{name} is on the data team", label=f"TEAM: {name}", access_at=used, observed_at=ago(days=3)
        )
    for number, city in enumerate(("Leeds", "Porto")):
        known[city] = await add(
            city,
            f"Maya lives in {city}",
            subject="Maya",
            predicate="lives_in",
            object=city,
            source=f"chat-{number}",
            observed_at=ago(days=20 - 10 * number),
        )
    for number in range(2):
        known[f"tea{number}"] = await add(
            "tea",
            "Maya drinks green tea every morning",
            subject="Maya",
            predicate="drinks",
            object="green tea",
            source=f"source-{number}",
            observed_at=ago(days=9, hours=number),
        )
    outage = "The payment service had an outage and data loss last night"
    known["outage"] = await add("outage", outage, observed_at=ago(hours=6))
    known["stale"] = await add("stale", "Somebody mentioned a bakery once", importance=2.0, observed_at=ago(days=40))
    known["soul"] = await add(
        "soul", "The assistant is called Wave", label="SOUL: name", pinned=True, observed_at=ago(days=40)
    )
    await add_edge(database, scope, known["Ann"], known["soul"], "SERVES")
    async with database.scoped(scope) as connection:
        # Seen long ago, so that prune may count its age.
        seen = "UPDATE memory_state SET first_night = :at WHERE tenant_id = :tenant_id"
        await connection.execute(seen, at=ago(days=30))
        await connection.execute(
            "INSERT INTO corrections (tenant_id, id, scope_path, who, at, what) "
            "VALUES (:tenant_id, :id, :scope_path, 'maya', :at, CAST(:what AS jsonb))",
            id=uuid.uuid4(),
            at=ago(hours=8),
            what=json.dumps({"fields": {"city": "Porto"}}),
        )
        await connection.commit()
    return known


__all__ = ["NIGHT", "PENDING", "fill_small_tenant"]
