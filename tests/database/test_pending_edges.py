"""Phase 2.5: pending connections become edges, confirm them, or are rejected with a reason."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.runs.changes import changes_of
from memory_core.scope import TenantScope
from memory_core.sleep.cooccurrence import STEP as COOCCURRENCE
from memory_core.sleep.pending_edges import STEP
from memory_core.sleep.pending_given import given_connections, relationship_name
from tests.builders import NIGHT, add_edge, add_memory, ago
from tests.nights import change, edges, look_ahead, rows, sleep, state, undo


def pending(source: str, relationship: str, target: str, **more: Any) -> dict[str, Any]:
    """A connection as an activation log holds it."""
    return {
        "source": source,
        "relationship": relationship,
        "target": target,
        "status": "PENDING CONSOLIDATION",
        **more,
    }


async def outcomes(database: Database, scope: TenantScope) -> list[tuple[str, str | None]]:
    """Outcome and reason of each row of the table, by source and target."""
    found = await rows(database, scope, "SELECT outcome, reason FROM pending_connections ORDER BY source, target")
    return [(row["outcome"], row["reason"]) for row in found]


async def people(database: Database, scope: TenantScope, *names: str) -> list[uuid.UUID]:
    """Memories with these labels."""
    return [await add_memory(database, scope, f"about {name}", label=name, external_id=f"x-{name}") for name in names]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("works_with", "WORKS_WITH"),
        ("works with", "WORKS_WITH"),
        ("worksWith", "WORKS_WITH"),
        (" WORKS--WITH ", "WORKS_WITH"),
        ("wohnt in", "WOHNT_IN"),
        ("", None),
        ("  ", None),
        ("42", None),
        ("->", None),
        ("co_occurred", None),
        ("clusters", None),
        ("X" * 65, None),
        ("aime\u0301 par", "AIM\u00c9_PAR"),
        ("\u200b", None),
    ],
)
def test_relationship_names(given: str, name: str | None) -> None:
    """F13: a relationship is normalised; what cannot be one, or belongs to a phase, is refused."""
    assert relationship_name(given) == name


@pytest.mark.parametrize("text", ["nul\x00", "\ud800", "x" * 10_001, "", None, 7])
def test_what_cannot_be_stored_is_malformed(scope: TenantScope, text: Any) -> None:
    """Text that Postgres cannot keep is counted, not stored; the rest of the list is used."""
    found, malformed, repeated = given_connections(scope, [pending("a", "KNOWS", text), pending("a", "KNOWS", "b")])
    assert (len(found), malformed, repeated) == (1, 1, 0)


async def test_ends_are_found_by_id_external_id_and_label(database: Database, scope: TenantScope) -> None:
    """F13: a typed edge is written whichever way the ends are named."""
    a, b, c = await people(database, scope, "a", "b", "c")
    night = await sleep(
        database,
        scope,
        STEP,
        pending_connections=[
            pending(str(a), "knows", "x-b"),
            pending("x-b", "KNOWS", "c"),
            pending("whatever", "works with", "nobody", source_id=str(c), target_id=str(a)),
        ],
    )
    made = await edges(database, scope)
    assert set(made) == {(a, b, "KNOWS"), (b, c, "KNOWS"), (c, a, "WORKS_WITH")}
    assert {(edge["kind"], edge["status"], edge["weight"], edge["created_by_run"]) for edge in made.values()} == {
        ("inferred", "active", 1.0, night.run.id)
    }
    assert night.outcome.counts == {"edges_created": 3, "edges_confirmed": 0, "pending_rejected": 0}
    assert (night.outcome.candidates, night.outcome.changed, night.outcome.skipped) == (3, 3, {})
    assert await outcomes(database, scope) == [("written", None)] * 3


async def test_a_real_activation_log_confirms_what_is_there(database: Database, scope: TenantScope) -> None:
    """F12: neighbours reported by a generic name confirm their edge, either way round, once a run."""
    a, b, c = await people(database, scope, "a", "b", "c")
    await add_edge(database, scope, a, b, "SERVES")
    night = await sleep(
        database,
        scope,
        STEP,
        pending_connections=[
            pending("a", "LINKED_SEMANTIC", "b"),
            pending("b", "associated", "a"),
            pending("a", "linked_episodic", "c"),
        ],
    )
    made = await edges(database, scope)
    assert set(made) == {(a, b, "SERVES"), (a, c, "LINKED_EPISODIC")}
    serves = made[a, b, "SERVES"]
    assert (serves["status"], serves["evidence_count"], serves["kind"]) == ("confirmed", 2, "explicit")
    assert serves["last_evidence_at"] == NIGHT
    assert night.outcome.counts == {"edges_created": 1, "edges_confirmed": 1, "pending_rejected": 0}
    assert night.outcome.skipped == {"given more than once": 1}


async def test_a_typed_connection_stands_beside_other_edges(database: Database, scope: TenantScope) -> None:
    """A pair that is linked already still gets the typed edge; the same triple is confirmed instead."""
    a, b = await people(database, scope, "a", "b")
    await add_edge(database, scope, a, b, "SERVES")
    given = [pending("a", "LOCATED_IN", "b"), pending("a", "serves", "b"), pending("b", "SERVES", "a")]
    night = await sleep(database, scope, STEP, pending_connections=given)
    assert set(await edges(database, scope)) == {(a, b, "SERVES"), (a, b, "LOCATED_IN"), (b, a, "SERVES")}
    assert night.outcome.counts == {"edges_created": 2, "edges_confirmed": 1, "pending_rejected": 0}


async def test_a_generic_connection_finds_the_typed_one_of_the_same_log(database: Database, scope: TenantScope) -> None:
    """Whatever the order of the list, a pair gets its typed edge and no generic one beside it."""
    a, b = await people(database, scope, "a", "b")
    night = await sleep(
        database,
        scope,
        STEP,
        pending_connections=[pending("b", "LINKED_SEMANTIC", "a"), pending("a", "LOCATED_IN", "b")],
    )
    assert set(await edges(database, scope)) == {(a, b, "LOCATED_IN")}
    assert night.outcome.skipped == {"given more than once": 1}


async def test_a_co_occurrence_of_the_same_night_blocks_nothing(database: Database, scope: TenantScope) -> None:
    """F13b: neither a typed nor a generic connection is held up by a CO_OCCURRED edge."""
    a, b, c = await people(database, scope, "a", "b", "c")
    await sleep(
        database,
        scope,
        (COOCCURRENCE, STEP),
        pending_connections=[pending("a", "LOCATED_IN", "b"), pending("a", "LINKED_SEMANTIC", "c")],
    )
    made = await edges(database, scope)
    assert {(a, b, "LOCATED_IN"), (a, c, "LINKED_SEMANTIC")} < set(made)
    assert sum(edge["kind"] == "co_occurred" for edge in made.values()) == 3


async def test_every_rejection_has_its_reason(database: Database, scope: TenantScope) -> None:
    """F13: self-loops, doubtful labels, unknown, foreign, gone and derived ends, and bad names, each counted."""
    child = scope.child("conversation", "c1")
    sibling = scope.child("conversation", "c2")
    await people(database, child, "own", "other", "twice", "twice2")
    await change(database, child, "UPDATE memories SET label = 'twice' WHERE label = 'twice2'")
    (above,) = await people(database, scope, "above")
    (hidden,) = await people(database, sibling, "hidden")
    gone = await add_memory(database, child, "gone", label="gone", retired_at=ago(days=1), retired_reason="wrong")
    await add_memory(database, child, "made", label="META: x", derived_key="meta:x")
    await add_edge(
        database,
        child,
        *[
            row["id"]
            for row in await rows(
                database, child, "SELECT id FROM memories WHERE label IN ('own', 'other') ORDER BY label DESC"
            )
        ],
        "LEFT",
        status="retired",
    )
    given = [
        pending("own", "KNOWS", "own"),
        pending("own", "KNOWS", "x-own"),
        pending("own", "KNOWS", "twice"),
        pending("own", "KNOWS", "nobody"),
        pending("own", "KNOWS", str(hidden)),
        pending("above", "KNOWS", "own"),
        pending("own", "KNOWS", str(gone)),
        pending("own", "KNOWS", "gone"),
        pending("own", "KNOWS", "META: x"),
        pending("own", "", "other"),
        pending("own", "CO_OCCURRED", "other"),
        pending("own", "LEFT", "other"),
        pending("own", "KNOWS", "other", status="EXPLICIT"),
        {"source": "own"},
        "own",
        pending("own", "KNOWS", "  "),
        pending("own", "SEES", "above"),
    ]
    night = await sleep(database, child, STEP, pending_connections=given)
    assert night.outcome.skipped == {
        "ambiguous": 1,
        "bad_relationship": 2,
        "derived": 1,
        "foreign": 1,
        "malformed": 3,
        "missing": 3,
        "not_current": 1,
        "not_pending": 1,
        "retired_edge": 1,
        "self": 2,
    }
    assert night.outcome.candidates == len(given) == sum(night.outcome.skipped.values()) + 1
    assert night.outcome.counts == {"edges_created": 1, "edges_confirmed": 0, "pending_rejected": 13}
    (made,) = (edge for edge in await edges(database, child) if edge[2] != "LEFT")
    assert made[1:] == (above, "SEES")
    assert {"source": "own", "relationship": "KNOWS", "target": "nobody", "reason": "missing"} in night.outcome.details[
        "rejected"
    ]


async def test_every_item_of_the_list_is_accounted_for(database: Database, scope: TenantScope) -> None:
    """The same connection twice is counted, white space around an end names nothing else, ids may be in capitals."""
    a, b = await people(database, scope, "a", "b")
    given = [
        pending("a", "KNOWS", "b"),
        pending(" a ", "KNOWS", "b\n"),
        pending(str(a).upper(), "SEES", str(b)),
        pending("a", "KNOWS", "b", status="explicit"),
        {**pending("a", "KNOWS", "b"), "relationship": None},
        {name: value for name, value in pending("a", "", "b").items() if name != "relationship"},
        {**pending("a", "HEARS", "b"), "source": {"name": "a"}},
    ]
    night = await sleep(database, scope, STEP, pending_connections=given)
    assert night.outcome.skipped == {"given more than once": 2, "malformed": 2, "not_pending": 1}
    assert set(await edges(database, scope)) == {(a, b, "KNOWS"), (a, b, "SEES")}
    assert night.outcome.candidates == len(given) == sum(night.outcome.skipped.values()) + night.outcome.changed


async def test_what_was_given_as_explicit_may_wait_later(database: Database, scope: TenantScope) -> None:
    """A status that does not wait is rejected for itself; the same connection as pending is another matter."""
    a, b = await people(database, scope, "a", "b")
    first = await sleep(database, scope, STEP, pending_connections=[pending("a", "KNOWS", "b", status="EXPLICIT")])
    assert first.outcome.skipped == {"not_pending": 1}
    both = [pending("a", "KNOWS", "b"), pending("a", "KNOWS", "b", status="EXPLICIT")]
    second = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1), pending_connections=both)
    assert set(await edges(database, scope)) == {(a, b, "KNOWS")}
    assert second.outcome.skipped == {"not_pending": 1}


async def test_another_tenants_memory_is_not_there(database: Database, scope: TenantScope) -> None:
    """By id, by external id and by label alike: nothing tells that it exists."""
    other = TenantScope.root("tenant", "other")
    await people(database, scope, "a")
    (theirs,) = await people(database, other, "b")
    night = await sleep(
        database, scope, STEP, pending_connections=[pending("a", "KNOWS", name) for name in (str(theirs), "x-b", "b")]
    )
    assert night.outcome.skipped == {"missing": 3}


async def test_a_label_of_an_ancestor_makes_one_of_the_own_scope_doubtful(
    database: Database, scope: TenantScope
) -> None:
    """Two memories in sight are called so: the id decides, the label does not."""
    child = scope.child("conversation", "c1")
    await people(database, scope, "b")
    a, b = await people(database, child, "a", "b")
    given = [pending("a", "KNOWS", "b"), pending("a", "SEES", str(b))]
    night = await sleep(database, child, STEP, pending_connections=given)
    assert night.outcome.skipped == {"ambiguous": 1}
    assert set(await edges(database, child)) == {(a, b, "SEES")}


async def test_rows_of_the_table_are_consumed_once(database: Database, scope: TenantScope) -> None:
    """What hydrate wrote is used up by the first night after it; later rows wait; a rejected row is not asked again."""
    a, b = await people(database, scope, "a", "b")
    for source, at in (("a", ago(hours=1)), ("nobody", ago(hours=1)), ("b", NIGHT + timedelta(hours=1))):
        await change(
            database,
            scope,
            "INSERT INTO pending_connections (tenant_id, id, scope_path, source, target, relationship, at) "
            "VALUES (:tenant_id, gen_random_uuid(), :scope_path, :source, 'x-b', 'ASSOCIATED', :at)",
            source=source,
            at=at,
        )
    night = await sleep(database, scope, STEP)
    assert (night.outcome.candidates, night.outcome.changed, night.outcome.skipped) == (2, 1, {"missing": 1})
    assert set(await edges(database, scope)) == {(a, b, "ASSOCIATED")}
    assert await outcomes(database, scope) == [("written", None), (None, None), ("rejected", "missing")]
    again = await sleep(database, scope, STEP)
    assert (again.outcome.candidates, again.outcome.reason) == (0, "no connection is pending")
    later = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1))
    assert later.outcome.skipped == {"self": 1}


async def test_the_same_list_twice_changes_nothing(database: Database, scope: TenantScope) -> None:
    """N runs over the same connections equal one, with the reason said; what was missing is looked at again."""
    a, b = await people(database, scope, "a", "b")
    given = [pending("a", "KNOWS", "b"), pending("a", "KNOWS", "c")]
    await sleep(database, scope, STEP, pending_connections=given)
    after = await state(database, scope)
    again = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=1), pending_connections=given)
    assert await state(database, scope) == after
    assert (again.outcome.changed, again.outcome.skipped) == (0, {"already consumed": 1, "missing": 1})
    assert again.outcome.reason == "no pending connection could be written or confirmed"
    (c,) = await people(database, scope, "c")
    third = await sleep(database, scope, STEP, at=NIGHT + timedelta(days=2), pending_connections=given)
    assert set(await edges(database, scope)) == {(a, b, "KNOWS"), (a, c, "KNOWS")}
    assert third.outcome.skipped == {"already consumed": 1}


async def test_what_is_no_list_fails_the_phase(database: Database, scope: TenantScope) -> None:
    """A request that cannot be meant is refused with a hint, and nothing is written."""
    await people(database, scope, "a", "b")
    night = await sleep(database, scope, STEP, pending_connections="a knows b")
    assert night.status == "failed"
    assert night.results[0].error is not None
    assert night.results[0].error["error"] == "InvalidInput"
    assert "activation log" in night.results[0].error["hint"]


async def test_preview_equals_the_run_and_undo_is_exact_and_remembered(database: Database, scope: TenantScope) -> None:
    """Undo removes what the run wrote, the given rows too; the same connection then waits until it is asked for."""
    a, b, c = await people(database, scope, "a", "b", "c")
    await add_edge(database, scope, a, c, "SERVES")
    given = [pending("a", "KNOWS", "b"), pending("a", "SERVES", "c"), pending("a", "KNOWS", "nobody")]
    before = await state(database, scope)
    foreseen = await look_ahead(database, scope, STEP, pending_connections=given)
    night = await sleep(database, scope, STEP, pending_connections=given)
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, night.run.id) == foreseen
    undone = await undo(database, scope, night, STEP)
    assert undone.refused == ()
    assert await state(database, scope) == before
    assert await outcomes(database, scope) == []

    again = await sleep(database, scope, STEP, pending_connections=given)
    assert (again.outcome.changed, again.outcome.skipped) == (0, {"missing": 1, "taken back by a person": 2})
    assert await state(database, scope) == before
    asked = await sleep(database, scope, STEP, reconsider=True)
    assert asked.outcome.changed == 2
    assert (await edges(database, scope))[a, c, "SERVES"]["status"] == "confirmed"
    assert (a, b, "KNOWS") in await edges(database, scope)


async def test_statements_do_not_grow_with_the_list(database: Database, scope: TenantScope) -> None:
    """Three hundred connections take as many statements as one."""
    await people(database, scope, *(f"n{number}" for number in range(30)))
    given = [pending(f"n{one}", "KNOWS", f"n{other}") for one in range(30) for other in range(one + 1, 30)]

    async def statements(part: list[dict[str, Any]]) -> int:
        from sqlalchemy import event

        count = 0

        def seen(*_: object) -> None:
            nonlocal count
            count += 1

        event.listen(database.app.sync_engine, "before_cursor_execute", seen)
        await sleep(database, scope, STEP, pending_connections=part)
        event.remove(database.app.sync_engine, "before_cursor_execute", seen)
        return count

    assert await statements(given[:1]) == await statements(given[1:])
    assert len(await edges(database, scope)) == len(given)
