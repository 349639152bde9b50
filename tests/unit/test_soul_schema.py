"""Values of a SOUL profile and their types; corrections in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.sleep.soul_plan import Correction, FieldValue, plan_corrections
from memory_core.sleep.soul_schema import Refused, coerced, schema_of, type_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "type_name", "expected"),
    [
        ("  Porto ", "str", "Porto"),
        (5, "str", "5"),
        ("36", "int", 36),
        ("-4", "int", -4),
        (4.0, "int", 4),
        ("4.25", "float", 4.25),
        (4, "float", 4.0),
        ("yes", "bool", True),
        ("Off", "bool", False),
        (1, "bool", True),
        ("2026-02-28", "date", "2026-02-28"),
        ("English, German,Portuguese", "list", ["English", "German", "Portuguese"]),
        ('["a", 1]', "list", ["a", 1]),
        ([1, 2], "list", [1, 2]),
        ('{"a": 1}', "dict", {"a": 1}),
        ({"a": None}, "dict", {"a": None}),
    ],
)
def test_values_take_their_fields_type(value: Any, type_name: str, expected: Any) -> None:
    """A value is read as its type wherever that needs no guess."""
    found = coerced(value, type_name)
    assert found == expected
    assert type(found) is type(expected)


def nested(depth: int) -> list[Any]:
    """A list within a list, so many deep."""
    found: list[Any] = [1]
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("value", "type_name", "reason"),
    [
        (None, "str", "null"),
        ("  ", "str", "blank"),
        ([], "list", "empty"),
        ({}, "dict", "empty"),
        (" , ,", "list", "empty"),
        (True, "str", "true is not text"),
        (["a"], "str", "not text"),
        ("thirty-six", "int", '"thirty-six" is not a whole number'),
        ("3.5", "int", "not a whole number"),
        (4.5, "int", "4.5 is not a whole number"),
        (True, "int", "true is not a whole number"),
        (2**70, "int", "too large"),
        ("9" * 5000, "int", "not a whole number"),
        ("nan", "float", "not a number"),
        ("1e999", "float", "not a finite number"),
        (10**400, "float", "not a finite number"),
        ("maybe", "bool", "not true or false"),
        (2, "bool", "not true or false"),
        ("2026-02-30", "date", "no day 2026-02-30"),
        ("tomorrow", "date", "not a date"),
        (20260228, "date", "not a date"),
        (5, "list", "not a list"),
        ("[1, 2]", "dict", "not an object"),
        ("{" * 100_000, "dict", "not an object"),
        ("[NaN]", "list", "cannot be stored"),
        ("[1e999]", "list", "cannot be stored"),
        ('["\\u0000"]', "list", "cannot be stored"),
        ('{"a": "\\ud800"}', "dict", "cannot be stored"),
        ("\u200b\ufeff", "str", "blank"),
        ("\u00a0\u3000", "int", "blank"),
        (["", " ", None, ["\u200b"]], "list", "empty"),
        ("[1, 2", "list", "not a list"),
        ('{"a": 1}', "list", "not a list"),
        ({"a": 1}, "list", "not a list"),
        ([{"a": 1}], "dict", "not an object"),
        ("\uff13\uff16", "int", "not a whole number"),
        ("\u0663", "float", "not a number"),
        ("1_000", "int", "not a whole number"),
        ("2\uff10\uff1226-02-08", "date", "not a date"),
        (True, "float", "true is not a number"),
        (1.0, "bool", "not true or false"),
        (True, "date", "not a date"),
        ("2026-02-28T10:00:00Z", "date", "not a date"),
        pytest.param(10**5_000, "str", "too large", id="five thousand digits"),
        ("x" * 10_001, "str", "longer than 10,000 characters"),
        (["word"] * 5_000, "list", "longer than 10,000 characters"),
        (nested(3_000), "list", "cannot be stored"),
        (nested(3_000), "int", "not a whole number"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(value: Any, type_name: str, reason: str) -> None:
    """Nothing is guessed, nothing is emptied, and the reason is short."""
    with pytest.raises(Refused, match=reason) as refused:
        coerced(value, type_name)
    assert len(str(refused.value)) < 150


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, st.sampled_from(["str", "int", "float", "bool", "date", "list", "dict"]))
def test_every_json_value_is_coerced_or_refused(value: Any, type_name: str) -> None:
    """No value breaks the phase, what comes out is JSON and finite, and coercing it again changes nothing."""
    try:
        found = coerced(value, type_name)
    except Refused:
        return
    json.dumps(found)
    assert found not in ("", [], {}, None)
    assert coerced(found, type_name) == found


def test_a_schema_names_types_in_several_ways() -> None:
    """Python's types, their names and JSON Schema's names are one; another is refused by name."""
    assert schema_of({"a": "string", "b": int, "c": " Float ", "d": "array"}) == {
        "a": "str",
        "b": "int",
        "c": "float",
        "d": "list",
    }
    with pytest.raises(InvalidInput, match="'complex'"):
        schema_of({"a": "complex"})
    assert schema_of({" age ": "int", "cafe\u0301": "str"}) == {"age": "int", "caf\u00e9": "str"}
    for nameless in ({" ": "str"}, {"\u200b": "str"}, {7: "str"}, {"x" * 201: "str"}):
        with pytest.raises(InvalidInput, match="no name"):
            schema_of(nameless)  # type: ignore[arg-type]
    for no_schema in (["age"], "age: int", 7):
        with pytest.raises(InvalidInput, match="not a mapping"):
            schema_of(no_schema)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="twice"):
        schema_of({"age": "int", "age ": "str"})
    with pytest.raises(InvalidInput, match="None"):
        schema_of({"age": None})
    assert [type_of(value) for value in ("a", 1, True, 1.5, [1], {"a": 1})] == [
        "str",
        "int",
        "bool",
        "float",
        "list",
        "dict",
    ]


def correction(number: int, hours: float, **fields: Any) -> Correction:
    return Correction(UUID(int=number), None, "Ann", NOON + timedelta(hours=hours), {"fields": fields})


def test_the_newest_correction_wins_whatever_the_order() -> None:
    """Time decides, not the order of the list (F26); the value before the last change is kept."""
    newest, oldest = correction(1, 2, role="CEO"), correction(2, 1, role="CTO")
    for given_order in ([newest, oldest], [oldest, newest]):
        plan = plan_corrections(given_order, {}, None)
        assert plan.written["role"].value == "CEO"
        assert plan.written["role"].previous == "CTO"
        assert [decision.outcome for decision in plan.decisions] == ["applied", "applied"]


def test_an_old_correction_never_overrides_a_newer_value() -> None:
    """A late arrival is rejected with the reason (F27); one of the same moment is applied."""
    profile = {"role": FieldValue("CEO", "str", NOON)}
    late = plan_corrections([correction(1, -1, role="CTO")], profile, None)
    assert (late.written, late.decisions[0].outcome) == ({}, "rejected")
    assert late.decisions[0].reasons["role"].startswith("older than the present value")
    assert plan_corrections([correction(1, 0, role="CTO")], profile, None).written["role"].value == "CTO"


def test_a_confirmed_value_keeps_its_former_one() -> None:
    """Saying the same again moves the time and changes nothing."""
    profile = {"role": FieldValue("CEO", "str", NOON, previous="CTO")}
    plan = plan_corrections([correction(1, 1, role="CEO")], profile, None)
    assert plan.changed == set()
    assert (plan.written["role"].previous, plan.written["role"].at) == ("CTO", NOON + timedelta(hours=1))
    one = plan_corrections([correction(1, 1, flag=True)], {"flag": FieldValue(1, "int", NOON)}, None)
    assert one.changed == {"flag"}


def test_each_field_is_judged_by_itself() -> None:
    """A field that fits is applied beside one that does not, and each says what became of it."""
    plan = plan_corrections([correction(1, 0, age="36", city="", shoe=44)], {}, {"age": "int", "city": "str"})
    decision = plan.decisions[0]
    assert decision.outcome == "partly_applied"
    assert decision.reasons["age"] == "applied"
    assert "never emptied" in decision.reasons["city"]
    assert "no field 'shoe'" in decision.reasons["shoe"]
    assert plan.written["age"].value == 36


@pytest.mark.parametrize("what", [{}, {"fields": {}}, {"fields": ["a"]}, {"fields": None}, {"fields": {" ": 1}}])
def test_a_correction_that_says_nothing_is_rejected(what: dict[str, Any]) -> None:
    """A malformed correction is consumed with a reason, and stops nothing."""
    plan = plan_corrections([Correction(UUID(int=1), None, "Ann", NOON, what), correction(2, 1, a=1)], {}, None)
    assert [decision.outcome for decision in plan.decisions] == ["rejected", "applied"]
    assert plan.decisions[0].reasons


def test_a_content_correction_was_applied_when_it_was_made() -> None:
    """It is consumed, and leaves the profile alone."""
    plan = plan_corrections([Correction(UUID(int=1), UUID(int=9), "Ann", NOON, {"content": "Ann likes tea"})], {}, None)
    assert plan.decisions[0].outcome == "applied"
    assert plan.decisions[0].reasons == {"content": "content, applied when it was made"}
    assert plan.written == {}


def test_two_corrections_of_one_instant_have_one_order() -> None:
    """Whatever order they come in, the same one wins, and the other is the former value."""
    one, other = correction(1, 0, role="CTO"), correction(2, 0, role="CEO")
    for given_order in ([one, other], [other, one]):
        written = plan_corrections(given_order, {}, None).written["role"]
        assert (written.value, written.previous) == ("CEO", "CTO")


def test_field_names_have_one_form() -> None:
    """White space around and decomposed accents make no second field; an invisible or endless name is refused."""
    given = {" caf\u00e9 ": "one", "\u200b": "two", "x" * 201: "three"}
    plan = plan_corrections([Correction(UUID(int=1), None, "Ann", NOON, {"fields": given})], {}, {"caf\u00e9": "str"})
    assert set(plan.written) == {"caf\u00e9"}
    assert plan.rejected_fields == 2
    decomposed = Correction(UUID(int=2), None, "Ann", NOON + timedelta(hours=1), {"fields": {"cafe\u0301": "two"}})
    again = plan_corrections([decomposed], plan.written, None)
    assert (again.written["caf\u00e9"].value, again.written["caf\u00e9"].previous) == ("two", "one")


def test_a_field_called_content_loses_no_reason() -> None:
    """What became of the field and of the content are both said."""
    what = {"content": "Ann likes tea", "fields": {"content": " "}}
    (decision,) = plan_corrections([Correction(UUID(int=1), None, "Ann", NOON, what)], {}, None).decisions
    assert decision.outcome == "partly_applied"
    assert "applied when it was made" in decision.reasons["content"]
    assert "never emptied" in decision.reasons["content"]


def test_an_empty_schema_accepts_nothing() -> None:
    """Given to a run, it is a schema all the same, and the reason names that it has no field."""
    plan = plan_corrections([correction(1, 0, age=36)], {}, {})
    assert plan.decisions[0].reasons["age"] == "the SOUL schema has no field 'age'; it has none"
