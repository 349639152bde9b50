"""Commands over runs: list them, show one, its diff, and undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_runs
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import find, scopes_to_list, with_database
from memory_core.cli.times import now

if TYPE_CHECKING:
    from memory_core.database.engine import Database

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or its first 8 digits or more.")]

ROWS_ON_A_TERMINAL = 30


def runs(
    tenant: options.Tenant,
    scope: options.Levels = None,
    limit: options.Limit = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List the runs of a tenant, newest first; all scopes unless one is named. Previews and undos are runs too."""
    most = limit if limit is not None or as_json else ROWS_ON_A_TERMINAL

    async def work(database: Database) -> list[dict[str, Any]]:
        from memory_core.retrieval.history import list_runs

        rows: list[dict[str, Any]] = []
        for bound in await scopes_to_list(database, tenant, scope):
            async with database.scoped(bound) as connection:
                rows += await list_runs(connection, limit=most)
        rows.sort(key=lambda row: (row["started_at"], row["run_id"]), reverse=True)
        return rows[:most]

    rows = with_database(home, work, debug=debug)
    print_json({"runs": rows}) if as_json else view_runs.runs(rows)
    return ExitCode.DONE


def show(
    id: RunId,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show one run: how it went, each step with its counts and reasons, and its report."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.retrieval.history import show_run

        _, located = await find(database, id, ["run"], tenant, scope)
        async with database.scoped(located.scope) as connection:
            return await show_run(connection, located.id)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_runs.run(document)
    return ExitCode.DONE


def diff(
    id: RunId,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show what a run changed, row by row; of a dry run, what it would have changed."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.retrieval.history import diff_of_run

        _, located = await find(database, id, ["run"], tenant, scope)
        async with database.scoped(located.scope) as connection:
            return await diff_of_run(connection, located.id)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_runs.diff(document)
    return ExitCode.DONE


def undo(
    id: RunId,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "person",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Take a run back. What was changed since is left and listed; what is undone is not done again by itself."""
    asked_at = now()

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.night.consolidate import undo as take_back

        _, located = await find(database, id, ["run"], tenant, scope)
        result = await take_back(database, located.scope, located.id, at=asked_at, requested_by=who)
        return result.to_dict()

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_runs.undone(document)
    return ExitCode.PARTLY_DONE if document["refused"] else ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    panel = "Runs"
    app.command(
        rich_help_panel=panel,
        epilog=options.examples("slowwave runs --tenant acme", "slowwave runs --tenant acme --limit 5 --json"),
    )(runs)
    one = typer.Typer(
        help="Show one run, what it changed, or take it back.",
        no_args_is_help=True,
        epilog=options.examples(
            "slowwave run show 4f1c2a9b", "slowwave run diff 4f1c2a9b", "slowwave run undo 4f1c2a9b"
        ),
    )
    one.command(epilog=options.examples("slowwave run show 4f1c2a9b", "slowwave run show 4f1c2a9b --json"))(show)
    one.command(epilog=options.examples("slowwave run diff 4f1c2a9b", "slowwave run diff 4f1c2a9b --json"))(diff)
    one.command(
        epilog=options.examples("slowwave run undo 4f1c2a9b", "slowwave run undo 4f1c2a9b --tenant acme --json")
    )(undo)
    app.add_typer(one, name="run", rich_help_panel=panel)
