"""Puts one row into every registered table of a scope, with values made from the columns' types.

A new table is filled without being named here, so that the security tests cannot forget it.
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

from memory_core.database.engine import Database
from memory_core.database.registry import REGISTRY
from memory_core.database.scoped import ScopedConnection
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, add_scope

# Values that a CHECK prescribes; everything else is made from the column's type.
PRESCRIBED: dict[tuple[str, str], Any] = {
    ("runs", "kind"): "sleep",
    ("runs", "status"): "applied",
    ("run_steps", "status"): "done",
    ("run_changes", "operation"): "update",
    ("memory_accesses", "kind"): "recall",
    ("soul_schemas", "type"): "str",
    ("harmonic_beliefs", "status"): "held",
    ("belief_evidence", "role"): "supports",
    ("decisions", "verdict"): "decided",
    ("memory_summaries", "cited"): '["a memory"]',
    ("memory_resonance_log", "status"): "harmonized",
    ("model_attempts", "outcome"): "usable",
}


async def fill_every_table(database: Database, scope: TenantScope) -> None:
    """One row at least in each registered table of the scope."""
    await add_scope(database, scope)
    first = await add_memory(database, scope, f"a memory of {scope}")
    second = await add_memory(database, scope, f"another memory of {scope}")
    known: dict[str, Any] = {"memory_id": first, "source_id": first, "target_id": second}
    async with database.scoped(scope) as connection:
        for item in REGISTRY:
            if await connection.scalar(f"SELECT count(*) FROM {item.name} WHERE tenant_id = :tenant_id") == 0:
                await _insert(connection, item.table, known)
            else:
                await _insert_if_absent(connection, item.table, known)
            if item.name == "runs":
                known["run_id"] = await connection.scalar(
                    "SELECT id FROM runs WHERE tenant_id = :tenant_id AND scope_path = :scope_path LIMIT 1"
                )
            if item.name == "harmonic_beliefs":
                known["belief_id"] = await connection.scalar(
                    "SELECT belief_id FROM harmonic_beliefs "
                    "WHERE tenant_id = :tenant_id AND scope_path = :scope_path LIMIT 1"
                )
        await connection.commit()


async def _insert_if_absent(connection: ScopedConnection, table: Table, known: dict[str, Any]) -> None:
    if "scope_path" in table.columns and not await connection.scalar(
        f"SELECT count(*) FROM {table.name} WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
    ):
        await _insert(connection, table, known)


async def _insert(connection: ScopedConnection, table: Table, known: dict[str, Any]) -> None:
    given = {
        column.name: PRESCRIBED.get((table.name, column.name), known.get(column.name, _value(column)))
        for column in table.columns
        if column.name not in ("tenant_id", "scope_path") and _needed(column)
    }
    owner = ("tenant_id", "scope_path") if "scope_path" in table.columns else ("tenant_id",)
    names = ", ".join((*owner, *given))
    values = ", ".join((*(f":{name}" for name in owner), *(_cast(table.columns[name]) for name in given)))
    await connection.execute(f"INSERT INTO {table.name} ({names}) VALUES ({values})", **given)


def _type(column: Column[Any]) -> str:
    return column.type.compile(postgresql.dialect()).partition("(")[0].partition(" ")[0]


def _needed(column: Column[Any]) -> bool:
    return not column.nullable and column.server_default is None and column.identity is None


def _cast(column: Column[Any]) -> str:
    kind = _type(column)
    if kind in ("JSONB", "VECTOR"):
        return f"CAST(:{column.name} AS {kind})"
    return f":{column.name}"


def _value(column: Column[Any]) -> Any:
    kind = _type(column)
    if kind == "VECTOR":
        return "[1]"
    if kind == "JSONB":
        return "{}"
    if kind == "UUID":
        return uuid.uuid4()
    if kind == "TIMESTAMP":
        return NIGHT
    if kind in ("INTEGER", "BIGINT"):
        return 1
    if kind == "DOUBLE":
        return 0.5
    return "x"
