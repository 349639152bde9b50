"""The morning report as GitHub-flavoured markdown, for a Prefect artifact or a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memory_core.sleep.morning_sections import Item, Section

if TYPE_CHECKING:
    from memory_core.sleep.morning_report import MorningReport

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SIGNS = re.compile(r"[\\`*_\[\]|~$@#!{}]")
_LINKS = re.compile(r"\b(https?|ftp|mailto|xmpp)(?=:)|\bwww(?=\.)", re.IGNORECASE)
_LIST_MARKS = re.compile(r"^(?:([-+=])|(\d+)([.)])(?=\s|$))")


def escape(text: str) -> str:
    """Text as markdown that shows it as it is: no markup, no HTML, no link, on one line."""
    line = " ".join(text.split())
    line = "".join(_HTML.get(char, char) for char in line)
    # An entity of ours begins with "&", which is no sign; what was "&" before is "&amp;" by now.
    line = _SIGNS.sub(lambda sign: f"\\{sign[0]}", line)
    line = _LINKS.sub(lambda scheme: f"{scheme[0]}\\", line)
    return _LIST_MARKS.sub(lambda mark: f"\\{mark[1]}" if mark[1] else f"{mark[2]}\\{mark[3]}", line)


def markdown(report: MorningReport) -> str:
    """The whole report."""
    blocks = [f"# {escape(report.title)}", f"**{escape(report.headline)}**"]
    blocks += [_notice(notice.what, notice.do) for notice in report.notices]
    if report.standing:
        blocks.append(escape(report.standing))
    blocks += [_section(section) for section in report.sections]
    if report.quiet:
        lines = [f"- **{escape(quiet.phase)}**: {escape(quiet.why)}" for quiet in report.quiet]
        blocks.append("\n".join(("## Nothing to do", "", *lines)))
    if report.left_alone:
        rows = [(left.phase, str(left.number), left.reason) for left in report.left_alone]
        blocks.append("\n".join(("## Left alone", "", *_table(("phase", "number", "why"), rows))))
    if report.backlog:
        lines = [f"- {escape(line)}" for line in report.backlog]
        blocks.append("\n".join(("## For a later night", "", *lines)))
    blocks.append(f"---\n\n{' · '.join(escape(fact) for fact in report.facts)}")
    return "\n\n".join(blocks) + "\n"


def _notice(what: str, do: str) -> str:
    return f"> **{escape(what)}**" + (f"  \n> {escape(do)}" if do else "")


def _section(section: Section) -> str:
    lines = [f"## {section.glyph[0]} {escape(section.title)} ({section.total})", ""]
    if section.with_notes:
        lines += [line for item in section.items for line in _with_notes(item)]
    else:
        lines += _table(section.columns, [item.cells for item in section.items])
    more = section.total - len(section.items)
    if more > 0:
        lines += ["", f"and {more} more"]
    return "\n".join(lines)


def _with_notes(item: Item) -> Iterable[str]:
    first, *rest = (escape(cell) for cell in item.cells)
    yield f"- **{first}** {' · '.join(rest)}".rstrip()
    for note in item.notes:
        origin = f" ({escape(note.origin)})" if note.origin else ""
        yield f"  - {escape(note.label)}: {escape(note.text)}{origin}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(escape(cell) for cell in row)} |"
