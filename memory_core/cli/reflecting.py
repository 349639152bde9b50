"""The command that answers a question in sentences: reflect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_reflection
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import scope_to_read, with_database
from memory_core.cli.times import parse_time

if TYPE_CHECKING:
    from memory_core.database.engine import Database


def reflect(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")],
    tenant: options.Tenant,
    scope: options.Levels = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="Facts to answer from, at most.")] = 10,
    as_of: options.AsOf = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Answer a question in a few sentences, each citing the beliefs and memories it rests on.

    Says what is contested, from when the statements are, and what is missing. Without a model the sentences are the
    closest statements themselves; a model's answer is taken only where every claim cites what it was given.
    """
    at = None if as_of is None else parse_time(as_of)

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.night.questions import reflect as answer

        bound = await scope_to_read(database, tenant, scope)
        return await answer(database, bound, question, top_k=k, as_of=at)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_reflection.reflection(document)
    return ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        rich_help_panel="Read",
        epilog=options.examples(
            'slowwave reflect "where does the user live" --tenant acme',
            'slowwave reflect "what changed about the launch" --tenant acme --k 20 --json',
        ),
    )(reflect)
