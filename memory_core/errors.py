"""Every error Slowwave raises on purpose, as one tree.

    SlowwaveError
    ├── TransientError                 worth a retry: the same call may work in a moment
    │   ├── DatabaseUnavailable        connection lost, server starting or stopping
    │   ├── TransactionConflict        serialisation failure, deadlock, lock timeout
    │   ├── ModelTimeout               the model did not answer in time
    │   ├── ModelRateLimited           the provider asked us to wait (carries retry_after seconds)
    │   └── ModelUnreachable           connection refused, reset, or a 5xx answer
    └── PermanentError                 a retry would fail the same way
        ├── InvalidInput               what the caller gave cannot be used (exit code 2)
        │   ├── InvalidScope
        │   ├── InvalidSettings
        │   ├── InvalidTime
        │   └── NotFound
        ├── SetupError                 the machine or the database is not ready
        │   ├── DataFolderNotWritable
        │   ├── EmbeddedServerFailed
        │   ├── PostgresTooOld
        │   ├── PgvectorMissing
        │   ├── MissingRight
        │   ├── SchemaOutdated
        │   └── DependencyMissing
        ├── ScopeBusy                  another run holds the scope
        ├── LaterRunsExist             the scope has an applied run with a later as_of
        ├── GuardTripped               a run would retire or hide too much
        ├── UndoRefused                a run cannot be undone
        ├── EmbeddingMismatch          a vector of another model or dimension
        ├── ModelRejected              the provider refused the call (bad key, unknown model)
        ├── ModelOutputInvalid         the answer cannot be used as it is
        └── BudgetExhausted            calls, tokens or money of the tenant are spent

Errors carry their data as attributes and survive pickling, because Prefect ships them between processes.
"""

from __future__ import annotations

from typing import Any


class SlowwaveError(Exception):
    """Something went wrong in Slowwave.

    Args:
        message: what is wrong and where, as a sentence. The class docstring's first line where empty.
        hint: what the reader can do about it, as a sentence.
        data: facts a program may want (ids, counts, names); JSON-able values only.
    """

    def __init__(self, message: str = "", *, hint: str = "", **data: Any) -> None:
        self.message = message or (type(self).__doc__ or type(self).__name__).strip().splitlines()[0]
        self.hint = hint
        self.data = data
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.data)

    def to_dict(self) -> dict[str, Any]:
        """The error as a JSON-able document: `error` (class name), `message`, `hint`, and its data."""
        return {"error": type(self).__name__, "message": self.message, "hint": self.hint, **self.data}


def _rebuild(kind: type[SlowwaveError], message: str, hint: str, data: dict[str, Any]) -> SlowwaveError:
    return kind(message, hint=hint, **data)


class TransientError(SlowwaveError):
    """Something failed that may work when it is tried again."""


class DatabaseUnavailable(TransientError):
    """The database cannot be reached."""


class TransactionConflict(TransientError):
    """Another transaction got in the way."""


class ModelTimeout(TransientError):
    """The model did not answer in time."""


class ModelRateLimited(TransientError):
    """The model provider asked us to slow down."""

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider asked us to wait; None where it did not say."""
        value = self.data.get("retry_after")
        return None if value is None else float(value)


class ModelUnreachable(TransientError):
    """The model provider cannot be reached."""


class PermanentError(SlowwaveError):
    """Something failed that will fail the same way again."""


class InvalidInput(PermanentError):
    """What was given cannot be used."""


class InvalidScope(InvalidInput):
    """The scope is not valid."""


class InvalidSettings(InvalidInput):
    """A setting is not valid."""


class InvalidTime(InvalidInput):
    """The time is not valid."""


class NotFound(InvalidInput):
    """There is nothing by that name here."""


class SetupError(PermanentError):
    """The machine or the database is not ready for Slowwave."""


class DataFolderNotWritable(SetupError):
    """The data folder cannot be written."""


class EmbeddedServerFailed(SetupError):
    """The embedded Postgres did not start."""


class PostgresTooOld(SetupError):
    """The Postgres server is too old."""


class PgvectorMissing(SetupError):
    """The pgvector extension is absent or too old."""


class MissingRight(SetupError):
    """The database role lacks a right that Slowwave needs."""


class SchemaOutdated(SetupError):
    """The database schema does not match this version of Slowwave."""


class DependencyMissing(SetupError):
    """An optional package is not installed."""


class ScopeBusy(PermanentError):
    """Another run holds this scope."""


class LaterRunsExist(PermanentError):
    """The scope has an applied run with a later time."""


class GuardTripped(PermanentError):
    """The run would take away more than a guard allows."""


class UndoRefused(PermanentError):
    """The run cannot be undone."""


class EmbeddingMismatch(PermanentError):
    """A vector does not belong to the current embedding model."""


class ModelRejected(PermanentError):
    """The model provider refused the call."""


class ModelOutputInvalid(PermanentError):
    """The model's answer cannot be used."""

    def to_dict(self) -> dict[str, Any]:
        """As the other errors, without the text of the answer, which belongs into no ledger and no report."""
        return {name: value for name, value in super().to_dict().items() if name != "answer"}


class BudgetExhausted(PermanentError):
    """The tenant's budget is spent."""
