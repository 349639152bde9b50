"""The morning report for a terminal: readable without colours, in any width, and in ASCII where there is no more.

Everything is a rich `Text`, never console markup, so that brackets in a memory are brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memory_core.sleep.morning_sections import Item, Section

if TYPE_CHECKING:
    from memory_core.sleep.morning_report import MorningReport

NOTES = 5
"""Lines under an item."""

SHORT = 14
"""A cell up to this length is kept on one line."""

ORIGIN = 34
"""Columns that say when a piece of evidence was said, and by whom."""

NARROW = 80
"""Below this width, in characters, what stands beside a statement goes under it."""

WIDEST = 120
"""Characters a line has at most: longer ones are hard to read."""

_ASCII = str.maketrans({"“": '"', "”": '"', "…": "...", "→": ">", "×": "x", "·": "-", "↑": "^", "–": "-", "’": "'"})


class TerminalReport:
    """A rich renderable of a morning report."""

    def __init__(self, report: MorningReport) -> None:
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The report for this console's width and character set."""
        writer = _Writer(options.ascii_only, min(options.max_width, WIDEST))
        yield Group(*writer.blocks(self.report))


class _Writer:
    def __init__(self, ascii_only: bool, width: int) -> None:
        self.ascii_only = ascii_only
        self.width = width
        self.narrow = width < NARROW

    def blocks(self, report: MorningReport) -> Iterable[RenderableType]:
        yield self._panel(report)
        for section in report.sections:
            yield self._heading(section.glyph[self.ascii_only], section.title, section.total)
            yield self._section(section)
        if report.quiet:
            yield self._heading(".", "Nothing to do", None)
            yield self._pairs((quiet.phase, quiet.why) for quiet in report.quiet)
        if report.left_alone:
            yield self._heading(".", "Left alone", None)
            yield self._pairs((left.phase, f"{left.number} × {left.reason}") for left in report.left_alone)
        if report.backlog:
            yield self._heading(".", "For a later night", None)
            yield self._lines(report.backlog)

    def _panel(self, report: MorningReport) -> RenderableType:
        lines: list[RenderableType] = [self._text(report.headline, "bold")]
        if report.standing:
            lines.append(self._text(report.standing))
        for notice in report.notices:
            lines.append(self._text(f"! {notice.what}", "bold"))
            if notice.do:
                lines.append(Padding(self._text(notice.do), (0, 0, 0, 2)))
        lines.append(self._text(" · ".join(report.facts), "dim"))
        return Panel(
            Group(*lines),
            title=self._text(report.title),
            title_align="left",
            box=box.ASCII if self.ascii_only else box.ROUNDED,
            width=self.width,
            padding=(0, 1),
        )

    def _heading(self, glyph: str, title: str, total: int | None) -> RenderableType:
        number = "" if total is None else f" ({total})"
        mark = f"{glyph} " if glyph != "." else ""
        return Group(Text(""), self._text(f"{mark}{title}{number}", "bold"))

    def _section(self, section: Section) -> RenderableType:
        shown = section.items[: section.lead]
        body: list[RenderableType]
        if section.with_notes:
            body = [self._with_notes(item) for item in shown]
        elif self.narrow:
            body = [self._stacked(item) for item in shown]
        else:
            body = [self._table([item.cells for item in shown])]
        more = section.total - len(shown)
        if more > 0:
            body.append(self._indented(self._text(f"and {more} more", "dim")))
        return Group(*body)

    def _with_notes(self, item: Item) -> RenderableType:
        first, *rest = item.cells
        lines: list[RenderableType] = [self._indented(self._text(f"{first}  [{', '.join(rest)}]"))]
        notes = item.notes[:NOTES]
        rows = [(note.label, note.text, note.origin) for note in notes]
        if len(item.notes) > len(notes):
            rows.append(("and", f"{len(item.notes) - len(notes)} more", ""))
        if self.narrow:
            lines += [
                self._indented(self._text(f"{label}: {text}{f' ({origin})' if origin else ''}"), 4)
                for label, text, origin in rows
            ]
        elif rows:
            table = self._grid()
            table.add_column(no_wrap=True)
            table.add_column()
            table.add_column(max_width=ORIGIN)
            for label, text, origin in rows:
                table.add_row(self._text(label, "dim"), self._text(text), self._text(origin, "dim"))
            lines.append(self._indented(table, 4))
        return Group(*lines)

    def _stacked(self, item: Item) -> RenderableType:
        first, *rest = item.cells
        beside = " · ".join(cell for cell in rest if cell)
        lines = [self._indented(self._text(first))]
        if beside:
            lines.append(self._indented(self._text(beside, "dim"), 4))
        return Group(*lines)

    def _table(self, rows: Sequence[Sequence[str]]) -> RenderableType:
        table = self._grid()
        for cells in zip(*rows, strict=True):
            # Long statements share what the short cells leave.
            table.add_column(no_wrap=max(len(cell) for cell in cells) <= SHORT)
        for row in rows:
            table.add_row(*(self._text(cell, "" if position == 0 else "dim") for position, cell in enumerate(row)))
        return self._indented(table)

    def _pairs(self, pairs: Iterable[tuple[str, str]]) -> RenderableType:
        rows = list(pairs)
        if self.narrow:
            return Group(*(self._indented(self._text(f"{name}: {text}")) for name, text in rows))
        table = self._grid()
        table.add_column(no_wrap=True)
        table.add_column()
        for name, text in rows:
            table.add_row(self._text(name, "dim"), self._text(text))
        return self._indented(table)

    def _lines(self, lines: Iterable[str]) -> RenderableType:
        return Group(*(self._indented(self._text(line)) for line in lines))

    def _grid(self) -> Table:
        return Table.grid(padding=(0, 2, 0, 0))

    def _indented(self, renderable: RenderableType, by: int = 2) -> RenderableType:
        return _Within(Padding(renderable, (0, 0, 0, by), expand=False), self.width)

    def _text(self, text: str, style: str = "") -> Text:
        if self.ascii_only:
            text = text.translate(_ASCII).encode("ascii", "replace").decode()
        return Text(text, style=style, overflow="fold")


class _Within:
    """A renderable in at most so many columns."""

    def __init__(self, renderable: RenderableType, width: int) -> None:
        self.renderable = renderable
        self.width = width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.renderable, options.update_width(min(options.max_width, self.width)))
