"""What a night costs in statements: the same number, whatever the number of memories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, event

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from tests.benchmarks.synthetic_tenant import NEXT_NIGHT, NIGHT, a_day_later, fill, pending_connections

EVERYTHING = {
    **{
        name: {"enabled": True}
        for name in ("decay", "working_expiry", "duplicate_merge", "episodic_summaries", "promotion")
    },
    "meta_nodes": {"topics": True},
}


@pytest.fixture
def owner(database_url: str) -> Iterator[Engine]:
    """The owner's engine, whom row-level security does not bind."""
    engine = create_engine(database_url, connect_args={"options": "-c search_path=slowwave,public"})
    yield engine
    engine.dispose()


async def test_statements_do_not_grow_with_the_memories(database: Database, owner: Engine) -> None:
    """All phases over 200 and over 2,000 memories, on a first night and on the next; the optional ones too."""
    counted: dict[int, list[int]] = {}
    statements: list[str] = []
    event.listen(database.app.sync_engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for memories in (200, 2_000):
        scope = TenantScope.root("tenant", f"of-{memories}")
        with owner.begin() as connection:
            fill(connection, scope, memories)
        counted[memories] = []
        for night in (NIGHT, NEXT_NIGHT):
            statements.clear()
            asked = {"accept": True, "settings": EVERYTHING, "pending_connections": pending_connections(memories)}
            (document,) = await consolidate(database, [scope], "sleep", night, parameters=asked)
            assert document["status"] == "applied"
            assert document["sleep"]["edges_created"] > 0
            counted[memories].append(len(statements))
            with owner.begin() as connection:
                a_day_later(connection, scope, memories)
    assert counted[200] == counted[2_000]
