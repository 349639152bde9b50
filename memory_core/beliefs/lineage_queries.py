"""The statements behind `lineage.why`; each states the scope it may see by itself."""

from __future__ import annotations

MEMORY = """
SELECT m.*, s.importance, s.confidence, s.access_count
FROM memories m LEFT JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND (m.id = CAST(:id AS uuid) OR m.external_id = CAST(:external AS text))
ORDER BY m.scope_path = :scope_path DESC, m.is_latest DESC, m.recorded_at DESC, m.id LIMIT 1
"""

BELIEF = """
SELECT b.* FROM harmonic_beliefs b
WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths) AND b.belief_id = CAST(:id AS uuid)
"""

# UNION, not UNION ALL: a ring of supersessions must end too.
CHAIN = """
WITH RECURSIVE later(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT m.superseded_by, l.step + 1 FROM later l JOIN memories m ON m.tenant_id = :tenant_id AND m.id = l.id
  WHERE m.scope_path = ANY(:visible_paths) AND m.superseded_by IS NOT NULL AND l.step < 1000
), earlier(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT m.id, e.step - 1 FROM earlier e JOIN memories m ON m.tenant_id = :tenant_id AND m.superseded_by = e.id
  WHERE m.scope_path = ANY(:visible_paths) AND e.step > -1000
), steps AS (
  SELECT id, min(step) AS step FROM (SELECT * FROM later UNION SELECT * FROM earlier) AS both_ways GROUP BY id
)
SELECT s.step, m.id, m.external_id, m.content, m.observed_at, m.recorded_at, m.source, m.superseded_by,
       m.superseded_by_belief, m.superseded_reason, m.superseded_at, m.superseded_by_run, m.retired_at,
       m.retired_reason, m.retired_by_run, m.corrects
FROM steps s JOIN memories m ON m.tenant_id = :tenant_id AND m.id = s.id
WHERE m.scope_path = ANY(:visible_paths) ORDER BY s.step, m.observed_at, m.id LIMIT 200
"""

# The same over beliefs: what a belief took the place of, and what took its place.
BELIEF_CHAIN = """
WITH RECURSIVE later(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT b.superseded_by_belief, l.step + 1
  FROM later l JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.belief_id = l.id
  WHERE b.scope_path = ANY(:visible_paths) AND b.superseded_by_belief IS NOT NULL AND l.step < 1000
), earlier(id, step) AS (
  SELECT CAST(:id AS uuid), 0
  UNION
  SELECT b.belief_id, e.step - 1
  FROM earlier e JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.superseded_by_belief = e.id
  WHERE b.scope_path = ANY(:visible_paths) AND e.step > -1000
), steps AS (
  SELECT id, min(step) AS step FROM (SELECT * FROM later UNION SELECT * FROM earlier) AS both_ways GROUP BY id
)
SELECT s.step, b.belief_id, b.content, b.status, b.status_reason, b.confidence, b.valid_from, b.valid_to
FROM steps s JOIN harmonic_beliefs b ON b.tenant_id = :tenant_id AND b.belief_id = s.id
WHERE b.scope_path = ANY(:visible_paths) ORDER BY s.step, b.valid_from, b.belief_id LIMIT 200
"""

RESTING = """
SELECT b.belief_id, b.content, b.status, b.status_reason, b.confidence, e.role
FROM belief_evidence e JOIN harmonic_beliefs b ON b.tenant_id = e.tenant_id AND b.belief_id = e.belief_id
WHERE e.tenant_id = :tenant_id AND e.memory_id = CAST(:id AS uuid) AND b.scope_path = ANY(:visible_paths)
ORDER BY b.recorded_at DESC, b.belief_id
"""

REPLACED_BY_BELIEF = """
SELECT m.id, m.external_id, m.content, m.observed_at, m.superseded_reason
FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
  AND m.superseded_by_belief = CAST(:id AS uuid)
ORDER BY m.observed_at, m.id
"""

FORMER_BELIEFS = """
SELECT belief_id, content, status, status_reason, valid_from, valid_to FROM harmonic_beliefs
WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND superseded_by_belief = CAST(:id AS uuid)
ORDER BY valid_from, belief_id
"""

CLUSTERS_OF_MEMORY = """
SELECT c.* FROM memory_resonance_clusters c
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths)
  AND c.members @> jsonb_build_array(jsonb_build_object('memory_id', CAST(:id AS text)))
ORDER BY (SELECT r.started_at FROM runs r WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id) DESC NULLS LAST,
  c.cluster_id
LIMIT 20
"""

CLUSTERS_OF_BELIEF = """
SELECT c.* FROM memory_resonance_clusters c
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths) AND c.cluster_id = :cluster_id
ORDER BY (SELECT r.started_at FROM runs r WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id) DESC NULLS LAST LIMIT 20
"""

CHANGES = """
SELECT c.run_id, c.step, c.table_name, c.before, c.after, r.kind, r.as_of, r.status
FROM run_changes c JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
WHERE c.tenant_id = :tenant_id AND c.scope_path = ANY(:visible_paths) AND c.table_name = ANY(:tables)
  AND (c.row_key ->> :key) = :id AND NOT r.dry_run
ORDER BY c.sequence DESC LIMIT 50
"""

# A child scope may have asked the same: the calls of the scope that decided are meant, and its paths come last.
CALLS = """
SELECT DISTINCT ON (cache_key) cache_key, purpose, model, finish_reason, prompt_tokens, completion_tokens, cost,
       called_at, run_id
FROM model_calls WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND cache_key = ANY(:keys)
ORDER BY cache_key, scope_path DESC
"""

REPLACEMENT = """
SELECT CASE WHEN CAST(:memory AS uuid) IS NULL THEN 'belief' ELSE 'memory' END AS kind, found.*
FROM (
  SELECT m.id, m.external_id, m.content, m.observed_at FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths) AND m.id = CAST(:memory AS uuid)
  UNION ALL
  SELECT b.belief_id, NULL, b.content, b.valid_from FROM harmonic_beliefs b
  WHERE b.tenant_id = :tenant_id AND b.scope_path = ANY(:visible_paths) AND b.belief_id = CAST(:belief AS uuid)
) AS found LIMIT 1
"""

CORRECTIONS = """
SELECT id, who, at, what, outcome FROM corrections
WHERE tenant_id = :tenant_id AND scope_path = ANY(:visible_paths) AND memory_id = CAST(:id AS uuid) ORDER BY at, id
"""
