"""The scoped transaction: the only way the core touches a tenant's rows.

It binds one scope for row-level security, passes the scope to every statement as parameters (so that each
query states its own predicate too), and rolls back unless it was committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import CursorResult, RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory_core.database.failures import translated_errors
from memory_core.scope import TenantScope

PATH_LIST_SEPARATOR = "\x1e"
"""ASCII record separator between visible paths in the session setting; refused in scope ids."""

_BIND = text(
    "SELECT set_config('slowwave.tenant_id', :tenant_id, true), set_config('slowwave.scope_path', :scope_path, true), "
    "set_config('slowwave.visible_paths', :visible, true), set_config('slowwave.run_id', :run_id, true), "
    "set_config('slowwave.step', :step, true)"
)
_STEP = text("SELECT set_config('slowwave.step', :step, true)")


@dataclass(frozen=True, slots=True)
class RunBinding:
    """What a run writes is journalled under this.

    Attributes:
        run_id: the run.
        as_of: the run's "now"; what it writes is stamped so.
        step: the step whose changes follow.
    """

    run_id: UUID
    as_of: datetime
    step: str = ""


@lru_cache(maxsize=512)
def _statement(sql: str) -> TextClause:
    return text(sql)


class ScopedConnection:
    """One open transaction, bound to one scope.

    Every statement gets the parameters `:tenant_id`, `:scope_path`, `:visible_paths` (an array) and, inside a
    run, `:run_id` and `:as_of`.
    """

    def __init__(self, connection: AsyncConnection, scope: TenantScope, run: RunBinding | None) -> None:
        self.scope = scope
        self.run = run
        self._connection = connection
        self._parameters: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "scope_path": scope.scope_path,
            "visible_paths": list(scope.visible_paths()),
        }
        if run is not None:
            self._parameters |= {"run_id": run.run_id, "as_of": run.as_of}

    @property
    def as_of(self) -> datetime:
        """The run's "now".

        Raises:
            LookupError: the transaction belongs to no run.
        """
        if self.run is None:
            raise LookupError("This transaction belongs to no run, so it has no as_of.")
        return self.run.as_of

    @property
    def raw(self) -> AsyncConnection:
        """The connection below, for COPY."""
        return self._connection

    async def execute(self, sql: str, **parameters: Any) -> CursorResult[Any]:
        """Run one statement; keyword arguments are its parameters."""
        with translated_errors():
            return await self._connection.execute(_statement(sql), self._given(parameters))

    async def rows(self, sql: str, **parameters: Any) -> Sequence[RowMapping]:
        """All rows as mappings."""
        return (await self.execute(sql, **parameters)).mappings().all()

    async def row(self, sql: str, **parameters: Any) -> RowMapping | None:
        """The only row as a mapping, or None."""
        return (await self.execute(sql, **parameters)).mappings().one_or_none()

    async def scalar(self, sql: str, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        return (await self.execute(sql, **parameters)).scalar()

    async def enter_step(self, step: str) -> None:
        """Name the step whose changes follow, for the journal."""
        with translated_errors():
            await self._connection.execute(_STEP, {"step": step})

    async def commit(self) -> None:
        """Make the transaction durable; without it everything is rolled back."""
        with translated_errors():
            await self._connection.commit()

    def _given(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._parameters, **parameters}


@asynccontextmanager
async def scoped_transaction(
    engine: AsyncEngine, scope: TenantScope, run: RunBinding | None = None, *, isolation: str = "READ COMMITTED"
) -> AsyncIterator[ScopedConnection]:
    """Open a transaction bound to a scope; leaving it without `commit()` rolls back."""
    with translated_errors():
        async with engine.connect() as connection:
            if isolation != "READ COMMITTED":
                await connection.execution_options(isolation_level=isolation)
            await connection.execute(
                _BIND,
                {
                    "tenant_id": scope.tenant_id,
                    "scope_path": scope.scope_path,
                    "visible": PATH_LIST_SEPARATOR.join(scope.visible_paths()),
                    "run_id": str(run.run_id) if run else "",
                    "step": run.step if run else "",
                },
            )
            yield ScopedConnection(connection, scope, run)
