"""Commands that add memories: import and remember."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_memories
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.progress import progress_bar
from memory_core.cli.session import scope_to_write, with_database
from memory_core.cli.times import now, parse_time
from memory_core.errors import InvalidInput
from memory_core.retrieval.statuses import LAYERS

if TYPE_CHECKING:
    from memory_core.database.engine import Database


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to read; - for stdin.")],
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", "-t", metavar="T", help="The tenant of lines that name none themselves."),
    ] = None,
    scope: options.Levels = None,
    format: Annotated[str, typer.Option("--format", "-f", help="jsonl|chat")] = "jsonl",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and count everything, write nothing.")] = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Import memories, one JSON object a line. The same file again changes nothing; changed text makes a new version.

    Bad lines are reported with number and reason and go to a rejects file; the good ones are kept (exit code 3).
    """
    asked_at = now()
    if scope and not tenant:
        raise InvalidInput("--scope is given without --tenant.", hint="Say which tenant the scope belongs to.")
    # A pipe is fine too: a shell's <(…) is one.
    if file != "-" and (Path(file).is_dir() or not Path(file).exists()):
        what = "is a folder" if Path(file).is_dir() else "does not exist"
        raise InvalidInput(f"The file {file} {what}.", hint="Name a file of JSON lines, or - for stdin.")

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.interchange.importing import import_file
        from memory_core.night.context import embedding_for

        bound = None if tenant is None else await scope_to_write(database, tenant, scope)
        with progress_bar("Importing") as tell:
            report = await import_file(
                database,
                embedding_for(database.settings),
                file,
                format=format,
                scope=bound,
                dry_run=dry_run,
                progress=lambda at: tell(at.bytes_read, at.bytes_total, f"{at.stage}, {at.done} of {at.lines} lines"),
                now=asked_at,
            )
        return report.to_dict()

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.imported(document)
    return ExitCode.DONE if document["status"] == "done" else ExitCode.PARTLY_DONE


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    tenant: options.Tenant,
    scope: options.Levels = None,
    layer: Annotated[str, typer.Option("--layer", help="|".join(LAYERS))] = "semantic",
    label: Annotated[str | None, typer.Option("--label", help='Such as "PERSON: Ann".')] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="With predicate and object: a fact.")] = None,
    predicate: Annotated[str | None, typer.Option("--predicate")] = None,
    object: Annotated[str | None, typer.Option("--object")] = None,
    importance: Annotated[float, typer.Option("--importance", min=1, max=10, help="1 to 10.")] = 5.0,
    confidence: Annotated[float, typer.Option("--confidence", min=0, max=1, help="0 to 1.")] = 0.7,
    observed_at: Annotated[
        str | None, typer.Option("--observed-at", metavar="TIME", help="When it was true or said; now where left out.")
    ] = None,
    external_id: Annotated[
        str | None, typer.Option("--external-id", metavar="NAME", help="Your own name for it, unique in the scope.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Who or what says so.")] = None,
    pinned: Annotated[bool, typer.Option("--pin", help="Never retire it.")] = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Remember one thing."""
    asked_at = now()
    fields: dict[str, Any] = {
        "content": text,
        "layer": layer,
        "label": label,
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "importance": importance,
        "confidence": confidence,
        "observed_at": None if observed_at is None else parse_time(observed_at),
        "external_id": external_id,
        "source": source,
        "pinned": pinned,
    }
    given = {name: value for name, value in fields.items() if value is not None}

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers.editing import remember as write
        from memory_core.layers.records import NewMemory
        from memory_core.night.context import embedding_for

        bound = await scope_to_write(database, tenant, scope)
        return await write(database, bound, embedding_for(database.settings), NewMemory.read(given), now=asked_at)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.changed(document)
    return ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    panel = "Write"
    app.command(
        "import",
        rich_help_panel=panel,
        epilog=options.examples(
            "slowwave import memories.jsonl --tenant acme",
            "slowwave import talk.jsonl --tenant acme --scope chat=7 --format chat",
            "zcat old.jsonl.gz | slowwave import - --tenant acme --dry-run --json",
        ),
    )(import_)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            'slowwave remember "Ann prefers tea" --tenant acme --label "PERSON: Ann"',
            'slowwave remember "Ann lives in Porto" -t acme --subject Ann --predicate lives_in --object Porto --json',
        ),
    )(remember)
