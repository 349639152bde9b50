"""Brings a database to this version's schema, and says clearly what stands in the way."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from memory_core.database.ddl import APP_ROLE, OPERATOR_ROLE, OWNER_ROLE
from memory_core.database.failures import translated_errors
from memory_core.database.tables.metadata import SCHEMA
from memory_core.errors import MissingRight, PgvectorMissing, PostgresTooOld

OLDEST_POSTGRES = 16
OLDEST_PGVECTOR = (0, 8)
ROLES = (OWNER_ROLE, APP_ROLE, OPERATOR_ROLE)

_MIGRATION_LOCK = 0x510A7E  # any constant; two set-ups at once take turns

# Roles belong to the cluster; another database's set-up may create the same one at this moment.
_CREATE_ROLE = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
    CREATE ROLE {role} NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""

_GRANT_ROLE = """
DO $$ BEGIN
  IF NOT pg_has_role(current_user, '{role}', 'SET') THEN
    GRANT {role} TO CURRENT_USER WITH SET TRUE, INHERIT TRUE;
  END IF;
END $$
"""


def migrate(url: URL) -> str:
    """Create or upgrade the schema; does nothing where it is current. Returns the revision.

    Raises:
        PostgresTooOld: below Postgres 16.
        PgvectorMissing: pgvector is absent or below 0.8.
        MissingRight: the connecting role may not create roles, the extension or the schema.
        DatabaseUnavailable: no connection.
    """
    engine = create_engine(url, poolclass=NullPool)
    with translated_errors(), engine.connect() as connection:
        check_server(connection)
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})
        try:
            config = _config(connection)
            head = ScriptDirectory.from_config(config).get_current_head() or ""
            if current_revision(connection) != head:
                _prepare(connection)
                connection.execute(text(f"SET ROLE {OWNER_ROLE}"))
                connection.execute(text(f"SET search_path = {SCHEMA}, public"))
                connection.commit()
                command.upgrade(config, "head")
                connection.commit()
                connection.execute(text("RESET ROLE"))
            return head
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _MIGRATION_LOCK})
            connection.commit()


def current_revision(connection: Connection) -> str | None:
    """The schema's revision; None where Slowwave was never set up there."""
    if connection.execute(text("SELECT to_regclass(:name)"), {"name": f"{SCHEMA}.schema_version"}).scalar() is None:
        return None
    context = MigrationContext.configure(
        connection, opts={"version_table": "schema_version", "version_table_schema": SCHEMA}
    )
    return context.get_current_revision()


def check_server(connection: Connection) -> None:
    """Raise where the server cannot carry Slowwave.

    Raises:
        PostgresTooOld: below Postgres 16.
        PgvectorMissing: the extension is not available, or older than 0.8.
    """
    number = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if number // 10_000 < OLDEST_POSTGRES:
        raise PostgresTooOld(
            f"The server is Postgres {number // 10_000}, and Slowwave needs {OLDEST_POSTGRES} or newer.",
            hint="Upgrade it, or unset SLOWWAVE_DATABASE_URL to use the embedded Postgres.",
            found=number,
        )
    row = connection.execute(
        text(
            "SELECT a.default_version, e.extversion FROM pg_available_extensions a "
            "LEFT JOIN pg_extension e ON e.extname = a.name WHERE a.name = 'vector'"
        )
    ).one_or_none()
    if row is None:
        raise PgvectorMissing(
            "The server has no pgvector extension.",
            hint="Install pgvector 0.8 or newer on the server (package postgresql-NN-pgvector), "
            "or unset SLOWWAVE_DATABASE_URL.",
        )
    version = row.extversion or row.default_version
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        raise PgvectorMissing(
            f"The server's pgvector is {version}, and Slowwave needs 0.8 or newer.",
            hint="Install a newer package, then run ALTER EXTENSION vector UPDATE.",
            found=version,
        )


def _prepare(connection: Connection) -> None:
    """The extension, the three roles and the schema: what needs more rights than a table does."""
    try:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        for role in ROLES:
            connection.execute(text(_CREATE_ROLE.format(role=role)))
            connection.execute(text(_GRANT_ROLE.format(role=role)))
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {OWNER_ROLE}"))
        connection.commit()
    except DBAPIError as error:
        connection.rollback()
        if getattr(error.orig, "sqlstate", None) == "42501":
            raise MissingRight(
                f"The database role may not prepare the database: {str(error.orig).strip()}.",
                hint="Run `slowwave setup` once with a role that may CREATE ROLE and create the schema and the "
                f"extension vector, and then GRANT {', '.join(ROLES)} to the role of SLOWWAVE_DATABASE_URL.",
            ) from error
        raise


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
