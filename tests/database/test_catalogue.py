"""The database as migrated, the tables as declared and the registry say the same."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, text

from memory_core.database import ddl
from memory_core.database.engine import Database
from memory_core.database.registry import REGISTRY
from memory_core.database.tables import metadata

NOT_TENANT_TABLES = {"schema_version"}


def test_every_table_is_registered(database_url: str) -> None:
    """A table that the registry does not know is not journalled, exported or erased."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        found = set(connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'slowwave'")).scalars())
    engine.dispose()
    assert found - NOT_TENANT_TABLES == {item.name for item in REGISTRY}
    assert {table.name for table in metadata.sorted_tables} == {item.name for item in REGISTRY}


def test_the_migrations_make_the_declared_tables(database_url: str) -> None:
    """What is declared in Python is what the migrations built."""
    # The embedded superuser has the schema's name, which would make it the default schema, and alembic skip it.
    engine = create_engine(database_url, connect_args={"options": "-c search_path=public"})
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "include_name": lambda name, kind, _: kind != "schema" or name == "slowwave",
                "include_object": lambda item, name, kind, *_: not (kind == "table" and name in NOT_TENANT_TABLES),
                "compare_server_default": False,
            },
        )
        differences = compare_metadata(context, metadata)
    engine.dispose()
    assert differences == []


def test_every_journalled_table_has_its_triggers(database_url: str) -> None:
    """No writer can change a journalled row of a run without leaving its images."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        triggers = set(
            connection.execute(
                text(
                    "SELECT c.relname || ':' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'slowwave' AND NOT t.tgisinternal"
                )
            ).scalars()
        )
    engine.dispose()
    for item in REGISTRY:
        for trigger in ("journal_update", "journal_delete"):
            assert (f"{item.name}:{trigger}" in triggers) == item.journalled, (item.name, trigger)


def test_what_a_run_makes_can_be_taken_back() -> None:
    """A checksummed table is journalled, since undo has to restore it."""
    for item in REGISTRY:
        assert item.journalled or not item.checksummed, item.name


def test_the_triggers_keep_every_column_they_should(database_url: str) -> None:
    """The journal functions of the migrations are those the registry asks for today."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        bodies = {
            row.proname: row.prosrc
            for row in connection.execute(
                text(
                    "SELECT proname, prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
                    "WHERE nspname = 'slowwave'"
                )
            )
        }
    engine.dispose()
    for item in REGISTRY:
        if item.journalled:
            assert bodies[f"journal_{item.name}_update"].strip() in ddl.journal(item), item.name


def test_what_belongs_together_is_journalled() -> None:
    """A group of columns that undo restores whole names columns that the journal keeps, each once."""
    for item in REGISTRY:
        named = [column for group in item.together for column in group]
        assert set(named) <= set(item.journalled_columns()), item.name
        assert len(named) == len(set(named)), item.name


def test_keys_begin_with_the_tenant() -> None:
    """Every primary and foreign key carries tenant_id first, so that no row can point across tenants."""
    for item in REGISTRY:
        assert next(iter(item.table.primary_key)).name == "tenant_id", item.name
        for key in item.table.foreign_key_constraints:
            assert next(iter(key.columns)).name == "tenant_id", (item.name, key.name)


async def test_the_app_role_may_refresh_the_statistics_and_nothing_else_of_the_owner(database: Database) -> None:
    """After a large import the planner knows the tables; the app role owns none of them."""
    await database.refresh_statistics()
    engine = create_engine(database.url)
    with engine.connect() as connection:
        analyzed = connection.execute(
            text("SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'slowwave' AND last_analyze IS NOT NULL")
        ).scalars()
        assert {"memories", "memory_state", "memory_edges"} <= set(analyzed)
    engine.dispose()
