"""What the tests of the embedded Postgres ask a server, and as whom."""

from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest

from memory_core.database.embedded import EmbeddedPostgres, ServerAddress

ORDINARY_USER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def query(address: ServerAddress, statement: str, database: str = "postgres") -> Any:
    """The first column of the first row."""
    with psycopg.connect(address.url(database, driver="postgresql"), autocommit=True) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def pid_of(server: EmbeddedPostgres) -> int:
    """The pid of a server that must be running."""
    pid = server.status().pid
    assert pid is not None
    return pid
