"""How right the beliefs are: what is found, what is taken out wrongly, and what is recalled, set by set.

Everything goes through the product: import, `harmonize` and recall on an embedded Postgres, with the embedding
`minilm` and no language model. `python -m tests.benchmarks.beliefs --help`; progress goes to stderr. The public sets
stand in the folder `--data`; those that are not there are skipped with a reason. What is held out is only counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import belief_dialogues, belief_facts, belief_pairs
from tests.benchmarks.belief_store import BeliefStore

DATA = Path(os.environ.get("SLOWWAVE_EVAL_DATA") or Path(__file__).parents[3] / "shared" / "data")
"""Where the public sets are looked for unless told otherwise."""


def sections(data: Path, *, show: bool = False) -> dict[str, tuple[str, Callable[[BeliefStore], Awaitable[Any]]]]:
    """Each section's name, with the file it needs (empty for none) and what measures it."""
    return {
        "factconsolidation": (belief_facts.FACTS, lambda store: belief_facts.factconsolidation(store, data)),
        "reworded": ("", lambda store: belief_facts.reworded(store, show=show)),
        "locomo": (belief_dialogues.OBSERVED, lambda store: belief_dialogues.locomo(store, data, show=show)),
        "planted": ("", belief_pairs.planted),
        "pairs": ("", lambda store: belief_pairs.pairs(store, show=show)),
        "beam": (belief_dialogues.MESSAGES, lambda store: belief_dialogues.beam(store, data, show=show)),
    }


def measure(only: Sequence[str] = (), *, data: Path = DATA, show: bool = False) -> dict[str, Any]:
    """Measure the named sections, or all; each on a store of its own, with its seconds."""
    return asyncio.run(_measure(only, data, show))


async def _measure(only: Sequence[str], data: Path, show: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (needs, section) in sections(data, show=show).items():
        if only and name not in only:
            continue
        if needs and not (data / needs).is_file():
            found[name] = {"skipped": f"{needs} is not in the folder given by --data"}
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        started = time.perf_counter()
        async with BeliefStore.open() as store:
            found[name] = await section(store)
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(sections(DATA)), default=[])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the public sets (default: %(default)s)")
    parser.add_argument(
        "--show", action="store_true", help="print the texts of what was found wrong or missed, held-out sets excepted"
    )
    asked = parser.parse_args()
    json.dump(measure(asked.only, data=asked.data, show=asked.show), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
