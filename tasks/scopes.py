"""Which scopes a flow was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.database.engine import Database
from memory_core.errors import NotFound
from memory_core.night.scopes import scopes_of_tenant
from memory_core.scope import TenantScope

ALL = "all"
"""Instead of a tenant's id: every tenant there is."""


async def choose_scopes(database: Database, tenants: Sequence[str], scope: str = "") -> list[TenantScope]:
    """The known scopes of the tenants, or the named one of each; ancestors before their children.

    Args:
        tenants: ids, also as `kind=id`, or `all`.
        scope: `kind=id/kind=id` below the tenant; empty for every scope of the tenant.

    Raises:
        NotFound: there is no such tenant, or none of the tenants has such a scope.
    """
    names = list(dict.fromkeys(tenants))
    if ALL in names:
        rows = await database.operator_rows("SELECT tenant_id FROM tenants ORDER BY tenant_id")
        names = [row["tenant_id"] for row in rows]
    chosen: list[TenantScope] = []
    for name in names:
        known = await _scopes_of(database, name)
        chosen += [each for each in known if not scope or scope in (str(each), str(each).partition("/")[2])]
    if not chosen and names:
        raise NotFound(
            f"There is no scope {scope} of {', '.join(names[:5])} here.",
            hint="`slowwave status` lists those that exist.",
        )
    return chosen


async def _scopes_of(database: Database, name: str) -> list[TenantScope]:
    try:
        return await scopes_of_tenant(database, name)
    except NotFound:
        kind, equals, tenant_id = name.partition("=")
        if not equals:
            raise
        known = await scopes_of_tenant(database, tenant_id)
        return [scope for scope in known if scope.levels[0].kind == kind]
