"""Creating the data folder, and recognising one that this Postgres cannot read."""

from __future__ import annotations

import shutil

from memory_core.database.embedded.account import (
    LOCALE,
    OTHER_WAYS,
    Account,
    creating_account,
    folder_name,
    run_as,
    write_as,
)
from memory_core.database.embedded.address import SUPERUSER
from memory_core.database.embedded.folders import ServerFolders
from memory_core.database.embedded.program import program_for, program_version
from memory_core.errors import EmbeddedServerFailed

_SETTINGS = "include 'slowwave.conf'\n# Your own settings go below this line.\n"
_ACCESS_RULES = "# The socket's folder (mode 0700) is the authentication; there is no TCP port.\nlocal all all trust\n"
_ACCESS_RULES += "local replication all trust\n"


def create_data_folder(folders: ServerFolders, account: Account, start_lock: int) -> None:
    """Make the data folder, under another name first: a creation that was cut short leaves nothing half done.

    Args:
        folders: where the home keeps its server.
        account: the user that the server will run as.
        start_lock: the descriptor of the held `start.lock`.

    Raises:
        EmbeddedServerFailed: initdb failed.
        DependencyMissing: the wheel with the binaries is not installed.
    """
    creator = creating_account(account)
    unfinished = folders.postgres / "data.unfinished"
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    creator.own(unfinished)
    command = [str(program_for(account) / "bin" / "initdb"), "-D", folder_name(unfinished, account)]
    command += [f"--username={SUPERUSER}", "--auth=trust", "--encoding=UTF8", f"--locale={LOCALE}"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # The child keeps the lock: where this process is killed, the next one waits until initdb is through.
    made = run_as(creator, command, unfinished, keep=start_lock)
    if made.returncode:
        raise EmbeddedServerFailed(
            f"The embedded Postgres could not be created in {folders.data}: {made.stdout.strip()}",
            hint=f"Is there room on the disk? {OTHER_WAYS}",
        )
    write_as(creator, unfinished / "postgresql.conf", _SETTINGS)
    write_as(creator, unfinished / "pg_hba.conf", _ACCESS_RULES)
    account.own(unfinished)
    unfinished.rename(folders.data)


def check_version(folders: ServerFolders) -> None:
    """See that the data folder is one that the installed Postgres can read.

    Raises:
        EmbeddedServerFailed: it is none, or was made by another major version.
    """
    try:
        found = (folders.data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        found = ""
    ours = program_version()
    if not found:
        raise EmbeddedServerFailed(
            f"{folders.data} is not a Postgres data folder (it has no PG_VERSION).",
            hint="Move it away, or set SLOWWAVE_HOME to another folder.",
        )
    if found != ours.split(".")[0]:
        raise EmbeddedServerFailed(
            f"{folders.data} was made by Postgres {found}; this Slowwave brings Postgres {ours}, which cannot read it.",
            hint=f"With the Slowwave that brings Postgres {found}, write the data out (pg_dump, or slowwave export); "
            f"move {folders.data} away; read it in here.",
            found=found,
            needed=ours.split(".")[0],
        )
