"""What a scope's waiting corrections make of its SOUL profile, decided in memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.sleep.soul_schema import LONGEST_FIELD, Refused, coerced, field_name, type_of

APPLIED = "applied"
UNCHANGED = "applied; it already had this value"
CONTENT = "content, applied when it was made"


@dataclass(frozen=True, slots=True)
class Correction:
    """One waiting correction.

    Attributes:
        what: `{"fields": {name: value}}` for the profile, `{"content": …}` for the memory itself, or both; empty where
            it cannot be read.
        withdrawn: why its memory no longer says it; empty where it does.
    """

    id: UUID
    memory_id: UUID | None
    who: str
    at: datetime
    what: Mapping[str, Any]
    withdrawn: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one correction.

    Attributes:
        reasons: by field, and `content` or `correction` for the whole: what was done, or why not.
    """

    correction: Correction
    outcome: Literal["applied", "partly_applied", "rejected"]
    reasons: dict[str, str]


@dataclass(slots=True)
class FieldValue:
    """A profile field as it stands while corrections are applied."""

    value: Any
    type: str
    at: datetime
    previous: Any = None
    correction: Correction | None = None


@dataclass(slots=True)
class Plan:
    """The corrections' decisions, in time order, and the profile they leave.

    Attributes:
        written: the fields to write, by name: those that a correction set, also to the value they had.
        changed: names of fields whose value is another one than before.
    """

    decisions: list[Decision] = field(default_factory=list)
    written: dict[str, FieldValue] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    rejected_fields: int = 0


def plan_corrections(
    corrections: Iterable[Correction], profile: Mapping[str, FieldValue], schema: Mapping[str, str] | None
) -> Plan:
    """Apply corrections in time order, the older first, whatever order they come in.

    Args:
        profile: the fields as stored.
        schema: field to type; None where the domain has no schema, and any field is accepted as it is.
    """
    plan = Plan()
    now = dict(profile)
    for correction in sorted(corrections, key=lambda item: (item.at, item.id)):
        reasons: dict[str, str] = {}
        applied = rejected = 0
        for name, outcome, done in _parts(correction, now, schema, plan):
            # A field may be called as a part of the correction is.
            reasons[name] = f"{reasons[name]}; {outcome}" if name in reasons else outcome
            applied += done
            rejected += not done
        plan.rejected_fields += rejected
        plan.decisions.append(
            Decision(correction, "applied" if not rejected else "partly_applied" if applied else "rejected", reasons)
        )
    plan.changed = {
        name
        for name, found in plan.written.items()
        if name not in profile or not _same(profile[name].value, found.value)
    }
    return plan


def _parts(
    correction: Correction, now: dict[str, FieldValue], schema: Mapping[str, str] | None, plan: Plan
) -> Iterable[tuple[str, str, bool]]:
    """Name, what was done or why not, and whether it was: for each part of a correction."""
    fields = correction.what.get("fields")
    if "content" in correction.what:
        yield "content", CONTENT, True
    if (fields is None and "content" not in correction.what) or fields == {}:
        yield "correction", "it names neither a field nor a content", False
    elif fields is not None and not isinstance(fields, Mapping):
        yield "correction", "its fields are not names with values", False
    for given, value in fields.items() if isinstance(fields, Mapping) else ():
        try:
            yield given, _set(correction, field_name(given), value, now, schema, plan), True
        except Refused as refusal:
            yield given, str(refusal), False


def _set(
    correction: Correction,
    name: str,
    value: Any,
    now: dict[str, FieldValue],
    schema: Mapping[str, str] | None,
    plan: Plan,
) -> str:
    if correction.withdrawn:
        raise Refused(correction.withdrawn)
    if not name:
        raise Refused(f"a field's name has 1 to {LONGEST_FIELD} characters")
    if schema is not None and name not in schema:
        raise Refused(f"the SOUL schema has no field {name!r}; it has {_names(schema)}")
    type_name = type_of(value) if schema is None else schema[name]
    found = coerced(value, type_name)
    present = now.get(name)
    if present is not None and correction.at < present.at:
        raise Refused(f"older than the present value, which is of {present.at.isoformat()}")
    same = present is not None and _same(present.value, found)
    # The value before the last change is kept, also where the same value was confirmed since.
    previous = None if present is None else present.previous if same else present.value
    now[name] = plan.written[name] = FieldValue(found, type_name, correction.at, previous, correction)
    return UNCHANGED if same else APPLIED


def _names(schema: Mapping[str, str]) -> str:
    return ", ".join(sorted(schema)[:20]) or "none"


def _same(one: Any, other: Any) -> bool:
    # In Python 1 == True == 1.0, and these are three values of a profile.
    return type(one) is type(other) and one == other
