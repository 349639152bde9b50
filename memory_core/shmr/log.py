"""SHMR's step log: one row a run in the resonance log, whatever happened; it needs no other step.

Everything is read from what the run wrote, so that a resumed run and a preview log what an undisturbed run logs.
Clusters that no step could finish are closed as failed here, and their members wait again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.shmr.collect import waiting
from memory_core.shmr.queue import put_back
from memory_core.shmr.shown import beliefs_of_run, shown_beliefs, superseded_by_run
from memory_core.shmr.stored import ELIGIBLE, shmr_settings

NAME = "log"

STEPS = ("embed", "collect", "cluster", "harmonize", "score", "apply")

BELIEFS_SHOWN = 50
SUPERSEDED_SHOWN = 100

_CLOSE = """
UPDATE memory_resonance_clusters
SET status = 'failed',
    reason = coalesce(reason, 'the step ' || CASE status WHEN 'pending' THEN 'harmonize' WHEN 'proposed' THEN 'score'
                                                        ELSE 'apply' END || ' did not finish it')
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id
  AND status IN ('pending', 'proposed', 'accepted')
RETURNING cluster_id
"""

_CLUSTERS = """
SELECT status, count(*) AS count, avg(score) AS score, min(reason) AS reason,
       (array_agg(DISTINCT model) FILTER (WHERE model IS NOT NULL))[1] AS model
FROM memory_resonance_clusters
WHERE tenant_id = :tenant_id AND scope_path = :scope_path AND run_id = :run_id
GROUP BY status ORDER BY status
"""

_COUNTS = f"""
SELECT (SELECT count(*) FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = ANY(:visible_paths)
        AND ({ELIGIBLE} OR m.superseded_by_run = :run_id)) AS candidates,
       (SELECT count(*) FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
        AND m.superseded_by_run = :run_id AND m.superseded_reason <> 'duplicate') AS resolved,
       (SELECT count(*) FROM memories m WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path
        AND m.superseded_by_run = :run_id AND m.superseded_reason = 'duplicate') AS duplicates,
       (SELECT count(*) FROM decisions d WHERE d.tenant_id = :tenant_id AND d.scope_path = :scope_path
        AND d.run_id = :run_id AND d.phase = 'dampen') AS dampened,
       (SELECT count(*) FROM harmonize_queue q WHERE q.tenant_id = :tenant_id AND q.scope_path = :scope_path
        AND q.harmonized_by_run = :run_id) AS looked_at,
       (SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) FROM model_attempts c WHERE c.tenant_id = :tenant_id
        AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.purpose = 'harmonize') AS tokens,
       (SELECT CASE WHEN coalesce(bool_or(cost IS NULL AND prompt_tokens + completion_tokens > 0), false) THEN NULL
                ELSE coalesce(sum(cost), 0) END FROM model_attempts c WHERE c.tenant_id = :tenant_id
        AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.purpose = 'harmonize') AS cost,
       (SELECT count(*) FROM model_attempts c WHERE c.tenant_id = :tenant_id
        AND c.scope_path = :scope_path AND c.run_id = :run_id AND c.purpose = 'harmonize') AS calls,
       (SELECT coalesce(sum(extract(epoch FROM finished_at - started_at)), 0) * 1000 FROM run_steps s
         WHERE s.tenant_id = :tenant_id
        AND s.run_id = :run_id AND s.step = ANY(:steps)) AS duration_ms,
       (SELECT count(*) FROM run_steps s WHERE s.tenant_id = :tenant_id AND s.run_id = :run_id AND s.step = ANY(:steps)
        AND s.status = 'failed') AS failed_steps
"""

_INSERT = """
INSERT INTO memory_resonance_log (tenant_id, id, scope_path, session_id, cluster_count, beliefs_generated,
  contradictions_resolved,
  harmony_score_avg, duration_ms, as_of, status, run_id, model, parameters, counts, tokens, cost)
VALUES (:tenant_id, CAST(:id AS uuid), :scope_path, :session, :clusters, :beliefs, :resolved, :score, :duration,
  :as_of, :status,
  :run_id, :model, CAST(:parameters AS jsonb), CAST(:counts AS jsonb), :tokens, :cost)
ON CONFLICT (tenant_id, id) DO NOTHING
"""


async def log(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Write the run's row, and gather what the morning report shows."""
    unfinished = list((await connection.execute(_CLOSE)).scalars())
    await put_back(connection, unfinished)
    clusters = {row["status"]: row for row in await connection.rows(_CLUSTERS)}
    statuses = {status: int(row["count"]) for status, row in clusters.items()}
    counts = await connection.row(_COUNTS, steps=list(STEPS))
    assert counts is not None  # a SELECT of scalars has one row
    unembedded = (await waiting(connection, context)).unembedded
    settings = shmr_settings(context)
    status, reason = _status(statuses, clusters, counts, unembedded, settings.min_cluster_size)
    beliefs = await beliefs_of_run(connection)
    generated = [row for row in beliefs if row["status"] in ("held", "contested")]
    applied = clusters.get("applied")
    score = float(applied["score"]) if applied is not None and applied["score"] is not None else 0.0
    model = next((row["model"] for row in clusters.values() if row["model"]), _model(context))
    tallies = {
        "clusters": statuses,
        "duplicates": counts["duplicates"],
        "dampened": counts["dampened"],
        "looked_at": counts["looked_at"],
        "no_vector": unembedded,
        "model_calls": counts["calls"],
    }
    await connection.execute(
        _INSERT,
        id=context.run.scope.derived_id("resonance", str(context.run.id)),
        session=str(context.run.id),
        clusters=sum(statuses.values()),
        beliefs=len(generated),
        resolved=counts["resolved"],
        score=score,
        duration=round(counts["duration_ms"]),
        status=status,
        model=model,
        parameters=json.dumps(settings.model_dump()),
        counts=json.dumps(tallies),
        tokens=counts["tokens"],
        cost=counts["cost"],
    )
    superseded = await superseded_by_run(connection, SUPERSEDED_SHOWN)
    return StepOutcome(
        candidates=counts["looked_at"],
        changed=len(beliefs) + counts["resolved"] + counts["duplicates"],
        sample=tuple(str(row["belief_id"]) for row in beliefs[:SAMPLE_SIZE]),
        counts={
            "clusters_found": sum(statuses.values()),
            "beliefs_generated": len(generated),
            "contradictions_resolved": counts["resolved"],
            "duplicates": counts["duplicates"],
            "dampened": counts["dampened"],
            "model_calls": counts["calls"],
            "tokens": int(counts["tokens"]),
        },
        details={
            "status": status,
            "model": model,
            "cost": None if counts["cost"] is None else float(counts["cost"]),
            "harmony_score_avg": round(score, 4),
            "clusters_by_status": statuses,
            "beliefs": await shown_beliefs(connection, beliefs[:BELIEFS_SHOWN]),
            "beliefs_left_out": max(0, len(beliefs) - BELIEFS_SHOWN),
            "superseded": superseded,
            "superseded_left_out": max(0, counts["resolved"] + counts["duplicates"] - SUPERSEDED_SHOWN),
        },
        reason=reason,
    )


def _status(
    statuses: Mapping[str, int], clusters: Mapping[str, RowMapping], counts: RowMapping, unembedded: int, smallest: int
) -> tuple[str, str]:
    """The run's status, and why where it is not `harmonized`."""

    def why(status: str) -> str:
        return str(clusters[status]["reason"] or status.replace("_", " "))

    stopped = [
        status for status in ("failed", "model_unavailable", "budget_exhausted", "parse_error") if status in statuses
    ]
    if unembedded and not statuses:
        return "embedding_unavailable", f"{unembedded} memories wait for a vector"
    if counts["failed_steps"] and not statuses:
        return "failed", "a step failed"
    if not statuses:
        if counts["candidates"] and not counts["looked_at"]:
            return "nothing_changed", "nothing new since the last run"
        if counts["candidates"] < smallest:
            return "insufficient_candidates", f"{counts['candidates']} candidates, and {smallest} are needed"
        return (
            "nothing_changed",
            f"{counts['looked_at']} memories were looked at; no undecided cluster holds any of them",
        )
    if "applied" in statuses:
        if stopped or unembedded or "changed_meanwhile" in statuses:
            open_clusters = sum(count for status, count in statuses.items() if status in stopped)
            return "partial", why(stopped[0]) if stopped else f"{open_clusters or unembedded} left for another night"
        return "harmonized", ""
    for status in ("failed", "model_unavailable", "budget_exhausted"):
        if status in statuses:
            return status, why(status)
    for status in ("rejected", "parse_error"):
        if status in statuses:
            return "no_convergence", why(status)
    if "changed_meanwhile" in statuses:
        return "partial", why("changed_meanwhile")
    return "nothing_changed", why("nothing_to_say")


def _model(context: RunContext) -> str:
    return "rules" if context.language is None else context.language.name


STEP = Step(NAME, log)
