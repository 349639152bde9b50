"""The account that the server runs as, and running something as it.

Postgres refuses to run as root. Started by root, the server therefore runs as another user, the first of these that
fits: the owner of the data folder; the owner of the home, where that is not root (so that `sudo slowwave` and
`slowwave` share a server); the user `slowwave`, where somebody made one; an unassigned number of the reserved range.
That last one needs no entry in /etc/passwd, and unlike `nobody` it is shared with no other service.

It may be unable to walk to the data folder (/root is closed to others). Root therefore enters the folder first, and
the folder is named `/proc/self/cwd`, which needs no walk.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core.errors import EmbeddedServerFailed

SERVICE_USER = "slowwave"
FIRST_SERVICE_ID = 47018
"""Debian reserves 30000 to 59999 and assigns nothing there; it fits into a container's usual 65536 user ids."""

LOCALE = "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8"
COMMAND_SECONDS = 300.0

OTHER_WAYS = (
    "Run Slowwave as an ordinary user, "
    "or set SLOWWAVE_DATABASE_URL to a Postgres (16 or newer, with pgvector) of yours."
)
"""What to do where the embedded server cannot run here."""

_WORKING_FOLDER = Path("/proc/self/cwd")


@dataclass(frozen=True, slots=True)
class Account:
    """A user that the server runs as.

    Args:
        user_id: its number.
        group_id: the number of its group.
        other: whether it is another user than this process runs as, so that files must be handed to it.
    """

    user_id: int
    group_id: int
    other: bool

    def run_arguments(self) -> dict[str, Any]:
        """Arguments of `subprocess.run` that make a program run as this user."""
        return {"user": self.user_id, "group": self.group_id, "extra_groups": []} if self.other else {}

    def own(self, path: Path) -> None:
        """Give the file or folder to this user, with everything in it.

        Raises:
            EmbeddedServerFailed: this process, though root, may not.
        """
        if not self.other:
            return
        try:
            os.chown(path, self.user_id, self.group_id, follow_symlinks=False)
            for folder, folders, files in os.walk(path):
                for name in (*folders, *files):
                    os.chown(os.path.join(folder, name), self.user_id, self.group_id, follow_symlinks=False)
        except OSError as error:
            raise EmbeddedServerFailed(
                f"Postgres refuses to run as root, and this root may not hand {path} to user {self.user_id}: "
                f"{error.strerror}.",
                hint=OTHER_WAYS,
            ) from error


def server_account(home: Path, data: Path) -> Account:
    """The user to run the server as; see the top of this module. The home must exist."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), other=False)
    for path in (data, home):
        if path.exists():
            found = path.stat()
            if found.st_uid != 0:
                return Account(found.st_uid, found.st_gid, other=True)
    try:
        entry = pwd.getpwnam(SERVICE_USER)
    except KeyError:
        service_id = FIRST_SERVICE_ID
        while is_named(service_id):
            service_id += 1
        return Account(service_id, service_id, other=True)
    return Account(entry.pw_uid, entry.pw_gid, other=True)


def creating_account(account: Account) -> Account:
    """The user to run `initdb` as: it insists on a name for its user, which `account` may lack.

    What it makes is handed to `account` afterwards.

    Raises:
        EmbeddedServerFailed: no user of this machine has a name but root, or this ordinary user has none.
    """
    if is_named(account.user_id):
        return account
    if not account.other:
        raise EmbeddedServerFailed(
            f"This process runs as user {account.user_id}, which has no name, and Postgres insists on one.",
            hint=f"Add a line for it to /etc/passwd (containers: start with a named user). {OTHER_WAYS}",
        )
    named = [entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0 and entry.pw_name == "nobody"]
    named += [entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0]
    if not named:
        raise EmbeddedServerFailed("Postgres refuses to run as root, and there is no other user here.", hint=OTHER_WAYS)
    return Account(named[0], account.group_id, other=True)


def is_named(user_id: int) -> bool:
    """Whether the user id has an entry in the machine's list of users."""
    try:
        pwd.getpwuid(user_id)
    except KeyError:
        return False
    return True


def folder_name(folder: Path, account: Account) -> str:
    """What a program of that account, working in the folder, must call the folder.

    Raises:
        EmbeddedServerFailed: it is another user's program, and this system has no /proc.
    """
    if not account.other:
        return str(folder)
    if not _WORKING_FOLDER.exists():
        raise EmbeddedServerFailed("Postgres refuses to run as root, and there is no /proc here.", hint=OTHER_WAYS)
    return str(_WORKING_FOLDER)


def run_as(
    account: Account, command: list[str], folder: Path, *, text: str = "", keep: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as that account, working in that folder, with a bare environment; gives its whole output.

    Args:
        account: the user to run it as.
        command: the program and its arguments.
        folder: the working folder; entered before the rights are dropped.
        text: the standard input.
        keep: a descriptor that the command inherits, and whatever it leaves running.

    Raises:
        EmbeddedServerFailed: it cannot be run, or takes more than five minutes.
    """
    try:
        # pg_ctl leaves the server its own output, so that a pipe would stay open; a file does not wait.
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as output:
            given.write(text)
            given.seek(0)
            done = subprocess.run(
                command,
                cwd=folder,
                env={"PATH": os.defpath, "LC_ALL": LOCALE, "TZ": "UTC"},
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[] if keep is None else [keep],
                start_new_session=True,
                timeout=COMMAND_SECONDS,
                check=False,
                **account.run_arguments(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, output.read())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmbeddedServerFailed(
            f"{command[0]} could not be run as user {account.user_id}: {error}", hint=OTHER_WAYS
        ) from error


def write_as(account: Account, path: Path, text: str) -> None:
    """Write the file with that account's rights: root must not follow a link that stands in another user's folder."""
    written = run_as(account, ["/bin/sh", "-c", 'umask 077; cat > "$0"', path.name], path.parent, text=text)
    if written.returncode:
        raise EmbeddedServerFailed(f"{path} could not be written: {written.stdout.strip()}")
