"""Kills nights at every boundary in turn, starts them again, and prints the checksum each ends with.

A process of its own that imports once and forks for each night: a killed night is a process that is really gone.
Boundaries are the moments before each statement and before each commit, found through the engine's events.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psycopg
from sqlalchemy import event, make_url

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate
from memory_core.runs.checksum import table_checksums
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.lemmas import verb_of
from tests.small_tenant import NIGHT, PENDING

SCOPE = TenantScope.root("tenant", "acme")
PARAMETERS = {"pending_connections": PENDING}


def settings_for(url: str, home: str) -> Settings:
    """Settings of one clone."""
    return Settings.load(home=Path(home), database_url=url, embedding="hash:64")


async def sleep_night(settings: Settings, kill_at: int | None) -> int:
    """One night; counts boundaries, and ends the process without warning at boundary `kill_at`."""
    passed = 0

    def boundary(*_: object) -> None:
        nonlocal passed
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    async with Database.open(settings) as database:
        event.listen(database.app.sync_engine, "before_cursor_execute", boundary)
        event.listen(database.app.sync_engine, "commit", boundary)
        documents = await consolidate(database, [SCOPE], "nightly", NIGHT, parameters=PARAMETERS)
        if documents[0]["status"] != "applied":
            raise SystemExit(
                f"the night ended {documents[0]['status']}: {json.dumps(documents[0], default=str)[:4000]}"
            )
    return passed


async def state(settings: Settings) -> dict[str, str]:
    """The scope's digests by table, and how its run ended."""
    async with Database.open(settings) as database, database.scoped(SCOPE) as connection:
        digests = await table_checksums(connection)
        runs = await connection.rows("SELECT status FROM runs WHERE tenant_id = :tenant_id")
        return {**digests, "runs": ",".join(row["status"] for row in runs)}


def forked(settings: Settings, kill_at: int | None) -> tuple[int, int]:
    """Run a night in a forked process; returns its exit status and the boundaries it passed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            passed = asyncio.run(sleep_night(settings, kill_at))
            os.write(writing, str(passed).encode())
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        passed = int(pipe.read() or -1)
    _, status = os.waitpid(child, 0)
    return status, passed


def main(base: str, template: str, home: str, share: int, of: int) -> None:
    """Try every boundary whose number leaves the rest `share` divided by `of`; one JSON line each."""
    url = make_url(base)
    administration = psycopg.connect(
        url.set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True
    )

    def night(kill_at: int | None) -> dict[str, object]:
        name = f"{template}_{share}"
        administration.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        administration.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        settings = settings_for(url.set(database=name).render_as_string(hide_password=False), home)
        status, passed = forked(settings, kill_at)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if killed:
            status, _ = forked(settings, None)
        # The state is read in a fork too: an event loop and its connections do not survive into the next one.
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(asyncio.run(state(settings))).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            found = json.loads(pipe.read() or "null")
        os.waitpid(child, 0)
        return {"kill_at": kill_at, "killed": killed, "status": status, "passed": passed, "state": found}

    # What a night loads when it first needs it is loaded here once, not in every fork.
    verb_of("sleeps")
    undisturbed = night(None)
    sys.stdout.write(json.dumps(undisturbed) + "\n")
    for boundary in range(share, int(str(undisturbed["passed"])), of):
        sys.stdout.write(json.dumps(night(boundary)) + "\n")
        sys.stdout.flush()
    administration.execute(f'DROP DATABASE IF EXISTS "{template}_{share}" WITH (FORCE)')


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
