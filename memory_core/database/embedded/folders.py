"""Where a home keeps its server, and the error for a home that cannot be used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from memory_core.errors import DataFolderNotWritable

LOG_LINES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ServerFolders:
    """Where a home keeps its server.

    Args:
        home: the home of this Slowwave, absolute, without links.
    """

    home: Path

    @property
    def postgres(self) -> Path:
        """The folder that holds everything else."""
        return self.home / "postgres"

    @property
    def data(self) -> Path:
        """The data folder of Postgres."""
        return self.postgres / "data"

    @property
    def log(self) -> Path:
        """The folder of the log files."""
        return self.postgres / "log"

    def last_log(self) -> Path | None:
        """The newest log file that holds something; None where nothing was logged."""
        files = [path for path in self.log.glob("*.log") if path.stat().st_size]
        return max(files, key=lambda path: path.stat().st_mtime, default=None)

    def log_tail(self) -> str:
        """The last lines of the newest log file."""
        path = self.last_log()
        lines = path.read_text(errors="replace").splitlines() if path else []
        return "\n".join(lines[-LOG_LINES_SHOWN:]) or "(nothing was logged)"


def not_writable(folders: ServerFolders, error: OSError) -> DataFolderNotWritable:
    """The error for a home that this process cannot use, naming whose it is."""
    owned = next((path for path in (folders.postgres, folders.home) if os.path.lexists(path)), None)
    whose = f" {owned} belongs to user {owned.stat().st_uid}, this process is user {os.geteuid()}." if owned else ""
    return DataFolderNotWritable(
        f"The home {folders.home} of Slowwave cannot be used: {error.strerror} ({error.filename}).{whose}",
        hint="Set SLOWWAVE_HOME to a folder that you may write, or run as its owner.",
        home=str(folders.home),
    )
