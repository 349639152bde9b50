"""The checks of `slowwave doctor` that concern the database."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING

from memory_core.cli.findings import Finding, not_checked, problem
from memory_core.cli.keeping import shown_url
from memory_core.cli.session import newest_migration
from memory_core.cli.times import now
from memory_core.errors import SlowwaveError
from memory_core.scope import TenantScope

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, RowMapping

    from memory_core.database.engine import Database
    from memory_core.settings import Settings

ALLOWED_CLOCK_DIFFERENCE = timedelta(seconds=30)
LONG_WITHOUT_SLEEP = timedelta(days=2)
SHOWN = 3


async def examine_database(settings: Settings) -> list[Finding]:
    """The server, its schema and rights, the runs and the scopes."""
    from memory_core.database.engine import Database, database_url

    try:
        url = await asyncio.to_thread(database_url, settings)
        prepared = await asyncio.to_thread(_server, url, settings)
    except SlowwaveError as error:
        return [problem("server", error), *not_checked("schema, roles, clock, runs and scopes", "server")]
    if prepared[-1].check != "roles" or prepared[-1].state == "problem":
        return [*prepared, *not_checked("runs and scopes", prepared[-1].check)]
    try:
        async with Database(url, settings) as database:
            return [*prepared, await _isolation(database), await _runs(database), *await _scopes(database)]
    except SlowwaveError as error:
        return [*prepared, problem("runs and scopes", error)]


def _server(url: URL, settings: Settings) -> list[Finding]:
    """Version, pgvector, roles, schema and clock, as the connecting role sees them."""
    from sqlalchemy import NullPool, create_engine, text

    from memory_core.database.failures import translated_errors
    from memory_core.database.migrate import check_server, current_revision

    where = "the embedded server" if not settings.database_url else shown_url(settings)
    with translated_errors(), create_engine(url, poolclass=NullPool).connect() as connection:
        version = connection.execute(text("SHOW server_version")).scalar_one().split()[0]
        vector = connection.execute(
            text(
                "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'"
            )
        ).scalar()
        findings = [Finding("server", "ok", f"{where} answers: Postgres {version}, pgvector {vector or 'absent'}")]
        try:
            check_server(connection)
        except SlowwaveError as error:
            return [problem("server", error)]
        clock = _clock(connection)
        newest = newest_migration()
        revision = current_revision(connection)
        if revision is None:
            if not settings.database_url:
                found = "not there yet; the first command that needs it makes it"
                return [*findings, clock, Finding("schema", "note", found)]
            return [*findings, clock, Finding("schema", "problem", f"{where} has none", "Run `slowwave setup`.")]
        if not newest.startswith(revision):
            found = f"the schema is at {revision}, this version needs {newest}"
            return [*findings, clock, Finding("schema", "problem", found, "Run `slowwave setup`.")]
        return [*findings, clock, Finding("schema", "ok", f"at {revision}, the newest"), _roles(connection)]


def _clock(connection: Connection) -> Finding:
    from sqlalchemy import text

    before = now()
    there: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    here = before + (now() - before) / 2
    difference = abs(there - here)
    if difference > ALLOWED_CLOCK_DIFFERENCE:
        found = f"this machine says {here:%Y-%m-%d %H:%M:%S} UTC, the database {there:%Y-%m-%d %H:%M:%S} UTC"
        return Finding("clock", "problem", found, "Set the clocks, best by NTP: new memories are stamped by them.")
    return Finding("clock", "ok", f"{here:%Y-%m-%d %H:%M:%S} UTC here and in the database")


def _roles(connection: Connection) -> Finding:
    from sqlalchemy import text

    from memory_core.database.migrate import ROLES

    rows = connection.execute(
        text(
            "SELECT rolname, rolbypassrls OR rolsuper AS above, pg_has_role(current_user, oid, 'SET') AS may "
            "FROM pg_roles WHERE rolname = ANY(:roles)"
        ),
        {"roles": list(ROLES)},
    ).all()
    missing = sorted(set(ROLES) - {row.rolname for row in rows})
    if missing:
        return Finding("roles", "problem", f"the roles {', '.join(missing)} are missing", "Run `slowwave setup`.")
    refused = sorted(row.rolname for row in rows if not row.may)
    if refused:
        grant = f"GRANT {', '.join(refused)} TO the role of SLOWWAVE_DATABASE_URL WITH SET TRUE."
        return Finding("roles", "problem", f"the connecting role may not become {', '.join(refused)}", grant)
    above = sorted(row.rolname for row in rows if row.above)
    if above:
        found = f"{', '.join(above)} stand above row-level security"
        return Finding("roles", "problem", found, "ALTER ROLE … NOSUPERUSER NOBYPASSRLS.")
    return Finding("roles", "ok", f"{', '.join(ROLES)}: all there, none above row-level security")


async def _isolation(database: Database) -> Finding:
    """A tenant that nobody has must see nothing: row-level security, tried out."""
    async with database.scoped(TenantScope.root("doctor", "no such tenant")) as connection:
        seen = await connection.scalar("SELECT count(*) FROM memories")
    if seen:
        do = "Stop using it and run `slowwave setup`: its policies are missing."
        return Finding("isolation", "problem", f"a tenant that does not exist sees {seen} memories", do)
    return Finding("isolation", "ok", "a tenant that does not exist sees nothing")


async def _runs(database: Database) -> Finding:
    """Runs that say `running` although nobody holds their scope: their process died."""
    from memory_core.runs.locks import held_scopes

    rows = await database.operator_rows(
        "SELECT id, scope_path, kind, started_at FROM runs WHERE status = 'running' ORDER BY started_at"
    )
    if not rows:
        return Finding("runs", "ok", "none is unfinished")
    scopes = list({row["scope_path"]: TenantScope.from_path(row["scope_path"]) for row in rows}.values())
    async with held_scopes(database, scopes) as free:
        left = [row for row in rows if TenantScope.from_path(row["scope_path"]) in free]
    if not left:
        return Finding("runs", "ok", f"{len(rows)} going on")
    shown = "; ".join(map(_unfinished, left[:SHOWN]))
    return Finding(
        "runs",
        "problem",
        f"{len(left)} without a living process: {shown}",
        "Start the same run again and it goes on; another run closes it as interrupted, and it can be undone.",
    )


def _unfinished(row: RowMapping) -> str:
    scope = TenantScope.from_path(row["scope_path"])
    return f"{row['kind']} {row['id']} of {scope} since {row['started_at']:%Y-%m-%d %H:%M}"


async def _scopes(database: Database) -> list[Finding]:
    from memory_core.retrieval.overview import scope_states

    states = await scope_states(database)
    if not states:
        return [Finding("scopes", "note", "nothing is stored yet", "Import memories: slowwave import FILE --tenant T")]
    waiting = sum(state["backlog"] for state in states)
    tenants = len({state["tenant"] for state in states})
    findings = [
        Finding("scopes", "ok", f"{len(states)} in {tenants} tenants; {waiting} memories wait to be harmonized")
    ]
    never = [state for state in states if state["backlog"] and state["last_slept_at"] is None]
    if never:
        names = ", ".join(state["scope"] for state in never[:SHOWN])
        do = f"Run `slowwave nightly --tenant {quote(never[0]['tenant'])}`."
        findings.append(Finding("sleep", "note", f"{len(never)} scopes never slept and have work waiting: {names}", do))
    long_ago = now() - LONG_WITHOUT_SLEEP
    late = [
        state
        for state in states
        if state["backlog"] and state["last_slept_at"] and datetime.fromisoformat(state["last_slept_at"]) < long_ago
    ]
    if late:
        names = ", ".join(state["scope"] for state in late[:SHOWN])
        do = f"Run `slowwave nightly --tenant {quote(late[0]['tenant'])}`, or have it run every night."
        findings.append(
            Finding("sleep", "note", f"{len(late)} scopes with work waiting slept over two days ago: {names}", do)
        )
    bad = [state for state in states if state["last_status"] in ("failed", "partial", "refused", "interrupted")]
    if bad:
        shown = "; ".join(f"{state['scope']}: {state['last_status']}" for state in bad[:SHOWN])
        do = f"See why: slowwave run show {bad[0]['last_run_id']}"
        findings.append(Finding("last runs", "problem", f"{len(bad)} scopes did not end well: {shown}", do))
    return findings
