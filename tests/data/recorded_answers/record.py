"""Asks a real model about the recorded memories, and keeps its answers: run it where a prompt has changed.

    SLOWWAVE_TEST_MODEL=openai/name SLOWWAVE_TEST_MODEL_BASE=http://127.0.0.1:8080/v1 \
        python -m tests.data.recorded_answers.record NAME "which weights, under what licence"

It works in a folder of its own that it removes, and writes NAME.json beside this file.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.database.engine import Database
from memory_core.database.migrate import migrate
from memory_core.models.embedding import embedding_provider
from memory_core.models.language import language_model
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.shmr.prompt import PROMPT_VERSION
from tests.recorded import Recording, RecordingModel, import_memories
from tests.shmr_runs import harmonize

EMBEDDING = "minilm"
SCOPE = TenantScope.root("tenant", "acme")


async def record(name: str, weights: str, home: Path) -> None:
    """Import the memories into a fresh store, harmonize them with the model, and write what it answered."""
    named = os.environ["SLOWWAVE_TEST_MODEL"]
    base = os.environ.get("SLOWWAVE_TEST_MODEL_BASE")
    asked = language_model(named, api_base=base, api_key=os.environ.get("SLOWWAVE_TEST_MODEL_KEY"), timeout=600)
    if asked is None:
        raise SystemExit("SLOWWAVE_TEST_MODEL names no model.")
    model = RecordingModel(asked)
    embedding = embedding_provider(EMBEDDING)
    async with Database.open(Settings.load(home=home, embedding=EMBEDDING)) as database:
        await asyncio.to_thread(migrate, database.url)
        await import_memories(database, SCOPE, embedding)
        run = await harmonize(database, SCOPE, embedding=embedding, language=model)
    path = Recording(model.name, weights, PROMPT_VERSION, tuple(model.answers)).write(name)
    print(f"{len(model.answers)} answers in {path.name}; clusters: {run.summary['clusters']}")


def main() -> None:
    """The command line."""
    if len(sys.argv) != 3 or not os.environ.get("SLOWWAVE_TEST_MODEL"):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            asyncio.run(record(sys.argv[1], sys.argv[2], home))
        finally:
            EmbeddedPostgres(home).stop()


if __name__ == "__main__":
    main()
