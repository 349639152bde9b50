"""Flows from a shell, as the command line starts them: a process of its own without any Prefect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from flows import prefect_schema
from flows.environment import has_server
from flows.runner import run
from memory_core.database.embedded import ServerAddress
from memory_core.database.engine import Database
from memory_core.errors import DatabaseUnavailable, InvalidInput, SetupError
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory, ago

ROOT = Path(__file__).parents[2]

_PROGRAM = """
import json, sys
from flows.runner import run
from memory_core.errors import SlowwaveError
answers = []
for request in json.loads(sys.argv[1]):
    try:
        answers.append(run(request))
    except SlowwaveError as error:
        answers.append(error.to_dict())
    answers.append("prefect" in sys.modules)
print(json.dumps(answers))
"""


def ask(settings: Settings, home: Path, *requests: dict[str, Any]) -> tuple[list[Any], str]:
    """The answers to the requests, each followed by whether Prefect was imported by then; and what went to stderr."""
    environment = {
        **os.environ,
        "SLOWWAVE_HOME": str(home),
        "SLOWWAVE_DATABASE_URL": settings.database_url,
        "SLOWWAVE_EMBEDDING": settings.embedding,
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(requests)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


async def test_a_night_from_a_shell_without_a_server(
    server: ServerAddress, server_home: Path, settings: Settings, database: Database, scope: TenantScope
) -> None:
    """The temporary server works over the embedded Postgres; stdout stays clean and its record is complete."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2),))
    night = {"command": "nightly", "tenant": "acme", "scope": None, "as_of": NIGHT.isoformat(), "dry_run": False}
    answers, logs = ask(
        settings,
        server_home,
        {"command": "prepare"},
        {**night, "parameters": {"accept": True}},
        {**night, "tenant": "nobody"},
        {**night, "as_of": "2026-03-01T03:00:00"},
    )
    prepared, with_prefect, documents, _, unknown, _, naive, _ = answers
    assert prepared["revision"]
    assert not with_prefect
    assert [document["status"] for document in documents] == ["applied"]
    assert unknown["error"] == "NotFound"
    assert naive["error"] == "InvalidInput"
    assert "as_of" in naive["message"]
    assert "Traceback" not in logs
    with psycopg.connect(server.url("prefect", "postgresql")) as connection:
        rows = connection.execute(
            "SELECT t.name, t.state_type FROM task_run t JOIN flow_run f ON f.id = t.flow_run_id "
            "WHERE f.parameters -> 'parameters' ->> 'accept' = 'true'"
        ).fetchall()
    assert len(rows) == 17
    assert {state for _, state in rows} == {"COMPLETED"}
    async with database.scoped(scope) as connection:
        run_row = await connection.row("SELECT requested_by, flow_run_id FROM runs WHERE tenant_id = :tenant_id")
    assert run_row is not None
    assert run_row["requested_by"] == "person"
    assert run_row["flow_run_id"]


def test_prefects_schema_is_prepared_once(server: ServerAddress, server_home: Path) -> None:
    """A second set-up finds the stamp and does nothing; another Prefect, or another database, is prepared anew."""
    settings = Settings.load(home=server_home)
    first = prefect_schema.prepare(settings)
    again = prefect_schema.prepare(settings)
    assert again == {**first, "prepared": False, "why": "it was prepared before"}
    stamp = server_home / "prefect" / prefect_schema.STAMP_FILE
    stamp.write_text(json.dumps({"prefect": "3.0.0", "revision": first["revision"]}))
    assert prefect_schema.prepare(settings)["prepared"]
    assert prefect_schema.prepare(settings) == again


def test_a_database_that_cannot_carry_prefect_is_an_error_with_its_reason(
    server: ServerAddress, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed upgrade is reported with what Prefect said, and leaves no stamp; so is a server that is not there."""
    home = tmp_path / "home"
    in_the_way = database_url.replace("+psycopg", "")
    with psycopg.connect(in_the_way, autocommit=True) as connection:
        connection.execute("CREATE TABLE flow (id int)")
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_CONNECTION_URL", database_url.replace("+psycopg", "+asyncpg"))
    with pytest.raises(SetupError, match='relation "flow" already exists'):
        prefect_schema.prepare(Settings.load(home=home))
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_CONNECTION_URL", "postgresql+asyncpg://nobody@127.0.0.1:1/prefect")
    with pytest.raises(DatabaseUnavailable):
        prefect_schema.prepare(Settings.load(home=home))
    assert not (home / "prefect" / prefect_schema.STAMP_FILE).exists()


def test_a_server_of_your_own_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PREFECT_API_URL nothing is prepared, and the answer says why."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert has_server()
    answer = run({"command": "prepare", "home": str(tmp_path)})
    assert not answer["prepared"]
    assert "PREFECT_API_URL" in answer["why"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/api", "no-address"])
def test_a_server_of_your_own_that_does_not_answer_is_said(
    settings: Settings, server_home: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The address and what to do about it, before any flow begins."""
    monkeypatch.setenv("PREFECT_API_URL", address)
    night = {"command": "nightly", "tenant": "acme", "scope": None, "as_of": NIGHT.isoformat(), "dry_run": False}
    (refused, _), _ = ask(settings, server_home, night)
    assert refused["error"] == "SetupError"
    assert address in refused["message"]
    assert "PREFECT_API_URL" in refused["hint"]


def test_an_unknown_command_is_refused(tmp_path: Path) -> None:
    """The command line and the flows are versioned together, but an entry point can be called by anybody."""
    with pytest.raises(InvalidInput, match="dance"):
        run({"command": "dance", "home": str(tmp_path)})


_HOLDER = """
import time
from flows.temporary_server import TemporaryServer
print(TemporaryServer({}).process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.faults
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks at /proc")
def test_a_temporary_server_ends_with_the_process_it_serves(tmp_path: Path) -> None:
    """Killed with -9, a process leaves no Prefect server behind."""
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with subprocess.Popen([sys.executable, "-c", _HOLDER], env=environment, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        server_pid = int(holder.stdout.readline())
        os.kill(server_pid, 0)
        holder.kill()
    deadline = time.monotonic() + 30
    while _is_running(server_pid):
        assert time.monotonic() < deadline, "the server outlived its process"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    try:
        # A process that ended and that nobody has waited for still has a number.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
