"""The embedded Postgres: started on demand from a wheel, kept between commands, reached over a Unix socket.

server.py    EmbeddedPostgres: start, stop, status (the cheap way when the server already runs)
address.py   ServerAddress: URLs, and databases made on demand
process.py   what postmaster.pid says, whether it is true, and the two locks
launch.py    creating the data folder, starting, waiting, stopping
program.py   the wheel's binaries, and the account that the server runs as
tuning.py    the server's settings, from the memory of the machine
"""

from __future__ import annotations

from memory_core.database.embedded.address import ServerAddress
from memory_core.database.embedded.server import EmbeddedPostgres, ServerStatus

__all__ = ["EmbeddedPostgres", "ServerAddress", "ServerStatus"]
