"""How well the risk tagger reads: precision and recall on labelled sentences, beside substring matching.

What is held out is counted over and never shown. `python -m tests.benchmarks.risk --help`; the sentences, and the rule
by which they are labelled, are described in `tests/data/risk_sentences/README.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from memory_core.sleep.risk_markers import RiskMarkers

SENTENCES = Path(__file__).parents[1] / "data" / "risk_sentences"
HALVES = ("tuned", "held_out")
SETS = ("", "second_")
"""Before a half's name; the second set was written after the tagger had been tuned on the first."""

SUBSTRINGS = ("risk", "danger", "failure", "loss", "negative", "decline", "warning", "critical", "error", "threat")
"""What the peer looks for, anywhere inside a word."""


def sentences(half: str) -> list[dict[str, Any]]:
    """The labelled sentences of one file, by its name without the ending: text, label, kind, area, language."""
    return [json.loads(line) for line in (SENTENCES / f"{half}.jsonl").read_text("utf-8").splitlines()]


def is_tagged(sentence: dict[str, Any]) -> bool:
    """Whether the tagger, with the list of the sentence's language, tags it."""
    return bool(RiskMarkers.of((sentence["language"],)).words(sentence["text"]))


def holds_substring(sentence: dict[str, Any]) -> bool:
    """Whether one of the peer's markers stands anywhere in the text."""
    return any(marker in sentence["text"].lower() for marker in SUBSTRINGS)


def measure(half: str) -> dict[str, Any]:
    """The figures of one file of sentences, by `tagger` and beside them by `substrings`.

    Args:
        half: the file's name without its ending, such as `second_tuned`.

    Returns:
        for each language and for all of them: how many sentences, precision, recall and F1, each of 0 to 1; and the
        share tagged of each kind (of `risk` that is the recall, of every other kind the share of false alarms), and
        precision, recall and F1 of each area.
    """
    found = sentences(half)
    document: dict[str, Any] = {}
    for name, tags in (("tagger", is_tagged), ("substrings", holds_substring)):
        judged = [(each, tags(each)) for each in found]
        document[name] = _by("language", judged) | {"all": _score(judged)}
        document[f"{name}_by_area"] = _by("area", judged)
        document[f"{name}_tagged_by_kind"] = {
            kind: round(sum(tagged for _, tagged in same) / len(same), 3)
            for kind, same in _groups("kind", judged).items()
        }
    return document


Judged = list[tuple[dict[str, Any], bool]]
"""Sentences, each with whether it was tagged."""


def _groups(column: str, judged: Judged) -> dict[str, Judged]:
    groups: dict[str, Judged] = {}
    for sentence, tagged in judged:
        groups.setdefault(sentence[column], []).append((sentence, tagged))
    return dict(sorted(groups.items()))


def _by(column: str, judged: Judged) -> dict[str, dict[str, float]]:
    return {value: _score(same) for value, same in _groups(column, judged).items()}


def _score(judged: Judged) -> dict[str, float]:
    right = sum(tagged and sentence["label"] for sentence, tagged in judged)
    precision = right / max(sum(tagged for _, tagged in judged), 1)
    recall = right / max(sum(sentence["label"] for sentence, _ in judged), 1)
    return {
        "sentences": len(judged),
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(2 * precision * recall / max(precision + recall, 1e-9), 3),
    }


def errors() -> list[str]:
    """What the tagger gets wrong in the halves that may be read, one line each."""
    return [
        f"{'missed' if each['label'] else 'false'} ({half}, {each['kind']}): {each['text']}"
        for half in (f"{which}tuned" for which in SETS)
        for each in sentences(half)
        if is_tagged(each) != each["label"]
    ]


def main() -> None:
    """Print the figures; with `--show errors`, also what the tagger gets wrong in the halves that may be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=(*HALVES, "both"), default="both", help="which half of each set to measure")
    parser.add_argument("--show", choices=("errors",), help="list the wrong ones of the tuned halves, never others")
    parser.add_argument("--json", action="store_true", help="print JSON (there is no other form)")
    given = parser.parse_args()
    halves = HALVES if given.half == "both" else (given.half,)
    document: dict[str, Any] = {f"{which}{half}": measure(f"{which}{half}") for which in SETS for half in halves}
    if given.show:
        document["errors"] = errors()
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
