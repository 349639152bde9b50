"""Writes rows that summarise others: the memory, its state, and its links to the members it is made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.identity import content_hash

_INSERT = """
WITH made AS (
  INSERT INTO memories (tenant_id, id, scope_path, layer, label, content, properties, observed_at, recorded_at,
                        last_activity_at, source, content_hash, derived_key, created_by_run)
  SELECT CAST(:tenant_id AS text), r.id, CAST(:scope_path AS text), r.layer, r.label, r.content, r.properties,
         r.observed_at, CAST(:as_of AS timestamptz), CAST(:as_of AS timestamptz), CAST(:source AS text), r.content_hash,
         r.derived_key, CAST(:run_id AS uuid)
  FROM jsonb_to_recordset(CAST(:nodes AS jsonb)) AS r (id uuid, layer text, label text, content text, properties jsonb,
       observed_at timestamptz, content_hash text, derived_key text)
  -- Another run's row, which this snapshot does not see, is so a conflict that is tried again, not a failure.
  ON CONFLICT DO NOTHING
  RETURNING id
)
INSERT INTO memory_state (tenant_id, scope_path, memory_id, importance, first_night, created_by_run)
SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), id, CAST(:importance AS double precision),
       CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM made
"""

_LINK = """
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, kind, last_evidence_at,
                          recorded_at, created_by_run)
SELECT CAST(:tenant_id AS text), e.id, CAST(:scope_path AS text), e.source, e.target, 'CLUSTERS', 'clusters',
       CAST(:as_of AS timestamptz), CAST(:as_of AS timestamptz), CAST(:run_id AS uuid)
FROM unnest(CAST(:ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:targets AS uuid[])) AS e (id, source, target)
"""


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A row that summarises others.

    Attributes:
        id: derived from its members, so that a preview and its run make the same row.
        derived_key: unique in the scope among rows in use.
        members: those that it is linked to.
    """

    id: UUID
    layer: str
    label: str
    content: str
    properties: dict[str, Any]
    observed_at: datetime
    derived_key: str
    members: tuple[UUID, ...]


async def write_summaries(
    connection: ScopedConnection, summaries: Sequence[NewSummary], *, source: str, importance: float
) -> None:
    """Write the rows with their links, in two statements.

    Args:
        source: the phase that made them.
        importance: of each, from 1 to 10.
    """
    nodes = [
        {
            "id": str(summary.id),
            "layer": summary.layer,
            "label": summary.label,
            "content": summary.content,
            "properties": summary.properties,
            "observed_at": summary.observed_at.isoformat(),
            "content_hash": content_hash(summary.layer, summary.label, summary.content, None, None, None),
            "derived_key": summary.derived_key,
        }
        for summary in summaries
    ]
    links = [(summary.id, member) for summary in summaries for member in summary.members]
    await connection.execute(_INSERT, nodes=json.dumps(nodes), importance=importance, source=source)
    await connection.execute(
        _LINK,
        ids=[connection.scope.derived_id("edge", str(one), str(other), "CLUSTERS") for one, other in links],
        sources=[one for one, _ in links],
        targets=[other for _, other in links],
    )
