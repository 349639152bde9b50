"""What postmaster.pid says, whether it is true, and the two locks that make it safe.

`start.lock` is held by the command that is starting or stopping the server, so that commands take turns.
`running.lock` is held by the server itself: its first process inherits the locked file and hands it to all its
children, so that the lock is free exactly when no process of that server is left, whatever killed it. A process id
alone cannot tell: after a reboot, or in a container, it soon belongs to something else.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_core.errors import DatabaseUnavailable

POLL_SECONDS = 0.01

_CONNECT_SECONDS = 2.0
_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server as its postmaster.pid describes it; the file may be stale.

    Args:
        pid: its process id.
        started_at: when it was started, in UTC.
        port: the number in the socket's name.
        socket_folder: the folder of the socket; None while the server has not opened it.
        ready: it said that it accepts connections.
        owner: the user id that owns the data folder.
    """

    pid: int
    started_at: datetime
    port: int
    socket_folder: Path | None
    ready: bool
    owner: int

    @property
    def socket_path(self) -> Path | None:
        """The socket itself; None while the server has not opened it."""
        return None if self.socket_folder is None else self.socket_folder / f".s.PGSQL.{self.port}"

    def answers(self) -> bool:
        """Whether it is ready and something listens on its socket, in a folder that only its owner can enter.

        The folder is checked because it stands in /tmp: when a stale file names it, another user may have made it.
        """
        if not self.ready or self.socket_folder is None or not is_private_folder(self.socket_folder, self.owner):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_CONNECT_SECONDS)
            try:
                probe.connect(str(self.socket_path))
            except (TimeoutError, BlockingIOError):
                # The queue of waiting connections is full: somebody is there, and busy.
                return True
            except OSError:
                return False
        return True


def read_server(data: Path) -> ServerProcess | None:
    """What `postmaster.pid` in the data folder says; None where there is no such file or it is half written.

    Raises:
        PermissionError: the folder belongs to another user.
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        owner = data.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return None
    lines += [""] * (8 - len(lines))
    try:
        return ServerProcess(
            pid=int(lines[0]),
            started_at=datetime.fromtimestamp(int(lines[2]), UTC),
            port=int(lines[3]),
            socket_folder=Path(lines[4]) if lines[4] else None,
            ready=lines[7].strip() == "ready",
            owner=owner,
        )
    except ValueError:
        return None


def is_process_of(pid: int, data: Path) -> bool:
    """Whether the process works in the data folder, as every Postgres process does in its own.

    Where the system has no /proc, any living process counts; `running.lock` has then already said that one lives.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    if not _PROCESSES.is_dir():
        return True
    process = _PROCESSES / str(pid)
    try:
        return os.path.samefile(process / "cwd", data)
    except PermissionError:
        # Root in a container may not look into another user's process; what everybody may see has to do.
        return _is_postgres_of(process, data.stat().st_uid)
    except OSError:
        return False


def _is_postgres_of(process: Path, owner: int) -> bool:
    try:
        return process.stat().st_uid == owner and (process / "comm").read_text().strip() == "postgres"
    except OSError:
        return False


def is_private_folder(folder: Path, owner: int) -> bool:
    """Whether it is a real folder (no link) of that user which nobody else but root can enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and stat.S_IMODE(found.st_mode) == 0o700


def try_lock(path: Path) -> int | None:
    """The descriptor of the locked file, to be closed by the caller; None where another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def turn(path: Path, seconds: float) -> Iterator[int]:
    """Hold the lock of that file, waiting for it up to `seconds`; gives its descriptor.

    Raises:
        DatabaseUnavailable: another command held it all that time.
    """
    deadline = time.monotonic() + seconds
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"Another command has been starting or stopping the embedded Postgres for {seconds:.0f} seconds.",
                hint=f"Wait for it, or end it if it hangs; it holds {path}.",
            )
        time.sleep(POLL_SECONDS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
