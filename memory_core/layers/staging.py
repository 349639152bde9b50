"""Many rows at once into a table under row-level security.

Postgres refuses COPY FROM into such a table, so rows are copied into a temporary table of the session and inserted
from there as the app role, whose policies check each one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import psycopg
from sqlalchemy.exc import DataError, DBAPIError, OperationalError

from memory_core.database.failures import translated_errors
from memory_core.database.scoped import ScopedConnection


async def staged_insert(
    connection: ScopedConnection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    conflict: str = "",
    returning: str = "",
) -> list[Any]:
    """Insert rows of the connection's own scope; `tenant_id` and `scope_path` are added.

    Args:
        table: a table's name; ours, never a caller's text. Likewise `columns`, `conflict` and `returning`.
        columns: the columns of each row, in order.
        rows: values as psycopg adapts them; JSON as text, a vector as its text form.
        conflict: an ON CONFLICT clause.
        returning: one column to give back for each row that was inserted.

    Returns:
        the `returning` column of the rows that were inserted; empty where none was asked for.
    """
    names = ", ".join(columns)
    stage = f"stage_{table}_{crc32(names.encode()):08x}"
    # Without constraints, and kept by the session: the catalogue does not grow with every batch.
    await connection.execute(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {stage} ON COMMIT DELETE ROWS AS "
        f"SELECT {names} FROM slowwave.{table} WITH NO DATA"
    )
    count = await _copy(connection, f"COPY pg_temp.{stage} ({names}) FROM STDIN", rows)
    if not count:
        return []
    result = await connection.execute(
        f"INSERT INTO slowwave.{table} (tenant_id, scope_path, {names}) "
        f"SELECT CAST(:tenant_id AS text), CAST(:scope_path AS text), {names} FROM pg_temp.{stage} {conflict}"
        + (f" RETURNING {returning}" if returning else "")
    )
    inserted = list(result.scalars()) if returning else []
    await connection.execute(f"DELETE FROM pg_temp.{stage}")
    return inserted


def vector_text(vector: Iterable[float]) -> str:
    """A vector in pgvector's text form; every bit of a float32 comes back as it went in."""
    return f"[{','.join(map(repr, vector))}]"


async def _copy(connection: ScopedConnection, statement: str, rows: Iterable[Sequence[Any]]) -> int:
    raw = (await connection.raw.get_raw_connection()).driver_connection
    assert isinstance(raw, psycopg.AsyncConnection)
    count = 0
    with translated_errors():
        try:
            async with raw.cursor() as cursor, cursor.copy(statement) as copy:
                for row in rows:
                    await copy.write_row(row)
                    count += 1
        except psycopg.Error as error:
            # As SQLAlchemy would wrap it, so that one place decides what can be tried again.
            kind: type[DBAPIError] = (
                OperationalError
                if isinstance(error, psycopg.OperationalError)
                else DataError
                if isinstance(error, psycopg.DataError)
                else DBAPIError
            )
            raise kind(statement, None, error) from error
    return count
