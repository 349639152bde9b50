"""Turns what the driver raises into Slowwave's own errors, by SQLSTATE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from memory_core.database.ddl import APP_ROLE, OPERATOR_ROLE, OWNER_ROLE
from memory_core.errors import DatabaseUnavailable, MissingRight, SchemaOutdated, SlowwaveError, TransactionConflict

_CONFLICTS = {
    "40001": "Another transaction changed the same rows.",
    "40P01": "Two transactions waited for each other.",
    "55P03": "A row stayed locked by another transaction for longer than lock_timeout.",
    "57014": "A statement ran longer than statement_timeout.",
}


GRANT_HINT = (
    f"Let an administrator run: GRANT {OWNER_ROLE}, {APP_ROLE}, {OPERATOR_ROLE} TO the role of SLOWWAVE_DATABASE_URL."
)
_ABSENT_ROLE = re.compile(rf'role "({OWNER_ROLE}|{APP_ROLE}|{OPERATOR_ROLE})" does not exist')


def translated(error: DBAPIError) -> SlowwaveError | None:
    """Slowwave's error for a driver's error; None where the failure is not one the caller can act on."""
    state = getattr(error.orig, "sqlstate", None)
    detail = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else ""
    if state in _CONFLICTS:
        return TransactionConflict(f"{_CONFLICTS[state]} ({detail})", sqlstate=state)
    # What is refused while a connection is made comes without SQLSTATE: only its text tells it from a lost server.
    if state == "42501" or (state is None and "permission denied to set role" in detail):
        return MissingRight(f"The database refused: {_after_fatal(detail)}.", hint=GRANT_HINT, sqlstate=state)
    if state is None and _ABSENT_ROLE.search(detail):
        return SchemaOutdated(
            f"The database is not prepared: {_after_fatal(detail)}.", hint="Run `slowwave setup`.", sqlstate=state
        )
    if state in ("42P01", "42883", "3F000", "42704"):
        return SchemaOutdated(
            f"The database lacks something Slowwave needs: {detail}.", hint="Run `slowwave setup`.", sqlstate=state
        )
    lost = state is None and isinstance(error, (OperationalError, InterfaceError))
    if error.connection_invalidated or lost or (state or "").startswith(("08", "53", "57P")):
        return DatabaseUnavailable(
            f"The connection to the database failed: {detail or error}.",
            hint="`slowwave doctor` says which database is used.",
            sqlstate=state,
        )
    return None


def _after_fatal(detail: str) -> str:
    """The server's own words, without what the driver says before them."""
    return detail.rpartition("FATAL:")[2].strip()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Slowwave's errors instead of the driver's where they say something a caller can act on."""
    try:
        yield
    except DBAPIError as error:
        ours = translated(error)
        if ours is None:
            raise
        raise ours from error
    except PoolTimeout as error:
        raise DatabaseUnavailable(
            "Every connection of this process is in use.",
            hint="Raise SLOWWAVE_POOL_SIZE, or lower SLOWWAVE_SCOPES_AT_ONCE.",
        ) from error
