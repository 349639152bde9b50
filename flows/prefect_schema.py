"""Creates and upgrades the schema of Prefect's own database; quick where that was done before.

A stamp in the data folder keeps which Prefect brought which database to which revision. It counts only while the
database says the same, so that a dropped or replaced database is noticed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock

from flows.environment import has_server, prefect_database_url, server_environment
from memory_core.errors import DatabaseUnavailable, SetupError
from memory_core.settings import Settings

STAMP_FILE = "schema.json"
_UPGRADE = ("-m", "prefect", "server", "database", "upgrade", "--yes")
_LAST_LINES = 15


def prepare(settings: Settings) -> dict[str, Any]:
    """Bring Prefect's database to the schema of the installed Prefect.

    Returns:
        `prefect` (its version), `revision`, `prepared` (whether this call did it) and `why` nothing was done.

    Raises:
        DatabaseUnavailable: Prefect's database does not answer.
        SetupError: the upgrade failed; the message carries its last lines.
    """
    installed = version("prefect")
    if has_server():
        why = "PREFECT_API_URL names a server, which has its own database"
        return {"prefect": installed, "revision": None, "prepared": False, "why": why}
    folder = settings.home / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "schema.lock"):
        url = prefect_database_url(settings)
        revision = _revision(url)
        if revision is not None and _stamp(folder) == {"prefect": installed, "revision": revision}:
            why = "it was prepared before"
            return {"prefect": installed, "revision": revision, "prepared": False, "why": why}
        _upgrade(settings, url)
        revision = _revision(url)
        (folder / STAMP_FILE).write_text(json.dumps({"prefect": installed, "revision": revision}), encoding="utf-8")
    return {"prefect": installed, "revision": revision, "prepared": True, "why": ""}


def _upgrade(settings: Settings, url: str) -> None:
    # In a process of its own: Prefect's server takes seconds to import, and keeps its settings from then on.
    environment = {**os.environ, **server_environment(settings, url)}
    done = subprocess.run([sys.executable, *_UPGRADE], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise SetupError(
            f"Prefect's database could not be prepared: {lines}",
            hint="Prefect needs Postgres 14.9 or newer with the extension pg_trgm; the embedded one has it.",
        )


def _revision(url: str) -> str | None:
    """The revision the database is at; None where Prefect was never set up there, or it is not a Postgres."""
    import psycopg
    from sqlalchemy import make_url

    address = make_url(url)
    if address.get_backend_name() != "postgresql":
        return None
    dsn = address.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(dsn, connect_timeout=10) as connection:
            if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"Prefect's database cannot be reached: {error}", hint="`slowwave doctor` says which databases are used."
        ) from error
    return None if row is None else str(row[0])


def _stamp(folder: Path) -> Any:
    try:
        return json.loads((folder / STAMP_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
