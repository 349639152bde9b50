"""Reads a large result in pages through one server-side cursor, so that memory does not grow with the scope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import RowMapping, text

from memory_core.database.failures import translated_errors
from memory_core.database.scoped import ScopedConnection

_PLAN = "SELECT set_config('cursor_tuple_fraction', '1', true), set_config('enable_nestloop', :nested_loops, true)"


async def pages(
    connection: ScopedConnection, sql: str, *, page_size: int, **parameters: Any
) -> AsyncIterator[Sequence[RowMapping]]:
    """The rows of one query, page by page; other statements may run between two pages.

    The query sees the transaction as it was when it began. It gets `:tenant_id`, `:scope_path`, `:run_id` and `:as_of`
    beside its own parameters.
    """
    assert connection.run is not None
    # A cursor is planned for its first tenth by default; these are read to the end. Their joins go over whole scopes,
    # and where statistics lag behind, as inside one night, a nested loop would make them quadratic.
    await connection.execute(_PLAN, nested_loops="off")
    given = {
        "tenant_id": connection.scope.tenant_id,
        "scope_path": connection.scope.scope_path,
        "run_id": connection.run.run_id,
        "as_of": connection.as_of,
        **parameters,
    }
    with translated_errors():
        async with connection.raw.stream(text(sql), given, execution_options={"yield_per": page_size}) as result:
            # The plan is made; other statements of the step find few rows by their keys again.
            await connection.execute(_PLAN, nested_loops="on")
            async for page in result.mappings().partitions(page_size):
                yield page
