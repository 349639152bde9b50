"""A scope reads its child scopes through one function only, which tells what two or more of them agree on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import RowMapping, create_engine, text

from memory_core.database.engine import Database
from memory_core.database.used_below import references_to_memories
from memory_core.errors import MissingRight
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_memory, add_scope, ago
from tests.nights import change

SECRET = "The vault opens at nine"
CALL = "SELECT * FROM slowwave.promotion_candidates(CAST(:asked_at AS timestamptz), :children, :least)"


async def told(
    database: Database,
    scope: TenantScope,
    *,
    switched_on: bool = True,
    children: int = 2,
    least: float = 0.0,
    **settings: str,
) -> Sequence[RowMapping]:
    """What the function tells a session that is bound to the scope; `settings` change the session's after that."""
    async with database.scoped(scope) as connection:
        if switched_on:
            await connection.execute("SELECT set_config('slowwave.promotion', 'on', true)")
        for name, value in settings.items():
            await connection.execute("SELECT set_config('slowwave.' || :name, :value, true)", name=name, value=value)
        return await connection.rows(CALL, asked_at=NIGHT, children=children, least=least)


def words(rows: Sequence[RowMapping]) -> set[Any]:
    return {row["content"] for row in rows}


@pytest.fixture
async def brand(database: Database, scope: TenantScope) -> TenantScope:
    """A scope two of whose children say the same."""
    brand = scope.child("brand", "x")
    await add_scope(database, scope)
    await add_scope(database, brand)
    for name in ("1", "2"):
        await add_memory(database, brand.child("chat", name), SECRET)
    return brand


async def test_a_parent_is_told_what_two_children_say(database: Database, brand: TenantScope) -> None:
    """The other tests would pass on a function that tells nothing; this one tells something."""
    rows = await told(database, brand)
    assert words(rows) == {SECRET}
    paths = {source["scope_path"] for source in rows[0]["sources"]}
    assert paths == {brand.child("chat", name).scope_path for name in ("1", "2")}


async def test_it_tells_nothing_unless_it_is_switched_on(database: Database, brand: TenantScope) -> None:
    """Neither by default, nor where the session says anything but `on`."""
    assert await told(database, brand, switched_on=False) == []
    for value in ("off", "", "ON", "true"):
        assert await told(database, brand, switched_on=False, promotion=value) == []


@pytest.mark.parametrize("where", ["tenant", "above", "own"])
async def test_what_is_stored_decides_before_the_session(database: Database, brand: TenantScope, where: str) -> None:
    """A tenant or scope that said no is not read whatever a run was told, and one that said yes needs no more."""
    for stored in ("false", "true"):
        setting = f'{{"promotion": {{"enabled": {stored}}}}}'
        match where:
            case "tenant":
                root = brand.parent
                assert root is not None
                await change(
                    database,
                    root,
                    "UPDATE tenants SET settings = CAST(:s AS jsonb) WHERE tenant_id = :tenant_id",
                    s=setting,
                )
            case _:
                holder = brand if where == "own" else brand.parent
                assert holder is not None
                await change(
                    database,
                    holder,
                    "UPDATE scopes SET settings = CAST(:s AS jsonb) "
                    "WHERE tenant_id = :tenant_id AND scope_path = :scope_path",
                    s=setting,
                )
        for switched_on in (False, True):
            rows = await told(database, brand, switched_on=switched_on)
            assert bool(rows) == (stored == "true"), (stored, switched_on)


async def test_the_nearest_stored_word_counts(database: Database, brand: TenantScope) -> None:
    """A scope may say yes under a tenant that says no, and the other way round."""
    by_scope = (
        "UPDATE scopes SET settings = CAST(:s AS jsonb) WHERE tenant_id = :tenant_id AND scope_path = :scope_path"
    )
    by_tenant = "UPDATE tenants SET settings = CAST(:s AS jsonb) WHERE tenant_id = :tenant_id"
    yes, no = '{"promotion": {"enabled": true}}', '{"promotion": {"enabled": false}}'
    await change(database, brand, by_tenant, s=no)
    assert await told(database, brand) == []
    await change(database, brand, by_scope, s=yes)
    assert words(await told(database, brand, switched_on=False)) == {SECRET}
    await change(database, brand, by_tenant, s=yes)
    await change(database, brand, by_scope, s=no)
    assert await told(database, brand) == []


@pytest.mark.parametrize(
    "outsider", ["sibling", "namesake", "child", "grandparent", "stranger", "stranger of same ids"]
)
async def test_nobody_but_the_parent_is_told(
    database: Database, scope: TenantScope, brand: TenantScope, outsider: str
) -> None:
    """Not a sibling, nor one whose path begins alike, nor a child, nor two levels above, nor another tenant."""
    other = TenantScope.root("tenant", "globex")
    asking = {
        "sibling": scope.child("brand", "y"),
        "namesake": scope.child("brand", "x2"),
        "child": brand.child("chat", "1"),
        "grandparent": scope,
        "stranger": other,
        "stranger of same ids": other.child("brand", "x"),
    }[outsider]
    await add_scope(database, asking)
    assert await told(database, asking) == []


async def test_children_of_another_tenant_with_the_same_ids_count_for_nobody(
    database: Database, scope: TenantScope
) -> None:
    """One child here and one of the same name there do not make two, and their words do not mix."""
    ours, theirs = (TenantScope.root("tenant", name).child("brand", "x") for name in ("acme", "globex"))
    for brand in (ours, theirs):
        await add_scope(database, brand)
    await add_memory(database, ours.child("chat", "1"), SECRET)
    await add_memory(database, theirs.child("chat", "2"), SECRET)
    assert await told(database, ours) == []
    await add_memory(database, theirs.child("chat", "1"), SECRET)
    assert await told(database, ours) == []
    mixed = {"scope_path": theirs.scope_path}
    assert await told(database, ours, **mixed) == [], "bound to one tenant, with the path of another"
    assert words(await told(database, theirs)) == {SECRET}


async def test_what_one_child_alone_says_is_never_told(database: Database, brand: TenantScope) -> None:
    """Whatever number and confidence the caller asks for, and however often that child says it."""
    chat = brand.child("chat", "1")
    for confidence in (0.0, 1.0):
        await add_memory(database, chat, "Only here", confidence=confidence)
    for label in ("SOUL: Ann", "IDENTITY: Ann"):
        for name in ("1", "2"):
            await add_memory(database, brand.child("chat", name), f"{label} herself", label=label)
    for name in ("1", "2"):
        await add_memory(database, brand.child("chat", name), "for the moment", layer="working")
        await add_memory(database, brand.child("chat", name), "gone", retired_at=ago(days=1), retired_reason="wrong")
    for children in (2, 1, 0, -5):
        assert words(await told(database, brand, children=children)) == {SECRET}


async def test_of_a_disagreement_nothing_but_that_it_is_there_is_told(database: Database, brand: TenantScope) -> None:
    """No words, no ids and no times of any child leave it."""
    for name, city in (("1", "Leeds"), ("2", "Porto")):
        await add_memory(
            database, brand.child("chat", name), f"Ann is in {city}", subject="Ann", predicate="is_in", object=city
        )
    (row,) = [row for row in await told(database, brand) if not row["agreed"]]
    assert {name for name, value in row.items() if value is not None} == {"statement", "agreed"}
    assert "ann" not in row["statement"].lower()


async def test_a_grandchild_is_not_told_of(database: Database, scope: TenantScope, brand: TenantScope) -> None:
    """One level a night: what a child's children say in common reaches the child first."""
    for name in ("1", "2"):
        await add_memory(database, brand.child("chat", "1").child("turn", name), "Below")
    await add_memory(database, scope.child("brand", "y"), SECRET)
    assert words(await told(database, brand)) == {SECRET}
    assert await told(database, scope) == []


async def test_nothing_is_told_without_a_bound_scope(database: Database, brand: TenantScope) -> None:
    """An unbound session gets nothing, and neither does one that binds a tenant without a scope."""
    for tenant in ("", "acme"):
        async with database.app.connect() as connection:
            for name, value in (("promotion", "on"), ("tenant_id", tenant)):
                await connection.execute(
                    text("SELECT set_config('slowwave.' || :name, :value, true)"), {"name": name, "value": value}
                )
            found = await connection.execute(text(CALL), {"asked_at": NIGHT, "children": 2, "least": 0.0})
            assert found.all() == []


async def test_the_tables_themselves_stay_closed_to_the_parent(database: Database, brand: TenantScope) -> None:
    """The policies that the function needs are the owner's; the app role sees no child row, switched on or not."""
    async with database.scoped(brand) as connection:
        await connection.execute("SELECT set_config('slowwave.promotion', 'on', true)")
        await connection.rows(CALL, asked_at=NIGHT, children=2, least=0.0)
        for table in ("memories", "memory_state"):
            assert await connection.scalar(f"SELECT count(*) FROM {table}") == 0
            changed = await connection.execute(f"UPDATE {table} SET tenant_id = tenant_id")
            assert changed.rowcount == 0, table


async def test_the_operator_may_not_ask(database: Database, brand: TenantScope) -> None:
    """The function is the app role's; who reads across tenants reads no words."""
    with pytest.raises(MissingRight):
        await database.operator_rows("SELECT * FROM slowwave.promotion_candidates(now(), 2, 0.0)")


def test_the_owner_reads_no_more_than_the_functions_need(database_url: str) -> None:
    """Each policy is on the tables of its function, for reading, and names the bound tenant and scope."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        policies = connection.execute(
            text(
                "SELECT policyname, tablename, cmd, qual FROM pg_policies "
                "WHERE schemaname = 'slowwave' AND 'slowwave_owner' = ANY (roles) AND cmd <> 'INSERT'"
            )
        ).all()
    engine.dispose()
    named = {
        "owner_reads_children": {"tenants", "scopes", "memories", "memory_state"},
        "owner_reads_below": {table for table, _ in references_to_memories()},
        "owner_reads_bound": {"memories"},
    }
    assert {(row.policyname, row.tablename) for row in policies} == {
        (name, table) for name, tables in named.items() for table in tables
    }
    assert {row.cmd for row in policies} == {"SELECT"}
    assert all("slowwave.tenant_id" in row.qual for row in policies)
    assert all("slowwave.scope_path" in row.qual for row in policies if row.tablename != "tenants")


async def test_the_search_path_of_the_caller_changes_nothing(database: Database, brand: TenantScope) -> None:
    """A temporary table of the same name does not stand in for the children's memories."""
    async with database.scoped(brand) as connection:
        await connection.execute("SELECT set_config('slowwave.promotion', 'on', true)")
        await connection.execute("CREATE TEMPORARY TABLE memories (id uuid) ON COMMIT DROP")
        await connection.execute("SET LOCAL search_path = pg_temp, slowwave, public")
        assert words(await connection.rows(CALL, asked_at=NIGHT, children=2, least=0.0)) == {SECRET}
