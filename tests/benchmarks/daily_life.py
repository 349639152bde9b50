"""What one tenant writes and reads day by day: mostly noise, some useful facts, and what must never be lost.

Everything follows from a seed. Reads follow habits: useful facts are asked for with a weight of one by their rank, and
every ninety days people's interests change, so that the ranks are drawn anew.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.retrieval.uses import record_uses
from memory_core.scope import TenantScope

FIRST_NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)

NOISE, USEFUL, IMPORTANT = "noise", "useful", "important"
PROTECTED = ("identity", "pinned", "corrected", "correction", "evidence of a belief", "only detail")
"""Kinds of memories that no night may take; `only detail` is the one link of an important memory."""

NOISE_A_DAY = 6
USEFUL_A_DAY = 3
READS_A_DAY = 15
INTERESTS_LAST = 90
"""Days."""

_TOPICS = ("Leeds", "Porto", "the office", "the garden", "the car", "Ann", "the printer", "lunch")

_WRITE = """
WITH given AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(CAST(:memories AS jsonb))
    AS g (id uuid, label text, content text, layer text, at timestamptz, importance float8, pinned boolean,
          corrects uuid, superseded_by uuid, content_hash text)
), remembered AS (
  INSERT INTO memories (tenant_id, id, scope_path, layer, label, content, observed_at, recorded_at, last_activity_at,
                        pinned, corrects, superseded_by, superseded_reason, superseded_at, content_hash)
  SELECT :tenant_id, id, :scope_path, layer, label, content, at, at, at, pinned, corrects, superseded_by,
         CASE WHEN superseded_by IS NOT NULL THEN 'correction' END,
         CASE WHEN superseded_by IS NOT NULL THEN at END, content_hash
  FROM given
), weighed AS (
  INSERT INTO memory_state (tenant_id, memory_id, scope_path, importance)
  SELECT :tenant_id, id, :scope_path, importance FROM given
), linked AS (
  INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at)
  SELECT :tenant_id, g.id, :scope_path, g.source, g.target, 'ABOUT', g.at
  FROM jsonb_to_recordset(CAST(:edges AS jsonb)) AS g (id uuid, source uuid, target uuid, at timestamptz)
), corrected AS (
  INSERT INTO corrections (tenant_id, id, scope_path, memory_id, who, at, what)
  SELECT :tenant_id, g.id, :scope_path, g.memory, 'user', g.at, '{"content": "as it is now"}'
  FROM jsonb_to_recordset(CAST(:corrections AS jsonb)) AS g (id uuid, memory uuid, at timestamptz)
), believed AS (
  INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, status,
                                valid_from, cluster_id, model, rules_version, recorded_at)
  SELECT :tenant_id, g.id, :scope_path, 'a thing', 'is', 'so', 'A thing is so', 'held', g.at, 'one', 'rules', '1', g.at
  FROM jsonb_to_recordset(CAST(:beliefs AS jsonb)) AS g (id uuid, memory uuid, at timestamptz)
)
INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path)
SELECT :tenant_id, g.id, g.memory, 'supports', :scope_path
FROM jsonb_to_recordset(CAST(:beliefs AS jsonb)) AS g (id uuid, memory uuid, at timestamptz)
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A memory as it was written.

    Attributes:
        kind: `noise`, `useful`, `important`, or one of `PROTECTED`.
        importance: 1 to 10, as it began.
        replaced: whether a correction stands for it, so that it is out of recall without having been retired.
    """

    kind: str
    importance: float
    replaced: bool = False


@dataclass(slots=True)
class Day:
    """What one day brings, ready to be written."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    corrections: list[dict[str, Any]] = field(default_factory=list)
    beliefs: list[dict[str, Any]] = field(default_factory=list)
    reads: list[tuple[datetime, UUID]] = field(default_factory=list)


class Life:
    """The days of one tenant.

    Attributes:
        written: every memory so far, by id.
        links: the memories that each important one is linked to, by its id.
        reads: reads asked for so far.
        missed: of these, reads of a memory that was not there to be read any more.
    """

    def __init__(self, seed: int) -> None:
        self.written: dict[UUID, Written] = {}
        self.links: dict[UUID, list[UUID]] = {}
        self.reads = self.missed = 0
        self._chance = random.Random(seed)
        self._habits: list[UUID] = []
        self._all: list[UUID] = []

    async def live(self, database: Database, scope: TenantScope, number: int) -> None:
        """Write and read what the day before night `number` brings; the first night is 0."""
        day = self._day(number)
        async with database.scoped(scope) as connection:
            await connection.execute(
                _WRITE,
                memories=json.dumps(day.memories),
                edges=json.dumps(day.edges),
                corrections=json.dumps(day.corrections),
                beliefs=json.dumps(day.beliefs),
            )
            for at, memory_id in day.reads:
                self.reads += 1
                self.missed += not await record_uses(connection, [memory_id], kind="recall", at=at)
            await connection.commit()

    def _day(self, number: int) -> Day:
        day, morning = Day(), FIRST_NIGHT + timedelta(days=number, hours=-20)
        if number % INTERESTS_LAST == 0:
            self._chance.shuffle(self._habits)
        for _ in range(NOISE_A_DAY):
            noise = self._remember(day, NOISE, morning, self._chance.triangular(1, 6, 2.5))
            # Two in five hang on to one other memory, one in ten on to two.
            links = self._chance.choices((0, 1, 2), (5, 4, 1))[0]
            for other in self._chance.sample(self._all[-200:-1], min(links, len(self._all[-200:-1]))):
                self._link(day, noise, other, morning)
                if other in self.links:
                    # The important memory has several links now, and one of them must stay.
                    self._several(other, noise)
        for _ in range(USEFUL_A_DAY):
            useful = self._remember(day, USEFUL, morning, self._chance.uniform(2, 8))
            self._habits.insert(self._chance.randrange(len(self._habits) + 1), useful)
        self._protected(day, PROTECTED[number % len(PROTECTED)], morning)
        weights = [1 / rank for rank in range(1, len(self._habits) + 1)]
        for memory_id in self._chance.choices(self._habits, weights, k=READS_A_DAY):
            day.reads.append((morning + timedelta(hours=self._chance.uniform(15, 19)), memory_id))
        # Now and then a search finds what nobody needs.
        day.reads.append((morning + timedelta(hours=19), self._chance.choice(self._all)))
        return day

    def _protected(self, day: Day, kind: str, at: datetime) -> None:
        low = self._chance.uniform(1, 3.5)
        match kind:
            case "identity":
                prefix = self._chance.choice(("SOUL", "AGENT_IDENTITY", "PERSONA"))
                self._remember(day, kind, at, low, label=f"{prefix}: trait {len(self._all)}")
            case "pinned":
                self._remember(day, kind, at, low, pinned=True)
            case "corrected":
                memory_id = self._remember(day, kind, at, low)
                day.corrections.append({"id": self._id(), "memory": str(memory_id), "at": at.isoformat()})
            case "correction":
                old = self._remember(day, kind, at, low)
                new = self._remember(day, kind, at, low, corrects=str(old))
                day.memories[-2]["superseded_by"] = str(new)
                self.written[old] = Written(NOISE, low, replaced=True)
            case "evidence of a belief":
                memory_id = self._remember(day, kind, at, low)
                day.beliefs.append({"id": self._id(), "memory": str(memory_id), "at": at.isoformat()})
            case "only detail":
                important = self._remember(day, IMPORTANT, at, 9.0)
                # Of several details one must stay; a single one is protected itself.
                kinds = [NOISE] * 3 if self._chance.random() < 0.3 else [kind]
                self.links[important] = [self._remember(day, each, at, low) for each in kinds]
                for detail in self.links[important]:
                    self._link(day, important, detail, at)

    def _several(self, important: UUID, link: UUID) -> None:
        self.links[important].append(link)
        for detail in self.links[important]:
            if self.written[detail].kind == "only detail":
                self.written[detail] = Written(NOISE, self.written[detail].importance)

    def _remember(self, day: Day, kind: str, at: datetime, importance: float, **more: Any) -> UUID:
        memory_id = UUID(self._id())
        number = len(self._all)
        when = at + timedelta(minutes=self._chance.uniform(0, 600))
        content = f"Item {number} about {self._chance.choice(_TOPICS)}, {kind}"
        label = f"{self._chance.choice(_TOPICS).upper()}: item {number}" if self._chance.random() < 0.2 else None
        day.memories.append(
            {
                "id": str(memory_id),
                "label": label,
                "content": content,
                "layer": self._chance.choice(("semantic", "episodic")),
                "at": when.isoformat(),
                "importance": importance,
                "pinned": False,
                "content_hash": hashlib.sha256(content.encode()).hexdigest(),
                **more,
            }
        )
        self.written[memory_id] = Written(kind, importance)
        self._all.append(memory_id)
        return memory_id

    def _link(self, day: Day, source: UUID, target: UUID, at: datetime) -> None:
        day.edges.append({"id": self._id(), "source": str(source), "target": str(target), "at": at.isoformat()})

    def _id(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128), version=4))
