"""A tiny real model's recorded answers: well-formed, mostly wrong, and the outcome of each group down to the rows."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.models.embedding import EmbeddingProvider, embedding_provider
from memory_core.models.language import language_model
from memory_core.scope import TenantScope
from memory_core.shmr.prompt import PROMPT_VERSION
from tests.openai_server import OpenAIServer
from tests.recorded import RecordedModel, Recording, import_memories, keep_answers
from tests.shmr_runs import Harmonized, beliefs, harmonize, roles, rows, state, superseded, undo, waiting

REPEATS = "subject, predicate and object repeat one another"
SAME = "the memory to be replaced says the same"

OUTCOMES: dict[tuple[str, ...], tuple[str, int, list[str]]] = {
    # Says that the doors open at "06:30 06:30", that 07:00 gives way to an unsure 06:30, and repeats itself.
    ("dock-1", "dock-2", "dock-3"): ("rejected", 3, [REPEATS, REPEATS, REPEATS, SAME, "duplicate_item", REPEATS]),
    # Wants the day that nobody confirmed to be replaced by itself, beside the day that a person pinned.
    ("club-1", "club-2"): (
        "rejected",
        3,
        ["duplicate_item", REPEATS, REPEATS, SAME, "duplicate_item", REPEATS],
    ),
    # Names the earlier memory, which says otherwise, as evidence for the later one, three times.
    ("car-1", "car-2"): (
        "rejected",
        3,
        ["duplicate_item", "contradicts", "duplicate_item", "contradicts", "duplicate_item", "contradicts"],
    ),
    ("home-1", "home-2"): ("rejected", 3, ["contradicts", REPEATS, "contradicts", REPEATS, "contradicts"]),
    # True as far as it goes; the second allergy is neither replaced nor made to support the first.
    ("nuts-1", "nuts-2"): ("applied", 1, ["duplicate_item"]),
    # The memory that gives orders is neither obeyed nor cited.
    ("board-1", "board-2"): ("applied", 1, ["duplicate_item"]),
    ("phone-1", "phone-2"): ("applied", 2, ["duplicate_item", REPEATS]),
}
"""Each group: its status, its attempts, and why items were turned down, in order."""

BELIEVED = {
    "Pilar Quist is allergic to walnuts": {"nuts-1"},
    "The notice board says the lift is out of order": {"board-1"},
    "The clinic at Lund has the number 555 0143": {"phone-1", "phone-2"},
}
"""All that is held, with the memories that support it."""

MEMORIES = """
SELECT m.id, m.external_id, m.content, m.version, m.retired_at, m.superseded_by, m.superseded_reason, s.confidence,
       s.importance
FROM memories m JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id ORDER BY m.id
"""

CLUSTERS = "SELECT * FROM memory_resonance_clusters WHERE run_id = :id ORDER BY cluster_id"


@pytest.fixture(scope="module")
def recording() -> Recording:
    """The recording, made of the questions that are asked today."""
    found = Recording.read("tiny_model")
    assert found.prompt_version == PROMPT_VERSION, "The prompt has changed: run tests/data/recorded_answers/record.py."
    return found


@pytest.fixture(scope="module")
def embedding() -> EmbeddingProvider:
    """The embedding that a real night has."""
    return embedding_provider("minilm")


async def replay(
    database: Database, scope: TenantScope, recording: Recording, embedding: EmbeddingProvider, **parameters: Any
) -> tuple[Harmonized, int]:
    """A night on kept answers alone, with a server at hand; also how many requests reached that."""
    process = database.settings.model_copy(update={"model_cache": "replay"})
    with OpenAIServer() as server:
        model = language_model(recording.model, api_base=server.url, api_key="k")
        run = await harmonize(database, scope, process=process, embedding=embedding, language=model, **parameters)
        return run, len(server.requests)


async def names(database: Database, scope: TenantScope) -> dict[uuid.UUID, str]:
    """The memories' external ids."""
    return {row["id"]: row["external_id"] for row in await rows(database, scope, MEMORIES)}


async def test_what_becomes_of_every_answer(
    database: Database, scope: TenantScope, recording: Recording, embedding: EmbeddingProvider
) -> None:
    """Replayed without a request, each group ends as its answers deserve; what is held is true; no memory changes."""
    await import_memories(database, scope, embedding)
    kept = await keep_answers(database, scope, recording)
    before, memories = await state(database, scope), await rows(database, scope, MEMORIES)
    run, requests = await replay(database, scope, recording, embedding)
    assert (requests, run.summary["model_calls"]) == (0, 0)
    known = await names(database, scope)
    found = {
        tuple(sorted(known[uuid.UUID(member["memory_id"])] for member in cluster["members"])): (
            cluster["status"],
            cluster["iteration"],
            [str(each["reason"]) for each in cluster["rejected"]],
        )
        for cluster in await rows(database, scope, CLUSTERS, id=run.run.id)
    }
    assert found == OUTCOMES
    held = {}
    for belief in await beliefs(database, scope):
        evidence = await roles(database, scope, belief["belief_id"])
        assert (belief["status"], belief["confidence"], set(evidence.values())) == ("held", 0.8, {"supports"})
        held[belief["content"]] = {known[memory_id] for memory_id in evidence}
    assert held == BELIEVED
    assert await rows(database, scope, MEMORIES) == memories
    # By a person's correction, in the import.
    assert [known[loser] for loser in await superseded(database, scope)] == ["work-1"]
    assert await waiting(database, scope) == set()
    assert await rows(database, scope, "SELECT count(*) AS kept FROM model_calls") == [{"kept": kept}]
    assert (await undo(database, scope, run.run)).refused == ()
    assert await state(database, scope) == before


async def test_the_model_itself_leaves_the_same_rows(
    database: Database, scope: TenantScope, recording: Recording, embedding: EmbeddingProvider
) -> None:
    """Asked, as far as the run can tell, it is asked exactly what was recorded; a replay then gives the same rows."""
    await import_memories(database, scope, embedding)
    model = RecordedModel(recording)
    asked = await harmonize(database, scope, embedding=embedding, language=model)
    assert (model.left, asked.summary["model_calls"]) == (0, len(recording.answers))
    assert asked.summary["tokens"] == sum(each.prompt_tokens + each.completion_tokens for each in recording.answers)
    first = await rows(database, scope, CLUSTERS, id=asked.run.id)
    await undo(database, scope, asked.run)
    again, requests = await replay(database, scope, recording, embedding, reconsider=True)
    assert requests == 0
    second = await rows(database, scope, CLUSTERS, id=again.run.id)
    assert [_told(each) for each in second] == [_told(each) for each in first]


async def test_a_question_that_was_never_asked_decides_nothing(
    database: Database, scope: TenantScope, recording: Recording, embedding: EmbeddingProvider
) -> None:
    """Without its answers a group waits for another night, the others are decided, and nobody is asked."""
    await import_memories(database, scope, embedding)
    known = {row["external_id"]: row["id"] for row in await rows(database, scope, MEMORIES)}
    first = {each.key for each in recording.answers if '"Pilar Quist"' in each.text}
    assert first
    part = Recording(
        recording.model,
        recording.weights,
        recording.prompt_version,
        tuple(each for each in recording.answers if each.key not in first),
    )
    await keep_answers(database, scope, part)
    run, requests = await replay(database, scope, part, embedding)
    assert requests == 0
    assert run.summary["clusters"] == {"applied": 2, "model_unavailable": 1, "rejected": 4}
    assert await waiting(database, scope) == {known["nuts-1"], known["nuts-2"]}


def _told(cluster: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in cluster.items() if name != "run_id"}, default=str, sort_keys=True)
