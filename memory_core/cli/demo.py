"""The demo: six weeks of two tenants' memory, imported, slept through night by night, and asked about before and after.

It has a database of its own in the embedded Postgres, made anew each time, so that it never touches your memories and
can be repeated.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_core.cli.nights import call_flows
from memory_core.cli.output import say
from memory_core.cli.progress import Tell
from memory_core.cli.times import now
from memory_core.scope import TenantScope

if TYPE_CHECKING:
    from memory_core.database.engine import Database
    from memory_core.models.embedding import EmbeddingProvider
    from memory_core.settings import Settings

DATABASE = "slowwave_demo"
SAMPLE = Path(__file__).parents[1] / "interchange" / "sample"
FILES = ("assistant.jsonl", "support.jsonl")
HOUR_OF_NIGHT = 3
WEEK = 7


def run_demo(settings: Settings, *, tell: Tell, debug: bool = False) -> dict[str, Any]:
    """Import the sample, sleep through its nights in one flow run, and ask a few questions then and now.

    Args:
        settings: where the embedded Postgres is; another database is not touched.
        tell: called with the nights done.

    Returns:
        `tenants`, `memories`, `nights`, `seconds`, `database`, `runs` (the last night's documents) and `answers`.
    """
    started = time.perf_counter()
    url = fresh_database(settings)
    # The flow's tasks read their settings from the environment.
    os.environ["SLOWWAVE_DATABASE_URL"] = url
    settings = settings.model_copy(update={"database_url": url})
    tenants, memories, nights = asyncio.run(_import(settings, tell))
    say(f"{memories} memories of {len(tenants)} tenants; sleeping through {len(nights)} nights …")
    replayed = call_flows(
        {
            "command": "replay",
            "tenants": tenants,
            "nights": [night.isoformat() for night in nights],
            "requested_by": "demo",
            "progress": tell,
            "debug": debug,
        }
    )
    answers = asyncio.run(_ask(settings, tenants, nights))
    return {
        "tenants": tenants,
        "memories": memories,
        "nights": replayed["nights"],
        "runs": replayed["runs"],
        "answers": answers,
        "database": url,
        "seconds": round(time.perf_counter() - started, 1),
    }


def fresh_database(settings: Settings) -> str:
    """Make the demo's database anew in the embedded Postgres; returns its URL."""
    import psycopg
    from psycopg import sql
    from sqlalchemy import make_url

    from memory_core.database.embedded import EmbeddedPostgres
    from memory_core.database.migrate import migrate

    address = EmbeddedPostgres(settings.home).start()
    with psycopg.connect(address.url("postgres", driver="postgresql"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))
    address.ensure_database(DATABASE)
    url = address.url(DATABASE)
    migrate(make_url(url))
    return url


def nights_of(first: datetime, last: datetime) -> list[datetime]:
    """03:00 UTC after each day from `first` to `last`."""
    night = first.astimezone(UTC).replace(hour=HOUR_OF_NIGHT, minute=0, second=0, microsecond=0) + timedelta(days=1)
    nights = [night]
    while nights[-1] < last:
        nights.append(nights[-1] + timedelta(days=1))
    return nights


async def _import(settings: Settings, tell: Tell) -> tuple[list[str], int, list[datetime]]:
    from memory_core.database.engine import Database
    from memory_core.interchange.importing import import_file
    from memory_core.night.context import embedding_for

    asked_at = now()
    memories = 0
    async with Database.open(settings) as database:
        for name in FILES:
            tell(0, None, f"Importing {name}")
            report = await import_file(database, embedding_for(settings), SAMPLE / name, now=asked_at)
            memories += report.total().inserted
        scopes = [
            TenantScope.from_path(row["scope_path"])
            for row in await database.operator_rows("SELECT scope_path FROM scopes ORDER BY tenant_id, depth")
        ]
        spans = [await _span(database, scope) for scope in scopes]
    nights = nights_of(min(first for first, _ in spans), max(last for _, last in spans))
    return list(dict.fromkeys(scope.tenant_id for scope in scopes)), memories, nights


async def _span(database: Database, scope: TenantScope) -> tuple[datetime, datetime]:
    async with database.scoped(scope) as connection:
        row = await connection.row(
            "SELECT min(recorded_at) AS first, max(last_activity_at) AS last FROM memories "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
        )
    assert row is not None  # an aggregate without GROUP BY has one row
    return row["first"], row["last"]


async def _ask(settings: Settings, tenants: list[str], nights: list[datetime]) -> list[dict[str, Any]]:
    """The questions of the sample, at the end of each week and after the last night."""
    from memory_core.database.engine import Database
    from memory_core.night.context import embedding_for
    from memory_core.night.scopes import scopes_of_tenant

    questions = json.loads((SAMPLE / "questions.json").read_text(encoding="utf-8"))
    moments = [*nights[WEEK - 1 : -1 : WEEK], nights[-1]]
    async with Database.open(settings) as database:
        return [
            await _answer(
                database, (await scopes_of_tenant(database, tenant))[0], embedding_for(settings), asked, moments
            )
            for tenant in tenants
            for asked in questions.get(tenant, ())
        ]


async def _answer(
    database: Database,
    scope: TenantScope,
    embedding: EmbeddingProvider,
    asked: dict[str, str],
    moments: list[datetime],
) -> dict[str, Any]:
    """What is answered now, and the last answer of a week's end that was another one."""
    from memory_core.retrieval.search import recall

    answers = []
    for at in moments:
        found = await recall(database, scope, embedding, asked["question"], now=at, as_of=at, k=1, record=False)
        answers.append({**(found["results"][0] if found["results"] else {"content": ""}), "as_of": at.isoformat()})
    present = answers[-1]
    before = [answer for answer in answers if answer["content"] and answer["content"] != present["content"]]
    return {
        "tenant": scope.tenant_id,
        "question": asked["question"],
        "now": present,
        "before": before[-1] if before else None,
        "expected": asked["expect"],
        "as_expected": asked["expect"].casefold() in present["content"].casefold(),
    }
