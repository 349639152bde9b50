"""What a person sees in Prefect's UI: artifacts under constant keys, and events. The truth is in our own tables.

A report that cannot be written is logged and never fails a run.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.context import FlowRunContext, TaskRunContext
from prefect.events import emit_event
from prefect.logging import get_run_logger

from memory_core.night.chunks import ScopeStep
from memory_core.night.steps import EMBED_SUMMARIES
from memory_core.shmr.steps import SHMR_STEPS
from tasks.policy import ROWS_AN_ARTIFACT

RUN_FINISHED = "slowwave.run.finished"
MORNING_REPORT_KEY = "morning-report"
REPORTS_IN_FULL = 10
"""Scopes whose morning reports are shown in full; more are shown as a table of one line a scope."""

PURPOSES = {
    "strengthen": "What was used grows more important.",
    "decay": "What nobody uses grows less important, where that is switched on.",
    "cooccurrence": "What was active within the same hour is linked.",
    "tag_risk": "Memories that speak of a real risk are marked with the words that say so.",
    "pending_edges": "Connections that activation inferred become edges, or are rejected with a reason.",
    "working_expiry": "Working memory past its time is retired, where that is switched on.",
    "prune_orphans": "Stale, unimportant, unlinked memories are retired; nothing is deleted.",
    "duplicate_merge": "Facts in the same words become one, where that is switched on.",
    "meta_nodes": "Groups of three and more memories with one label prefix have a summary.",
    "episodic_summaries": "Old episodes are summed up beside them, where that is switched on.",
    "model_summaries": "A model's summaries stand beside the extractive ones, where that is switched on.",
    "soul_corrections": "What a person corrected is applied to the SOUL profile.",
    "promotion": "What child scopes say alike is known to their parent too, where that is switched on.",
    "embed": "Memories without a vector get one.",
    "collect": "What waits to be harmonised, oldest first.",
    "cluster": "Statements about the same thing are brought together.",
    "harmonize": "Each cluster is decided, by rules or by a model.",
    "score": "Decisions that do not cohere with their evidence are rejected.",
    "apply": "Accepted decisions become beliefs with their evidence.",
    "log": "The resonance log keeps what the run came to.",
    "embed_summaries": "Summaries made after SHMR get a vector.",
}
"""What each step is for, as its artifact's description."""

_SHMR_NAMES = frozenset({*(step.name for step in SHMR_STEPS), EMBED_SUMMARIES.name})


def step_key(step: str) -> str:
    """The artifact key of a step: `phase-tag-risk`, `shmr-cluster`; the same each night, so that versions line up."""
    return f"{'shmr' if step in _SHMR_NAMES else 'phase'}-{step.replace('_', '-')}"


async def report_step(step: str, results: Sequence[ScopeStep]) -> None:
    """One artifact for a step: markdown for one scope, a table for several. Nothing outside a Prefect run."""
    if TaskRunContext.get() is None:
        return
    key = step_key(step)
    if len(results) == 1:
        await _quietly(
            f"artifact {key}",
            lambda: acreate_markdown_artifact(step_markdown(results[0]), key=key, description=PURPOSES[step]),
        )
        return
    rows = [step_row(result) for result in results]
    description = f"{PURPOSES[step]} {_shortened(f'{len(rows)} scopes', len(rows))}"
    await _quietly(
        f"artifact {key}",
        lambda: acreate_table_artifact(rows[:ROWS_AN_ARTIFACT], key=key, description=description),
    )


def step_markdown(result: ScopeStep) -> str:
    """How one step of one scope went, as markdown."""
    lines = [
        f"## {result.step} · {result.scope}",
        "",
        "| status | candidates | changed |",
        "|---|---:|---:|",
        f"| {result.status} | {result.candidates} | {result.changed} |",
    ]
    if result.skipped:
        lines += ["", "| left alone because | number |", "|---|---:|"]
        lines += [f"| {_cell(reason)} | {number} |" for reason, number in sorted(result.skipped.items())]
    if result.reason:
        lines += ["", f"Nothing was done: {result.reason}." if not result.changed else f"{result.reason}."]
    if result.error:
        lines += ["", f"**{result.error.get('error', 'Error')}**: {result.error.get('message', '')}"]
        if result.error.get("hint"):
            lines += ["", str(result.error["hint"])]
    return "\n".join(lines)


def step_row(result: ScopeStep) -> dict[str, Any]:
    """How one step of one scope went, as a row of a table."""
    skipped = ", ".join(f"{number} {reason}" for reason, number in sorted((result.skipped or {}).items()))
    return {
        "scope": result.scope,
        "status": result.status,
        "candidates": result.candidates,
        "changed": result.changed,
        "left alone": skipped,
        "why": (result.error or {}).get("message") or result.reason,
    }


async def report_morning(documents: Sequence[Mapping[str, Any]]) -> None:
    """The morning report as an artifact of the flow run: in full for a few scopes, else a line for each."""
    if FlowRunContext.get() is None or not documents:
        return
    if len(documents) <= REPORTS_IN_FULL:

        async def in_full() -> None:
            # Imported here: a report that cannot be made must not keep the tasks from being imported.
            from memory_core.sleep.morning_report import build_morning_report

            markdown = "\n\n---\n\n".join(build_morning_report(document).to_markdown() for document in documents)
            await acreate_markdown_artifact(markdown, key=MORNING_REPORT_KEY, description="What the night did.")

        await _quietly("the morning report", in_full)
        return
    rows = [document_row(document) for document in documents]
    description = _shortened(f"The night of {len(rows)} scopes", len(rows))
    await _quietly(
        "the morning report",
        lambda: acreate_table_artifact(rows[:ROWS_AN_ARTIFACT], key=MORNING_REPORT_KEY, description=description),
    )


def document_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """One scope's night as a row of a table."""
    steps = document.get("steps", {})
    shmr = document.get("shmr", {})
    return {
        "scope": document["scope"],
        "status": document["status"],
        "changed": sum(step.get("changed", 0) for step in steps.values()),
        "beliefs": shmr.get("beliefs_generated", 0),
        "contradictions resolved": shmr.get("contradictions_resolved", 0),
        "run": document.get("run_id") or "",
        "why": (document.get("error") or {}).get("message", ""),
    }


async def announce(documents: Sequence[Mapping[str, Any]]) -> None:
    """One event `slowwave.run.finished` for each scope, for automations to act on. Dry runs announce nothing."""
    if FlowRunContext.get() is None:
        return
    for document in documents:
        if document.get("dry_run"):
            continue
        payload = {
            name: document.get(name) for name in ("run_id", "status", "kind", "tenant", "scope", "as_of", "error")
        }
        resource = {
            "prefect.resource.id": f"slowwave.scope.{document['scope']}",
            "prefect.resource.name": document["scope"],
            "slowwave.status": document["status"],
            "slowwave.kind": document["kind"],
        }

        async def emit(resource: dict[str, str] = resource, payload: dict[str, Any] = payload) -> None:
            emit_event(RUN_FINISHED, resource=resource, payload=payload)

        await _quietly(f"event {RUN_FINISHED}", emit)


async def _quietly(what: str, write: Callable[[], Awaitable[object]]) -> None:
    try:
        await write()
    except Exception as error:  # the night is done and committed; only its picture in the UI is missing
        _logger().warning("Could not write %s: %s: %s", what, type(error).__name__, error)


def _logger() -> logging.Logger | logging.LoggerAdapter[Any]:
    if TaskRunContext.get() is None and FlowRunContext.get() is None:
        return logging.getLogger(__name__)
    return get_run_logger()


def _shortened(text: str, rows: int) -> str:
    return f"{text}; the first {ROWS_AN_ARTIFACT} are shown." if rows > ROWS_AN_ARTIFACT else f"{text}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
