"""The call cache: a model's answers by the content of the question, a scope's own, and the audit of what was spent.

It is read and written in short transactions of its own, never inside a step's, so that an answer that was paid for
outlives a killed run. Only usable answers are kept: the caller stores an answer after it could be read.
"""

from __future__ import annotations

import json
from typing import Literal
from uuid import UUID

from memory_core.database.engine import Database
from memory_core.errors import ModelUnreachable
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.scope import TenantScope

CacheMode = Literal["live", "replay", "replay-or-live"]
"""`live` asks always, `replay` never, `replay-or-live` only what is not kept yet."""

_FIND = """
SELECT answer, model, prompt_tokens, completion_tokens, cost, finish_reason, duration_ms FROM model_calls
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND cache_key = :key
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

    async def find(self, request: ModelRequest) -> ModelAnswer | None:
        """The kept answer; None where there is none, or in mode `live`.

        Raises:
            ModelUnreachable: mode `replay`, and the question was never asked before.
        """
        if self._mode == "live":
            return None
        async with self._database.scoped(self._scope) as connection:
            row = await connection.row(_FIND, key=request.cache_key())
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

    async def store(self, request: ModelRequest, answer: ModelAnswer) -> None:
        """Keep a usable answer."""
        asked = {
            "system": request.system,
            "prompt": request.prompt,
            "temperature": request.temperature,
            "max_output_tokens": request.max_output_tokens,
            "schema_version": request.schema_version,
        }
        async with self._database.scoped(self._scope) as connection:
            await connection.execute(
                _STORE,
                key=request.cache_key(),
                purpose=request.purpose,
                model=answer.model,
                request=json.dumps(asked),
                # A NUL or half a surrogate pair, which Postgres cannot hold, must not lose what was paid for.
                answer=answer.text.replace("\0", "").encode("utf-8", "replace").decode("utf-8"),
                finish_reason=answer.finish_reason,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                cost=None if answer.cost is None else f"{answer.cost:.6f}",
                duration_ms=answer.duration_ms,
                run=self._run_id,
            )
            await connection.commit()
