"""A night that is killed at any moment and started again ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_core.database.embedded import ServerAddress
from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.conftest import clone, drop
from tests.small_tenant import fill_small_tenant

PROCESSES = 2


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_killed_at_every_boundary(server: ServerAddress, tmp_path: Path) -> None:
    """Kill -9 before every statement and every commit in turn: each time the checksum is an undisturbed run's (F30)."""
    template = "killed_nights"
    drop(server, template)
    clone(server, template)
    settings = Settings.load(home=tmp_path, database_url=server.url(template), embedding="hash:64")
    async with Database.open(settings) as database:
        await fill_small_tenant(database, TenantScope.root("tenant", "acme"))

    def worker(share: int) -> list[dict[str, Any]]:
        finished = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.faults.night_worker",
                server.url("postgres"),
                template,
                str(tmp_path),
                str(share),
                str(PROCESSES),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr[-4000:]
        return [json.loads(line) for line in finished.stdout.splitlines()]

    shares = await asyncio.gather(*(asyncio.to_thread(worker, share) for share in range(PROCESSES)))
    drop(server, template)
    undisturbed = shares[0][0]
    assert undisturbed["status"] == 0
    expected = {table: digest for table, digest in undisturbed["state"].items() if table != "runs"}
    nights = [night for share in shares for night in share[1:]]
    assert len(nights) == undisturbed["passed"] > 50
    for night in nights:
        assert night["killed"], f"boundary {night['kill_at']} was not reached"
        assert night["status"] == 0, f"the night killed at boundary {night['kill_at']} did not start again"
        state = dict(night["state"])
        # Killed after its last commit, a night is over; starting it again is a second one that changes nothing.
        assert set(state.pop("runs").split(",")) == {"applied"}, f"killed at boundary {night['kill_at']}"
        assert state == expected, f"killed at boundary {night['kill_at']}"
