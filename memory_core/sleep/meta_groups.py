"""Which groups of memories a scope has, and what is to become of their summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import RowMapping

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.decisions import not_undone
from memory_core.runs.guards import IDENTITY_PREFIXES

# A prefix is written by what it may not hold, and spaces by their list, so that neither depends on what the database's
# locale calls a letter or a space: controls, and punctuation other than - and _. As a regular expression this would
# cost ten times as much.
_NOT_IN_PREFIX = "".join(
    character for character in map(chr, range(1, 128)) if not (character.isalnum() or character in " -_:")
)
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_RUNS_OF_SPACE = f"[{''.join(character for character in _SPACES if character not in _NOT_IN_PREFIX)}]+"
_LONGEST_PREFIX = 40
_NUMBERS = "0123456789 _-"
_LEFT_OUT = [*(prefix.rstrip(":") for prefix in IDENTITY_PREFIXES), "META"]


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group memories.

    Attributes:
        kind: the beginning of a summary's derived key, before its colon.
        members: SQL of a common table expression `members` (id, content_hash, observed_at, key).
        parameters: what `members` and `is_group` need beside the scope.
        names: what a group is called, by its key; where it is not there, the key itself.
        is_group: SQL condition on `key`; asked once a group, so that it may cost something.
    """

    kind: str
    members: str
    parameters: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    is_group: str = "true"

    def name(self, key: str) -> str:
        """What the group is called."""
        return self.names.get(key, key)


_MAY_HAVE_PREFIX = """(strpos(m.label, ':') BETWEEN 2 AND CAST(:longest AS integer) + 1
      AND strpos(CAST(:spaces AS text), substr(m.label, strpos(m.label, ':') + 1, 1)) > 0
      AND length(m.label) > strpos(m.label, ':'))"""

HAS_PREFIX = f"""({_MAY_HAVE_PREFIX}
      AND translate(split_part(m.label, ':', 1), CAST(:not_in_prefix AS text), '') = split_part(m.label, ':', 1))"""
"""SQL condition: the label of the memory `m` has a prefix."""

PREFIX_PARAMETERS: Mapping[str, Any] = {
    "longest": _LONGEST_PREFIX,
    "spaces": _SPACES,
    "not_in_prefix": _NOT_IN_PREFIX,
}

# Most prefixes are plain already; OFFSET 0, so that the prefix and its key are made once a row.
_MEMBERS = f"""
members AS (
  SELECT id, content_hash, observed_at,
         upper(btrim(CASE WHEN octet_length(prefix) = length(prefix) AND strpos(prefix, '  ') = 0 THEN prefix
                          ELSE regexp_replace(prefix, CAST(:runs_of_space AS text), ' ', 'g') END)) AS key
  FROM (
    SELECT m.id, m.content_hash, m.observed_at, split_part(m.label, ':', 1) AS prefix
    FROM memories m
    WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.layer = 'semantic' AND m.derived_key IS NULL
      AND {_MAY_HAVE_PREFIX}
      AND m.recorded_at <= :as_of AND m.retired_at IS NULL AND m.superseded_reason IS NULL
      AND (m.expires_at IS NULL OR m.expires_at > :as_of)
    OFFSET 0
  ) AS labelled
  OFFSET 0
)"""

_IS_PREFIX = """translate(key, CAST(:not_in_prefix AS text), '') = key
    AND translate(key, CAST(:numbers AS text), '') <> '' AND key <> ALL (CAST(:left_out AS text[]))"""

PREFIXES = Grouping(
    "meta",
    _MEMBERS,
    {**PREFIX_PARAMETERS, "runs_of_space": _RUNS_OF_SPACE, "numbers": _NUMBERS, "left_out": _LEFT_OUT},
    is_group=_IS_PREFIX,
)
"""The scope's current memories with a prefix, and the prefix as the group's key."""


# One hash a group, so that a quiet night costs one look. A summary that a person retired stays away like one that
# was undone.
def _compare(grouping: Grouping) -> str:
    key = f"'{grouping.kind}:' || c.key"
    return f"""
WITH {grouping.members}, grouped AS MATERIALIZED (
  SELECT key, count(*) AS member_count, max(observed_at) AS observed_at,
         encode(sha256(convert_to(string_agg(id::text || ' ' || content_hash, ',' ORDER BY id), 'UTF8')), 'hex')
           AS members_hash
  FROM members GROUP BY key
), groups AS (
  SELECT * FROM grouped WHERE {grouping.is_group}
), derived AS MATERIALIZED (
  SELECT m.id, substr(m.derived_key, {len(grouping.kind) + 2}) AS key, m.properties ->> 'members_hash' AS members_hash,
         m.retired_at IS NULL AS in_use, m.retired_by_run
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND m.derived_key IS NOT NULL
    AND starts_with(m.derived_key, '{grouping.kind}:')
), compared AS (
  SELECT coalesce(g.key, u.key) AS key, coalesce(g.member_count, 0) AS member_count, g.observed_at, g.members_hash,
         u.id AS former_id, u.members_hash AS former_hash,
         CASE WHEN coalesce(g.member_count, 0) >= :smallest AND u.id IS NULL THEN 'create'
              WHEN u.id IS NULL THEN 'small'
              WHEN coalesce(g.member_count, 0) < :smallest THEN 'retire'
              WHEN g.members_hash = u.members_hash THEN 'unchanged'
              ELSE 'refresh' END AS action
  FROM groups g FULL JOIN (SELECT * FROM derived WHERE in_use) AS u ON u.key = g.key
), judged AS MATERIALIZED (
  SELECT c.*, CASE
    WHEN action = 'retire' THEN NOT {not_undone("meta_nodes", key, "'retired ' || c.former_hash")}
    WHEN action IN ('create', 'refresh') THEN NOT {not_undone("meta_nodes", key, "c.members_hash")}
      OR (c.key, c.members_hash) IN (SELECT key, members_hash FROM derived WHERE NOT in_use AND retired_by_run IS NULL)
    ELSE false END AS taken_back
  FROM compared c
), counts AS (
  SELECT count(*) AS candidates,
         count(*) FILTER (WHERE action = 'small') AS small,
         count(*) FILTER (WHERE action = 'unchanged') AS unchanged,
         count(*) FILTER (WHERE taken_back) AS taken_back
  FROM judged
)
SELECT t.candidates, t.small, t.unchanged, t.taken_back,
       j.key, j.action, j.member_count, j.observed_at, j.members_hash, j.former_id
FROM counts t LEFT JOIN judged j ON j.action IN ('create', 'refresh', 'retire') AND NOT j.taken_back
ORDER BY j.key
"""


async def compare_groups(
    connection: ScopedConnection, grouping: Grouping, *, smallest: int, reconsider: bool
) -> tuple[RowMapping, Sequence[RowMapping]]:
    """Compare the groups with the summaries in use.

    Args:
        smallest: members from which a group has a summary.

    Returns:
        counts (candidates, small, unchanged, taken_back), and one row a summary to make, refresh or retire: key, action
        (`create`, `refresh`, `retire`), member_count, observed_at (of the latest member), members_hash, former_id.
    """
    rows = await connection.rows(_compare(grouping), **grouping.parameters, smallest=smallest, reconsider=reconsider)
    return rows[0], [row for row in rows if row["key"] is not None]
