"""Reads what SHMR works on: candidates with their vectors, and the clusters of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.vectors import stored_vectors
from memory_core.runs.context import RunContext
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.settings import ENVIRONMENT_ALIASES, ShmrSettings
from memory_core.shmr.slots import Slot

LONGEST_EPISODE = 300
"""Characters of an episode that are compared."""

CURRENT = (
    "m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of) "
    "AND m.recorded_at <= :as_of"
)
"""SQL: memory `m` holds at the run's time."""

_ECHO = (
    "(m.scope_path <> :scope_path AND m.source = 'promotion' AND m.properties -> 'promoted_from' "
    "@> jsonb_build_array(jsonb_build_object('scope_path', CAST(:scope_path AS text))))"
)

ELIGIBLE = (
    f"({CURRENT} AND m.derived_key IS NULL "
    "AND (m.layer = 'semantic' OR (m.layer = 'episodic' AND char_length(m.content) > 10)) "
    f"AND NOT coalesce({_ECHO}, false))"
)
"""SQL: memory `m` is a current fact, or a current episode of more than 10 characters; no phase made it, and it is no
copy that was promoted from this very scope, which would count as a second source of what the scope said itself."""

_COLUMNS = f"""
SELECT m.id, m.version, m.content_hash, m.layer,
       CASE m.layer WHEN 'episodic' THEN left(m.content, {LONGEST_EPISODE}) ELSE m.content END AS content,
       m.subject, m.predicate, m.object, m.observed_at, m.source, m.corrects, m.scope_path <> :scope_path AS read_only,
       coalesce(s.confidence, 0.7) AS confidence, m.pinned AS confirmed
FROM memories m
LEFT JOIN memory_state s ON s.tenant_id = :tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
"""

_CANDIDATES = f"{_COLUMNS} AND {ELIGIBLE} ORDER BY m.id"
_MEMBERS = f"{_COLUMNS} AND m.id = ANY(CAST(:ids AS uuid[])) ORDER BY m.id"

# Statements of their own: joined, they would be looked up once for every memory.
_CONFIRMED = """
SELECT a.memory_id, max(a.at) AS at FROM memory_accesses a
WHERE a.tenant_id = :tenant_id AND a.memory_id = ANY(CAST(:ids AS uuid[])) AND a.kind = 'confirm' AND a.at <= :as_of
GROUP BY a.memory_id
"""
_VECTORS = """
SELECT e.memory_id, e.aspect, vector_send(e.embedding) AS vector FROM memory_embeddings e
WHERE e.tenant_id = :tenant_id AND e.memory_id = ANY(CAST(:ids AS uuid[])) AND e.model = :model
  AND e.aspect = ANY(CAST(:aspects AS text[]))
"""


@dataclass(frozen=True, slots=True)
class Collected:
    """Candidates with their vectors.

    Attributes:
        candidates: n memories in the order of their ids.
        content_vectors: shape (n, d), float32, rows of length 1; zeros where there is no usable vector.
        slot_vectors: the same for subject and predicate.
    """

    candidates: list[Candidate]
    content_vectors: NDArray[np.float32]
    slot_vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """A cluster of a run with its members as they are now.

    Attributes:
        slots: one a member, None where it has none.
        vectors: shape (n, d), content vectors.
        handles: short names, one a member.
        proposal: what was decided so far: `decision`, `by`, `version`, `vectors`; empty before.
    """

    cluster_id: str
    fingerprint: str
    status: str
    members: list[Candidate]
    slots: list[Slot | None]
    vectors: NDArray[np.float32]
    handles: list[str]
    proposal: dict[str, Any]


def shmr_settings(context: RunContext) -> ShmrSettings:
    """SHMR's settings for this run: the call's, the tenant's, `SLOWWAVE_SHMR_*`, `MNEMOSYNE_SHMR_*`, the file's."""
    return context.section("shmr", ShmrSettings, aliases=ENVIRONMENT_ALIASES)


async def all_candidates(connection: ScopedConnection, model: str) -> Collected:
    """Every current fact and episode of the scope that has a vector of the model, and those of its ancestors."""
    rows = await connection.rows(_CANDIDATES)
    ids = [row["id"] for row in rows]
    vectors = await _vectors(connection, ids, model, ["content", "slot"])
    # An ancestor's memory may wait for its own scope's night to get a vector; its slot can be compared already.
    kept = [row for row in rows if row["read_only"] or row["id"] in vectors["content"]]
    candidates = _candidates(kept, await _confirmed(connection, ids))
    return Collected(
        candidates,
        stored_vectors([vectors["content"].get(row["id"]) for row in kept]),
        stored_vectors([vectors["slot"].get(row["id"]) for row in kept]),
    )


async def clusters_of_run(connection: ScopedConnection, model: str, statuses: Sequence[str]) -> list[StoredCluster]:
    """The run's clusters of these statuses in the order of their ids."""
    rows = await connection.rows(
        "SELECT cluster_id, fingerprint, status, members, proposal FROM memory_resonance_clusters "
        "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id "
        "AND status = ANY(:statuses) ORDER BY cluster_id",
        statuses=list(statuses),
    )
    if not rows:
        return []
    ids = sorted({UUID(member["memory_id"]) for row in rows for member in row["members"]})
    found = await connection.rows(_MEMBERS, ids=ids)
    stored = await _vectors(connection, ids, model, ["content"])
    vectors = stored_vectors([stored["content"].get(row["id"]) for row in found])
    candidates = _candidates(found, await _confirmed(connection, ids))
    place = {str(candidate.memory_id): position for position, candidate in enumerate(candidates)}
    clusters = []
    for row in rows:
        present = [member for member in row["members"] if member["memory_id"] in place]
        positions = [place[member["memory_id"]] for member in present]
        clusters.append(
            StoredCluster(
                cluster_id=row["cluster_id"],
                fingerprint=row["fingerprint"],
                status=row["status"],
                members=[candidates[position] for position in positions],
                slots=[None if member["slot"] is None else Slot(**member["slot"]) for member in present],
                vectors=vectors[positions],
                handles=[member["handle"] for member in present],
                proposal=row["proposal"] or {},
            )
        )
    return clusters


def member_documents(members: Sequence[Candidate], slots: Sequence[Slot | None]) -> list[dict[str, Any]]:
    """The members as kept with their cluster: id, version, handle and slot, in order of time."""
    order = sorted(range(len(members)), key=lambda i: members[i].in_time)
    return [
        {
            "memory_id": str(members[i].memory_id),
            "version": members[i].version,
            "handle": f"m{number}",
            "slot": None if (slot := slots[i]) is None else asdict(slot),
        }
        for number, i in enumerate(order, 1)
    ]


async def _vectors(
    connection: ScopedConnection, ids: Sequence[UUID], model: str, aspects: Sequence[str]
) -> dict[str, dict[UUID, bytes]]:
    """Stored vectors by aspect and memory, in pgvector's binary form."""
    found: dict[str, dict[UUID, bytes]] = {aspect: {} for aspect in aspects}
    if ids:
        for row in await connection.rows(_VECTORS, ids=list(ids), model=model, aspects=list(aspects)):
            found[row["aspect"]][row["memory_id"]] = row["vector"]
    return found


async def _confirmed(connection: ScopedConnection, ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """When memories were last confirmed, of those that were."""
    rows = await connection.rows(_CONFIRMED, ids=list(ids)) if ids else ()
    return {row["memory_id"]: row["at"] for row in rows}


def _candidates(rows: Sequence[RowMapping], confirmed: Mapping[UUID, datetime]) -> list[Candidate]:
    return [
        Candidate(
            memory_id=row["id"],
            version=row["version"],
            content_hash=row["content_hash"],
            layer=row["layer"],
            content=row["content"],
            subject=row["subject"],
            predicate=row["predicate"],
            object=row["object"],
            observed_at=row["observed_at"],
            confidence=row["confidence"],
            source=row["source"],
            corrects=row["corrects"],
            confirmed=row["confirmed"],
            confirmed_at=confirmed.get(row["id"]),
            read_only=row["read_only"],
        )
        for row in rows
    ]
