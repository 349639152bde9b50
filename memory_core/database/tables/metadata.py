"""The schema's name, naming conventions, and the columns that many tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Double, ForeignKeyConstraint, MetaData, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "slowwave"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


def tenant_id(**options: Any) -> Column[str]:
    """The tenant's id: first in every key."""
    return Column("tenant_id", Text, nullable=False, **options)


def scope_path(**options: Any) -> Column[str]:
    """The materialised scope path of the row's owner."""
    return Column("scope_path", Text, nullable=False, **options)


def moment(name: str, *, nullable: bool = False, default_now: bool = False) -> Column[Any]:
    """A timezone-aware time."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable,
        server_default=text("clock_timestamp()") if default_now else None,
    )


def document(name: str, *, nullable: bool = False, default: str | None = "'{}'::jsonb") -> Column[Any]:
    """A JSON document; a null document is SQL NULL, never JSON null."""
    return Column(
        name, JSONB(none_as_null=True), nullable=nullable, server_default=None if default is None else text(default)
    )


def identifier(name: str = "id", *, nullable: bool = False) -> Column[Any]:
    """A uuid."""
    return Column(name, Uuid, nullable=nullable)


def fraction(name: str, *, default: str | None = None, nullable: bool = False) -> Column[float]:
    """A number from 0 to 1; pair it with `fraction_check`."""
    return Column(name, Double, nullable=nullable, server_default=None if default is None else text(default))


def fraction_check(name: str) -> CheckConstraint:
    """0 to 1 and finite: Postgres orders NaN above every number, so the upper bound refuses it."""
    return CheckConstraint(f"{name} BETWEEN 0 AND 1", name=f"{name}_from_0_to_1")


def finite_times(*names: str) -> CheckConstraint:
    """Refuses 'infinity', which Python cannot hold."""
    return CheckConstraint(" AND ".join(f"isfinite({name})" for name in names), name="finite_times")


def one_of(name: str, *values: str) -> CheckConstraint:
    """A closed set of words."""
    return CheckConstraint(f"{name} IN ({', '.join(repr(value) for value in values)})", name=f"{name}_known")


def references(column: str, table: str, key: str = "id", *, deferred: bool = False) -> ForeignKeyConstraint:
    """A composite foreign key with the tenant first; rows go with what they refer to.

    Args:
        deferred: checked at commit, for rows that may refer to one another within one transaction.
    """
    targets = [f"{SCHEMA}.{table}.tenant_id", f"{SCHEMA}.{table}.{key}"]
    if deferred:
        return ForeignKeyConstraint(["tenant_id", column], targets, deferrable=True, initially="DEFERRED")
    return ForeignKeyConstraint(["tenant_id", column], targets, ondelete="CASCADE")
