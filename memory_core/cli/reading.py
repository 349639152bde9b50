"""Commands that read: memories, recall, beliefs, why, profile, log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_memories, view_why
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import find, scope_to_read, scope_to_write, scopes_to_list, with_database
from memory_core.cli.times import now, parse_time
from memory_core.errors import InvalidInput
from memory_core.retrieval.statuses import BELIEF_STATUSES, LAYERS, MEMORY_STATUSES

if TYPE_CHECKING:
    from memory_core.database.engine import Database

ROWS_ON_A_TERMINAL = 50


def memories(
    tenant: options.Tenant,
    scope: options.Levels = None,
    status: Annotated[str, typer.Option("--status", help="|".join(MEMORY_STATUSES))] = "current",
    layer: Annotated[str | None, typer.Option("--layer", help="|".join(LAYERS))] = None,
    label_prefix: Annotated[
        str | None, typer.Option("--label-prefix", help="Only labels that start so, case-sensitive.")
    ] = None,
    limit: options.Limit = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Go on after this memory: `next` of the page before.")
    ] = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List what the tenant's scope remembers, newest first.

    A terminal shows 50 unless --limit says otherwise; --json prints all of them.
    """
    asked_at = now()

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.retrieval.listing import list_memories
        from memory_core.retrieval.resolve import locate

        bound = await scope_to_read(database, tenant, scope)
        last = None if after is None else (await locate(database, [bound], after, ["memory"], ancestors=True)).id
        async with database.scoped(bound) as connection:
            return await list_memories(
                connection,
                now=asked_at,
                status=status,
                layer=layer,
                label_prefix=label_prefix,
                limit=limit if limit is not None or as_json else ROWS_ON_A_TERMINAL,
                after=last,
            )

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.memories(document, status)
    return ExitCode.DONE


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question in plain words.")],
    tenant: options.Tenant,
    scope: options.Levels = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="Results at most.")] = 10,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME", help="Answer as at this time; records nothing.")
    ] = None,
    no_record: Annotated[
        bool, typer.Option("--no-record", help="Do not count the results as used (use is what sleep strengthens).")
    ] = False,
    harmonic: Annotated[
        bool,
        typer.Option("--harmonic", help="Let a belief stand for the memories it rests on; they are shown under it."),
    ] = False,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Find what is known about a question: current memories and held or contested beliefs, best first."""
    asked_at = now()
    at = None if as_of is None else parse_time(as_of)

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.night.context import embedding_for
        from memory_core.retrieval.search import recall as search

        bound = await scope_to_read(database, tenant, scope)
        embedding = embedding_for(database.settings)
        return await search(
            database,
            bound,
            embedding,
            query,
            now=asked_at,
            k=k,
            as_of=at,
            record=not no_record,
            harmonic=harmonic,
        )

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.results(document)
    return ExitCode.DONE


def beliefs(
    tenant: options.Tenant,
    scope: options.Levels = None,
    status: Annotated[
        str, typer.Option("--status", help=f"{'|'.join(BELIEF_STATUSES)}; believed is held or contested.")
    ] = "believed",
    limit: options.Limit = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List what is believed, each with the memories that support or contradict it."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.retrieval.listing import list_beliefs

        bound = await scope_to_read(database, tenant, scope)
        async with database.scoped(bound) as connection:
            return await list_beliefs(connection, status=status, limit=limit)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.beliefs(document)
    return ExitCode.DONE


def why(
    id: Annotated[str, typer.Argument(metavar="ID", help="A memory's or belief's id, its start, or an external id.")],
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Explain a memory or a belief: its evidence, its versions, what it overrides, and the run that decided it."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.beliefs.lineage import why as explain

        bound, located = await find(database, id, ["memory", "belief"], tenant, scope)
        async with database.scoped(bound) as connection:
            return await explain(connection, located.id)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_why.explanation(document)
    return ExitCode.DONE


def profile(
    tenant: options.Tenant,
    scope: options.Levels = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema",
            metavar="NAME=TYPE",
            help="Give the scope this schema first, one option a field; TYPE is str, int, float, bool, date, list or "
            "dict.",
        ),
    ] = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show the SOUL profile: each field's value, where it came from, and what it was before.

    With a schema, the next sleep takes only corrections of its fields, each of its type.
    """
    types = dict(_type(text) for text in schema or ())

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers.profile import read_profile

        bound = await (scope_to_write if types else scope_to_read)(database, tenant, scope)
        if types:
            from memory_core.sleep.soul_schemas import set_soul_schema

            await set_soul_schema(database, bound, types)
        async with database.scoped(bound) as connection:
            return await read_profile(connection)

    document = with_database(home, work, debug=debug)
    print_json(document) if as_json else view_memories.profile(document)
    return ExitCode.DONE


def _type(text: str) -> tuple[str, str]:
    name, equals, written = text.partition("=")
    if not equals or not name.strip() or not written.strip():
        raise InvalidInput(f"{text!r} is not a field with its type.", hint="Write it as --schema age=int.")
    return name.strip(), written


def log(
    tenant: options.Tenant,
    scope: options.Levels = None,
    limit: options.Limit = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show the resonance log: what each pass of harmonizing found, decided and cost; all scopes unless one is named."""

    async def work(database: Database) -> list[dict[str, Any]]:
        from memory_core.shmr.resonance_log import read_resonance_log

        rows: list[dict[str, Any]] = []
        for bound in await scopes_to_list(database, tenant, scope):
            async with database.scoped(bound) as connection:
                rows += await read_resonance_log(connection, limit=limit)
        rows.sort(key=lambda row: (row["created_at"], row["id"]), reverse=True)
        return rows[:limit]

    rows = with_database(home, work, debug=debug)
    print_json({"log": rows}) if as_json else view_memories.log(rows)
    return ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    panel = "Read"
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            "slowwave memories --tenant acme",
            "slowwave memories --tenant acme --status superseded --json",
            'slowwave memories --tenant acme --label-prefix "PERSON:" --limit 20',
        ),
    )(memories)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            'slowwave recall "where does the user live" --tenant acme',
            'slowwave recall "who is on call" --tenant acme --k 3 --as-of 2026-02-01T00:00:00Z --json',
            'slowwave recall "what does the user like" --tenant acme --harmonic',
        ),
    )(recall)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            "slowwave beliefs --tenant acme", "slowwave beliefs --tenant acme --status contested --json"
        ),
    )(beliefs)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples("slowwave why 019502f1-6c00", "slowwave why m-017 --tenant acme --json"),
    )(why)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            "slowwave profile --tenant acme", "slowwave profile --tenant acme --schema age=int --schema city=str"
        ),
    )(profile)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples("slowwave log --tenant acme", "slowwave log --tenant acme --limit 5 --json"),
    )(log)
