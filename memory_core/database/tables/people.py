"""What a person set: corrections, the SOUL profile and its schema, skills, tools and triggers."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from memory_core.database.tables.metadata import (
    document,
    finite_times,
    identifier,
    metadata,
    moment,
    one_of,
    references,
    scope_path,
    tenant_id,
)

corrections = Table(
    "corrections",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    identifier("memory_id", nullable=True),
    Column("who", Text, nullable=False),
    moment("at"),
    document("what", default=None),
    Column("outcome", Text),
    document("reasons", nullable=True, default=None),
    identifier("consumed_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("memory_id", "memories"),
    CheckConstraint("jsonb_typeof(what) = 'object'", name="what_object"),
    one_of("outcome", "applied", "partly_applied", "rejected"),
    finite_times("at"),
    Index("ix_corrections_new", "tenant_id", "scope_path", "at", postgresql_where=text("consumed_by_run IS NULL")),
)

soul_profiles = Table(
    "soul_profiles",
    metadata,
    tenant_id(),
    scope_path(),
    Column("field", Text, nullable=False),
    document("value", default=None),
    Column("type", Text, nullable=False),
    document("previous", nullable=True, default=None),
    Column("source", Text, nullable=False),
    moment("at"),
    identifier("correction_id", nullable=True),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "scope_path", "field"),
)

soul_schemas = Table(
    "soul_schemas",
    metadata,
    tenant_id(),
    scope_path(),
    Column("field", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("tenant_id", "scope_path", "field"),
    one_of("type", "str", "int", "float", "bool", "date", "list", "dict"),
)

skills = Table(
    "skills",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    identifier("memory_id", nullable=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    document("steps", default="'[]'::jsonb"),
    Column("status", Text, nullable=False, server_default="draft"),
    Column("active", Boolean, nullable=False, server_default=text("false")),
    moment("recorded_at"),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("memory_id", "memories"),
    one_of("status", "draft", "approved", "rejected"),
    Index("uq_skills_name", "tenant_id", "scope_path", "name", unique=True),
)

tools = Table(
    "tools",
    metadata,
    tenant_id(),
    Column("tool_id", Text, nullable=False),
    scope_path(),
    Column("description", Text, nullable=False, server_default=""),
    document("schema"),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    moment("recorded_at"),
    PrimaryKeyConstraint("tenant_id", "scope_path", "tool_id"),
)

triggers = Table(
    "triggers",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    identifier("memory_id", nullable=True),
    Column("condition", Text, nullable=False, server_default=""),
    moment("due_at", nullable=True),
    Column("recurrence", Text),
    Column("state", Text, nullable=False, server_default="pending"),
    moment("recorded_at"),
    moment("resolved_at", nullable=True),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("memory_id", "memories"),
    one_of("state", "pending", "resolved", "cancelled"),
    Index("ix_triggers_due", "tenant_id", "scope_path", "due_at", postgresql_where=text("state = 'pending'")),
)
