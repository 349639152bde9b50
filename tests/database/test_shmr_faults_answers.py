"""Faults in how a model's answer is weighed (F11 to F19), each in its right form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from memory_core.database.engine import Database
from memory_core.models.embedding import EmbeddingProvider, embedding_provider
from memory_core.scope import TenantScope
from tests.builders import add_memory, ago
from tests.by_name import ByName
from tests.knowledge import change
from tests.scripted_model import PEOPLE, UPDATE, Scripted, homes, items, many_homes
from tests.shmr_runs import beliefs, harmonize, rows, superseded


@pytest.fixture(scope="module")
def minilm() -> EmbeddingProvider:
    """The default embedding, loaded once."""
    return embedding_provider("minilm")


async def reasons(database: Database, scope: TenantScope) -> set[str]:
    """Why proposals were turned down."""
    found = await rows(database, scope, "SELECT rejected FROM memory_resonance_clusters")
    return {each["reason"] for row in found for each in row["rejected"]}


BAD_CONFIDENCES = {
    "1.7": "bad_confidence",
    "100": "bad_confidence",
    "-0.1": "bad_confidence",
    '"0.9"': "bad_confidence",
    '"high"': "bad_confidence",
    "null": "bad_confidence",
    "1e999": "malformed",
    "Infinity": "malformed",
    "NaN": "malformed",
}


async def test_a_confidence_that_is_none_is_turned_down_before_it_is_scored(
    database: Database, scope: TenantScope
) -> None:
    """F11, F12, F13: out of range, not finite, or no number: no score, nothing stored, and the next cluster goes on."""
    await many_homes(database, scope, len(BAD_CONFIDENCES) + 1)
    reason_of = dict(zip(PEOPLE, BAD_CONFIDENCES.values(), strict=False))
    answers = {
        name: items({**UPDATE, "subject": name}).replace("0.8", given)
        for name, given in zip(PEOPLE, BAD_CONFIDENCES, strict=False)
    }
    run = await harmonize(database, scope, language=ByName(answers))
    assert run.summary["clusters"] == {"applied": 1, "parse_error": 3, "rejected": 6}
    clusters = await rows(
        database,
        scope,
        "SELECT m.subject, c.score, c.rejected FROM memory_resonance_clusters c "
        "JOIN memories m ON m.id = CAST(c.members -> 0 ->> 'memory_id' AS uuid) WHERE c.status <> 'applied'",
    )
    assert {each["subject"]: {entry["reason"] for entry in each["rejected"]} for each in clusters} == {
        name: {reason} for name, reason in reason_of.items()
    }
    assert {each["score"] for each in clusters} == {None}
    assert [belief["subject"] for belief in await beliefs(database, scope)] == [PEOPLE[len(BAD_CONFIDENCES)]]
    json.dumps([run.summary, clusters], allow_nan=False)
    assert len(await rows(database, scope, "SELECT 1 FROM memory_resonance_log")) == 1


async def test_the_store_takes_no_confidence_that_is_none(database: Database, scope: TenantScope) -> None:
    """F14, F19: neither a missing nor an impossible number can be stored, so that no run meets one."""
    memory = await add_memory(database, scope, "Ann lives in Oslo")
    for column in ("confidence", "importance"):
        for value in ("NULL", "'NaN'", "'Infinity'", "-1", "11"):
            sql = f"UPDATE memory_state SET {column} = {value} WHERE memory_id = :id"
            with pytest.raises(IntegrityError):
                await change(database, scope, sql, id=memory)


async def test_a_memory_without_a_state_is_no_end_of_a_run(database: Database, scope: TenantScope) -> None:
    """F14: where there is no row of it, a memory counts with the default confidence."""
    old, new = await homes(database, scope)
    await change(database, scope, "DELETE FROM memory_state WHERE memory_id = :id", id=new)
    run = await harmonize(database, scope)
    assert run.summary["status"] == "harmonized"
    assert await superseded(database, scope) == {old: (new, "update")}
    assert [belief["confidence"] for belief in await beliefs(database, scope)] == [0.7]


async def test_an_honest_half_is_enough(database: Database, scope: TenantScope) -> None:
    """F15: a belief of confidence 0.5 is accepted at the first attempt, and kept with 0.5."""
    await homes(database, scope)
    model = Scripted(items({**UPDATE, "confidence": 0.5}))
    run = await harmonize(database, scope, language=model)
    assert (run.summary["clusters"], len(model.requests)) == ({"applied": 1}, 1)
    assert run.summary["harmony_score_avg"] >= 0.6
    assert [belief["confidence"] for belief in await beliefs(database, scope)] == [0.5]


PEANUTS = {"subject": "User", "predicate": "is allergic to", "object": "peanuts", "confidence": 0.95}
DENIED = {**PEANUTS, "predicate": "is not allergic to"}


@pytest.mark.parametrize(
    ("proposed", "status"),
    [
        ([{**PEANUTS, "evidence": ["m1"]}], "applied"),
        ([{**DENIED, "evidence": ["m1"]}], "rejected"),
        ([{**PEANUTS, "evidence": ["m1"]}, {**DENIED, "evidence": ["m2"]}], "rejected"),
        ([{**PEANUTS, "evidence": ["m1"]}, {**PEANUTS, "object": "tree nuts", "evidence": ["m3"]}], "applied"),
    ],
    ids=["what is so", "its denial", "both", "two that can both be so"],
)
async def test_what_denies_its_evidence_is_turned_down(
    database: Database, scope: TenantScope, minilm: EmbeddingProvider, proposed: list[dict[str, Any]], status: str
) -> None:
    """F16: to an embedding a denial is as near as what it denies; only what is so, and what goes with it, is kept."""
    for source, object in (("a", "peanuts"), ("b", "peanuts, also roasted ones"), ("c", "tree nuts")):
        await add_memory(
            database,
            scope,
            f"User is allergic to {object}",
            subject="User",
            predicate="is_allergic_to",
            object=object,
            source=source,
            observed_at=ago(days={"a": 3, "b": 2, "c": 1}[source]),
        )
    run = await harmonize(database, scope, embedding=minilm, language=Scripted(items(*proposed)))
    assert run.summary["clusters"] == {status: 1}, run.summary
    if status == "rejected":
        assert "contradicts" in await reasons(database, scope)
    assert len(await beliefs(database, scope)) == (len(proposed) if status == "applied" else 0)


async def test_an_answer_repeated_is_not_made_truer(database: Database, scope: TenantScope) -> None:
    """F17, F18: five times the same beside the point: the same score each time, and no prompt grows with it."""
    await homes(database, scope)
    aside = {"subject": "Ann", "predicate": "keeps", "object": "goats and a well-known recipe"}
    model = Scripted(*(items({**aside, "rationale": f"Thought {number}."}) for number in range(5)))
    run = await harmonize(
        database, scope, language=model, process=database.settings.model_copy(update={"model_cache": "live"}),
        settings={"shmr": {"max_iterations": 5}},
    )  # fmt: skip
    assert run.summary["clusters"] == {"rejected": 1}
    (cluster,) = await rows(database, scope, "SELECT rejected FROM memory_resonance_clusters")
    assert {each["reason"] for each in cluster["rejected"]} == {"harmony"}
    scores = [each["score"] for each in cluster["rejected"]]
    assert len(scores) == 5
    assert len(set(scores)) == 1
    assert scores[0] < 0.6
    sizes = [len(request.prompt) for request in model.requests]
    assert max(sizes[1:]) == min(sizes[1:])
    assert all(
        sum(line.startswith('{"handle"') for line in request.prompt.splitlines()) == 2 for request in model.requests
    )
    assert all("goats" not in request.prompt for request in model.requests)
