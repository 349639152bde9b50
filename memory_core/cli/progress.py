"""Progress bars on stderr: shown on a terminal, silent everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int, int | None, str], None]
"""Called with what is done, what there is in all (None where that is not known), and what is going on, in words."""


@contextmanager
def progress_bar(what: str) -> Iterator[Tell]:
    """A bar for the length of the block; yields what to call as the work goes on.

    Args:
        what: what is going on before the first call.
    """
    if not sys.stderr.isatty():
        yield _nobody_looks
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    # Standard output stays free for the result, whatever is drawn meanwhile.
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    drawn = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    with drawn as progress:
        task = progress.add_task(what, total=None)

        def tell(done: int, total: int | None, words: str) -> None:
            progress.update(task, completed=done, total=total, description=words or what)

        yield tell


def _nobody_looks(done: int, total: int | None, words: str) -> None:
    """Where stderr is no terminal, a bar would only fill a log."""
