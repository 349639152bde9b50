"""What people see on a terminal: tables and short texts made from the same documents that --json prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_core.cli.output import console, day_and_time, plain, print_fields, print_table, say, short_ids

_DIFF_ROWS = 60
_REJECTS_SHOWN = 10
_TEXT = 100

Document = Mapping[str, Any]


def memories(document: Document, status: str) -> None:
    """A page of memories."""
    rows = document["memories"]
    ids = short_ids([row["id"] for row in rows])
    print_table(
        f"{len(rows)} memories ({status})",
        ("id", "external id", "layer", "label", "content", "importance", "observed", "status"),
        (
            (
                ids[row["id"]],
                row["external_id"],
                row["layer"],
                row["label"],
                row["content"],
                f"{row['importance']:.1f}" if row["importance"] is not None else "",
                day_and_time(row["observed_at"]),
                _status(row),
            )
            for row in rows
        ),
        empty=f"No memory here is {status}." if status != "all" else "Nothing is remembered here.",
    )
    if document["next"]:
        say(f"More: --after {document['next']}, or a larger --limit")


def results(document: Document) -> None:
    """The answers to a question."""
    found = document["results"]
    if not found:
        print("Nothing current is known that has a vector to compare.")
    for rank, item in enumerate(found, 1):
        status = f" ({item['status']})" if item["kind"] == "belief" else ""
        print(f"{rank:>3}. {item['score']:.3f}  {plain(item['content'])}")
        print(f"            {item['kind']}{status} {item['id']}, observed {day_and_time(item['observed_at'])}")
        for piece in item["evidence"]:
            print(f"            {piece['role']}: {_cut(piece['content'])} ({day_and_time(piece['observed_at'])})")
    if document["without_vector"]:
        say(
            f"note: {document['without_vector']} memories have no vector of {document['model']} yet and were not "
            "searched; the next night computes them"
        )


def beliefs(document: Document) -> None:
    """Beliefs with their evidence."""
    rows = document["beliefs"]
    ids = short_ids([row["id"] for row in rows])
    print_table(
        f"{len(rows)} beliefs",
        ("id", "belief", "status", "confidence", "since", "evidence"),
        (
            (
                ids[row["id"]],
                row["content"],
                row["status"],
                f"{row['confidence']:.2f}",
                day_and_time(row["valid_from"]),
                _evidence(row["evidence"]),
            )
            for row in rows
        ),
        empty="Nothing is believed here with this status. Beliefs are made by `slowwave harmonize` and `nightly`.",
    )


def explanation(document: Document) -> None:
    """Why a memory or belief is as it is."""
    _tree(document)


def profile(document: Document) -> None:
    """The SOUL profile."""
    fields = document["fields"]
    print_table(
        f"SOUL profile of {document['scope']}",
        ("field", "value", "type", "before", "source", "at"),
        (
            (name, item["value"], item["type"], item["previous"], item["source"], day_and_time(item["at"]))
            for name, item in fields.items()
        ),
        empty="The profile holds nothing yet. A correction fills it: slowwave correct --tenant T --field name=value",
    )


def log(rows: Sequence[Document]) -> None:
    """The resonance log."""
    print_table(
        f"{len(rows)} passes of harmonizing",
        ("as of", "scope", "status", "clusters", "beliefs", "resolved", "harmony", "model", "tokens", "ms"),
        (
            (
                day_and_time(row["as_of"]),
                row["scope"],
                row["status"],
                row["clusters_found"],
                row["beliefs_generated"],
                row["contradictions_resolved"],
                f"{row['harmony_score_avg']:.3f}",
                row["model"],
                row["tokens"],
                row["duration_ms"],
            )
            for row in rows
        ),
        empty="Nothing was harmonized here yet.",
    )


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
    for item in document["diff"]["changed"]:
        before, after = item["before"], item["after"] or {}
        rows += [
            (item["table"], _key(item["key"]), name, _cut(before[name]), _cut(after.get(name, "(deleted)")))
            for name in before
        ]
    rows += [
        (item["table"], _key(item["key"]), "(new)", "", _summary(item["row"])) for item in document["diff"]["created"]
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
        print_table(
            f"{len(document['refused'])} left as they are",
            ("table", "row", "column", "why"),
            ((item["table"], _key(item["key"]), item["column"], item["reason"]) for item in document["refused"]),
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


def demo(document: Document) -> None:
    """What the demo found out."""
    _tree(document)


def findings(document: Document) -> None:
    """The doctor's checks."""
    marks = {"ok": "OK", "problem": "PROBLEM", "note": "note", "not_checked": "not checked"}
    for item in document["checks"]:
        print(f"{marks[item['state']]:<12}{plain(item['check'])}: {plain(item['found'])}")
        if item["do"]:
            print(f"{'':<12}→ {plain(item['do'])}")


def status(document: Document) -> None:
    """What runs, and the scopes."""
    embedded = document.get("embedded") or {}
    print_fields(
        {
            "home": document["home"],
            "database": document["database"],
            "server": ("running, pid " + str(embedded["pid"]) if embedded.get("running") else "down")
            if embedded
            else None,
            "Postgres": embedded.get("version"),
            "log": embedded.get("log_file"),
            "size": f"{embedded['size_bytes'] / 1e6:.0f} MB" if embedded else None,
        }
    )
    if document["scopes"] is None:
        print(document["reason"])
        return
    print_table(
        "Scopes",
        ("scope", "memories", "last slept (as of)", "ended", "waiting"),
        (
            (
                row["scope"],
                row["memories"],
                day_and_time(row["last_slept_at"]) or "never",
                row["last_status"],
                row["backlog"],
            )
            for row in document["scopes"]
        ),
        empty="Nothing is stored yet: slowwave import FILE --tenant T",
    )


def imported(document: Document) -> None:
    """What an import took, and what it did not."""
    would = "would be " if document["dry_run"] else ""
    print(
        f"{document['lines']} lines of {plain(document['file'])} in {document['duration_seconds']:.1f} s: "
        f"{document['inserted']} {would}new, {document['new_versions']} {would}new versions, "
        f"{document['unchanged']} unchanged, {document['rejected']} rejected, {document['unresolved']} unresolved."
    )
    print_table(
        "By scope",
        ("scope", "new", "new versions", "unchanged", "uses", "edges", "corrections", "without vector"),
        (
            (
                scope,
                *(
                    counts[name]
                    for name in ("inserted", "new_versions", "unchanged", "accesses", "edges", "corrections")
                ),
                counts["without_vector"],
            )
            for scope, counts in document["scopes"].items()
        ),
        empty="Nothing was taken.",
    )
    for item in document["rejects"][:_REJECTS_SHOWN]:
        say(f"line {item.get('line')}: {item.get('reason')}")
    if document["rejects_file"]:
        say(f"All rejected lines are in {document['rejects_file']}")
    if document["vector_problem"]:
        say(f"note: stored without vectors: {document['vector_problem']}")


def changed(document: Document) -> None:
    """What a writing command did."""
    print_fields({name: value for name, value in document.items() if not isinstance(value, (dict, list)) or value})


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


def _status(row: Document) -> str:
    if row["status"] == "superseded":
        return f"superseded ({row['superseded_reason']})"
    return f"retired: {row['retired_reason']}" if row["status"] == "retired" else str(row["status"])


def _evidence(pieces: Sequence[Document]) -> list[str]:
    return [f"{piece['role']}: {_cut(piece['content'])}" for piece in pieces]


def _key(key: Document) -> str:
    return " ".join(str(value)[:13] for value in key.values())


def _summary(row: Document) -> str:
    for name in ("content", "relationship", "role", "value"):
        if row.get(name):
            return _cut(row[name])
    return ""


def _cut(value: object) -> str:
    words = "" if value is None else " ".join(str(value).split())
    return words if len(words) <= _TEXT else f"{words[: _TEXT - 1]}…"


def _tree(value: object, depth: int = 0) -> None:
    """A nested document as indented lines; what is empty is left out."""
    indent = "  " * depth
    if isinstance(value, Mapping):
        for name, item in value.items():
            if item in (None, "", [], {}):
                continue
            if isinstance(item, (Mapping, list)):
                print(f"{indent}{plain(name)}:")
                _tree(item, depth + 1)
            else:
                print(f"{indent}{plain(name)}: {plain(item)}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if isinstance(item, Mapping):
                head = item.get("content") or item.get("id") or ""
                print(f"{indent}- {plain(head)}")
                _tree({name: part for name, part in item.items() if name != "content"}, depth + 1)
            else:
                print(f"{indent}- {plain(item)}")
    else:
        print(f"{indent}{plain(value)}")
