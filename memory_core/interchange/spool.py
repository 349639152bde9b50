"""References that wait for the end of the file, in a temporary file beyond a few megabytes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from uuid import UUID

from memory_core.layers.references import Reference
from memory_core.scope import TenantScope

IN_MEMORY = 4 * 1024 * 1024
"""Bytes kept in memory."""


class ReferenceSpool:
    """Keeps references in order, and gives them back by scope in batches."""

    def __init__(self) -> None:
        # Closed by __exit__: the spool outlives this method.
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, mode="w+", encoding="utf-8")  # noqa: SIM115
        self.count = 0

    def add(self, scope: TenantScope, line: int, reference: Reference) -> None:
        """Keep one; `line` replaces its position in the batch."""
        kept = replace(reference, line=line)
        self._file.write(
            json.dumps(
                [
                    scope.scope_path,
                    kept.line,
                    str(kept.source),
                    kept.kind,
                    kept.to,
                    kept.relationship,
                    kept.said_by,
                ]
            )
            + "\n"
        )
        self.count += 1

    def batches(self, size: int) -> Iterator[tuple[TenantScope, list[Reference]]]:
        """References of one scope at a time, at most `size` of them, in file order within a scope."""
        self._file.seek(0)
        waiting: dict[str, list[Reference]] = {}
        for text in self._file:
            path, line, source, kind, to, relationship, said_by = json.loads(text)
            batch = waiting.setdefault(path, [])
            batch.append(Reference(line, UUID(source), kind, to, relationship, said_by))
            if len(batch) >= size:
                yield TenantScope.from_path(path), waiting.pop(path)
        for path, batch in waiting.items():
            yield TenantScope.from_path(path), batch

    def __enter__(self) -> ReferenceSpool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
