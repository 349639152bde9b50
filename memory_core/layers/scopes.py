"""What every write begins with: the scope is known, and its writers take turns."""

from __future__ import annotations

from memory_core.database.scoped import ScopedConnection
from memory_core.errors import InvalidScope


async def enter_scope(connection: ScopedConnection) -> None:
    """Make the tenant and the scope known, and hold the scope's writers' lock until the transaction ends.

    Runs do not take this lock: remembering goes on while a scope sleeps.

    Raises:
        InvalidScope: the tenant is known under a root of another kind, whose scopes could never see this memory.
        TransactionConflict: another writer held the scope for longer than `lock_timeout`.
    """
    root = connection.scope.levels[0]
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('slowwave:write:' || :scope_path, 0))")
    known = await connection.scalar("SELECT root_kind FROM tenants WHERE tenant_id = :tenant_id")
    if known is None:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, root_kind) VALUES (:tenant_id, :kind) ON CONFLICT DO NOTHING",
            kind=root.kind,
        )
        known = await connection.scalar("SELECT root_kind FROM tenants WHERE tenant_id = :tenant_id")
    if known != root.kind:
        raise InvalidScope(
            f"The tenant {root.id!r} is known as {known}={root.id}, and {root.kind}={root.id} would be another scope "
            "that sees none of its memories.",
            hint=f"Write the tenant as {known}={root.id}.",
            tenant=root.id,
            root_kind=known,
        )
    await connection.execute(
        "INSERT INTO scopes (tenant_id, scope_path, depth) VALUES (:tenant_id, :scope_path, :depth) "
        "ON CONFLICT DO NOTHING",
        depth=connection.scope.scope_depth,
    )
