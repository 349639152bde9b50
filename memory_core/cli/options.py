"""The options that commands share, and how examples are written under a command's help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Tenant = Annotated[str, typer.Option("--tenant", "-t", metavar="T", help="The tenant: acme, or org=acme.")]
AnyTenant = Annotated[
    str | None,
    typer.Option("--tenant", "-t", metavar="T", help="Look in this tenant only; every tenant where it is left out."),
]
Levels = Annotated[
    str | None,
    typer.Option("--scope", "-s", metavar="KIND=ID/…", help="The scope below the tenant, such as brand=x/chat=7."),
]
Home = Annotated[
    Path | None,
    typer.Option("--home", metavar="FOLDER", help="The data folder, instead of SLOWWAVE_HOME.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="ISO 8601 with a zone, or a date with one; now where left out."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Rows at most.", show_default=False)]
Who = Annotated[str, typer.Option("--who", metavar="NAME", help="Who asks for it; kept with the change.")]


def examples(*lines: str) -> str:
    """The epilog of a command: what to type."""
    # Rich keeps line breaks only between paragraphs.
    return "\n\n".join(("Examples:", *(f"  {line}" for line in lines)))
