"""The ledger, the journal, preview and undo over one real phase."""

from __future__ import annotations

import pytest

from memory_core.database.engine import Database
from memory_core.errors import LaterRunsExist, UndoRefused
from memory_core.models.embedding import embedding_provider
from memory_core.runs.advance import advance, close_run
from memory_core.runs.changes import changes_of
from memory_core.runs.checksum import checksum
from memory_core.runs.context import RunContext
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import preview
from memory_core.runs.undo import undo_run
from memory_core.scope import TenantScope
from memory_core.sleep.strengthen import STEP, UNDONE
from tests.builders import NIGHT, add_memory, ago


async def sleep_once(database: Database, scope: TenantScope, at=NIGHT, **parameters):
    run = await begin_run(database, scope, "sleep", at, parameters)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    result = await advance(database, context, (STEP,), 0)
    return run, result, await close_run(database, context, {})


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def test_a_step_is_done_once_and_undone_exactly(database: Database, scope: TenantScope) -> None:
    """A run changes what it should, a second one nothing, and undo restores the checksum (F04)."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2), ago(hours=1)))
    before = await state(database, scope)

    run, result, status = await sleep_once(database, scope)
    assert result.error is None, result.error
    assert (status, result.outcome.changed) == ("applied", 1)
    after = await state(database, scope)
    assert after != before

    _, again, _ = await sleep_once(database, scope)
    assert again.outcome.changed == 0
    assert await state(database, scope) == after

    undone = await undo_run(database, scope, run.id, at=NIGHT, decisions=[UNDONE])
    assert (undone.restored, undone.removed, undone.refused) == (3, 0, ())
    assert await state(database, scope) == before
    with pytest.raises(UndoRefused):
        await undo_run(database, scope, run.id, at=NIGHT)

    _, remembered, _ = await sleep_once(database, scope)
    assert remembered.outcome.changed == 0
    assert await state(database, scope) == before
    _, reconsidered, _ = await sleep_once(database, scope, reconsider=True)
    assert reconsidered.outcome.changed == 1
    assert await state(database, scope) != before


async def test_a_preview_changes_nothing_and_equals_the_run(database: Database, scope: TenantScope) -> None:
    """The diff of a dry run is the diff of the real run that follows."""
    await add_memory(database, scope, "Ann likes tea", access_at=(ago(hours=2),))
    before = await state(database, scope)
    run = await begin_run(database, scope, "sleep", NIGHT, {}, dry_run=True)
    context = RunContext(run, database.settings, embedding_provider("hash:64"), None)
    found = await preview(database, context, (STEP,))
    assert await state(database, scope) == before
    real, _, _ = await sleep_once(database, scope)
    assert real.id == run.id
    async with database.scoped(scope) as connection:
        assert await changes_of(connection, real.id) == found.changes
    assert found.changes["changed"]


async def test_a_night_before_an_applied_one_is_refused(database: Database, scope: TenantScope) -> None:
    """Time runs forward in a scope."""
    await add_memory(database, scope, "Ann likes tea")
    run, _, _ = await sleep_once(database, scope)
    with pytest.raises(LaterRunsExist, match=str(run.id)):
        await sleep_once(database, scope, at=ago(days=1))
