"""Commands that change what is remembered: correct, pin, unpin, retract, restore, resolve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_memories
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import find, scope_to_write, with_database
from memory_core.cli.times import now
from memory_core.errors import InvalidInput

if TYPE_CHECKING:
    from memory_core.database.engine import Database

MemoryId = Annotated[
    str, typer.Argument(metavar="ID", help="The memory's id, its first 8 digits or more, or its external id.")
]


def correct(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The memory to correct.")] = None,
    content: Annotated[str | None, typer.Option("--content", help="What is true instead.")] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME=VALUE", help="Correct the profile; VALUE is JSON, or else text."),
    ] = None,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "user",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Correct a memory (--content), or fields of the SOUL profile (--field, applied by the next sleep).

    The old text is kept, superseded by the new one. What a person corrected is never overridden by a run.
    """
    asked_at = now()
    fields = dict(_field(text) for text in field or ())
    if (content is None) == (not fields):
        raise InvalidInput(
            "Say either --content or --field.", hint='slowwave correct ID --content "what is true instead"'
        )
    if content is not None and id is None:
        raise InvalidInput(
            "Which memory is to be corrected?", hint='slowwave correct ID --content "what is true instead"'
        )
    if fields and id is None and tenant is None:
        raise InvalidInput(
            "Whose profile is to be corrected?", hint="Name it with --tenant, and --scope where there is one."
        )

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing
        from memory_core.night.context import embedding_for

        if content is not None:
            bound, located = await find(database, str(id), ["memory"], tenant, scope)
            return await editing.correct(
                database, bound, embedding_for(database.settings), located.id, content=content, who=who, at=asked_at
            )
        if id is not None:
            bound, _ = await find(database, id, ["memory"], tenant, scope)
        else:
            bound = await scope_to_write(database, str(tenant), scope)
        return await editing.correct_profile(database, bound, fields, who=who, at=asked_at)

    return _print(with_database(home, work, debug=debug), as_json=as_json)


def pin(
    id: MemoryId,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Pin a memory: no run retires or supersedes it."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing

        bound, located = await find(database, id, ["memory"], tenant, scope)
        return await editing.pin(database, bound, located.id)

    return _print(with_database(home, work, debug=debug), as_json=as_json)


def unpin(
    id: MemoryId,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Unpin a memory."""

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing

        bound, located = await find(database, id, ["memory"], tenant, scope)
        return await editing.unpin(database, bound, located.id)

    return _print(with_database(home, work, debug=debug), as_json=as_json)


def retract(
    id: MemoryId,
    reason: Annotated[
        str,
        typer.Option("--reason", help="wrong (what it superseded comes back) or outdated.", metavar="wrong|outdated"),
    ],
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "user",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Retire a memory by hand. Beliefs that rest on it go stale; nothing is deleted."""
    asked_at = now()
    if reason not in ("wrong", "outdated"):
        raise InvalidInput(f"There is no reason {reason!r}.", hint="Say --reason wrong or --reason outdated.")

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing

        bound, located = await find(database, id, ["memory"], tenant, scope)
        return await editing.retract(database, bound, located.id, reason, who=who, at=asked_at)

    return _print(with_database(home, work, debug=debug), as_json=as_json)


def restore(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The retired memory.")] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="All that this run retired.")] = None,
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "user",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Bring a retired memory back, or all that one run retired; no later night retires it again by itself.

    What of a run's memories cannot be brought back is said with its reason, and the exit code is then 3.
    """
    asked_at = now()
    if (id is None) == (run is None):
        raise InvalidInput("Say either a memory's ID or --run ID.", hint="slowwave restore ID")

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing

        if run is not None:
            _, located = await find(database, run, ["run"], tenant, scope)
            return await editing.restore_run(database, located.scope, located.id, who=who, at=asked_at)
        bound, located = await find(database, str(id), ["memory"], tenant, scope)
        return await editing.restore(database, bound, located.id, who=who, at=asked_at)

    document = with_database(home, work, debug=debug)
    _print(document, as_json=as_json)
    return ExitCode.PARTLY_DONE if document.get("left") else ExitCode.DONE


def resolve(
    belief: Annotated[str, typer.Argument(metavar="BELIEF", help="The contested belief's id, or how it begins.")],
    winner: Annotated[str, typer.Option("--winner", metavar="ID", help="The memory that is right.")],
    tenant: options.AnyTenant = None,
    scope: options.Levels = None,
    who: options.Who = "user",
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Settle a contested belief: the memory that is right supersedes those that say otherwise."""
    asked_at = now()

    async def work(database: Database) -> dict[str, Any]:
        from memory_core.layers import editing
        from memory_core.retrieval.resolve import locate

        bound, located = await find(database, belief, ["belief"], tenant, scope)
        chosen = await locate(database, [bound], winner, ["memory"], ancestors=True)
        return await editing.resolve_belief(database, bound, located.id, chosen.id, who=who, at=asked_at)

    return _print(with_database(home, work, debug=debug), as_json=as_json)


def _print(document: dict[str, Any], *, as_json: bool) -> int:
    print_json(document) if as_json else view_memories.changed(document)
    return ExitCode.DONE


def _field(text: str) -> tuple[str, Any]:
    """A profile field from `name=value`; the value is JSON where it is JSON, else text."""
    name, equals, written = text.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"{text!r} is not a field.", hint="Write it as --field name=value.")
    try:
        return name.strip(), json.loads(written, parse_constant=_not_json)
    except ValueError:
        return name.strip(), written


def _not_json(word: str) -> Any:
    raise ValueError(word)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    panel = "Write"
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            'slowwave correct m-017 --tenant acme --content "Ann lives in Lisbon"',
            "slowwave correct --tenant acme --field home_city=Lisbon --field children=2",
        ),
    )(correct)
    app.command(rich_help_panel=panel, epilog=options.examples("slowwave pin m-017 --tenant acme"))(pin)
    app.command(rich_help_panel=panel, epilog=options.examples("slowwave unpin m-017 --tenant acme"))(unpin)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples(
            "slowwave retract m-017 --reason wrong --tenant acme", "slowwave retract 019502f1-6c00 --reason outdated"
        ),
    )(retract)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples("slowwave restore m-017 --tenant acme", "slowwave restore --run 4f1c2a9b"),
    )(restore)
    app.command(
        rich_help_panel=panel,
        epilog=options.examples("slowwave resolve 8b1d5f20 --winner m-017 --tenant acme"),
    )(resolve)
