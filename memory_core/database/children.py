"""One of two ways to read below one's own scope: statements that two or more child scopes agree on, for promotion.

Row-level security lets a scope see its own path upwards. `slowwave.promotion_candidates` runs as the tables' owner,
whom policies bind too, and gives the bound scope what its direct children say in common. It takes no scope and no
tenant; both are the session's bound ones. What only one child says never leaves it, and neither does what children
disagree about, of which there is the bare fact. A setting that a scope or its tenant stored decides before the caller
does; where none is stored, the caller has to have switched promotion on for its transaction.
"""

from __future__ import annotations

from memory_core.database.tables.memories import IDENTITY_PREFIXES
from memory_core.database.tables.metadata import SCHEMA

_TENANT = "tenant_id = current_setting('slowwave.tenant_id', true)"
_BOUND = "current_setting('slowwave.scope_path', true)"


def _is_child(path: str) -> str:
    """SQL condition: a materialised path is one level below the bound scope: its path, then one kind and one id."""
    return (
        f"starts_with({path}, {_BOUND} || chr(31)) "
        f"AND cardinality(string_to_array(substr({path}, length({_BOUND}) + 2), chr(31))) = 2"
    )


def _is_on_path(path: str) -> str:
    """SQL condition: a materialised path is the bound scope's or an ancestor's."""
    return f"({path} = {_BOUND} OR starts_with({_BOUND}, {path} || chr(31)))"


# As `layers/normal_text.py` brings words into one form, but for numbers, dates and units: what these rules cannot
# equate counts as said differently, and then nothing is promoted.
_NORMAL_FORMS = f"""
CREATE FUNCTION {SCHEMA}.normal_words(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $words$
  SELECT regexp_replace(
           btrim(regexp_replace(translate(lower(words), '’_', ''' '), '\\s+', ' ', 'g'), ' .,;:!?"“”'),
           '^(the|an|a) (?=\\S)', ''
         )
$words$;

CREATE FUNCTION {SCHEMA}.slot_key(subject text, predicate text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $key$
  -- Length-prefixed, so that no two slots share a key by shifting text between subject and predicate.
  SELECT encode(sha256(convert_to(length(s) || ':' || s || p, 'UTF8')), 'hex')
  FROM (SELECT {SCHEMA}.normal_words(subject) AS s, {SCHEMA}.normal_words(predicate) AS p) AS words
$key$;

CREATE FUNCTION {SCHEMA}.statement_key(subject text, predicate text, object text, content_hash text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $key$
  -- What a memory says: of a fact its triple, of any other its content.
  SELECT CASE WHEN subject IS NULL THEN 'text:' || content_hash
              ELSE 'fact:' || {SCHEMA}.slot_key(subject, predicate) || ':' ||
                   encode(sha256(convert_to({SCHEMA}.normal_words(object), 'UTF8')), 'hex') END
$key$;
"""


def _policies(owner_role: str) -> str:
    """What the function may read: settings along the bound path, and memories of direct children."""
    conditions = {
        "tenants": _TENANT,
        "scopes": f"{_TENANT} AND ({_is_on_path('scope_path')} OR ({_is_child('scope_path')}))",
        "memories": f"{_TENANT} AND {_is_child('scope_path')}",
        "memory_state": f"{_TENANT} AND {_is_child('scope_path')}",
    }
    return "\n".join(
        f"CREATE POLICY owner_reads_children ON {SCHEMA}.{table} FOR SELECT TO {owner_role} USING ({condition});"
        for table, condition in conditions.items()
    )


_IS_IDENTITY = " OR ".join(f"starts_with(m.label, '{prefix}')" for prefix in IDENTITY_PREFIXES)

# The most specific stored setting decides; the caller's word counts where nothing is stored.
_ALLOWED = f"""coalesce(
    (SELECT CAST(s.settings #>> '{{promotion,enabled}}' AS boolean) FROM {SCHEMA}.scopes s
     WHERE s.{_TENANT} AND {_is_on_path("s.scope_path")} AND s.settings #>> '{{promotion,enabled}}' IS NOT NULL
     ORDER BY length(s.scope_path) DESC LIMIT 1),
    (SELECT CAST(t.settings #>> '{{promotion,enabled}}' AS boolean) FROM {SCHEMA}.tenants t WHERE t.{_TENANT}),
    current_setting('slowwave.promotion', true) = 'on',
    false)"""

_CHILDREN = f"""ARRAY(
    SELECT c.scope_path FROM {SCHEMA}.scopes c WHERE c.{_TENANT} AND {_is_child("c.scope_path")} AND {_ALLOWED})"""

# A promoted memory of a child stands for what it was taken from, so that erasing that reaches every copy.
_SOURCES = """coalesce(
           (SELECT jsonb_agg(jsonb_build_object('scope_path', e -> 'scope_path', 'memory_id', e -> 'memory_id',
                                                'confidence', e -> 'confidence'))
            FROM jsonb_array_elements(CASE WHEN m.source = 'promotion' AND
                                                jsonb_typeof(m.properties -> 'promoted_from') = 'array'
                                           THEN m.properties -> 'promoted_from' ELSE '[]' END) AS e
            WHERE e ->> 'scope_path' IS NOT NULL AND e ->> 'memory_id' IS NOT NULL),
           jsonb_build_array(jsonb_build_object('scope_path', m.scope_path, 'memory_id', m.id,
                                                'confidence', s.confidence)))"""

_CANDIDATES = f"""
CREATE FUNCTION {SCHEMA}.promotion_candidates(
  asked_at timestamptz, from_children integer, least_confidence double precision
) RETURNS TABLE (
  statement text, agreed boolean, layer text, label text, content text, subject text, predicate text, object text,
  speaker text, observed_at timestamptz, expires_at timestamptz, importance double precision,
  confidence double precision, voices bigint, days bigint, sources jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp SET enable_nestloop = off SET jit = off
AS $candidates$
-- Children as an array, so that an index finds their rows without a loop: loops between the sets below, which the
-- planner takes for small where it has no statistics yet, would cost the square of what children say.
WITH said AS MATERIALIZED (
  SELECT m.id, m.scope_path, m.layer, m.label, m.content, m.subject, m.predicate, m.object, m.source,
         m.properties ->> 'speaker' AS speaker, m.observed_at, m.expires_at, s.importance, s.confidence,
         CASE WHEN m.subject IS NOT NULL THEN {SCHEMA}.slot_key(m.subject, m.predicate) END AS slot,
         {SCHEMA}.statement_key(m.subject, m.predicate, m.object, m.content_hash) AS statement,
         {_SOURCES} AS sources
  FROM {SCHEMA}.memories m
  JOIN {SCHEMA}.memory_state s ON s.{_TENANT} AND s.scope_path = ANY ({_CHILDREN}) AND s.memory_id = m.id
  WHERE m.{_TENANT} AND m.scope_path = ANY ({_CHILDREN})
    -- Facts and episodes: a reminder or a procedure would act twice.
    AND m.layer IN ('semantic', 'episodic') AND m.derived_key IS NULL AND m.recorded_at <= asked_at
    AND m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > asked_at)
    AND NOT coalesce({_IS_IDENTITY}, false) AND s.confidence >= least_confidence
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
"""


def reads_children(app_role: str, owner_role: str) -> str:
    """The functions and policies, as SQL.

    Args:
        app_role: who may call the function.
        owner_role: whom it runs as; the tables' owner.
    """
    name = f"{SCHEMA}.promotion_candidates(timestamptz, integer, double precision)"
    return "\n".join(
        (
            _NORMAL_FORMS.strip(),
            "",
            _policies(owner_role),
            _CANDIDATES,
            f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC;",
            f"GRANT EXECUTE ON FUNCTION {name} TO {app_role};",
        )
    )
