"""Commands that keep things going: setup, doctor, status, down."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import typer

from memory_core.cli import options, view_keeping
from memory_core.cli.nights import call_flows
from memory_core.cli.output import ExitCode, print_json, say
from memory_core.cli.session import ensure_schema, load_settings

if TYPE_CHECKING:
    from memory_core.settings import Settings


def setup(home: options.Home = None, as_json: options.Json = False, debug: options.Debug = False) -> int:
    """Prepare everything: the database with its schema, and Prefect's. Quick where nothing is to do."""
    started = time.perf_counter()
    settings = load_settings(home, debug=debug)
    revision = ensure_schema(settings, again=True)
    prefect = call_flows({"command": "prepare", "debug": debug})
    document = {
        "home": str(settings.home),
        "database": shown_url(settings),
        "schema": revision,
        "prefect": prefect,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if as_json:
        print_json(document)
    else:
        print(f"Ready in {document['seconds']:.1f} s: schema {revision}, data in {settings.home}.")
    return ExitCode.DONE


def doctor(home: options.Home = None, as_json: options.Json = False, debug: options.Debug = False) -> int:
    """Check what is configured, what works, what is stuck, and say what to do about it."""
    from memory_core.cli.doctor import examine

    findings = asyncio.run(examine(lambda: load_settings(home, debug=debug)))
    problems = [finding for finding in findings if finding.state == "problem"]
    document = {"healthy": not problems, "checks": [finding.to_dict() for finding in findings]}
    print_json(document) if as_json else view_keeping.findings(document)
    return ExitCode.FAILED if problems else ExitCode.DONE


def status(
    tenant: options.AnyTenant = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show what runs, and for each scope when it last slept and how much is waiting. Starts nothing.

    With --tenant each scope also has its checksum: one number over everything that a run may change, which undoing a
    run restores, and which the same night from the same state gives again.
    """
    settings = load_settings(home, debug=debug)
    document: dict[str, Any] = {"home": str(settings.home), "database": shown_url(settings)}
    running = True
    if not settings.database_url:
        document["embedded"] = embedded_status(settings)
        running = document["embedded"]["running"]
    if running:
        document["scopes"] = asyncio.run(_scopes(settings, tenant))
    else:
        document["scopes"] = None
        document["reason"] = "The embedded Postgres is down; any command that needs it starts it."
    print_json(document) if as_json else view_keeping.status(document)
    return ExitCode.DONE


def down(home: options.Home = None, as_json: options.Json = False, debug: options.Debug = False) -> int:
    """Stop the embedded Postgres. Nothing is lost; the next command that needs it starts it again."""
    from memory_core.database.embedded import EmbeddedPostgres

    settings = load_settings(home, debug=debug)
    stopped = EmbeddedPostgres(settings.home).stop()
    reason = "" if stopped else "it was not running"
    if as_json:
        print_json({"stopped": stopped, "reason": reason, "home": str(settings.home)})
    else:
        print("The embedded Postgres is down." if stopped else f"Nothing to stop in {settings.home}: {reason}.")
    if settings.database_url:
        say("note: a database of its own is configured here; that server is left running")
    return ExitCode.DONE


def embedded_status(settings: Settings) -> dict[str, Any]:
    """The embedded server of the home, as a JSON-able document."""
    from memory_core.database.embedded import EmbeddedPostgres

    found = EmbeddedPostgres(settings.home).status()
    return {
        "running": found.running,
        "pid": found.pid,
        "version": found.version,
        "data_folder": str(found.data_folder),
        "socket_folder": None if found.socket_folder is None else str(found.socket_folder),
        "log_file": None if found.log_file is None else str(found.log_file),
        "size_bytes": found.size_bytes,
        "started_at": None if found.started_at is None else found.started_at.isoformat(),
    }


def shown_url(settings: Settings) -> str:
    """The configured database without its password; `embedded` where none is configured."""
    if not settings.database_url:
        return "embedded"
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(settings.database_url).render_as_string(hide_password=True)
    except ArgumentError:
        return "not a URL"


async def _scopes(settings: Settings, tenant: str | None) -> list[dict[str, Any]]:
    from memory_core.database.engine import Database
    from memory_core.night.scopes import scopes_of_tenant
    from memory_core.retrieval.overview import scope_states
    from memory_core.runs.checksum import checksum
    from memory_core.scope import TenantScope

    ensure_schema(settings)
    async with Database.open(settings) as database:
        states = await scope_states(database)
        if tenant is None:
            return states
        wanted = TenantScope.parse(tenant, root_kind=settings.root_kind).tenant_id
        checksums = {}
        for scope in await scopes_of_tenant(database, wanted):
            async with database.scoped(scope) as connection:
                checksums[str(scope)] = await checksum(connection)
    return [{**state, "checksum": checksums[state["scope"]]} for state in states if state["scope"] in checksums]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(rich_help_panel="Start", epilog=options.examples("slowwave setup", "slowwave setup --home ~/memory"))(
        setup
    )
    panel = "Keep going"
    app.command(rich_help_panel=panel, epilog=options.examples("slowwave doctor", "slowwave doctor --json"))(doctor)
    app.command(rich_help_panel=panel, epilog=options.examples("slowwave status", "slowwave status --json"))(status)
    app.command(rich_help_panel=panel, epilog=options.examples("slowwave down", "slowwave down --home ~/memory"))(down)
