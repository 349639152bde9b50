"""Undo: what was changed since stays, everything else comes back, and what rests on a row keeps it."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime, NotFound, ScopeBusy, TransactionConflict, UndoRefused
from memory_core.night.consolidate import undo as undo_held
from memory_core.runs.advance import advance
from memory_core.runs.ledger import begin_run
from memory_core.runs.locks import held_scopes
from memory_core.runs.perform import perform_step
from memory_core.runs.undo import UndoResult, undo_run
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.sleep.strengthen import STEP as STRENGTHEN
from tests.builders import NIGHT, add_access, add_edge, add_memory, add_scope, ago
from tests.nights import Night, change, rows, sleep, state, undo
from tests.steps import begun, importance, link, retire, step, summarise

LATER = NIGHT + timedelta(days=1)


async def memory(database: Database, scope: TenantScope, id: uuid.UUID) -> dict[str, Any]:
    found = await rows(database, scope, "SELECT * FROM memories WHERE tenant_id = :tenant_id AND id = :id", id=id)
    return dict(found[0])


async def importance_of(database: Database, scope: TenantScope, id: uuid.UUID) -> float:
    sql = "SELECT importance FROM memory_state WHERE tenant_id = :tenant_id AND memory_id = :id"
    return float((await rows(database, scope, sql, id=id))[0]["importance"])


def reasons(result: UndoResult) -> dict[str, str]:
    return {one["column"] or one["table"]: one["reason"] for one in result.refused}


async def test_what_was_changed_since_is_refused_column_by_column(database: Database, scope: TenantScope) -> None:
    """One changed column stays as the person left it; the row's other columns come back."""
    tea = await add_memory(database, scope, "Ann likes tea")
    both = "UPDATE memory_state SET importance = 9, access_count = 4 WHERE tenant_id = :tenant_id"
    night = await sleep(database, scope, step((both, {})))
    await change(database, scope, "UPDATE memory_state SET importance = 3 WHERE tenant_id = :tenant_id")
    result = await undo(database, scope, night)
    assert (result.restored, result.removed, reasons(result)) == (1, 0, {"importance": "changed since"})
    columns = "SELECT importance, access_count FROM memory_state WHERE memory_id = :id"
    found = await rows(database, scope, columns, id=tea)
    assert tuple(found[0].values()) == (3, 0)
    stored = await rows(database, scope, "SELECT kind, status FROM runs ORDER BY started_at")
    assert [tuple(row.values()) for row in stored] == [("sleep", "undone"), ("undo", "partial")]


async def test_what_belongs_together_is_refused_together(database: Database, scope: TenantScope) -> None:
    """A reason that a person rewrote keeps the retirement it belongs to, in the tables' own rules."""
    tea = await add_memory(database, scope, "Ann likes tea")
    night = await sleep(database, scope, step(retire(tea), importance(tea, 2)))
    await change(database, scope, "UPDATE memories SET retired_reason = 'really noise' WHERE tenant_id = :tenant_id")
    result = await undo(database, scope, night)
    assert reasons(result) == {
        "retired_at": "belongs with what was changed since",
        "retired_by_run": "belongs with what was changed since",
        "retired_reason": "changed since",
    }
    assert (await memory(database, scope, tea))["retired_reason"] == "really noise"
    assert await importance_of(database, scope, tea) == 5


async def test_nothing_is_restored_that_breaks_a_rule(database: Database, scope: TenantScope) -> None:
    """Where a column that the run left alone was changed since, the former values may no longer fit together."""
    tea = await add_memory(database, scope, "Ann likes tea")
    better = await add_memory(database, scope, "Ann likes green tea")
    supersede = (
        "UPDATE memories SET superseded_by_belief = :belief, superseded_reason = 'update' "
        "WHERE tenant_id = :tenant_id AND id = :id"
    )
    night = await sleep(database, scope, step((supersede, {"belief": uuid.uuid4(), "id": tea})))
    by_person = "UPDATE memories SET superseded_by = :better WHERE tenant_id = :tenant_id AND id = :id"
    await change(database, scope, by_person, better=better, id=tea)
    result = await undo(database, scope, night)
    assert set(reasons(result).values()) == {"does not fit with what was changed since"}
    assert (await memory(database, scope, tea))["superseded_by"] == better


async def test_an_earlier_run_under_a_later_one(database: Database, scope: TenantScope) -> None:
    """What a later night built upon is refused; newest first, every night is undone exactly."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    before = await state(database, scope)
    edge = uuid.uuid4()
    first = await sleep(database, scope, step(importance(tea, 6), importance(cake, 6), link(edge, tea, cake)))
    between = await state(database, scope)
    weigh = ("UPDATE memory_edges SET weight = 2, evidence_count = 2 WHERE tenant_id = :tenant_id", {})
    second = await sleep(database, scope, step(importance(tea, 7), weigh), LATER)

    refused = await undo_run(database, scope, first.run.id, at=NIGHT)
    assert [(one["table"], one["column"], one["reason"]) for one in refused.refused] == [
        ("memory_state", "importance", "changed since"),
        ("memory_edges", None, "in use since"),
    ]
    assert await importance_of(database, scope, tea) == 7
    assert await importance_of(database, scope, cake) == 5
    await undo(database, scope, second)
    assert await importance_of(database, scope, tea) == 6

    third = await sleep(database, scope, step(importance(cake, 6)), LATER)
    assert await state(database, scope) == between
    await undo(database, scope, third)
    assert await state(database, scope) != before


async def test_newest_first_restores_every_state(database: Database, scope: TenantScope) -> None:
    """A change that was undone is none: it keeps nothing that an earlier night made."""
    tea = await add_memory(database, scope, "Ann likes tea")
    cake = await add_memory(database, scope, "Ann likes cake")
    states, nights = [await state(database, scope)], []
    edge = uuid.uuid4()
    weigh = ("UPDATE memory_edges SET weight = weight + 1 WHERE tenant_id = :tenant_id", {})
    for number, work in enumerate(([link(edge, tea, cake)], [weigh, importance(tea, 6)], [weigh, importance(tea, 7)])):
        nights.append(await sleep(database, scope, step(*work), NIGHT + timedelta(days=number)))
        states.append(await state(database, scope))
    for night, expected in zip(reversed(nights), reversed(states[:-1]), strict=True):
        result = await undo(database, scope, night)
        assert result.refused == ()
        assert await state(database, scope) == expected

    # The same edge, with the same derived id, is made and undone once more: the old journal does not keep it.
    again = await sleep(database, scope, step(link(edge, tea, cake)))
    assert (await undo(database, scope, again)).refused == ()
    assert await state(database, scope) == states[0]


async def test_a_made_row_in_use_stays_with_all_its_parts(database: Database, scope: TenantScope) -> None:
    """A summary that a person linked to is kept, and so are its state and its own edges."""
    members = [await add_memory(database, scope, f"member {number}") for number in range(3)]
    summary, edge = uuid.uuid4(), uuid.uuid4()
    unlinked = uuid.uuid4()
    made = step(
        *summarise(summary, "the team"), link(edge, summary, members[0], "CLUSTERS"), link(unlinked, *members[:2])
    )
    night = await sleep(database, scope, made)
    await add_edge(database, scope, members[2], summary, "MENTIONS")
    result = await undo(database, scope, night)
    assert [(one["table"], one["reason"]) for one in result.refused] == [("memories", "in use since")]
    assert result.removed == 1
    kept = "SELECT m.id FROM memories m JOIN memory_state s ON s.memory_id = m.id WHERE m.id = :summary"
    assert len(await rows(database, scope, kept, summary=summary)) == 1
    left = await rows(database, scope, "SELECT relationship FROM memory_edges ORDER BY relationship")
    assert [row["relationship"] for row in left] == ["CLUSTERS", "MENTIONS"]


@pytest.mark.parametrize("use", ["pinned", "correction", "superseded", "trigger"])
async def test_what_a_person_builds_on_is_kept(database: Database, scope: TenantScope, use: str) -> None:
    """A summary that was pinned, corrected, made a winner or a reminder is in use."""
    tea = await add_memory(database, scope, "Ann likes tea")
    summary = uuid.uuid4()
    night = await sleep(database, scope, step(*summarise(summary, "the team")))
    statements = {
        "pinned": "UPDATE memories SET pinned = true WHERE tenant_id = :tenant_id AND id = :summary",
        "correction": "INSERT INTO corrections (tenant_id, id, scope_path, memory_id, who, at, what) "
        "VALUES (:tenant_id, :other, :scope_path, :summary, 'ann', now(), '{}')",
        "superseded": "UPDATE memories SET superseded_by = :summary, superseded_reason = 'correction' "
        "WHERE tenant_id = :tenant_id AND id = :tea",
        "trigger": "INSERT INTO triggers (tenant_id, id, scope_path, memory_id, recorded_at) "
        "VALUES (:tenant_id, :other, :scope_path, :summary, now())",
    }
    await change(database, scope, statements[use], summary=summary, tea=tea, other=uuid.uuid4())
    result = await undo(database, scope, night)
    assert [one["key"]["id"] for one in result.refused] == [str(summary)]


async def test_a_summary_that_was_only_read_goes(database: Database, scope: TenantScope) -> None:
    """Reading a derived row is no reason to keep it; its accesses go with it."""
    await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    summary = uuid.uuid4()
    night = await sleep(database, scope, step(*summarise(summary, "the team")))
    await add_access(database, scope, summary, ago(minutes=1))
    result = await undo(database, scope, night)
    assert (result.removed, result.refused) == (2, ())
    assert await state(database, scope) == before


async def refreshed(
    database: Database, scope: TenantScope, old: uuid.UUID, content: str, at: datetime
) -> tuple[Night, uuid.UUID]:
    """The old summary is retired and replaced by a new one that takes its unique place."""
    new = uuid.uuid4()
    replaced = (
        "UPDATE memories SET superseded_by = :new, superseded_reason = 'update' "
        "WHERE tenant_id = :tenant_id AND id = :old",
        {"new": new, "old": old},
    )
    night = await sleep(database, scope, step(retire(old, reason="refreshed"), *summarise(new, content), replaced), at)
    assert night.status == "applied"
    return night, new


async def test_a_refreshed_summary_gets_its_place_back(database: Database, scope: TenantScope) -> None:
    """The former one comes back although its successor held the only place, and pointed to by it."""
    await add_memory(database, scope, "Ann is on the team")
    old = uuid.uuid4()
    first = await sleep(database, scope, step(*summarise(old, "a team of one")))
    with_first = await state(database, scope)
    second, newer = await refreshed(database, scope, old, "a team of two", LATER)
    with_second = await state(database, scope)
    third, _ = await refreshed(database, scope, newer, "a team of three", LATER + timedelta(days=1))
    for night, expected in ((third, with_second), (second, with_first)):
        result = await undo(database, scope, night)
        assert result.refused == ()
        assert (result.restored, result.removed) == (1, 2)
        assert await state(database, scope) == expected
    assert (await undo(database, scope, first)).refused == ()


async def test_a_place_taken_since_is_refused(database: Database, scope: TenantScope) -> None:
    """An earlier refresh cannot be undone under a later one; it is said, and nothing breaks."""
    await add_memory(database, scope, "Ann is on the team")
    old = uuid.uuid4()
    await sleep(database, scope, step(*summarise(old, "a team of one")))
    second, newer = await refreshed(database, scope, old, "a team of two", LATER)
    _, newest = await refreshed(database, scope, newer, "a team of three", LATER + timedelta(days=1))
    result = await undo(database, scope, second)
    assert {one["reason"] for one in result.refused if one["key"] == {"id": str(old)}} == {"its place was taken since"}
    assert {one["reason"] for one in result.refused if one["key"] == {"id": str(newer)}} == {"in use since"}
    current = await rows(
        database, scope, "SELECT id FROM memories WHERE derived_key IS NOT NULL AND retired_at IS NULL"
    )
    assert [row["id"] for row in current] == [newest]


async def test_what_an_undo_had_to_leave_can_be_asked_for_again(database: Database, scope: TenantScope) -> None:
    """Undone out of order, an earlier run goes wholly once the later ones that used it are undone too."""
    await add_memory(database, scope, "Ann is on the team")
    old = uuid.uuid4()
    await sleep(database, scope, step(*summarise(old, "a team of one")))
    with_first = await state(database, scope)
    second, newer = await refreshed(database, scope, old, "a team of two", LATER)
    third, _ = await refreshed(database, scope, newer, "a team of three", LATER + timedelta(days=1))
    assert (await undo(database, scope, second)).refused
    assert (await undo(database, scope, third)).refused == ()
    again = await undo_run(database, scope, second.run.id, at=LATER + timedelta(days=2))
    assert again.refused == ()
    assert await state(database, scope) == with_first
    with pytest.raises(UndoRefused, match="already undone"):
        await undo_run(database, scope, second.run.id, at=LATER + timedelta(days=3))


async def test_an_undo_happens_once(database: Database, scope: TenantScope) -> None:
    """Twice is refused, and so are an undo's undo, a refused run's and an unknown run's."""
    tea = await add_memory(database, scope, "Ann likes tea")
    night = await sleep(database, scope, step(importance(tea, 6)))
    result = await undo(database, scope, night)
    with pytest.raises(UndoRefused, match="already undone"):
        await undo(database, scope, night)
    with pytest.raises(UndoRefused, match="cannot be undone"):
        await undo_run(database, scope, result.run_id, at=NIGHT)
    with pytest.raises(NotFound):
        await undo_run(database, scope, uuid.uuid4(), at=NIGHT)
    with pytest.raises(InvalidTime):
        await undo_run(database, scope, night.run.id, at=NIGHT.replace(tzinfo=None))


async def test_undo_waits_for_nobody_who_holds_the_scope(database: Database, scope: TenantScope) -> None:
    """While a run holds the scope, an undo says so instead of working beside it."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=1),))
    night = await sleep(database, scope, STRENGTHEN)
    async with held_scopes(database, [scope]):
        with pytest.raises(ScopeBusy):
            await undo_held(database, scope, night.run.id, at=NIGHT)
    assert (await undo_held(database, scope, night.run.id, at=NIGHT)).refused == ()


async def test_a_run_whose_process_died_is_undone(database: Database, scope: TenantScope) -> None:
    """What it had done comes back; if it lived after all, its next step no longer counts."""
    tea = await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    context = await begun(database, scope)
    await perform_step(database, context, step(importance(tea, 6), name="first"), 0)
    assert await state(database, scope) != before
    assert (await undo_run(database, scope, context.run.id, at=NIGHT)).refused == ()
    assert await state(database, scope) == before
    with pytest.raises(TransactionConflict, match="is undone"):
        await perform_step(database, context, step(importance(tea, 7), name="second"), 1)
    assert (await advance(database, context, [step(importance(tea, 7), name="second")], 0)).status == "closed"
    assert await state(database, scope) == before


async def test_the_version_never_falls(database: Database, scope: TenantScope) -> None:
    """Who decided on a memory before it was retired and restored sees that it changed."""
    tea = await add_memory(database, scope, "Ann likes tea")
    versions = [(await memory(database, scope, tea))["version"]]
    night = await sleep(database, scope, step(retire(tea)))
    versions.append((await memory(database, scope, tea))["version"])
    await undo(database, scope, night)
    versions.append((await memory(database, scope, tea))["version"])
    assert versions == [1, 2, 3]


async def test_what_is_remembered_is_no_change_since(database: Database, scope: TenantScope) -> None:
    """A run that rewrote an older decision is undone without a refusal, and the decision stays remembered."""
    await add_memory(database, scope, "Ann likes tea")
    decide = """
    INSERT INTO decisions (tenant_id, scope_path, decision_key, phase, verdict, run_id, decided_at, created_by_run)
    VALUES (:tenant_id, :scope_path, 'k', 'harmonize', :verdict, :run_id, :as_of, :run_id)
    ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
    SET verdict = excluded.verdict, run_id = excluded.run_id, decided_at = excluded.decided_at"""
    await sleep(database, scope, step((decide, {"verdict": "nothing_to_say"})))
    night = await sleep(database, scope, step((decide, {"verdict": "decided"})), LATER)
    undone = """
    SELECT phase, decision_key, members FROM decisions d
    WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path AND d.run_id = CAST(:id AS uuid)"""
    result = await undo_run(database, scope, night.run.id, at=LATER, decisions=[undone])
    assert result.refused == ()
    verdicts = await rows(database, scope, "SELECT verdict FROM decisions WHERE tenant_id = :tenant_id")
    assert [row["verdict"] for row in verdicts] == ["undone"]


async def test_a_belief_in_use_keeps_its_evidence(database: Database, scope: TenantScope) -> None:
    """A belief that a memory was superseded by since is kept, and with it what it rests on."""
    tea = await add_memory(database, scope, "Ann likes tea")
    old = await add_memory(database, scope, "Ann likes coffee")
    belief = uuid.uuid4()
    hold = (
        """INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, status,
             valid_from, cluster_id, model, rules_version, recorded_at, created_by_run)
           VALUES (:tenant_id, :belief, :scope_path, 'Ann', 'likes', 'tea', 'Ann likes tea', 'held', :as_of, 'c',
                   'rules', '1', :as_of, :run_id)""",
        {"belief": belief},
    )
    rest = (
        """INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path, created_by_run)
           VALUES (:tenant_id, :belief, :memory, 'supports', :scope_path, :run_id)""",
        {"belief": belief, "memory": tea},
    )
    night = await sleep(database, scope, step(hold, rest))
    by_person = (
        "UPDATE memories SET superseded_by_belief = :belief, superseded_reason = 'update' "
        "WHERE tenant_id = :tenant_id AND id = :old"
    )
    await change(database, scope, by_person, belief=belief, old=old)
    result = await undo(database, scope, night)
    assert [(one["table"], one["reason"]) for one in result.refused] == [("harmonic_beliefs", "in use since")]
    assert len(await rows(database, scope, "SELECT 1 FROM belief_evidence WHERE tenant_id = :tenant_id")) == 1


async def test_begin_refuses_what_is_not_a_night(database: Database, scope: TenantScope) -> None:
    """A naive time, an unknown scope, an unknown kind (F28, F55)."""
    with pytest.raises(NotFound):
        await begin_run(database, scope, "sleep", NIGHT)
    await add_memory(database, scope, "Ann likes tea")
    with pytest.raises(InvalidTime):
        await begin_run(database, scope, "sleep", NIGHT.replace(tzinfo=None))
    with pytest.raises(InvalidInput, match="no run of kind"):
        await begin_run(database, scope, "undo", NIGHT)


FILL = """
WITH made AS (
  INSERT INTO memories (tenant_id, id, scope_path, content, observed_at, recorded_at, last_activity_at, content_hash)
  SELECT :tenant_id, gen_random_uuid(), :scope_path, 'memory ' || n, :at, :at, :at, md5(CAST(n AS text))
  FROM generate_series(1, 8000) AS n
  RETURNING tenant_id, id, scope_path
)
INSERT INTO memory_state (tenant_id, memory_id, scope_path) SELECT tenant_id, id, scope_path FROM made
"""


async def test_an_undo_of_many_rows_is_linear(database: Database, scope: TenantScope, settings: Settings) -> None:
    """Rows are found by their keys under row-level security too; compared each with each, this takes minutes."""
    await add_scope(database, scope)
    await change(database, scope, FILL, at=ago(days=30))
    before = await state(database, scope)
    everything = ("UPDATE memory_state SET importance = importance + 1 WHERE tenant_id = :tenant_id", {})
    night = await sleep(database, scope, step(everything))
    async with Database.open(settings.model_copy(update={"statement_timeout": 8})) as hurried:
        result = await undo_run(hurried, scope, night.run.id, at=NIGHT)
    assert (result.restored, result.refused) == (8000, ())
    assert await state(database, scope) == before
