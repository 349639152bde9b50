"""Provenance of promoted memories: whole ids are compared, each source is named once, the last to go is told."""

from __future__ import annotations

import copy
import uuid
from typing import Any

import pytest

from memory_core.layers.provenance import promoted, provenance_of, with_sources, without_source
from memory_core.scope import TenantScope
from tests.builders import NIGHT

BRAND = TenantScope.root("tenant", "acme").child("brand", "x")
C1, C12 = (BRAND.child("chat", name).scope_path for name in ("c-1", "c-12"))
FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=12)


def entry(scope_path: str, memory_id: uuid.UUID, **more: Any) -> dict[str, Any]:
    return {"scope_path": scope_path, "memory_id": str(memory_id), "confidence": 0.8, **more}


def test_a_scope_is_taken_away_by_its_whole_path() -> None:
    """Erasing c-1 leaves c-12, the brand above and a scope of the same path in capitals (F25)."""
    kept = [entry(C12, FIRST), entry(BRAND.scope_path, FIRST), entry(C1.upper(), FIRST)]
    assert without_source([entry(C1, FIRST), *kept, entry(C1, SECOND)], C1) == (kept, False)


def test_the_last_source_to_go_leaves_nothing() -> None:
    """Then the promoted memory has nothing to rest on; a scope that is not named changes nothing."""
    assert without_source([entry(C1, FIRST)], C1) == ([], True)
    assert without_source([entry(C1, FIRST)], C12) == ([entry(C1, FIRST)], False)
    assert without_source([], C1) == ([], True)


@pytest.mark.parametrize("given", [FIRST, str(FIRST)], ids=["uuid", "text"])
def test_one_memory_of_a_scope_is_taken_away_alone(given: uuid.UUID | str) -> None:
    """The scope's other memories stay, and so does the same id under another scope."""
    kept = [entry(C1, SECOND), entry(C12, FIRST)]
    assert without_source([entry(C1, FIRST), *kept], C1, given) == (kept, False)


def test_each_source_is_named_once_and_the_first_naming_stays() -> None:
    """Naming a source again adds nothing, and what is given is not changed."""
    known = [entry(C1, FIRST, promoted_by="ann")]
    before = copy.deepcopy(known)
    again = [entry(C1, FIRST, promoted_by="bo"), entry(C1, SECOND, promoted_by="bo"), entry(C1, SECOND)]
    whole, added = with_sources(known, again)
    assert (whole, added) == ([*known, again[1]], 1)
    assert known == before
    whole[0]["promoted_by"] = "changed"
    assert known == before


def test_an_act_says_who_when_and_in_which_run() -> None:
    """Of a source, nothing but its scope, id and confidence is taken over."""
    source = entry(C1, FIRST, content="what it says", promoted_by="somebody else")
    act = {"promoted_at": NIGHT.isoformat(), "promoted_by": "ann"}
    assert promoted([source], at=NIGHT, by="ann") == [{**entry(C1, FIRST), **act}]
    run = uuid.UUID(int=7)
    assert promoted([source], at=NIGHT, by="ann", run_id=run) == [{**entry(C1, FIRST), **act, "run_id": str(run)}]


def test_what_somebody_else_wrote_under_the_name_is_no_provenance() -> None:
    """Only a promoted memory has provenance, and only whole entries count."""
    entries = [entry(C1, FIRST)]
    assert provenance_of({"promoted_from": entries}, "promotion") == entries
    assert provenance_of({"promoted_from": entries}, "import") == []
    assert provenance_of({}, "promotion") == []
    assert provenance_of({"promoted_from": "a colleague"}, "promotion") == []
    odd = ["c-1", {"scope_path": C1}, {"memory_id": str(FIRST)}, {"scope_path": "", "memory_id": "x"}]
    assert provenance_of({"promoted_from": [*odd, *entries]}, "promotion") == entries
