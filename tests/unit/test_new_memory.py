"""Reading a new memory: what is refused, and how the refusal names it."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.errors import InvalidInput
from memory_core.layers.records import NewMemory


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"content": " \x00\n"}, "content is blank"),
        ({}, "content is missing"),
        ({"content": "a", "confidense": 1}, "unknown key 'confidense'"),
        ({"content": "a", "confidence": float("nan")}, "confidence: input should be a finite number"),
        ({"content": "a", "confidence": 1.01}, "confidence: input should be less than or equal to 1"),
        ({"content": "a", "importance": 0}, "importance: input should be greater than or equal to 1"),
        ({"content": "a", "importance": "5"}, "importance: input should be a valid number"),
        ({"content": "a", "pinned": "yes"}, "pinned"),
        ({"content": "a", "layer": "dreams"}, "layer: input should be 'semantic'"),
        ({"content": "a", "observed_at": "2026-02-01T00:00:00"}, "observed_at: has no time zone"),
        ({"content": "a", "observed_at": 1_700_000_000}, "observed_at: is not a time"),
        ({"content": "a", "expires_at": "infinity"}, "expires_at: is not a time"),
        ({"content": "a", "subject": "s"}, "subject, predicate and object go together"),
        ({"content": "a", "label": "x" * 401}, "label: string should have at most 400 characters"),
        ({"content": "a", "embedding": [1.0]}, "embedding and embedding_model go together"),
        ({"content": "a", "embedding": [0, 0.0], "embedding_model": "m"}, "embedding: is all zeros"),
        ({"content": "a", "embedding": [float("inf")], "embedding_model": "m"}, "finite"),
        ({"content": "a", "properties": {"x": [float("inf")]}}, "properties: holds a number that is not finite"),
        ({"content": "a", "properties": {"x": 10**100}}, "properties: holds a number with more than 100 digits"),
        ({"content": "a", "properties": []}, "properties: input should be a valid dictionary"),
        ({"content": "a", "accesses": [{"kind": "peek", "at": "2026-02-01T00:00:00Z"}]}, "accesses.0.kind"),
        ({"content": "a", "edges": [{"to": "b"}]}, "edges.0.relationship is missing"),
        (
            {"content": "a", "external_id": "b", "edges": [{"to": "b", "relationship": "R"}]},
            "leads to the memory itself",
        ),
        ({"content": "a", "external_id": "b", "corrects": "b"}, "corrects names the memory itself"),
        ({"content": "a", "layer": "prospective", "properties": {"due_at": "soon"}}, "properties.due_at is not a time"),
        ({"content": "a", "layer": "procedural", "properties": {"steps": "one"}}, "properties.steps is not a list"),
        ({"content": "a", "source": "user", "properties": {"soul": {"field": "x"}}}, "properties.soul is not"),
    ],
)
def test_a_field_that_is_wrong_is_named(fields: dict[str, Any], reason: str) -> None:
    """Every refusal says which field and why, in words."""
    with pytest.raises(InvalidInput) as caught:
        NewMemory.read(fields)
    assert reason in str(caught.value)


def test_an_explicit_null_is_an_absent_key() -> None:
    """Exports of other tools write nulls."""
    assert NewMemory.read({"content": "a", "label": None, "importance": None}) == NewMemory.read({"content": "a"})
