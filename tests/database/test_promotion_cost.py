"""What children say is read at a cost that grows with it, not with its square, with statistics or without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine

from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from tests.builders import add_scope, ago
from tests.nights import change

CHILDREN, FACTS = 10, 200

_FILL = """
WITH facts AS (
  INSERT INTO memories (tenant_id, id, scope_path, content, subject, predicate, object, observed_at, recorded_at,
                        last_activity_at, content_hash)
  SELECT :tenant_id, gen_random_uuid(), :scope_path, 'fact ' || i, 'Subject ' || i, 'is', 'so',
         CAST(:at AS timestamptz), CAST(:at AS timestamptz), CAST(:at AS timestamptz), 'hash ' || i
  FROM generate_series(1, CAST(:facts AS integer)) AS i
  RETURNING id
)
INSERT INTO memory_state (tenant_id, scope_path, memory_id) SELECT :tenant_id, :scope_path, id FROM facts
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("known", [False, True], ids=["without statistics", "with statistics"])
async def test_no_join_compares_everything_with_everything(database: Database, scope: TenantScope, known: bool) -> None:
    """The function's own query, planned as its owner and with its settings, throws no pair of rows away."""
    await add_scope(database, scope)
    for number in range(CHILDREN):
        child = scope.child("chat", str(number))
        await add_scope(database, child)
        await change(database, child, _FILL, at=ago(days=2), facts=FACTS)
    if known:
        await database.refresh_statistics()
    engine = create_engine(database.url)
    with engine.connect() as connection:
        cursor: Any = connection.connection.cursor()
        cursor.execute("SELECT prosrc, proconfig FROM pg_proc WHERE proname = 'promotion_candidates'")
        query, settings = cursor.fetchone()
        for name, value in (
            ("role", "slowwave_owner"),
            ("search_path", "slowwave"),
            *(setting.split("=") for setting in settings if not setting.startswith("search_path")),
            ("slowwave.tenant_id", scope.tenant_id),
            ("slowwave.scope_path", scope.scope_path),
            ("slowwave.promotion", "on"),
        ):
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        for parameter, value in (("asked_at", "timestamptz '2026-03-01T03:00Z'"), ("from_children", "2")):
            query = query.replace(parameter, value)
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query.replace("least_confidence", "0.0"))
        plan = cursor.fetchone()[0][0]["Plan"]
    engine.dispose()
    assert plan["Actual Rows"] == FACTS
    assert [node for node in nodes(plan) if node.get("Rows Removed by Join Filter", 0)] == []
    read = ("CTE Scan", "Seq Scan", "Index Scan", "Bitmap Heap Scan", "Materialize")
    assert [node for node in nodes(plan) if node["Node Type"] in read and node["Actual Loops"] > CHILDREN] == []
