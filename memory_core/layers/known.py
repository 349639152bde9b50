"""What the store knows already: decides for each memory whether it is new, a new version, or known.

The rule, in this order:

1. The same external id (or none on both sides), the same text and the same `observed_at` are known: `unchanged`, or
   `earlier_version` where a newer text of that external id has come since. A memory without any date matches
   whatever its date.
2. The latest text of the external id is the same: `unchanged`.
3. The external id has another text: `new_version`.
4. Otherwise `inserted`.

A known memory's columns stay as they are; only its uses and links are added to. A new version keeps what nights and
people gave the old one: it stays pinned, and keeps the importance unless it brings its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.identity import memory_id
from memory_core.layers.records import NewMemory
from memory_core.scope import TenantScope

Outcome = Literal["inserted", "new_version", "unchanged", "earlier_version"]


@dataclass(frozen=True, slots=True)
class LatestVersion:
    """The newest row of an external id.

    Attributes:
        stored: whether it is in the store; False for one that this batch adds.
        importance: 1 to 10; None for one that this batch adds.
    """

    id: UUID
    content_hash: str
    pinned: bool
    importance: float
    stored: bool


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One memory and what becomes of it.

    Attributes:
        id: the new row's id, or the known row's.
        previous: the version that it replaces; None unless `outcome` is `new_version`.
    """

    memory: NewMemory
    id: UUID
    content_hash: str
    outcome: Outcome
    previous: LatestVersion | None
    pinned: bool
    importance: float

    @property
    def is_new(self) -> bool:
        """Whether a row is added."""
        return self.outcome in ("inserted", "new_version")


# Arrays instead of a join: where the planner has no statistics yet, as in a first import, this reads the scope once at
# worst, and a join would read it once for each row.
_SEEN = """
SELECT DISTINCT ON (m.content_hash, m.external_id, m.observed_at) m.content_hash, m.external_id, m.observed_at, m.id
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.content_hash = ANY(CAST(:hashes AS text[]))
  AND (m.external_id = ANY(CAST(:externals AS text[])) OR m.observed_at = ANY(CAST(:times AS timestamptz[]))
       OR m.content_hash = ANY(CAST(:undated AS text[])))
ORDER BY m.content_hash, m.external_id, m.observed_at, m.is_latest DESC, m.recorded_at, m.id
"""

_LATEST = """
SELECT m.external_id, m.id, m.content_hash, m.pinned, s.importance
FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.external_id = ANY(CAST(:externals AS text[]))
  AND m.is_latest
"""

_Key = tuple[str | None, str, datetime | None]


@dataclass(slots=True)
class Known:
    """What is known of one scope, as far as it was asked for; a dry run keeps one for the whole file."""

    _seen: dict[_Key, UUID] = field(default_factory=dict)
    _latest: dict[str, LatestVersion] = field(default_factory=dict)

    async def plan(
        self, connection: ScopedConnection, memories: Sequence[NewMemory], now: datetime
    ) -> list[PlannedWrite]:
        """Decide for each memory, in order; earlier ones of the batch count as known for the later ones.

        Args:
            now: the time of memories that say none.
        """
        hashes = [memory.content_hash for memory in memories]
        await self._load(connection, memories, hashes, now)
        return [
            self._decide(connection.scope, memory, content_hash, now)
            for memory, content_hash in zip(memories, hashes, strict=True)
        ]

    def id_of(self, external_id: str) -> UUID | None:
        """The latest row of an external id, as far as it was asked for."""
        latest = self._latest.get(external_id)
        return None if latest is None else latest.id

    async def _load(
        self, connection: ScopedConnection, memories: Sequence[NewMemory], hashes: Sequence[str], now: datetime
    ) -> None:
        keys: list[_Key] = [
            (memory.external_id, content_hash, memory.observed(now) if memory.dated else None)
            for memory, content_hash in zip(memories, hashes, strict=True)
        ]
        asked = list(dict.fromkeys(key for key in keys if key not in self._seen))
        found = await connection.rows(
            _SEEN,
            hashes=[key[1] for key in asked],
            externals=[key[0] for key in asked if key[0] is not None],
            times=[key[2] for key in asked if key[2] is not None],
            undated=[key[1] for key in asked if key[2] is None],
        )
        for row in found:
            external, content_hash, observed_at = row["external_id"], row["content_hash"], row["observed_at"]
            self._seen.setdefault((external, content_hash, observed_at), row["id"])
            self._seen.setdefault((external, content_hash, None), row["id"])
        externals = {key[0] for key in keys if key[0] is not None and key[0] not in self._latest}
        for row in await connection.rows(_LATEST, externals=sorted(externals)) if externals else ():
            self._latest[row["external_id"]] = LatestVersion(
                row["id"], row["content_hash"], row["pinned"], row["importance"], stored=True
            )

    def _decide(self, scope: TenantScope, memory: NewMemory, content_hash: str, now: datetime) -> PlannedWrite:
        external = memory.external_id
        latest = self._latest.get(external) if external is not None else None
        known = self._seen.get((external, content_hash, memory.observed(now) if memory.dated else None))
        if known is None and latest is not None and latest.content_hash == content_hash:
            known = latest.id
        if known is not None:
            outcome: Outcome = "unchanged" if latest is None or latest.id == known else "earlier_version"
            return PlannedWrite(memory, known, content_hash, outcome, None, memory.pinned, memory.importance)
        new_id = memory_id(scope, external, content_hash, memory.observed(now), memory.recorded(now))
        pinned, importance = memory.pinned, memory.importance
        if latest is not None:
            pinned = pinned or latest.pinned
            if "importance" not in memory.model_fields_set:
                importance = latest.importance
        self._seen[(external, content_hash, memory.observed(now))] = new_id
        self._seen.setdefault((external, content_hash, None), new_id)
        if external is not None:
            self._latest[external] = LatestVersion(new_id, content_hash, pinned, importance, stored=False)
        return PlannedWrite(
            memory, new_id, content_hash, "inserted" if latest is None else "new_version", latest, pinned, importance
        )
