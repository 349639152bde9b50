"""SHMR's speed: clustering beside a peer's and beside the bare matrix product, and a whole run by rules, step by step.

Clustering is compared in processor seconds. The run over made-up sentences is timed by the clock, import and embedding
apart, and its statements are counted. `python -m tests.benchmarks.cluster --help`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import advance, close_run
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.steps import SHMR_STEPS
from tests.benchmarks import clustering
from tests.benchmarks.statements import fill

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
EMBEDDING = "hash:384"
PEER_TIMEOUT = 1_800

Peer = tuple[str, Path]


def measure(
    candidates: int = 5_000,
    many: int = 50_000,
    statements: Sequence[int] = (2_310, 20_000),
    peer: Peer | None = None,
) -> dict[str, Any]:
    """All tables.

    Args:
        candidates: how many are clustered beside the peer.
        many: how many are clustered beside the bare product, by one and by two kinds of vector.
        statements: sizes of the tenants that are harmonised by rules.
        peer: the peer's interpreter and its benchmark; None to leave it out.

    Returns:
        `beside_peer` and `beside_product`, one document a shape, and `rules`, one a size.
    """
    return {
        "beside_peer": _beside_peer(candidates, peer),
        "beside_product": [
            clustering.measure(many, shape, slots=slots, shuffled=True)
            for slots in (False, True)
            for shape in clustering.SHAPES
        ],
        "rules": measure_rules(statements),
    }


def _beside_peer(candidates: int, peer: Peer | None) -> list[dict[str, Any]]:
    found = [clustering.measure(candidates, shape) for shape in clustering.SHAPES]
    if peer is not None:
        theirs = clustering.measure_peer(*peer, candidates, clustering.SHAPES, timeout=PEER_TIMEOUT)
        for own in found:
            own["peer"] = theirs[own["shape"]]
            own["times_less_than_peer"] = round(own["peer"]["cluster_cpu_s"] / own["cpu_seconds"], 1)
    return found


def measure_rules(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """A first run by rules over a tenant of each size, on a server of its own.

    Returns:
        for each size: seconds in all without the embedding, by step, and as a multiple of the first size's; statements
        by step; what was found; the process's peak memory in MB.
    """
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="slowwave benchmark ") as folder:
        server = EmbeddedPostgres(Path(folder))
        address = server.start()
        try:
            address.ensure_database("bench")
            url = address.url("bench")
            migrate(make_url(url))
            engine = create_engine(url, connect_args={"options": "-c search_path=slowwave,public"})
            settings = Settings.load(home=Path(folder), database_url=url, embedding=EMBEDDING)
            for size in sizes:
                found.append(asyncio.run(_run(engine, settings, size)))
                found[-1]["times_first_size"] = round(found[-1]["seconds"] / found[0]["seconds"], 2)
            engine.dispose()
        finally:
            server.stop()
    return found


async def _run(engine: Engine, settings: Settings, statements: int) -> dict[str, Any]:
    scope = TenantScope.root("tenant", f"bench-{statements}")
    with engine.begin() as connection:
        fill(connection, scope, statements)
    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1

    seconds: dict[str, float] = {}
    sql: dict[str, int] = {}
    counts: dict[str, int] = {}
    async with Database.open(settings) as database:
        event.listen(database.app.sync_engine, "before_cursor_execute", count)
        await database.refresh_statistics()
        run = await begin_run(database, scope, "harmonize", NIGHT, {"accept": True})
        context = RunContext(run, settings, embedding_provider(EMBEDDING), None)
        for position, step in enumerate(SHMR_STEPS):
            counted, started = 0, time.perf_counter()
            result = await advance(database, context, SHMR_STEPS, position)
            seconds[step.name], sql[step.name] = round(time.perf_counter() - started, 3), counted
            if result.outcome is not None:
                counts |= result.outcome.counts
        status = await close_run(database, context, {}, expected=[step.name for step in SHMR_STEPS])
    return {
        "statements": statements,
        "status": status,
        "seconds": round(sum(taken for name, taken in seconds.items() if name != "embed"), 3),
        "seconds_by_step": seconds,
        "sql_by_step": sql,
        "clusters": counts["clusters_found"],
        "superseded": counts["superseded"],
        "beliefs": counts["beliefs_generated"],
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=5_000, help="clustered beside the peer")
    parser.add_argument("--many", type=int, default=50_000, help="clustered beside the bare product")
    parser.add_argument("--statements", type=int, nargs="+", default=[2_310, 20_000], help="harmonised by rules")
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter of the environment that the peer is installed in")
    parser.add_argument("--peer-script", type=Path, metavar="FILE", help="the peer's own benchmark")
    asked = parser.parse_args()
    if (asked.peer is None) != (asked.peer_script is None):
        parser.error("--peer and --peer-script belong together")
    peer = None if asked.peer is None else (asked.peer, asked.peer_script)
    json.dump(measure(asked.candidates, asked.many, asked.statements, peer), sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    _main()
