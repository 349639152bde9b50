"""How long a first night takes, step by step, beside the bare statements that would change as many rows.

A ratio within one run on one machine says something where seconds do not. `python -m tests.benchmarks.night --help`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event, make_url, text

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from memory_core.settings import Settings

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
SCOPE = TenantScope.root("tenant", "bench")

# Half the memories active in the last day, one prefix for fifty of them, two edges each, vectors of 64 numbers.
FILL = """
INSERT INTO tenants (tenant_id, root_kind) VALUES ('bench', 'tenant');
INSERT INTO scopes (tenant_id, scope_path, depth) VALUES ('bench', '{path}', 1);
CREATE TEMP TABLE made AS
  SELECT gen_random_uuid() AS id, n, timestamptz '2026-03-01 03:00Z' - interval '1 second'
         * CASE WHEN n % 2 = 0 THEN n * 86000.0 / {n} ELSE 86400.0 * (2 + n % 40) END AS at
  FROM generate_series(1, {n}) n;
INSERT INTO memories (tenant_id, id, scope_path, label, content, subject, predicate, object,
                      observed_at, recorded_at, last_activity_at, source, content_hash)
  SELECT 'bench', id, '{path}', 'GROUP' || n / 50 || 'X: item ' || n,
         'Item ' || n / 2 || ' is stored in hall ' || n % 97
         || CASE WHEN n % 12 = 0 THEN ' after an outage' ELSE '' END,
         'Item ' || n / 2, 'stored_in', 'hall ' || n % 97, at, at, at, 'source ' || n % 3, md5(n::text) FROM made;
INSERT INTO memory_state (tenant_id, memory_id, scope_path) SELECT 'bench', id, '{path}' FROM made;
INSERT INTO memory_embeddings (tenant_id, memory_id, scope_path, model, aspect, dimension, embedding)
  SELECT 'bench', id, '{path}', 'hash:64', aspect, 64,
         l2_normalize((SELECT array_agg(sin(n / 2 * 64 + d * (n / 2 % 13 + 1)))
                       FROM generate_series(1, 64) d)::real[]::vector)
  FROM made, unnest(ARRAY['content', 'slot']) AS aspect;
INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at)
  SELECT 'bench', gen_random_uuid(), '{path}', id, 'recall', at FROM made WHERE n % 2 = 0;
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at)
  SELECT 'bench', gen_random_uuid(), '{path}', a.id, b.id, 'KNOWS', a.at
  FROM made a JOIN made b ON b.n IN ((a.n * 7919) % {n} + 1, (a.n * 104729) % {n} + 1) AND b.n <> a.n
  ON CONFLICT DO NOTHING;
ANALYZE;
"""

BARE = {
    "update": (
        "UPDATE memory_state SET importance = importance + 0.1 "
        "WHERE memory_id IN (SELECT memory_id FROM memory_state LIMIT {rows})"
    ),
    "insert": (
        "INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at) "
        "SELECT tenant_id, gen_random_uuid(), scope_path, target_id, source_id, 'BARE ' || id, recorded_at "
        "FROM memory_edges LIMIT {rows}"
    ),
}


def measure(memories: int) -> dict[str, Any]:
    """A first night of one tenant on a server of its own.

    Args:
        memories: how many the tenant has.

    Returns:
        seconds in all and by step, rows changed, statements, and the ratio to the bare statements.
    """
    with tempfile.TemporaryDirectory(prefix="slowwave benchmark ") as folder:
        server = EmbeddedPostgres(Path(folder))
        address = server.start()
        try:
            address.ensure_database("bench")
            url = address.url("bench")
            migrate(make_url(url))
            return asyncio.run(_night(url, Path(folder), memories))
        finally:
            server.stop()


async def _night(url: str, home: Path, memories: int) -> dict[str, Any]:
    engine = create_engine(url, connect_args={"options": "-c search_path=slowwave,public"})
    with engine.begin() as connection:
        connection.connection.cursor().execute(FILL.format(n=memories, path=SCOPE.scope_path))
    settings = Settings.load(home=home, database_url=url, embedding="hash:64")
    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    async with Database.open(settings) as database:
        event.listen(database.app.sync_engine, "before_cursor_execute", count)
        started = time.perf_counter()
        document = (await consolidate(database, [SCOPE], "nightly", NIGHT, parameters={"accept": True}))[0]
        seconds = time.perf_counter() - started
        async with database.scoped(SCOPE) as connection:
            steps = await connection.rows(
                "SELECT step, extract(epoch FROM finished_at - started_at)::float8 AS seconds FROM run_steps "
                "WHERE tenant_id = :tenant_id AND starts_with(step, 'apply:') = false ORDER BY position"
            )
            updated = await connection.scalar(
                "SELECT count(*) FROM run_changes WHERE tenant_id = :tenant_id AND table_name = 'memory_state'"
            )
            linked = await connection.scalar(
                "SELECT count(*) FROM memory_edges WHERE tenant_id = :tenant_id AND created_by_run IS NOT NULL"
            )
    bare = {}
    for name, rows in (("update", updated), ("insert", linked)):
        with engine.begin() as connection:
            begun = time.perf_counter()
            connection.execute(text(BARE[name].format(rows=rows)))
            bare[name] = time.perf_counter() - begun
    engine.dispose()
    by_step = {row["step"]: round(row["seconds"], 4) for row in steps}
    phases = sum(seconds for step, seconds in by_step.items() if step in document["sleep"]["phases"])
    return {
        "memories": memories,
        "status": document["status"],
        "seconds": round(seconds, 3),
        "by_step": by_step,
        "statements": statements,
        "state_rows_changed": updated,
        "edges_made": linked,
        "bare_seconds": {name: round(value, 4) for name, value in bare.items()},
        "seven_phases_to_bare_statements": round(phases / max(sum(bare.values()), 1e-9), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=5_000)
    json.dump(measure(parser.parse_args().memories), sys.stdout, indent=2)
    sys.stdout.write("\n")
