"""Import: a file of memories into the store, streaming, and the same again changes nothing.

A bad line is kept with its number and reason in the rejects file, and the good ones are stored. Each batch of a
scope is one transaction; vectors are computed before it. Edges and corrections are resolved when every line is in.
An import that was killed is simply started again: what is stored is found by id, and the end is the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.exc import DBAPIError

from memory_core.database.engine import Database
from memory_core.errors import EmbeddingMismatch, InvalidInput, InvalidScope, InvalidTime
from memory_core.interchange.dry_run import DryRun
from memory_core.interchange.formats import reader_of
from memory_core.interchange.lines import read_lines
from memory_core.interchange.progress import ImportProgress, ProgressCallback
from memory_core.interchange.rejects import Rejects
from memory_core.interchange.report import ImportReport, ScopeCounts
from memory_core.interchange.retrying import retried
from memory_core.interchange.spool import ReferenceSpool
from memory_core.layers.known import Known
from memory_core.layers.records import NewMemory
from memory_core.layers.references import Reference, UnresolvedReference, resolve_references
from memory_core.layers.vectors import TextVectors, embed_texts, texts_to_embed
from memory_core.layers.writing import WriteResult, references_of, write_memories
from memory_core.models.embedding import EmbeddingProvider
from memory_core.scope import TenantScope

STDIN = "-"
BATCH_SIZE = 500
STATISTICS_FROM = 200
"""New memories from which the planner is told of them at once."""

SCOPES_WAITING = 20
"""Batches' worth of lines that may wait in memory while a file of many scopes is read."""


@dataclass(frozen=True, slots=True)
class _Entry:
    line: int
    memory: NewMemory
    text: str


async def import_file(
    database: Database,
    provider: EmbeddingProvider,
    path: Path | str,
    *,
    now: datetime,
    format: str = "jsonl",
    scope: TenantScope | None = None,
    dry_run: bool = False,
    batch_size: int = BATCH_SIZE,
    progress: ProgressCallback | None = None,
) -> ImportReport:
    """Import a file.

    Args:
        path: the file; `-` for standard input.
        now: the time of memories that say none; timezone-aware.
        format: `jsonl` or `chat`.
        scope: whose the memories are that name no tenant of their own.
        dry_run: check and count, and write nothing, also no rejects file.
        batch_size: lines a transaction.
        progress: called after each batch.

    Raises:
        InvalidInput: the file is absent, unreadable or of another kind; the format is unknown.
        InvalidTime: `now` has no zone.
        InvalidScope: a tenant is known under another root kind.
        TransientError: the database stayed out of reach; start the import again.
    """
    if now.utcoffset() is None:
        raise InvalidTime("The time of the import has no zone.", hint="Give it as UTC.")
    if batch_size < 1:
        raise InvalidInput("A batch has at least one line.", batch_size=batch_size)
    reader = reader_of(format)
    started = time.monotonic()
    source = None if str(path) == STDIN else Path(path)
    report = ImportReport(str(path), format, dry_run)
    with _opened(source) as stream, ReferenceSpool() as spool, Rejects(source, write=not dry_run) as rejects:
        work = _Import(database, provider, now, batch_size, report, rejects, spool, stream, source, progress)
        if dry_run:
            work.dry = DryRun(database, now)
        for line in read_lines(stream):
            report.lines += 1
            if line.reason:
                work.reject(line.number, line.reason, line.text)
                continue
            try:
                memory = reader(line.document)
                owner = _scope_of(memory, scope, database.settings.root_kind)
            except InvalidInput as error:
                work.reject(line.number, str(error), line.text)
                continue
            await work.take(owner, _Entry(line.number, memory, line.text))
        await work.finish()
        report.rejects, report.rejects_file = rejects.sample, str(rejects.path) if rejects.path else None
    report.duration_seconds = time.monotonic() - started
    return report


def _scope_of(memory: NewMemory, default: TenantScope | None, root_kind: str) -> TenantScope:
    if memory.tenant is not None:
        return TenantScope.parse(memory.tenant, memory.scope, root_kind=root_kind)
    if default is None:
        raise InvalidScope("It names no tenant, and the import was given none.", hint="Give --tenant.")
    if memory.scope is None:
        return default
    return TenantScope.parse(str(default.levels[0]), memory.scope)


@dataclass(slots=True)
class _Import:
    database: Database
    provider: EmbeddingProvider
    now: datetime
    batch_size: int
    report: ImportReport
    rejects: Rejects
    spool: ReferenceSpool
    stream: BinaryIO
    source: Path | None
    progress: ProgressCallback | None
    dry: DryRun | None = None
    waiting: dict[TenantScope, list[_Entry]] = field(default_factory=dict)
    held: int = 0
    done: int = 0

    def reject(self, line: int, reason: str, text: str) -> None:
        """Keep a line that is not taken."""
        self.report.rejected += 1
        self.done += 1
        self.rejects.add(line, reason, text=text)

    async def take(self, scope: TenantScope, entry: _Entry) -> None:
        """Let a line wait for its batch; store the batches that are full."""
        batch = self.waiting.setdefault(scope, [])
        batch.append(entry)
        self.held += 1
        if len(batch) >= self.batch_size:
            await self._store(scope)
        elif self.held >= SCOPES_WAITING * self.batch_size:
            await self._store_all()

    async def finish(self) -> None:
        """Store what still waits, then resolve what memories say about one another."""
        await self._store_all()
        for scope, references in self.spool.batches(self.batch_size * 10):
            counts, unresolved = (
                await self.dry.references(scope, references)
                if self.dry
                else await retried(partial(self._resolve, scope, references))
            )
            self.report.counts(str(scope)).add(counts)
            for item in unresolved:
                self.report.unresolved += 1
                said_by = {"external_id": item.reference.said_by} if item.reference.said_by else {}
                self.rejects.add(item.reference.line, item.reason, **said_by, **item.reference.to_dict())
            self._tell("linking")
        self._tell("linking")
        if not self.dry and self.report.total().inserted >= STATISTICS_FROM:
            await retried(self.database.refresh_statistics)

    async def _store_all(self) -> None:
        for scope in list(self.waiting):
            await self._store(scope)

    async def _store(self, scope: TenantScope) -> None:
        entries = self.waiting.pop(scope)
        self.held -= len(entries)
        if self.dry:
            counts, writes = await self.dry.memories(scope, [entry.memory for entry in entries])
            self._count(scope, entries, counts, references_of(writes))
        else:
            await self._write(scope, entries, await self._vectors(scope, entries))
        self._tell("reading")

    async def _vectors(self, scope: TenantScope, entries: Sequence[_Entry]) -> TextVectors:
        async with self.database.scoped(scope) as connection:
            writes = await Known().plan(connection, [entry.memory for entry in entries], self.now)
        vectors = await embed_texts(self.provider, texts_to_embed(writes, self.provider.model))
        self.report.vector_problem = self.report.vector_problem or vectors.problem
        return vectors

    async def _write(self, scope: TenantScope, entries: Sequence[_Entry], vectors: TextVectors) -> None:
        try:
            result = await retried(partial(self._transaction, scope, entries, vectors))
        except (DBAPIError, EmbeddingMismatch) as error:
            if isinstance(error, DBAPIError) and not _caused_by_a_row(error):
                raise
            if len(entries) == 1:
                self.reject(entries[0].line, _reason(error), entries[0].text)
                return
            # One line poisons its whole batch: halve it until it stands alone.
            middle = len(entries) // 2
            await self._write(scope, entries[:middle], vectors)
            await self._write(scope, entries[middle:], vectors)
            return
        counts = ScopeCounts(
            inserted=result.count("inserted"),
            new_versions=result.count("new_version"),
            unchanged=result.count("unchanged"),
            earlier_versions=result.count("earlier_version"),
            accesses=result.accesses,
            without_vector=result.without_vector,
        )
        self._count(scope, entries, counts, result.references)

    async def _transaction(self, scope: TenantScope, entries: Sequence[_Entry], vectors: TextVectors) -> WriteResult:
        async with self.database.scoped(scope) as connection:
            memories = [entry.memory for entry in entries]
            result = await write_memories(connection, memories, now=self.now, vectors=vectors)
            await connection.commit()
            return result

    async def _resolve(
        self, scope: TenantScope, references: Sequence[Reference]
    ) -> tuple[ScopeCounts, Sequence[UnresolvedReference]]:
        async with self.database.scoped(scope) as connection:
            resolved = await resolve_references(connection, references)
            await connection.commit()
            return ScopeCounts(edges=resolved.edges, corrections=resolved.corrections), resolved.unresolved

    def _count(
        self, scope: TenantScope, entries: Sequence[_Entry], counts: ScopeCounts, references: Sequence[Reference]
    ) -> None:
        self.report.counts(str(scope)).add(counts)
        self.done += len(entries)
        for reference in references:
            self.spool.add(scope, entries[reference.line].line, reference)

    def _tell(self, stage: str) -> None:
        if self.progress:
            # A pipe has neither a position nor a size, whether it is stdin or has a name.
            measured = self.source if self.stream.seekable() else None
            position = self.stream.tell() if measured else 0
            total = measured.stat().st_size if measured else None
            self.progress(ImportProgress(self.report.lines, self.done, position, total, stage))


def _caused_by_a_row(error: DBAPIError) -> bool:
    """Data exceptions, broken constraints and exceeded limits are a row's fault; anything else is not."""
    return (getattr(error.orig, "sqlstate", None) or "").startswith(("22", "23", "54"))


def _reason(error: DBAPIError | EmbeddingMismatch) -> str:
    if isinstance(error, DBAPIError):
        return f"the database refused it: {str(error.orig).strip().splitlines()[0]}"
    return str(error)


@contextmanager
def _opened(source: Path | None) -> Iterator[BinaryIO]:
    if source is None:
        yield sys.stdin.buffer
        return
    try:
        with source.open("rb") as stream:
            yield stream
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        if error.filename is None or Path(error.filename) != source:
            raise
        raise InvalidInput(f"The file {source} cannot be read: {error.strerror}.", hint="Check its path.") from error
