"""The undo checksum: one number over everything a run may change in a scope.

It covers the checksummed tables of the registry except `version` (never falls) and wall-clock columns, so that
undoing a run restores it, and the same night run twice from the same state gives the same one.
"""

from __future__ import annotations

import hashlib

from memory_core.database.registry import REGISTRY, WALL_TIME_COLUMNS, TableEntry
from memory_core.database.scoped import ScopedConnection

_LEFT_OUT = sorted(WALL_TIME_COLUMNS | {"version"})


def _query(item: TableEntry) -> str:
    left_out = ", ".join(f"'{name}'" for name in _LEFT_OUT)
    return f"""
SELECT coalesce(
         encode(sha256(convert_to(string_agg(row, E'\\n' ORDER BY row COLLATE "C"), 'UTF8')), 'hex'), ''
       )
FROM (
  SELECT (to_jsonb(t) - ARRAY[{left_out}])::text AS row FROM {item.name} t
  WHERE tenant_id = :tenant_id AND scope_path = :scope_path
) AS rows
"""


async def checksum(connection: ScopedConnection) -> str:
    """The scope's checksum: 64 hexadecimal digits."""
    parts = [f"{name}={digest}" for name, digest in (await table_checksums(connection)).items()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


async def table_checksums(connection: ScopedConnection) -> dict[str, str]:
    """The digest of each table, by name: says where two states differ."""
    return {item.name: await connection.scalar(_query(item)) for item in REGISTRY if item.checksummed}
