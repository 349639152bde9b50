"""What clustering costs beside a peer's and beside the bare matrix product that it cannot do without.

Each measurement runs in a process of its own, for its peak memory. Processor seconds of all threads are compared, not
the clock's: they say the same on a machine that others use too.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_core.layers.components import BLOCK_ROWS
from memory_core.shmr.candidates import Candidate
from memory_core.shmr.clustering import cluster
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.slots import Slot

Vectors = NDArray[np.float32]

SHAPES = ("groups", "giant", "none")
"""Topics of five at a cosine of about 0.9, everything alike, and nothing alike."""

DIMENSION = 384
SAID_AT = datetime(2026, 1, 1, tzinfo=UTC)


def measure(count: int, shape: str, *, slots: bool = False, shuffled: bool = False) -> dict[str, Any]:
    """Cluster so many candidates in a fresh process.

    Args:
        slots: with a slot and a slot vector each, so that two kinds of vector are compared; else content alone.
        shuffled: memories of one topic stand apart from one another, as they do in life.

    Returns:
        processor seconds of clustering and of the bare blocked product over as many kinds of vector, their ratio,
        seconds by the clock, the clusters found, and the peak of additional memory in MB.
    """
    asked = json.dumps({"count": count, "shape": shape, "slots": slots, "shuffled": shuffled})
    finished = subprocess.run(
        [sys.executable, "-m", __name__, asked], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def measure_peer(python: str, script: Path, count: int, shapes: Iterable[str], *, timeout: int) -> dict[str, Any]:
    """Processor seconds of the peer's clustering by shape, by the peer's own benchmark.

    Args:
        python: the interpreter of the environment in which the peer is installed.
        script: the peer's benchmark, which takes `--n`, `--shape`, `--llm`, `--timeout` and `--json`.

    Raises:
        RuntimeError: the peer's benchmark failed; its last words are in the message.
    """
    found = {}
    for shape in shapes:
        with tempfile.NamedTemporaryFile(suffix=".json") as answer:
            command = [python, str(script), "--n", str(count), "--shape", shape, "--llm", "empty"]
            finished = subprocess.run(
                [*command, "--timeout", str(timeout), "--json", answer.name],
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            written = answer.read()
        rows = json.loads(written) if finished.returncode == 0 and written else []
        if len(rows) != 1:
            raise RuntimeError(f"The peer's benchmark failed: {(finished.stderr or finished.stdout).strip()[-2000:]}")
        row = rows[0]
        found[shape] = {name: row[name] for name in ("cluster_cpu_s", "cluster_s", "clusters", "largest")}
    return found


def vectors_of(count: int, shape: str, *, shuffled: bool, seed: int = 7) -> tuple[Vectors, NDArray[np.intp]]:
    """Vectors of the shape, and the topic of each; rows of length 1, made as the peer's benchmark makes them."""
    chance = np.random.default_rng(seed)
    topics = np.arange(count) // {"groups": 5, "giant": count, "none": 1}[shape]
    if shuffled:
        chance.shuffle(topics)
    centres = _unit(chance.standard_normal((int(topics.max()) + 1, DIMENSION), dtype=np.float32))
    found = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, BLOCK_ROWS):
        rows = topics[start : start + BLOCK_ROWS]
        noise = _unit(chance.standard_normal((len(rows), DIMENSION), dtype=np.float32))
        found[start : start + BLOCK_ROWS] = _unit(centres[rows] + np.float32(0.33) * noise)
    return found, topics


def blocked_product(vectors: Vectors) -> None:
    """Every pair of rows multiplied once, block by block, and nothing done with it."""
    starts = range(0, len(vectors), BLOCK_ROWS)
    for left in starts:
        for right in starts[left // BLOCK_ROWS :]:
            np.matmul(vectors[left : left + BLOCK_ROWS], vectors[right : right + BLOCK_ROWS].T)


def _unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _measured(count: int, shape: str, *, slots: bool, shuffled: bool) -> dict[str, Any]:
    content, topics = vectors_of(count, shape, shuffled=shuffled)
    about = vectors_of(count, shape, shuffled=shuffled)[0] if slots else None
    candidates = [_candidate(number, int(topic), has_triple=slots) for number, topic in enumerate(topics)]
    # One subject, and a predicate of its own for each: only the vectors say which belong together.
    said = [Slot("user", f"p{number}", f"v{topic}") if slots else None for number, topic in enumerate(topics)]
    settings = ShmrSettings()
    _warm()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    clusters = cluster(candidates, said, content, about, settings)
    seconds, processor = time.perf_counter() - started, time.process_time() - cpu
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    cpu = time.process_time()
    for each in (content,) if about is None else (content, about):
        blocked_product(each)
    product = time.process_time() - cpu
    return {
        "candidates": count,
        "shape": shape,
        "kinds_of_vector": 2 if slots else 1,
        "shuffled": shuffled,
        "clusters": len(clusters),
        "cpu_seconds": round(processor, 3),
        "seconds": round(seconds, 3),
        "product_cpu_seconds": round(product, 3),
        "times_product": round(processor / max(product, 1e-9), 2),
        "peak_extra_memory_mb": round(peak, 1),
    }


def _warm() -> None:
    """Import what clustering imports when it first splits a component, and start the threads."""
    some = vectors_of(600, "giant", shuffled=False)[0]
    cluster([_candidate(n, 0, has_triple=False) for n in range(600)], [None] * 600, some, None, ShmrSettings())
    blocked_product(np.ones((2 * BLOCK_ROWS, DIMENSION), np.float32))


def _candidate(number: int, topic: int, *, has_triple: bool) -> Candidate:
    return Candidate(
        memory_id=UUID(int=number + 1),
        version=1,
        content_hash=str(number),
        layer="semantic",
        content=f"topic {topic} item {number}",
        subject="user" if has_triple else None,
        predicate=f"p{number}" if has_triple else None,
        object=f"v{topic}" if has_triple else None,
        observed_at=SAID_AT,
        confidence=0.7,
        source=None,
    )


if __name__ == "__main__":
    json.dump(_measured(**json.loads(sys.argv[1])), sys.stdout)
