"""How well the risk tagger reads: precision and recall on labelled sentences, beside substring matching.

The half that is held out is counted over and never shown. `python -m tests.benchmarks.risk --help`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from memory_core.sleep.risk_markers import RiskMarkers

SENTENCES = Path(__file__).parents[1] / "data" / "risk_sentences"
HALVES = ("tuned", "held_out")

SUBSTRINGS = ("risk", "danger", "failure", "loss", "negative", "decline", "warning", "critical", "error", "threat")
"""What the peer looks for, anywhere inside a word."""


def sentences(half: str) -> list[dict[str, Any]]:
    """The labelled sentences of one half: text, label, kind, area, language."""
    return [json.loads(line) for line in (SENTENCES / f"{half}.jsonl").read_text("utf-8").splitlines()]


def is_tagged(sentence: dict[str, Any]) -> bool:
    """Whether the tagger, with the list of the sentence's language, tags it."""
    return bool(RiskMarkers.of((sentence["language"],)).words(sentence["text"]))


def holds_substring(sentence: dict[str, Any]) -> bool:
    """Whether one of the peer's markers stands anywhere in the text."""
    return any(marker in sentence["text"].lower() for marker in SUBSTRINGS)


def measure(half: str) -> dict[str, Any]:
    """Precision, recall and F1 of one half for each language, and the share tagged of each kind."""
    found = sentences(half)
    languages = sorted({sentence["language"] for sentence in found})
    of = {language: [each for each in found if each["language"] == language] for language in languages}
    return {
        "tagger": {language: _score(of[language], is_tagged) for language in languages},
        "substrings": {language: _score(of[language], holds_substring) for language in languages},
        "tagged_by_kind": {
            kind: round(sum(map(is_tagged, same)) / len(same), 3)
            for kind in sorted({each["kind"] for each in found})
            if (same := [each for each in found if each["kind"] == kind])
        },
    }


def _score(found: Iterable[dict[str, Any]], tags: Callable[[dict[str, Any]], bool]) -> dict[str, float]:
    judged = [(tags(sentence), sentence["label"]) for sentence in found]
    right = sum(tagged and label for tagged, label in judged)
    precision = right / max(sum(tagged for tagged, _ in judged), 1)
    recall = right / max(sum(label for _, label in judged), 1)
    return {
        "sentences": len(judged),
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(2 * precision * recall / max(precision + recall, 1e-9), 3),
    }


def main() -> None:
    """Print both halves' figures; with `--errors`, what the tagger gets wrong in the half that may be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--errors", action="store_true", help="list the wrong ones of the tuned half")
    parser.add_argument("--json", action="store_true", help="print JSON (there is no other form)")
    given = parser.parse_args()
    document: dict[str, Any] = {half: measure(half) for half in HALVES}
    if given.errors:
        wrong = [each for each in sentences("tuned") if is_tagged(each) != each["label"]]
        document["errors"] = [
            f"{'missed' if each['label'] else 'false'} ({each['kind']}): {each['text']}" for each in wrong
        ]
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
