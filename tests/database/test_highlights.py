"""What the morning report shows, read from the journal of a run."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

import pytest

from memory_core.database.engine import Database
from memory_core.database.scoped import ScopedConnection
from memory_core.night.consolidate import consolidate
from memory_core.night.highlights import ITEMS, highlights
from memory_core.runs.ledger import begin_run
from memory_core.scope import TenantScope
from memory_core.sleep.morning_report import build_morning_report
from tests.builders import NIGHT, add_edge, add_memory, ago
from tests.small_tenant import PENDING, fill_small_tenant


async def insert(connection: ScopedConnection, table: str, **row: object) -> None:
    columns = ", ".join(row)
    values = ", ".join(f"CAST(:{name} AS jsonb)" if isinstance(row[name], dict | list) else f":{name}" for name in row)
    given = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()}
    await connection.execute(
        f"INSERT INTO {table} (tenant_id, scope_path, {columns}) VALUES (:tenant_id, :scope_path, {values})", **given
    )


async def add_belief(connection: ScopedConnection, content: str, *, run: bool = True, **fields: object) -> uuid.UUID:
    belief_id = uuid.uuid4()
    row = {
        "belief_id": belief_id,
        "subject": "Maya",
        "predicate": "lives_in",
        "object": content,
        "content": content,
        "confidence": 0.8,
        "status": "held",
        "valid_from": ago(days=2),
        "cluster_id": "c",
        "model": "rules",
        "rules_version": "1",
        "recorded_at": ago(days=1),
        **fields,
    }
    if run and connection.run is not None:
        row["created_by_run"] = connection.run.run_id
    await insert(connection, "harmonic_beliefs", **row)
    return belief_id


async def add_evidence(connection: ScopedConnection, belief: uuid.UUID, memory: uuid.UUID, role: str) -> None:
    made = {"created_by_run": connection.run.run_id} if connection.run else {}
    await insert(connection, "belief_evidence", belief_id=belief, memory_id=memory, role=role, **made)


async def set_state(connection: ScopedConnection, memory: uuid.UUID, assignments: str) -> None:
    await connection.execute(
        f"UPDATE memory_state SET {assignments} WHERE tenant_id = :tenant_id AND memory_id = :memory", memory=memory
    )


async def set_memory(connection: ScopedConnection, memory: uuid.UUID, assignments: str, **values: object) -> None:
    await connection.execute(
        f"UPDATE memories SET {assignments} WHERE tenant_id = :tenant_id AND id = :memory", memory=memory, **values
    )


@pytest.fixture
async def run(database: Database, scope: TenantScope):
    await add_memory(database, scope, "Maya likes tea")
    return await begin_run(database, scope, "nightly", NIGHT, {})


async def test_strengthened_memories_show_both_values_and_counted_uses(
    database: Database, scope: TenantScope, run
) -> None:
    """Importance before the run's first change and after its last; uses too old to count are not told."""
    memory = await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2), ago(hours=1), ago(days=9)))
    lower = await add_memory(database, scope, "Bo likes tea", importance=6)
    async with database.scoped(scope, run.binding("strengthen")) as connection:
        await set_state(connection, memory, "importance = 5.5")
        await set_state(connection, memory, "importance = 5.95")
        await set_state(connection, lower, "importance = 4")
        await connection.execute("UPDATE memory_accesses SET consumed_by_run = :run_id WHERE tenant_id = :tenant_id")
        found = (await highlights(connection, run.id, evidence_since=NIGHT - timedelta(days=1)))["strengthened"]
    assert found == {
        "total": 1,
        "items": [
            {
                "memory_id": str(memory),
                "label": None,
                "content": "Ann likes tea",
                "before": 5.0,
                "after": 5.95,
                "evidence": 2,
                "kinds": {"recall": 2},
            }
        ],
    }


async def test_links_are_told_as_new_or_reinforced(database: Database, scope: TenantScope, run) -> None:
    """An edge the run made and one that it found further evidence for; a summary's links are not among them."""
    ann, bo, cy = [
        await add_memory(database, scope, f"{name} is here", label=f"TEAM: {name}") for name in ("Ann", "Bo", "Cy")
    ]
    known = await add_edge(database, scope, ann, bo, "CO_OCCURRED", kind="co_occurred")
    await add_edge(database, scope, ann, bo, "UNTOUCHED")
    async with database.scoped(scope, run.binding("cooccurrence")) as connection:
        for kind, relationship in (("inferred", "WORKS_WITH"), ("clusters", "CLUSTERS")):
            await insert(
                connection, "memory_edges", id=uuid.uuid4(), source_id=ann, target_id=cy, relationship=relationship,
                kind=kind, recorded_at=NIGHT, created_by_run=run.id,
            )  # fmt: skip
        await connection.execute(
            "UPDATE memory_edges SET evidence_count = 2 WHERE tenant_id = :tenant_id AND id = :id", id=known
        )
        found = (await highlights(connection, run.id))["linked"]
    assert (found["total"], found["new"]) == (2, 1)
    assert [(item["relationship"], item["new"], item["nights"]) for item in found["items"]] == [
        ("WORKS_WITH", True, 1),
        ("CO_OCCURRED", False, 2),
    ]
    assert (found["items"][0]["source"], found["items"][0]["target"]) == ("TEAM: Ann", "TEAM: Cy")


async def test_flags_come_and_go_with_their_words(database: Database, scope: TenantScope, run) -> None:
    """A memory that earned a flag is told with the words; one that lost it with those it had."""
    flagged = await add_memory(database, scope, "The outage lost data")
    cleared = await add_memory(database, scope, "There is no risk")
    async with database.scoped(scope) as connection:
        await set_state(connection, cleared, "risk_words = '[\"risk\"]', risk_tagged_at = now()")
        await connection.commit()
    async with database.scoped(scope, run.binding("tag_risk")) as connection:
        await set_state(connection, flagged, "risk_words = '[\"outage\"]', risk_tagged_at = :as_of")
        await set_state(connection, cleared, "risk_words = NULL, risk_tagged_at = NULL")
        found = await highlights(connection, run.id)
    assert [(item["content"], item["words"]) for item in found["flagged"]["items"]] == [
        ("The outage lost data", ["outage"])
    ]
    assert [(item["content"], item["words"]) for item in found["unflagged"]["items"]] == [
        ("There is no risk", ["risk"])
    ]


async def test_summaries_are_new_refreshed_or_gone(database: Database, scope: TenantScope, run) -> None:
    """A refreshed summary is one item, not one made and one gone; a memory retired for good has its reason."""
    member = await add_memory(database, scope, "Ann is here", label="TEAM: Ann")
    old = await add_memory(database, scope, "old summary", label="META: TEAM", derived_key="meta:TEAM")
    gone = await add_memory(database, scope, "city summary", label="META: CITY", derived_key="meta:CITY")
    stale = await add_memory(database, scope, "A bakery was mentioned")
    async with database.scoped(scope, run.binding("meta_nodes")) as connection:
        for memory, reason in ((old, "refreshed"), (gone, "its members are gone"), (stale, "not used for 40 days")):
            await set_memory(
                connection,
                memory,
                "retired_at = :as_of, retired_reason = :reason, retired_by_run = :run_id",
                reason=reason,
            )
        for key in ("TEAM", "PET"):
            meta = uuid.uuid4()
            await insert(
                connection, "memories", id=meta, layer="semantic", label=f"META: {key}", content=f"{key} summary",
                observed_at=NIGHT, recorded_at=NIGHT, last_activity_at=NIGHT, content_hash=key,
                derived_key=f"meta:{key}", created_by_run=run.id,
            )  # fmt: skip
            await insert(
                connection, "memory_edges", id=uuid.uuid4(), source_id=meta, target_id=member, relationship="CLUSTERS",
                kind="clusters", recorded_at=NIGHT, created_by_run=run.id,
            )  # fmt: skip
        found = await highlights(connection, run.id)
    assert [(item["label"], item["state"], item["member_count"]) for item in found["summarised"]["items"]] == [
        ("META: PET", "new", 1),
        ("META: TEAM", "refreshed", 1),
        ("META: CITY", "retired", 0),
    ]
    assert found["summarised"]["items"][0]["members"] == ["TEAM: Ann"]
    assert [(item["content"], item["reason"]) for item in found["retired"]["items"]] == [
        ("A bakery was mentioned", "not used for 40 days")
    ]


async def test_corrections_show_what_was_and_what_was_refused(database: Database, scope: TenantScope, run) -> None:
    """A profile field with its former value and who said so; a refused correction with its reasons."""
    async with database.scoped(scope, run.binding("soul_corrections")) as connection:
        applied, refused = uuid.uuid4(), uuid.uuid4()
        await insert(
            connection, "corrections", id=applied, who="maya", at=ago(hours=8), what={"fields": {"city": "Porto"}},
            outcome="applied", consumed_by_run=run.id,
        )  # fmt: skip
        await insert(
            connection, "corrections", id=refused, who="maya", at=ago(hours=7), what={"fields": {"age": "old"}},
            outcome="rejected", reasons={"age": "not a whole number"}, consumed_by_run=run.id,
        )  # fmt: skip
        await connection.execute(
            "INSERT INTO soul_profiles (tenant_id, scope_path, field, value, previous, type, source, at, "
            "correction_id, created_by_run) VALUES (:tenant_id, :scope_path, 'city', '\"Porto\"', '\"Leeds\"', "
            "'str', 'user-correction', :as_of, :correction, :run_id)",
            correction=applied,
        )
        found = await highlights(connection, run.id)
    [item] = found["corrected"]["items"]
    assert (item["field"], item["previous"], item["value"], item["who"]) == ("city", "Leeds", "Porto", "maya")
    [item] = found["not_corrected"]["items"]
    assert item["reasons"] == {"age": "not a whole number"}


async def test_superseded_memories_name_what_replaced_them(database: Database, scope: TenantScope, run) -> None:
    """Loser, winner and reason, duplicates last; what an earlier run superseded is not told again."""
    leeds, porto, again, earlier = [
        await add_memory(database, scope, text)
        for text in ("Maya lives in Leeds", "Maya lives in Porto", "Maya lives in Porto.", "Maya lives in York")
    ]
    async with database.scoped(scope) as connection:
        await set_memory(connection, earlier, "superseded_by = :winner, superseded_reason = 'update'", winner=porto)
        await connection.commit()
    async with database.scoped(scope, run.binding("apply")) as connection:
        for memory, reason in ((again, "duplicate"), (leeds, "update")):
            await set_memory(
                connection,
                memory,
                "superseded_by = :winner, superseded_reason = :reason, superseded_by_run = :run_id",
                winner=porto,
                reason=reason,
            )
        found = (await highlights(connection, run.id))["superseded"]
    assert (found["total"], found["by_reason"]) == (2, {"duplicate": 1, "update": 1})
    assert [(item["content"], item["by"], item["by_kind"], item["reason"]) for item in found["items"]] == [
        ("Maya lives in Leeds", "Maya lives in Porto", "memory", "update"),
        ("Maya lives in Porto.", "Maya lives in Porto", "memory", "duplicate"),
    ]


async def test_each_belief_is_told_once_with_its_evidence(database: Database, scope: TenantScope, run) -> None:
    """New, changed with what it replaces, contested, supported again, withdrawn; never the replaced one by itself."""
    leeds = await add_memory(database, scope, "Maya lives in Leeds", source="chat", observed_at=ago(days=9))
    porto = await add_memory(database, scope, "Maya lives in Porto", source="chat", observed_at=ago(days=1))
    async with database.scoped(scope) as connection:
        former = await add_belief(connection, "Maya lives in Leeds")
        known = await add_belief(connection, "Maya likes tea")
        lost = await add_belief(connection, "Maya owns a boat")
        await add_belief(connection, "Maya is a nurse")
        await connection.commit()
    async with database.scoped(scope, run.binding("apply")) as connection:
        changed = await add_belief(connection, "Maya lives in Porto")
        await add_evidence(connection, changed, porto, "supports")
        await add_evidence(connection, changed, leeds, "superseded")
        await connection.execute(
            "UPDATE harmonic_beliefs SET status = 'superseded', superseded_by_belief = :new, valid_to = :as_of "
            "WHERE tenant_id = :tenant_id AND belief_id = :old",
            new=changed,
            old=former,
        )
        await connection.execute(
            "UPDATE harmonic_beliefs SET status = 'stale', status_reason = 'its evidence was retired' "
            "WHERE tenant_id = :tenant_id AND belief_id = :lost",
            lost=lost,
        )
        await add_evidence(connection, known, porto, "supports")
        await add_belief(connection, "Maya has a dog")
        await add_belief(connection, "The flat has 80 m² or 90 m²", status="contested")
        beliefs = (await highlights(connection, run.id))["beliefs"]
    told = {news: [item["content"] for item in group["items"]] for news, group in beliefs.items()}
    assert told == {
        "new": ["Maya has a dog"],
        "changed": ["Maya lives in Porto"],
        "contested": ["The flat has 80 m² or 90 m²"],
        "supported": ["Maya likes tea"],
        "withdrawn": ["Maya owns a boat"],
    }
    assert all(group["total"] == 1 for group in beliefs.values())
    [item] = beliefs["changed"]["items"]
    assert item["former"]["content"] == "Maya lives in Leeds"
    assert [(piece["role"], piece["content"], piece["source"]) for piece in item["evidence"]] == [
        ("supports", "Maya lives in Porto", "chat"),
        ("superseded", "Maya lives in Leeds", "chat"),
    ]
    assert beliefs["withdrawn"]["items"][0]["reason"] == "its evidence was retired"


async def test_lists_are_bounded_and_documents_are_json(database: Database, scope: TenantScope, run) -> None:
    """However much happened, a list holds a few items, a text a few characters, and the total tells the truth."""
    memories = [await add_memory(database, scope, f"{number} {'x' * 500}") for number in range(ITEMS + 3)]
    async with database.scoped(scope, run.binding("strengthen")) as connection:
        await connection.execute("UPDATE memory_state SET importance = importance + 1 WHERE tenant_id = :tenant_id")
        found = await highlights(connection, run.id)
    assert found["strengthened"]["total"] == len(memories) + 1
    assert len(found["strengthened"]["items"]) == ITEMS
    assert max(len(item["content"]) for item in found["strengthened"]["items"]) <= 241
    assert json.loads(json.dumps(found)) == found


async def test_what_is_left_is_counted_as_of_the_night(database: Database, scope: TenantScope, run) -> None:
    """What was recorded or used after the night is neither held nor left over yet."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=1), NIGHT + timedelta(hours=1)))
    await add_memory(database, scope, "Tomorrow", observed_at=NIGHT + timedelta(hours=1))
    async with database.scoped(scope, run.binding("close")) as connection:
        found = await highlights(connection, run.id)
    assert found["standing"] == {"memories": 2, "current": 2, "held": 0, "contested": 0}
    assert found["backlog"]["uses_not_counted"] == 1
    assert found["backlog"]["waiting_to_harmonize"] == 2


async def test_another_run_has_nothing_to_tell(database: Database, scope: TenantScope, run) -> None:
    """What one run did is not told by another."""
    async with database.scoped(scope, run.binding("strengthen")) as connection:
        await connection.execute("UPDATE memory_state SET importance = 9 WHERE tenant_id = :tenant_id")
        found = await highlights(connection, uuid.uuid4())
    assert all(found[name]["total"] == 0 for name in ("strengthened", "linked", "superseded", "retired"))


async def test_a_preview_tells_what_the_run_then_does(database: Database, scope: TenantScope) -> None:
    """The highlights of a dry run, read before its rollback, are those of the real run, and it stores them."""
    await fill_small_tenant(database, scope)
    parameters = {"pending_connections": PENDING}
    [seen] = await consolidate(database, [scope], "nightly", NIGHT, parameters=parameters, dry_run=True)
    [done] = await consolidate(database, [scope], "nightly", NIGHT, parameters=parameters)
    assert (seen["status"], done["status"]) == ("applied", "applied")
    assert seen["highlights"] == done["highlights"]
    told = done["highlights"]
    for subject in ("strengthened", "linked", "flagged", "retired", "summarised", "corrected", "superseded"):
        assert told[subject]["total"], subject
    assert told["beliefs"]["new"]["total"] + told["beliefs"]["changed"]["total"] + told["beliefs"]["contested"]["total"]
    assert build_morning_report(seen).headline.startswith("Dry run, nothing was changed. It would bring: ")

    async with database.scoped(scope) as connection:
        stored = await connection.scalar(
            "SELECT report FROM runs WHERE tenant_id = :tenant_id AND id = CAST(:id AS uuid)", id=done["run_id"]
        )
    assert stored["status"] == "applied"
    assert build_morning_report(stored) == build_morning_report(done)


async def test_what_a_refused_run_took_back_is_not_told(database: Database, scope: TenantScope) -> None:
    """The journal still holds what it had done, but nothing of it is left, and the report says why."""
    await fill_small_tenant(database, scope)
    strict = {"settings": {"guards": {"retire_at_least": 0, "retire_share": 0}}}
    [document] = await consolidate(database, [scope], "nightly", NIGHT, parameters=strict)
    assert document["status"] == "refused"
    assert "highlights" not in document
    report = build_morning_report(document)
    assert report.sections == ()
    assert "retire" in report.notices[0].what
    assert "--accept" in report.notices[0].do


async def test_a_second_run_tells_that_nothing_changed(database: Database, scope: TenantScope) -> None:
    """The same night again: a quiet report, with a reason for every phase."""
    await fill_small_tenant(database, scope)
    await consolidate(database, [scope], "nightly", NIGHT)
    [again] = await consolidate(database, [scope], "nightly", NIGHT)
    report = build_morning_report(again)
    assert report.headline == "Good morning. A quiet night: nothing changed."
    assert len(report.quiet) == 8
    assert all(quiet.why for quiet in report.quiet)
