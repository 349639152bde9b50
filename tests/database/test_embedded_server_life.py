"""The embedded Postgres started, stopped, killed and refused, by root and others, in homes whose path has a space."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory_core.database.embedded import EmbeddedPostgres, tuning
from memory_core.database.embedded.account import server_account, write_as
from memory_core.database.embedded.folders import ServerFolders
from memory_core.database.embedded.process import is_process_of
from memory_core.errors import DataFolderNotWritable, EmbeddedServerFailed
from tests.database.embedded_servers import ORDINARY_USER, as_root, pid_of, query

REPOSITORY = Path(__file__).resolve().parents[2]

START_AND_SAY = """
import sys, pathlib
from memory_core.database.embedded import EmbeddedPostgres
server = EmbeddedPostgres(pathlib.Path(sys.argv[1]))
print("here", flush=True)
sys.stdin.readline()
server.start()
print(server.status().pid, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def homes() -> Iterator[Callable[[], Path]]:
    """New homes below /tmp, readable by all on the way; their servers are stopped and their folders removed after."""
    made: list[Path] = []

    def make() -> Path:
        parent = Path("/tmp") / f"slowwave test {uuid.uuid4().hex[:8]}"
        parent.mkdir(mode=0o755)
        made.append(parent)
        return parent / "a home"

    yield make
    for parent in made:
        EmbeddedPostgres(parent / "a home").stop()
        shutil.rmtree(parent)


@pytest.fixture
def home(homes: Callable[[], Path]) -> Path:
    """One new home."""
    return homes()


@pytest.fixture(scope="module")
def restarted() -> Iterator[EmbeddedPostgres]:
    """A server for the tests that stop, kill and start one: making a new one each time takes a second or two."""
    parent = Path("/tmp") / f"slowwave test {uuid.uuid4().hex[:8]}"
    parent.mkdir(mode=0o755)
    server = EmbeddedPostgres(parent / "a home")
    yield server
    server.stop()
    shutil.rmtree(parent)


def child(home: Path) -> subprocess.Popen[str]:
    """A process that starts the home's server when it gets a line, says the server's pid, and ends at the next line."""
    started = subprocess.Popen(
        [sys.executable, "-c", START_AND_SAY, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])},
        start_new_session=True,
    )
    assert started.stdout
    assert started.stdout.readline() == "here\n"
    return started


def say(process: subprocess.Popen[str]) -> None:
    """Send the process a line."""
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def in_ordinary_process(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives in a forked process of an ordinary user.

    Forked, because the interpreter itself may stand where that user cannot start it.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(ORDINARY_USER)
            os.setuid(ORDINARY_USER)
            result = work()
        except BaseException:
            result = {"failed": traceback.format_exc()}
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    result = json.loads(text)
    assert "failed" not in result, result["failed"]
    return dict(result)


def test_processes_that_start_at_once_share_one_server(home: Path) -> None:
    """Three processes that find nothing end up with the same server."""
    children = [child(home) for _ in range(3)]
    for process in children:
        say(process)
    pids = {process.communicate("\n", timeout=60)[0] for process in children}
    assert pids == {f"{pid_of(EmbeddedPostgres(home))}\n"}


def test_server_outlives_the_killed_parent(home: Path) -> None:
    """Killing the starting process and its whole group leaves the server running."""
    process = child(home)
    say(process)
    assert process.stdout
    pid = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    server = EmbeddedPostgres(home)
    assert pid_of(server) == pid
    assert query(server.start(), "SELECT 1") == 1


def test_creation_cut_short_is_done_again(home: Path) -> None:
    """A parent killed in the middle of the first start leaves nothing that hinders the next."""
    process = child(home)
    say(process)
    deadline = time.monotonic() + 30
    while not (home / "postgres/data.unfinished/base").exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (home / "postgres/data").exists()
    assert query(EmbeddedPostgres(home).start(), "SELECT 1") == 1
    assert not (home / "postgres/data.unfinished").exists()


def test_killed_server_starts_again_with_what_was_committed(restarted: EmbeddedPostgres) -> None:
    """After kill -9 of the server, the next start recovers what was committed."""
    server = restarted
    address = server.start()
    query(address, "CREATE TABLE kept AS SELECT 42 AS answer")
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_process_of(pid, server.home / "postgres/data"):
        assert time.monotonic() < deadline
    assert query(server.start(), "SELECT answer FROM kept") == 42
    assert pid_of(server) != pid


def test_stale_file_that_names_a_living_process(restarted: EmbeddedPostgres) -> None:
    """After a reboot the old pid may be somebody else's: the server starts, and that process is left alone."""
    server = restarted
    server.start()
    folders = ServerFolders(server.home)
    account = server_account(folders.home, folders.data)
    lines = (folders.data / "postmaster.pid").read_text().splitlines()
    assert server.stop()
    bystander = subprocess.Popen(["sleep", "60"], cwd="/", **account.run_arguments())
    try:
        write_as(account, folders.data / "postmaster.pid", "\n".join([str(bystander.pid), *lines[1:]]) + "\n")
        assert not server.status().running
        assert not server.stop()
        assert query(server.start(), "SELECT 1") == 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_stop_ends_it_and_says_so(home: Path) -> None:
    """Stopping ends the server although a session is open, leaves its folder in /tmp no more, and works twice."""
    server = EmbeddedPostgres(home)
    assert not server.stop()
    assert not home.exists()
    address = server.start()
    pid = pid_of(server)
    session = psycopg.connect(address.url("postgres", driver="postgresql"))
    session.execute("SELECT 1")
    assert server.stop()
    session.close()
    assert not is_process_of(pid, server.status().data_folder)
    assert not address.socket_folder.exists()
    assert not server.stop()
    status = server.status()
    assert (status.running, status.pid, status.socket_folder, status.started_at) == (False, None, None, None)
    assert status.version == "18.6"


def test_two_homes_are_two_servers(homes: Callable[[], Path]) -> None:
    """Two homes share neither server nor data."""
    first, second = EmbeddedPostgres(homes()), EmbeddedPostgres(homes())
    query(first.start(), "CREATE TABLE mine (a int)")
    assert query(second.start(), "SELECT to_regclass('mine')::text") is None
    assert first.start().socket_folder != second.start().socket_folder
    assert second.stop()
    assert first.status().running


def test_socket_folder_is_cleaned_away_or_taken(restarted: EmbeddedPostgres) -> None:
    """A server whose folder in /tmp was removed is started again; a folder that is not its own is not used."""
    server = restarted
    folder = server.start().socket_folder
    pid = pid_of(server)
    shutil.rmtree(folder)
    assert query(server.start(), "SELECT 1") == 1
    assert pid_of(server) != pid
    server.stop()
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    try:
        assert server.start().socket_folder != folder
    finally:
        folder.rmdir()


def test_own_settings_win_and_a_broken_one_is_shown(restarted: EmbeddedPostgres) -> None:
    """A user's setting beats the tuned one; when it is wrong, the error shows Postgres's own words."""
    server = restarted
    server.start()
    server.stop()
    settings = server.home / "postgres/data/postgresql.conf"
    original = settings.read_text()
    settings.write_text(original + "work_mem = 7MB\n")
    assert query(server.start(), "SHOW work_mem") == "7MB"
    server.stop()
    settings.write_text(original + "work_mem = nonsense\n")
    with pytest.raises(EmbeddedServerFailed, match='invalid value for parameter "work_mem"') as caught:
        server.start()
    assert caught.value.hint
    settings.write_text(original)
    assert server.start()


def test_small_shared_memory_is_not_used(restarted: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /dev/shm is small, as in a container, the server takes another kind of shared memory, and runs with it."""
    monkeypatch.setattr(tuning, "shared_memory_size", lambda: 64 * tuning.MEBIBYTE)
    restarted.stop()
    assert query(restarted.start(), "SHOW dynamic_shared_memory_type") == "sysv"


def test_data_of_another_version_is_refused(home: Path) -> None:
    """A data folder of Postgres 15, or what is none at all, is not touched; the error says what to do."""
    data = home / "postgres/data"
    data.mkdir(parents=True)
    with pytest.raises(EmbeddedServerFailed, match="no PG_VERSION"):
        EmbeddedPostgres(home).start()
    (data / "PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedServerFailed, match=r"made by Postgres 15.*brings Postgres 18\.6") as caught:
        EmbeddedPostgres(home).start()
    assert "pg_dump" in caught.value.hint
    assert sorted(path.name for path in data.iterdir()) == ["PG_VERSION"]


def test_home_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A home below a file cannot be made; the error names the setting to change."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderNotWritable) as caught:
        EmbeddedPostgres(tmp_path / "file" / "home").start()
    assert "SLOWWAVE_HOME" in caught.value.hint


@as_root
def test_ordinary_user_may_not_use_the_home_of_another(home: Path) -> None:
    """For an ordinary user, root's home gives a clear error from each call, and no half-made server."""
    EmbeddedPostgres(home).start()

    def attempt() -> dict[str, Any]:
        said = {}
        for name in ("start", "stop", "status"):
            try:
                getattr(EmbeddedPostgres(home), name)()
            except DataFolderNotWritable as error:
                said[name] = str(error)
        return said

    said = in_ordinary_process(attempt)
    assert sorted(said) == ["start", "status", "stop"]
    assert all("SLOWWAVE_HOME" in text and f"user {ORDINARY_USER}" in text for text in said.values())


@as_root
def test_ordinary_user_and_root_share_the_users_server(home: Path) -> None:
    """An ordinary user starts, finds and stops a server; root with the same home gets the same one."""
    home.mkdir()
    os.chown(home, ORDINARY_USER, ORDINARY_USER)

    def use() -> dict[str, Any]:
        server = EmbeddedPostgres(home)
        answer = query(server.start(), "SELECT 7")
        return {"answer": answer, "pid": server.status().pid, "folder": query(server.start(), "SHOW data_directory")}

    used = in_ordinary_process(use)
    assert used["answer"] == 7
    assert used["folder"] == str(home / "postgres/data")
    assert Path(f"/proc/{used['pid']}").stat().st_uid == ORDINARY_USER
    server = EmbeddedPostgres(home)
    assert pid_of(server) == used["pid"]
    assert server.stop()
    server.start()
    assert Path(f"/proc/{pid_of(server)}").stat().st_uid == ORDINARY_USER
    assert in_ordinary_process(lambda: {"stopped": EmbeddedPostgres(home).stop()}) == {"stopped": True}
    assert in_ordinary_process(use)["answer"] == 7


@as_root
def test_root_does_not_write_through_a_users_link(home: Path, tmp_path: Path) -> None:
    """A link that stands for the settings file in a user's home must not make root overwrite what it points to."""
    home.mkdir()
    os.chown(home, ORDINARY_USER, ORDINARY_USER)
    server = EmbeddedPostgres(home)
    server.start()
    server.stop()
    target = tmp_path / "precious"
    target.write_text("precious")
    written = home / "postgres/data/slowwave.conf"
    written.unlink()
    written.symlink_to(target)
    with pytest.raises(EmbeddedServerFailed, match=r"slowwave\.conf could not be written"):
        server.start()
    assert target.read_text() == "precious"
