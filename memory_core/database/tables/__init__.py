"""The tables of the memory core, one module a subject; `registry.py` says how each is treated."""

from memory_core.database.tables.beliefs import (
    belief_embeddings,
    belief_evidence,
    decisions,
    harmonic_beliefs,
    harmonize_queue,
    memory_resonance_clusters,
    memory_resonance_log,
)
from memory_core.database.tables.memories import (
    memories,
    memory_accesses,
    memory_edges,
    memory_embeddings,
    memory_state,
    pending_connections,
)
from memory_core.database.tables.metadata import metadata
from memory_core.database.tables.people import corrections, skills, soul_profiles, soul_schemas, tools, triggers
from memory_core.database.tables.runs import model_attempts, model_calls, run_changes, run_steps, runs
from memory_core.database.tables.summaries import memory_summaries
from memory_core.database.tables.tenants import scopes, tenants

__all__ = [
    "belief_embeddings",
    "belief_evidence",
    "corrections",
    "decisions",
    "harmonic_beliefs",
    "harmonize_queue",
    "memories",
    "memory_accesses",
    "memory_edges",
    "memory_embeddings",
    "memory_resonance_clusters",
    "memory_resonance_log",
    "memory_state",
    "memory_summaries",
    "metadata",
    "model_attempts",
    "model_calls",
    "pending_connections",
    "run_changes",
    "run_steps",
    "runs",
    "scopes",
    "skills",
    "soul_profiles",
    "soul_schemas",
    "tenants",
    "tools",
    "triggers",
]
