"""Faults in what a model's answer may do (F22, F23, F25 to F33), each in its right form."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from memory_core import recall, recall_beliefs
from memory_core.database.engine import Database
from memory_core.scope import TenantScope
from memory_core.shmr.decisions import BeliefProposal
from memory_core.shmr.translation import belief_id
from tests.builders import NIGHT, add_home, add_memory, ago
from tests.by_name import ByName
from tests.knowledge import change
from tests.scripted_model import DAMPEN, PEOPLE, UPDATE, Scripted, homes, items, many_homes
from tests.shmr_runs import Harmonized, beliefs, harmonize, roles, rows, state


async def confidence(database: Database, scope: TenantScope, memory_id: uuid.UUID) -> float:
    """A memory's confidence."""
    (row,) = await rows(database, scope, "SELECT confidence FROM memory_state WHERE memory_id = :id", id=memory_id)
    return round(row["confidence"], 6)


async def reasons(database: Database, scope: TenantScope) -> dict[str, set[str]]:
    """Why proposals were turned down, by whom the cluster speaks of."""
    found = await rows(
        database,
        scope,
        "SELECT m.subject, c.rejected FROM memory_resonance_clusters c "
        "JOIN memories m ON m.id = CAST(c.members -> 0 ->> 'memory_id' AS uuid)",
    )
    return {row["subject"]: {each["reason"] for each in row["rejected"]} for row in found}


def nothing_counted(run: Harmonized) -> bool:
    """Whether the run counts no effect."""
    counts = ("beliefs_generated", "contradictions_resolved", "dampened", "duplicates")
    return not any(run.summary[name] for name in counts)


KNOWLEDGE = """
SELECT md5(coalesce((SELECT string_agg(to_jsonb(m)::text, '' ORDER BY id) FROM memories m), '')
  || coalesce((SELECT string_agg(to_jsonb(s)::text, '' ORDER BY memory_id) FROM memory_state s), '')
  || coalesce((SELECT string_agg(to_jsonb(b)::text, '' ORDER BY belief_id) FROM harmonic_beliefs b), '')) AS digest
"""


async def knowledge(database: Database, scope: TenantScope) -> str:
    """A digest of memories, their state and the beliefs."""
    (row,) = await rows(database, scope, KNOWLEDGE)
    return str(row["digest"])


async def test_one_answer_dampens_a_memory_once(database: Database, scope: TenantScope) -> None:
    """F22: of three dampens of one target the first counts, and the others are turned down as repeats."""
    old, _ = await homes(database, scope)
    run = await harmonize(database, scope, language=Scripted(items(DAMPEN, DAMPEN, DAMPEN)))
    assert (await confidence(database, scope, old), run.summary["dampened"]) == (0.55, 1)
    (cluster,) = await rows(database, scope, "SELECT rejected FROM memory_resonance_clusters")
    assert [(each["item"], each["reason"]) for each in cluster["rejected"]] == [
        (1, "duplicate_target"),
        (2, "duplicate_target"),
    ]


BAD_ITEMS: list[tuple[dict[str, Any], str]] = [
    ({"object": None}, "wrong_type"),
    ({"object": "\ud800"}, "bad_character"),
    ({"object": 7}, "wrong_type"),
    ({"object": {"city": "Bergen"}}, "wrong_type"),
    ({"object": ["Bergen"]}, "wrong_type"),
    ({"subject": {"name": "Ann"}}, "wrong_type"),
    ({"object": " "}, "empty_text"),
    ({"action": "delete"}, "unknown_action"),
    ({"action": None}, "unknown_action"),
]


async def test_what_is_counted_is_what_was_written(database: Database, scope: TenantScope) -> None:
    """F23, F32, F33: a bad item beside a good one is turned down with its reason; the counts are those of the rows."""
    pairs = await many_homes(database, scope, len(BAD_ITEMS))
    answers = {
        name: items({**DAMPEN, "subject": name}, {"subject": name, **bad})
        for name, (bad, _) in zip(PEOPLE, BAD_ITEMS, strict=False)
    }
    run = await harmonize(database, scope, language=ByName(answers))
    count = len(BAD_ITEMS)
    assert (run.summary["clusters"], run.summary["dampened"]) == ({"applied": count}, count)
    assert run.summary["beliefs_generated"] == len(await beliefs(database, scope)) == 0
    assert [await confidence(database, scope, old) for old, _ in pairs] == [0.55] * count
    assert await reasons(database, scope) == {
        name: {reason} for name, (_, reason) in zip(PEOPLE, BAD_ITEMS, strict=False)
    }


async def test_an_item_without_an_action_does_nothing(database: Database, scope: TenantScope) -> None:
    """F33: no default action stands in for one that is missing."""
    await homes(database, scope)
    before = await knowledge(database, scope)
    given = json.loads(items(UPDATE))
    del given["beliefs"][0]["action"]
    run = await harmonize(database, scope, language=Scripted(json.dumps(given)))
    assert nothing_counted(run)
    assert await knowledge(database, scope) == before
    assert await reasons(database, scope) == {"Ann": {"missing_field"}}


async def test_a_dampened_statement_is_no_belief(database: Database, scope: TenantScope) -> None:
    """F25, F26: a dampen alone makes the run one that changed something, and nothing that says Oslo is believed."""
    await homes(database, scope)
    run = await harmonize(database, scope, language=Scripted(items({**DAMPEN, "confidence": 0.9})))
    assert (run.summary["status"], run.summary["dampened"], run.summary["beliefs_generated"]) == ("harmonized", 1, 0)
    assert await recall_beliefs(database, scope, "Ann lives in Oslo") == []
    assert await beliefs(database, scope) == []


async def test_a_dampen_of_what_cannot_fall_changes_nothing(database: Database, scope: TenantScope) -> None:
    """F26: where every confidence is at the floor already no run counts a dampening that was none."""
    old, _ = await homes(database, scope, confidence=0.1)
    run = await harmonize(database, scope, language=Scripted(items(DAMPEN)))
    assert await confidence(database, scope, old) == 0.1
    assert run.outcome("apply")["counts"]["dampened"] == 0


async def test_a_target_is_a_handle_that_was_shown(database: Database, scope: TenantScope) -> None:
    """F27, F28: the prompt names each memory, with its time and no id; a guessed target changes and counts nothing."""
    pairs = await many_homes(database, scope, 7)
    before = await knowledge(database, scope)
    guessed = [None, "[0]", 0, "m9", "ep_123", "unknown", str(pairs[6][0])]
    answers = {
        name: items({**UPDATE, "subject": name, "target": each}) for name, each in zip(PEOPLE, guessed, strict=False)
    }
    model = ByName(answers)
    run = await harmonize(database, scope, language=model)
    for request in model.requests:
        shown = [json.loads(line) for line in request.prompt.splitlines() if line.startswith("{")]
        assert {each["handle"] for each in shown} == {"m1", "m2"}
        assert all({"observed_at", "confidence"} <= each.keys() for each in shown)
        assert [memory_id for pair in pairs for memory_id in pair if str(memory_id) in request.prompt] == []
    assert run.summary["clusters"] == {"rejected": 7}
    assert nothing_counted(run)
    assert await knowledge(database, scope) == before
    found = await reasons(database, scope)
    assert [found[name] for name in PEOPLE[:7]] == [
        {"missing_target"}, {"bad_handle"}, {"bad_handle"}, {"foreign_handle"}, {"bad_handle"}, {"bad_handle"},
        {"bad_handle"},
    ]  # fmt: skip


async def test_no_row_can_name_another_tenants_memory(database: Database, scope: TenantScope) -> None:
    """F28: whatever a program tries, the database refuses a foreign memory as evidence and as what replaces one."""
    stranger = TenantScope.root("tenant", "zeta")
    foreign = await add_memory(database, stranger, "The bonus of Eva is 100")
    old, _ = await homes(database, scope)
    await harmonize(database, scope)
    (held,) = await beliefs(database, scope)
    theirs = await state(database, stranger)
    for sql, parameters in (
        (
            "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
            "VALUES (:tenant_id, :belief, :foreign, 'supports', :scope_path)",
            {"belief": held["belief_id"], "foreign": foreign},
        ),
        ("UPDATE memories SET superseded_by = :foreign WHERE id = :old", {"foreign": foreign, "old": old}),
    ):
        with pytest.raises(IntegrityError):
            await change(database, scope, sql, **parameters)
    with pytest.raises(AssertionError):
        await change(database, scope, "UPDATE memories SET content = 'Paris' WHERE id = :id", id=foreign)
    assert await state(database, stranger) == theirs


async def test_a_belief_names_what_it_rests_on_and_nothing_else(database: Database, scope: TenantScope) -> None:
    """F29: of five memories of a cluster the one that is cited is its evidence, with its role, and its provenance."""
    ids = [
        await add_home(
            database,
            scope,
            place,
            observed_at=ago(days=9 - number),
        )
        for number, place in enumerate(("Oslo", "Rome", "Bari", "Lima", "Bergen"))
    ]
    model = Scripted(items({"evidence": ["m5"], "contradicts": ["m1"]}))
    await harmonize(database, scope, language=model)
    assert sum(line.startswith("{") for line in model.requests[0].prompt.splitlines()) == 5
    (held,) = await beliefs(database, scope)
    assert await roles(database, scope, held["belief_id"]) == {ids[4]: "supports", ids[0]: "contradicts"}
    assert set(held["provenance"]) == {str(ids[0]), str(ids[4])}


async def test_an_update_keeps_the_old_and_finds_the_new(database: Database, scope: TenantScope) -> None:
    """F30: the replaced text stays to the letter and was the answer then; now only the new one is, vector included."""
    old, _ = await homes(database, scope)
    before = await rows(database, scope, "SELECT content, object, content_hash FROM memories WHERE id = :id", id=old)
    await harmonize(database, scope, language=Scripted(items({**UPDATE, "object": "Bergen by the quay"})))
    kept = await rows(database, scope, "SELECT content, object, content_hash FROM memories WHERE id = :id", id=old)
    assert kept == before
    now = await recall(database, scope, "Ann lives in Oslo", record=False)
    assert "Ann lives in Oslo" not in {each["content"] for each in now["results"]}
    then = await recall(database, scope, "Ann lives in Oslo", as_of=ago(days=1))
    assert "Ann lives in Oslo" in {each["content"] for each in then["results"]}
    (held,) = await recall_beliefs(database, scope, "Bergen by the quay")
    assert held["content"] == "Ann lives in Bergen by the quay"
    indexed = await rows(database, scope, "SELECT belief_id FROM belief_embeddings")
    assert [str(row["belief_id"]) for row in indexed] == [held["id"]]


def test_a_beliefs_id_is_of_the_whole_of_it(scope: TenantScope) -> None:
    """F31, F48: long common beginnings and shifted parts are other beliefs; another Unicode form is the same one."""
    one = uuid.UUID(int=1)
    base = BeliefProposal("a", "p", "o", "c", "held", 0.5, (one,), (), (), "", NIGHT)
    long = "has told every doctor since the year of the flood that she "

    def id_of(*parts: str) -> uuid.UUID:
        return belief_id(scope, replace(base, subject=parts[0], predicate=parts[1], object=parts[2]))

    different = [
        ("a", "is", f"{long}is allergic to nuts"),
        ("a", "is", f"{long}is NOT allergic to nuts"),
        ("a:b", "c", "d"),
        ("a", "b:c", "d"),
        ("a", "b", "c:d"),
        ("ab", "c", "d"),
        ("a", "bc", "d"),
    ]
    assert len({id_of(*parts) for parts in different}) == len(different)
    assert id_of("a", "goes to", "caf\u00e9") == id_of("a", "goes to", "cafe\u0301")
    assert belief_id(scope, base) != belief_id(scope.child("brand", "halo"), base)
