"""What `slowwave calibrate` says on a terminal, from the document that --json prints."""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.cli.output import plain, print_table, say
from memory_core.cli.view_texts import Document

_BARS = " ▁▂▃▄▅▆▇█"
_REJECTS_SHOWN = 10
_EVERY = 5
"""Hundredths between two rows of the table."""


def calibration(document: Document) -> None:
    """The curves, what is recommended, and the lines for the settings file."""
    print(plain(f"{document['pairs']} labelled pairs, embedding model {document['model']}"))
    for name, measure in document["measures"].items():
        _measure(name, measure)
    if document["recommended"]:
        print("\nFor slowwave.toml:")
        print(document["settings"])
    for item in document["rejected"][:_REJECTS_SHOWN]:
        say(f"{item['file']}: {item['number']}: {item['reason']}")
    if len(document["rejected"]) > _REJECTS_SHOWN:
        say(f"… and {len(document['rejected']) - _REJECTS_SHOWN} more; --json lists all")


def _measure(name: str, measure: Document) -> None:
    print()
    if not measure["curve"]:
        print(f"{name}: {measure['reason']}")
        return
    print_table(
        f"{name}: {measure['together']} cases that belong together, {measure['apart']} that do not",
        ("threshold", "precision", "recall", "F1", "", ""),
        (
            (
                f"{point['threshold']:.2f}",
                _share(point["precision"]),
                _share(point["recall"]),
                _share(point["f1"]),
                "█" * round(20 * point["f1"]),
                _mark(point, measure),
            )
            for point in _shown(measure)
        ),
        empty="",
    )
    print(f"  precision 0 {_line(point['precision'] for point in measure['curve'][::2])} 1")
    print(f"  recall    0 {_line(point['recall'] for point in measure['curve'][::2])} 1")
    if measure["reason"]:
        print(f"  nothing is recommended: {measure['reason']}")


def _shown(measure: Document) -> list[Document]:
    """The rows from the last threshold that loses nothing to the first that loses all, and what is marked."""
    marked = {point["threshold"]: point for point in (measure["current"], measure["recommended"]) if point}
    rows = {point["threshold"]: point for point in measure["curve"][::_EVERY]}
    full = max((threshold for threshold, point in rows.items() if point["recall"] == 1), default=0.0)
    none = min((threshold for threshold, point in rows.items() if point["recall"] == 0), default=1.0)
    kept = {threshold: point for threshold, point in rows.items() if full <= threshold <= none} | marked
    return [kept[threshold] for threshold in sorted(kept)]


def _mark(point: Document, measure: Document) -> str:
    at = {"now": measure["current"], "recommended": measure["recommended"]}
    return ", ".join(word for word, other in at.items() if other and other["threshold"] == point["threshold"])


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _line(values: Iterable[float | None]) -> str:
    return "".join(" " if value is None else _BARS[round(value * (len(_BARS) - 1))] for value in values)
