"""Two years of nights over one tenant: what pruning keeps, what it takes, and whether a night stays as quick.

`python -m tests.benchmarks.prune --nights 730 --json`. The long run has prune's ration switched on; a shorter one
without it states how often the guards refuse a scope that fills with noise faster than they allow it to be emptied.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import make_url

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.night.consolidate import consolidate
from memory_core.runs.context import Step
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.sleep import cooccurrence, prune_orphans, strengthen
from tests.benchmarks.daily_life import FIRST_NIGHT, IMPORTANT, NOISE, PROTECTED, USEFUL, Life
from tests.builders import add_scope
from tests.nights import sleep

PHASES: tuple[Step, ...] = (strengthen.STEP, cooccurrence.STEP, prune_orphans.STEP)
BANDS = ((1, 2), (2, 3), (3, 4), (4, 10))
"""Importance as written: from, and below; 10 is in the last one."""

_RETIRED = """
SELECT m.id, extract(epoch FROM m.retired_at - m.recorded_at)::float8 / 86400 AS days,
       EXISTS (SELECT FROM memory_accesses a WHERE a.tenant_id = m.tenant_id AND a.memory_id = m.id
               AND a.at <= m.retired_at AND a.at > m.retired_at - interval '30 days') AS in_use
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.retired_at IS NOT NULL AND m.derived_key IS NULL
"""

_USED = "SELECT DISTINCT memory_id FROM memory_accesses WHERE tenant_id = :tenant_id AND scope_path = :scope_path"

_SECONDS = """
SELECT extract(epoch FROM s.finished_at - s.started_at)::float8 AS seconds
FROM run_steps s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
WHERE s.tenant_id = :tenant_id AND s.step = 'prune_orphans' AND s.status = 'done' ORDER BY r.as_of
"""


def measure(nights: int, without_ration: int, *, phases_only: bool = False, seed: int = 20260301) -> dict[str, Any]:
    """Live and sleep, on a server of its own.

    Args:
        nights: with the ration on; at least 2.
        without_ration: nights of the same life, begun anew, with it off; 0 to leave that out.
        phases_only: strengthen, co-occurrence and prune alone, rather than whole runs of kind `sleep`.
    """
    with tempfile.TemporaryDirectory(prefix="slowwave benchmark ") as folder:
        server = EmbeddedPostgres(Path(folder))
        address = server.start()
        try:
            address.ensure_database("bench")
            url = address.url("bench")
            migrate(make_url(url))
            settings = Settings.load(home=Path(folder), database_url=url, embedding="hash:64")
            return asyncio.run(_both(settings, nights, without_ration, phases_only, seed))
        finally:
            server.stop()


async def _both(settings: Settings, nights: int, without: int, phases_only: bool, seed: int) -> dict[str, Any]:
    async with Database.open(settings) as database:
        found: dict[str, Any] = {
            "seed": seed,
            "runs": "strengthen, cooccurrence, prune_orphans" if phases_only else "sleep, whole",
            "with_ration": await _two_years(database, nights, True, phases_only, seed),
        }
        if without:
            found["without_ration"] = await _two_years(database, without, False, phases_only, seed)
    return found


async def _two_years(database: Database, nights: int, ration: bool, phases_only: bool, seed: int) -> dict[str, Any]:
    scope = TenantScope.root("tenant", "with" if ration else "without")
    await add_scope(database, scope)
    life = Life(seed)
    seconds: list[float] = []
    memories: list[int] = []
    statuses: list[str] = []
    skipped: dict[str, int] = {}
    for number in range(nights):
        await life.live(database, scope, number)
        started = time.perf_counter()
        status, outcome = await _night(database, scope, number, ration, phases_only)
        seconds.append(time.perf_counter() - started)
        memories.append(len(life.written))
        statuses.append(status)
        skipped = outcome or skipped
    refused = [number for number, status in enumerate(statuses) if status == "refused"]
    return {
        "ration": ration,
        "nights": nights,
        "statuses": dict(Counter(statuses)),
        "refused_by_the_guards": len(refused),
        "first_refused_night": refused[0] if refused else None,
        **await _survival(database, scope, life),
        "left_alone_on_the_last_applied_night": skipped,
        **await _speed(database, scope, seconds, memories),
    }


async def _night(
    database: Database, scope: TenantScope, number: int, ration: bool, phases_only: bool
) -> tuple[str, dict[str, int]]:
    """The run's status, and what prune left alone, by reason."""
    as_of = FIRST_NIGHT + timedelta(days=number)
    asked = {"prune_orphans": {"ration": ration}}
    if phases_only:
        night = await sleep(database, scope, PHASES, at=as_of, settings=asked)
        last = night.results[-1].outcome
        status, skipped = night.status, dict(last.skipped) if last else {}
    else:
        (document,) = await consolidate(database, [scope], "sleep", as_of, parameters={"settings": asked})
        status = str(document["status"])
        skipped = document["steps"].get("prune_orphans", {}).get("skipped", {})
    if status not in ("applied", "refused"):
        raise RuntimeError(f"night {number} ended as {status}")
    return status, skipped


async def _survival(database: Database, scope: TenantScope, life: Life) -> dict[str, Any]:
    async with database.scoped(scope) as connection:
        rows = {row["id"]: row for row in await connection.rows(_RETIRED)}
        used = {row["memory_id"] for row in await connection.rows(_USED)}
    in_use = sum(row["in_use"] for row in rows.values())
    standing = {memory_id: item for memory_id, item in life.written.items() if not item.replaced}
    rest = {id: item for id, item in standing.items() if item.kind in (NOISE, USEFUL)}
    bare = [important for important, links in life.links.items() if all(link in rows for link in links)]
    return {
        "memories_written": len(life.written),
        "retired": len(rows),
        "protected": {
            kind: _kept([id for id, item in standing.items() if item.kind == kind], rows)
            for kind in (*PROTECTED, IMPORTANT)
        },
        "important_memories_without_a_link_left": len(bare),
        # Used at the time: read in the thirty days before the night that would have taken it.
        "used": {"ever_used": len(used), "retired_while_in_use": in_use, "survival": _share(len(used) - in_use, used)},
        "used_once_and_later_forgotten": len(used & rows.keys()),
        "reads": {"asked": life.reads, "of_a_memory_that_was_retired": life.missed},
        "the_rest_by_importance": {
            f"{low} to {high}": _kept([id for id, item in rest.items() if low <= item.importance < high], rows)
            for low, high in BANDS
        },
        "the_rest_by_kind": {
            kind: _kept([id for id, item in rest.items() if item.kind == kind], rows) for kind in (NOISE, USEFUL)
        },
    }


def _kept(ids: Sequence[UUID], retired: dict[UUID, Any]) -> dict[str, Any]:
    days = [retired[id]["days"] for id in ids if id in retired]
    return {
        "written": len(ids),
        "survived": len(ids) - len(days),
        "survival": _share(len(ids) - len(days), ids),
        **({"median_days_until_retired": round(statistics.median(days), 1)} if days else {}),
    }


def _share(part: int, of: Sequence[UUID] | set[UUID]) -> float | None:
    return round(part / len(of), 4) if of else None


async def _speed(database: Database, scope: TenantScope, seconds: list[float], memories: list[int]) -> dict[str, Any]:
    """Medians over the first and the last nights; at most thirty of each."""
    async with database.scoped(scope) as connection:
        prune = [row["seconds"] for row in await connection.rows(_SECONDS)]
    few = max(1, min(30, len(seconds) // 2))

    def both(values: Sequence[float], digits: int) -> dict[str, float]:
        return {
            "first_nights": round(statistics.median(values[:few]), digits),
            "last_nights": round(statistics.median(values[-few:]), digits),
        }

    found = {"memories": both(memories, 0), "seconds_a_night": both(seconds, 4), "of_which_prune": both(prune, 4)}
    growth = {name: round(each["last_nights"] / each["first_nights"], 2) for name, each in found.items()}
    return {**found, "times_grown": growth, "seconds_in_all": round(sum(seconds), 1)}


def main() -> None:
    """Measure by the command line's wishes, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=730)
    parser.add_argument("--nights-without-ration", type=int, default=120, help="0 leaves them out")
    parser.add_argument("--phases", action="store_true", help="strengthen, co-occurrence and prune alone")
    parser.add_argument("--seed", type=int, default=20260301)
    parser.add_argument("--json", action="store_true", help="print JSON (there is no other form)")
    given = parser.parse_args()
    if given.nights < 2:
        parser.error("--nights must be at least 2")
    found = measure(given.nights, given.nights_without_ration, phases_only=given.phases, seed=given.seed)
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
