"""What every step does with the queue and the decisions: puts members back, and remembers what needs no second look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_core.database.scoped import ScopedConnection

_PUT_BACK = """
UPDATE harmonize_queue q SET harmonized_by_run = NULL
FROM memory_resonance_clusters c, jsonb_array_elements(c.members) AS member
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.cluster_id = ANY(:ids)
  AND q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.memory_id = CAST(member ->> 'memory_id' AS uuid)
  AND q.harmonized_by_run = :run_id
"""

# The run's own process closed nothing, so a later run closes for it what it had taken and not brought to an end.
_RECLAIM = """
WITH left_open AS (
  UPDATE memory_resonance_clusters c SET status = 'failed', reason = 'its run ended before it was finished'
  FROM runs r
  WHERE r.tenant_id = :tenant_id AND r.scope_path = :scope_path AND r.status = 'interrupted'
    AND c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = r.id
    AND c.status IN ('pending', 'proposed', 'accepted')
  RETURNING c.run_id, c.members
)
UPDATE harmonize_queue q SET harmonized_by_run = NULL
FROM left_open c, jsonb_array_elements(c.members) AS member
WHERE q.tenant_id = :tenant_id AND q.scope_path = :scope_path AND q.memory_id = CAST(member ->> 'memory_id' AS uuid)
  AND q.harmonized_by_run = c.run_id
"""

# A decision that a person took back stays the undo's own row: the journal restores its verdict.
_KEEP = """
INSERT INTO decisions AS d (tenant_id, scope_path, decision_key, phase, verdict, members, rules_version, run_id,
  decided_at, created_by_run)
SELECT :tenant_id, :scope_path, c.fingerprint, 'harmonize', :verdict,
       (SELECT jsonb_agg(member -> 'memory_id') FROM jsonb_array_elements(c.members) AS member),
       t.version, :run_id, :as_of, :run_id
FROM memory_resonance_clusters c
JOIN unnest(CAST(:ids AS text[]), CAST(:versions AS text[])) AS t(cluster_id, version) ON t.cluster_id = c.cluster_id
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.cluster_id = ANY(:ids)
ON CONFLICT (tenant_id, scope_path, decision_key) DO UPDATE
SET verdict = excluded.verdict, members = excluded.members, rules_version = excluded.rules_version,
    run_id = excluded.run_id, decided_at = excluded.decided_at
"""


async def put_back(connection: ScopedConnection, cluster_ids: Sequence[str]) -> None:
    """Let what this run took from the queue for these clusters wait again."""
    if cluster_ids:
        await connection.execute(_PUT_BACK, ids=list(cluster_ids))


async def reclaim(connection: ScopedConnection) -> int:
    """Let wait again what interrupted runs had taken from the queue and not brought to an end; returns how many."""
    return (await connection.execute(_RECLAIM)).rowcount


async def keep_decisions(connection: ScopedConnection, versions: Mapping[str, str], verdict: str) -> None:
    """Remember the verdict on clusters under their fingerprints: unchanged, they are not looked at again.

    Args:
        versions: of each cluster, by its id, the version of the rules or of the prompt that decided it.
    """
    if versions:
        await connection.execute(_KEEP, ids=list(versions), versions=list(versions.values()), verdict=verdict)
