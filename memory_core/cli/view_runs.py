"""Runs on a terminal: lists, steps, diffs and morning reports, from the documents that --json prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_core.cli.output import console, day_and_time, plain, print_fields, print_table, say, short_ids
from memory_core.cli.view_texts import Document, cut

_DIFF_ROWS = 60


def runs(rows: Sequence[Document]) -> None:
    """Runs, newest first."""
    ids = short_ids([row["run_id"] for row in rows])
    print_table(
        f"{len(rows)} runs",
        ("id", "scope", "kind", "as of", "status", "started", "by"),
        (
            (
                ids[row["run_id"]],
                row["scope"],
                row["kind"],
                day_and_time(row["as_of"]),
                row["status"],
                day_and_time(row["started_at"]),
                row["requested_by"],
            )
            for row in rows
        ),
        empty="There is no run here yet.",
    )


def run(document: Document) -> None:
    """One run with its steps."""
    print_fields(
        {
            name: document[name]
            for name in ("run_id", "scope", "kind", "status", "as_of", "requested_by", "undoes_run", "undone_by_run")
        }
    )
    if document["error"]:
        print_fields({"error": f"{document['error'].get('message', '')} {document['error'].get('hint', '')}".strip()})
    _steps({step["step"]: step for step in document["steps"] if ":" not in step["step"]})


def diff(document: Document) -> None:
    """What a run changed."""
    rows = []
    short = _short_keys([*document["diff"]["changed"], *document["diff"]["created"]])
    for item in document["diff"]["changed"]:
        before, after = item["before"], item["after"] or {}
        rows += [
            (item["table"], _key(item["key"], short), name, cut(before[name]), cut(after.get(name, "(deleted)")))
            for name in before
        ]
    rows += [
        (item["table"], _key(item["key"], short), "(new)", "", _summary(item["row"]))
        for item in document["diff"]["created"]
    ]
    counts = ", ".join(
        f"{table}: {number['changed']} changed, {number['created']} new" for table, number in document["counts"].items()
    )
    would = "would have changed" if document["dry_run"] else "changed"
    print_table(
        f"What the run {would}: {counts}",
        ("table", "row", "column", "before", "after"),
        rows[:_DIFF_ROWS],
        empty=f"The run {would} nothing.",
    )
    if len(rows) > _DIFF_ROWS:
        say(f"… and {len(rows) - _DIFF_ROWS} lines more; --json prints all of them")


def undone(document: Document) -> None:
    """What an undo did."""
    print(
        f"Run {document['undone_run']} is undone: {document['restored']} rows restored, {document['removed']} removed. "
        f"The undo is run {document['run_id']}."
    )
    if document["refused"]:
        short = _short_keys(document["refused"])
        print_table(
            f"{len(document['refused'])} left as they are",
            ("table", "row", "column", "why"),
            ((item["table"], _key(item["key"], short), item["column"], item["reason"]) for item in document["refused"]),
            empty="",
        )


def nights(documents: Sequence[Document]) -> None:
    """The morning report of each scope."""
    for document in documents:
        if document.get("steps") is None:
            error = document.get("error") or {}
            print(
                plain(f"{document['scope']}: {document['status']}. {error.get('message', '')} {error.get('hint', '')}")
            )
            continue
        from memory_core.sleep.morning_report import build_morning_report

        console().print(build_morning_report(document).to_rich())
        if document["dry_run"]:
            from memory_core.retrieval.history import count_changes

            changes = document.get("diff", {"changed": [], "created": []})
            diff({"dry_run": True, "counts": count_changes(changes), "diff": changes})


def _steps(steps: Mapping[str, Document]) -> None:
    print_table(
        "Steps",
        ("step", "status", "looked at", "changed", "left alone, and why"),
        (
            (name, step["status"], step.get("candidates", 0), step.get("changed", 0), _why_not(step))
            for name, step in steps.items()
        ),
        empty="No step was done.",
    )


def _why_not(step: Document) -> str:
    parts = [f"{count} {reason}" for reason, count in step.get("skipped", {}).items()]
    if step.get("reason"):
        parts.append(step["reason"])
    if step.get("error"):
        parts.append(f"{step['error'].get('error')}: {step['error'].get('message')}")
    return "; ".join(parts)


def _short_keys(changes: Sequence[Document]) -> dict[str, str]:
    """Every part of the rows' keys, as short as tells them apart: ids of one moment begin alike."""
    return short_ids([str(value) for change in changes for value in change["key"].values()])


def _key(key: Document, short: Mapping[str, str]) -> str:
    return " ".join(short[str(value)] for value in key.values())


def _summary(row: Document) -> str:
    for name in ("content", "relationship", "role", "value"):
        if row.get(name):
            return cut(row[name])
    return ""
