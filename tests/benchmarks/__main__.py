"""Runs every benchmark in turn, never two at once, and prints one JSON document; a quarter of an hour in all."""

from __future__ import annotations

import json
import sys

from tests.benchmarks import beliefs, cluster, night, prune, risk, sleep


def main() -> None:
    """Measure phases, a night, pruning, the risk tagger, beliefs and clustering; the machine is told with the first."""
    found = {
        "sleep": sleep.measure((5_000, 20_000)),
        "night": night.measure(memories=5_000),
        "prune": prune.measure(nights=60, without_ration=30, phases_only=True),
        "risk": {half: risk.measure(half) for half in ("tuned", "held_out", "second_tuned", "second_held_out")},
        "beliefs": beliefs.measure(),
        "cluster": cluster.measure(),
    }
    json.dump(found, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
