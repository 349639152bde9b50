"""What every command that touches the database does first: settings, a prepared database, the scope that is meant."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from memory_core.cli.output import say
from memory_core.errors import InvalidInput, InvalidScope, NotFound
from memory_core.scope import ScopeLevel, TenantScope

if TYPE_CHECKING:
    from memory_core.database.engine import Database
    from memory_core.retrieval.resolve import Kind, Located
    from memory_core.settings import Settings

T = TypeVar("T")

PREPARED = "schema_prepared"
"""A file beside the embedded server's data that names the newest migration applied there; gone when the data is."""


def load_settings(home: Path | None, *, debug: bool = False) -> Settings:
    """The process's settings; what the command line says is passed on to processes started from here."""
    from memory_core.settings import Settings

    if home is not None:
        os.environ["SLOWWAVE_HOME"] = str(home.expanduser().absolute())
    if debug:
        os.environ["SLOWWAVE_DEBUG"] = "true"
    return Settings.load()


def with_database(home: Path | None, work: Callable[[Database], Awaitable[T]], *, debug: bool = False) -> T:
    """Run `work` over the configured database, which is started and prepared where it is the embedded one."""
    settings = load_settings(home, debug=debug)
    ensure_schema(settings)

    async def run() -> T:
        from memory_core.database.engine import Database

        async with Database.open(settings) as database:
            return await work(database)

    return asyncio.run(run())


def ensure_schema(settings: Settings, *, again: bool = False) -> str:
    """Prepare the embedded database where this version has not yet; returns the newest migration's name.

    A database of the person's own is never changed here, only by `slowwave setup`.

    Args:
        again: migrate whatever the stamp says.
    """
    newest = newest_migration()
    if settings.database_url and not again:
        return newest
    stamp = settings.home / "postgres" / PREPARED
    if not settings.database_url and not again and _read(stamp) == newest:
        return newest
    from memory_core.database.engine import database_url
    from memory_core.database.migrate import migrate

    if not settings.database_url and not again:
        say("Preparing the embedded Postgres (once) …")
    migrate(database_url(settings))
    if not settings.database_url:
        stamp.write_text(f"{newest}\n", encoding="utf-8")
    return newest


def newest_migration() -> str:
    """The file name of the newest migration, without loading alembic."""
    folder = Path(__file__).parents[1] / "database" / "migrations" / "versions"
    return max(path.stem for path in folder.glob("[0-9]*.py"))


def _read(stamp: Path) -> str:
    try:
        return stamp.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


async def known_scopes(database: Database, tenant: str | None) -> list[TenantScope]:
    """Every known scope of a tenant, or of every tenant; ancestors first.

    Raises:
        NotFound: there is no such tenant.
    """
    if tenant is None:
        rows = await database.operator_rows("SELECT scope_path FROM scopes ORDER BY tenant_id, depth, scope_path")
        return [TenantScope.from_path(row["scope_path"]) for row in rows]
    from memory_core.night.scopes import scopes_of_tenant

    root = TenantScope.parse(tenant).levels[0]
    scopes = await scopes_of_tenant(database, root.id)
    if "=" in tenant:
        scopes = [scope for scope in scopes if scope.levels[0] == root]
        if not scopes:
            raise NotFound(f"There is no tenant {tenant} here.", hint="`slowwave status` lists those that exist.")
    return scopes


async def scope_to_read(database: Database, tenant: str, levels: str | None) -> TenantScope:
    """The scope that is meant, of a tenant that exists; its root's kind is taken from what is stored.

    Raises:
        NotFound: there is no such tenant.
        InvalidScope: it is not written as a scope, or the tenant has roots of several kinds.
    """
    scopes = await known_scopes(database, tenant)
    kinds = sorted({scope.levels[0].kind for scope in scopes})
    root = TenantScope.parse(tenant).levels[0]
    if "=" not in tenant:
        if len(kinds) > 1:
            written = " or ".join(f"--tenant {quote(f'{kind}={root.id}')}" for kind in kinds)
            raise InvalidScope(f"{tenant!r} names {len(kinds)} tenants.", hint=f"Write {written}.")
        root = ScopeLevel(kinds[0], root.id)
    scope = TenantScope.parse(str(root), levels)
    if scope not in scopes and not any(known.sees(scope) for known in scopes):
        say(f"note: {scope} holds nothing of its own; you see what it sees of the scopes above it")
    return scope


async def scope_to_write(database: Database, tenant: str, levels: str | None) -> TenantScope:
    """The scope that is meant, whether it exists or not; a known tenant keeps its root's kind."""
    from memory_core.night.scopes import scopes_of_tenant

    root = TenantScope.parse(tenant, root_kind=database.settings.root_kind).levels[0]
    if "=" not in tenant:
        try:
            kinds = {scope.levels[0].kind for scope in await scopes_of_tenant(database, root.id)}
        except NotFound:
            kinds = set()
        if len(kinds) == 1:
            root = ScopeLevel(kinds.pop(), root.id)
    return TenantScope.parse(str(root), levels)


async def scopes_to_list(database: Database, tenant: str, levels: str | None) -> list[TenantScope]:
    """The one scope that is named, or every known scope of the tenant."""
    return [await scope_to_read(database, tenant, levels)] if levels else await known_scopes(database, tenant)


async def find(
    database: Database, text: str, kinds: Sequence[Kind], tenant: str | None, levels: str | None
) -> tuple[TenantScope, Located]:
    """What an id means, and the scope to bind for working on it.

    With a scope given it is looked for along that scope's path; else among the rows of each scope of the tenant, or of
    every tenant.

    Raises:
        InvalidInput: several rows are meant, or a scope is given without its tenant.
        NotFound: none is.
    """
    from memory_core.retrieval.resolve import locate

    if levels and not tenant:
        raise InvalidInput("--scope is given without --tenant.", hint="Say which tenant the scope belongs to.")
    if tenant and levels:
        scope = await scope_to_read(database, tenant, levels)
        return scope, await locate(database, [scope], text, kinds, ancestors=True)
    located = await locate(database, await known_scopes(database, tenant), text, kinds)
    return located.scope, located
