"""A tenant made in the database itself, in the shape that the peer's benchmark makes.

Labels `TOPICk: fact i` over n / 50 prefixes and a fifth free labels; two directed edges a memory between endpoints
drawn with weight rank^-0.6; half the memories active within the last day, the rest 1 to 60 days ago, each written up to
30 days before; importance uniform from 1 to 10; a geometric number of uses in the past, and a read for each that is
active; one text in twelve with a word of risk.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from memory_core.scope import TenantScope

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
NEXT_NIGHT = NIGHT + timedelta(days=1)
PENDING = 50

_FILL = """
SELECT setseed(0.42);
INSERT INTO tenants (tenant_id, root_kind) VALUES ('{tenant}', 'tenant');
INSERT INTO scopes (tenant_id, scope_path, depth) VALUES ('{tenant}', '{path}', 1);
CREATE TEMP TABLE made ON COMMIT DROP AS
  SELECT gen_random_uuid() AS id, n, active, active - random() * interval '30 days' AS written,
         array_to_string(ARRAY(
           SELECT CASE WHEN place = 5 AND risky THEN ({markers})[1 + floor(random() * 7)::int]
                       ELSE ({words})[1 + floor(random() * 32)::int] END
           -- Names the outer row, or one text would be made for all of them.
           FROM generate_series(1, 10 + (n % 1)) place), ' ') AS content, prefixed, topic
  FROM (SELECT n, CASE WHEN random() < 0.5
                       THEN timestamptz '{night}' - interval '24 hours' * (0.002 + 0.995 * random())
                       ELSE timestamptz '{night}' - interval '1 day' * (1.2 + 58.8 * random()) END AS active,
               random() < 0.08 AS risky, random() < 0.8 AS prefixed,
               n % greatest(5, {n} / 50) AS topic
        FROM generate_series(1, {n}) n) AS drawn;
INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, recorded_at, last_activity_at, source,
                      content_hash)
  SELECT '{tenant}', id, '{path}',
         CASE WHEN prefixed THEN 'TOPIC' || topic || ': fact ' || n
              ELSE split_part(content, ' ', 1) || ' ' || split_part(content, ' ', 2) || ' ' || n END,
         content, written, written, active, 'synthetic', md5(n || content) FROM made;
INSERT INTO memory_state (tenant_id, memory_id, scope_path, importance, access_count)
  SELECT '{tenant}', id, '{path}', round((1 + 9 * random())::numeric, 2),
         least(50, floor(ln(1 - random()) / ln(0.55))::int)
  FROM made;
INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at)
  SELECT '{tenant}', gen_random_uuid(), '{path}', id, 'recall', active
  FROM made WHERE active > timestamptz '{night}' - interval '1 day';
INSERT INTO memory_edges (tenant_id, id, scope_path, source_id, target_id, relationship, recorded_at)
  SELECT '{tenant}', gen_random_uuid(), '{path}', a.id, b.id, relationship, greatest(a.written, b.written)
  FROM (SELECT DISTINCT ON (source, target) source, target, relationship
        FROM (SELECT 1 + floor({n} * power(random(), 2.5))::int AS source,
                     1 + floor({n} * power(random(), 2.5))::int AS target,
                     (ARRAY['RELATES_TO', 'MENTIONS'])[1 + floor(random() * 2)::int] AS relationship
              FROM generate_series(1, 2 * {n})) AS drawn
        WHERE source <> target) AS pair
  JOIN made a ON a.n = source JOIN made b ON b.n = target;
ANALYZE;
"""

_MARKERS = ("risk", "danger", "failure", "loss", "decline", "warning", "critical")
_WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "order",
    "customer",
    "invoice",
    "deploy",
    "cache",
    "queue",
    "north",
    "south",
    "supplier",
    "stock",
    "price",
    "review",
    "launch",
    "meeting",
    "policy",
    "market",
    "region",
    "margin",
    "team",
    "ticket",
    "refund",
    "basket",
    "carrier",
    "route",
    "vendor",
    "metric",
    "signal",
    "branch",
]

_A_DAY_LATER = """
SELECT setseed(0.43);
CREATE TEMP TABLE more ON COMMIT DROP AS
  SELECT gen_random_uuid() AS id, n, timestamptz '{night}' + interval '23 hours' * random() AS written
  FROM generate_series(1, {added}) n;
INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, recorded_at, last_activity_at, source,
                      content_hash)
  SELECT '{tenant}', id, '{path}', 'TOPIC' || floor(random() * greatest(5, {n} / 50))::int || ': later fact ' || n,
         'later order ' || n || ' of a customer in the north', written, written, written, 'synthetic', md5('later' || n)
  FROM more;
INSERT INTO memory_state (tenant_id, memory_id, scope_path) SELECT '{tenant}', id, '{path}' FROM more;
INSERT INTO memory_accesses (tenant_id, id, scope_path, memory_id, kind, at)
  SELECT '{tenant}', gen_random_uuid(), '{path}', id, 'recall',
         timestamptz '{night}' + interval '23 hours' * random()
  FROM (SELECT id FROM memories
        WHERE tenant_id = '{tenant}' AND derived_key IS NULL AND retired_at IS NULL
          AND recorded_at <= timestamptz '{night}'
        ORDER BY md5(id::text) LIMIT {used}) AS used;
"""


def fill(connection: Connection, scope: TenantScope, memories: int) -> None:
    """Make the tenant.

    Args:
        connection: of the owner of the database, in a transaction; row-level security does not bind it.
        memories: how many the tenant has, at least 5.
    """
    _run(
        connection,
        _FILL,
        scope,
        memories,
        markers=f"ARRAY{list(_MARKERS)}",
        words=f"ARRAY{list(_WORDS)}",
    )


def a_day_later(connection: Connection, scope: TenantScope, memories: int) -> int:
    """What one day brings: of every thousand memories eight are used, and two are new. Returns how many in all."""
    added, used = max(1, memories // 500), max(1, memories * 8 // 1000)
    _run(connection, _A_DAY_LATER, scope, memories, added=added, used=used)
    return added + used


def pending_connections(memories: int) -> list[dict[str, Any]]:
    """Connections of an activation log between labels that four of five memories have, as in the peer's benchmark."""
    return [
        {
            "source": _label(1 + 13 * i % memories, memories),
            "target": _label(1 + (29 * i + 7) % memories, memories),
            "relationship": "ASSOCIATED",
            "status": "PENDING CONSOLIDATION",
        }
        for i in range(PENDING)
    ]


def _label(number: int, memories: int) -> str:
    return f"TOPIC{number % max(5, memories // 50)}: fact {number}"


def _run(connection: Connection, sql: str, scope: TenantScope, memories: int, **values: Any) -> None:
    text = sql.format(tenant=scope.tenant_id, path=scope.scope_path, n=memories, night=NIGHT.isoformat(), **values)
    connection.connection.cursor().execute(text)
