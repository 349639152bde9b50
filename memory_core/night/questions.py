"""Questions to the store, by the names that the reference documents use: recall, and reflect.

They take the embedding and the language model from the settings, as a night does, and belong to no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory_core.database.engine import Database
from memory_core.errors import InvalidInput
from memory_core.models.budgets import Budget, BudgetSettings
from memory_core.models.call_cache import CallCache
from memory_core.models.paid_model import PaidModel
from memory_core.night.context import embedding_for, language_for, settings_of_scope
from memory_core.retrieval import search
from memory_core.runs.ledger import utc
from memory_core.scope import TenantScope
from memory_core.shmr.facts import read_facts
from memory_core.shmr.reflect import NAME, Asker, ReflectSettings, reflect_on


async def recall(
    database: Database,
    scope: TenantScope,
    query: str,
    *,
    k: int = 10,
    harmonic: bool = False,
    as_of: datetime | None = None,
    record: bool = True,
) -> dict[str, Any]:
    """What the scope knows that is nearest to a question: current memories, and held or contested beliefs.

    Args:
        k: results at most, 1 to 1,000.
        harmonic: let a belief stand for the memories it rests on, and list the nearest beliefs by themselves too.
        as_of: answer as at this time; nothing is recorded then. None for the present.
        record: whether what is returned counts as used.

    Returns:
        as `retrieval.search.recall`.

    Raises:
        InvalidInput: the question is blank, or `k` is out of its range.
    """
    return await search.recall(
        database,
        scope,
        embedding_for(database.settings),
        query,
        now=datetime.now(UTC),
        k=k,
        as_of=as_of,
        record=record,
        harmonic=harmonic,
    )


async def reflect(
    database: Database,
    scope: TenantScope,
    question: str,
    facts: Sequence[Mapping[str, Any]] | None = None,
    top_k: int = 10,
    *,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """Answer a question in a few sentences, each citing what it rests on. Nothing is stored but a model's answer.

    Args:
        facts: what to answer from, in the form of recall's `results`; None to recall them, an empty list for none.
        top_k: facts at most, 1 to 1,000.
        as_of: answer as at this time; None for the present.

    Returns:
        as `shmr.reflect.reflect_on`; `status` tells a model's answer from statements that stand in for one, and both
        from a question that nothing is known about.

    Raises:
        InvalidInput: the question is blank or too long, `top_k` out of its range, or a fact not valid.
        InvalidSettings: a setting of `reflect`, of the budget or the model's name is not valid.
        EmbeddingMismatch: the stored vectors have another dimension than the configured model's.
    """
    if not 1 <= top_k <= search.LARGEST_K:
        raise InvalidInput(f"top_k must be from 1 to {search.LARGEST_K}; it is {top_k}.")
    asked_at = utc(as_of) if as_of is not None else datetime.now(UTC)
    embedding = embedding_for(database.settings)
    notes: list[str] = []
    if facts is None:
        found = await search.recall(
            database, scope, embedding, question, now=asked_at, k=top_k, as_of=as_of, record=False, harmonic=True
        )
        facts = found["results"]
        if found["without_vector"]:
            notes.append(f"Current memories without a vector, which were not searched: {found['without_vector']}.")
    known, left_out = read_facts(list(facts)[:top_k])
    own = await settings_of_scope(database, scope)
    language = language_for(database.settings, own, {})
    asker = None
    if language is not None:
        cache = CallCache(database, scope, None, database.settings.model_cache)
        asker = Asker(PaidModel(language, cache, Budget(await _limits(database, scope, own))), embedding)
    return await reflect_on(
        question,
        known,
        settings=database.settings.section(NAME, ReflectSettings, tenant=own),
        asker=asker,
        as_of=asked_at,
        notes=notes,
        left_out=left_out,
    )


async def _limits(database: Database, scope: TenantScope, own: Mapping[str, Any]) -> BudgetSettings:
    """What one question may spend: a run's limits, since it is paid for like one."""
    async with database.scoped(scope) as connection:
        budgets = await connection.scalar("SELECT budgets FROM tenants WHERE tenant_id = :tenant_id")
    section = own.get("budget", {})
    if isinstance(section, Mapping):
        section = {**(budgets or {}), **section}
    return database.settings.section("budget", BudgetSettings, tenant={"budget": section})
