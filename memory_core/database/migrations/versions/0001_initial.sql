CREATE TABLE slowwave.decisions (
	tenant_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	decision_key TEXT NOT NULL, 
	phase TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	members JSONB DEFAULT '[]'::jsonb NOT NULL, 
	rules_version TEXT DEFAULT '' NOT NULL, 
	run_id UUID, 
	decided_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_decisions PRIMARY KEY (tenant_id, scope_path, decision_key), 
	CONSTRAINT ck_decisions_verdict_known CHECK (verdict IN ('decided', 'nothing_to_say', 'rejected', 'undone'))
);

CREATE INDEX ix_decisions_undone ON slowwave.decisions (tenant_id, scope_path, phase) WHERE verdict = 'undone';

CREATE TABLE slowwave.harmonic_beliefs (
	tenant_id TEXT NOT NULL, 
	belief_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	predicate TEXT NOT NULL, 
	object TEXT NOT NULL, 
	content TEXT NOT NULL, 
	confidence DOUBLE PRECISION DEFAULT 0.5 NOT NULL, 
	provenance JSONB DEFAULT '[]'::jsonb NOT NULL, 
	status TEXT NOT NULL, 
	status_reason TEXT, 
	valid_from TIMESTAMP WITH TIME ZONE NOT NULL, 
	valid_to TIMESTAMP WITH TIME ZONE, 
	superseded_by_belief UUID, 
	cluster_id TEXT NOT NULL, 
	iteration INTEGER DEFAULT '0' NOT NULL, 
	model TEXT NOT NULL, 
	rules_version TEXT NOT NULL, 
	model_call_key TEXT, 
	rationale TEXT DEFAULT '' NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_harmonic_beliefs PRIMARY KEY (tenant_id, belief_id), 
	CONSTRAINT ck_harmonic_beliefs_status_known CHECK (status IN ('held', 'contested', 'superseded', 'stale', 'retracted')), 
	CONSTRAINT ck_harmonic_beliefs_confidence_from_0_to_1 CHECK (confidence BETWEEN 0 AND 1), 
	CONSTRAINT ck_harmonic_beliefs_not_blank CHECK (btrim(object) <> '' AND btrim(content) <> ''), 
	CONSTRAINT ck_harmonic_beliefs_provenance_array CHECK (jsonb_typeof(provenance) = 'array'), 
	CONSTRAINT ck_harmonic_beliefs_finite_times CHECK (isfinite(valid_from))
);

CREATE INDEX ix_harmonic_beliefs_confidence ON slowwave.harmonic_beliefs (tenant_id, scope_path, confidence);

CREATE INDEX ix_harmonic_beliefs_predicate ON slowwave.harmonic_beliefs (tenant_id, scope_path, predicate);

CREATE INDEX ix_harmonic_beliefs_subject ON slowwave.harmonic_beliefs (tenant_id, scope_path, subject);

CREATE TABLE slowwave.memories (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	layer TEXT DEFAULT 'semantic' NOT NULL, 
	label TEXT, 
	content TEXT NOT NULL, 
	subject TEXT, 
	predicate TEXT, 
	object TEXT, 
	properties JSONB DEFAULT '{}'::jsonb NOT NULL, 
	observed_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	last_activity_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	expires_at TIMESTAMP WITH TIME ZONE, 
	retired_at TIMESTAMP WITH TIME ZONE, 
	retired_reason TEXT, 
	retired_by_run UUID, 
	superseded_by UUID, 
	superseded_by_belief UUID, 
	superseded_reason TEXT, 
	superseded_at TIMESTAMP WITH TIME ZONE, 
	superseded_by_run UUID, 
	pinned BOOLEAN DEFAULT false NOT NULL, 
	source TEXT, 
	external_id TEXT, 
	is_latest BOOLEAN DEFAULT true NOT NULL, 
	corrects UUID, 
	version INTEGER DEFAULT '1' NOT NULL, 
	content_hash TEXT NOT NULL, 
	derived_key TEXT, 
	created_by_run UUID, 
	CONSTRAINT pk_memories PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_memories_tenant_id_superseded_by FOREIGN KEY(tenant_id, superseded_by) REFERENCES slowwave.memories (tenant_id, id) DEFERRABLE INITIALLY DEFERRED, 
	CONSTRAINT fk_memories_tenant_id_corrects FOREIGN KEY(tenant_id, corrects) REFERENCES slowwave.memories (tenant_id, id) DEFERRABLE INITIALLY DEFERRED, 
	CONSTRAINT ck_memories_layer_known CHECK (layer IN ('semantic', 'episodic', 'working', 'procedural', 'prospective')), 
	CONSTRAINT ck_memories_superseded_reason_known CHECK (superseded_reason IN ('duplicate', 'update', 'contradiction', 'correction')), 
	CONSTRAINT ck_memories_content_not_blank CHECK (btrim(content) <> ''), 
	CONSTRAINT ck_memories_triple_whole CHECK (num_nulls(subject, predicate, object) IN (0, 3)), 
	CONSTRAINT ck_memories_properties_object CHECK (jsonb_typeof(properties) = 'object'), 
	CONSTRAINT ck_memories_retired_with_reason CHECK ((retired_at IS NULL) = (retired_reason IS NULL)), 
	CONSTRAINT ck_memories_superseded_with_reason CHECK ((superseded_reason IS NOT NULL) = (superseded_by IS NOT NULL OR superseded_by_belief IS NOT NULL)), 
	CONSTRAINT ck_memories_not_superseded_by_itself CHECK (superseded_by <> id), 
	CONSTRAINT ck_memories_version_positive CHECK (version >= 1), 
	CONSTRAINT ck_memories_finite_times CHECK (isfinite(observed_at) AND isfinite(recorded_at) AND isfinite(last_activity_at))
);

CREATE INDEX ix_memories_content_hash ON slowwave.memories (tenant_id, scope_path, content_hash);

CREATE INDEX ix_memories_corrects ON slowwave.memories (tenant_id, corrects) WHERE corrects IS NOT NULL;

CREATE INDEX ix_memories_label ON slowwave.memories (tenant_id, scope_path, label text_pattern_ops);

CREATE INDEX ix_memories_recorded ON slowwave.memories (tenant_id, scope_path, recorded_at);

CREATE INDEX ix_memories_superseded_by ON slowwave.memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE UNIQUE INDEX uq_memories_derived_key ON slowwave.memories (tenant_id, scope_path, derived_key) WHERE derived_key IS NOT NULL AND retired_at IS NULL;

CREATE UNIQUE INDEX uq_memories_external_id ON slowwave.memories (tenant_id, scope_path, external_id) WHERE external_id IS NOT NULL AND is_latest;

COMMENT ON COLUMN slowwave.memories.is_latest IS 'False once an edit made a newer row of the same external id.';

COMMENT ON COLUMN slowwave.memories.derived_key IS 'Set on rows a phase made, such as meta-nodes.';

CREATE TABLE slowwave.memory_resonance_clusters (
	tenant_id TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	cluster_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	members JSONB DEFAULT '[]'::jsonb NOT NULL, 
	status TEXT DEFAULT 'pending' NOT NULL, 
	reason TEXT, 
	iteration INTEGER DEFAULT '0' NOT NULL, 
	score DOUBLE PRECISION, 
	proposal JSONB, 
	rejected JSONB DEFAULT '[]'::jsonb NOT NULL, 
	model TEXT, 
	model_call_key TEXT, 
	CONSTRAINT pk_memory_resonance_clusters PRIMARY KEY (tenant_id, run_id, cluster_id), 
	CONSTRAINT ck_memory_resonance_clusters_status_known CHECK (status IN ('pending', 'proposed', 'accepted', 'applied', 'nothing_to_say', 'rejected', 'model_unavailable', 'parse_error', 'budget_exhausted', 'changed_meanwhile', 'failed')), 
	CONSTRAINT ck_memory_resonance_clusters_score_finite CHECK (score IS NULL OR score BETWEEN -1 AND 1)
);

CREATE TABLE slowwave.memory_resonance_log (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	cluster_count INTEGER NOT NULL, 
	beliefs_generated INTEGER NOT NULL, 
	contradictions_resolved INTEGER NOT NULL, 
	harmony_score_avg DOUBLE PRECISION NOT NULL, 
	duration_ms INTEGER NOT NULL, 
	as_of TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	status TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	model TEXT NOT NULL, 
	parameters JSONB DEFAULT '{}'::jsonb NOT NULL, 
	counts JSONB DEFAULT '{}'::jsonb NOT NULL, 
	tokens INTEGER DEFAULT '0' NOT NULL, 
	cost NUMERIC(12, 6) DEFAULT '0', 
	CONSTRAINT pk_memory_resonance_log PRIMARY KEY (tenant_id, id), 
	CONSTRAINT ck_memory_resonance_log_status_known CHECK (status IN ('harmonized', 'no_convergence', 'insufficient_candidates', 'nothing_changed', 'model_unavailable', 'embedding_unavailable', 'budget_exhausted', 'partial', 'failed'))
);

CREATE INDEX ix_memory_resonance_log_time ON slowwave.memory_resonance_log (tenant_id, scope_path, created_at);

COMMENT ON COLUMN slowwave.memory_resonance_log.cost IS 'Null where a model without a known price answered.';

CREATE TABLE slowwave.model_attempts (
	tenant_id TEXT NOT NULL, 
	sequence BIGINT GENERATED ALWAYS AS IDENTITY, 
	scope_path TEXT NOT NULL, 
	cache_key TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	model TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	answer TEXT, 
	prompt_tokens INTEGER DEFAULT '0' NOT NULL, 
	completion_tokens INTEGER DEFAULT '0' NOT NULL, 
	cost NUMERIC(12, 6), 
	duration_ms INTEGER DEFAULT '0' NOT NULL, 
	run_id UUID, 
	called_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	CONSTRAINT pk_model_attempts PRIMARY KEY (tenant_id, cache_key, sequence), 
	CONSTRAINT ck_model_attempts_outcome_known CHECK (outcome IN ('usable', 'unreadable', 'truncated', 'refused', 'content_filter', 'empty', 'malformed', 'timeout', 'rate_limited', 'unreachable', 'rejected'))
);

CREATE INDEX ix_model_attempts_run ON slowwave.model_attempts (tenant_id, scope_path, run_id);

CREATE TABLE slowwave.model_calls (
	tenant_id TEXT NOT NULL, 
	cache_key TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	model TEXT NOT NULL, 
	request JSONB NOT NULL, 
	answer TEXT NOT NULL, 
	finish_reason TEXT NOT NULL, 
	prompt_tokens INTEGER DEFAULT '0' NOT NULL, 
	completion_tokens INTEGER DEFAULT '0' NOT NULL, 
	cost NUMERIC(12, 6), 
	duration_ms INTEGER DEFAULT '0' NOT NULL, 
	run_id UUID, 
	called_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	CONSTRAINT pk_model_calls PRIMARY KEY (tenant_id, scope_path, cache_key)
);

CREATE TABLE slowwave.pending_connections (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	source TEXT NOT NULL, 
	target TEXT NOT NULL, 
	relationship TEXT NOT NULL, 
	status TEXT DEFAULT 'PENDING CONSOLIDATION' NOT NULL, 
	at TIMESTAMP WITH TIME ZONE NOT NULL, 
	outcome TEXT, 
	reason TEXT, 
	consumed_by_run UUID, 
	created_by_run UUID, 
	CONSTRAINT pk_pending_connections PRIMARY KEY (tenant_id, id), 
	CONSTRAINT ck_pending_connections_outcome_known CHECK (outcome IN ('written', 'confirmed', 'rejected')), 
	CONSTRAINT ck_pending_connections_outcome_whole CHECK ((outcome IS NULL) = (consumed_by_run IS NULL))
);

CREATE INDEX ix_pending_connections_new ON slowwave.pending_connections (tenant_id, scope_path, at) WHERE consumed_by_run IS NULL;

COMMENT ON COLUMN slowwave.pending_connections.source IS 'A memory''s id, external id or label, as the activation log holds it.';

COMMENT ON COLUMN slowwave.pending_connections.outcome IS 'written, confirmed or rejected; null while pending.';

CREATE TABLE slowwave.run_changes (
	tenant_id TEXT NOT NULL, 
	sequence BIGINT GENERATED ALWAYS AS IDENTITY, 
	scope_path TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	step TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	operation TEXT NOT NULL, 
	row_key JSONB NOT NULL, 
	before JSONB NOT NULL, 
	after JSONB, 
	CONSTRAINT pk_run_changes PRIMARY KEY (tenant_id, run_id, sequence), 
	CONSTRAINT ck_run_changes_operation_known CHECK (operation IN ('update', 'delete'))
);

CREATE INDEX ix_run_changes_table ON slowwave.run_changes (tenant_id, scope_path, table_name, sequence);

CREATE TABLE slowwave.runs (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	as_of TIMESTAMP WITH TIME ZONE NOT NULL, 
	status TEXT NOT NULL, 
	dry_run BOOLEAN DEFAULT false NOT NULL, 
	ordinal INTEGER NOT NULL, 
	parameters JSONB DEFAULT '{}'::jsonb NOT NULL, 
	parameters_hash TEXT NOT NULL, 
	report JSONB, 
	error JSONB, 
	requested_by TEXT DEFAULT 'person' NOT NULL, 
	flow_run_id TEXT, 
	undoes_run UUID, 
	undone_by_run UUID, 
	started_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	finished_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT pk_runs PRIMARY KEY (tenant_id, id), 
	CONSTRAINT ck_runs_kind_known CHECK (kind IN ('sleep', 'harmonize', 'nightly', 'undo')), 
	CONSTRAINT ck_runs_status_known CHECK (status IN ('running', 'applied', 'partial', 'failed', 'refused', 'previewed', 'undone', 'interrupted')), 
	CONSTRAINT ck_runs_finite_times CHECK (isfinite(as_of))
);

CREATE INDEX ix_runs_running ON slowwave.runs (tenant_id, scope_path) WHERE status = 'running';

CREATE INDEX ix_runs_scope ON slowwave.runs (tenant_id, scope_path, as_of, started_at);

COMMENT ON COLUMN slowwave.runs.ordinal IS 'How many runs of the same kind, time and parameters came before.';

CREATE TABLE slowwave.soul_profiles (
	tenant_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	field TEXT NOT NULL, 
	value JSONB NOT NULL, 
	type TEXT NOT NULL, 
	previous JSONB, 
	source TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE NOT NULL, 
	correction_id UUID, 
	created_by_run UUID, 
	CONSTRAINT pk_soul_profiles PRIMARY KEY (tenant_id, scope_path, field)
);

CREATE TABLE slowwave.soul_schemas (
	tenant_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	field TEXT NOT NULL, 
	type TEXT NOT NULL, 
	description TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_soul_schemas PRIMARY KEY (tenant_id, scope_path, field), 
	CONSTRAINT ck_soul_schemas_type_known CHECK (type IN ('str', 'int', 'float', 'bool', 'date', 'list', 'dict'))
);

CREATE TABLE slowwave.tenants (
	tenant_id TEXT NOT NULL, 
	root_kind TEXT NOT NULL, 
	settings JSONB DEFAULT '{}'::jsonb NOT NULL, 
	budgets JSONB DEFAULT '{}'::jsonb NOT NULL, 
	paused BOOLEAN DEFAULT false NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	CONSTRAINT pk_tenants PRIMARY KEY (tenant_id)
);

CREATE TABLE slowwave.tools (
	tenant_id TEXT NOT NULL, 
	tool_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	description TEXT DEFAULT '' NOT NULL, 
	schema JSONB DEFAULT '{}'::jsonb NOT NULL, 
	active BOOLEAN DEFAULT true NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_tools PRIMARY KEY (tenant_id, scope_path, tool_id)
);

CREATE TABLE slowwave.belief_embeddings (
	tenant_id TEXT NOT NULL, 
	belief_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	model TEXT NOT NULL, 
	dimension INTEGER NOT NULL, 
	embedding VECTOR NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_belief_embeddings PRIMARY KEY (tenant_id, belief_id, model), 
	CONSTRAINT fk_belief_embeddings_tenant_id_belief_id FOREIGN KEY(tenant_id, belief_id) REFERENCES slowwave.harmonic_beliefs (tenant_id, belief_id) ON DELETE CASCADE, 
	CONSTRAINT ck_belief_embeddings_dimension_true CHECK (vector_dims(embedding) = dimension)
);

CREATE INDEX ix_belief_embeddings_scope ON slowwave.belief_embeddings (tenant_id, scope_path, model);

CREATE TABLE slowwave.belief_evidence (
	tenant_id TEXT NOT NULL, 
	belief_id UUID NOT NULL, 
	memory_id UUID NOT NULL, 
	role TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_belief_evidence PRIMARY KEY (tenant_id, belief_id, memory_id, role), 
	CONSTRAINT fk_belief_evidence_tenant_id_belief_id FOREIGN KEY(tenant_id, belief_id) REFERENCES slowwave.harmonic_beliefs (tenant_id, belief_id) ON DELETE CASCADE, 
	CONSTRAINT fk_belief_evidence_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_belief_evidence_role_known CHECK (role IN ('supports', 'contradicts', 'superseded'))
);

CREATE INDEX ix_belief_evidence_memory ON slowwave.belief_evidence (tenant_id, memory_id);

CREATE TABLE slowwave.corrections (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	memory_id UUID, 
	who TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE NOT NULL, 
	what JSONB NOT NULL, 
	outcome TEXT, 
	reasons JSONB, 
	consumed_by_run UUID, 
	CONSTRAINT pk_corrections PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_corrections_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_corrections_what_object CHECK (jsonb_typeof(what) = 'object'), 
	CONSTRAINT ck_corrections_outcome_known CHECK (outcome IN ('applied', 'partly_applied', 'rejected')), 
	CONSTRAINT ck_corrections_finite_times CHECK (isfinite(at))
);

CREATE INDEX ix_corrections_new ON slowwave.corrections (tenant_id, scope_path, at) WHERE consumed_by_run IS NULL;

CREATE TABLE slowwave.harmonize_queue (
	tenant_id TEXT NOT NULL, 
	memory_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	enqueued_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	passed_over_at TIMESTAMP WITH TIME ZONE, 
	reason TEXT DEFAULT 'new' NOT NULL, 
	harmonized_by_run UUID, 
	created_by_run UUID, 
	CONSTRAINT pk_harmonize_queue PRIMARY KEY (tenant_id, memory_id), 
	CONSTRAINT fk_harmonize_queue_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE
);

CREATE INDEX ix_harmonize_queue_waiting ON slowwave.harmonize_queue (tenant_id, scope_path, enqueued_at, memory_id) WHERE harmonized_by_run IS NULL;

CREATE TABLE slowwave.memory_accesses (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	memory_id UUID NOT NULL, 
	kind TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE NOT NULL, 
	external_id TEXT, 
	consumed_by_run UUID, 
	CONSTRAINT pk_memory_accesses PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_memory_accesses_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_memory_accesses_kind_known CHECK (kind IN ('recall', 'hydrate', 'mention', 'confirm')), 
	CONSTRAINT ck_memory_accesses_finite_times CHECK (isfinite(at))
);

CREATE INDEX ix_memory_accesses_at ON slowwave.memory_accesses (tenant_id, scope_path, at);

CREATE INDEX ix_memory_accesses_memory ON slowwave.memory_accesses (tenant_id, memory_id, at);

CREATE INDEX ix_memory_accesses_new ON slowwave.memory_accesses (tenant_id, scope_path, at) WHERE consumed_by_run IS NULL;

CREATE UNIQUE INDEX uq_memory_accesses_external_id ON slowwave.memory_accesses (tenant_id, scope_path, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE slowwave.memory_edges (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	source_id UUID NOT NULL, 
	target_id UUID NOT NULL, 
	relationship TEXT NOT NULL, 
	kind TEXT DEFAULT 'explicit' NOT NULL, 
	weight DOUBLE PRECISION DEFAULT '1' NOT NULL, 
	evidence_count INTEGER DEFAULT '1' NOT NULL, 
	last_evidence_at TIMESTAMP WITH TIME ZONE, 
	status TEXT DEFAULT 'active' NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_memory_edges PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_memory_edges_tenant_id_source_id FOREIGN KEY(tenant_id, source_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT fk_memory_edges_tenant_id_target_id FOREIGN KEY(tenant_id, target_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_memory_edges_kind_known CHECK (kind IN ('explicit', 'co_occurred', 'inferred', 'synthetic', 'clusters')), 
	CONSTRAINT ck_memory_edges_status_known CHECK (status IN ('active', 'confirmed', 'retired')), 
	CONSTRAINT ck_memory_edges_not_to_itself CHECK (source_id <> target_id), 
	CONSTRAINT ck_memory_edges_relationship_not_blank CHECK (btrim(relationship) <> ''), 
	CONSTRAINT ck_memory_edges_weight_finite CHECK (weight > 0 AND weight < 'infinity')
);

CREATE INDEX ix_memory_edges_target ON slowwave.memory_edges (tenant_id, target_id);

CREATE UNIQUE INDEX uq_memory_edges_triple ON slowwave.memory_edges (tenant_id, source_id, target_id, relationship, scope_path);

CREATE TABLE slowwave.memory_embeddings (
	tenant_id TEXT NOT NULL, 
	memory_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	model TEXT NOT NULL, 
	aspect TEXT DEFAULT 'content' NOT NULL, 
	dimension INTEGER NOT NULL, 
	embedding VECTOR NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_memory_embeddings PRIMARY KEY (tenant_id, memory_id, model, aspect), 
	CONSTRAINT fk_memory_embeddings_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_memory_embeddings_aspect_known CHECK (aspect IN ('content', 'slot')), 
	CONSTRAINT ck_memory_embeddings_dimension_true CHECK (vector_dims(embedding) = dimension)
);

CREATE INDEX ix_memory_embeddings_scope ON slowwave.memory_embeddings (tenant_id, scope_path, model, aspect);

COMMENT ON COLUMN slowwave.memory_embeddings.aspect IS 'content, or slot: subject and predicate alone.';

CREATE TABLE slowwave.memory_state (
	tenant_id TEXT NOT NULL, 
	memory_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	importance DOUBLE PRECISION DEFAULT '5' NOT NULL, 
	confidence DOUBLE PRECISION DEFAULT 0.7 NOT NULL, 
	access_count INTEGER DEFAULT '0' NOT NULL, 
	last_access_at TIMESTAMP WITH TIME ZONE, 
	risk_words JSONB, 
	risk_tagged_at TIMESTAMP WITH TIME ZONE, 
	risk_checked TEXT, 
	first_night TIMESTAMP WITH TIME ZONE, 
	decayed_at TIMESTAMP WITH TIME ZONE, 
	wording_key TEXT, 
	created_by_run UUID, 
	CONSTRAINT pk_memory_state PRIMARY KEY (tenant_id, memory_id), 
	CONSTRAINT fk_memory_state_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_memory_state_importance_from_1_to_10 CHECK (importance BETWEEN 1 AND 10), 
	CONSTRAINT ck_memory_state_confidence_from_0_to_1 CHECK (confidence BETWEEN 0 AND 1), 
	CONSTRAINT ck_memory_state_access_count_not_negative CHECK (access_count >= 0), 
	CONSTRAINT ck_memory_state_risk_whole CHECK ((risk_words IS NULL) = (risk_tagged_at IS NULL))
)
 WITH (fillfactor = 50);

CREATE INDEX ix_memory_state_scope ON slowwave.memory_state (tenant_id, scope_path);

COMMENT ON COLUMN slowwave.memory_state.risk_checked IS 'Content hash and marker-list hash the risk scan last looked at.';

COMMENT ON COLUMN slowwave.memory_state.decayed_at IS 'Until when importance has been lowered for want of activity; null where it never was.';

COMMENT ON COLUMN slowwave.memory_state.wording_key IS 'What the content says, in one form, for the content hash that duplicates were last looked for.';

CREATE TABLE slowwave.memory_summaries (
	tenant_id TEXT NOT NULL, 
	memory_id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	content TEXT NOT NULL, 
	cited JSONB NOT NULL, 
	model TEXT NOT NULL, 
	call_key TEXT NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	created_by_run UUID, 
	CONSTRAINT pk_memory_summaries PRIMARY KEY (tenant_id, memory_id), 
	CONSTRAINT fk_memory_summaries_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_memory_summaries_content_not_blank CHECK (btrim(content) <> ''), 
	CONSTRAINT ck_memory_summaries_cited_not_empty CHECK (jsonb_array_length(cited) > 0)
);

COMMENT ON COLUMN slowwave.memory_summaries.call_key IS 'The kept call that it came from.';

CREATE TABLE slowwave.run_steps (
	tenant_id TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	step TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	outcome JSONB DEFAULT '{}'::jsonb NOT NULL, 
	started_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	finished_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	CONSTRAINT pk_run_steps PRIMARY KEY (tenant_id, run_id, step), 
	CONSTRAINT fk_run_steps_tenant_id_run_id FOREIGN KEY(tenant_id, run_id) REFERENCES slowwave.runs (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_run_steps_status_known CHECK (status IN ('done', 'failed', 'skipped'))
);

CREATE TABLE slowwave.scopes (
	tenant_id TEXT NOT NULL, 
	scope_path TEXT NOT NULL, 
	depth INTEGER NOT NULL, 
	settings JSONB DEFAULT '{}'::jsonb NOT NULL, 
	last_slept_at TIMESTAMP WITH TIME ZONE, 
	last_run_id UUID, 
	last_status TEXT, 
	backlog INTEGER DEFAULT '0' NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL, 
	CONSTRAINT pk_scopes PRIMARY KEY (tenant_id, scope_path), 
	CONSTRAINT fk_scopes_tenant_id FOREIGN KEY(tenant_id) REFERENCES slowwave.tenants (tenant_id) ON DELETE CASCADE
);

CREATE TABLE slowwave.skills (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	memory_id UUID, 
	name TEXT NOT NULL, 
	description TEXT DEFAULT '' NOT NULL, 
	steps JSONB DEFAULT '[]'::jsonb NOT NULL, 
	status TEXT DEFAULT 'draft' NOT NULL, 
	active BOOLEAN DEFAULT false NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_skills PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_skills_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_skills_status_known CHECK (status IN ('draft', 'approved', 'rejected'))
);

CREATE UNIQUE INDEX uq_skills_name ON slowwave.skills (tenant_id, scope_path, name);

CREATE TABLE slowwave.triggers (
	tenant_id TEXT NOT NULL, 
	id UUID NOT NULL, 
	scope_path TEXT NOT NULL, 
	memory_id UUID, 
	condition TEXT DEFAULT '' NOT NULL, 
	due_at TIMESTAMP WITH TIME ZONE, 
	recurrence TEXT, 
	state TEXT DEFAULT 'pending' NOT NULL, 
	recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	resolved_at TIMESTAMP WITH TIME ZONE, 
	created_by_run UUID, 
	CONSTRAINT pk_triggers PRIMARY KEY (tenant_id, id), 
	CONSTRAINT fk_triggers_tenant_id_memory_id FOREIGN KEY(tenant_id, memory_id) REFERENCES slowwave.memories (tenant_id, id) ON DELETE CASCADE, 
	CONSTRAINT ck_triggers_state_known CHECK (state IN ('pending', 'resolved', 'cancelled'))
);

CREATE INDEX ix_triggers_due ON slowwave.triggers (tenant_id, scope_path, due_at) WHERE state = 'pending';

ALTER TABLE slowwave.tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.tenants FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true));
CREATE POLICY app_inserts ON slowwave.tenants FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true));
CREATE POLICY app_updates ON slowwave.tenants FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true));
CREATE POLICY app_deletes ON slowwave.tenants FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.tenants TO slowwave_app;

ALTER TABLE slowwave.scopes ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.scopes FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.scopes FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.scopes FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.scopes FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.scopes FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.scopes TO slowwave_app;

ALTER TABLE slowwave.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.runs FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.runs FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.runs FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.runs FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.runs FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.runs TO slowwave_app;

ALTER TABLE slowwave.run_steps ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.run_steps FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.run_steps FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.run_steps FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.run_steps FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.run_steps FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.run_steps TO slowwave_app;

ALTER TABLE slowwave.run_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.run_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.run_changes FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.run_changes FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.run_changes FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.run_changes FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.run_changes TO slowwave_app;

ALTER TABLE slowwave.model_calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.model_calls FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.model_calls FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.model_calls FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.model_calls FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.model_calls FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.model_calls TO slowwave_app;

ALTER TABLE slowwave.model_attempts ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.model_attempts FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.model_attempts FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.model_attempts FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.model_attempts FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.model_attempts FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.model_attempts TO slowwave_app;

ALTER TABLE slowwave.memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memories FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memories FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memories FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memories FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memories FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memories TO slowwave_app;

ALTER TABLE slowwave.memory_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_state FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_state FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_state FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_state FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_state FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_state TO slowwave_app;

ALTER TABLE slowwave.memory_embeddings ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_embeddings FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_embeddings FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_embeddings FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_embeddings FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_embeddings FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_embeddings TO slowwave_app;

ALTER TABLE slowwave.memory_summaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_summaries FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_summaries FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_summaries FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_summaries FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_summaries FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_summaries TO slowwave_app;

ALTER TABLE slowwave.memory_accesses ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_accesses FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_accesses FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_accesses FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_updates ON slowwave.memory_accesses FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_accesses FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_accesses TO slowwave_app;

ALTER TABLE slowwave.memory_edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_edges FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_edges FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_edges FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_edges FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_edges FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_edges TO slowwave_app;

ALTER TABLE slowwave.pending_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.pending_connections FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.pending_connections FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.pending_connections FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.pending_connections FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.pending_connections FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.pending_connections TO slowwave_app;

ALTER TABLE slowwave.corrections ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.corrections FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.corrections FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.corrections FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.corrections FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.corrections FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.corrections TO slowwave_app;

ALTER TABLE slowwave.soul_schemas ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.soul_schemas FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.soul_schemas FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.soul_schemas FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.soul_schemas FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.soul_schemas FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.soul_schemas TO slowwave_app;

ALTER TABLE slowwave.soul_profiles ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.soul_profiles FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.soul_profiles FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.soul_profiles FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.soul_profiles FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.soul_profiles FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.soul_profiles TO slowwave_app;

ALTER TABLE slowwave.skills ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.skills FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.skills FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.skills FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.skills FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.skills FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.skills TO slowwave_app;

ALTER TABLE slowwave.tools ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.tools FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.tools FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.tools FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.tools FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.tools FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.tools TO slowwave_app;

ALTER TABLE slowwave.triggers ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.triggers FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.triggers FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.triggers FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.triggers FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.triggers FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.triggers TO slowwave_app;

ALTER TABLE slowwave.harmonic_beliefs ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.harmonic_beliefs FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.harmonic_beliefs FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.harmonic_beliefs FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.harmonic_beliefs FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.harmonic_beliefs FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.harmonic_beliefs TO slowwave_app;

ALTER TABLE slowwave.belief_evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.belief_evidence FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.belief_evidence FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.belief_evidence FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.belief_evidence FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.belief_evidence FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.belief_evidence TO slowwave_app;

ALTER TABLE slowwave.belief_embeddings ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.belief_embeddings FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.belief_embeddings FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.belief_embeddings FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.belief_embeddings FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.belief_embeddings FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.belief_embeddings TO slowwave_app;

ALTER TABLE slowwave.harmonize_queue ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.harmonize_queue FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.harmonize_queue FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.harmonize_queue FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.harmonize_queue FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.harmonize_queue FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.harmonize_queue TO slowwave_app;

ALTER TABLE slowwave.decisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.decisions FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.decisions FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.decisions FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.decisions FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.decisions FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.decisions TO slowwave_app;

ALTER TABLE slowwave.memory_resonance_clusters ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_resonance_clusters FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_resonance_clusters FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_resonance_clusters FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_resonance_clusters FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_resonance_clusters FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_resonance_clusters TO slowwave_app;

ALTER TABLE slowwave.memory_resonance_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE slowwave.memory_resonance_log FORCE ROW LEVEL SECURITY;
CREATE POLICY app_reads ON slowwave.memory_resonance_log FOR SELECT TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30))));
CREATE POLICY app_inserts ON slowwave.memory_resonance_log FOR INSERT TO slowwave_app WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_updates ON slowwave.memory_resonance_log FOR UPDATE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true)) WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE POLICY app_deletes ON slowwave.memory_resonance_log FOR DELETE TO slowwave_app USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON slowwave.memory_resonance_log TO slowwave_app;

CREATE POLICY operator_reads ON slowwave.tenants FOR SELECT TO slowwave_operator USING (true);
GRANT SELECT ON slowwave.tenants TO slowwave_operator;
CREATE POLICY operator_reads ON slowwave.scopes FOR SELECT TO slowwave_operator USING (true);
GRANT SELECT ON slowwave.scopes TO slowwave_operator;
CREATE POLICY operator_reads ON slowwave.runs FOR SELECT TO slowwave_operator USING (true);
GRANT SELECT (tenant_id, id, scope_path, kind, as_of, status, dry_run, started_at, finished_at) ON slowwave.runs TO slowwave_operator;

CREATE POLICY owner_journals ON slowwave.run_changes FOR INSERT TO slowwave_owner WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true));

CREATE FUNCTION slowwave.decision_key(phase text, VARIADIC members text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $key$
  -- Length-prefixed and sorted, so that the same members in any order give the same key and no two sets collide.
  SELECT encode(
           sha256(convert_to(
             phase || ':' || string_agg(octet_length(member) || ':' || member, '' ORDER BY member COLLATE "C"), 'UTF8'
           )),
           'hex'
         )
  FROM unnest(members) AS member
$key$;

CREATE FUNCTION slowwave.memories_version() RETURNS trigger LANGUAGE plpgsql AS $version$
BEGIN
  -- The version tells SHMR that a source changed while a model was thinking; it rises on undo too.
  IF (NEW.content, NEW.subject, NEW.predicate, NEW.object, NEW.observed_at,
      NEW.superseded_by, NEW.superseded_by_belief, NEW.retired_at)
     IS DISTINCT FROM
     (OLD.content, OLD.subject, OLD.predicate, OLD.object, OLD.observed_at,
      OLD.superseded_by, OLD.superseded_by_belief, OLD.retired_at) THEN
    NEW.version := OLD.version + 1;
  ELSE
    NEW.version := OLD.version;
  END IF;
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END $version$;
CREATE TRIGGER memories_version BEFORE UPDATE ON slowwave.memories
  FOR EACH ROW EXECUTE FUNCTION slowwave.memories_version();

CREATE FUNCTION slowwave.memories_enqueue() RETURNS trigger LANGUAGE plpgsql AS $enqueue$
BEGIN
  -- Every new fact and episode waits for SHMR, whoever wrote it; one that an undo brings back is not new.
  IF coalesce(current_setting('slowwave.restoring', true), '') <> 'on' THEN
    INSERT INTO slowwave.harmonize_queue (tenant_id, memory_id, scope_path, enqueued_at)
    SELECT tenant_id, id, scope_path, recorded_at FROM new_rows
    WHERE layer IN ('semantic', 'episodic') AND derived_key IS NULL;
  END IF;
  RETURN NULL;
END $enqueue$;
CREATE TRIGGER memories_enqueue AFTER INSERT ON slowwave.memories
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.memories_enqueue();

CREATE FUNCTION slowwave.refresh_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = slowwave, pg_temp AS $statistics$
BEGIN
  -- Only an owner may ANALYZE; autovacuum comes a minute after a large import, the first night perhaps before it.
  ANALYZE slowwave.memories, slowwave.memory_state, slowwave.memory_embeddings, slowwave.memory_summaries, slowwave.memory_accesses, slowwave.memory_edges, slowwave.pending_connections, slowwave.corrections, slowwave.soul_profiles, slowwave.triggers, slowwave.harmonic_beliefs, slowwave.belief_evidence, slowwave.belief_embeddings, slowwave.harmonize_queue, slowwave.decisions;
END $statistics$;
REVOKE ALL ON FUNCTION slowwave.refresh_statistics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION slowwave.refresh_statistics() TO slowwave_app;

CREATE FUNCTION slowwave.normal_words(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $words$
  SELECT regexp_replace(
           btrim(regexp_replace(translate(lower(words), '’_', ''' '), '\s+', ' ', 'g'), ' .,;:!?"“”'),
           '^(the|an|a) (?=\S)', ''
         )
$words$;

CREATE FUNCTION slowwave.slot_key(subject text, predicate text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $key$
  -- Length-prefixed, so that no two slots share a key by shifting text between subject and predicate.
  SELECT encode(sha256(convert_to(length(s) || ':' || s || p, 'UTF8')), 'hex')
  FROM (SELECT slowwave.normal_words(subject) AS s, slowwave.normal_words(predicate) AS p) AS words
$key$;

CREATE FUNCTION slowwave.statement_key(subject text, predicate text, object text, content_hash text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $key$
  -- What a memory says: of a fact its triple, of any other its content.
  SELECT CASE WHEN subject IS NULL THEN 'text:' || content_hash
              ELSE 'fact:' || slowwave.slot_key(subject, predicate) || ':' ||
                   encode(sha256(convert_to(slowwave.normal_words(object), 'UTF8')), 'hex') END
$key$;

CREATE POLICY owner_reads_children ON slowwave.tenants FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true));
CREATE POLICY owner_reads_children ON slowwave.scopes FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND ((scope_path = current_setting('slowwave.scope_path', true) OR starts_with(current_setting('slowwave.scope_path', true), scope_path || chr(31))) OR (starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)) AND cardinality(string_to_array(substr(scope_path, length(current_setting('slowwave.scope_path', true)) + 2), chr(31))) = 2)));
CREATE POLICY owner_reads_children ON slowwave.memories FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)) AND cardinality(string_to_array(substr(scope_path, length(current_setting('slowwave.scope_path', true)) + 2), chr(31))) = 2);
CREATE POLICY owner_reads_children ON slowwave.memory_state FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)) AND cardinality(string_to_array(substr(scope_path, length(current_setting('slowwave.scope_path', true)) + 2), chr(31))) = 2);

CREATE FUNCTION slowwave.promotion_candidates(
  asked_at timestamptz, from_children integer, least_confidence double precision
) RETURNS TABLE (
  statement text, agreed boolean, layer text, label text, content text, subject text, predicate text, object text,
  speaker text, observed_at timestamptz, expires_at timestamptz, importance double precision,
  confidence double precision, voices bigint, days bigint, sources jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = slowwave, pg_temp SET enable_nestloop = off SET jit = off
AS $candidates$
-- Children as an array, so that an index finds their rows without a loop: loops between the sets below, which the
-- planner takes for small where it has no statistics yet, would cost the square of what children say.
WITH said AS MATERIALIZED (
  SELECT m.id, m.scope_path, m.layer, m.label, m.content, m.subject, m.predicate, m.object, m.source,
         m.properties ->> 'speaker' AS speaker, m.observed_at, m.expires_at, s.importance, s.confidence,
         CASE WHEN m.subject IS NOT NULL THEN slowwave.slot_key(m.subject, m.predicate) END AS slot,
         slowwave.statement_key(m.subject, m.predicate, m.object, m.content_hash) AS statement,
         coalesce(
           (SELECT jsonb_agg(jsonb_build_object('scope_path', e -> 'scope_path', 'memory_id', e -> 'memory_id',
                                                'confidence', e -> 'confidence'))
            FROM jsonb_array_elements(CASE WHEN m.source = 'promotion' AND
                                                jsonb_typeof(m.properties -> 'promoted_from') = 'array'
                                           THEN m.properties -> 'promoted_from' ELSE '[]' END) AS e
            WHERE e ->> 'scope_path' IS NOT NULL AND e ->> 'memory_id' IS NOT NULL),
           jsonb_build_array(jsonb_build_object('scope_path', m.scope_path, 'memory_id', m.id,
                                                'confidence', s.confidence))) AS sources
  FROM slowwave.memories m
  JOIN slowwave.memory_state s ON s.tenant_id = current_setting('slowwave.tenant_id', true) AND s.scope_path = ANY (ARRAY(
    SELECT c.scope_path FROM slowwave.scopes c WHERE c.tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(c.scope_path, current_setting('slowwave.scope_path', true) || chr(31)) AND cardinality(string_to_array(substr(c.scope_path, length(current_setting('slowwave.scope_path', true)) + 2), chr(31))) = 2 AND coalesce(
    (SELECT CAST(s.settings #>> '{promotion,enabled}' AS boolean) FROM slowwave.scopes s
     WHERE s.tenant_id = current_setting('slowwave.tenant_id', true) AND (s.scope_path = current_setting('slowwave.scope_path', true) OR starts_with(current_setting('slowwave.scope_path', true), s.scope_path || chr(31))) AND s.settings #>> '{promotion,enabled}' IS NOT NULL
     ORDER BY length(s.scope_path) DESC LIMIT 1),
    (SELECT CAST(t.settings #>> '{promotion,enabled}' AS boolean) FROM slowwave.tenants t WHERE t.tenant_id = current_setting('slowwave.tenant_id', true)),
    current_setting('slowwave.promotion', true) = 'on',
    false))) AND s.memory_id = m.id
  WHERE m.tenant_id = current_setting('slowwave.tenant_id', true) AND m.scope_path = ANY (ARRAY(
    SELECT c.scope_path FROM slowwave.scopes c WHERE c.tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(c.scope_path, current_setting('slowwave.scope_path', true) || chr(31)) AND cardinality(string_to_array(substr(c.scope_path, length(current_setting('slowwave.scope_path', true)) + 2), chr(31))) = 2 AND coalesce(
    (SELECT CAST(s.settings #>> '{promotion,enabled}' AS boolean) FROM slowwave.scopes s
     WHERE s.tenant_id = current_setting('slowwave.tenant_id', true) AND (s.scope_path = current_setting('slowwave.scope_path', true) OR starts_with(current_setting('slowwave.scope_path', true), s.scope_path || chr(31))) AND s.settings #>> '{promotion,enabled}' IS NOT NULL
     ORDER BY length(s.scope_path) DESC LIMIT 1),
    (SELECT CAST(t.settings #>> '{promotion,enabled}' AS boolean) FROM slowwave.tenants t WHERE t.tenant_id = current_setting('slowwave.tenant_id', true)),
    current_setting('slowwave.promotion', true) = 'on',
    false)))
    -- Facts and episodes: a reminder or a procedure would act twice.
    AND m.layer IN ('semantic', 'episodic') AND m.derived_key IS NULL AND m.recorded_at <= asked_at
    AND m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > asked_at)
    AND NOT coalesce(starts_with(m.label, 'SOUL:') OR starts_with(m.label, 'AGENT_IDENTITY:') OR starts_with(m.label, 'PERSONA:') OR starts_with(m.label, 'IDENTITY:'), false) AND s.confidence >= least_confidence
), statements AS MATERIALIZED (
  SELECT w.statement, min(w.slot) AS slot, count(DISTINCT w.scope_path) AS children,
         count(DISTINCT (w.source, w.speaker)) AS voices,
         count(DISTINCT CAST(w.observed_at AT TIME ZONE 'UTC' AS date)) AS days,
         CASE WHEN count(*) = count(w.expires_at) THEN max(w.expires_at) END AS expires_at,
         max(w.importance) AS importance, max(w.confidence) AS confidence
  FROM said w GROUP BY w.statement
), slots AS (
  SELECT w.slot, count(DISTINCT w.scope_path) AS children FROM said w WHERE w.slot IS NOT NULL GROUP BY w.slot
), common AS MATERIALIZED (
  -- Whoever of the children speaks about a slot at all has to say so.
  SELECT t.* FROM statements t LEFT JOIN slots o ON o.slot = t.slot
  WHERE t.children >= greatest(from_children, 2) AND (t.slot IS NULL OR o.children = t.children)
), surest AS (
  SELECT DISTINCT ON (w.statement) w.*
  FROM said w JOIN common c ON c.statement = w.statement
  ORDER BY w.statement, w.confidence DESC, w.observed_at DESC, w.id
), rests_on AS (
  SELECT w.statement, jsonb_agg(DISTINCT e.source) AS sources
  FROM said w JOIN common c ON c.statement = w.statement CROSS JOIN LATERAL jsonb_array_elements(w.sources) AS e(source)
  GROUP BY w.statement
)
SELECT c.statement, true, w.layer, w.label, w.content, w.subject, w.predicate, w.object, w.speaker, w.observed_at,
       c.expires_at, c.importance, c.confidence, c.voices, c.days, r.sources
FROM common c JOIN surest w ON w.statement = c.statement JOIN rests_on r ON r.statement = c.statement
UNION ALL
SELECT 'slot:' || o.slot, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM slots o
WHERE o.children >= greatest(from_children, 2) AND o.slot NOT IN (SELECT c.slot FROM common c WHERE c.slot IS NOT NULL)
ORDER BY 1
$candidates$;

REVOKE ALL ON FUNCTION slowwave.promotion_candidates(timestamptz, integer, double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION slowwave.promotion_candidates(timestamptz, integer, double precision) TO slowwave_app;

CREATE POLICY owner_reads_below ON slowwave.memories FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_below ON slowwave.memory_edges FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_below ON slowwave.corrections FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_below ON slowwave.skills FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_below ON slowwave.triggers FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_below ON slowwave.belief_evidence FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND starts_with(scope_path, current_setting('slowwave.scope_path', true) || chr(31)));
CREATE POLICY owner_reads_bound ON slowwave.memories FOR SELECT TO slowwave_owner USING (tenant_id = current_setting('slowwave.tenant_id', true) AND scope_path = current_setting('slowwave.scope_path', true));
CREATE FUNCTION slowwave.used_below(memory_ids uuid[]) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = slowwave, pg_temp AS $used$
  SELECT m.id FROM slowwave.memories m
  WHERE m.tenant_id = current_setting('slowwave.tenant_id', true) AND m.scope_path = current_setting('slowwave.scope_path', true) AND m.id IN (
    SELECT r.corrects FROM slowwave.memories r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.corrects = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.superseded_by FROM slowwave.memories r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.superseded_by = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.source_id FROM slowwave.memory_edges r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.source_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.target_id FROM slowwave.memory_edges r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.target_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.memory_id FROM slowwave.corrections r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.memory_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.memory_id FROM slowwave.skills r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.memory_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.memory_id FROM slowwave.triggers r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.memory_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
    UNION ALL
    SELECT r.memory_id FROM slowwave.belief_evidence r WHERE r.tenant_id = current_setting('slowwave.tenant_id', true)
      AND r.memory_id = ANY (memory_ids) AND starts_with(r.scope_path, current_setting('slowwave.scope_path', true) || chr(31))
  )
$used$;
REVOKE ALL ON FUNCTION slowwave.used_below(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION slowwave.used_below(uuid[]) TO slowwave_app;

CREATE FUNCTION slowwave.journal_memories_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memories', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.layer IS DISTINCT FROM n.layer THEN '"layer":' || coalesce(to_jsonb(o.layer)::text, 'null') END,
               CASE WHEN o.label IS DISTINCT FROM n.label THEN '"label":' || coalesce(to_jsonb(o.label)::text, 'null') END,
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(o.content)::text, 'null') END,
               CASE WHEN o.subject IS DISTINCT FROM n.subject THEN '"subject":' || coalesce(to_jsonb(o.subject)::text, 'null') END,
               CASE WHEN o.predicate IS DISTINCT FROM n.predicate THEN '"predicate":' || coalesce(to_jsonb(o.predicate)::text, 'null') END,
               CASE WHEN o.object IS DISTINCT FROM n.object THEN '"object":' || coalesce(to_jsonb(o.object)::text, 'null') END,
               CASE WHEN o.properties::text IS DISTINCT FROM n.properties::text THEN '"properties":' || coalesce(to_jsonb(o.properties)::text, 'null') END,
               CASE WHEN o.observed_at IS DISTINCT FROM n.observed_at THEN '"observed_at":' || coalesce(to_jsonb(o.observed_at)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(o.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(o.created_at)::text, 'null') END,
               CASE WHEN o.last_activity_at IS DISTINCT FROM n.last_activity_at THEN '"last_activity_at":' || coalesce(to_jsonb(o.last_activity_at)::text, 'null') END,
               CASE WHEN o.expires_at IS DISTINCT FROM n.expires_at THEN '"expires_at":' || coalesce(to_jsonb(o.expires_at)::text, 'null') END,
               CASE WHEN o.retired_at IS DISTINCT FROM n.retired_at THEN '"retired_at":' || coalesce(to_jsonb(o.retired_at)::text, 'null') END,
               CASE WHEN o.retired_reason IS DISTINCT FROM n.retired_reason THEN '"retired_reason":' || coalesce(to_jsonb(o.retired_reason)::text, 'null') END,
               CASE WHEN o.retired_by_run IS DISTINCT FROM n.retired_by_run THEN '"retired_by_run":' || coalesce(to_jsonb(o.retired_by_run)::text, 'null') END,
               CASE WHEN o.superseded_by IS DISTINCT FROM n.superseded_by THEN '"superseded_by":' || coalesce(to_jsonb(o.superseded_by)::text, 'null') END,
               CASE WHEN o.superseded_by_belief IS DISTINCT FROM n.superseded_by_belief THEN '"superseded_by_belief":' || coalesce(to_jsonb(o.superseded_by_belief)::text, 'null') END,
               CASE WHEN o.superseded_reason IS DISTINCT FROM n.superseded_reason THEN '"superseded_reason":' || coalesce(to_jsonb(o.superseded_reason)::text, 'null') END,
               CASE WHEN o.superseded_at IS DISTINCT FROM n.superseded_at THEN '"superseded_at":' || coalesce(to_jsonb(o.superseded_at)::text, 'null') END,
               CASE WHEN o.superseded_by_run IS DISTINCT FROM n.superseded_by_run THEN '"superseded_by_run":' || coalesce(to_jsonb(o.superseded_by_run)::text, 'null') END,
               CASE WHEN o.pinned IS DISTINCT FROM n.pinned THEN '"pinned":' || coalesce(to_jsonb(o.pinned)::text, 'null') END,
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(o.source)::text, 'null') END,
               CASE WHEN o.external_id IS DISTINCT FROM n.external_id THEN '"external_id":' || coalesce(to_jsonb(o.external_id)::text, 'null') END,
               CASE WHEN o.is_latest IS DISTINCT FROM n.is_latest THEN '"is_latest":' || coalesce(to_jsonb(o.is_latest)::text, 'null') END,
               CASE WHEN o.corrects IS DISTINCT FROM n.corrects THEN '"corrects":' || coalesce(to_jsonb(o.corrects)::text, 'null') END,
               CASE WHEN o.content_hash IS DISTINCT FROM n.content_hash THEN '"content_hash":' || coalesce(to_jsonb(o.content_hash)::text, 'null') END,
               CASE WHEN o.derived_key IS DISTINCT FROM n.derived_key THEN '"derived_key":' || coalesce(to_jsonb(o.derived_key)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.layer IS DISTINCT FROM n.layer THEN '"layer":' || coalesce(to_jsonb(n.layer)::text, 'null') END,
               CASE WHEN o.label IS DISTINCT FROM n.label THEN '"label":' || coalesce(to_jsonb(n.label)::text, 'null') END,
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(n.content)::text, 'null') END,
               CASE WHEN o.subject IS DISTINCT FROM n.subject THEN '"subject":' || coalesce(to_jsonb(n.subject)::text, 'null') END,
               CASE WHEN o.predicate IS DISTINCT FROM n.predicate THEN '"predicate":' || coalesce(to_jsonb(n.predicate)::text, 'null') END,
               CASE WHEN o.object IS DISTINCT FROM n.object THEN '"object":' || coalesce(to_jsonb(n.object)::text, 'null') END,
               CASE WHEN o.properties::text IS DISTINCT FROM n.properties::text THEN '"properties":' || coalesce(to_jsonb(n.properties)::text, 'null') END,
               CASE WHEN o.observed_at IS DISTINCT FROM n.observed_at THEN '"observed_at":' || coalesce(to_jsonb(n.observed_at)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(n.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(n.created_at)::text, 'null') END,
               CASE WHEN o.last_activity_at IS DISTINCT FROM n.last_activity_at THEN '"last_activity_at":' || coalesce(to_jsonb(n.last_activity_at)::text, 'null') END,
               CASE WHEN o.expires_at IS DISTINCT FROM n.expires_at THEN '"expires_at":' || coalesce(to_jsonb(n.expires_at)::text, 'null') END,
               CASE WHEN o.retired_at IS DISTINCT FROM n.retired_at THEN '"retired_at":' || coalesce(to_jsonb(n.retired_at)::text, 'null') END,
               CASE WHEN o.retired_reason IS DISTINCT FROM n.retired_reason THEN '"retired_reason":' || coalesce(to_jsonb(n.retired_reason)::text, 'null') END,
               CASE WHEN o.retired_by_run IS DISTINCT FROM n.retired_by_run THEN '"retired_by_run":' || coalesce(to_jsonb(n.retired_by_run)::text, 'null') END,
               CASE WHEN o.superseded_by IS DISTINCT FROM n.superseded_by THEN '"superseded_by":' || coalesce(to_jsonb(n.superseded_by)::text, 'null') END,
               CASE WHEN o.superseded_by_belief IS DISTINCT FROM n.superseded_by_belief THEN '"superseded_by_belief":' || coalesce(to_jsonb(n.superseded_by_belief)::text, 'null') END,
               CASE WHEN o.superseded_reason IS DISTINCT FROM n.superseded_reason THEN '"superseded_reason":' || coalesce(to_jsonb(n.superseded_reason)::text, 'null') END,
               CASE WHEN o.superseded_at IS DISTINCT FROM n.superseded_at THEN '"superseded_at":' || coalesce(to_jsonb(n.superseded_at)::text, 'null') END,
               CASE WHEN o.superseded_by_run IS DISTINCT FROM n.superseded_by_run THEN '"superseded_by_run":' || coalesce(to_jsonb(n.superseded_by_run)::text, 'null') END,
               CASE WHEN o.pinned IS DISTINCT FROM n.pinned THEN '"pinned":' || coalesce(to_jsonb(n.pinned)::text, 'null') END,
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(n.source)::text, 'null') END,
               CASE WHEN o.external_id IS DISTINCT FROM n.external_id THEN '"external_id":' || coalesce(to_jsonb(n.external_id)::text, 'null') END,
               CASE WHEN o.is_latest IS DISTINCT FROM n.is_latest THEN '"is_latest":' || coalesce(to_jsonb(n.is_latest)::text, 'null') END,
               CASE WHEN o.corrects IS DISTINCT FROM n.corrects THEN '"corrects":' || coalesce(to_jsonb(n.corrects)::text, 'null') END,
               CASE WHEN o.content_hash IS DISTINCT FROM n.content_hash THEN '"content_hash":' || coalesce(to_jsonb(n.content_hash)::text, 'null') END,
               CASE WHEN o.derived_key IS DISTINCT FROM n.derived_key THEN '"derived_key":' || coalesce(to_jsonb(n.derived_key)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memories
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memories_update();

CREATE FUNCTION slowwave.journal_memories_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memories', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memories
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memories_delete();

CREATE FUNCTION slowwave.journal_memory_state_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_state', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('memory_id', n.memory_id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.importance IS DISTINCT FROM n.importance THEN '"importance":' || coalesce(to_jsonb(o.importance)::text, 'null') END,
               CASE WHEN o.confidence IS DISTINCT FROM n.confidence THEN '"confidence":' || coalesce(to_jsonb(o.confidence)::text, 'null') END,
               CASE WHEN o.access_count IS DISTINCT FROM n.access_count THEN '"access_count":' || coalesce(to_jsonb(o.access_count)::text, 'null') END,
               CASE WHEN o.last_access_at IS DISTINCT FROM n.last_access_at THEN '"last_access_at":' || coalesce(to_jsonb(o.last_access_at)::text, 'null') END,
               CASE WHEN o.risk_words::text IS DISTINCT FROM n.risk_words::text THEN '"risk_words":' || coalesce(to_jsonb(o.risk_words)::text, 'null') END,
               CASE WHEN o.risk_tagged_at IS DISTINCT FROM n.risk_tagged_at THEN '"risk_tagged_at":' || coalesce(to_jsonb(o.risk_tagged_at)::text, 'null') END,
               CASE WHEN o.risk_checked IS DISTINCT FROM n.risk_checked THEN '"risk_checked":' || coalesce(to_jsonb(o.risk_checked)::text, 'null') END,
               CASE WHEN o.first_night IS DISTINCT FROM n.first_night THEN '"first_night":' || coalesce(to_jsonb(o.first_night)::text, 'null') END,
               CASE WHEN o.decayed_at IS DISTINCT FROM n.decayed_at THEN '"decayed_at":' || coalesce(to_jsonb(o.decayed_at)::text, 'null') END,
               CASE WHEN o.wording_key IS DISTINCT FROM n.wording_key THEN '"wording_key":' || coalesce(to_jsonb(o.wording_key)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.importance IS DISTINCT FROM n.importance THEN '"importance":' || coalesce(to_jsonb(n.importance)::text, 'null') END,
               CASE WHEN o.confidence IS DISTINCT FROM n.confidence THEN '"confidence":' || coalesce(to_jsonb(n.confidence)::text, 'null') END,
               CASE WHEN o.access_count IS DISTINCT FROM n.access_count THEN '"access_count":' || coalesce(to_jsonb(n.access_count)::text, 'null') END,
               CASE WHEN o.last_access_at IS DISTINCT FROM n.last_access_at THEN '"last_access_at":' || coalesce(to_jsonb(n.last_access_at)::text, 'null') END,
               CASE WHEN o.risk_words::text IS DISTINCT FROM n.risk_words::text THEN '"risk_words":' || coalesce(to_jsonb(n.risk_words)::text, 'null') END,
               CASE WHEN o.risk_tagged_at IS DISTINCT FROM n.risk_tagged_at THEN '"risk_tagged_at":' || coalesce(to_jsonb(n.risk_tagged_at)::text, 'null') END,
               CASE WHEN o.risk_checked IS DISTINCT FROM n.risk_checked THEN '"risk_checked":' || coalesce(to_jsonb(n.risk_checked)::text, 'null') END,
               CASE WHEN o.first_night IS DISTINCT FROM n.first_night THEN '"first_night":' || coalesce(to_jsonb(n.first_night)::text, 'null') END,
               CASE WHEN o.decayed_at IS DISTINCT FROM n.decayed_at THEN '"decayed_at":' || coalesce(to_jsonb(n.decayed_at)::text, 'null') END,
               CASE WHEN o.wording_key IS DISTINCT FROM n.wording_key THEN '"wording_key":' || coalesce(to_jsonb(n.wording_key)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memory_state
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_state_update();

CREATE FUNCTION slowwave.journal_memory_state_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_state', 'delete',
           jsonb_build_object('memory_id', n.memory_id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memory_state
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_state_delete();

CREATE FUNCTION slowwave.journal_memory_embeddings_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_embeddings', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('memory_id', n.memory_id, 'model', n.model, 'aspect', n.aspect) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.dimension IS DISTINCT FROM n.dimension THEN '"dimension":' || coalesce(to_jsonb(o.dimension)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.dimension IS DISTINCT FROM n.dimension THEN '"dimension":' || coalesce(to_jsonb(n.dimension)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id AND n.model = o.model AND n.aspect = o.aspect
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memory_embeddings
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_embeddings_update();

CREATE FUNCTION slowwave.journal_memory_embeddings_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_embeddings', 'delete',
           jsonb_build_object('memory_id', n.memory_id, 'model', n.model, 'aspect', n.aspect), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memory_embeddings
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_embeddings_delete();

CREATE FUNCTION slowwave.journal_memory_summaries_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_summaries', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('memory_id', n.memory_id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(o.content)::text, 'null') END,
               CASE WHEN o.cited::text IS DISTINCT FROM n.cited::text THEN '"cited":' || coalesce(to_jsonb(o.cited)::text, 'null') END,
               CASE WHEN o.model IS DISTINCT FROM n.model THEN '"model":' || coalesce(to_jsonb(o.model)::text, 'null') END,
               CASE WHEN o.call_key IS DISTINCT FROM n.call_key THEN '"call_key":' || coalesce(to_jsonb(o.call_key)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(o.recorded_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(n.content)::text, 'null') END,
               CASE WHEN o.cited::text IS DISTINCT FROM n.cited::text THEN '"cited":' || coalesce(to_jsonb(n.cited)::text, 'null') END,
               CASE WHEN o.model IS DISTINCT FROM n.model THEN '"model":' || coalesce(to_jsonb(n.model)::text, 'null') END,
               CASE WHEN o.call_key IS DISTINCT FROM n.call_key THEN '"call_key":' || coalesce(to_jsonb(n.call_key)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(n.recorded_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memory_summaries
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_summaries_update();

CREATE FUNCTION slowwave.journal_memory_summaries_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_summaries', 'delete',
           jsonb_build_object('memory_id', n.memory_id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memory_summaries
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_summaries_delete();

CREATE FUNCTION slowwave.journal_memory_accesses_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_accesses', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(o.memory_id)::text, 'null') END,
               CASE WHEN o.kind IS DISTINCT FROM n.kind THEN '"kind":' || coalesce(to_jsonb(o.kind)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(o.at)::text, 'null') END,
               CASE WHEN o.external_id IS DISTINCT FROM n.external_id THEN '"external_id":' || coalesce(to_jsonb(o.external_id)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(o.consumed_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(n.memory_id)::text, 'null') END,
               CASE WHEN o.kind IS DISTINCT FROM n.kind THEN '"kind":' || coalesce(to_jsonb(n.kind)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(n.at)::text, 'null') END,
               CASE WHEN o.external_id IS DISTINCT FROM n.external_id THEN '"external_id":' || coalesce(to_jsonb(n.external_id)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(n.consumed_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memory_accesses
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_accesses_update();

CREATE FUNCTION slowwave.journal_memory_accesses_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_accesses', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memory_accesses
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_accesses_delete();

CREATE FUNCTION slowwave.journal_memory_edges_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_edges', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.source_id IS DISTINCT FROM n.source_id THEN '"source_id":' || coalesce(to_jsonb(o.source_id)::text, 'null') END,
               CASE WHEN o.target_id IS DISTINCT FROM n.target_id THEN '"target_id":' || coalesce(to_jsonb(o.target_id)::text, 'null') END,
               CASE WHEN o.relationship IS DISTINCT FROM n.relationship THEN '"relationship":' || coalesce(to_jsonb(o.relationship)::text, 'null') END,
               CASE WHEN o.kind IS DISTINCT FROM n.kind THEN '"kind":' || coalesce(to_jsonb(o.kind)::text, 'null') END,
               CASE WHEN o.weight IS DISTINCT FROM n.weight THEN '"weight":' || coalesce(to_jsonb(o.weight)::text, 'null') END,
               CASE WHEN o.evidence_count IS DISTINCT FROM n.evidence_count THEN '"evidence_count":' || coalesce(to_jsonb(o.evidence_count)::text, 'null') END,
               CASE WHEN o.last_evidence_at IS DISTINCT FROM n.last_evidence_at THEN '"last_evidence_at":' || coalesce(to_jsonb(o.last_evidence_at)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(o.status)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(o.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(o.created_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.source_id IS DISTINCT FROM n.source_id THEN '"source_id":' || coalesce(to_jsonb(n.source_id)::text, 'null') END,
               CASE WHEN o.target_id IS DISTINCT FROM n.target_id THEN '"target_id":' || coalesce(to_jsonb(n.target_id)::text, 'null') END,
               CASE WHEN o.relationship IS DISTINCT FROM n.relationship THEN '"relationship":' || coalesce(to_jsonb(n.relationship)::text, 'null') END,
               CASE WHEN o.kind IS DISTINCT FROM n.kind THEN '"kind":' || coalesce(to_jsonb(n.kind)::text, 'null') END,
               CASE WHEN o.weight IS DISTINCT FROM n.weight THEN '"weight":' || coalesce(to_jsonb(n.weight)::text, 'null') END,
               CASE WHEN o.evidence_count IS DISTINCT FROM n.evidence_count THEN '"evidence_count":' || coalesce(to_jsonb(n.evidence_count)::text, 'null') END,
               CASE WHEN o.last_evidence_at IS DISTINCT FROM n.last_evidence_at THEN '"last_evidence_at":' || coalesce(to_jsonb(n.last_evidence_at)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(n.status)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(n.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(n.created_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.memory_edges
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_edges_update();

CREATE FUNCTION slowwave.journal_memory_edges_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'memory_edges', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.memory_edges
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_memory_edges_delete();

CREATE FUNCTION slowwave.journal_pending_connections_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'pending_connections', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(o.source)::text, 'null') END,
               CASE WHEN o.target IS DISTINCT FROM n.target THEN '"target":' || coalesce(to_jsonb(o.target)::text, 'null') END,
               CASE WHEN o.relationship IS DISTINCT FROM n.relationship THEN '"relationship":' || coalesce(to_jsonb(o.relationship)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(o.status)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(o.at)::text, 'null') END,
               CASE WHEN o.outcome IS DISTINCT FROM n.outcome THEN '"outcome":' || coalesce(to_jsonb(o.outcome)::text, 'null') END,
               CASE WHEN o.reason IS DISTINCT FROM n.reason THEN '"reason":' || coalesce(to_jsonb(o.reason)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(o.consumed_by_run)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(n.source)::text, 'null') END,
               CASE WHEN o.target IS DISTINCT FROM n.target THEN '"target":' || coalesce(to_jsonb(n.target)::text, 'null') END,
               CASE WHEN o.relationship IS DISTINCT FROM n.relationship THEN '"relationship":' || coalesce(to_jsonb(n.relationship)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(n.status)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(n.at)::text, 'null') END,
               CASE WHEN o.outcome IS DISTINCT FROM n.outcome THEN '"outcome":' || coalesce(to_jsonb(n.outcome)::text, 'null') END,
               CASE WHEN o.reason IS DISTINCT FROM n.reason THEN '"reason":' || coalesce(to_jsonb(n.reason)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(n.consumed_by_run)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.pending_connections
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_pending_connections_update();

CREATE FUNCTION slowwave.journal_pending_connections_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'pending_connections', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.pending_connections
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_pending_connections_delete();

CREATE FUNCTION slowwave.journal_corrections_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'corrections', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(o.memory_id)::text, 'null') END,
               CASE WHEN o.who IS DISTINCT FROM n.who THEN '"who":' || coalesce(to_jsonb(o.who)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(o.at)::text, 'null') END,
               CASE WHEN o.what::text IS DISTINCT FROM n.what::text THEN '"what":' || coalesce(to_jsonb(o.what)::text, 'null') END,
               CASE WHEN o.outcome IS DISTINCT FROM n.outcome THEN '"outcome":' || coalesce(to_jsonb(o.outcome)::text, 'null') END,
               CASE WHEN o.reasons::text IS DISTINCT FROM n.reasons::text THEN '"reasons":' || coalesce(to_jsonb(o.reasons)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(o.consumed_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(n.memory_id)::text, 'null') END,
               CASE WHEN o.who IS DISTINCT FROM n.who THEN '"who":' || coalesce(to_jsonb(n.who)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(n.at)::text, 'null') END,
               CASE WHEN o.what::text IS DISTINCT FROM n.what::text THEN '"what":' || coalesce(to_jsonb(n.what)::text, 'null') END,
               CASE WHEN o.outcome IS DISTINCT FROM n.outcome THEN '"outcome":' || coalesce(to_jsonb(n.outcome)::text, 'null') END,
               CASE WHEN o.reasons::text IS DISTINCT FROM n.reasons::text THEN '"reasons":' || coalesce(to_jsonb(n.reasons)::text, 'null') END,
               CASE WHEN o.consumed_by_run IS DISTINCT FROM n.consumed_by_run THEN '"consumed_by_run":' || coalesce(to_jsonb(n.consumed_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.corrections
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_corrections_update();

CREATE FUNCTION slowwave.journal_corrections_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'corrections', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.corrections
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_corrections_delete();

CREATE FUNCTION slowwave.journal_soul_profiles_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'soul_profiles', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('scope_path', n.scope_path, 'field', n.field) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.value::text IS DISTINCT FROM n.value::text THEN '"value":' || coalesce(to_jsonb(o.value)::text, 'null') END,
               CASE WHEN o.type IS DISTINCT FROM n.type THEN '"type":' || coalesce(to_jsonb(o.type)::text, 'null') END,
               CASE WHEN o.previous::text IS DISTINCT FROM n.previous::text THEN '"previous":' || coalesce(to_jsonb(o.previous)::text, 'null') END,
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(o.source)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(o.at)::text, 'null') END,
               CASE WHEN o.correction_id IS DISTINCT FROM n.correction_id THEN '"correction_id":' || coalesce(to_jsonb(o.correction_id)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.value::text IS DISTINCT FROM n.value::text THEN '"value":' || coalesce(to_jsonb(n.value)::text, 'null') END,
               CASE WHEN o.type IS DISTINCT FROM n.type THEN '"type":' || coalesce(to_jsonb(n.type)::text, 'null') END,
               CASE WHEN o.previous::text IS DISTINCT FROM n.previous::text THEN '"previous":' || coalesce(to_jsonb(n.previous)::text, 'null') END,
               CASE WHEN o.source IS DISTINCT FROM n.source THEN '"source":' || coalesce(to_jsonb(n.source)::text, 'null') END,
               CASE WHEN o.at IS DISTINCT FROM n.at THEN '"at":' || coalesce(to_jsonb(n.at)::text, 'null') END,
               CASE WHEN o.correction_id IS DISTINCT FROM n.correction_id THEN '"correction_id":' || coalesce(to_jsonb(n.correction_id)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.scope_path = o.scope_path AND n.field = o.field
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.soul_profiles
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_soul_profiles_update();

CREATE FUNCTION slowwave.journal_soul_profiles_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'soul_profiles', 'delete',
           jsonb_build_object('scope_path', n.scope_path, 'field', n.field), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.soul_profiles
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_soul_profiles_delete();

CREATE FUNCTION slowwave.journal_triggers_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'triggers', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('id', n.id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(o.memory_id)::text, 'null') END,
               CASE WHEN o.condition IS DISTINCT FROM n.condition THEN '"condition":' || coalesce(to_jsonb(o.condition)::text, 'null') END,
               CASE WHEN o.due_at IS DISTINCT FROM n.due_at THEN '"due_at":' || coalesce(to_jsonb(o.due_at)::text, 'null') END,
               CASE WHEN o.recurrence IS DISTINCT FROM n.recurrence THEN '"recurrence":' || coalesce(to_jsonb(o.recurrence)::text, 'null') END,
               CASE WHEN o.state IS DISTINCT FROM n.state THEN '"state":' || coalesce(to_jsonb(o.state)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(o.recorded_at)::text, 'null') END,
               CASE WHEN o.resolved_at IS DISTINCT FROM n.resolved_at THEN '"resolved_at":' || coalesce(to_jsonb(o.resolved_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.memory_id IS DISTINCT FROM n.memory_id THEN '"memory_id":' || coalesce(to_jsonb(n.memory_id)::text, 'null') END,
               CASE WHEN o.condition IS DISTINCT FROM n.condition THEN '"condition":' || coalesce(to_jsonb(n.condition)::text, 'null') END,
               CASE WHEN o.due_at IS DISTINCT FROM n.due_at THEN '"due_at":' || coalesce(to_jsonb(n.due_at)::text, 'null') END,
               CASE WHEN o.recurrence IS DISTINCT FROM n.recurrence THEN '"recurrence":' || coalesce(to_jsonb(n.recurrence)::text, 'null') END,
               CASE WHEN o.state IS DISTINCT FROM n.state THEN '"state":' || coalesce(to_jsonb(n.state)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(n.recorded_at)::text, 'null') END,
               CASE WHEN o.resolved_at IS DISTINCT FROM n.resolved_at THEN '"resolved_at":' || coalesce(to_jsonb(n.resolved_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.id = o.id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.triggers
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_triggers_update();

CREATE FUNCTION slowwave.journal_triggers_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'triggers', 'delete',
           jsonb_build_object('id', n.id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.triggers
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_triggers_delete();

CREATE FUNCTION slowwave.journal_harmonic_beliefs_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'harmonic_beliefs', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('belief_id', n.belief_id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.subject IS DISTINCT FROM n.subject THEN '"subject":' || coalesce(to_jsonb(o.subject)::text, 'null') END,
               CASE WHEN o.predicate IS DISTINCT FROM n.predicate THEN '"predicate":' || coalesce(to_jsonb(o.predicate)::text, 'null') END,
               CASE WHEN o.object IS DISTINCT FROM n.object THEN '"object":' || coalesce(to_jsonb(o.object)::text, 'null') END,
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(o.content)::text, 'null') END,
               CASE WHEN o.confidence IS DISTINCT FROM n.confidence THEN '"confidence":' || coalesce(to_jsonb(o.confidence)::text, 'null') END,
               CASE WHEN o.provenance::text IS DISTINCT FROM n.provenance::text THEN '"provenance":' || coalesce(to_jsonb(o.provenance)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(o.status)::text, 'null') END,
               CASE WHEN o.status_reason IS DISTINCT FROM n.status_reason THEN '"status_reason":' || coalesce(to_jsonb(o.status_reason)::text, 'null') END,
               CASE WHEN o.valid_from IS DISTINCT FROM n.valid_from THEN '"valid_from":' || coalesce(to_jsonb(o.valid_from)::text, 'null') END,
               CASE WHEN o.valid_to IS DISTINCT FROM n.valid_to THEN '"valid_to":' || coalesce(to_jsonb(o.valid_to)::text, 'null') END,
               CASE WHEN o.superseded_by_belief IS DISTINCT FROM n.superseded_by_belief THEN '"superseded_by_belief":' || coalesce(to_jsonb(o.superseded_by_belief)::text, 'null') END,
               CASE WHEN o.cluster_id IS DISTINCT FROM n.cluster_id THEN '"cluster_id":' || coalesce(to_jsonb(o.cluster_id)::text, 'null') END,
               CASE WHEN o.iteration IS DISTINCT FROM n.iteration THEN '"iteration":' || coalesce(to_jsonb(o.iteration)::text, 'null') END,
               CASE WHEN o.model IS DISTINCT FROM n.model THEN '"model":' || coalesce(to_jsonb(o.model)::text, 'null') END,
               CASE WHEN o.rules_version IS DISTINCT FROM n.rules_version THEN '"rules_version":' || coalesce(to_jsonb(o.rules_version)::text, 'null') END,
               CASE WHEN o.model_call_key IS DISTINCT FROM n.model_call_key THEN '"model_call_key":' || coalesce(to_jsonb(o.model_call_key)::text, 'null') END,
               CASE WHEN o.rationale IS DISTINCT FROM n.rationale THEN '"rationale":' || coalesce(to_jsonb(o.rationale)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(o.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(o.created_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.subject IS DISTINCT FROM n.subject THEN '"subject":' || coalesce(to_jsonb(n.subject)::text, 'null') END,
               CASE WHEN o.predicate IS DISTINCT FROM n.predicate THEN '"predicate":' || coalesce(to_jsonb(n.predicate)::text, 'null') END,
               CASE WHEN o.object IS DISTINCT FROM n.object THEN '"object":' || coalesce(to_jsonb(n.object)::text, 'null') END,
               CASE WHEN o.content IS DISTINCT FROM n.content THEN '"content":' || coalesce(to_jsonb(n.content)::text, 'null') END,
               CASE WHEN o.confidence IS DISTINCT FROM n.confidence THEN '"confidence":' || coalesce(to_jsonb(n.confidence)::text, 'null') END,
               CASE WHEN o.provenance::text IS DISTINCT FROM n.provenance::text THEN '"provenance":' || coalesce(to_jsonb(n.provenance)::text, 'null') END,
               CASE WHEN o.status IS DISTINCT FROM n.status THEN '"status":' || coalesce(to_jsonb(n.status)::text, 'null') END,
               CASE WHEN o.status_reason IS DISTINCT FROM n.status_reason THEN '"status_reason":' || coalesce(to_jsonb(n.status_reason)::text, 'null') END,
               CASE WHEN o.valid_from IS DISTINCT FROM n.valid_from THEN '"valid_from":' || coalesce(to_jsonb(n.valid_from)::text, 'null') END,
               CASE WHEN o.valid_to IS DISTINCT FROM n.valid_to THEN '"valid_to":' || coalesce(to_jsonb(n.valid_to)::text, 'null') END,
               CASE WHEN o.superseded_by_belief IS DISTINCT FROM n.superseded_by_belief THEN '"superseded_by_belief":' || coalesce(to_jsonb(n.superseded_by_belief)::text, 'null') END,
               CASE WHEN o.cluster_id IS DISTINCT FROM n.cluster_id THEN '"cluster_id":' || coalesce(to_jsonb(n.cluster_id)::text, 'null') END,
               CASE WHEN o.iteration IS DISTINCT FROM n.iteration THEN '"iteration":' || coalesce(to_jsonb(n.iteration)::text, 'null') END,
               CASE WHEN o.model IS DISTINCT FROM n.model THEN '"model":' || coalesce(to_jsonb(n.model)::text, 'null') END,
               CASE WHEN o.rules_version IS DISTINCT FROM n.rules_version THEN '"rules_version":' || coalesce(to_jsonb(n.rules_version)::text, 'null') END,
               CASE WHEN o.model_call_key IS DISTINCT FROM n.model_call_key THEN '"model_call_key":' || coalesce(to_jsonb(n.model_call_key)::text, 'null') END,
               CASE WHEN o.rationale IS DISTINCT FROM n.rationale THEN '"rationale":' || coalesce(to_jsonb(n.rationale)::text, 'null') END,
               CASE WHEN o.recorded_at IS DISTINCT FROM n.recorded_at THEN '"recorded_at":' || coalesce(to_jsonb(n.recorded_at)::text, 'null') END,
               CASE WHEN o.created_at IS DISTINCT FROM n.created_at THEN '"created_at":' || coalesce(to_jsonb(n.created_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.belief_id = o.belief_id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.harmonic_beliefs
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_harmonic_beliefs_update();

CREATE FUNCTION slowwave.journal_harmonic_beliefs_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'harmonic_beliefs', 'delete',
           jsonb_build_object('belief_id', n.belief_id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.harmonic_beliefs
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_harmonic_beliefs_delete();

CREATE FUNCTION slowwave.journal_belief_evidence_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'belief_evidence', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('belief_id', n.belief_id, 'memory_id', n.memory_id, 'role', n.role) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.belief_id = o.belief_id AND n.memory_id = o.memory_id AND n.role = o.role
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.belief_evidence
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_belief_evidence_update();

CREATE FUNCTION slowwave.journal_belief_evidence_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'belief_evidence', 'delete',
           jsonb_build_object('belief_id', n.belief_id, 'memory_id', n.memory_id, 'role', n.role), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.belief_evidence
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_belief_evidence_delete();

CREATE FUNCTION slowwave.journal_belief_embeddings_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'belief_embeddings', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('belief_id', n.belief_id, 'model', n.model) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.dimension IS DISTINCT FROM n.dimension THEN '"dimension":' || coalesce(to_jsonb(o.dimension)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.dimension IS DISTINCT FROM n.dimension THEN '"dimension":' || coalesce(to_jsonb(n.dimension)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.belief_id = o.belief_id AND n.model = o.model
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.belief_embeddings
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_belief_embeddings_update();

CREATE FUNCTION slowwave.journal_belief_embeddings_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'belief_embeddings', 'delete',
           jsonb_build_object('belief_id', n.belief_id, 'model', n.model), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.belief_embeddings
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_belief_embeddings_delete();

CREATE FUNCTION slowwave.journal_harmonize_queue_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'harmonize_queue', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('memory_id', n.memory_id) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.enqueued_at IS DISTINCT FROM n.enqueued_at THEN '"enqueued_at":' || coalesce(to_jsonb(o.enqueued_at)::text, 'null') END,
               CASE WHEN o.passed_over_at IS DISTINCT FROM n.passed_over_at THEN '"passed_over_at":' || coalesce(to_jsonb(o.passed_over_at)::text, 'null') END,
               CASE WHEN o.reason IS DISTINCT FROM n.reason THEN '"reason":' || coalesce(to_jsonb(o.reason)::text, 'null') END,
               CASE WHEN o.harmonized_by_run IS DISTINCT FROM n.harmonized_by_run THEN '"harmonized_by_run":' || coalesce(to_jsonb(o.harmonized_by_run)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.enqueued_at IS DISTINCT FROM n.enqueued_at THEN '"enqueued_at":' || coalesce(to_jsonb(n.enqueued_at)::text, 'null') END,
               CASE WHEN o.passed_over_at IS DISTINCT FROM n.passed_over_at THEN '"passed_over_at":' || coalesce(to_jsonb(n.passed_over_at)::text, 'null') END,
               CASE WHEN o.reason IS DISTINCT FROM n.reason THEN '"reason":' || coalesce(to_jsonb(n.reason)::text, 'null') END,
               CASE WHEN o.harmonized_by_run IS DISTINCT FROM n.harmonized_by_run THEN '"harmonized_by_run":' || coalesce(to_jsonb(n.harmonized_by_run)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.memory_id = o.memory_id
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.harmonize_queue
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_harmonize_queue_update();

CREATE FUNCTION slowwave.journal_harmonize_queue_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'harmonize_queue', 'delete',
           jsonb_build_object('memory_id', n.memory_id), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.harmonize_queue
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_harmonize_queue_delete();

CREATE FUNCTION slowwave.journal_decisions_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT tenant_id, scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'decisions', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object('scope_path', n.scope_path, 'decision_key', n.decision_key) AS row_key,
             ('{' || concat_ws(',',
               CASE WHEN o.phase IS DISTINCT FROM n.phase THEN '"phase":' || coalesce(to_jsonb(o.phase)::text, 'null') END,
               CASE WHEN o.verdict IS DISTINCT FROM n.verdict THEN '"verdict":' || coalesce(to_jsonb(o.verdict)::text, 'null') END,
               CASE WHEN o.members::text IS DISTINCT FROM n.members::text THEN '"members":' || coalesce(to_jsonb(o.members)::text, 'null') END,
               CASE WHEN o.rules_version IS DISTINCT FROM n.rules_version THEN '"rules_version":' || coalesce(to_jsonb(o.rules_version)::text, 'null') END,
               CASE WHEN o.run_id IS DISTINCT FROM n.run_id THEN '"run_id":' || coalesce(to_jsonb(o.run_id)::text, 'null') END,
               CASE WHEN o.decided_at IS DISTINCT FROM n.decided_at THEN '"decided_at":' || coalesce(to_jsonb(o.decided_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(o.created_by_run)::text, 'null') END) || '}')::jsonb AS before,
             ('{' || concat_ws(',',
               CASE WHEN o.phase IS DISTINCT FROM n.phase THEN '"phase":' || coalesce(to_jsonb(n.phase)::text, 'null') END,
               CASE WHEN o.verdict IS DISTINCT FROM n.verdict THEN '"verdict":' || coalesce(to_jsonb(n.verdict)::text, 'null') END,
               CASE WHEN o.members::text IS DISTINCT FROM n.members::text THEN '"members":' || coalesce(to_jsonb(n.members)::text, 'null') END,
               CASE WHEN o.rules_version IS DISTINCT FROM n.rules_version THEN '"rules_version":' || coalesce(to_jsonb(n.rules_version)::text, 'null') END,
               CASE WHEN o.run_id IS DISTINCT FROM n.run_id THEN '"run_id":' || coalesce(to_jsonb(n.run_id)::text, 'null') END,
               CASE WHEN o.decided_at IS DISTINCT FROM n.decided_at THEN '"decided_at":' || coalesce(to_jsonb(n.decided_at)::text, 'null') END,
               CASE WHEN o.created_by_run IS DISTINCT FROM n.created_by_run THEN '"created_by_run":' || coalesce(to_jsonb(n.created_by_run)::text, 'null') END) || '}')::jsonb AS after
      FROM old_rows o JOIN new_rows n ON n.tenant_id = o.tenant_id AND n.scope_path = o.scope_path AND n.decision_key = o.decision_key
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON slowwave.decisions
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_decisions_update();

CREATE FUNCTION slowwave.journal_decisions_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO slowwave.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)
    SELECT n.tenant_id, n.scope_path, (SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step')), 'decisions', 'delete',
           jsonb_build_object('scope_path', n.scope_path, 'decision_key', n.decision_key), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON slowwave.decisions
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION slowwave.journal_decisions_delete();

GRANT USAGE ON SCHEMA slowwave TO slowwave_app, slowwave_operator;

GRANT USAGE ON ALL SEQUENCES IN SCHEMA slowwave TO slowwave_app;
