"""What a run may still spend on model calls: its limits, less what its earlier steps have spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memory_core.database.scoped import ScopedConnection
from memory_core.models.budgets import Budget, BudgetSettings
from memory_core.runs.context import RunContext

_READ = """
SELECT (SELECT budgets FROM tenants WHERE tenant_id = :tenant_id) AS budgets,
       count(*) AS calls, coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost
FROM model_attempts
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = CAST(:run_id AS uuid)
"""


def limits_of(context: RunContext, budgets: Mapping[str, Any]) -> BudgetSettings:
    """What a run may spend: the call's limits, the tenant's, the environment's, the file's.

    Args:
        budgets: the tenant's own, as stored with it; settings of the tenant or of a scope stand before them.

    Raises:
        InvalidSettings: a limit is out of range or its name unknown; no limit is left out in silence.
    """
    own = context.tenant_settings.get("budget", {})
    if isinstance(own, Mapping):
        own = {**budgets, **own}
    return replace(context, tenant_settings={**context.tenant_settings, "budget": own}).section(
        "budget", BudgetSettings
    )


async def budget_left(connection: ScopedConnection, context: RunContext) -> Budget:
    """The run's budget with what its earlier steps and attempts have spent, failed calls included.

    Raises:
        InvalidSettings: as `limits_of`.
    """
    row = await connection.row(_READ)
    assert row is not None  # an aggregate without GROUP BY has one row
    return Budget(
        limits_of(context, row["budgets"] or {}), calls=row["calls"], tokens=int(row["tokens"]), cost=float(row["cost"])
    )
