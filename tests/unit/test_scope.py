"""Scopes: construction, paths, visibility, and the old flat form."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidScope
from memory_core.scope import ScopeLevel, TenantScope

PART = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=12).filter(
    lambda text: text == text.strip()
)
PATHS = st.lists(PART, min_size=1, max_size=5).map(
    lambda ids: TenantScope.from_levels(tuple(ScopeLevel(f"kind{depth}", id) for depth, id in enumerate(ids)))
)


def test_the_documented_construction() -> None:
    """A root and its children give tenant, sub-tenant, depth and path."""
    scope = TenantScope.root("org", "acme").child("brand", "myhalos").child("conversation", "c-123")
    assert (scope.tenant_id, scope.sub_tenant_id, scope.scope_depth) == ("acme", "myhalos", 3)
    assert scope.scope_path == "org\x1facme\x1fbrand\x1fmyhalos\x1fconversation\x1fc-123"
    assert str(scope) == "org=acme/brand=myhalos/conversation=c-123"
    assert TenantScope.root("org", "acme").sub_tenant_id is None


def test_a_prefix_of_a_name_is_another_tenant() -> None:
    """`acme` never sees `acme-corp`, nor the other way round."""
    acme, corp = TenantScope.root("org", "acme"), TenantScope.root("org", "acme-corp")
    assert not acme.sees(corp)
    assert not corp.sees(acme)


@given(PATHS, PATHS)
def test_visibility_is_exactly_prefix(query: TenantScope, stored: TenantScope) -> None:
    """A query sees a stored path if and only if that is a prefix of its own."""
    prefix = query.levels[: len(stored.levels)] == stored.levels
    assert query.sees(stored) == prefix


@given(PATHS)
def test_a_path_reads_back(scope: TenantScope) -> None:
    """The materialised path, and pickling, lose nothing."""
    assert TenantScope.from_path(scope.scope_path) == scope
    assert pickle.loads(pickle.dumps(scope)) == scope


@given(st.lists(PART, min_size=1, max_size=4), st.lists(PART, min_size=1, max_size=4))
def test_derived_ids_do_not_collide(first: list[str], second: list[str]) -> None:
    """Different parts give different ids, however they could be joined."""
    scope = TenantScope.root("org", "acme")
    assert (scope.derived_id(*first) == scope.derived_id(*second)) == (first == second)


def test_derived_ids_belong_to_their_scope() -> None:
    """The same key in two scopes is two rows."""
    assert TenantScope.root("org", "a").derived_id("x") != TenantScope.root("org", "b").derived_id("x")


def test_the_flat_form_warns_and_isolates() -> None:
    """The old construction still works; its namespace is a real level (F36)."""
    with pytest.warns(DeprecationWarning, match="TenantScope.root"):
        engineering = TenantScope(tenant_id="acme", namespace="engineering")
    with pytest.warns(DeprecationWarning, match="TenantScope.root"):
        sales = TenantScope(tenant_id="acme", namespace="sales")
    assert engineering.tenant_id == "acme"
    assert not engineering.sees(sales)
    assert engineering.sees(TenantScope.root("tenant", "acme"))


@pytest.mark.parametrize("bad", ["", " ", "acme ", "\tacme", "a\x1fb", "a\x1eb", "a\x00b", "a\udcffb", "x" * 201])
def test_names_that_could_be_mistaken_are_refused(bad: str) -> None:
    """Blank, padded, over-long names and control characters never become a scope."""
    with pytest.raises(InvalidScope):
        TenantScope.root("org", bad)
    with pytest.raises(InvalidScope):
        TenantScope.root(bad, "acme")


def test_a_kind_appears_once_and_depth_is_bounded() -> None:
    """Two levels of one kind, and endless paths, are refused (F59)."""
    with pytest.raises(InvalidScope, match="twice"):
        TenantScope.root("org", "a").child("org", "b")
    with pytest.raises(InvalidScope, match="at most 16"):
        TenantScope.from_levels(tuple(ScopeLevel(f"k{depth}", "x") for depth in range(17)))


def test_the_command_line_form() -> None:
    """`acme`, `org=acme` and levels below it, with clear errors."""
    assert str(TenantScope.parse("acme", "user=u1/conversation=c")) == "tenant=acme/user=u1/conversation=c"
    assert str(TenantScope.parse("org=acme")) == "org=acme"
    with pytest.raises(InvalidScope, match="kind=id"):
        TenantScope.parse("acme", "u1")


@pytest.mark.parametrize("written", ["tenant=acme/user=u1", "acme/user=u1", "org=acme/user=u1/chat=7"])
def test_a_scope_is_not_taken_for_a_tenant(written: str) -> None:
    """A scope copied from a list into --tenant would else name a new tenant that looks the same."""
    with pytest.raises(InvalidScope, match=r"--tenant \S*acme --scope user=u1"):
        TenantScope.parse(written)
    assert TenantScope.parse("acme/eu").tenant_id == "acme/eu"
