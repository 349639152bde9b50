"""What a model wrote about memories: beside them, never among them."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, PrimaryKeyConstraint, Table, Text

from memory_core.database.tables.metadata import (
    document,
    identifier,
    metadata,
    moment,
    references,
    scope_path,
    tenant_id,
)

memory_summaries = Table(
    "memory_summaries",
    metadata,
    tenant_id(),
    identifier("memory_id"),
    scope_path(),
    Column("content", Text, nullable=False),
    document("cited", default=None),
    Column("model", Text, nullable=False),
    Column("call_key", Text, nullable=False, comment="The kept call that it came from."),
    moment("recorded_at"),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "memory_id"),
    references("memory_id", "memories"),
    CheckConstraint("btrim(content) <> ''", name="content_not_blank"),
    CheckConstraint("jsonb_array_length(cited) > 0", name="cited_not_empty"),
)
