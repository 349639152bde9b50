"""What was done: runs, their steps, the changes they made, and the model calls they paid for."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    Numeric,
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

RUN_KINDS = ("sleep", "harmonize", "nightly", "undo")
RUN_STATES = ("running", "applied", "partial", "failed", "refused", "previewed", "undone", "interrupted")

runs = Table(
    "runs",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    Column("kind", Text, nullable=False),
    moment("as_of"),
    Column("status", Text, nullable=False),
    Column("dry_run", Boolean, nullable=False, server_default=text("false")),
    Column(
        "ordinal", Integer, nullable=False, comment="How many runs of the same kind, time and parameters came before."
    ),
    document("parameters"),
    Column("parameters_hash", Text, nullable=False),
    document("report", nullable=True, default=None),
    document("error", nullable=True, default=None),
    Column("requested_by", Text, nullable=False, server_default="person"),
    Column("flow_run_id", Text),
    identifier("undoes_run", nullable=True),
    identifier("undone_by_run", nullable=True),
    moment("started_at", default_now=True),
    moment("finished_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    one_of("kind", *RUN_KINDS),
    one_of("status", *RUN_STATES),
    finite_times("as_of"),
    Index("ix_runs_scope", "tenant_id", "scope_path", "as_of", "started_at"),
    Index("ix_runs_running", "tenant_id", "scope_path", postgresql_where=text("status = 'running'")),
)

run_steps = Table(
    "run_steps",
    metadata,
    tenant_id(),
    identifier("run_id"),
    Column("step", Text, nullable=False),
    scope_path(),
    Column("position", Integer, nullable=False),
    Column("status", Text, nullable=False),
    document("outcome"),
    moment("started_at"),
    moment("finished_at", default_now=True),
    PrimaryKeyConstraint("tenant_id", "run_id", "step"),
    references("run_id", "runs"),
    one_of("status", "done", "failed", "skipped"),
)

run_changes = Table(
    "run_changes",
    metadata,
    tenant_id(),
    Column("sequence", BigInteger, Identity(always=True), nullable=False),
    scope_path(),
    identifier("run_id"),
    Column("step", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("operation", Text, nullable=False),
    document("row_key", default=None),
    document("before", default=None),
    document("after", nullable=True, default=None),
    PrimaryKeyConstraint("tenant_id", "run_id", "sequence"),
    one_of("operation", "update", "delete"),
    # Undo asks what was touched later. Not by row_key: equality of jsonb is not leakproof, so no index on it serves
    # a policy.
    Index("ix_run_changes_table", "tenant_id", "scope_path", "table_name", "sequence"),
)

model_calls = Table(
    "model_calls",
    metadata,
    tenant_id(),
    Column("cache_key", Text, nullable=False),
    scope_path(),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    document("request", default=None),
    Column("answer", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("prompt_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False, server_default="0"),
    Column("cost", Numeric(12, 6)),
    Column("duration_ms", Integer, nullable=False, server_default="0"),
    identifier("run_id", nullable=True),
    moment("called_at", default_now=True),
    PrimaryKeyConstraint("tenant_id", "scope_path", "cache_key"),
)

model_attempts = Table(
    "model_attempts",
    metadata,
    tenant_id(),
    Column("sequence", BigInteger, Identity(always=True), nullable=False),
    scope_path(),
    Column("cache_key", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    # Of an answer that was of no use; a usable one is in model_calls.
    Column("answer", Text),
    Column("prompt_tokens", Integer, nullable=False, server_default="0"),
    Column("completion_tokens", Integer, nullable=False, server_default="0"),
    Column("cost", Numeric(12, 6)),
    Column("duration_ms", Integer, nullable=False, server_default="0"),
    identifier("run_id", nullable=True),
    moment("called_at", default_now=True),
    PrimaryKeyConstraint("tenant_id", "cache_key", "sequence"),
    one_of(
        "outcome",
        "usable",
        "unreadable",
        "truncated",
        "refused",
        "content_filter",
        "empty",
        "malformed",
        "timeout",
        "rate_limited",
        "unreachable",
        "rejected",
    ),
    Index("ix_model_attempts_run", "tenant_id", "scope_path", "run_id"),
)
