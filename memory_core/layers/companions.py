"""Rows that a memory brings with it: a reminder's trigger, a procedure's skill, a correction of the profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_core.database.scoped import ScopedConnection
from memory_core.layers.known import PlannedWrite
from memory_core.layers.records import utc_moment
from memory_core.layers.staging import staged_insert

SKILL_NAME_LENGTH = 80


async def write_companions(connection: ScopedConnection, writes: Sequence[PlannedWrite], now: datetime) -> None:
    """Write triggers, skills and profile corrections of new memories.

    Args:
        writes: new memories only.
        now: the time of memories that say none.
    """
    await _triggers(connection, [write for write in writes if write.memory.layer == "prospective"], now)
    await _skills(connection, [write for write in writes if write.memory.layer == "procedural"], now)
    await _corrections(connection, [write for write in writes if write.memory.source == "user"], now)


async def _triggers(connection: ScopedConnection, writes: Sequence[PlannedWrite], now: datetime) -> None:
    rows = []
    for write in writes:
        properties = write.memory.properties
        due, condition, recurrence = (properties.get(name) for name in ("due_at", "condition", "recurrence"))
        if due is not None or condition or recurrence:
            rows.append(
                (
                    connection.scope.derived_id("trigger", str(write.id)),
                    write.id,
                    _words(condition) or "",
                    None if due is None else utc_moment(due),
                    _words(recurrence),
                    write.memory.recorded(now),
                )
            )
    await staged_insert(
        connection,
        "triggers",
        ("id", "memory_id", "condition", "due_at", "recurrence", "recorded_at"),
        rows,
        conflict="ON CONFLICT DO NOTHING",
    )


async def _skills(connection: ScopedConnection, writes: Sequence[PlannedWrite], now: datetime) -> None:
    wanted = [write for write in writes if write.memory.properties.get("steps")]
    if not wanted:
        return
    names = [write.memory.label or write.memory.content[:SKILL_NAME_LENGTH] for write in wanted]
    owners: dict[str, UUID | None] = {
        row["name"]: row["memory_id"]
        for row in await connection.rows(
            "SELECT name, memory_id FROM skills "
            "WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND name = ANY(CAST(:names AS text[]))",
            names=names,
        )
    }
    rows = {}
    for write, name in zip(wanted, names, strict=True):
        own = {None, write.id, write.previous.id if write.previous else None}
        # Two procedures under one label are two skills; a new version of a procedure is the same one.
        unique = name if owners.get(name) in own else f"{name} ({write.id.hex[-8:]})"
        owners[unique] = write.id
        active = write.memory.properties.get("active") is True
        rows[unique] = (
            connection.scope.derived_id("skill", unique),
            write.id,
            unique,
            write.memory.content,
            json.dumps(write.memory.properties["steps"]),
            "approved" if active else "draft",
            active,
            write.memory.recorded(now),
        )
    await staged_insert(
        connection,
        "skills",
        ("id", "memory_id", "name", "description", "steps", "status", "active", "recorded_at"),
        rows.values(),
        conflict="ON CONFLICT (tenant_id, scope_path, name) DO UPDATE SET memory_id = excluded.memory_id, "
        "description = excluded.description, steps = excluded.steps, status = excluded.status, "
        "active = excluded.active, recorded_at = excluded.recorded_at",
    )


async def _corrections(connection: ScopedConnection, writes: Sequence[PlannedWrite], now: datetime) -> None:
    rows = []
    for write in writes:
        soul = write.memory.properties.get("soul")
        if soul is not None:
            name = soul["field"].strip()
            rows.append(
                (
                    connection.scope.derived_id("correction", str(write.id), name),
                    write.id,
                    "user",
                    write.memory.observed(now),
                    json.dumps({"fields": {name: soul["value"]}}),
                )
            )
    await staged_insert(
        connection,
        "corrections",
        ("id", "memory_id", "who", "at", "what"),
        rows,
        conflict="ON CONFLICT DO NOTHING",
    )


def _words(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value)
