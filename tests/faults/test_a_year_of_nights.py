"""A long time in one store: what must hold every night still holds after a year of them."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import pytest

from memory_core.database.engine import Database
from memory_core.models.embedding import embedding_provider
from memory_core.night.consolidate import consolidate, undo
from memory_core.runs.checksum import checksum
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_access, add_memory

NIGHTS = 365
SUBJECTS = ("Ann", "Bo", "Cy", "Di", "Ed")
CITIES = ("Leeds", "Porto", "Ghent", "Bari", "Oslo", "Turku")


@pytest.mark.soak
async def test_a_year_of_nights(database: Database, scope: TenantScope) -> None:
    """Every day people say, read and repeat things; every tenth night is undone and slept again, to the same end."""
    chance = random.Random(20260301)
    provider = embedding_provider("hash:64")
    said: list[uuid.UUID] = []

    async def state() -> str:
        async with database.scoped(scope) as connection:
            return await checksum(connection)

    async def say(at: object, content: str, **fields: object) -> None:
        vector = (await provider.embed([content]))[0].tolist()
        said.append(await add_memory(database, scope, content, observed_at=at, vector=vector, **fields))  # type: ignore[arg-type]

    for number in range(NIGHTS):
        night = NIGHT + timedelta(days=number)
        for hours in sorted(chance.sample(range(1, 23), 4)):
            at, subject, city = night - timedelta(hours=hours), chance.choice(SUBJECTS), chance.choice(CITIES)
            if chance.random() < 0.4:
                triple = {"subject": subject, "predicate": "lives_in", "object": city}
                await say(at, f"{subject} lives in {city}", source=f"source {chance.randrange(3)}", **triple)
            else:
                await say(
                    at, f"Trifle {number} about {city}", importance=chance.choice((2.0, 5.0)), label=f"TOWN: {city}"
                )
            for memory_id in chance.sample(said, min(2, len(said))):
                await add_access(database, scope, memory_id, at)
        before = await state()
        document = (await consolidate(database, [scope], "nightly", night))[0]
        assert document["status"] in ("applied", "refused"), document
        if number % 10 == 9 and document["status"] == "applied":
            undone = await undo(database, scope, uuid.UUID(document["run_id"]), at=night)
            assert undone.refused == ()
            assert await state() == before, f"night {number}"
            again = (await consolidate(database, [scope], "nightly", night, parameters={"reconsider": True}))[0]
            assert again["status"] == "applied"
    async with database.scoped(scope) as connection:
        kept = await connection.scalar(
            "SELECT count(*) FROM memories WHERE tenant_id = :tenant_id AND derived_key IS NULL"
        )
        assert kept == len(said), "a memory was lost"
        unsupported = await connection.scalar(
            "SELECT count(*) FROM harmonic_beliefs b "
            "WHERE b.tenant_id = :tenant_id AND b.status IN ('held', 'contested') "
            "AND NOT EXISTS (SELECT FROM belief_evidence e WHERE e.tenant_id = b.tenant_id "
            "AND e.belief_id = b.belief_id AND e.role = 'supports')"
        )
        assert unsupported == 0
