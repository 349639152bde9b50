"""Runs every benchmark in turn, never two at once, and prints one JSON document."""

from __future__ import annotations

import json
import platform
import sys

from tests.benchmarks import night


def main() -> None:
    """Measure, and say on which machine."""
    found = {"machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}"}
    found["night"] = night.measure(memories=5_000)
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
