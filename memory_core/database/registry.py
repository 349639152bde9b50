"""How each table is treated: journalled, checksummed, exported, erased, retained.

One row a table. Policies, journal triggers, undo, the checksum, export and erasure are all made from this
list, and a test over the catalogue fails on a table that is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Table

from memory_core.database import tables

WALL_TIME_COLUMNS = frozenset({"created_at", "updated_at", "started_at", "finished_at", "called_at", "duration_ms"})
"""Columns that say when the machine did something; no phase reads them, and no checksum or diff covers them."""

NOT_JOURNALLED_COLUMNS = frozenset({"version", "updated_at", "embedding"})
"""`version` never falls, also on undo; wall time is not restored; vectors are derived."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One table's treatment.

    Attributes:
        table: the table.
        visibility: `scope` (rows of the scope path), `tenant` (rows of the tenant).
        journalled: before and after images of changed columns are kept for every run.
        checksummed: covered by the undo checksum.
        exported: part of a tenant's export.
        erased: how a person's right to erasure reaches it: with the memory it names, or with the scope.
        retention: `keep`, or `expires` where maintenance may drop old rows.
        appended_along_path: whether a scope may add rows at its ancestors' levels too, which it can read; changing them
            stays with their own level.
        together: groups of columns that say one thing; undo restores a group whole or not at all.
    """

    table: Table
    visibility: Literal["scope", "tenant"] = "scope"
    journalled: bool = False
    checksummed: bool = False
    exported: bool = True
    erased: Literal["memory", "scope"] = "scope"
    retention: Literal["keep", "expires"] = "keep"
    appended_along_path: bool = False
    together: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.table.name

    @property
    def key(self) -> tuple[str, ...]:
        """The primary key's columns after `tenant_id`."""
        return tuple(column.name for column in self.table.primary_key if column.name != "tenant_id")

    @property
    def made_by_runs(self) -> bool:
        """Whether a run may create rows here (they carry `created_by_run`)."""
        return "created_by_run" in self.table.columns

    def journalled_columns(self) -> tuple[str, ...]:
        """The columns whose changes are kept, in table order."""
        skip = NOT_JOURNALLED_COLUMNS | {"tenant_id", "scope_path", *self.key}
        return tuple(column.name for column in self.table.columns if column.name not in skip)


_MEMORY_TOGETHER = (
    ("retired_at", "retired_reason", "retired_by_run"),
    ("superseded_by", "superseded_by_belief", "superseded_reason", "superseded_at", "superseded_by_run"),
    ("content", "content_hash", "subject", "predicate", "object"),
)

REGISTRY: tuple[TableEntry, ...] = (
    # Parents first: undo deletes what a run created in reverse order.
    TableEntry(tables.tenants, visibility="tenant"),
    TableEntry(tables.scopes),
    TableEntry(tables.runs),
    TableEntry(tables.run_steps),
    TableEntry(tables.run_changes, exported=False, retention="expires"),
    TableEntry(tables.model_calls, exported=False, retention="expires"),
    TableEntry(tables.model_attempts, exported=False, retention="expires"),
    TableEntry(tables.memories, journalled=True, checksummed=True, erased="memory", together=_MEMORY_TOGETHER),
    TableEntry(
        tables.memory_state,
        journalled=True,
        checksummed=True,
        erased="memory",
        together=(("risk_words", "risk_tagged_at", "risk_checked"), ("importance", "decayed_at")),
    ),
    TableEntry(tables.memory_embeddings, journalled=True, checksummed=True, erased="memory"),
    TableEntry(tables.memory_summaries, journalled=True, checksummed=True, erased="memory"),
    # A memory of the organisation that a conversation reads is used, and the organisation's night has to know.
    TableEntry(tables.memory_accesses, journalled=True, erased="memory", retention="expires", appended_along_path=True),
    TableEntry(
        tables.memory_edges,
        journalled=True,
        checksummed=True,
        erased="memory",
        together=(("weight", "evidence_count", "last_evidence_at"),),
    ),
    TableEntry(
        tables.pending_connections,
        journalled=True,
        retention="expires",
        together=(("outcome", "reason", "consumed_by_run"),),
    ),
    TableEntry(
        tables.corrections,
        journalled=True,
        erased="memory",
        together=(("outcome", "reasons", "consumed_by_run"),),
    ),
    TableEntry(tables.soul_schemas),
    TableEntry(
        tables.soul_profiles,
        journalled=True,
        checksummed=True,
        together=(("value", "type", "previous", "source", "at", "correction_id"),),
    ),
    TableEntry(tables.skills, erased="memory"),
    TableEntry(tables.tools),
    TableEntry(
        tables.triggers, journalled=True, checksummed=True, erased="memory", together=(("state", "resolved_at"),)
    ),
    TableEntry(
        tables.harmonic_beliefs,
        journalled=True,
        checksummed=True,
        together=(("status", "status_reason", "superseded_by_belief", "valid_to"),),
    ),
    TableEntry(tables.belief_evidence, journalled=True, checksummed=True, erased="memory"),
    TableEntry(tables.belief_embeddings, journalled=True, checksummed=True),
    TableEntry(
        tables.harmonize_queue,
        journalled=True,
        checksummed=True,
        erased="memory",
        together=(("enqueued_at", "passed_over_at", "reason", "harmonized_by_run"),),
    ),
    TableEntry(
        tables.decisions, journalled=True, together=(("verdict", "members", "rules_version", "run_id", "decided_at"),)
    ),
    TableEntry(tables.memory_resonance_clusters, retention="expires"),
    TableEntry(tables.memory_resonance_log),
)


def entry(name: str) -> TableEntry:
    """The entry of a table by name.

    Raises:
        KeyError: the table is not registered.
    """
    for candidate in REGISTRY:
        if candidate.name == name:
            return candidate
    raise KeyError(name)
