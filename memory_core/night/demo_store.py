"""The demo's own store: a database beside yours on the embedded server, made anew each time; a folder names it.

The folder `demo` in the data folder holds a `slowwave.toml`, so that `--home <that folder>` means the demo's store in
every command. Nothing of yours is read or changed, also where `SLOWWAVE_DATABASE_URL` names a Postgres of yours.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_core.database.engine import DRIVER
from memory_core.errors import DataFolderNotWritable, ScopeBusy
from memory_core.settings import SETTINGS_FILE, Settings

DATABASE = "slowwave_demo"
FOLDER = "demo"
SAMPLE = Path(__file__).parents[1] / "interchange" / "sample"
FILES = ("assistant.jsonl", "support.jsonl")
QUESTIONS = "questions.json"
URL_VARIABLE = "SLOWWAVE_DATABASE_URL"


@dataclass(frozen=True, slots=True)
class DemoStore:
    """Where a demo is told.

    Attributes:
        home: what `--home` takes to look at it afterwards.
        url: the database.
        settings: the process's settings with that database; their data folder is still yours.
    """

    home: Path
    url: str
    settings: Settings

    @property
    def files(self) -> tuple[Path, ...]:
        """The sample's files, as copies that a reader may change."""
        return tuple(self.home / name for name in FILES)


@contextmanager
def fresh_demo_store(settings: Settings) -> Iterator[DemoStore]:
    """An empty store for the length of a demo; within it, this process and those it starts use its database.

    Raises:
        ScopeBusy: another demo is being told in this data folder.
        SetupError: the folder cannot be written, or the embedded server cannot be started.
    """
    from filelock import FileLock, Timeout

    home = settings.home / FOLDER
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFolderNotWritable(
            f"The folder {home} cannot be written: {error.strerror}.", hint="Name another with --home."
        ) from error
    lock = FileLock(home / "demo.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ScopeBusy(f"Another demo is running in {home}.", hint="Wait for it, or name another --home.") from error
    try:
        url = _recreate(settings)
        for name in FILES:
            shutil.copyfile(SAMPLE / name, home / name)
        named = (("database_url", url), ("embedding", settings.embedding))
        # A JSON string is a TOML string too.
        lines = ("# Made by `slowwave demo`.", *(f"{name} = {json.dumps(value)}" for name, value in named))
        (home / SETTINGS_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        with _environment(url):
            yield DemoStore(home, url, settings.model_copy(update={"database_url": url}))
    finally:
        lock.release()


def questions() -> dict[str, list[dict[str, str]]]:
    """The sample's questions by tenant: `question`, words of the `current` statement, words of an `outdated` one."""
    stored = json.loads((SAMPLE / QUESTIONS).read_text(encoding="utf-8"))
    return {
        tenant: [
            {"question": each["question"], "current": each["expect"], "outdated": each["before"]} for each in asked
        ]
        for tenant, asked in stored.items()
    }


def _recreate(settings: Settings) -> str:
    import psycopg
    from sqlalchemy import make_url

    from memory_core.database.embedded import EmbeddedPostgres
    from memory_core.database.migrate import migrate

    address = EmbeddedPostgres(settings.home).start()
    with psycopg.connect(
        host=str(address.socket_folder), port=address.port, user=address.user, dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    address.ensure_database(DATABASE)
    url = address.url(DATABASE, driver=DRIVER)
    migrate(make_url(url))
    return url


@contextmanager
def _environment(url: str) -> Iterator[None]:
    """Tasks read their settings from the environment, because they may run in other processes."""
    before = os.environ.get(URL_VARIABLE)
    os.environ[URL_VARIABLE] = url
    try:
        yield
    finally:
        if before is None:
            del os.environ[URL_VARIABLE]
        else:
            os.environ[URL_VARIABLE] = before
