"""A store of its own for the belief benchmark: sentences in through the import, beliefs by `harmonize`, links out."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.interchange.importing import import_file
from memory_core.night.consolidate import consolidate
from memory_core.night.context import embedding_for
from memory_core.night.questions import recall
from memory_core.scope import TenantScope
from memory_core.settings import Settings

START = datetime(2025, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=5)

REPLACED = ("update", "contradiction")
"""Reasons for which a memory gives way to one that says something else."""

_GAVE_WAY = """
SELECT m.external_id AS loser, w.external_id AS winner, m.superseded_reason AS kind
FROM memories m
LEFT JOIN belief_evidence e ON e.tenant_id = m.tenant_id AND e.belief_id = m.superseded_by_belief
                           AND e.role = 'supports'
JOIN memories w ON w.tenant_id = m.tenant_id AND w.id = coalesce(m.superseded_by, e.memory_id)
WHERE m.tenant_id = :tenant_id AND m.superseded_reason IS NOT NULL
"""

_CONTESTED = """
SELECT a.external_id AS loser, b.external_id AS winner, 'contested' AS kind
FROM harmonic_beliefs h
JOIN belief_evidence s ON s.tenant_id = h.tenant_id AND s.belief_id = h.belief_id AND s.role = 'supports'
JOIN belief_evidence c ON c.tenant_id = h.tenant_id AND c.belief_id = h.belief_id AND c.role = 'contradicts'
JOIN memories a ON a.tenant_id = h.tenant_id AND a.id = s.memory_id
JOIN memories b ON b.tenant_id = h.tenant_id AND b.id = c.memory_id
WHERE h.tenant_id = :tenant_id AND h.status = 'contested'
"""

_SAID_THE_SAME = """
SELECT a.external_id AS loser, b.external_id AS winner, 'held together' AS kind
FROM harmonic_beliefs h
JOIN belief_evidence s ON s.tenant_id = h.tenant_id AND s.belief_id = h.belief_id AND s.role = 'supports'
JOIN belief_evidence o ON o.tenant_id = h.tenant_id AND o.belief_id = h.belief_id AND o.role = 'supports'
                      AND o.memory_id > s.memory_id
JOIN memories a ON a.tenant_id = h.tenant_id AND a.id = o.memory_id AND a.superseded_reason IS NULL
JOIN memories b ON b.tenant_id = h.tenant_id AND b.id = s.memory_id AND b.superseded_reason IS NULL
WHERE h.tenant_id = :tenant_id AND h.status = 'held'
"""

_TOGETHER = """
SELECT array_agg(m.external_id) AS members
FROM memory_resonance_clusters c
CROSS JOIN LATERAL jsonb_array_elements(c.members) AS each
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(each ->> 'memory_id' AS uuid)
WHERE c.tenant_id = :tenant_id
GROUP BY c.run_id, c.cluster_id
"""

_SECONDS = """
SELECT step, sum(extract(epoch FROM finished_at - started_at))::float8 AS seconds FROM run_steps
WHERE tenant_id = :tenant_id AND strpos(step, ':') = 0 GROUP BY step ORDER BY min(position)
"""


@dataclass(frozen=True)
class Told:
    """One memory to import: its name, what it says, when it was observed (zoned), and its triple if it has one."""

    name: str
    content: str
    at: datetime
    triple: tuple[str, str, str] | None = None

    def document(self) -> dict[str, Any]:
        """The memory as a line of an import."""
        known = {"external_id": self.name, "content": self.content, "observed_at": self.at.isoformat()}
        return known | (dict(zip(("subject", "predicate", "object"), self.triple, strict=True)) if self.triple else {})


@dataclass(frozen=True)
class Link:
    """One memory gave way to another, or both stand in one belief, as its two sides or as its support; by name."""

    loser: str
    winner: str
    kind: str
    """`duplicate`, `update` or `contradiction`; `contested` or `held together`, where neither has lost."""


def in_order(contents: Iterable[str]) -> list[Told]:
    """Sentences five minutes apart, named by their number from 0."""
    return [Told(str(number), content, START + number * APART) for number, content in enumerate(contents)]


class BeliefStore:
    """Tells memories to scopes of one database, and reads what came of it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self._folder = folder

    @staticmethod
    @asynccontextmanager
    async def open(embedding: str = "minilm") -> AsyncIterator[BeliefStore]:
        """An empty store on a server of its own, gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="slowwave beliefs ") as name:
            folder = Path(name)
            server = EmbeddedPostgres(folder)
            address = server.start()
            try:
                address.ensure_database("beliefs")
                url = address.url("beliefs")
                migrate(make_url(url))
                settings = Settings.load(home=folder, database_url=url, embedding=embedding)
                async with Database.open(settings) as database:
                    yield BeliefStore(database, folder)
            finally:
                server.stop()

    async def tell(self, told: Mapping[TenantScope, Sequence[Told]]) -> float:
        """Import the memories of each scope, a tenant each; returns seconds, embedding included."""
        started = time.perf_counter()
        path = self._folder / "told.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for scope, memories in told.items():
                for one in memories:
                    file.write(json.dumps({"tenant": scope.tenant_id, **one.document()}) + "\n")
        now = max(one.at for memories in told.values() for one in memories)
        report = await import_file(self.database, embedding_for(self.database.settings), path, now=now)
        if report.rejects:
            raise AssertionError(f"The import refused {report.rejects[0]}")
        return time.perf_counter() - started

    async def harmonize(self, scopes: Sequence[TenantScope], at: datetime) -> None:
        """One pass of SHMR over the scopes, which must succeed."""
        done = {"applied", "nothing_changed"}
        for document in await consolidate(self.database, scopes, "harmonize", at, parameters={"accept": True}):
            if document["status"] not in done:
                raise AssertionError(f"{document['scope']}: {document['status']}: {document.get('error')}")

    async def links(self, scope: TenantScope) -> list[Link]:
        """Everything that gave way in the scope's tenant, the sides of what is contested, and what is held together."""
        found = [await self._rows(scope, sql) for sql in (_GAVE_WAY, _CONTESTED, _SAID_THE_SAME)]
        return [Link(row["loser"], row["winner"], row["kind"]) for rows in found for row in rows]

    async def clusters(self, scope: TenantScope) -> list[list[str]]:
        """The names of the memories of each cluster that was looked at."""
        return [sorted(row["members"]) for row in await self._rows(scope, _TOGETHER)]

    async def seconds(self, scope: TenantScope) -> dict[str, float]:
        """Seconds of each step of the scope's runs."""
        return {row["step"]: round(row["seconds"], 3) for row in await self._rows(scope, _SECONDS)}

    async def first_answer(self, scope: TenantScope, question: str) -> str:
        """What is recalled first for a question; empty where nothing is."""
        results = (await recall(self.database, scope, question, k=1, record=False))["results"]
        return str(results[0]["content"]) if results else ""

    async def _rows(self, scope: TenantScope, sql: str) -> list[dict[str, Any]]:
        async with self.database.scoped(scope) as connection:
            return [dict(row) for row in await connection.rows(sql)]


def tenant(*parts: object) -> TenantScope:
    """A tenant's root scope, named by the parts."""
    return TenantScope.root("tenant", "-".join(str(part) for part in parts))
