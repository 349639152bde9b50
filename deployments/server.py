"""A lasting Prefect server over our Postgres: its settings, and the command that runs it in the foreground.

python -m deployments.server                 run it, with its UI, until it is interrupted
python -m deployments.server --print         print its settings as shell assignments
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from flows.environment import prefect_database_url, server_environment
from flows.prefect_schema import prepare
from memory_core.errors import SlowwaveError
from memory_core.settings import Settings

HOST, PORT = "127.0.0.1", 4200

RETENTION = {
    # A task run leaves about 16 KB of events and states behind; nothing else removes them.
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(30 * 86_400),
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "P3D",
}
"""How long flow runs (30 days, in seconds) and events (3 days) are kept: our own tables are the truth."""


def lasting_environment(settings: Settings, database_url: str, *, host: str = HOST, port: int = PORT) -> dict[str, str]:
    """The variables of a lasting server.

    Args:
        database_url: Prefect's database, with the asyncpg driver.
        host: the address it listens on; this machine alone by default.
        port: the port of API and UI. As an option of `prefect server start` the UI would still look at 4200.
    """
    return {
        **server_environment(settings, database_url),
        **RETENTION,
        "PREFECT_SERVER_API_HOST": host,
        "PREFECT_SERVER_API_PORT": str(port),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server in place of this process, or print its settings.

    Returns:
        1 where it cannot be started; otherwise it does not return, or 0 after printing.
    """
    parser = argparse.ArgumentParser(prog="python -m deployments.server", description="A Prefect server for Slowwave.")
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--print", action="store_true", help="print the settings instead of running it")
    given = parser.parse_args(arguments)
    # The server that is to run here is none that exists already.
    os.environ.pop("PREFECT_API_URL", None)
    try:
        settings = Settings.load()
        prepare(settings)
        environment = lasting_environment(settings, prefect_database_url(settings), host=given.host, port=given.port)
    except SlowwaveError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if given.print:
        sys.stdout.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(environment.items()))
        return 0
    os.execve(sys.executable, [sys.executable, "-m", "prefect", "server", "start"], {**os.environ, **environment})


if __name__ == "__main__":
    raise SystemExit(main())
