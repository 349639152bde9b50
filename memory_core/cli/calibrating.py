"""The command that finds thresholds for the embedding model in use: calibrate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_core.cli import options, view_calibration
from memory_core.cli.output import ExitCode, print_json
from memory_core.cli.session import load_settings, scope_to_read, with_database
from memory_core.errors import InvalidInput

if TYPE_CHECKING:
    from memory_core.database.engine import Database


def calibrate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Labelled pairs: JSON Lines, or one JSON document; several count as one."),
    ],
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", "-t", metavar="T", help="Compare with this tenant's settings, not the process's."),
    ] = None,
    scope: options.Levels = None,
    min_precision: Annotated[
        float, typer.Option("--min-precision", min=0.0, max=1.0, help="Recommend no threshold below this precision.")
    ] = 0.5,
    home: options.Home = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Measure SHMR's thresholds for the embedding model in use on labelled pairs, and recommend settings.

    A pair is {"relation": …, "earlier": …, "later": …}; the relation is contradiction, duplicate or update where the
    two belong together, compatible or unrelated where not. A statement is a sentence, or an object with subject,
    predicate and object. What cannot be read is reported with its number (exit code 3). Nothing is changed.
    """
    from memory_core.shmr.labelled_pairs import read_pairs

    if scope and tenant is None:
        raise InvalidInput("--scope is given without --tenant.", hint="Say which tenant the scope belongs to.")
    read = [(path, *read_pairs(path)) for path in files]
    pairs = [pair for _, found, _ in read for pair in found]
    rejected = [
        {"file": str(path), "number": each.number, "reason": each.reason} for path, _, bad in read for each in bad
    ]
    own: dict[str, Any] = {}
    if tenant is not None:

        async def work(database: Database) -> dict[str, Any]:
            from memory_core.night.context import settings_of_scope

            return await settings_of_scope(database, await scope_to_read(database, tenant, scope))

        own = with_database(home, work, debug=debug)
    from memory_core.night.context import embedding_for
    from memory_core.shmr.calibration import calibrate as measured
    from memory_core.shmr.settings import ENVIRONMENT_ALIASES, ShmrSettings

    settings = load_settings(home, debug=debug)
    embedding = embedding_for(settings)
    current = settings.section("shmr", ShmrSettings, tenant=own, aliases=ENVIRONMENT_ALIASES)
    found = asyncio.run(measured(pairs, embedding, current, min_precision=min_precision))
    recommended = {each.setting: each.best.threshold for each in found if each.best is not None}
    document = {
        "files": [str(path) for path in files],
        "model": embedding.model,
        "pairs": len(pairs),
        "min_precision": min_precision,
        "rejected": rejected,
        "measures": {each.setting: each.document() for each in found},
        "recommended": recommended,
        "settings": "\n".join(["[shmr]", *(f"{name} = {value:g}" for name, value in recommended.items())]),
    }
    print_json(document) if as_json else view_calibration.calibration(document)
    return ExitCode.PARTLY_DONE if rejected else ExitCode.DONE


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        rich_help_panel="Keep going",
        epilog=options.examples(
            "slowwave calibrate pairs.jsonl",
            "slowwave calibrate pairs.jsonl slots.json --min-precision 0.8 --json",
        ),
    )(calibrate)
