"""Every section of settings there is, so that all of them can be checked before a night."""

from __future__ import annotations

from pydantic import BaseModel

from memory_core.models.budgets import BudgetSettings
from memory_core.runs.guards import GuardSettings
from memory_core.settings import Settings
from memory_core.shmr.reflect import NAME as REFLECT
from memory_core.shmr.reflect import ReflectSettings
from memory_core.shmr.settings import ENVIRONMENT_ALIASES, ShmrSettings
from memory_core.sleep import (
    cooccurrence,
    decay,
    duplicate_merge,
    episodic_summaries,
    meta_nodes,
    pending_edges,
    promotion,
    prune_orphans,
    strengthen,
    tag_risk,
    working_expiry,
)
from memory_core.sleep.meta_rows import MetaNodesSettings

SECTIONS: dict[str, type[BaseModel]] = {
    strengthen.NAME: strengthen.StrengthenSettings,
    cooccurrence.NAME: cooccurrence.CooccurrenceSettings,
    tag_risk.NAME: tag_risk.TagRiskSettings,
    pending_edges.NAME: pending_edges.PendingEdgesSettings,
    prune_orphans.NAME: prune_orphans.PruneOrphansSettings,
    meta_nodes.NAME: MetaNodesSettings,
    decay.NAME: decay.DecaySettings,
    working_expiry.NAME: working_expiry.WorkingExpirySettings,
    episodic_summaries.NAME: episodic_summaries.EpisodicSummariesSettings,
    promotion.NAME: promotion.PromotionSettings,
    duplicate_merge.NAME: duplicate_merge.DuplicateMergeSettings,
    "shmr": ShmrSettings,
    REFLECT: ReflectSettings,
    "guards": GuardSettings,
    "budget": BudgetSettings,
}


def check_sections(settings: Settings) -> None:
    """Read each section of the process, from environment and file.

    Raises:
        InvalidSettings: a value is not valid, or a name is unknown.
    """
    for name, model in SECTIONS.items():
        settings.section(name, model, aliases=ENVIRONMENT_ALIASES if model is ShmrSettings else ())
