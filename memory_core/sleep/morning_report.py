"""The morning report: what a night did, what it left alone and why, made from the run's document alone.

One source for the terminal (`morning_terminal.py`), for markdown (`morning_markdown.py`) and for whoever reads the
document of a run that is long over. Memory text is untrusted: here it loses what could steer a terminal, and each
renderer escapes what its own format would read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

from memory_core.sleep import morning_words as words
from memory_core.sleep.morning_sections import Section, sections_of

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Notice:
    """What a reader has to know before anything else, and what to do about it."""

    what: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Quiet:
    """A phase that changed nothing, and why."""

    phase: str
    why: str


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Candidates of a phase that it left alone for one reason."""

    phase: str
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class MorningReport:
    """The report, in plain text without any markup.

    Attributes:
        title: the scope and the night.
        headline: the night in one sentence.
        notices: dry run, refused, partial, busy: what is unusual about this run.
        standing: what the scope holds now, in one sentence; empty where it is not known.
        sections: what was done, by subject; empty subjects are left out.
        quiet: the phases that changed nothing, and why.
        left_alone: what was skipped, by phase and reason.
        backlog: what waits for a later night.
        facts: run, time, duration, model calls, cost.
    """

    title: str
    headline: str
    notices: tuple[Notice, ...] = ()
    standing: str = ""
    sections: tuple[Section, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    backlog: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """The report as GitHub-flavoured markdown."""
        from memory_core.sleep.morning_markdown import markdown

        return markdown(self)

    def to_rich(self) -> RenderableType:
        """The report for a terminal."""
        from memory_core.sleep.morning_terminal import TerminalReport

        return TerminalReport(self)


def build_morning_report(document: Mapping[str, Any], *, memories_total: int | None = None) -> MorningReport:
    """The report of one scope's run.

    Args:
        document: as `night.document.run_document` makes it, or the refusal of a scope that no run began in.
        memories_total: memories of the scope, where the document does not say.
    """
    dry = bool(document.get("dry_run"))
    highlights = document.get("highlights") or {}
    steps = words.in_order(document.get("steps") or {}, words.PHASES)
    nothing_stays = document.get("status") in ("refused", "busy")
    sections = () if nothing_stays else sections_of(highlights, dry=dry)
    return MorningReport(
        title=_title(document),
        headline=_headline(document, highlights, dry=dry),
        notices=tuple(_notices(document, steps, dry=dry)),
        standing=_standing(highlights.get("standing") or {}, memories_total),
        sections=sections,
        quiet=() if nothing_stays else tuple(_quiet(document, steps)),
        left_alone=() if nothing_stays else tuple(_left_alone(steps)),
        backlog=() if nothing_stays else tuple(_backlog(highlights.get("backlog") or {})),
        facts=tuple(_facts(document)),
    )


def _title(document: Mapping[str, Any]) -> str:
    night = str(document.get("as_of") or "")[:10]
    kind = words.KINDS.get(str(document.get("kind")), "run")
    return f"{words.plain(document.get('scope') or document.get('tenant') or 'unknown scope', 80)} · {kind} of {night}"


def _headline(document: Mapping[str, Any], highlights: Mapping[str, Any], *, dry: bool) -> str:
    match document.get("status"):
        case "refused":
            return "The run was refused, and nothing was changed."
        case "busy":
            return "Nothing was done: another run holds the scope."
        case "failed":
            return "The run failed: no step could be done."
    done = _counted(document, highlights)
    if dry:
        return f"Dry run, nothing was changed. It would bring: {done}." if done else "Dry run: nothing would change."
    return f"Good morning. {done}." if done else "Good morning. A quiet night: nothing changed."


def _counted(document: Mapping[str, Any], highlights: Mapping[str, Any]) -> str:
    """What was done in numbers; from the counters where the document tells no highlights."""
    counts = words.counts_of_highlights(highlights) if highlights else words.counts_of_reports(document)
    return ", ".join(words.number_of(name, number) for name, number in counts if number)


def _notices(document: Mapping[str, Any], steps: Mapping[str, Any], *, dry: bool) -> Iterable[Notice]:
    status = document.get("status")
    error = document.get("error") or {}
    said = words.plain(error.get("message") or "", 600)
    hint = words.plain(error.get("hint") or "", 400)
    again = _command(document)
    match status:
        case "refused" | "busy":
            yield Notice(said or words.STATUSES[str(status)], hint)
        case "partial" | "failed":
            broken = [name for name, step in steps.items() if step.get("status") == "failed"]
            named = ", ".join(words.phase(name) for name in broken)
            kept = "Only a part of it was done" if status == "partial" else "Nothing was done"
            what = f"{kept}: {named} failed." if named else f"{kept}. {said}".strip()
            yield Notice(what, f"What was done stays and is not done twice. Once the cause is removed: {again}")
            for name in broken:
                why = steps[name].get("error") or {}
                message = words.plain(why.get("message") or why.get("error") or "no reason was kept", 600)
                yield Notice(f"{words.phase(name)}: {message}", words.plain(why.get("hint") or "", 400))
        case "undone":
            yield Notice(
                "This run was undone. What follows is what it had done.", f"To do it again: {again} --reconsider"
            )
        case "interrupted":
            yield Notice("This run was cut off. What it had done by then stays, and can be undone.", again)
        case "running":
            yield Notice("This run is not finished.", "`slowwave doctor` says whether somebody still works on it.")
    yield from _model_notices(document.get("shmr") or {}, steps.get("harmonize") or {})
    if dry and status not in ("refused", "busy"):
        yield Notice("This was a dry run: nothing was changed.", f"To do it: {again}")


def _model_notices(shmr: Mapping[str, Any], harmonize: Mapping[str, Any]) -> Iterable[Notice]:
    """A model that failed: what waits for it, or what rules decided in its place."""
    waiting = (shmr.get("clusters") or {}).get("model_unavailable")
    if waiting:
        groups = words.number_of("groups", waiting)
        yield Notice(f"The language model failed, and {groups} for it.", words.plain(shmr.get("reason") or "", 600))
    instead = (harmonize.get("details") or {}).get("rules_instead_of")
    if instead:
        groups = words.number_of("decided groups", instead["clusters"])
        why = f"{instead['model']} failed: {instead['error']}"
        yield Notice(f"The language model failed, and rules decided {groups} in its place.", words.plain(why, 600))


def _command(document: Mapping[str, Any]) -> str:
    kind = document.get("kind") if document.get("kind") in words.KINDS else "nightly"
    root, _, below = str(document.get("scope") or "").partition("/")
    # Quoted, because a tenant may be named by whoever wrote an imported file, and the command is there to be copied.
    tenant = quote(words.plain(document.get("tenant") or root, 80))
    scope = f" --scope {quote(words.plain(below, 200))}" if below else ""
    return f"slowwave {kind} --tenant {tenant}{scope} --as-of {document.get('as_of')}"


def _standing(standing: Mapping[str, Any], memories_total: int | None) -> str:
    memories = standing.get("memories", memories_total)
    if memories is None:
        return ""
    parts = [words.number_of("memories", memories)]
    if "current" in standing:
        parts[0] += f", {standing['current']} of them in use"
    if "held" in standing:
        parts.append(f"{words.number_of('beliefs held', standing['held'])}, {standing['contested']} contested")
    return "; ".join(parts) + "."


def _quiet(document: Mapping[str, Any], steps: Mapping[str, Any]) -> Iterable[Quiet]:
    harmonizing = {name: step for name, step in steps.items() if name in words.SHMR_STEPS}
    for name, step in steps.items():
        if name not in harmonizing and step.get("status") != "failed" and not step.get("changed"):
            yield Quiet(words.phase(name), _why_nothing(step))
    decided = sum(harmonizing.get(name, {}).get("changed") or 0 for name in ("apply", "embed"))
    if harmonizing and not decided and all(step.get("status") != "failed" for step in harmonizing.values()):
        shmr = document.get("shmr") or {}
        reasons = [words.STATUSES.get(str(shmr.get("status")), ""), str(shmr.get("reason") or "")]
        reasons += [str(step.get("reason") or "") for name, step in harmonizing.items() if name != "log"]
        distinct = dict.fromkeys(words.sentence(reason) for reason in reasons if reason)
        yield Quiet(words.phase("harmonize"), "; ".join(distinct) or "nothing to decide")


def _why_nothing(step: Mapping[str, Any]) -> str:
    if step.get("reason"):
        return words.sentence(str(step["reason"]))
    if step.get("skipped"):
        return "every candidate was left alone, as listed below"
    if step.get("candidates"):
        return f"none of {step['candidates']} candidates needed a change"
    return "there was no candidate"


def _left_alone(steps: Mapping[str, Any]) -> Iterable[LeftAlone]:
    for name, step in steps.items():
        skipped = step.get("skipped") or {}
        for reason, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
            yield LeftAlone(words.phase(name), number, words.sentence(reason))


def _backlog(backlog: Mapping[str, Any]) -> Iterable[str]:
    for name, number in words.in_order(backlog, words.BACKLOG).items():
        if number:
            yield words.number_of(name, number)


def _facts(document: Mapping[str, Any]) -> Iterable[str]:
    if document.get("run_id"):
        yield f"{'dry run' if document.get('dry_run') else 'run'} {str(document['run_id'])[:8]}"
    yield f"as of {words.moment(document.get('as_of'))}"
    seconds = _seconds(document)
    if seconds is not None:
        yield f"took {words.duration(seconds)}"
    shmr = document.get("shmr")
    if shmr is not None:
        yield from words.model_facts(shmr)


def _seconds(document: Mapping[str, Any]) -> float | None:
    """Seconds the steps took; None where none of them kept a time, as in a dry run."""
    sleep, shmr = document.get("sleep") or {}, document.get("shmr") or {}
    spent: list[float] = []
    if sleep.get("started_at") and sleep.get("finished_at"):
        started, finished = (datetime.fromisoformat(str(sleep[name])) for name in ("started_at", "finished_at"))
        spent.append((finished - started).total_seconds())
    if shmr.get("duration_ms"):
        spent.append(shmr["duration_ms"] / 1_000)
    return sum(spent) if spent else None
