"""Engines over one database: one a role, opened when first needed.

The app engine's connections always run as `slowwave_app`, so that row-level security holds whatever a query
says. The operator engine reads tenants, scopes and counts of runs. Migrations connect as the URL's own role.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sqlalchemy import URL, RowMapping, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory_core.database.ddl import APP_ROLE, OPERATOR_ROLE
from memory_core.database.failures import translated_errors
from memory_core.database.scoped import RunBinding, ScopedConnection, scoped_transaction
from memory_core.errors import InvalidSettings
from memory_core.scope import TenantScope
from memory_core.settings import Settings

DATABASE_NAME = "slowwave"
DRIVER = "postgresql+psycopg"


def database_url(settings: Settings) -> URL:
    """The URL of the configured database; starts the embedded server where none is configured.

    Raises:
        InvalidSettings: `SLOWWAVE_DATABASE_URL` is not a Postgres URL.
        SetupError: the embedded server cannot be started.
    """
    if settings.database_url:
        try:
            url = make_url(settings.database_url)
        except (ArgumentError, ValueError) as error:
            # ValueError: a port that is no number.
            raise InvalidSettings(
                "SLOWWAVE_DATABASE_URL is not a URL.", hint="Write it as postgresql://user:password@host:5432/database."
            ) from error
        if url.get_backend_name() not in ("postgresql", "postgres"):
            raise InvalidSettings(
                f"SLOWWAVE_DATABASE_URL names {url.get_backend_name()}, and Slowwave needs Postgres.",
                hint="Write it as postgresql://user:password@host:5432/database.",
            )
        return url.set(drivername=DRIVER)
    # Imported here: with a database of your own the embedded server's code is never loaded.
    from memory_core.database.embedded import EmbeddedPostgres

    address = EmbeddedPostgres(settings.home).start()
    address.ensure_database(DATABASE_NAME)
    return make_url(address.url(DATABASE_NAME))


class Database:
    """The memory core's database. Build it with `Database.open(settings)`, end it with `await close()`.

    Engines belong to one event loop.
    """

    def __init__(self, url: URL, settings: Settings) -> None:
        self.url = url
        self.settings = settings
        self._engines: dict[str, AsyncEngine] = {}

    @classmethod
    def open(cls, settings: Settings) -> Database:
        """A database by settings; connects when first used."""
        return cls(database_url(settings), settings)

    @property
    def app(self) -> AsyncEngine:
        """The engine whose every connection is the app role."""
        return self._engine(APP_ROLE)

    def scoped(
        self, scope: TenantScope, run: RunBinding | None = None, *, isolation: str = "READ COMMITTED"
    ) -> AbstractAsyncContextManager[ScopedConnection]:
        """A transaction bound to a scope; rolls back unless committed."""
        return scoped_transaction(self.app, scope, run, isolation=isolation)

    async def operator_rows(self, sql: str, **parameters: Any) -> list[RowMapping]:
        """Rows of a query as the operator: over `tenants`, `scopes` and the countable columns of `runs`."""
        with translated_errors():
            async with self._engine(OPERATOR_ROLE).connect() as connection:
                return list((await connection.execute(text(sql), parameters)).mappings().all())

    async def refresh_statistics(self) -> None:
        """Let the planner know of many new rows; without statistics a first night's cost may grow with their square."""
        with translated_errors():
            async with self.app.begin() as connection:
                await connection.execute(text("SELECT slowwave.refresh_statistics()"))

    @asynccontextmanager
    async def lock_connection(self) -> AsyncIterator[Any]:
        """One connection of its own in autocommit; its session's advisory locks end with it or with its process."""
        with translated_errors():
            async with self.app.connect() as connection:
                yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    async def close(self) -> None:
        """Close every connection."""
        for engine in self._engines.values():
            await engine.dispose()
        self._engines.clear()

    async def __aenter__(self) -> Database:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _engine(self, role: str) -> AsyncEngine:
        if role not in self._engines:
            options = " ".join(
                f"-c {name}={value}"
                for name, value in {
                    "role": role,
                    "search_path": "slowwave,public",
                    "timezone": "UTC",
                    # The journal keeps numbers as text, to the last bit.
                    "extra_float_digits": "1",
                    "statement_timeout": f"{self.settings.statement_timeout}s",
                    "lock_timeout": f"{self.settings.lock_timeout}s",
                }.items()
            )
            self._engines[role] = create_async_engine(
                self.url,
                pool_size=self.settings.pool_size,
                max_overflow=2,
                pool_pre_ping=False,
                connect_args={
                    "options": options,
                    "application_name": "slowwave",
                    # A prepared statement's plan knows no values: it takes an array of any length for one of ten ids,
                    # and then reads a whole scope for each of five hundred.
                    "prepare_threshold": None,
                },
            )
        return self._engines[role]
