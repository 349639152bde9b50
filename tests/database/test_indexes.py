"""Each declared index is used by the query it was made for, as the app role under row-level security.

A function that is not leakproof cannot use an index under a policy; only a plan of the app role shows that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import create_engine

from memory_core.database.engine import Database
from memory_core.database.tables import metadata
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT
from tests.conftest import clone, drop

SCOPE = TenantScope.root("tenant", "t7")
OWN = "tenant_id = :tenant_id AND scope_path = :scope_path"

# Twenty tenants of a thousand memories each, with everything that the indexes cover.
FILL = """
INSERT INTO tenants (tenant_id, root_kind) SELECT 't' || t, 'tenant' FROM generate_series(1, 20) t;
INSERT INTO scopes (tenant_id, scope_path, depth)
  SELECT 't' || t, 'tenant' || chr(31) || 't' || t, 1 FROM generate_series(1, 20) t;
CREATE TEMP TABLE made AS
  SELECT 't' || t AS tenant_id, 'tenant' || chr(31) || 't' || t AS scope_path, gen_random_uuid() AS id, n,
         timestamptz '2026-03-01 00:00Z' - n * interval '1 hour' AS at,
         -- Most rows were consumed by some run; the newest wait.
         CASE WHEN n > 20 THEN gen_random_uuid() END AS consumed
  FROM generate_series(1, 20) t, generate_series(1, 1000) n;
INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, recorded_at, last_activity_at,
                      external_id, content_hash, derived_key)
  SELECT tenant_id, id, scope_path, 'L' || n % 100 || ': ' || n, 'memory ' || n, at, at, at, 'e' || n, md5(n::text),
         'k' || n
  FROM made;
UPDATE memories m SET superseded_by = o.id, superseded_reason = 'duplicate', corrects = o.id
  FROM made o WHERE o.tenant_id = m.tenant_id AND o.n = 1 AND m.external_id IN ('e5', 'e6');
INSERT INTO memory_state (tenant_id, memory_id, scope_path) SELECT tenant_id, id, scope_path FROM made;
INSERT INTO memory_embeddings (tenant_id, memory_id, scope_path, model, dimension, embedding)
  SELECT tenant_id, id, scope_path, 'm', 3, '[1,2,3]' FROM made;
INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at, external_id, consumed_by_run)
  SELECT tenant_id, gen_random_uuid(), scope_path, id, 'recall', at, 'a' || n, consumed FROM made;
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at)
  SELECT a.tenant_id, gen_random_uuid(), a.scope_path, a.id, b.id, 'KNOWS', a.at
  FROM made a JOIN made b ON b.tenant_id = a.tenant_id AND b.n = a.n + 1;
INSERT INTO pending_connections (tenant_id, id, scope_path, source, target, relationship, at, outcome, consumed_by_run)
  SELECT tenant_id, gen_random_uuid(), scope_path, 'a', 'b', 'r', at, CASE WHEN n > 20 THEN 'written' END, consumed
  FROM made;
INSERT INTO corrections (tenant_id, id, scope_path, who, at, what, consumed_by_run)
  SELECT tenant_id, gen_random_uuid(), scope_path, 'me', at, '{}', consumed FROM made;
INSERT INTO skills (tenant_id, id, scope_path, name, recorded_at)
  SELECT tenant_id, gen_random_uuid(), scope_path, 's' || n, at FROM made;
INSERT INTO triggers (tenant_id, id, scope_path, due_at, state, recorded_at)
  SELECT tenant_id, gen_random_uuid(), scope_path, at, CASE WHEN n > 20 THEN 'resolved' ELSE 'pending' END, at
  FROM made;
INSERT INTO runs (tenant_id, id, scope_path, kind, as_of, status, ordinal, parameters_hash)
  SELECT tenant_id, id, scope_path, 'sleep', at, CASE WHEN n = 1 THEN 'running' ELSE 'applied' END, 0, '' FROM made;
INSERT INTO run_changes (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before)
  SELECT tenant_id, scope_path, id, 's', 'memories', 'update', jsonb_build_object('id', id), '{}' FROM made;
INSERT INTO model_attempts (tenant_id, scope_path, cache_key, purpose, model, outcome, run_id)
  SELECT tenant_id, scope_path, 'k' || n, 'harmonize', 'm', 'usable', id FROM made;
INSERT INTO harmonic_beliefs (tenant_id, belief_id, scope_path, subject, predicate, object, content, status, valid_from,
                              cluster_id, model, rules_version, recorded_at, confidence)
  SELECT tenant_id, id, scope_path, 's' || n, 'p' || n, 'o', 'c', 'held', at, 'c', 'rules', '1', at, n / 1000.0
  FROM made;
INSERT INTO belief_evidence (tenant_id, belief_id, memory_id, role, scope_path)
  SELECT tenant_id, id, id, 'supports', scope_path FROM made;
INSERT INTO belief_embeddings (tenant_id, belief_id, scope_path, model, dimension, embedding)
  SELECT tenant_id, id, scope_path, 'm', 1, '[1]' FROM made;
INSERT INTO harmonize_queue (tenant_id, memory_id, scope_path, enqueued_at, harmonized_by_run)
  SELECT tenant_id, id, scope_path, at, consumed FROM made;
INSERT INTO decisions (tenant_id, scope_path, decision_key, phase, verdict, decided_at)
  SELECT tenant_id, scope_path, 'd' || n, 'harmonize', CASE WHEN n > 20 THEN 'decided' ELSE 'undone' END, at FROM made;
INSERT INTO memory_resonance_log (tenant_id, id, scope_path, session_id, cluster_count, beliefs_generated,
                                  contradictions_resolved, harmony_score_avg, duration_ms, as_of, created_at, status,
                                  run_id, model)
  SELECT tenant_id, gen_random_uuid(), scope_path, 's', 0, 0, 0, 0, 0, at, at, 'harmonized', id, 'rules' FROM made;
ANALYZE;
"""

QUERIES = {
    "ix_memories_recorded": f"SELECT id FROM memories WHERE {OWN} AND recorded_at > :late",
    "ix_memories_label": f"SELECT id FROM memories WHERE {OWN} AND label ~>=~ 'L42' AND label ~<~ 'L43'",
    "uq_memories_external_id": f"SELECT id FROM memories WHERE {OWN} AND external_id = 'e9' AND is_latest",
    "uq_memories_derived_key": f"SELECT id FROM memories WHERE {OWN} AND derived_key = 'k9' AND retired_at IS NULL",
    "ix_memories_content_hash": f"SELECT id FROM memories WHERE {OWN} AND content_hash = md5('9')",
    "ix_memories_superseded_by": "SELECT id FROM memories WHERE tenant_id = :tenant_id AND superseded_by = :id",
    "ix_memories_corrects": "SELECT id FROM memories WHERE tenant_id = :tenant_id AND corrects = :id",
    "ix_memory_state_scope": f"SELECT memory_id FROM memory_state WHERE {OWN}",
    "ix_memory_embeddings_scope": (
        f"SELECT memory_id FROM memory_embeddings WHERE {OWN} AND model = 'm' AND aspect = 'content'"
    ),
    "ix_memory_accesses_new": f"SELECT id FROM memory_accesses WHERE {OWN} AND consumed_by_run IS NULL AND at <= :late",
    "ix_memory_accesses_at": f"SELECT id FROM memory_accesses WHERE {OWN} AND at > :late",
    "ix_memory_accesses_memory": "SELECT max(at) FROM memory_accesses WHERE tenant_id = :tenant_id AND memory_id = :id",
    "uq_memory_accesses_external_id": f"SELECT id FROM memory_accesses WHERE {OWN} AND external_id = 'a9'",
    "uq_memory_edges_triple": (
        "INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at) "
        "VALUES (:tenant_id, :id, :scope_path, :id, :id, 'KNOWS', :late) "
        "ON CONFLICT (tenant_id, scope_path, source_id, target_id, relationship) DO NOTHING"
    ),
    "ix_memory_edges_target": "SELECT source_id FROM memory_edges WHERE tenant_id = :tenant_id AND target_id = :id",
    "ix_pending_connections_new": (
        f"SELECT id FROM pending_connections WHERE {OWN} AND consumed_by_run IS NULL AND at <= :late"
    ),
    "ix_corrections_new": (
        f"SELECT id FROM corrections WHERE {OWN} AND consumed_by_run IS NULL AND at <= :late ORDER BY at"
    ),
    "uq_skills_name": f"SELECT id FROM skills WHERE {OWN} AND name = 's9'",
    "ix_triggers_due": f"SELECT id FROM triggers WHERE {OWN} AND state = 'pending' AND due_at <= :late",
    "ix_runs_scope": f"SELECT id FROM runs WHERE {OWN} ORDER BY as_of DESC, started_at DESC LIMIT 1",
    "ix_runs_running": f"SELECT id FROM runs WHERE {OWN} AND status = 'running'",
    "ix_run_changes_table": (
        f"SELECT row_key FROM run_changes WHERE {OWN} AND table_name = 'memories' AND sequence > 19900"
    ),
    "ix_model_attempts_run": f"SELECT sum(prompt_tokens) FROM model_attempts WHERE {OWN} AND run_id = :id",
    "ix_harmonic_beliefs_subject": f"SELECT belief_id FROM harmonic_beliefs WHERE {OWN} AND subject = 's9'",
    "ix_harmonic_beliefs_predicate": f"SELECT belief_id FROM harmonic_beliefs WHERE {OWN} AND predicate = 'p9'",
    "ix_harmonic_beliefs_confidence": (
        f"SELECT belief_id FROM harmonic_beliefs WHERE {OWN} ORDER BY confidence DESC LIMIT 10"
    ),
    "ix_belief_evidence_memory": (
        "SELECT belief_id FROM belief_evidence WHERE tenant_id = :tenant_id AND memory_id = :id"
    ),
    "ix_belief_embeddings_scope": f"SELECT belief_id FROM belief_embeddings WHERE {OWN} AND model = 'm'",
    "ix_harmonize_queue_waiting": (
        f"SELECT memory_id FROM harmonize_queue WHERE {OWN} AND harmonized_by_run IS NULL "
        "ORDER BY enqueued_at, memory_id LIMIT 50"
    ),
    "ix_decisions_undone": f"SELECT 1 FROM decisions WHERE {OWN} AND phase = 'harmonize' AND verdict = 'undone'",
    "ix_memory_resonance_log_time": (
        f"SELECT id FROM memory_resonance_log WHERE {OWN} ORDER BY created_at DESC LIMIT 10"
    ),
}

INDEXES = sorted(str(index.name) for table in metadata.sorted_tables for index in table.indexes)


@pytest.fixture(scope="module")
async def large(server, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:  # type: ignore[no-untyped-def]
    """A store large enough that a plan says something."""
    clone(server, "indexes")
    engine = create_engine(server.url("indexes"), connect_args={"options": "-c search_path=slowwave,public"})
    with engine.begin() as connection:
        connection.connection.cursor().execute(FILL)
    engine.dispose()
    settings = Settings.load(home=tmp_path_factory.mktemp("indexes"), database_url=server.url("indexes"))
    async with Database.open(settings) as database:
        yield database
    drop(server, "indexes")


def test_each_index_has_its_query() -> None:
    """An index that no query needs is written for nothing."""
    assert sorted(QUERIES) == INDEXES


@pytest.mark.parametrize("index", INDEXES)
async def test_the_app_role_uses_the_index(large: Database, index: str) -> None:
    """The plan names the index, and reads no table from end to end."""
    async with large.scoped(SCOPE) as connection:
        known = await connection.scalar("SELECT id FROM memories WHERE tenant_id = :tenant_id AND external_id = 'e1'")
        rows = await connection.execute(f"EXPLAIN {QUERIES[index]}", id=known, late=NIGHT.replace(hour=0))
        plan = "\n".join(rows.scalars())
    assert index in plan, plan
    assert "Seq Scan" not in plan, plan
