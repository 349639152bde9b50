"""The doctor's findings and the status on a terminal, from the documents that --json prints."""

from __future__ import annotations

from memory_core.cli.output import day_and_time, plain, print_fields, print_table
from memory_core.cli.view_texts import Document


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
    summed = any("checksum" in row for row in document["scopes"])
    print_table(
        "Scopes",
        ("scope", "memories", "last slept (as of)", "ended", "waiting", *(["checksum"] if summed else [])),
        (
            (
                row["scope"],
                row["memories"],
                day_and_time(row["last_slept_at"]) or "never",
                row["last_status"],
                row["backlog"],
                *([row["checksum"][:16]] if summed else []),
            )
            for row in document["scopes"]
        ),
        empty="Nothing is stored yet: slowwave import FILE --tenant T",
    )
