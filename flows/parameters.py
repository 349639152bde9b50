"""What each flow can be given: checked by Prefect before a run exists, and shown as a form in its UI.

Defaults are literals, because a computed default does not reach the form. Fields are shown by `position`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

TENANT_PATTERN = r"^\S(.*\S)?$"
SCOPE_PATTERN = r"^([^=/]+=[^=/]+(/[^=/]+=[^=/]+)*)?$"
ZONE_PATTERN = r"(Z|z|[+-]\d\d(:?\d\d)?)$"

TenantName = Annotated[str, Field(min_length=1, max_length=401, pattern=TENANT_PATTERN)]
Sections = dict[str, dict[str, Any]]


class ConsolidationParameters(BaseModel):
    """What a consolidating flow runs on, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenants: list[TenantName] = Field(
        min_length=1,
        max_length=1_000,
        description="Ids of the tenants, such as acme; `all` for every tenant there is.",
        json_schema_extra={"position": 0},
    )
    scope: str = Field(
        default="",
        max_length=4_000,
        pattern=SCOPE_PATTERN,
        description="One scope below the tenant, as kind=id/kind=id; empty for all its scopes.",
        json_schema_extra={"position": 1},
    )
    as_of: AwareDatetime | None = Field(
        default=None,
        description="The run's now: it sees what was recorded by then. With a time zone; empty for the time it starts.",
        # Otherwise a time without a zone would only be refused once the run has begun.
        json_schema_extra={"position": 2, "pattern": ZONE_PATTERN},
    )
    dry_run: bool = Field(
        default=False,
        description="Only find out what the run would do; nothing of the memory is changed.",
        json_schema_extra={"position": 3},
    )
    accept: bool = Field(
        default=False,
        description="Accept what the guards would refuse. Look at a dry run first.",
        json_schema_extra={"position": 4},
    )
    reconsider: bool = Field(
        default=False,
        description="Also do again what a person undid.",
        json_schema_extra={"position": 5},
    )
    requested_by: str = Field(
        default="schedule",
        min_length=1,
        max_length=200,
        description="Who or what asked for the run; kept with it.",
        json_schema_extra={"position": 6},
    )
    settings: Sections = Field(
        default={},
        description='Settings of this run alone, a table a section, such as {"strengthen": {"lookback_hours": 48}}.',
        json_schema_extra={"position": 7},
    )

    def run_parameters(self) -> dict[str, Any]:
        """What the run itself is given, and is told apart by; only what was asked for, as the command line does."""
        given: dict[str, Any] = {
            "accept": self.accept,
            "reconsider": self.reconsider,
            "settings": {name: values for name, values in self.settings.items() if values},
        }
        return {name: value for name, value in given.items() if value}


class HarmonizeParameters(ConsolidationParameters):
    """Reconcile contradictions into beliefs."""


class DeepSleepParameters(ConsolidationParameters):
    """The seven phases of sleep."""

    soul_schema: dict[str, str] | None = Field(
        default=None,
        description='Names and types the SOUL profile may hold, such as {"home": "string"}; empty for those known.',
        json_schema_extra={"position": 8},
    )
    pending_connections: list[dict[str, Any]] = Field(
        default=[],
        max_length=10_000,
        description="Connections of an activation log: source, relationship, target, status.",
        json_schema_extra={"position": 9},
    )

    def run_parameters(self) -> dict[str, Any]:
        """With the phases' own input."""
        given = {"soul_schema": self.soul_schema, "pending_connections": self.pending_connections}
        return {**super().run_parameters(), **{name: value for name, value in given.items() if value}}


class NightlyParameters(DeepSleepParameters):
    """Sleep and harmonize, with the morning report."""


class ReplayParameters(BaseModel):
    """Many nights one after another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenants: list[TenantName] = Field(
        min_length=1,
        max_length=1_000,
        description="Ids of the tenants, such as acme; `all` for every tenant there is.",
        json_schema_extra={"position": 0},
    )
    nights: list[AwareDatetime] = Field(
        min_length=1,
        max_length=4_000,
        description="The time of each night, with a time zone; slept through in the order of time.",
        json_schema_extra={"position": 1},
    )
    requested_by: str = Field(
        default="replay",
        min_length=1,
        max_length=200,
        description="Who or what asked for the replay; kept with each run.",
        json_schema_extra={"position": 2},
    )
    settings: Sections = Field(
        default={},
        description="Settings of these runs alone, a table a section.",
        json_schema_extra={"position": 3},
    )
