"""Where a server listens, as URLs, and the databases in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from memory_core.errors import DatabaseUnavailable, InvalidInput

DEFAULT_PORT = 5432
SUPERUSER = "slowwave"
"""The superuser of an embedded server."""

MAXIMUM_NAME_BYTES = 63

_CREATE_DATABASE_LOCK = 0x510_57A7E


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A Postgres server behind a Unix socket.

    Args:
        socket_folder: absolute path of the folder that holds the socket; only its owner (and root) can enter it.
        port: the number in the socket's name; no TCP port is open.
        user: the server's superuser. No password is asked: the folder's rights are the authentication.
    """

    socket_folder: Path
    port: int
    user: str

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        """A SQLAlchemy URL of `database`, with the socket folder as `host` in the query string."""
        query = {"host": str(self.socket_folder)}
        if self.port != DEFAULT_PORT:
            query["port"] = str(self.port)
        return f"{driver}://{quote(self.user, safe='')}@/{quote(database, safe='')}?{urlencode(query, safe='/')}"

    def asyncpg_url(self, database: str) -> str:
        """The same for the asyncpg driver, which Prefect's server uses."""
        return self.url(database, driver="postgresql+asyncpg")

    def ensure_database(self, name: str) -> bool:
        """Create the database `name` where it is absent; any number of processes may ask at once.

        Returns:
            True if this call created it, False if it was there.

        Raises:
            InvalidInput: the name is empty, holds a NUL, or is longer than 63 bytes (Postgres would cut it).
            DatabaseUnavailable: the server does not answer.
        """
        import psycopg
        from psycopg import sql

        if not name or "\0" in name or len(name.encode()) > MAXIMUM_NAME_BYTES:
            raise InvalidInput(
                f"{name!r} is not a database name.", hint=f"Give 1 to {MAXIMUM_NAME_BYTES} bytes without a NUL."
            )
        try:
            with psycopg.connect(
                host=str(self.socket_folder),
                port=self.port,
                user=self.user,
                dbname="postgres",
                autocommit=True,
                connect_timeout=10,
            ) as connection:
                # CREATE DATABASE has no IF NOT EXISTS and refuses a transaction; the lock makes look and create one.
                connection.execute("SELECT pg_advisory_lock(%s)", (_CREATE_DATABASE_LOCK,))
                if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                    return False
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
                return True
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(
                f"The embedded Postgres in {self.socket_folder} does not answer: {error}",
                hint="Try again; if it stays so, look at the server's log (slowwave doctor names it).",
            ) from error
