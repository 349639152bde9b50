"""What a run works with, built from settings and from the tenant's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memory_core.database.engine import Database
from memory_core.models.embedding import EmbeddingProvider, embedding_provider
from memory_core.models.language import LanguageModel, language_model
from memory_core.runs.context import Run, RunContext
from memory_core.settings import Settings

SHMR_MODEL_VARIABLES = ("SLOWWAVE_SHMR_MODEL", "MNEMOSYNE_SHMR_MODEL", "SHMR_MODEL")


@lru_cache(maxsize=8)
def embedding_of(name: str, api_base: str, api_key: str) -> EmbeddingProvider:
    """The embedding provider of the settings; one a process, since loading its weights takes a while."""
    return embedding_provider(name, api_base=api_base or None, api_key=api_key or None)


def embedding_for(settings: Settings) -> EmbeddingProvider:
    """The embedding provider of the settings."""
    return embedding_of(settings.embedding, settings.embedding_api_base, settings.embedding_api_key)


def language_for(settings: Settings, tenant_settings: Mapping[str, Any], asked: Mapping[str, Any]) -> LanguageModel | None:
    """The language model SHMR asks: this run's, the tenant's, `SHMR_MODEL`, else the general one; None for rules alone."""
    named = (
        asked.get("settings", {}).get("shmr", {}).get("model"),
        tenant_settings.get("shmr", {}).get("model") if isinstance(tenant_settings.get("shmr"), Mapping) else None,
        *(os.environ.get(variable) for variable in SHMR_MODEL_VARIABLES),
        settings.model,
    )
    name = next(value for value in named if value)
    return language_model(
        name,
        api_base=settings.model_api_base or None,
        api_key=settings.model_api_key or None,
        timeout=settings.model_timeout,
    )


async def context_for(database: Database, run: Run) -> RunContext:
    """The context of a run: its scope's settings over its ancestors' over the tenant's."""
    async with database.scoped(run.scope) as connection:
        tenant = await connection.scalar("SELECT settings FROM tenants WHERE tenant_id = :tenant_id")
        along_the_path = await connection.rows(
            "SELECT settings FROM scopes WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) "
            "ORDER BY depth"
        )
    merged: dict[str, Any] = {}
    for settings in (tenant or {}, *(row["settings"] for row in along_the_path)):
        for section, values in settings.items():
            known = merged.get(section)
            both = isinstance(known, Mapping) and isinstance(values, Mapping)
            merged[section] = {**known, **values} if both else values
    return RunContext(
        run=run,
        settings=database.settings,
        embedding=embedding_for(database.settings),
        language=language_for(database.settings, merged, run.parameters),
        tenant_settings=merged,
    )
