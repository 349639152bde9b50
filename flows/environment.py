"""Prefect's settings as Slowwave uses it, set before Prefect is imported, because it reads them at import.

Where `PREFECT_API_URL` names a server, flows run against it and only what concerns this process is set. Otherwise
they run against a temporary server (`temporary_server.py`), whose database is `prefect` in the embedded Postgres.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.settings import Settings

PREFECT_DATABASE = "prefect"

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}
"""Nothing reports to anybody."""

BATCHES = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "50",
}
"""The server takes in a task run in a third of the time with these."""


def has_server() -> bool:
    """Whether a person named a Prefect server that flows run against."""
    return bool(os.environ.get("PREFECT_API_URL"))


def prefect_database_url(settings: Settings) -> str:
    """The URL of Prefect's database in the embedded Postgres, which is started; the one you named, where you did.

    It is embedded even where the memories are in a Postgres of yours: Prefect needs rights there that you may not
    want to give it.

    Raises:
        SetupError: the embedded server cannot be started.
    """
    named = os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL")
    if named:
        return named
    address = EmbeddedPostgres(settings.home).start()
    address.ensure_database(PREFECT_DATABASE)
    return address.asyncpg_url(PREFECT_DATABASE)


def client_environment(settings: Settings) -> dict[str, str]:
    """For a process that runs flows: its logs go to stderr and stay short, so that stdout is free for a result."""
    return {
        **QUIET,
        "PREFECT_LOGGING_LEVEL": "DEBUG" if settings.debug else "WARNING",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "memory_core",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "SLOWWAVE_HOME": str(settings.home),
    }


def server_environment(settings: Settings, database_url: str) -> dict[str, str]:
    """For a Prefect server over our Postgres, temporary or lasting."""
    return {
        **QUIET,
        **BATCHES,
        "PREFECT_HOME": str(settings.home / "prefect"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url,
        # `prefect_schema.prepare` has done that, once and not at every start.
        "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
    }


def set_missing(values: Mapping[str, str]) -> None:
    """Set what the environment does not say yet: what a person set stays."""
    for name, value in values.items():
        os.environ.setdefault(name, value)
