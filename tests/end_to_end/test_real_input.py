"""Real conversations through import and their nights: nothing lost, every belief has evidence, undo is exact."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from memory_core.database.engine import Database
from memory_core.interchange.importing import import_file
from memory_core.models.embedding import embedding_provider
from memory_core.night.consolidate import consolidate, undo
from memory_core.runs.checksum import table_checksums
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.end_to_end.conversations import EVALUATION_DATA, Conversation, own_conversation, public_conversation


async def nights_of(conversation: Conversation, database_url: str, folder: Path, scope: TenantScope) -> None:
    settings = Settings.load(home=folder / "home", database_url=database_url, embedding="minilm")
    provider = embedding_provider("minilm")
    turns = conversation.write_turns(folder / "turns.jsonl")
    facts = conversation.write_facts(folder / "facts.jsonl")
    nights = conversation.nights()
    async with Database.open(settings) as database:
        now = nights[-1] + timedelta(days=1)
        for name, format, lines in (("turns.jsonl", "chat", turns), ("facts.jsonl", "jsonl", facts)):
            report = (
                await import_file(database, provider, folder / name, now=now, format=format, scope=scope)
            ).to_dict()
            assert (report["inserted"], report["rejected"]) == (lines, 0), report
            again = (
                await import_file(database, provider, folder / name, now=now, format=format, scope=scope)
            ).to_dict()
            assert (again["inserted"], again["unchanged"]) == (0, lines), again

        async def digests() -> dict[str, str]:
            async with database.scoped(scope) as connection:
                return await table_checksums(connection)

        async def contents() -> set[str]:
            async with database.scoped(scope) as connection:
                rows = await connection.rows(
                    "SELECT content FROM memories WHERE tenant_id = :tenant_id AND derived_key IS NULL"
                )
                return {row["content"] for row in rows}

        imported = await contents()
        before_last: dict[str, str] = {}
        documents = []
        for night in nights:
            before_last = await digests()
            documents += await consolidate(database, [scope], "nightly", night)
        assert [document["status"] for document in documents] == ["applied"] * len(nights)
        assert sum(document["sleep"]["nodes_strengthened"] for document in documents) > 0

        assert await contents() == imported, "a memory was lost or rewritten"
        async with database.scoped(scope) as connection:
            count = await connection.scalar(
                "SELECT count(*) FROM memories WHERE tenant_id = :tenant_id AND derived_key IS NULL"
            )
            assert count == turns + facts
            without = await connection.rows(
                "SELECT belief_id FROM harmonic_beliefs b "
                "WHERE tenant_id = :tenant_id AND status IN ('held', 'contested') AND NOT EXISTS ("
                "SELECT FROM belief_evidence e "
                "WHERE e.tenant_id = b.tenant_id AND e.belief_id = b.belief_id AND e.role = 'supports')"
            )
            assert without == []
            overconfident = await connection.rows(
                "SELECT b.belief_id FROM harmonic_beliefs b JOIN belief_evidence e USING (tenant_id, belief_id) "
                "JOIN memory_state s ON s.tenant_id = e.tenant_id AND s.memory_id = e.memory_id "
                "WHERE b.tenant_id = :tenant_id AND b.status = 'held' AND e.role = 'supports' "
                "GROUP BY b.tenant_id, b.belief_id, b.confidence HAVING b.confidence > max(s.confidence)"
            )
            assert overconfident == []
            unexplained = await connection.scalar(
                "SELECT count(*) FROM memories "
                "WHERE tenant_id = :tenant_id AND (retired_at IS NULL) <> (retired_reason IS NULL)"
            )
            assert unexplained == 0

        after = await digests()
        identical = (await consolidate(database, [scope], "nightly", nights[-1]))[0]
        assert identical["status"] == "applied"
        assert await digests() == after, "a second identical run changed something"
        undone = await undo(database, scope, uuid.UUID(identical["run_id"]), at=nights[-1])
        assert undone.refused == ()
        undone = await undo(database, scope, uuid.UUID(documents[-1]["run_id"]), at=nights[-1])
        assert undone.refused == ()
        assert await digests() == before_last, "undo did not restore the last night"


@pytest.mark.end_to_end
async def test_a_conversation_of_our_own(database_url: str, tmp_path: Path, scope: TenantScope) -> None:
    """The bundled conversation, four sessions long."""
    await nights_of(own_conversation(), database_url, tmp_path, scope)


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.skipif(
    not (EVALUATION_DATA / "locomo_dev.json").exists(),
    reason=f"the public evaluation data is not in {EVALUATION_DATA.name}; SLOWWAVE_EVAL_DATA names its folder",
)
async def test_a_public_conversation(database_url: str, tmp_path: Path, scope: TenantScope) -> None:
    """Nineteen sessions of a long public conversation, slept through session by session."""
    await nights_of(public_conversation(1), database_url, tmp_path, scope)
