"""The command that makes a memory known in a scope above its own: promote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_memories
from memory_core.cli.editing import MemoryId
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import find, with_database
from memory_core.cli.times import now

if TYPE_CHECKING:
    from memory_core.database.engine import Database


def promote(
    id: MemoryId,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SCOPE",
            help="The scope above, such as brand=x, or org=acme for the tenant itself; the next one where left out.",
        ),
    ] = None,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "user",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Promote a memory: a scope above keeps the same, with where it came from. The original stays as it is.

    What was promoted before gets one more source instead of a second memory, and twice from one source changes nothing.
    """
    asked_at = now()

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers.promotion import ancestor_named
        from memory_core.layers.promotion import promote as promote_memory
        from memory_core.night.context import embedding_for

        bound, located = await find(database, id, ["memory"], tenant, scope)
        above = None if to is None else ancestor_named(bound, to)
        provider = embedding_for(database.settings)
        return await promote_memory(database, bound, provider, located.id, to=above, who=who, at=asked_at)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.changed(document)
    return ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        rich_help_panel="Write",
        epilog=options.examples(
            "slowwave promote m-017 --tenant acme --scope brand=x/chat=7 --to brand=x",
            "slowwave promote 019502f1-6c00 --to org=acme",
        ),
    )(promote)
