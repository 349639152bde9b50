"""Without configuration nothing leaves the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.end_to_end

GUARDED = """
import os, sys

def watch(event, given):
    asks = event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
    if asks or (event == "socket.connect" and isinstance(given[1], tuple)):
        os.write(2, f"{event} {given[1:]}".encode())
        os._exit(99)

sys.addaudithook(watch)
"""
"""Ends the process at its first look-up of a host, or connection that is no Unix socket."""

COMMAND = "from memory_core.cli.main import main; main()"


def guarded(code: str, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The code in a process of its own that may reach no host."""
    return subprocess.run(
        [sys.executable, "-c", GUARDED + code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_night_with_the_default_models_asks_no_host(database_url: str, tmp_path: Path) -> None:
    """From two statements to the belief and its recall, with the default embedding and rules."""
    environment = {"SLOWWAVE_HOME": str(tmp_path), "SLOWWAVE_DATABASE_URL": database_url}
    for arguments in (
        ("remember", "Ann lives in Oslo"),
        ("remember", "Ann lives in Bergen"),
        ("harmonize", "--json"),
        ("remember", "Ann lives in Rome"),
        ("harmonize", "--dry-run", "--json"),
        ("nightly", "--json"),
        ("recall", "where does Ann live"),
        ("reflect", "where does Ann live"),
        ("beliefs",),
    ):
        found = guarded(COMMAND, *arguments, "--tenant", "acme", environment=environment)
        assert found.returncode == 0, (arguments, found.stderr)


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', 9))",
        "import urllib.request; urllib.request.urlopen('http://localhost:9')",
    ],
)
def test_the_watch_sees_what_it_should(code: str) -> None:
    """Otherwise the test before this one could not fail."""
    assert guarded(code, environment={}).returncode == 99
