"""What the journal costs: in proportion to the rows that changed, whatever the session did before."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, text

from memory_core.database.ddl import APP_ROLE
from memory_core.scope import TenantScope
from tests.benchmarks.synthetic_tenant import fill

SCOPE = TenantScope.root("tenant", "journalled")
MEMORIES = 4_000

_BIND = text(
    "SELECT set_config('slowwave.tenant_id', :tenant, false), set_config('slowwave.scope_path', :path, false), "
    "set_config('slowwave.visible_paths', :path, false), set_config('slowwave.step', 'test', false), "
    "set_config('slowwave.run_id', gen_random_uuid()::text, false)"
)
_CHANGE = {
    "memory_state": "UPDATE memory_state SET confidence = random() WHERE memory_id = ANY (CAST(:ids AS uuid[]))",
    "memories": "UPDATE memories SET pinned = NOT pinned WHERE id = ANY (CAST(:ids AS uuid[]))",
}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """The owner's engine, over a tenant of some size."""
    engine = create_engine(database_url, connect_args={"options": "-c search_path=slowwave,public"})
    with engine.begin() as connection:
        fill(connection, SCOPE, MEMORIES)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("table", _CHANGE)
def test_a_session_that_began_with_one_row_writes_many_as_fast_as_another(engine: Engine, table: str) -> None:
    """A session keeps its first plan; one that suits a single row would compare every row with every other."""
    fresh = _seconds(engine, table, first=MEMORIES)
    assert _seconds(engine, table, first=1) < 6 * fresh + 0.1


def _seconds(engine: Engine, table: str, *, first: int) -> float:
    """How long a session takes over every row, after a statement over so many of them."""
    with engine.connect() as connection:
        connection.execute(text(f"SET ROLE {APP_ROLE}"))
        connection.execute(_BIND, {"tenant": SCOPE.tenant_id, "path": SCOPE.scope_path})
        ids = connection.scalars(text("SELECT id FROM memories ORDER BY id")).all()
        _change(connection, table, ids[:first])
        began = time.perf_counter()
        _change(connection, table, ids)
        seconds = time.perf_counter() - began
        written = connection.scalar(text("SELECT count(*) FROM run_changes"))
        assert written == first + len(ids) == first + MEMORIES
        connection.rollback()
        connection.invalidate()  # its plans go with it
    return seconds


def _change(connection: Connection, table: str, ids: object) -> None:
    connection.execute(text(_CHANGE[table]), {"ids": ids})
