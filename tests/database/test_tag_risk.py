"""Phase 2 over a real database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event

from memory_core.database.engine import Database
from memory_core.errors import InvalidSettings
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import StepResult, advance, close_run
from memory_core.runs.checksum import checksum
from memory_core.runs.context import Run, RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.outcome import StepOutcome
from memory_core.runs.undo import undo_run
from memory_core.scope import TenantScope
from memory_core.sleep.tag_risk import STEP, UNDONE
from tests.builders import NIGHT, add_memory, add_scope, ago


async def sleep_once(
    database: Database, scope: TenantScope, at: Any = NIGHT, **parameters: Any
) -> tuple[Run, StepOutcome]:
    run = await begin_run(database, scope, "sleep", at, parameters)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    result: StepResult = await advance(database, context, (STEP,), 0)
    assert result.error is None, result.error
    assert result.outcome is not None
    await close_run(database, context, {})
    return run, result.outcome


def with_settings(**values: Any) -> dict[str, Any]:
    return {"settings": {"tag_risk": values}}


async def tag_of(database: Database, scope: TenantScope, memory_id: UUID) -> Any:
    async with database.scoped(scope) as connection:
        row = await connection.row(
            "SELECT risk_words, risk_tagged_at, risk_checked FROM memory_state "
            "WHERE tenant_id = :tenant_id AND memory_id = :id",
            id=memory_id,
        )
    assert row is not None
    return row


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def test_risks_are_tagged_with_their_words_once(database: Database, scope: TenantScope) -> None:
    """The tag says which words earned it and since when; a second run looks at nothing."""
    outage = await add_memory(database, scope, "Console outage, all logins failed", label="CASE: 7")
    calm = await add_memory(database, scope, "There is no risk at all")
    _, first = await sleep_once(database, scope)
    assert (first.candidates, first.changed) == (2, 1)
    assert first.counts == {"risk_nodes_tagged": 1, "risk_nodes_untagged": 0}
    assert first.sample == (str(outage),)
    tag = await tag_of(database, scope, outage)
    assert (tag["risk_words"], tag["risk_tagged_at"]) == (["outage", "failed"], NIGHT)
    other = await tag_of(database, scope, calm)
    assert (other["risk_words"], other["risk_tagged_at"]) == (None, None)
    assert other["risk_checked"]

    after = await state(database, scope)
    _, second = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert (second.candidates, second.changed) == (0, 0)
    assert "already looked at" in second.reason
    assert await state(database, scope) == after


async def test_only_label_and_content_are_read(database: Database) -> None:
    """Neither the tenant's name nor a property makes a risk (F02); a label does."""
    scope = TenantScope.root("tenant", "acme-risk")
    await add_memory(database, scope, "Ann likes tea", properties={"note": "fraud", "scope_path": "risk"})
    labelled = await add_memory(database, scope, "The only key holder leaves in May", label="RISK: keys")
    _, outcome = await sleep_once(database, scope)
    assert outcome.sample == (str(labelled),)


async def test_the_tag_goes_when_the_text_no_longer_earns_it(database: Database, scope: TenantScope) -> None:
    """A corrected text loses words and stamp (F03); one that keeps its words keeps its stamp."""
    supplier = await add_memory(database, scope, "The supplier is at risk of insolvency")
    leak = await add_memory(database, scope, "A leak in the cellar")
    await sleep_once(database, scope)
    async with database.scoped(scope) as connection:
        for memory_id, content in (
            (supplier, "The supplier recovered, all good"),
            (leak, "Still a leak in the cellar"),
        ):
            await connection.execute(
                "UPDATE memories SET content = :content, content_hash = :content "
                "WHERE tenant_id = :tenant_id AND id = :id",
                id=memory_id,
                content=content,
            )
        await connection.commit()
    _, outcome = await sleep_once(database, scope, NIGHT + timedelta(days=1))
    assert outcome.counts == {"risk_nodes_tagged": 0, "risk_nodes_untagged": 1}
    tag = await tag_of(database, scope, supplier)
    assert (tag["risk_words"], tag["risk_tagged_at"]) == (None, None)
    assert (await tag_of(database, scope, leak))["risk_tagged_at"] == NIGHT


async def test_other_lists_look_at_every_text_again(database: Database, scope: TenantScope) -> None:
    """A changed list, or another language, is a reason to look again; the word lists are settings."""
    moth = await add_memory(database, scope, "Moths in the winter coats")
    german = await add_memory(database, scope, "Der Serverausfall dauerte zwei Stunden")
    _, plain = await sleep_once(database, scope)
    assert plain.changed == 0
    assert plain.reason == "none of the texts looked at changed its risk"
    settings = with_settings(languages=["en", "de"], extra_markers=["moth"])
    _, more = await sleep_once(database, scope, NIGHT + timedelta(hours=1), **settings)
    assert (more.candidates, more.counts["risk_nodes_tagged"]) == (2, 2)
    assert (await tag_of(database, scope, moth))["risk_words"] == ["moths"]
    assert (await tag_of(database, scope, german))["risk_words"] == ["serverausfall"]
    _, fewer = await sleep_once(database, scope, NIGHT + timedelta(hours=2), **with_settings(languages=["en"]))
    assert fewer.counts == {"risk_nodes_tagged": 0, "risk_nodes_untagged": 2}


async def test_a_language_without_a_list_is_refused(database: Database, scope: TenantScope) -> None:
    """The message names the languages that exist, and the environment's form is understood."""
    await add_scope(database, scope)
    run = await begin_run(database, scope, "sleep", NIGHT, with_settings(languages="en, xx"))
    result = await advance(
        database, RunContext(run, database.settings, embedding_provider("hash:64"), None), (STEP,), 0
    )
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["error"] == InvalidSettings.__name__
    assert "no marker list for xx" in result.error["message"]


async def test_what_is_not_looked_at(database: Database, scope: TenantScope) -> None:
    """Working memory, derived, retired, superseded, expired and later rows are left alone, and other scopes too."""
    keeper = await add_memory(database, scope, "All is calm")
    await add_memory(database, scope, "A crash in the buffer", layer="working")
    await add_memory(database, scope, "Three memories: a crash", derived_key="meta:X")
    await add_memory(database, scope, "A crash, retired", retired_at=ago(days=1), retired_reason="old")
    await add_memory(
        database,
        scope,
        "A crash, replaced",
        superseded_by=keeper,
        superseded_reason="update",
        superseded_at=ago(days=1),
    )
    await add_memory(database, scope, "A crash, expired", expires_at=ago(minutes=1))
    await add_memory(database, scope, "A crash tomorrow", observed_at=NIGHT + timedelta(days=1))
    parent_risk = await add_memory(database, scope.child("brand", "halo"), "A crash in the child")
    episodic = await add_memory(database, scope, "The van crashed", layer="episodic")
    _, outcome = await sleep_once(database, scope)
    assert outcome.candidates == 2
    assert outcome.sample == (str(episodic),)
    assert (await tag_of(database, scope.child("brand", "halo"), parent_risk))["risk_checked"] is None
    await add_memory(database, scope.child("brand", "halo"), "All calm here")
    await sleep_once(database, scope.child("brand", "halo"))
    assert (await tag_of(database, scope, keeper))["risk_words"] is None


async def test_undo_is_exact_and_remembered(database: Database, scope: TenantScope) -> None:
    """A tag that a person took back stays away until it is asked for; untagged texts are simply looked at again."""
    await add_memory(database, scope, "A leak in the cellar")
    await add_memory(database, scope, "Ann likes tea")
    before = await state(database, scope)
    run, _ = await sleep_once(database, scope)
    undone = await undo_run(database, scope, run.id, at=NIGHT, decisions=[UNDONE])
    assert undone.refused == ()
    assert await state(database, scope) == before
    _, again = await sleep_once(database, scope)
    assert (again.changed, again.skipped["taken back by a person"]) == (0, 1)
    _, reconsidered = await sleep_once(database, scope, reconsider=True)
    assert reconsidered.counts["risk_nodes_tagged"] == 1


async def test_pages_bound_memory_and_statements_do_not_follow_the_rows(database: Database, scope: TenantScope) -> None:
    """One cursor reads, one statement a page writes, whatever the number of memories; small pages find the same."""
    await add_memory(database, scope, "The gate is closed")
    async with database.scoped(scope) as connection:
        await connection.execute(
            "INSERT INTO memories (tenant_id, id, scope_path, content, observed_at, recorded_at, last_activity_at, "
            "content_hash) SELECT :tenant_id, gen_random_uuid(), :scope_path, "
            "'Pump ' || i || CASE WHEN i % 10 = 0 THEN ' crashed' ELSE ' runs' END, t, t, t, i::text "
            "FROM generate_series(1, 3000) AS i, (SELECT CAST(:at AS timestamptz) AS t) AS clock",
            at=ago(hours=1),
        )
        await connection.execute(
            "INSERT INTO memory_state (tenant_id, scope_path, memory_id) "
            "SELECT tenant_id, scope_path, id FROM memories WHERE tenant_id = :tenant_id AND content LIKE 'Pump%'"
        )
        await connection.commit()
    statements: list[str] = []
    event.listen(database.app.sync_engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    run, outcome = await sleep_once(database, scope)
    assert (outcome.candidates, outcome.counts["risk_nodes_tagged"]) == (3001, 300)
    assert len([sql for sql in statements if "risk_checked" in sql]) == 2
    await undo_run(database, scope, run.id, at=NIGHT)
    _, small = await sleep_once(database, scope, **with_settings(page_size=700))
    assert small.counts == outcome.counts


@pytest.mark.parametrize("name", ["languages", "extra_markers", "ignored_markers"])
def test_settings_read_a_text_of_the_environment(name: str) -> None:
    """A list in an environment variable is written with commas."""
    from memory_core.sleep.tag_risk import TagRiskSettings

    value = {"languages": "en, de"}.get(name, "moth, dry rot")
    assert getattr(TagRiskSettings(**{name: value}), name) == tuple(value.split(", "))
