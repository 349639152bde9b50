"""What was remembered: memories, their state, vectors, uses and links."""

from __future__ import annotations

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from memory_core.database.tables.metadata import (
    document,
    finite_times,
    fraction,
    fraction_check,
    identifier,
    metadata,
    moment,
    one_of,
    references,
    scope_path,
    tenant_id,
)

LAYERS = ("semantic", "episodic", "working", "procedural", "prospective")
SUPERSEDED_REASONS = ("duplicate", "update", "contradiction", "correction")
ACCESS_KINDS = ("recall", "hydrate", "mention", "confirm")
EDGE_KINDS = ("explicit", "co_occurred", "inferred", "synthetic", "clusters")
IDENTITY_PREFIXES = ("SOUL:", "AGENT_IDENTITY:", "PERSONA:", "IDENTITY:")
"""Labels of who the agent or its user is; never retired by a phase, and never told to another scope."""

memories = Table(
    "memories",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    Column("layer", Text, nullable=False, server_default="semantic"),
    Column("label", Text),
    Column("content", Text, nullable=False),
    Column("subject", Text),
    Column("predicate", Text),
    Column("object", Text),
    document("properties"),
    moment("observed_at"),
    moment("recorded_at"),
    moment("created_at", default_now=True),
    moment("updated_at", default_now=True),
    moment("last_activity_at"),
    moment("expires_at", nullable=True),
    moment("retired_at", nullable=True),
    Column("retired_reason", Text),
    identifier("retired_by_run", nullable=True),
    identifier("superseded_by", nullable=True),
    identifier("superseded_by_belief", nullable=True),
    Column("superseded_reason", Text),
    moment("superseded_at", nullable=True),
    identifier("superseded_by_run", nullable=True),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("source", Text),
    Column("external_id", Text),
    Column(
        "is_latest",
        Boolean,
        nullable=False,
        server_default=text("true"),
        comment="False once an edit made a newer row of the same external id.",
    ),
    identifier("corrects", nullable=True),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("content_hash", Text, nullable=False),
    Column("derived_key", Text, comment="Set on rows a phase made, such as meta-nodes."),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("superseded_by", "memories", deferred=True),
    references("corrects", "memories", deferred=True),
    one_of("layer", *LAYERS),
    one_of("superseded_reason", *SUPERSEDED_REASONS),
    CheckConstraint("btrim(content) <> ''", name="content_not_blank"),
    CheckConstraint("num_nulls(subject, predicate, object) IN (0, 3)", name="triple_whole"),
    CheckConstraint("jsonb_typeof(properties) = 'object'", name="properties_object"),
    CheckConstraint("(retired_at IS NULL) = (retired_reason IS NULL)", name="retired_with_reason"),
    CheckConstraint(
        "(superseded_reason IS NOT NULL) = (superseded_by IS NOT NULL OR superseded_by_belief IS NOT NULL)",
        name="superseded_with_reason",
    ),
    CheckConstraint("superseded_by <> id", name="not_superseded_by_itself"),
    CheckConstraint("version >= 1", name="version_positive"),
    finite_times("observed_at", "recorded_at", "last_activity_at"),
    # A phase reads the scope's memories known by its as_of.
    Index("ix_memories_recorded", "tenant_id", "scope_path", "recorded_at"),
    # Range search by label prefix; text_pattern_ops because the database's collation may not sort bytewise.
    Index("ix_memories_label", "tenant_id", "scope_path", "label", postgresql_ops={"label": "text_pattern_ops"}),
    Index(
        "uq_memories_external_id",
        "tenant_id",
        "scope_path",
        "external_id",
        unique=True,
        postgresql_where=text("external_id IS NOT NULL AND is_latest"),
    ),
    # A derived row that changed is retired and a new one made, so that nothing is overwritten; one is in use.
    Index(
        "uq_memories_derived_key",
        "tenant_id",
        "scope_path",
        "derived_key",
        unique=True,
        postgresql_where=text("derived_key IS NOT NULL AND retired_at IS NULL"),
    ),
    # Import asks whether a text is known already.
    Index("ix_memories_content_hash", "tenant_id", "scope_path", "content_hash"),
    # A belief's cascade and `why` walk from a winner to what it replaced.
    Index(
        "ix_memories_superseded_by", "tenant_id", "superseded_by", postgresql_where=text("superseded_by IS NOT NULL")
    ),
    Index("ix_memories_corrects", "tenant_id", "corrects", postgresql_where=text("corrects IS NOT NULL")),
)

memory_state = Table(
    "memory_state",
    metadata,
    tenant_id(),
    identifier("memory_id"),
    scope_path(),
    Column("importance", Double, nullable=False, server_default="5"),
    fraction("confidence", default="0.7"),
    Column("access_count", Integer, nullable=False, server_default="0"),
    moment("last_access_at", nullable=True),
    document("risk_words", nullable=True, default=None),
    moment("risk_tagged_at", nullable=True),
    Column("risk_checked", Text, comment="Content hash and marker-list hash the risk scan last looked at."),
    moment("first_night", nullable=True),
    Column(
        "decayed_at",
        DateTime(timezone=True),
        comment="Until when importance has been lowered for want of activity; null where it never was.",
    ),
    Column(
        "wording_key",
        Text,
        comment="What the content says, in one form, for the content hash that duplicates were last looked for.",
    ),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "memory_id"),
    references("memory_id", "memories"),
    CheckConstraint("importance BETWEEN 1 AND 10", name="importance_from_1_to_10"),
    fraction_check("confidence"),
    CheckConstraint("access_count >= 0", name="access_count_not_negative"),
    CheckConstraint("(risk_words IS NULL) = (risk_tagged_at IS NULL)", name="risk_whole"),
    Index("ix_memory_state_scope", "tenant_id", "scope_path"),
    # Room in each page for the new version of a row that a night changes: then no index has to learn of it.
    postgresql_with={"fillfactor": 50},
)

memory_embeddings = Table(
    "memory_embeddings",
    metadata,
    tenant_id(),
    identifier("memory_id"),
    scope_path(),
    Column("model", Text, nullable=False),
    Column(
        "aspect",
        Text,
        nullable=False,
        server_default="content",
        comment="content, or slot: subject and predicate alone.",
    ),
    Column("dimension", Integer, nullable=False),
    Column("embedding", Vector(), nullable=False),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "memory_id", "model", "aspect"),
    references("memory_id", "memories"),
    one_of("aspect", "content", "slot"),
    CheckConstraint("vector_dims(embedding) = dimension", name="dimension_true"),
    Index("ix_memory_embeddings_scope", "tenant_id", "scope_path", "model", "aspect"),
)

memory_accesses = Table(
    "memory_accesses",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    identifier("memory_id"),
    Column("kind", Text, nullable=False),
    moment("at"),
    Column("external_id", Text),
    identifier("consumed_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("memory_id", "memories"),
    one_of("kind", *ACCESS_KINDS),
    finite_times("at"),
    # Strengthen reads what is new; a consumed row leaves this index.
    Index("ix_memory_accesses_new", "tenant_id", "scope_path", "at", postgresql_where=text("consumed_by_run IS NULL")),
    # Co-occurrence reads a window of time, consumed or not; prune asks for a memory's last use.
    Index("ix_memory_accesses_at", "tenant_id", "scope_path", "at"),
    Index("ix_memory_accesses_memory", "tenant_id", "memory_id", "at"),
    Index(
        "uq_memory_accesses_external_id",
        "tenant_id",
        "scope_path",
        "external_id",
        unique=True,
        postgresql_where=text("external_id IS NOT NULL"),
    ),
)

memory_edges = Table(
    "memory_edges",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    identifier("source_id"),
    identifier("target_id"),
    Column("relationship", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default="explicit"),
    Column("weight", Double, nullable=False, server_default="1"),
    Column("evidence_count", Integer, nullable=False, server_default="1"),
    moment("last_evidence_at", nullable=True),
    Column("status", Text, nullable=False, server_default="active"),
    moment("recorded_at"),
    moment("created_at", default_now=True),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    references("source_id", "memories"),
    references("target_id", "memories"),
    one_of("kind", *EDGE_KINDS),
    one_of("status", "active", "confirmed", "retired"),
    CheckConstraint("source_id <> target_id", name="not_to_itself"),
    CheckConstraint("btrim(relationship) <> ''", name="relationship_not_blank"),
    CheckConstraint("weight > 0 AND weight < 'infinity'", name="weight_finite"),
    # Also finds the links that go out from a memory; one index fewer is a fifth of the cost of a new link.
    Index("uq_memory_edges_triple", "tenant_id", "source_id", "target_id", "relationship", "scope_path", unique=True),
    Index("ix_memory_edges_target", "tenant_id", "target_id"),
)

pending_connections = Table(
    "pending_connections",
    metadata,
    tenant_id(),
    identifier(),
    scope_path(),
    Column(
        "source", Text, nullable=False, comment="A memory's id, external id or label, as the activation log holds it."
    ),
    Column("target", Text, nullable=False),
    Column("relationship", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="PENDING CONSOLIDATION"),
    moment("at"),
    Column("outcome", Text, comment="written, confirmed or rejected; null while pending."),
    Column("reason", Text),
    identifier("consumed_by_run", nullable=True),
    identifier("created_by_run", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    one_of("outcome", "written", "confirmed", "rejected"),
    CheckConstraint("(outcome IS NULL) = (consumed_by_run IS NULL)", name="outcome_whole"),
    Index(
        "ix_pending_connections_new", "tenant_id", "scope_path", "at", postgresql_where=text("consumed_by_run IS NULL")
    ),
)
