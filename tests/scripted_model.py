"""A model that answers as scripted, its answers, and the clusters that it is asked about."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from memory_core.database.engine import Database
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.scope import TenantScope
from tests.builders import add_home, add_memory, ago


class Scripted:
    """A model that gives scripted answers in turn, the last one again and again; an exception is raised."""

    name = "scripted/model"

    def __init__(self, *script: str | Exception, before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self.unavailable: Exception | None = None
        self.before = before

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        if self.before is not None:
            await self.before()
        given = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(given, Exception):
            raise given
        return ModelAnswer(given, self.name, 100, 20, 0.01, "stop", 5)

    async def check(self) -> None:
        if self.unavailable is not None:
            raise self.unavailable


PEOPLE = ("Ann", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gro", "Hans", "Ida", "Jon", "Kari", "Leif")


def items(*found: dict[str, Any]) -> str:
    """An answer; what an item leaves out is filled in."""
    base = {"subject": "Ann", "predicate": "lives in", "object": "Bergen", "confidence": 0.8, "action": "create"}
    base |= {"target": None, "evidence": ["m2"], "contradicts": [], "rationale": "It was said later."}
    return json.dumps({"beliefs": [{**base, **each} for each in found]})


UPDATE = {"action": "update", "target": "m1", "evidence": ["m2"]}
DAMPEN = {"action": "dampen", "target": "m1", "object": "Oslo", "evidence": ["m2"]}


async def homes(database: Database, scope: TenantScope, **first: Any) -> tuple[uuid.UUID, uuid.UUID]:
    """Two statements of where Ann lives: m1 and m2 of one cluster."""
    ids = []
    for day, place, fields in ((9, "Oslo", first), (2, "Bergen", {})):
        fields = {"confidence": 0.7, **fields}
        ids.append(
            await add_home(
                database,
                scope,
                place,
                observed_at=ago(days=day),
                **fields,
            )
        )
    return ids[0], ids[1]


async def many_homes(database: Database, scope: TenantScope, count: int) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """As `homes`, for `count` people of whom nothing else is known: as many clusters."""
    return [
        (
            await add_memory(
                database,
                scope,
                f"{name} lives in Oslo",
                subject=name,
                predicate="lives_in",
                object="Oslo",
                observed_at=ago(days=9),
                confidence=0.7,
            ),
            await add_memory(
                database,
                scope,
                f"{name} lives in Bergen",
                subject=name,
                predicate="lives_in",
                object="Bergen",
                observed_at=ago(days=2),
                confidence=0.7,
            ),
        )
        for name in PEOPLE[:count]
    ]


def moved(request_text: str) -> str:
    """The answer that the person a prompt speaks of lives in Bergen now."""
    (name,) = {name for name in PEOPLE if f'"subject": "{name}"' in request_text}
    return items({**UPDATE, "subject": name})
