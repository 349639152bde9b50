"""The peer's own benchmark, run in the environment it was installed in, against the same Postgres server.

The peer is symfonic-core's SleepConsolidator. Its benchmark prints one JSON document; only the seven phases that both
systems have are added up.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text

SEVEN = ("1_strengthen", "1.5_cooccurrence", "2_tag_risk", "2.5_pending", "3_prune", "4_meta", "5_soul")


def measure_peer(python: str, script: Path, url: str, memories: int, *, timeout: int) -> dict[str, Any]:
    """Seconds of the peer's seven phases on a tenant of the same shape.

    Args:
        python: the interpreter of the environment in which the peer is installed.
        script: the peer's benchmark.
        url: a scratch database on the server that Slowwave is measured on.
        timeout: seconds after which the peer is cut; its figure is then a lower bound (`cut` is true).

    Raises:
        RuntimeError: the peer's benchmark failed; its last words are in the message.
    """
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    engine.dispose()
    address = make_url(url)
    dsn = address.set(drivername="postgresql").render_as_string(hide_password=False)
    finished = subprocess.run(
        [
            python,
            str(script),
            "--backend",
            "postgres",
            "--nodes",
            str(memories),
            "--dsn",
            dsn,
            "--timeout",
            str(timeout),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0 or not finished.stdout.strip():
        raise RuntimeError(f"The peer's benchmark failed: {finished.stderr.strip()[-2000:]}")
    run = json.loads(finished.stdout)["runs"][0]
    by_phase = {name: run["phases"][name]["wall_s"] for name in SEVEN if "wall_s" in run["phases"].get(name, {})}
    return {
        "seconds": round(sum(by_phase.values()), 3),
        "by_phase": by_phase,
        "statements": sum(
            sum(run["phases"][name]["calls"].get(kind, 0) for kind in ("sql", "resets")) for name in by_phase
        ),
        "cut": bool(run["timed_out"]),
    }
