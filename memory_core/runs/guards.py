"""The last net: a run that would take away too much is refused as a whole.

Retiring takes a memory out of use; superseding replaces it by a better one. The first is bounded tightly,
both together loosely.
"""

from __future__ import annotations

from datetime import timedelta
from math import floor

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.database.tables.memories import IDENTITY_PREFIXES as IDENTITY_PREFIXES
from memory_core.errors import GuardTripped
from memory_core.runs.context import RunContext

IDENTITY_CONDITION = " OR ".join(f"starts_with(m.label, '{prefix}')" for prefix in IDENTITY_PREFIXES)
"""SQL: whether memory `m` is identity or persona."""


class GuardSettings(BaseModel):
    """Section `guards`: how much one run, and thirty days of runs, may take away."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    retire_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of the scope's memories one run may retire."
    )
    retire_at_least: int = Field(
        default=5, ge=0, description="Number of memories one run may retire whatever the share."
    )
    retire_share_of_30_days: float = Field(
        default=0.20, ge=0, le=1, description="Share that may be retired within 30 days."
    )
    hide_share: float = Field(
        default=0.50, ge=0, le=1, description="Share that may leave default recall in one run, superseding included."
    )
    hide_at_least: int = Field(default=10, ge=0, description="Number that may leave default recall whatever the share.")


# Rows that a phase made are left out: a refreshed meta-node is no memory taken away. So is the working layer, on both
# sides: it expires by design, and a hundred lines of a day make no room for ten facts to be taken.
_COUNTS = f"""
SELECT count(*) FILTER (WHERE retired_at IS NULL AND superseded_reason IS NULL) AS current,
       count(*) FILTER (WHERE retired_by_run = :run_id) AS retired_now,
       count(*) FILTER (WHERE retired_by_run IS NOT NULL AND retired_at > CAST(:since AS timestamptz))
         AS retired_lately,
       count(*) FILTER (WHERE retired_by_run IS NOT NULL AND retired_at > CAST(:evening AS timestamptz))
         AS retired_tonight,
       count(*) FILTER (WHERE retired_by_run = :run_id OR superseded_by_run = :run_id) AS hidden_now,
       count(*) FILTER (WHERE retired_at IS NULL AND superseded_reason IS NULL AND m.pinned) AS pinned_left,
       count(*) FILTER (WHERE retired_by_run = :run_id AND m.pinned) AS pinned_retired,
       count(*) FILTER (WHERE retired_at IS NULL AND superseded_reason IS NULL AND ({IDENTITY_CONDITION}))
         AS identity_left,
       count(*) FILTER (WHERE retired_by_run = :run_id AND ({IDENTITY_CONDITION})) AS identity_retired
FROM memories m
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND recorded_at <= :as_of AND derived_key IS NULL
  AND layer <> 'working'
"""


async def check_guards(connection: ScopedConnection, context: RunContext) -> None:
    """Refuse the run where what it has done so far, this transaction included, takes away too much.

    Call it in every step that retires or supersedes, before its commit. An accepted run passes.

    Raises:
        GuardTripped: with the guard's name and the numbers.
    """
    if context.accepted:
        return
    found = await _counted(connection)
    before = found["current"] + found["hidden_now"]
    for guard, number, limit, verb in _limits(found, context):
        if number > limit:
            raise GuardTripped(
                f"The run would {verb} {number} of {before} memories, and the guard {guard} allows {int(limit)}.",
                hint="Look at it with --dry-run; run it with --accept if that is right.",
                guard=guard,
                number=number,
                of=before,
                allowed=int(limit),
            )
    for protected in ("pinned", "identity"):
        if found[f"{protected}_retired"] and not found[f"{protected}_left"]:
            raise GuardTripped(
                f"The run would retire the last {protected} memories of the scope.",
                hint="Look at it with --dry-run; run it with --accept if that is right.",
                guard=f"protected_{protected}",
                number=found[f"{protected}_retired"],
                of=before,
                allowed=0,
            )


async def left_to_retire(connection: ScopedConnection, context: RunContext) -> int | None:
    """How many more of the scope's memories this run may retire before a guard refuses it; None for an accepted run.

    What other runs retired in the last twelve hours counts too: a second run of one night has no ration of its own.
    """
    if context.accepted:
        return None
    found = await _counted(connection)
    of_the_night = found["retired_tonight"] - found["retired_now"]
    left = [
        limit - number - (of_the_night if guard == "retire_share" else 0)
        for guard, number, limit, _ in _limits(found, context)
    ]
    return max(0, floor(min(left)))


async def _counted(connection: ScopedConnection) -> RowMapping:
    found = await connection.row(
        _COUNTS, since=connection.as_of - timedelta(days=30), evening=connection.as_of - timedelta(hours=12)
    )
    assert found is not None  # an aggregate without GROUP BY has one row
    return found


def _limits(found: RowMapping, context: RunContext) -> tuple[tuple[str, int, float, str], ...]:
    """Each guard's name, what it counts, how much of that it allows, and what the run would do, in words."""
    settings = context.section("guards", GuardSettings)
    before = found["current"] + found["hidden_now"]
    return (
        ("retire_share", found["retired_now"], max(settings.retire_share * before, settings.retire_at_least), "retire"),
        (
            "retire_share_of_30_days",
            found["retired_lately"],
            max(
                settings.retire_share_of_30_days * (found["current"] + found["retired_lately"]),
                settings.retire_at_least,
            ),
            "have retired within 30 days",
        ),
        (
            "hide_share",
            found["hidden_now"],
            max(settings.hide_share * before, settings.hide_at_least),
            "take out of default recall",
        ),
    )
