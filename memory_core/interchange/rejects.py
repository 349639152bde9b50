"""What an import could not take, beside the file it came from: each line with its number and the reason."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from memory_core.errors import DataFolderNotWritable

SAMPLE = 20
"""Rejects that the report itself shows."""


class Rejects:
    """Collects rejects, and writes the file `<name>.rejects.jsonl` from the first one on.

    The file replaces an earlier import's. Where the folder cannot be written it goes to the current folder, else to
    the temporary one; `path` says where.

    Args:
        name: the imported file; None for standard input.
        write: False keeps counts and the sample only, as a dry run does.
    """

    def __init__(self, name: Path | None, *, write: bool = True) -> None:
        self.count = 0
        self.sample: list[dict[str, Any]] = []
        self.path: Path | None = None
        self._source = name
        self._write = write
        self._file: IO[str] | None = None

    def add(self, line: int, reason: str, **what: Any) -> None:
        """Keep one reject.

        Args:
            what: `text`, the line as it stands in the file; or what part of it was not taken.

        Raises:
            DataFolderNotWritable: no folder could be written.
        """
        self.count += 1
        document = {"line": line, "reason": reason, **what}
        if len(self.sample) < SAMPLE:
            self.sample.append({key: value for key, value in document.items() if key != "text"})
        if self._write:
            if self._file is None:
                self._file, self.path = self._open()
            self._file.write(json.dumps(document, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """End the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Rejects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> tuple[IO[str], Path]:
        problems = []
        for path in self._places():
            try:
                # A lone surrogate of a broken line must not break the file that reports it.
                return path.open("w", encoding="utf-8", errors="backslashreplace"), path
            except OSError as error:
                problems.append(f"{path}: {error.strerror}")
        raise DataFolderNotWritable(
            f"The rejects file cannot be written: {'; '.join(problems)}.", hint="Run the import from a writable folder."
        )

    def _places(self) -> Iterator[Path]:
        name = f"{self._source.name if self._source else 'stdin'}.rejects.jsonl"
        if self._source is not None:
            yield self._source.with_name(name)
        with contextlib.suppress(OSError):  # the current folder may be gone
            yield Path.cwd() / name
        yield Path(tempfile.gettempdir()) / name
