"""The least that the database could do: bare statements over as many rows, in tables with the same keys."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

from memory_core.scope import TenantScope

FILL = {"memory_state": 50, "memory_edges": 100}
"""Fill factors of the real tables, which `LIKE` does not copy."""


def bare_seconds(connection: Connection, scope: TenantScope, run_id: str) -> dict[str, float]:
    """Seconds of a bare UPDATE of as many state rows and a bare INSERT of as many edges as the run wrote.

    Both go to ordinary tables with the columns, primary keys, indexes and foreign keys of the real ones, but without
    journal and policies. A row that the run updated in two phases is updated twice here.
    """
    given = {"tenant": scope.tenant_id, "run": run_id}
    for table in ("memory_state", "memory_edges"):
        connection.execute(
            text(f"CREATE TABLE bare_{table} (LIKE {table} INCLUDING ALL) WITH (fillfactor = {FILL[table]})")
        )
        for name, definition in connection.execute(
            text(
                "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
                f"WHERE conrelid = CAST('{table}' AS regclass) AND contype = 'f'"
            )
        ).all():
            connection.execute(text(f"ALTER TABLE bare_{table} ADD CONSTRAINT bare_{name} {definition}"))
    connection.execute(
        text("INSERT INTO bare_memory_state SELECT * FROM memory_state WHERE tenant_id = :tenant"), given
    )
    connection.execute(text("ANALYZE bare_memory_state"))
    updates = (
        connection.execute(
            text(
                "SELECT count(*) FROM run_changes WHERE run_id = CAST(:run AS uuid) AND table_name = 'memory_state' "
                "GROUP BY step"
            ),
            given,
        )
        .scalars()
        .all()
    )
    began = time.perf_counter()
    for rows in updates:
        connection.execute(
            text(
                "UPDATE bare_memory_state SET importance = least(10, importance + 0.1) "
                "WHERE memory_id IN (SELECT memory_id FROM bare_memory_state LIMIT :rows)"
            ),
            {"rows": rows},
        )
    updated = time.perf_counter() - began
    connection.execute(
        text(
            "CREATE TEMP TABLE made_edges ON COMMIT DROP AS SELECT * FROM memory_edges "
            "WHERE tenant_id = :tenant AND created_by_run = CAST(:run AS uuid)"
        ),
        given,
    )
    began = time.perf_counter()
    connection.execute(text("INSERT INTO bare_memory_edges SELECT * FROM made_edges"))
    # Foreign keys are checked at the end of the statement, so they are in the figure.
    inserted = time.perf_counter() - began
    connection.execute(text("DROP TABLE bare_memory_state, bare_memory_edges"))
    return {"update": round(updated, 4), "insert": round(inserted, 4)}
