"""Fixtures over real parts: one embedded Postgres a test session, one migrated database cloned for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from sqlalchemy import NullPool, create_engine, make_url, text

from memory_core.database.embedded import EmbeddedPostgres, ServerAddress
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.scope import TenantScope
from memory_core.settings import Settings

TEMPLATE = "slowwave_template"


@pytest.fixture(scope="session", autouse=True)
def clean_environment() -> Iterator[None]:
    """Settings of the person who runs the tests must not change their outcome."""
    kept = {
        name: os.environ.pop(name)
        for name in list(os.environ)
        # A real model to test with is named for the tests themselves.
        if name.startswith(("SLOWWAVE_", "MNEMOSYNE_", "PREFECT_")) and not name.startswith("SLOWWAVE_TEST_")
    }
    if "SLOWWAVE_EVAL_DATA" in kept:
        os.environ["SLOWWAVE_EVAL_DATA"] = kept["SLOWWAVE_EVAL_DATA"]
    yield
    os.environ.update(kept)


@pytest.fixture(scope="session")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the session's server; a space in it, as some people have. Shared by parallel workers."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "slowwave home"


@pytest.fixture(scope="session")
def server(server_home: Path) -> Iterator[ServerAddress]:
    """The embedded Postgres with the migrated template database."""
    server_home.mkdir(exist_ok=True)
    postgres = EmbeddedPostgres(server_home)
    with FileLock(server_home / "template.lock"):
        address = postgres.start()
        if address.ensure_database(TEMPLATE):
            migrate(make_url(address.url(TEMPLATE)))
    yield address
    if "PYTEST_XDIST_WORKER" not in os.environ:
        postgres.stop()


@pytest.fixture
def database_url(server: ServerAddress) -> Iterator[str]:
    """A database of the test's own."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    clone(server, name)
    yield server.url(name)
    drop(server, name)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of a fresh store with the deterministic test embedding."""
    return Settings.load(home=tmp_path / "home", database_url=database_url, embedding="hash:64")


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """A fresh, migrated database."""
    async with Database.open(settings) as opened:
        yield opened


@pytest.fixture
def scope() -> TenantScope:
    """A tenant's root scope."""
    return TenantScope.root("tenant", "acme")


def clone(server: ServerAddress, name: str, template: str = TEMPLATE) -> None:
    """Make a database as a copy of another."""
    _administer(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def drop(server: ServerAddress, name: str) -> None:
    """Drop a database, whoever is connected."""
    _administer(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _administer(server: ServerAddress, statement: str) -> None:
    engine = create_engine(server.url("postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With parallel workers the controller, which ends last, stops the shared server."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        home = factory.getbasetemp() / "slowwave home"
        if home.exists():
            EmbeddedPostgres(home).stop()
