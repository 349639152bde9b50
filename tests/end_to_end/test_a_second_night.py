"""A night over unchanged data changes nothing, whatever the first one did."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memory_core.database.engine import Database
from memory_core.interchange.importing import import_file
from memory_core.models.embedding import embedding_provider
from memory_core.night.consolidate import consolidate
from memory_core.runs.checksum import table_checksums
from memory_core.scope import TenantScope
from tests.builders import NIGHT

SAMPLE = Path(__file__).parents[2] / "memory_core" / "interchange" / "sample"


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", ["assistant", "support"])
@pytest.mark.parametrize("later", [timedelta(0), timedelta(minutes=1)], ids=["same time", "a minute later"])
async def test_a_second_night_is_quiet(database: Database, scope: TenantScope, name: str, later: timedelta) -> None:
    """What SHMR replaced is in no summary of the same night, so that the next run finds nothing to make anew."""
    await import_file(database, embedding_provider("hash:64"), SAMPLE / f"{name}.jsonl", now=NIGHT, scope=scope)
    first = (await consolidate(database, [scope], "nightly", NIGHT))[0]
    assert first["status"] == "applied"
    assert first["sleep"]["meta_nodes_created"] > 0
    assert first["shmr"]["contradictions_resolved"] > 0
    async with database.scoped(scope) as connection:
        before = await table_checksums(connection)
    second = (await consolidate(database, [scope], "nightly", NIGHT + later))[0]
    assert second["status"] == "applied"
    assert {name: step["changed"] for name, step in second["steps"].items() if step.get("changed")} == {}
    async with database.scoped(scope) as connection:
        assert await table_checksums(connection) == before
        unembedded = await connection.scalar(
            "SELECT count(*) FROM memories m WHERE tenant_id = :tenant_id AND derived_key IS NOT NULL "
            "AND retired_at IS NULL AND NOT EXISTS (SELECT FROM memory_embeddings e "
            "WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.id)"
        )
        assert unembedded == 0
