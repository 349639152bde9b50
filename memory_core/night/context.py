"""What a run works with, built from settings and from the tenant's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memory_core.database.engine import Database
from memory_core.errors import InvalidSettings
from memory_core.models.embedding import EmbeddingProvider, embedding_provider
from memory_core.models.language import LanguageModel, language_model
from memory_core.models.pacing import paced
from memory_core.runs.context import Run, RunContext
from memory_core.scope import TenantScope
from memory_core.settings import SETTINGS_FILE, Settings

SHMR_MODEL_VARIABLES = ("SLOWWAVE_SHMR_MODEL", "MNEMOSYNE_SHMR_MODEL", "SHMR_MODEL")


@lru_cache(maxsize=8)
def embedding_of(name: str, api_base: str, api_key: str) -> EmbeddingProvider:
    """The embedding provider of the settings; one a process, since loading its weights takes a while."""
    return embedding_provider(name, api_base=api_base or None, api_key=api_key or None)


def embedding_for(settings: Settings) -> EmbeddingProvider:
    """The embedding provider of the settings."""
    return embedding_of(settings.embedding, settings.embedding_api_base, settings.embedding_api_key)


def language_for(
    settings: Settings, tenant_settings: Mapping[str, Any], asked: Mapping[str, Any]
) -> LanguageModel | None:
    """The language model SHMR asks; None for rules alone.

    This run's, the tenant's, the environment's (`SHMR_MODEL_VARIABLES`), the file's (`model` in `[shmr]`), else the
    general one.

    Raises:
        InvalidSettings: a name is not valid.
    """
    named = (
        _model_in(asked.get("settings", {})),
        _model_in(tenant_settings),
        *(os.environ.get(variable) for variable in SHMR_MODEL_VARIABLES),
        _model_in({"shmr": settings.table("shmr")}),
        settings.model,
    )
    language = language_model(
        next((name for name in named if name), ""),
        api_base=settings.model_api_base or None,
        api_key=settings.model_api_key or None,
        timeout=settings.model_timeout,
    )
    if language is None:
        return None
    return paced(language, settings.model_requests_per_minute, settings.model_tokens_per_minute)


def language_named_by(settings: Settings) -> str:
    """What names the process's model for SHMR, for people: a variable, or the file's section `[shmr]`."""
    by_environment = next((name for name in SHMR_MODEL_VARIABLES if os.environ.get(name)), None)
    in_file = f"[shmr] in {SETTINGS_FILE}" if settings.table("shmr").get("model") else None
    return by_environment or in_file or "SLOWWAVE_MODEL"


async def settings_of_scope(database: Database, scope: TenantScope) -> dict[str, Any]:
    """The scope's own settings over its ancestors' over the tenant's, one key a section."""
    async with database.scoped(scope) as connection:
        tenant = await connection.scalar("SELECT settings FROM tenants WHERE tenant_id = :tenant_id")
        along_the_path = await connection.rows(
            "SELECT settings FROM scopes WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) "
            "ORDER BY depth"
        )
    merged: dict[str, Any] = {}
    for settings in (tenant or {}, *(row["settings"] for row in along_the_path)):
        for section, values in settings.items():
            known = merged.get(section)
            if isinstance(known, Mapping) and isinstance(values, Mapping):
                values = {**known, **values}
            merged[section] = values
    return merged


async def context_for(database: Database, run: Run) -> RunContext:
    """The context of a run, with the settings of its scope.

    Raises:
        InvalidSettings: the model's name is not valid.
    """
    return context_with(database, run, await settings_of_scope(database, run.scope))


def context_with(database: Database, run: Run, own: Mapping[str, Any]) -> RunContext:
    """The context of a run whose scope's settings are known already, as `settings_of_scope` gives them.

    Raises:
        InvalidSettings: the model's name is not valid.
    """
    return RunContext(
        run=run,
        settings=database.settings,
        embedding=embedding_for(database.settings),
        language=language_for(database.settings, own, run.parameters),
        tenant_settings=own,
    )


def _model_in(sections: Mapping[str, Any]) -> str:
    section = sections.get("shmr")
    name = section.get("model") if isinstance(section, Mapping) else None
    if name is not None and not isinstance(name, str):
        raise InvalidSettings(f"The model of SHMR is {name!r}, which is not a name.")
    return name or ""
