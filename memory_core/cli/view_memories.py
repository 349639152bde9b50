"""Memories, beliefs and what a command did to them on a terminal, from the documents that --json prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_core.cli.output import day_and_time, plain, print_fields, print_table, say, short_ids
from memory_core.cli.view_texts import Document, cut, evidence_lines

_REJECTS_SHOWN = 10


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
            print(f"            {piece['role']}: {cut(piece['content'])} ({day_and_time(piece['observed_at'])})")
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
                evidence_lines(row["evidence"]),
            )
            for row in rows
        ),
        empty="Nothing is believed here with this status. Beliefs are made by `slowwave harmonize` and `nightly`.",
    )


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
    if document["schema"]:
        print(plain(f"schema: {_in_words(document['schema'])}"))
    for item in document["waiting"]:
        print(plain(f"waiting for the next sleep: {item['fields']} ({item['who']}, {day_and_time(item['at'])})"))


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
                row["cluster_count"],
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
    print_fields({name: _in_words(value) for name, value in document.items()})


def _in_words(value: Any) -> Any:
    """A list or a document in one line; empty where there is nothing in it, so that it is left out."""
    match value:
        case dict():
            return ", ".join(f"{name}: {each}" for name, each in value.items())
        case list():
            return "; ".join(str(_in_words(each)) for each in value)
    return value


def _status(row: Document) -> str:
    if row["status"] == "superseded":
        return f"superseded ({row['superseded_reason']})"
    return f"retired: {row['retired_reason']}" if row["status"] == "retired" else str(row["status"])
