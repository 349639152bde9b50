"""Alembic's entry: runs the migrations on the connection that `database/migrate.py` hands over."""

from __future__ import annotations

from alembic import context

from memory_core.database.tables import metadata
from memory_core.database.tables.metadata import SCHEMA

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    include_schemas=True,
    version_table="schema_version",
    version_table_schema=SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
