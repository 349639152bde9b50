"""The journal: what a run changed, exactly, in one row a change, so that an undo restores it to the last bit."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.database.engine import Database
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from tests.builders import NIGHT, add_edge, add_memory
from tests.nights import change, look_ahead, rows, sleep, state, undo
from tests.steps import Statement, importance, link, step, summarise

JOURNAL = "SELECT table_name, operation, before, after FROM run_changes WHERE tenant_id = :tenant_id ORDER BY sequence"


async def test_an_update_that_changes_nothing_leaves_no_row(database: Database, scope: TenantScope) -> None:
    """Only columns that differ are kept."""
    await add_memory(database, scope, "Ann likes tea")
    same = ("UPDATE memory_state SET importance = importance, confidence = 0.9 WHERE tenant_id = :tenant_id", {})
    nothing = ("UPDATE memories SET content = content WHERE tenant_id = :tenant_id", {})
    await sleep(database, scope, step(same, nothing, same))
    found = [tuple(row.values()) for row in await rows(database, scope, JOURNAL)]
    assert found == [("memory_state", "update", {"confidence": 0.7}, {"confidence": 0.9})]


async def test_the_diff_tells_each_row_once(database: Database, scope: TenantScope) -> None:
    """Changes collapse to first and last; what came back, what was made, and what was made and deleted is none."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    old = await add_edge(database, scope, tea, cake, "PAIRS")
    kept, gone, summary = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    weigh = "UPDATE memory_edges SET weight = weight + 1 WHERE tenant_id = :tenant_id AND id = :edge"
    delete = "DELETE FROM memory_edges WHERE tenant_id = :tenant_id AND id = :edge"
    first = step(
        importance(tea, 6),
        importance(cake, 6),
        link(kept, tea, cake, "MADE"),
        link(gone, cake, tea, "MADE"),
        (weigh, {"edge": kept}),
        (weigh, {"edge": gone}),
        (weigh, {"edge": old}),
        *summarise(summary, "tea and cake"),
        name="first",
    )
    second = step(
        importance(tea, 7), importance(cake, 5), (delete, {"edge": gone}), (delete, {"edge": old}), name="second"
    )
    ahead = await look_ahead(database, scope, [first, second])
    before = await state(database, scope)
    night = await sleep(database, scope, [first, second])
    async with database.scoped(scope) as connection:
        found = await changes_of(connection, night.run.id)
    assert found == ahead
    told = [(one["table"], one["operation"], one["steps"]) for one in found["changed"]]
    assert told == [("memory_edges", "delete", ["first", "second"]), ("memory_state", "update", ["first", "second"])]
    assert (found["changed"][1]["before"], found["changed"][1]["after"]) == ({"importance": 5}, {"importance": 7})
    assert found["changed"][0]["before"]["weight"] == 1
    assert {(one["table"], one["key"].get("id", one["key"].get("memory_id"))) for one in found["created"]} == {
        ("memories", str(summary)),
        ("memory_state", str(summary)),
        ("memory_edges", str(kept)),
    }
    assert json.loads(json.dumps(found)) == found

    result = await undo(database, scope, night)
    assert (result.restored, result.removed, result.refused) == (2, 3, ())
    assert await state(database, scope) == before


async def test_a_deleted_memory_comes_back_with_all_it_had(database: Database, scope: TenantScope) -> None:
    """What goes by cascade is journalled too; only vectors are computed again, and that is said."""
    tea = await add_memory(database, scope, "Ann likes tea", access_at=(NIGHT - timedelta(hours=1),))
    cake = await add_memory(database, scope, "Ann likes cake")
    await add_edge(database, scope, tea, cake, "PAIRS")
    before = await state(database, scope)
    delete = ("DELETE FROM memories WHERE tenant_id = :tenant_id AND id = :id", {"id": tea})
    night = await sleep(database, scope, step(delete))
    assert night.status == "applied"
    result = await undo(database, scope, night)
    assert result.refused == ()
    assert await state(database, scope) == before
    assert len(await rows(database, scope, "SELECT 1 FROM memory_accesses WHERE tenant_id = :tenant_id")) == 1


async def test_vectors_are_never_in_the_journal(database: Database, scope: TenantScope) -> None:
    """A deleted vector is not kept; undo names it as what the next run computes."""
    vector = [1.25, *[0.0] * 63]
    await add_memory(database, scope, "Ann likes tea", vector=vector)
    night = await sleep(database, scope, step(("DELETE FROM memory_embeddings WHERE tenant_id = :tenant_id", {})))
    found = await rows(database, scope, JOURNAL)
    assert [row["table_name"] for row in found] == ["memory_embeddings"]
    assert "embedding" not in found[0]["before"]
    assert "1.25" not in json.dumps(found[0]["before"])
    result = await undo(database, scope, night)
    assert [one["reason"] for one in result.refused] == [
        "vectors are not in the journal; the next run computes it again"
    ]


async def test_a_row_deleted_and_made_again_comes_back(database: Database, scope: TenantScope) -> None:
    """The run's own row gives its place to the one that was there."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    old = await add_edge(database, scope, tea, cake, "PAIRS")
    before = await state(database, scope)
    delete = ("DELETE FROM memory_edges WHERE tenant_id = :tenant_id AND id = :edge", {"edge": old})
    for new in (old, uuid.uuid4()):
        night = await sleep(database, scope, step(delete, link(new, tea, cake, "PAIRS")))
        result = await undo(database, scope, night)
        assert (result.restored, result.removed, result.refused) == (1, 1, ())
        assert await state(database, scope) == before


async def test_a_deleted_row_whose_place_is_taken_is_named(database: Database, scope: TenantScope) -> None:
    """Somebody made the same link since, or erased the memory it led to."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    bun = await add_memory(database, scope, "Ann likes buns")
    first = await add_edge(database, scope, tea, cake, "PAIRS")
    second = await add_edge(database, scope, tea, bun, "PAIRS")
    night = await sleep(database, scope, step(("DELETE FROM memory_edges WHERE tenant_id = :tenant_id", {})))
    await add_edge(database, scope, tea, cake, "PAIRS")
    await change(database, scope, "DELETE FROM memories WHERE tenant_id = :tenant_id AND id = :bun", bun=bun)
    result = await undo(database, scope, night)
    assert {one["key"]["id"] for one in result.refused} == {str(first), str(second)}
    assert len(await rows(database, scope, "SELECT 1 FROM memory_edges WHERE tenant_id = :tenant_id")) == 1


async def test_numbers_in_documents_keep_their_form(database: Database, scope: TenantScope) -> None:
    """1 and 1.0 are equal to Postgres and not to who wrote them."""
    await add_memory(database, scope, "Ann likes tea", properties={"cups": 1})
    before = await state(database, scope)
    rewrite = ("""UPDATE memories SET properties = '{"cups": 1.0}' WHERE tenant_id = :tenant_id""", {})
    night = await sleep(database, scope, step(rewrite))
    assert await state(database, scope) != before
    await undo(database, scope, night)
    assert await state(database, scope) == before


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(-(10**15), 10**15).map(lambda moment: NIGHT + timedelta(microseconds=moment))
documents = st.dictionaries(
    texts, st.recursive(st.none() | st.booleans() | numbers | texts | st.integers(), st.lists, max_leaves=3), max_size=3
)
MEMORY = "UPDATE memories SET {} WHERE tenant_id = :tenant_id AND id = :id"
STATE = "UPDATE memory_state SET {} WHERE tenant_id = :tenant_id AND memory_id = :id"
EDGE = "UPDATE memory_edges SET {} WHERE tenant_id = :tenant_id AND id = :id"
OF_MEMORY = st.one_of(
    documents.map(lambda value: (MEMORY.format("properties = CAST(:v AS jsonb)"), {"v": json.dumps(value)})),
    texts.map(lambda value: (MEMORY.format("label = :v, content = 'x' || :v, source = :v"), {"v": value})),
    times.map(lambda value: (MEMORY.format("observed_at = :v, expires_at = :v"), {"v": value})),
    st.booleans().map(lambda value: (MEMORY.format("pinned = :v"), {"v": value})),
    st.just((MEMORY.format("retired_at = :as_of, retired_reason = 'r', retired_by_run = :run_id"), {})),
    st.just((MEMORY.format("retired_at = NULL, retired_reason = NULL, retired_by_run = NULL"), {})),
    st.floats(1, 10).map(lambda value: (STATE.format("importance = :v"), {"v": value})),
    st.floats(0, 1).map(lambda value: (STATE.format("confidence = :v"), {"v": value})),
    st.lists(texts).map(
        lambda value: (
            STATE.format("risk_words = CAST(:v AS jsonb), risk_tagged_at = :as_of"),
            {"v": json.dumps(value)},
        )
    ),
    st.just(("DELETE FROM memories WHERE tenant_id = :tenant_id AND id = :id", {})),
)
OF_EDGE = st.one_of(
    st.floats(min_value=0, exclude_min=True, allow_infinity=False).map(
        lambda value: (EDGE.format("weight = :v"), {"v": value})
    ),
    st.sampled_from(["active", "confirmed", "retired"]).map(lambda value: (EDGE.format("status = :v"), {"v": value})),
    st.just(("DELETE FROM memory_edges WHERE tenant_id = :tenant_id AND id = :id", {})),
)
NEW_EDGE = """
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at, created_by_run)
SELECT :tenant_id, :id, :scope_path, a.id, b.id, :relationship, :as_of, :run_id
FROM memories a, memories b WHERE a.tenant_id = :tenant_id AND b.tenant_id = :tenant_id AND a.id = :a AND b.id = :b
ON CONFLICT DO NOTHING
"""
WORK = st.lists(
    st.one_of(
        st.tuples(st.just("memory"), st.integers(0, 3), OF_MEMORY),
        st.tuples(st.just("edge"), st.integers(0, 3), OF_EDGE),
        st.tuples(st.just("link"), st.integers(0, 3), st.sampled_from([(1, "R0"), (2, "R1"), (3, "R9")])),
    ),
    max_size=12,
)


@given(work=WORK)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_run_is_undone_exactly(
    database: Database, scope: TenantScope, work: list[tuple[str, int, Any]]
) -> None:
    """Whatever a run updates, deletes and makes, undo restores the checksum; and a preview never moves it."""
    memories, edges = await four_memories_in_a_ring(database, scope)
    before = await state(database, scope)
    done = await rows(database, scope, "SELECT count(*) AS runs FROM runs WHERE tenant_id = :tenant_id")
    at = NIGHT + timedelta(seconds=done[0]["runs"])

    def statement(kind: str, number: int, what: Any) -> Statement:
        if kind == "link":
            values = {"a": memories[number], "b": memories[(number + what[0]) % 4], "relationship": what[1]}
            return NEW_EDGE, {"id": uuid.uuid4(), **values}
        sql, values = what
        return sql, {**values, "id": memories[number] if kind == "memory" else edges[number]}

    doing = step(*(statement(*item) for item in work))
    ahead = await look_ahead(database, scope, doing, at)
    assert await state(database, scope) == before
    night = await sleep(database, scope, doing, at)
    assert night.status == "applied", night.results[0].error
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == ahead
    result = await undo(database, scope, night)
    assert result.refused == ()
    assert await state(database, scope) == before


async def four_memories_in_a_ring(database: Database, scope: TenantScope) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Made once; every example leaves them as they were."""
    memories = [row["id"] for row in await rows(database, scope, "SELECT id FROM memories ORDER BY external_id")]
    if not memories:
        for number in range(4):
            fields = {"properties": {"n": number / 3}, "label": f"L: {number}", "external_id": str(number)}
            memories.append(await add_memory(database, scope, f"memory {number}", **fields))
        for number in range(4):
            await add_edge(database, scope, memories[number], memories[(number + 1) % 4], f"R{number}")
    found = await rows(database, scope, "SELECT id FROM memory_edges ORDER BY relationship")
    return memories, [row["id"] for row in found]


async def test_a_row_changed_deleted_and_made_again_comes_back(database: Database, scope: TenantScope) -> None:
    """The three together: the first image of each column counts."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    old = await add_edge(database, scope, tea, cake, "PAIRS")
    before = await state(database, scope)
    weigh = ("UPDATE memory_edges SET weight = 3 WHERE tenant_id = :tenant_id", {})
    delete = ("DELETE FROM memory_edges WHERE tenant_id = :tenant_id", {})
    night = await sleep(database, scope, step(weigh, delete, link(old, tea, cake, "PAIRS")))
    result = await undo(database, scope, night)
    assert (result.restored, result.removed, result.refused) == (1, 1, ())
    assert await state(database, scope) == before
