"""What happens to memory: the core of Slowwave, usable without Prefect.

    from memory_core import Database, Settings, SleepConsolidator, TenantScope

    async with Database.open(Settings.load()) as database:
        report = await SleepConsolidator(database).run(TenantScope.root("tenant", "acme"))

Each name is loaded when it is first used: the command line imports this package on every start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_core.database.engine import Database
    from memory_core.night.library import (
        SleepConsolidator,
        get_resonance_log,
        harmonize,
        recall_beliefs,
    )
    from memory_core.night.questions import recall, reflect
    from memory_core.scope import ScopeLevel, TenantScope
    from memory_core.settings import Settings
    from memory_core.sleep.report import ConsolidationReport

__all__ = [
    "ConsolidationReport",
    "Database",
    "ScopeLevel",
    "Settings",
    "SleepConsolidator",
    "TenantScope",
    "get_resonance_log",
    "harmonize",
    "recall",
    "recall_beliefs",
    "reflect",
]

_MODULES = {
    "ConsolidationReport": "memory_core.sleep.report",
    "Database": "memory_core.database.engine",
    "ScopeLevel": "memory_core.scope",
    "Settings": "memory_core.settings",
    "SleepConsolidator": "memory_core.night.library",
    "TenantScope": "memory_core.scope",
    "get_resonance_log": "memory_core.night.library",
    "harmonize": "memory_core.night.library",
    "recall": "memory_core.night.questions",
    "recall_beliefs": "memory_core.night.library",
    "reflect": "memory_core.night.questions",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
