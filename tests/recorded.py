"""Answers that a real model gave once: recorded, read back, put into the call cache, and given again without a model.

A recording is a JSON file in `tests/data/recorded_answers`: the model, and each of its answers under the cache key of
the question. The memories that the questions are about stand beside it, in `memories.jsonl`. `record.py` there makes
a recording anew.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memory_core.database.engine import Database
from memory_core.errors import ModelOutputInvalid, ModelUnreachable
from memory_core.interchange.importing import import_file
from memory_core.models.embedding import EmbeddingProvider
from memory_core.models.language import LanguageModel, ModelAnswer, ModelRequest
from memory_core.scope import TenantScope
from tests.builders import NIGHT

FOLDER = Path(__file__).parent / "data" / "recorded_answers"
MEMORIES = FOLDER / "memories.jsonl"

_KEEP = """
INSERT INTO model_calls (tenant_id, scope_path, cache_key, purpose, model, request, answer, finish_reason,
                         prompt_tokens, completion_tokens, duration_ms)
SELECT :tenant_id, :scope_path, a.key, a.purpose, :model, '{}', a.text, 'stop', a.prompt_tokens, a.completion_tokens,
       a.duration_ms
FROM jsonb_to_recordset(CAST(:answers AS jsonb)) AS a(key text, purpose text, text text, prompt_tokens integer,
     completion_tokens integer, duration_ms integer)
"""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer as it came.

    Attributes:
        key: the question, as `ModelRequest.cache_key`.
        purpose: what it was asked for.
        text: what the model said; empty where nothing usable came.
        unusable: `truncated`, `empty` or another reason of `ModelOutputInvalid`; empty for an answer that ended well.
    """

    key: str
    purpose: str
    text: str
    unusable: str
    prompt_tokens: int
    completion_tokens: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What one model answered in one night.

    Attributes:
        model: its configured name; a part of every key.
        weights: which weights, and under what licence.
        prompt_version: of the prompts that were asked.
        answers: in the order in which they came; the same question may stand there again.
    """

    model: str
    weights: str
    prompt_version: int
    answers: tuple[RecordedAnswer, ...]

    @classmethod
    def read(cls, name: str) -> Recording:
        """The recording of this name."""
        document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        answers = tuple(RecordedAnswer(**each) for each in document["answers"])
        return cls(document["model"], document["weights"], document["prompt_version"], answers)

    def write(self, name: str) -> Path:
        """Keep it under this name; returns the file."""
        path = FOLDER / f"{name}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


async def import_memories(database: Database, scope: TenantScope, embedding: EmbeddingProvider) -> None:
    """The memories of the recordings; their ids, and so the questions, are the same in every store."""
    report = await import_file(database, embedding, MEMORIES, now=NIGHT, scope=scope)
    assert report.rejects == [], report.rejects


async def keep_answers(database: Database, scope: TenantScope, recording: Recording) -> int:
    """Put every answer that ended well into the scope's call cache; returns how many questions they answer."""
    kept = {each.key: asdict(each) for each in recording.answers if not each.unusable}
    async with database.scoped(scope) as connection:
        await connection.execute(_KEEP, model=recording.model, answers=json.dumps(list(kept.values())))
        await connection.commit()
    return len(kept)


class RecordedModel:
    """Gives the recorded answers again, those to the same question in their order; it reaches no server."""

    def __init__(self, recording: Recording) -> None:
        self.name = recording.model
        self._left: dict[str, deque[RecordedAnswer]] = defaultdict(deque)
        for each in recording.answers:
            self._left[each.key].append(each)

    @property
    def left(self) -> int:
        """Answers that nobody has asked for yet."""
        return sum(map(len, self._left.values()))

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The next recorded answer to the question.

        Raises:
            ModelOutputInvalid: what came then could not be used.
            ModelUnreachable: the question was never asked.
        """
        answers = self._left[request.cache_key()]
        if not answers:
            raise ModelUnreachable(
                f"No answer is recorded to this question: {request.prompt[:200]}", hint="Record the answers anew."
            )
        return given(answers.popleft(), self.name)

    async def check(self) -> None:
        """A recording is always there."""


class RecordingModel:
    """Asks another model, and records what it answers."""

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.answers: list[RecordedAnswer] = []
        self._model = model

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """What the other model answers; raises what it raises."""
        try:
            answer = await self._model.complete(request)
        except ModelOutputInvalid as error:
            said = error.data
            self._note(request, str(said.get("answer") or ""), said, str(said["reason"]))
            raise
        self._note(request, answer.text, asdict(answer), "")
        return answer

    async def check(self) -> None:
        """As the other model."""
        await self._model.check()

    def _note(self, request: ModelRequest, text: str, usage: dict[str, Any], unusable: str) -> None:
        numbers = {name: int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens", "duration_ms")}
        self.answers.append(RecordedAnswer(request.cache_key(), request.purpose, text, unusable, **numbers))


def given(answer: RecordedAnswer, model: str) -> ModelAnswer:
    """The answer as a model gives it.

    Raises:
        ModelOutputInvalid: it could not be used.
    """
    usage = (answer.prompt_tokens, answer.completion_tokens)
    if answer.unusable:
        raise ModelOutputInvalid(
            f"The recorded answer was {answer.unusable}.",
            reason=answer.unusable,
            model=model,
            answer=answer.text,
            prompt_tokens=usage[0],
            completion_tokens=usage[1],
            cost=None,
            duration_ms=answer.duration_ms,
        )
    return ModelAnswer(answer.text, model, *usage, None, "stop", answer.duration_ms)
