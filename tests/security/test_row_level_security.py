"""A tenant sees its own scope path only, and writes its own level only: asked of every registered table."""

from __future__ import annotations

import uuid

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from memory_core.database.engine import Database
from memory_core.database.registry import REGISTRY, TableEntry
from memory_core.errors import MissingRight
from memory_core.scope import TenantScope
from tests.builders import add_memory
from tests.every_table import fill_every_table

TABLES = [pytest.param(item, id=item.name) for item in REGISTRY]


@pytest.fixture
async def filled(database: Database, scope: TenantScope) -> TenantScope:
    """A scope with at least one row in every registered table."""
    await fill_every_table(database, scope)
    return scope


async def count(database: Database, item: TableEntry, scope: TenantScope) -> int:
    async with database.scoped(scope) as connection:
        return await connection.scalar(f"SELECT count(*) FROM {item.name}")


async def test_every_table_has_a_row(database: Database, filled: TenantScope) -> None:
    """The other tests would pass on empty tables; these are not empty."""
    for item in REGISTRY:
        assert await count(database, item, filled) >= 1, item.name


async def test_a_query_without_a_scope_returns_nothing(database: Database, filled: TenantScope) -> None:
    """The app role sees no row of any table before a scope is bound."""
    async with database.app.connect() as connection:
        for item in REGISTRY:
            assert (await connection.execute(text(f"SELECT count(*) FROM {item.name}"))).scalar() == 0, item.name


async def test_another_tenant_sees_nothing(database: Database, filled: TenantScope) -> None:
    """Not another tenant, not one whose id begins alike, not a sibling, not one of another root kind."""
    strangers = (
        TenantScope.root("tenant", "globex"),
        TenantScope.root("tenant", "acme-corp"),
        TenantScope.root("tenant", "acm"),
    )
    for stranger in strangers:
        for item in REGISTRY:
            assert await count(database, item, stranger) == 0, (item.name, str(stranger))


async def test_a_child_reads_its_ancestors_and_a_sibling_does_not(database: Database, scope: TenantScope) -> None:
    """Visibility is by prefix, along the path only, for every table (F37, F52)."""
    brand, sibling = scope.child("brand", "one"), scope.child("brand", "two")
    await fill_every_table(database, brand)
    conversation = brand.child("conversation", "c-1")
    for item in REGISTRY:
        if item.visibility == "scope":
            assert await count(database, item, conversation) >= 1, item.name
            assert await count(database, item, sibling) == 0, item.name
            assert await count(database, item, scope) == 0, item.name


async def test_a_write_reaches_the_own_level_only(database: Database, scope: TenantScope) -> None:
    """A child neither changes, deletes nor adds its parent's rows, whatever the statement says (F33, F38)."""
    await fill_every_table(database, scope)
    child = scope.child("brand", "one")
    for item in REGISTRY:
        if item.visibility != "scope":
            continue
        async with database.scoped(child) as connection:
            deleted = await connection.execute(f"DELETE FROM {item.name}")
            assert deleted.rowcount == 0, item.name
            column = item.key[0]
            updated = await connection.execute(f"UPDATE {item.name} SET {column} = {column}")
            assert updated.rowcount == 0, item.name
    with pytest.raises(MissingRight):
        async with database.scoped(child) as connection:
            await connection.execute(
                "INSERT INTO tools (tenant_id, scope_path, tool_id, recorded_at) "
                "VALUES (:tenant_id, :parent, 't', now())",
                parent=scope.scope_path,
            )


async def test_an_edge_cannot_reach_into_another_tenant(database: Database, scope: TenantScope) -> None:
    """The composite foreign key refuses what row-level security cannot see (F61)."""
    stranger = TenantScope.root("tenant", "globex")
    theirs = await add_memory(database, stranger, "their secret")
    ours = await add_memory(database, scope, "our fact")
    with pytest.raises(DBAPIError, match="fk_memory_edges"):
        async with database.scoped(scope) as connection:
            await connection.execute(
                "INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at) "
                "VALUES (:tenant_id, :id, :scope_path, :source, :target, 'KNOWS', now())",
                id=uuid.uuid4(),
                source=ours,
                target=theirs,
            )


async def test_the_app_role_cannot_bypass_or_change_the_rules(database: Database) -> None:
    """It owns nothing, is no superuser, and may not switch row-level security off."""
    async with database.app.connect() as connection:
        rights = "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        row = (await connection.execute(text(rights))).one()
        assert tuple(row) == (False, False, False)
        with pytest.raises(DBAPIError, match="must be owner"):
            await connection.execute(text("ALTER TABLE memories DISABLE ROW LEVEL SECURITY"))


async def test_the_operator_reads_counts_and_no_memory(database: Database, filled: TenantScope) -> None:
    """The due-scan and the doctor see tenants, scopes and when runs were, and nothing that holds text."""
    assert await database.operator_rows("SELECT tenant_id FROM tenants")
    assert await database.operator_rows("SELECT scope_path FROM scopes")
    assert await database.operator_rows("SELECT kind, status FROM runs")
    for forbidden in ("report FROM runs", "content FROM memories", "content FROM harmonic_beliefs"):
        with pytest.raises(MissingRight):
            await database.operator_rows(f"SELECT {forbidden}")


@pytest.mark.parametrize("item", TABLES)
def test_row_level_security_is_forced(database_url: str, item: TableEntry) -> None:
    """Also the tables' owner is bound by the policies."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        row = connection.execute(
            text(
                "SELECT relrowsecurity, relforcerowsecurity, "
                "(SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid) AS policies "
                "FROM pg_class c WHERE oid = to_regclass(:name)"
            ),
            {"name": f"slowwave.{item.name}"},
        ).one()
    engine.dispose()
    assert row.relrowsecurity
    assert row.relforcerowsecurity
    assert row.policies >= 4
