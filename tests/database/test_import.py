"""Import of files: streaming, bad lines beside, dry runs, kills in the middle, the same again."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

import memory_core.interchange.importing as importing
from memory_core.database.engine import Database
from memory_core.errors import InvalidInput, InvalidTime, ModelUnreachable, TransactionConflict
from memory_core.interchange.importing import import_file
from memory_core.interchange.report import ImportReport
from memory_core.models.embedding import Vectors, embedding_provider
from memory_core.runs.checksum import checksum
from memory_core.scope import TenantScope
from tests.builders import NIGHT, ago
from tests.conftest import clone, drop

PROVIDER = embedding_provider("hash:64")
SAMPLE = Path(importing.__file__).with_name("sample")


def write_file(path: Path, lines: Iterable[dict[str, Any] | str | bytes]) -> Path:
    encoded = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def read_file(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def load(database: Database, path: Path | str, scope: TenantScope | None = None, **options: Any) -> ImportReport:
    return await import_file(database, PROVIDER, path, **{"now": NIGHT, "scope": scope, **options})


async def state(database: Database, scope: TenantScope) -> str:
    async with database.scoped(scope) as connection:
        return await checksum(connection)


async def count(database: Database, scope: TenantScope, table: str = "memories") -> int:
    async with database.scoped(scope) as connection:
        return int(await connection.scalar(f"SELECT count(*) FROM {table}"))


async def test_the_sample_comes_in_whole_and_again_unchanged(database: Database) -> None:
    """Both bundled files are taken to the last line, reference and access; a second import changes nothing."""
    for name, tenant, lines, accesses, edges, corrections in (
        ("assistant", "maya", 209, 174, 44, 5),
        ("support", "northwind-support", 195, 179, 49, 4),
    ):
        scope = TenantScope.root("tenant", tenant)
        planned = await load(database, SAMPLE / f"{name}.jsonl", scope=scope, dry_run=True)
        assert await count(database, scope) == 0
        report = await load(database, SAMPLE / f"{name}.jsonl", scope=scope, batch_size=50)
        assert report.complete
        total = report.total()
        assert (total.inserted, total.accesses, total.edges, total.corrections) == (lines, accesses, edges, corrections)
        assert asdict(planned.total()) == asdict(total)
        before = await state(database, scope)
        again = await load(database, SAMPLE / f"{name}.jsonl", scope=scope, now=ago(days=-3))
        assert asdict(again.total()) == {**dict.fromkeys(asdict(total), 0), "unchanged": lines}
        planned = await load(database, SAMPLE / f"{name}.jsonl", scope=scope, dry_run=True)
        assert asdict(planned.total()) == asdict(again.total())
        assert await state(database, scope) == before


async def test_bad_lines_go_beside_with_number_and_reason(
    database: Database, scope: TenantScope, tmp_path: Path
) -> None:
    """Each kind of bad line is rejected with its reason, the good ones are kept, and the text can be mended."""
    path = write_file(
        tmp_path / "mixed.jsonl",
        [
            b"\xef\xbb\xbf" + json.dumps({"content": "first", "external_id": "1"}).encode(),
            "",
            "{not json",
            {"content": "wrong", "confidence": 7},
            b'{"content": "caf\xe9"}',
            '{"content": "' + "x" * 1_100_000 + '"}',
            "[1, 2]",
            '{"content": "n", "importance": NaN}',
            '{"content": ' + "[" * 50_000 + "}",
            {"content": "middle"},
            {"content": "scope", "scope": "a=1/a=2"},
            {"content": "edge", "edges": [{"to": "nobody", "relationship": "KNOWS"}], "external_id": "2"},
            '{"content": "lone \\ud800 surrogate \\u0000"}',
            {"content": "last"},
        ],
    )
    report = await load(database, path, scope)
    assert (report.lines, report.rejected, report.unresolved) == (13, 8, 1)
    assert report.total().inserted == 5
    assert not report.complete
    assert report.rejects_file == f"{path}.rejects.jsonl"
    kept = read_file(Path(f"{path}.rejects.jsonl"))
    reasons = {item["line"]: item["reason"] for item in kept}
    assert list(reasons) == [3, 4, 5, 6, 7, 8, 9, 11, 12]
    assert "not JSON" in reasons[3]
    assert "confidence" in reasons[4]
    assert "not UTF-8 (byte 0xe9 at position 17)" in reasons[5]
    assert "longer than" in reasons[6]
    assert "not a JSON object" in reasons[7]
    assert "NaN" in reasons[8]
    assert reasons[9].startswith(("nested", "not JSON"))
    assert "'a' appears twice" in reasons[11]
    assert reasons[12] == "no memory has the external id 'nobody'"
    assert kept[1]["text"] == json.dumps({"content": "wrong", "confidence": 7})
    assert kept[-1]["edge"] == {"to": "nobody", "relationship": "KNOWS"}
    assert len(kept[3]["text"]) == 1_000


async def test_a_line_that_only_the_database_refuses_is_found(
    database: Database, scope: TenantScope, tmp_path: Path, database_url: str
) -> None:
    """Poisoned lines of a batch are rejected alone, each with its own reason."""
    engine = create_engine(database_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE slowwave.memories ADD CONSTRAINT tasty CHECK (content <> 'poison')"))
    lines = [{"content": f"memory {n}", "external_id": str(n)} for n in range(30)]
    lines[3] = {"content": "match", "embedding": [1, 2], "embedding_model": "mine"}
    lines[17] = {"content": "poison"}
    lines[23] = {"content": "mismatch", "embedding": [1, 2, 3], "embedding_model": "mine"}
    report = await load(database, write_file(tmp_path / "poison.jsonl", lines), scope)
    reasons = {item["line"]: item["reason"] for item in report.rejects}
    assert sorted(reasons) == [18, 24]
    assert "violates check constraint" in reasons[18]
    assert "The embedding has 3 numbers" in reasons[24]
    assert (report.total().inserted, await count(database, scope)) == (28, 28)


async def test_a_file_of_many_goes_to_each_its_own(database: Database, tmp_path: Path) -> None:
    """Lines that name a tenant go there; the others to the one that was given; without one they are rejected."""
    path = write_file(
        tmp_path / "many.jsonl",
        [
            {"content": "one", "tenant": "a"},
            {"content": "two", "tenant": "b", "scope": "chat=1"},
            {"content": "three", "scope": "chat=2"},
            {"content": "four"},
        ],
    )
    default = TenantScope.root("tenant", "c").child("brand", "x")
    report = await load(database, path, default)
    assert sorted(report.scopes) == ["tenant=a", "tenant=b/chat=1", "tenant=c/brand=x", "tenant=c/chat=2"]
    without = await load(database, path)
    assert [item["line"] for item in without.rejects] == [3, 4]
    assert "names no tenant" in without.rejects[0]["reason"]


async def test_chat_turns_become_episodes(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """A turn keeps speaker, text, time and id; an unknown key is named."""
    path = write_file(
        tmp_path / "chat.jsonl",
        [
            {"speaker": "Ann", "text": "I moved to Porto.", "at": "2026-02-18T09:52:00Z", "id": 17},
            {"speaker": "Bob", "text": "When?"},
            {"speaker": "Bob", "text": "So?", "mood": "curious"},
        ],
    )
    report = await load(database, path, scope, format="chat")
    assert (report.total().inserted, report.rejects[0]["reason"]) == (2, "unknown key 'mood'.")
    async with database.scoped(scope) as connection:
        row = await connection.row("SELECT * FROM memories WHERE external_id = '17'")
    assert (row["content"], row["layer"], row["source"]) == ("Ann: I moved to Porto.", "episodic", "chat")
    assert (row["properties"], row["observed_at"]) == ({"speaker": "Ann"}, datetime(2026, 2, 18, 9, 52, tzinfo=UTC))


async def test_a_killed_import_started_again_ends_the_same(
    database: Database, server: Any, settings: Any, scope: TenantScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at any transaction and started again, the store equals that of an undisturbed import."""
    lines: list[dict[str, Any]] = []
    for n in range(24):
        line: dict[str, Any] = {
            "content": f"memory {n}",
            "external_id": str(n),
            "observed_at": f"2026-02-{n + 1:02}T00:00:00Z",
        }
        line["edges"] = [{"to": str((n * 7 + 1) % 24), "relationship": "NEXT"}]
        line["accesses"] = [{"kind": "recall", "at": "2026-02-28T00:00:00Z"}]
        lines.append(line)
    lines.append({"content": "memory 3, mended", "external_id": "3", "observed_at": "2026-02-27T00:00:00Z"})
    lines.append({"content": "not 5", "corrects": "5", "observed_at": "2026-02-27T00:00:00Z"})
    path = write_file(tmp_path / "killed.jsonl", lines)
    await load(database, path, scope, batch_size=5)
    expected = await state(database, scope)
    writes, resolves = importing.write_memories, importing.resolve_references
    for stop in (1, 3, 6, 7):  # first, middle and last batch of rows; the references
        name = f"killed_{stop}"
        clone(server, name)
        try:
            async with Database.open(settings.model_copy(update={"database_url": server.url(name)})) as other:
                left = stop

                def until(real: Any) -> Any:
                    async def step(*arguments: Any, **options: Any) -> Any:
                        nonlocal left
                        result = await real(*arguments, **options)
                        left -= 1
                        if not left:
                            raise KeyboardInterrupt  # written, and never committed
                        return result

                    return step

                monkeypatch.setattr(importing, "write_memories", until(writes))
                monkeypatch.setattr(importing, "resolve_references", until(resolves))
                with pytest.raises(KeyboardInterrupt):
                    await load(other, path, scope, batch_size=5)
                monkeypatch.undo()
                await load(other, path, scope, batch_size=5)
                assert await state(other, scope) == expected, stop
        finally:
            monkeypatch.undo()
            drop(server, name)


async def test_the_order_of_lines_does_not_matter_for_references(database: Database, tmp_path: Path) -> None:
    """Edges and corrections find lines of later batches."""
    lines = [
        {"content": "points on", "external_id": "a", "edges": [{"to": "z", "relationship": "TO"}]},
        {"content": "puts right", "external_id": "b", "corrects": "z"},
        *({"content": f"filler {n}"} for n in range(10)),
        {"content": "the end", "external_id": "z"},
    ]
    for name, order in (("forward", lines), ("backward", lines[::-1])):
        scope = TenantScope.root("tenant", name)
        report = await load(database, write_file(tmp_path / f"{name}.jsonl", order), scope, batch_size=2)
        assert (report.total().edges, report.total().corrections, report.unresolved) == (1, 1, 0)


async def test_a_failing_embedding_loses_no_memory(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """Memories are stored without vectors, counted, and the reason is said."""

    class Unreachable:
        model, dimension, network = "far", 3, True

        async def embed(self, texts: Any) -> Vectors:
            raise ModelUnreachable("The provider cannot be reached.")

    path = write_file(tmp_path / "far.jsonl", [{"content": "Ann likes tea"}])
    report = await import_file(database, Unreachable(), path, now=NIGHT, scope=scope)
    assert (report.total().inserted, report.total().without_vector) == (1, 1)
    assert report.vector_problem == "The provider cannot be reached."
    assert await count(database, scope, "memory_embeddings") == 0


async def test_known_lines_are_not_embedded_again(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """A second import asks the model for nothing."""
    asked: list[str] = []

    class Counting:
        model, dimension, network = "hash:64", 64, False

        async def embed(self, texts: Any) -> Vectors:
            asked.extend(texts)
            return await PROVIDER.embed(texts)

    path = write_file(tmp_path / "twice.jsonl", [{"content": "Ann likes tea"}, {"content": "Ann likes jam"}])
    for expected in (2, 2):
        await import_file(database, Counting(), path, now=NIGHT, scope=scope)
        assert len(asked) == expected


async def test_two_imports_at_once_are_one(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """Writers of a scope take turns, so the same file twice at the same time gives each line once."""
    lines = [
        {"content": f"memory {n}", "external_id": str(n % 40), "observed_at": f"2026-02-0{n // 40 + 1}T00:00:00Z"}
        for n in range(80)
    ]
    path = write_file(tmp_path / "race.jsonl", lines)
    reports = await asyncio.gather(*(load(database, path, scope, batch_size=7) for _ in range(3)))
    assert sum(report.total().inserted for report in reports) == 40
    assert sum(report.total().new_versions for report in reports) == 40
    assert await count(database, scope) == 80


async def test_a_conflict_is_tried_again(
    database: Database, scope: TenantScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that another one got in the way of is done again, once."""
    real, calls = importing.write_memories, 0

    async def conflicted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        result = await real(*arguments, **options)
        if calls == 1:
            raise TransactionConflict
        return result

    monkeypatch.setattr(importing, "write_memories", conflicted)
    report = await load(database, write_file(tmp_path / "one.jsonl", [{"content": "Ann likes tea"}]), scope)
    assert (calls, report.total().inserted, await count(database, scope)) == (2, 1, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x1f\x8b\x08\x00", "compressed"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b'[{"content": "a"}]', "JSON array"),
    ],
)
async def test_what_is_no_json_lines_file_is_refused_at_once(
    database: Database, scope: TenantScope, tmp_path: Path, data: bytes, reason: str
) -> None:
    """A file of another kind gives one clear error, not a million rejects."""
    path = tmp_path / "other.jsonl"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=reason):
        await load(database, path, scope)


async def test_wrong_calls_are_refused(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """No such file, no such format, a naive time."""
    path = write_file(tmp_path / "one.jsonl", [{"content": "Ann likes tea"}])
    with pytest.raises(InvalidInput, match="cannot be read"):
        await load(database, tmp_path / "absent.jsonl", scope)
    with pytest.raises(InvalidInput, match="no import format 'mem0'"):
        await load(database, path, scope, format="mem0")
    with pytest.raises(InvalidTime):
        await load(database, path, scope, now=datetime(2026, 3, 1))  # noqa: DTZ001


async def test_an_empty_file_is_done(database: Database, scope: TenantScope, tmp_path: Path) -> None:
    """Nothing in it, nothing done, and no rejects file."""
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"\n\n")
    report = await load(database, path, scope)
    assert (report.complete, report.lines, report.rejects_file) == (True, 0, None)


async def test_standard_input_and_progress(
    database: Database, scope: TenantScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` reads standard input; rejects go to the current folder; progress reaches every line."""

    class Stdin:
        buffer = io.BytesIO(b'{"content": "Ann likes tea"}\noops\n')

    monkeypatch.setattr("sys.stdin", Stdin)
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []
    report = await load(database, "-", scope, progress=seen.append)
    assert (report.total().inserted, report.rejected) == (1, 1)
    assert report.rejects_file == str(tmp_path / "stdin.rejects.jsonl")
    assert (seen[-1].lines, seen[-1].done, seen[-1].stage) == (2, 2, "linking")
