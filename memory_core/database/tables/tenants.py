"""Who is known: tenants and their scopes, with settings, budgets and when each last slept."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Table, Text, text

from memory_core.database.tables.metadata import document, identifier, metadata, moment, scope_path, tenant_id

tenants = Table(
    "tenants",
    metadata,
    tenant_id(),
    Column("root_kind", Text, nullable=False),
    document("settings"),
    document("budgets"),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    moment("created_at", default_now=True),
    PrimaryKeyConstraint("tenant_id"),
)

scopes = Table(
    "scopes",
    metadata,
    tenant_id(),
    scope_path(),
    Column("depth", Integer, nullable=False),
    document("settings"),
    moment("last_slept_at", nullable=True),
    identifier("last_run_id", nullable=True),
    Column("last_status", Text),
    Column("backlog", Integer, nullable=False, server_default="0"),
    moment("created_at", default_now=True),
    PrimaryKeyConstraint("tenant_id", "scope_path"),
    ForeignKeyConstraint(["tenant_id"], ["slowwave.tenants.tenant_id"], ondelete="CASCADE"),
)
