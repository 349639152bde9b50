"""The call cache: a model's answers by the content of the question, a scope's own, and the audit of every attempt.

It is read and written in short transactions of its own, never inside a step's, so that an answer that was paid for
outlives a killed run. Only usable answers are kept to be used again: the caller stores an answer after it could be
read. Every attempt leaves a row of the audit, with the text of an answer that was of no use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.errors import ModelUnreachable
from memory_core.models.budgets import Usage
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.scope import TenantScope

CacheMode = Literal["live", "replay", "replay-or-live"]
"""`live` uses no answer but those that the same run was given, `replay` asks never, `replay-or-live` asks only what is
not kept yet."""

LONGEST_UNUSABLE_ANSWER = 20_000
"""Characters kept of an answer that was of no use."""

_FIND = """
SELECT answer, model, prompt_tokens, completion_tokens, cost, finish_reason, duration_ms FROM model_calls
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND cache_key = :key
  AND (NOT CAST(:own_only AS boolean) OR run_id = CAST(:run AS uuid))
"""

_KEPT = """
SELECT cache_key FROM model_calls
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND cache_key = ANY(:keys)
  AND (NOT CAST(:own_only AS boolean) OR run_id = CAST(:run AS uuid))
"""

_STORE = """
INSERT INTO model_calls (tenant_id, cache_key, scope_path, purpose, model, request, answer, finish_reason,
                         prompt_tokens, completion_tokens, cost, duration_ms, run_id)
VALUES (:tenant_id, :key, :scope_path, :purpose, :model, CAST(:request AS jsonb), :answer, :finish_reason,
        :prompt_tokens, :completion_tokens, CAST(:cost AS numeric), :duration_ms, CAST(:run AS uuid))
ON CONFLICT (tenant_id, scope_path, cache_key) DO UPDATE
SET answer = excluded.answer, model = excluded.model, finish_reason = excluded.finish_reason,
    prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens, cost = excluded.cost,
    duration_ms = excluded.duration_ms, run_id = excluded.run_id, called_at = clock_timestamp()
"""

_ATTEMPTED = """
INSERT INTO model_attempts (tenant_id, scope_path, cache_key, purpose, model, outcome, answer, prompt_tokens,
                            completion_tokens, cost, duration_ms, run_id)
VALUES (:tenant_id, :scope_path, :key, :purpose, :model, :outcome, CAST(:answer AS text), :prompt_tokens,
        :completion_tokens, CAST(:cost AS numeric), :duration_ms, CAST(:run AS uuid))
"""


class CallCache:
    """The kept answers of one scope.

    Args:
        run_id: the run that pays for what is stored; None where a question outside of a run does.
    """

    def __init__(self, database: Database, scope: TenantScope, run_id: UUID | None, mode: CacheMode) -> None:
        self._database = database
        self._scope = scope
        self._run_id = run_id
        self._mode = mode

    @property
    def replay_only(self) -> bool:
        """Whether nobody may be asked."""
        return self._mode == "replay"

    async def find(self, request: ModelRequest) -> ModelAnswer | None:
        """The kept answer; None where there is none, or in mode `live` none of this run.

        Raises:
            ModelUnreachable: mode `replay`, and the question was never asked before.
        """
        async with self._database.scoped(self._scope) as connection:
            row = await connection.row(_FIND, key=request.cache_key(), **self._whose())
        if row is not None:
            return ModelAnswer(
                text=row["answer"],
                model=row["model"],
                prompt_tokens=row["prompt_tokens"],
                completion_tokens=row["completion_tokens"],
                cost=None if row["cost"] is None else float(row["cost"]),
                finish_reason=row["finish_reason"],
                duration_ms=row["duration_ms"],
            )
        if self._mode == "replay":
            raise ModelUnreachable(
                "The call is not in the cache, and the mode is replay.",
                hint="Use model_cache = replay-or-live to ask what was never asked.",
            )
        return None

    async def kept(self, requests: Sequence[ModelRequest]) -> set[str]:
        """The keys of those requests that `find` would answer."""
        keys = [request.cache_key() for request in requests]
        async with self._database.scoped(self._scope) as connection:
            return {row["cache_key"] for row in await connection.rows(_KEPT, keys=keys, **self._whose())}

    async def store(self, request: ModelRequest, answer: ModelAnswer, usage: Usage | None = None) -> None:
        """Keep a usable answer, and count the attempt.

        Args:
            usage: what the attempt came to; None for what the provider said.
        """
        asked = {
            "system": request.system,
            "prompt": request.prompt,
            "temperature": request.temperature,
            "max_output_tokens": request.max_output_tokens,
            "schema_version": request.schema_version,
        }
        said = Usage(answer.prompt_tokens, answer.completion_tokens, answer.cost)
        async with self._database.scoped(self._scope) as connection:
            await connection.execute(
                _STORE,
                request=json.dumps(asked),
                answer=_printable(answer.text),
                finish_reason=answer.finish_reason,
                **self._paid(request, answer.model, said, answer.duration_ms),
            )
            attempt = self._paid(request, answer.model, usage or said, answer.duration_ms)
            await connection.execute(_ATTEMPTED, outcome="usable", answer=None, **attempt)
            await connection.commit()

    async def record_failure(
        self,
        request: ModelRequest,
        outcome: str,
        *,
        model: str,
        usage: Usage,
        answer: str | None = None,
        duration_ms: int = 0,
    ) -> None:
        """Count an attempt that brought nothing usable; its answer is kept to be looked at, never to be used.

        Args:
            outcome: a value of `model_attempts.outcome`.
        """
        kept = None if answer is None else _printable(answer[:LONGEST_UNUSABLE_ANSWER])
        async with self._database.scoped(self._scope) as connection:
            await connection.execute(
                _ATTEMPTED, outcome=outcome, answer=kept, **self._paid(request, model, usage, duration_ms)
            )
            await connection.commit()

    def _whose(self) -> dict[str, Any]:
        # Each attempt of a run in mode `live` is its own, so that a run that is tried again pays once.
        return {"own_only": self._mode == "live", "run": self._run_id}

    def _paid(self, request: ModelRequest, model: str, usage: Usage, duration_ms: int) -> dict[str, Any]:
        return {
            "key": request.cache_key(),
            "purpose": request.purpose,
            "model": model,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": None if usage.cost is None else f"{usage.cost:.6f}",
            "duration_ms": duration_ms,
            "run": self._run_id,
        }


def _printable(text: str) -> str:
    """The text without a NUL or half a surrogate pair: Postgres cannot hold them, and what was paid for must stay."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
