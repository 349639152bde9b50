"""Duplicate merge: facts that say the same in the same words become one; nothing else does, nothing is overwritten."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from memory_core.beliefs.lineage import why
from memory_core.database.engine import Database
from memory_core.layers import editing
from memory_core.models.embedding import embedding_provider
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.duplicate_merge import STEP, DuplicateMergeSettings
from tests.builders import NIGHT, add_access, add_memory, add_scope, ago
from tests.nights import Night, change, look_ahead, rows, sleep, state, undo
from tests.steps import begun

ALIKE = [1.0, 0.1, 0.0]
UNLIKE = [0.0, 0.0, 1.0]
TEA = "Alice prefers tea"


async def fact(database: Database, scope: TenantScope, content: str, **fields: Any) -> uuid.UUID:
    """One fact; vectors are alike unless said otherwise, so that only the words keep facts apart."""
    return await add_memory(database, scope, content, **{"vector": ALIKE, **fields})


async def merged(database: Database, scope: TenantScope) -> dict[uuid.UUID, uuid.UUID]:
    """What gave way, to what; all of it as duplicates."""
    found = await rows(
        database,
        scope,
        "SELECT id, superseded_by, superseded_reason FROM memories "
        "WHERE scope_path = :scope_path AND superseded_reason IS NOT NULL",
    )
    assert {row["superseded_reason"] for row in found} <= {"duplicate"}
    return {row["id"]: row["superseded_by"] for row in found}


def skipped(night: Night) -> dict[str, int]:
    """What the step left alone."""
    return dict(night.outcome.skipped)


async def test_the_surest_stays_and_the_others_give_way_to_it(database: Database, scope: TenantScope) -> None:
    """Of equal sureness the latest stays; every row keeps its words, the run and the time are noted."""
    surest = await fact(database, scope, "The Alice prefers tea.", confidence=0.9, observed_at=ago(days=9))
    later = await fact(database, scope, TEA, confidence=0.6, observed_at=ago(days=1))
    early = await fact(database, scope, "alice prefers tea!", confidence=0.6, observed_at=ago(days=3))
    old = await fact(database, scope, "Bob has two dogs", observed_at=ago(days=3))
    new = await fact(database, scope, "Bob has 2 dogs.", observed_at=ago(days=1))
    before = await rows(database, scope, "SELECT id, content, properties, last_activity_at FROM memories ORDER BY id")
    night = await sleep(database, scope, STEP)
    assert await merged(database, scope) == {later: surest, early: surest, old: new}
    columns = "SELECT superseded_at, superseded_by_run FROM memories WHERE superseded_reason IS NOT NULL"
    noted = {(row["superseded_at"], row["superseded_by_run"]) for row in await rows(database, scope, columns)}
    assert noted == {(NIGHT, night.run.id)}
    assert before == await rows(
        database, scope, "SELECT id, content, properties, last_activity_at FROM memories ORDER BY id"
    )
    assert (night.outcome.candidates, night.outcome.changed) == (5, 3)
    assert night.outcome.counts["duplicates_merged"] == 3
    assert night.outcome.counts["pairs_compared"] == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("drop the staging database", "drop the production database"),
        ("Alice eats meat", "Alice does not eat meat"),
        ("The limit is 100 requests", "The limit is 1000 requests"),
        ("Alice trusts Bob", "Bob trusts Alice"),
        ("Uses the key aBc1 for the export", "Uses the key abC1 for the export"),
    ],
)
async def test_what_differs_in_content_never_merges(
    database: Database, scope: TenantScope, one: str, other: str
) -> None:
    """However near the vectors and however long the common words are."""
    around = " after every release, once the checks are green and the backup was verified by two people"
    for text in (one, other, one + around, other + around):
        await fact(database, scope, text)
    night = await sleep(database, scope, STEP)
    assert await merged(database, scope) == {}
    assert night.outcome.reason == "no new text says the same in the same words as another"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"vector": ALIKE}, {"vector": UNLIKE}),
        ({"label": "ALICE: drinks"}, {"label": "BOB: drinks"}),
        ({}, {"label": "BOB: drinks"}),
        (
            {"subject": "Alice", "predicate": "prefers", "object": "tea"},
            {"subject": "Alice", "predicate": "prefers", "object": "green tea"},
        ),
        ({}, {"expires_at": NIGHT + timedelta(days=1)}),
        ({}, {"layer": "episodic"}),
        ({}, {"derived_key": "meta:ALICE"}),
        ({}, {"recorded_at": NIGHT + timedelta(hours=1)}),
        ({}, {"retired_at": ago(days=1), "retired_reason": "noise"}),
    ],
    ids=["vector", "label", "no label", "triple", "expiry", "layer", "derived", "not yet known", "retired"],
)
async def test_facts_of_the_same_words_that_are_not_the_same(
    database: Database, scope: TenantScope, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Another vector, label, triple, expiry or layer, or a row that is no current fact."""
    await fact(database, scope, TEA, **first)
    await fact(database, scope, TEA + ".", **second)
    await sleep(database, scope, STEP)
    assert await merged(database, scope) == {}


async def test_words_of_a_speaker_and_of_a_day(database: Database, scope: TenantScope) -> None:
    """ "I" merges within a source, "tomorrow" within a day."""
    await fact(database, scope, "I prefer tea", source="ann")
    await fact(database, scope, "I prefer tea.", source="ben")
    await fact(database, scope, "The call is tomorrow", observed_at=ago(days=3))
    await fact(database, scope, "The call is tomorrow.", observed_at=ago(days=1))
    await sleep(database, scope, STEP)
    assert await merged(database, scope) == {}
    again = await fact(database, scope, "I prefer tea!", source="ann", confidence=0.1)
    moved = await fact(database, scope, "Call is tomorrow!", observed_at=ago(days=1), confidence=0.1)
    await sleep(database, scope, STEP, NIGHT + timedelta(hours=1))
    assert set(await merged(database, scope)) == {again, moved}


async def test_a_chain_collapses_to_one(database: Database, scope: TenantScope) -> None:
    """The ends are further apart than the threshold, the middle links them: all give way to one."""
    ends = [[1.0, 0.0], [0.8, 0.6]]
    first = await fact(database, scope, TEA, vector=ends[0], confidence=0.9)
    middle = await fact(database, scope, TEA + ".", vector=[0.949, 0.316])
    last = await fact(database, scope, "The alice prefers tea", vector=ends[1])
    chosen = {"duplicate_merge": {"similarity": 0.94}}
    await sleep(database, scope, STEP, settings=chosen)
    assert await merged(database, scope) == {middle: first, last: first}


@pytest.mark.parametrize("protection", ["pinned", "identity", "corrected", "confirmed"])
async def test_what_a_person_protects_never_gives_way(database: Database, scope: TenantScope, protection: str) -> None:
    """It stays whatever its sureness, and the others give way to it; two that are protected stay both."""
    fields: dict[str, Any] = {"pinned": {"pinned": True}}.get(protection, {})
    label = {"label": "SOUL: drinks"} if protection == "identity" else {}
    kept = [
        await fact(database, scope, TEA, confidence=sure, observed_at=ago(days=9), **fields, **label)
        for sure in (0.2, 0.3)
    ]
    if protection == "corrected":
        await change(database, scope, "UPDATE memories SET corrects = :id WHERE id <> :id", id=kept[0])
        await change(
            database,
            scope,
            "INSERT INTO corrections (tenant_id, scope_path, id, memory_id, who, at, what) "
            "VALUES (:tenant_id, :scope_path, :id, :memory, 'ann', :at, '{}')",
            id=uuid.uuid4(),
            memory=kept[0],
            at=ago(days=2),
        )
    if protection == "confirmed":
        for memory in kept:
            await add_access(database, scope, memory, ago(days=2), kind="confirm")
    other = await fact(database, scope, TEA + ".", confidence=0.9, **label)
    night = await sleep(database, scope, STEP)
    if protection == "identity":
        assert await merged(database, scope) == {}
        assert skipped(night) == {"identity or persona": 2}
    else:
        assert await merged(database, scope) == {other: kept[1]}
        assert sum(skipped(night).values()) == 1


async def test_a_text_is_looked_at_once(database: Database, scope: TenantScope) -> None:
    """A second run changes nothing and reads nothing; a later night compares what is new with what is known."""
    first = await fact(database, scope, TEA, confidence=0.9)
    await fact(database, scope, "Bob has two dogs")
    assert (await sleep(database, scope, STEP)).outcome.counts["texts_looked_at"] == 2
    before = await state(database, scope)
    again = await sleep(database, scope, STEP, again=True)
    assert (again.outcome.counts["texts_looked_at"], again.outcome.reason) == (0, "every text was already compared")
    assert await state(database, scope) == before
    repeated = await fact(database, scope, TEA + "!")
    later = await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert (later.outcome.counts["texts_looked_at"], later.outcome.candidates) == (1, 2)
    assert await merged(database, scope) == {repeated: first}


async def test_a_fact_waits_for_its_vector(database: Database, scope: TenantScope) -> None:
    """Without a vector of the model nothing is compared, and that is said; with one, the next night does."""
    first = await fact(database, scope, TEA, confidence=0.9)
    second = await fact(database, scope, TEA + ".", vector=None)
    night = await sleep(database, scope, STEP)
    assert (await merged(database, scope), skipped(night)) == ({}, {"no vector of the model yet": 1})
    await change(
        database,
        scope,
        "INSERT INTO memory_embeddings (tenant_id, scope_path, memory_id, model, dimension, embedding) "
        "VALUES (:tenant_id, :scope_path, :id, 'hash:64', 3, CAST(:vector AS vector))",
        id=second,
        vector=str(ALIKE),
    )
    await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert await merged(database, scope) == {second: first}


async def test_pairs_beyond_the_bound_wait_for_the_next_run(database: Database, scope: TenantScope) -> None:
    """What was left is counted, and gets its turn night by night until nothing is left."""
    for number in range(4):
        for mark in (".", "!"):
            await fact(database, scope, f"Fact number {number} of the list{mark}")
    bound = {"duplicate_merge": {"most_pairs": 2}}
    first = await sleep(database, scope, STEP, settings=bound)
    assert (first.outcome.changed, skipped(first)) == (2, {"left for the next run": 4})
    second = await sleep(database, scope, STEP, NIGHT + timedelta(days=1), settings=bound)
    assert (second.outcome.changed, skipped(second)) == (2, {})
    third = await sleep(database, scope, STEP, NIGHT + timedelta(days=2), settings=bound)
    assert third.outcome.reason == "every text was already compared"


async def test_a_group_larger_than_the_bound_is_not_left_for_ever(database: Database, scope: TenantScope) -> None:
    """A group is compared whole, the first one always."""
    for number in range(8):
        await fact(database, scope, TEA + "!" * number)
    night = await sleep(database, scope, STEP, settings={"duplicate_merge": {"most_pairs": 1, "page_size": 3}})
    assert (night.outcome.changed, night.outcome.counts["pairs_compared"]) == (7, 28)


async def test_the_guard_looks_at_what_is_hidden(database: Database, scope: TenantScope) -> None:
    """A scope of which more than half would leave recall is refused whole, and accepted where a person says so."""
    for number in range(30):
        await fact(database, scope, TEA + "." * (number % 3))
    before = await state(database, scope)
    night = await sleep(database, scope, STEP)
    assert (night.status, (night.results[-1].error or {}).get("guard")) == ("refused", "hide_share")
    assert await state(database, scope) == before
    accepted = await sleep(database, scope, STEP, accept=True)
    assert (accepted.status, accepted.outcome.changed) == ("applied", 29)


async def test_a_belief_stands_on_what_its_evidence_gave_way_to(database: Database, scope: TenantScope) -> None:
    """The loser's belief stays held; it falls when the winner is retracted, as if it had rested on that."""
    winner = await fact(database, scope, TEA, confidence=0.9)
    loser = await fact(database, scope, TEA + ".", confidence=0.6)
    belief = uuid.uuid4()
    await change(
        database,
        scope,
        "WITH belief AS (INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, "
        "content, confidence, status, valid_from, cluster_id, model, rules_version, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, 's', 'p', 'o', 'c', 0.6, 'held', :at, 'c', 'rules', '1', :at)) "
        "INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path) "
        "VALUES (:tenant_id, :id, :memory, 'supports', :scope_path)",
        id=belief,
        memory=loser,
        at=ago(days=1),
    )
    night = await sleep(database, scope, STEP)
    assert await merged(database, scope) == {loser: winner}
    assert night.outcome.counts["beliefs_affected"] == 0
    statuses = "SELECT status, confidence FROM harmonic_beliefs"
    found = await rows(database, scope, statuses)
    assert [(row["status"], row["confidence"]) for row in found] == [("held", 0.6)]
    await editing.retract(database, scope, winner, "wrong", who="ann", at=NIGHT + timedelta(hours=1))
    assert [row["status"] for row in await rows(database, scope, statuses)] == ["stale"]


async def test_a_correction_of_a_duplicate_goes_to_what_it_gave_way_to(database: Database, scope: TenantScope) -> None:
    """A person who names the loser corrects what stands for it; `why` tells both versions."""
    winner = await fact(database, scope, TEA, confidence=0.9)
    loser = await fact(database, scope, TEA + ".", confidence=0.6)
    await sleep(database, scope, STEP)
    corrected = await editing.correct(
        database,
        scope,
        embedding_provider("hash:64"),
        loser,
        content="Alice prefers coffee",
        who="ann",
        at=NIGHT + timedelta(hours=1),
    )
    assert corrected["corrects"] == str(winner)
    async with database.scoped(scope) as connection:
        told = await why(connection, loser)
    assert [version["id"] for version in told["versions"]] == [str(loser), str(winner), corrected["id"]]


async def test_another_scope_is_left_alone(database: Database, scope: TenantScope) -> None:
    """An ancestor's fact says the same and stays, and so does the own one."""
    await fact(database, scope, TEA)
    await fact(database, scope.child("team", "a"), TEA)
    await fact(database, scope.child("team", "b"), TEA)
    await sleep(database, scope.child("team", "a"), STEP)
    for each in (scope, scope.child("team", "a"), scope.child("team", "b")):
        assert await merged(database, each) == {}


async def test_a_dry_run_says_the_same(database: Database, scope: TenantScope) -> None:
    """The preview is the later run's diff."""
    await fact(database, scope, TEA)
    await fact(database, scope, TEA + ".")
    before = await state(database, scope)
    ahead = await look_ahead(database, scope, STEP)
    assert await state(database, scope) == before
    night = await sleep(database, scope, STEP)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == ahead


async def test_undo_is_remembered_for_every_two_of_the_group(database: Database, scope: TenantScope) -> None:
    """Neither the pairs that merged nor two losers of one winner merge again; what is new does, and so does asking."""
    texts = [TEA, TEA + ".", TEA + "!"]
    members = [await fact(database, scope, text, confidence=0.9 - number / 10) for number, text in enumerate(texts)]
    before = await state(database, scope)
    night = await sleep(database, scope, STEP)
    assert len(await merged(database, scope)) == 2
    assert (await undo(database, scope, night, STEP)).refused == ()
    assert await state(database, scope) == before
    again = await sleep(database, scope, STEP, NIGHT + timedelta(days=1))
    assert skipped(again) == {"taken back by a person": 2}
    assert await merged(database, scope) == {}
    await change(
        database,
        scope,
        "UPDATE memories SET retired_at = :at, retired_reason = 'wrong' WHERE id = :id",
        id=members[0],
        at=NIGHT + timedelta(days=1),
    )
    new = await fact(database, scope, TEA + "!!", confidence=0.1)
    later = await sleep(database, scope, STEP, NIGHT + timedelta(days=2))
    assert await merged(database, scope) == {new: members[1]}
    assert skipped(later) == {"taken back by a person": 1}
    asked = await sleep(database, scope, STEP, NIGHT + timedelta(days=3), reconsider=True)
    assert asked.outcome.changed == 1
    assert await merged(database, scope) == {new: members[1], members[2]: members[1]}


async def test_the_number_of_statements_does_not_grow(database: Database, scope: TenantScope) -> None:
    """Forty groups cost as many statements as two."""
    counts = []
    for groups, tenant in ((2, "small"), (40, "large")):
        each = TenantScope.root("tenant", tenant)
        for number in range(groups):
            for mark in (".", "!"):
                await fact(database, each, f"Fact number {number} of the list{mark}")
        await fact(database, each, "Something else")
        context = await begun(database, each, accept=True)
        async with database.scoped(each, context.run.binding(STEP.name)) as connection:
            asked = 0
            execute = connection.execute

            async def counted(sql: str, **parameters: Any) -> Any:
                nonlocal asked
                asked += 1
                return await execute(sql, **parameters)  # noqa: B023 - called inside this turn of the loop only

            connection.execute = counted  # type: ignore[method-assign]
            outcome = await STEP.write(connection, context, None)
            assert outcome.changed == groups
        counts.append(asked)
    assert counts[0] == counts[1]


async def test_it_is_off_unless_switched_on(database: Database, scope: TenantScope) -> None:
    """Without the setting the step is left out of a night; with it, it is in."""
    await add_scope(database, scope)
    assert STEP.enabled is not None
    assert not DuplicateMergeSettings().enabled
    assert not STEP.enabled(await begun(database, scope))
    assert STEP.enabled(await begun(database, scope, settings={"duplicate_merge": {"enabled": True}}))
