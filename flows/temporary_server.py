"""A Prefect server that lives exactly as long as the process it serves.

Prefect's own temporary server outlives a process that is terminated or killed, and goes on holding its memory and
its connections. This one is the same server program, but reads a pipe that only its parent holds: when that ends,
however the parent ended, the server ends.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING

from memory_core.errors import SetupError

if TYPE_CHECKING:
    import uvicorn

HOST = "127.0.0.1"
START_SECONDS = 120.0
STOP_SECONDS = 8.0

_AS_PREFECT_STARTS_IT = {
    # What Prefect sets for its own temporary server: no UI, and only the services that record what happens.
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
}


class TemporaryServer:
    """A running server of this process's own.

    Args:
        environment: its settings beside those of this process.

    Raises:
        SetupError: the process did not start.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        own = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
        # A session of its own: Ctrl-C is for the flow, which then still has a server to tell.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flows.temporary_server"],
            env={**own, **environment, **_AS_PREFECT_STARTS_IT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.stop)
        assert self.process.stdout is not None
        port = self.process.stdout.readline().strip().decode()
        self.process.stdout.close()
        if not port:
            raise _did_not_start(f"its process ended with code {self.process.wait()}")
        self.url = f"http://{HOST}:{port}/api"

    def wait(self) -> None:
        """Wait until it answers; the port listens from the beginning, so one question is enough.

        Raises:
            SetupError: it does not.
        """
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=START_SECONDS):
                return
        except (OSError, HTTPException) as error:
            raise _did_not_start(str(error)) from error

    def stop(self) -> None:
        """End it; it is given time to write down what it was told."""
        atexit.unregister(self.stop)
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS + 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _did_not_start(why: str) -> SetupError:
    return SetupError(
        f"The temporary Prefect server did not start: {why}.",
        hint="Run the same with --debug to see its messages, or without --flow to do it in process.",
    )


def _serve() -> None:
    """Serve until standard input ends: the body of the child process."""
    listener = socket.create_server((HOST, 0), backlog=128)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    # Nobody reads the pipe any more; what the server may still print belongs to the messages.
    os.dup2(2, 1)

    import uvicorn

    config = uvicorn.Config(
        "prefect.server.api.server:create_app",
        factory=True,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
    threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    server.run(sockets=[listener])


def _end_with_parent(server: uvicorn.Server) -> None:
    while os.read(0, 1024):
        pass
    if server.started:
        server.should_exit = True
        time.sleep(STOP_SECONDS)
    # Not started yet, and so with nothing to write down; or it takes too long.
    os._exit(1)


if __name__ == "__main__":
    _serve()
