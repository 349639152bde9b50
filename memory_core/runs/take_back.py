"""Takes back everything a run did, in one open transaction: for an undo, and for a run that a guard refuses.

What the run changed is restored first, so that nothing rests any more on what it made; then what it made is
removed; then comes back what had to wait for that, such as a summary whose place its successor had taken.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from memory_core.database.registry import REGISTRY, TableEntry
from memory_core.database.scoped import ScopedConnection
from memory_core.runs.remove import remove_made
from memory_core.runs.restore import TAKEN, deleted_rows, reinsert_rows, restore_columns

_TOUCHED = """
SELECT DISTINCT table_name FROM run_changes
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:id AS uuid)
"""

# The triggers that follow up a new memory must not act on one that comes back.
_RESTORING = "SELECT set_config('slowwave.restoring', 'on', true)"


async def take_back(connection: ScopedConnection, run_id: UUID) -> tuple[int, int, list[dict[str, Any]]]:
    """Restore what a run changed and remove what it made, in the open transaction.

    Returns:
        rows restored, rows removed, and what was refused: table, key, column and reason.
    """
    await connection.execute(_RESTORING)
    touched = set((await connection.execute(_TOUCHED, id=run_id)).scalars())
    tables = [item for item in REGISTRY if item.journalled and item.name in touched]
    back = {item.name: _keys(await reinsert_rows(connection, item, run_id)) for item in tables}
    restored: dict[str, set[str]] = {}
    refused: dict[str, list[dict[str, Any]]] = {}
    for item in tables:
        keys, refused[item.name] = await restore_columns(connection, item, run_id)
        restored[item.name] = _keys(keys)
    removed, kept = await remove_made(connection, run_id)
    for item in tables:
        back[item.name] |= _keys(await reinsert_rows(connection, item, run_id))
        if refused[item.name] or back[item.name]:
            keys, refused[item.name] = await restore_columns(connection, item, run_id)
            restored[item.name] |= _keys(keys)
        refused[item.name] += await _lost(connection, item, run_id, back[item.name])
    changed = sum(len(restored[item.name] | back[item.name]) for item in tables)
    return changed, removed, [*(one for item in tables for one in refused[item.name]), *kept]


async def _lost(connection: ScopedConnection, item: TableEntry, run_id: UUID, back: set[str]) -> list[dict[str, Any]]:
    """Deleted rows that did not come back."""
    vectors = "embedding" in item.table.columns
    reason = "vectors are not in the journal; the next run computes it again" if vectors else TAKEN
    return [
        {"table": item.name, "key": key, "column": None, "reason": reason}
        for key in await deleted_rows(connection, item, run_id)
        if json.dumps(key, sort_keys=True) not in back
    ]


def _keys(rows: list[dict[str, Any]]) -> set[str]:
    return {json.dumps(key, sort_keys=True) for key in rows}
