"""Commands that consolidate: sleep, harmonize, nightly; and the demo."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_runs
from memory_core.cli.output import exit_code_of, print_json
from memory_core.cli.session import known_scopes, load_settings, scope_to_read, with_database
from memory_core.cli.times import now, parse_time
from memory_core.errors import DependencyMissing

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from memory_core.database.engine import Database

FLOWS = "slowwave.flows"

DryRun = Annotated[bool, typer.Option("--dry-run", help="Do it, show what it would change, and take it all back.")]
Accept = Annotated[bool, typer.Option("--accept", help="Go on where a guard would refuse: you looked at it.")]
Reconsider = Annotated[bool, typer.Option("--reconsider", help="Do again, too, what a person undid.")]
Flow = Annotated[
    bool,
    typer.Option("--flow", help="Run it as a Prefect flow, as it does by itself where PREFECT_API_URL is set."),
]
Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        max=86_400,
        show_default=False,
        help="Wait so long for a scope that another run holds, instead of SLOWWAVE_SCOPE_WAIT.",
    ),
]
AllDetails = "All scopes of the tenant unless one is named; a busy or refused scope is reported and the others go on."


def sleep(
    tenant: options.Tenant,
    scope: options.Levels = None,
    as_of: options.AsOf = None,
    dry_run: DryRun = False,
    accept: Accept = False,
    reconsider: Reconsider = False,
    wait: Wait = None,
    flow: Flow = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Sleep: strengthen, link, flag, retire, summarise, and apply the user's corrections."""
    asked = _asked("sleep", tenant, scope, as_of, dry_run, accept, reconsider)
    return _night(asked, wait=wait, flow=flow, home=home, as_json=as_json, debug=debug)


def harmonize(
    tenant: options.Tenant,
    scope: options.Levels = None,
    as_of: options.AsOf = None,
    dry_run: DryRun = False,
    accept: Accept = False,
    reconsider: Reconsider = False,
    wait: Wait = None,
    flow: Flow = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Harmonize: reconcile duplicates, changes and contradictions into beliefs that carry their evidence."""
    asked = _asked("harmonize", tenant, scope, as_of, dry_run, accept, reconsider)
    return _night(asked, wait=wait, flow=flow, home=home, as_json=as_json, debug=debug)


def nightly(
    tenant: options.Tenant,
    scope: options.Levels = None,
    as_of: options.AsOf = None,
    dry_run: DryRun = False,
    accept: Accept = False,
    reconsider: Reconsider = False,
    wait: Wait = None,
    flow: Flow = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """A whole night: sleep, then harmonize, then the morning report."""
    asked = _asked("nightly", tenant, scope, as_of, dry_run, accept, reconsider)
    return _night(asked, wait=wait, flow=flow, home=home, as_json=as_json, debug=debug)


def demo(
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """The whole thing on the bundled sample: six weeks of two tenants slept through, and the morning report."""
    from memory_core.cli.demo import show_demo

    return show_demo(load_settings(home, debug=debug), call_flows, as_json=as_json)


def call_flows(request: Mapping[str, Any]) -> Any:
    """Ask the Prefect side, found by its entry point, because the core does not import it.

    Raises:
        DependencyMissing: it is not installed.
    """
    import asyncio
    from importlib.metadata import entry_points

    found = [point for point in entry_points(group=FLOWS) if point.name == "runner"]
    if not found:
        raise DependencyMissing(
            "The Prefect side of Slowwave is not installed.",
            hint="Install the whole project: the packages `flows` and `tasks` belong to it.",
        )
    answer = found[0].load()(dict(request))
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def _asked(
    kind: str, tenant: str, scope: str | None, as_of: str | None, dry_run: bool, accept: bool, reconsider: bool
) -> dict[str, Any]:
    parameters = {name: True for name, given in (("accept", accept), ("reconsider", reconsider)) if given}
    at: datetime = now() if as_of is None else parse_time(as_of)
    return {
        "command": kind,
        "tenant": tenant,
        "scope": scope,
        "as_of": at,
        "dry_run": dry_run,
        "parameters": parameters,
    }


def _night(
    asked: dict[str, Any], *, wait: float | None, flow: bool, home: Path | None, as_json: bool, debug: bool
) -> int:
    if wait is not None:
        # Where a flow and its tasks look for it too.
        os.environ["SLOWWAVE_SCOPE_WAIT"] = str(wait)

    async def work(database: Database) -> list[dict[str, Any]]:
        tenant, levels = asked["tenant"], asked["scope"]
        scopes = [await scope_to_read(database, tenant, levels)] if levels else await known_scopes(database, tenant)
        if flow or os.environ.get("PREFECT_API_URL"):
            asked["scopes"] = [str(scope) for scope in scopes]
            return []
        from memory_core.night.consolidate import consolidate

        return await consolidate(
            database, scopes, asked["command"], asked["as_of"], parameters=asked["parameters"], dry_run=asked["dry_run"]
        )

    documents = with_database(home, work, debug=debug)
    if "scopes" in asked:
        # With the database closed: the flow opens its own connections, in its own event loop.
        documents = call_flows({**asked, "as_of": asked["as_of"].isoformat(), "debug": debug})
    if as_json:
        print_json(documents[0] if len(documents) == 1 else {"runs": documents})
    else:
        view_runs.nights(documents)
    return exit_code_of([document["status"] for document in documents])


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(rich_help_panel="Start", epilog=options.examples("slowwave demo", "slowwave demo --json"))(demo)
    panel = "Sleep"
    for command in (nightly, sleep, harmonize):
        name = command.__name__
        app.command(
            rich_help_panel=panel,
            help=f"{command.__doc__}\n\n{AllDetails}",
            epilog=options.examples(
                f"slowwave {name} --tenant acme --dry-run",
                f"slowwave {name} --tenant acme --as-of 2026-03-01T03:00:00Z --json",
                f"slowwave {name} --tenant acme --scope brand=x/chat=7 --accept",
            ),
        )(command)
