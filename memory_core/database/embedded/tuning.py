"""The embedded server's settings, from the memory of the machine.

Durability stays on (fsync, synchronous_commit, full_page_writes, data checksums). What is tuned: memory, fewer
and longer checkpoints for nightly bursts of writes, planner costs of a solid-state disk, and no JIT, which costs
more than it gains on queries of a few milliseconds.
"""

from __future__ import annotations

import os
from pathlib import Path

MEBIBYTE = 1024 * 1024

SHARED_BUFFERS_SHARE = 8
SHARED_BUFFERS_MEBIBYTES = (32, 1024)
MAINTENANCE_SHARE = 16
MAINTENANCE_MEBIBYTES = (32, 256)
SMALL_SHARED_MEMORY = 512 * MEBIBYTE
"""Below this size of /dev/shm (a container has 64 MB) a parallel index build does not fit into it."""

_MEMORY_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """The memory that this process may use, in bytes: the machine's, or the container's limit where that is lower."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _MEMORY_LIMIT_FILES:
        try:
            limit = path.read_text().strip()
        except OSError:
            continue
        if limit.isdigit():
            memory = min(memory, int(limit))
    return memory


def shared_memory_size(folder: Path = Path("/dev/shm")) -> int | None:
    """The size of the file system behind POSIX shared memory, in bytes; None where there is no such folder."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_frsize * found.f_blocks


def server_settings(memory: int, shared_memory: int | None) -> dict[str, str]:
    """The server's settings by name.

    Args:
        memory: memory of the machine or container, in bytes.
        shared_memory: size of /dev/shm in bytes; None where the system has no such folder.
    """
    mebibytes = memory // MEBIBYTE
    settings = {
        "max_connections": "100",
        "shared_buffers": f"{_between(mebibytes // SHARED_BUFFERS_SHARE, SHARED_BUFFERS_MEBIBYTES)}MB",
        "effective_cache_size": f"{max(mebibytes // 2, 64)}MB",
        "work_mem": "32MB",
        "maintenance_work_mem": f"{_between(mebibytes // MAINTENANCE_SHARE, MAINTENANCE_MEBIBYTES)}MB",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "checkpoint_timeout": "15min",
        "checkpoint_completion_target": "0.9",
        "max_wal_size": "2GB",
        "random_page_cost": "1.1",
        "jit": "off",
        # A client that was killed must not keep its locks until its query is over.
        "client_connection_check_interval": "5s",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "datestyle": "iso, ymd",
        "default_text_search_config": "pg_catalog.english",
        "logging_collector": "on",
        "log_directory": "../log",
        "log_filename": "postgres-%Y-%m-%d_%H%M%S.log",
        "log_file_mode": "0600",
        "log_rotation_age": "7d",
        "log_rotation_size": "10MB",
        "log_line_prefix": "%m [%p] %q%u@%d ",
        "log_checkpoints": "off",
    }
    if shared_memory is not None and shared_memory < SMALL_SHARED_MEMORY:
        settings["dynamic_shared_memory_type"] = "sysv"
    return settings


def settings_file(settings: dict[str, str]) -> str:
    """The settings as the text of a Postgres configuration file."""
    lines = ["# Written by Slowwave at every start, from the memory of the machine. Your own settings belong in"]
    lines.append("# postgresql.conf, below its include line: what comes later wins.")
    lines += [f"{name} = '{value}'" for name, value in settings.items()]
    return "\n".join(lines) + "\n"


def _between(value: int, bounds: tuple[int, int]) -> int:
    lowest, highest = bounds
    return max(lowest, min(value, highest))
