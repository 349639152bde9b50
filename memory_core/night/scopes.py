"""Which scopes there are: enumerated from the data by the operator role, whatever the root's kind."""

from __future__ import annotations

from memory_core.database.engine import Database
from memory_core.errors import NotFound
from memory_core.scope import TenantScope


async def scopes_of_tenant(database: Database, tenant_id: str) -> list[TenantScope]:
    """Every known scope of a tenant, ancestors first.

    Raises:
        NotFound: there is no such tenant.
    """
    rows = await database.operator_rows(
        "SELECT scope_path FROM scopes WHERE tenant_id = :tenant ORDER BY depth, scope_path", tenant=tenant_id
    )
    if not rows:
        known = await database.operator_rows("SELECT tenant_id FROM tenants ORDER BY tenant_id LIMIT 5")
        names = ", ".join(row["tenant_id"] for row in known)
        raise NotFound(
            f"There is no tenant {tenant_id!r} here.",
            hint=f"Known: {names}." if names else "Nothing has been imported yet: `slowwave import FILE --tenant T`.",
        )
    return [TenantScope.from_path(row["scope_path"]) for row in rows]
