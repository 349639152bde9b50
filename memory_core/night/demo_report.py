"""The demo's document for a terminal: the morning reports of the last night, then before and after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memory_core.sleep.morning_report import build_morning_report
from memory_core.sleep.morning_sections import matter
from memory_core.sleep.morning_words import day, plain

WIDEST = 140
"""Characters the table has at most."""

NARROW = 100
"""Below this width the answers stand under one another."""

_MARKS = {"current": "true now", "outdated": "no longer true", "other": "no answer", "undecided": "undecided"}


class DemoReport:
    """A rich renderable of what `run_demo` returned."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The whole story, in this console's width."""
        width = min(options.max_width, WIDEST)
        for run in self.document["runs"]:
            yield build_morning_report(run).to_rich()
            yield Text("")
        yield from self._nights()
        yield Text("")
        yield _Within(self._stacked() if width < NARROW else self._table(), width)
        yield self._answered()
        yield from self._commands(options.max_width)

    def _nights(self) -> Iterable[RenderableType]:
        nights = self.document["nights"]
        imported = self.document["imported"].values()
        seconds = self.document["seconds"]
        yield Text(
            f"{sum(report['inserted'] for report in imported)} memories of {len(imported)} tenants, "
            f"{len(nights)} nights from {day(nights[0]['as_of'])} to {day(nights[-1]['as_of'])}, "
            f"in {seconds['all']:.0f} s.",
            style="bold",
        )
        for night in nights:
            unwell = {status: number for status, number in night["statuses"].items() if status != "applied"}
            if unwell:
                told = ", ".join(f"{number} {plain(status, 40)}" for status, number in unwell.items())
                yield Text(f"! The night of {day(night['as_of'])} did not go well: {told}.")

    def _table(self) -> RenderableType:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, show_lines=False)
        table.add_column("Question", ratio=4)
        table.add_column("Before: plain vector search", ratio=5)
        table.add_column("Now: recall after the nights", ratio=5)
        table.add_column("Why", ratio=6)
        for answer in self.document["questions"]:
            table.add_row(
                Text(plain(answer["question"], 160)),
                self._answer(answer["before"]),
                self._answer(answer["after"]),
                Text(plain(answer["why"], 300)),
            )
            table.add_row()
        return table

    def _stacked(self) -> RenderableType:
        lines: list[RenderableType] = []
        for answer in self.document["questions"]:
            lines.append(Text(plain(answer["question"], 160), style="bold"))
            for label, text in (
                ("before", self._answer(answer["before"])),
                ("now", self._answer(answer["after"])),
                ("why", Text(plain(answer["why"], 300))),
            ):
                lines.append(Padding(Text(f"{label}: ").append_text(text), (0, 0, 0, 2), expand=False))
            lines.append(Text(""))
        return Group(*lines)

    def _answer(self, answer: Mapping[str, Any]) -> Text:
        undecided = answer["answer"] == "undecided"
        text = Text(plain(matter(answer) if undecided else answer.get("content") or "nothing", 160))
        style = "bold" if answer["answer"] == "current" else "dim"
        return text.append(f"\n[{_MARKS[answer['answer']]}]", style=style)

    def _answered(self) -> RenderableType:
        found, labels = self.document["answered"], self.document["labels"]
        undecided = found["after"].get("undecided", 0)
        kept = f", and for {undecided} both sides of what could not be decided" if undecided else ""
        return Text(
            f"The first answer was true for {found['before'].get('current', 0)} of {found['questions']} questions "
            f"before ({labels['before']}); it is true for {found['after'].get('current', 0)} now{kept} "
            f"({labels['after']}). Same memories, same vectors.",
        )

    def _commands(self, width: int) -> Iterable[RenderableType]:
        yield Text("\nGo on from here:", style="bold")
        for each in self.document["try"]:
            for line in continued(plain(each["command"], 1_000), width - 2):
                yield Text(f"  {line}", overflow="fold")
            yield Text(f"      {plain(each['shows'], 200)}", style="dim")


def continued(command: str, width: int) -> list[str]:
    """A command in lines that a shell reads as one, broken before options: a terminal's own break would not copy."""
    head, *options = re.split(r" (?=--)", command)
    lines = [head]
    for option in options:
        # Room is left for the sign that the command goes on.
        if len(lines[-1]) + len(option) + 3 <= width:
            lines[-1] += f" {option}"
        else:
            lines.append(f"    {option}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


class _Within:
    def __init__(self, renderable: RenderableType, width: int) -> None:
        self.renderable = renderable
        self.width = width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.renderable, options.update_width(self.width))
