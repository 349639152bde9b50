"""The seven phases of sleep: against a peer on the same server, against bare statements, and as the tenant grows.

Ratios within one run on one machine say something where seconds do not. Short form:
`python -m tests.benchmarks.sleep --sizes 20000 --no-peer --json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text

from memory_core.database.embedded import EmbeddedPostgres, ServerAddress
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.benchmarks.bare_statements import bare_seconds
from tests.benchmarks.peer import measure_peer
from tests.benchmarks.synthetic_tenant import NEXT_NIGHT, NIGHT, a_day_later, fill, pending_connections

SIZES = (1_000, 5_000, 20_000, 100_000)
PEER_TIMEOUT = 3_600


@contextmanager
def server(folder: Path) -> Iterator[ServerAddress]:
    """An embedded Postgres of its own."""
    started = EmbeddedPostgres(folder)
    try:
        yield started.start()
    finally:
        started.stop()


def measure(sizes: Sequence[int], *, peer: tuple[str, Path] | None = None) -> dict[str, Any]:
    """Sleep once over a tenant of each size, and once more a day later.

    Args:
        sizes: memories of each tenant.
        peer: the peer's interpreter and its benchmark; None to leave it out.

    Returns:
        the machine, and one document a size.
    """
    with tempfile.TemporaryDirectory(prefix="slowwave benchmark ") as folder, server(Path(folder)) as address:
        address.ensure_database("bench")
        url = address.url("bench")
        migrate(make_url(url))
        engine = create_engine(url, connect_args={"options": "-c search_path=slowwave,public"})
        settings = Settings.load(home=Path(folder), database_url=url, embedding="hash:64")
        found = []
        for memories in sizes:
            one = asyncio.run(_measure_size(engine, settings, memories))
            if peer is not None:
                address.ensure_database("peer")
                one["peer"] = measure_peer(*peer, address.url("peer"), memories, timeout=PEER_TIMEOUT)
                one["times_faster_than_peer"] = round(one["peer"]["seconds"] / one["seconds"], 1)
            found.append(one)
        with engine.connect() as connection:
            version = connection.scalar(text("SHOW server_version"))
        engine.dispose()
    return {"machine": _machine(str(version)), "sizes": found}


async def _measure_size(engine: Engine, settings: Settings, memories: int) -> dict[str, Any]:
    scope = TenantScope.root("tenant", f"bench-{memories}")
    with engine.begin() as connection:
        fill(connection, scope, memories)
    _vacuum(engine)
    async with Database.open(settings) as database:
        first = await _night(database, engine, scope, NIGHT, pending_connections(memories))
        with engine.begin() as connection:
            changed = a_day_later(connection, scope, memories)
        second = await _night(database, engine, scope, NEXT_NIGHT, [])
    seconds = first["seconds"]
    bare = first["bare_seconds"]
    return {
        "memories": memories,
        **first,
        "microseconds_per_memory": round(1e6 * seconds / memories, 1),
        "microseconds_per_changed_row": round(1e6 * seconds / max(first["rows_changed"], 1), 1),
        "times_bare_statements": round(seconds / max(sum(bare.values()), 1e-9), 2),
        "a_day_later": {
            "changed_share": round(changed / memories, 4),
            "share_of_first_night": round(second["seconds"] / seconds, 3),
            **{name: second[name] for name in ("seconds", "by_phase", "statements", "rows_changed")},
        },
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


async def _night(
    database: Database, engine: Engine, scope: TenantScope, as_of: datetime, pending: list[dict[str, Any]]
) -> dict[str, Any]:
    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    event.listen(database.app.sync_engine, "before_cursor_execute", count)
    started = time.perf_counter()
    (document,) = await consolidate(
        database, [scope], "sleep", as_of, parameters={"accept": True, "pending_connections": pending}
    )
    whole = time.perf_counter() - started
    event.remove(database.app.sync_engine, "before_cursor_execute", count)
    assert document["status"] == "applied", document["error"]
    with engine.begin() as connection:
        by_phase = _seconds_by_phase(connection, document["run_id"])
        return {
            "seconds": round(sum(by_phase.values()), 4),
            "whole_run_seconds": round(whole, 4),
            "by_phase": by_phase,
            "statements": statements,
            **_rows(connection, document["run_id"]),
            "bare_seconds": bare_seconds(connection, scope, document["run_id"]),
        }


def _seconds_by_phase(connection: Connection, run_id: str) -> dict[str, float]:
    rows = connection.execute(
        text(
            "SELECT step, extract(epoch FROM finished_at - started_at)::float8 AS seconds FROM run_steps "
            "WHERE run_id = CAST(:run AS uuid) ORDER BY position"
        ),
        {"run": run_id},
    )
    return {row.step: round(row.seconds, 4) for row in rows}


def _rows(connection: Connection, run_id: str) -> dict[str, Any]:
    journalled = connection.execute(
        text("SELECT table_name, count(*) AS rows FROM run_changes WHERE run_id = CAST(:run AS uuid) GROUP BY 1"),
        {"run": run_id},
    )
    changed = {row.table_name: row.rows for row in journalled}
    created = {
        name: connection.scalar(
            text(f"SELECT count(*) FROM {name} WHERE created_by_run = CAST(:run AS uuid)"), {"run": run_id}
        )
        for name in ("memories", "memory_edges")
    }
    return {"updated": changed, "created": created, "rows_changed": sum(changed.values()) + sum(created.values())}


def _vacuum(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))


def _machine(postgres: str) -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "postgres": postgres,
    }


def main() -> None:
    """Measure by the command line's wishes, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="memories of each tenant, with commas")
    parser.add_argument("--peer", metavar="PYTHON", help="the interpreter of the environment that has the peer")
    parser.add_argument("--peer-script", type=Path, help="the peer's benchmark")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out")
    parser.add_argument("--json", action="store_true", help="print JSON (there is no other form)")
    given = parser.parse_args()
    if not given.no_peer and not (given.peer and given.peer_script):
        parser.error("say where the peer is (--peer PYTHON --peer-script FILE), or --no-peer")
    peer = None if given.no_peer else (given.peer, given.peer_script)
    json.dump(measure([int(size) for size in given.sizes.split(",")], peer=peer), sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
