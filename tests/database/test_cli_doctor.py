"""What the doctor finds wrong: each problem is named with what to do, and none of them stops the other checks."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from memory_core.cli import doctor_database
from memory_core.cli.doctor import examine
from memory_core.cli.findings import Finding
from memory_core.database.engine import Database
from memory_core.database.failures import translated
from memory_core.database.migrate import ROLES
from memory_core.errors import DatabaseUnavailable, MissingRight, SchemaOutdated
from memory_core.runs.ledger import begin_run
from memory_core.runs.locks import held_scopes
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT, add_memory
from tests.conftest import TEMPLATE, ServerAddress, clone, drop


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


async def test_a_healthy_store_has_no_problem(settings: Settings, database: Database, scope: TenantScope) -> None:
    """Every check is made and says what it found; what nobody slept on is a note with the command for it."""
    await add_memory(database, scope, "Ann likes tea")
    found = by_check(await examine(lambda: settings))
    assert {finding.state for finding in found.values()} == {"ok", "note"}
    assert set(ROLES) <= set(found["roles"].found.replace(":", ",").split(", "))
    assert found["embedding"].found.startswith("hash:64: 64 dimensions, on this machine")
    assert found["language model"].found.endswith("nothing leaves this machine")
    assert found["sleep"].state == "note"
    assert "slowwave nightly --tenant acme" in found["sleep"].do


async def test_a_run_whose_process_died_is_stuck_and_one_at_work_is_not(database: Database, scope: TenantScope) -> None:
    """What tells them apart is whether somebody holds the scope."""
    await add_memory(database, scope, "Ann likes tea")
    run = await begin_run(database, scope, "sleep", NIGHT, {})
    assert (await doctor_database._runs(database)).state == "problem"
    assert str(run.id) in (await doctor_database._runs(database)).found
    async with held_scopes(database, [scope]):
        assert (await doctor_database._runs(database)).found == "1 going on"


async def test_settings_that_are_not_valid_are_a_finding(tmp_path: Path) -> None:
    """The doctor is there for the case that something is wrong."""
    found = by_check(await examine(lambda: Settings.load(home=tmp_path, pool_size=0)))
    assert found["python"].state == "ok"
    assert found["settings"].state == "problem"
    assert "pool_size" in found["settings"].found


async def test_a_database_out_of_reach_leaves_the_other_checks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models and Prefect are looked at all the same."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    away = settings.model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:1/none", "embedding": "hash:x"})
    found = by_check(await examine(lambda: away))
    assert found["server"].state == "problem"
    assert found["server"].do
    assert found["embedding"].state == "problem"
    assert found["prefect"].state == "problem"
    assert "PREFECT_API_URL" in found["prefect"].do


async def test_a_schema_that_is_absent_or_of_another_version_is_a_problem(
    settings: Settings, server: ServerAddress
) -> None:
    """Both name the command that mends it."""
    drop(server, "bare")
    clone(server, "bare", "template0")
    try:
        bare = by_check(await examine(lambda: settings.model_copy(update={"database_url": server.url("bare")})))
    finally:
        drop(server, "bare")
    assert bare["schema"].state == "problem"
    assert "slowwave setup" in bare["schema"].do
    assert bare["runs and scopes"].state == "not_checked"

    clone(server, "older", TEMPLATE)
    engine = create_engine(server.url("older"), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE slowwave.schema_version SET version_num = '0000'"))
        older = by_check(await examine(lambda: settings.model_copy(update={"database_url": server.url("older")})))
    finally:
        drop(server, "older")
    assert older["schema"].state == "problem"
    assert "0000" in older["schema"].found


@pytest.mark.usefixtures("server")
def test_a_role_above_row_level_security_is_a_problem(database_url: str) -> None:
    """A superuser's app role would see every tenant, whatever the policies say."""
    # Roles belong to the whole server, so the change is never committed.
    with create_engine(database_url, poolclass=NullPool).connect() as connection:
        assert doctor_database._roles(connection).state == "ok"
        connection.execute(text("ALTER ROLE slowwave_operator BYPASSRLS"))
        found = doctor_database._roles(connection)
        connection.rollback()
    assert found.state == "problem"
    assert "slowwave_operator" in found.found


async def test_a_role_without_rights_is_told_what_to_grant(settings: Settings, scope: TenantScope) -> None:
    """It is no lost connection that a retry may find again, and after the grant that is named it works."""
    granted = ", ".join(ROLES)
    admin = create_engine(settings.database_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    role = f"guest_{uuid.uuid4().hex[:8]}"
    url = make_url(settings.database_url).set(username=role).render_as_string(hide_password=False)
    guest = settings.model_copy(update={"database_url": url})
    with admin.connect() as connection:
        connection.execute(text(f"CREATE ROLE {role} LOGIN"))
        try:
            async with Database.open(guest) as database:
                with pytest.raises(MissingRight, match=f"GRANT {granted} TO"):
                    await database.operator_rows("SELECT 1")
            assert f"GRANT {granted} TO" in by_check(await examine(lambda: guest))["server"].do
            connection.execute(text(f"GRANT {granted} TO {role}"))
            async with Database.open(guest) as database:
                await add_memory(database, scope, "Ann likes tea")
            assert by_check(await examine(lambda: guest))["roles"].state == "ok"
        finally:
            connection.execute(text(f"DROP ROLE {role}"))


def test_a_server_that_was_never_set_up_is_not_out_of_reach() -> None:
    """A role of ours that is absent there sends the person to `slowwave setup`."""
    refusal = psycopg.OperationalError('connection failed: FATAL:  role "slowwave_operator" does not exist')
    ours = translated(OperationalError("", {}, refusal))
    assert isinstance(ours, SchemaOutdated)
    assert ours.message == 'The database is not prepared: role "slowwave_operator" does not exist.'
    assert "slowwave setup" in ours.hint
    another = psycopg.OperationalError('connection failed: FATAL:  role "somebody" does not exist')
    assert isinstance(translated(OperationalError("", {}, another)), DatabaseUnavailable)


async def test_a_url_with_a_port_that_is_no_number_is_a_finding(settings: Settings) -> None:
    """As any other setting that is not valid."""
    bad = settings.model_copy(update={"database_url": "postgresql://me:secret@host:port/none"})
    found = by_check(await examine(lambda: bad))["server"]
    assert found.found == "SLOWWAVE_DATABASE_URL is not a URL."
    assert "secret" not in found.do


async def test_a_home_that_cannot_be_written_is_a_problem(settings: Settings, tmp_path: Path) -> None:
    """Here because it is a file; the same words for any other reason."""
    file = tmp_path / "a file"
    file.touch()
    found = by_check(await examine(lambda: settings.model_copy(update={"home": file})))
    assert found["home"].state == "problem"
    assert "SLOWWAVE_HOME" in found["home"].do


async def test_a_model_that_is_configured_is_told_as_what_leaves_the_machine(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who configured it, where it goes, and what happens when it fails."""
    monkeypatch.setenv("SHMR_MODEL", "ollama/llama3.1")
    found = by_check(await examine(lambda: settings))
    assert found["language model"].state == "note"
    assert "ollama/llama3.1 (from SHMR_MODEL)" in found["language model"].found
    assert "defer" in found["language model"].found


async def test_a_bad_setting_of_a_phase_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would only show in the night, when that phase fails."""
    monkeypatch.setenv("SLOWWAVE_SHMR_HARMONY_THRESHOLD", "7")
    found = by_check(await examine(lambda: settings))
    assert found["settings"].state == "problem"
    assert "harmony_threshold" in found["settings"].found
