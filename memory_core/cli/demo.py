"""The demo on the command line: a progress bar on stderr, then the story, or one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memory_core.cli.output import ExitCode, print_json, print_rich, say

if TYPE_CHECKING:
    from memory_core.night.demo import Progress
    from memory_core.settings import Settings


def show_demo(settings: Settings, call_flows: Callable[[Mapping[str, Any]], Any], *, as_json: bool) -> ExitCode:
    """Run the demo and show what it found; `call_flows` reaches the Prefect side."""
    from memory_core.night.demo import run_demo
    from memory_core.night.demo_report import DemoReport

    with _progress() as progress:
        document = run_demo(settings, replay=call_flows, progress=progress)
    print_json(document) if as_json else print_rich(DemoReport(document))
    return ExitCode.DONE if document["status"] == "done" else ExitCode.PARTLY_DONE


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal; elsewhere one line a stage, and none for each night."""
    import sys

    if not sys.stderr.isatty():
        stages: set[str] = set()

        def tell(done: int, total: int, what: str) -> None:
            stage = "sleeping through the nights" if what.startswith("night of") else what
            if stage and stage not in stages:
                stages.add(stage)
                say(f"{stage} …")

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)
