"""The other way to read below one's own scope: which of its memories something in a scope below rests on.

A child's night may cite a memory of its organisation, link to it, or let a memory of its own give way to it. Removing
that memory, as an undo of the run that made it does, would take the child's rows with it, unseen. The function
`slowwave.used_below` runs as the tables' owner, whom policies bind too, and tells of the bound scope's own memories,
and of no others, which of them are in use below: neither where, nor by how many, nor for what.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_core.database.registry import REGISTRY
from memory_core.database.tables.metadata import SCHEMA

_TENANT = "tenant_id = current_setting('slowwave.tenant_id', true)"
_BOUND = "current_setting('slowwave.scope_path', true)"
_BELOW = f"{_TENANT} AND starts_with(scope_path, {_BOUND} || chr(31))"


def references_to_memories() -> Iterator[tuple[str, str]]:
    """Table and column of every foreign key by which a row may name a memory of another level.

    Left out are rows that are part of a memory, which have its key for theirs, and uses, which are written at the
    memory's own level.
    """
    for item in REGISTRY:
        for key in sorted(item.table.foreign_key_constraints, key=lambda each: str(each.name)):
            column = key.column_keys[-1]
            if key.referred_table.name == "memories" and item.key[0] != column and not item.appended_along_path:
                yield item.name, column


def tells_what_is_used_below(app_role: str, owner_role: str) -> str:
    """The function and its policies, as SQL.

    Args:
        app_role: who may call the function.
        owner_role: whom it runs as; the tables' owner.
    """
    references = list(references_to_memories())
    policies = [
        f"CREATE POLICY owner_reads_below ON {SCHEMA}.{table} FOR SELECT TO {owner_role} USING ({_BELOW});"
        for table in dict.fromkeys(table for table, _ in references)
    ]
    policies.append(
        f"CREATE POLICY owner_reads_bound ON {SCHEMA}.memories FOR SELECT TO {owner_role} "
        f"USING ({_TENANT} AND scope_path = {_BOUND});"
    )
    found = "\n    UNION ALL\n    ".join(
        f"SELECT r.{column} FROM {SCHEMA}.{table} r WHERE r.{_TENANT}\n"
        f"      AND r.{column} = ANY (memory_ids) AND starts_with(r.scope_path, {_BOUND} || chr(31))"
        for table, column in references
    )
    name = f"{SCHEMA}.used_below(uuid[])"
    function = f"""CREATE FUNCTION {SCHEMA}.used_below(memory_ids uuid[]) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $used$
  SELECT m.id FROM {SCHEMA}.memories m
  WHERE m.{_TENANT} AND m.scope_path = {_BOUND} AND m.id IN (
    {found}
  )
$used$;"""
    return "\n".join(
        (
            *policies,
            function,
            f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC;",
            f"GRANT EXECUTE ON FUNCTION {name} TO {app_role};",
        )
    )
