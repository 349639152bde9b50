"""Row-level security policies and journal triggers as SQL, made from the registry.

`python -m memory_core.database.ddl` prints the whole schema: the text from which a migration is written.
Migrations hold SQL of their own day and never call this module.
"""

from __future__ import annotations

import sys

from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import CreateIndex, CreateTable, SetColumnComment

from memory_core.database.children import reads_children
from memory_core.database.registry import REGISTRY, TableEntry
from memory_core.database.tables.metadata import SCHEMA, metadata
from memory_core.database.used_below import tells_what_is_used_below

APP_ROLE = "slowwave_app"
OPERATOR_ROLE = "slowwave_operator"
OWNER_ROLE = "slowwave_owner"

# What the operator may read of runs: enough to count and to see when, nothing that holds memory text.
OPERATOR_RUN_COLUMNS = "tenant_id, id, scope_path, kind, as_of, status, dry_run, started_at, finished_at"


def policies(item: TableEntry) -> str:
    """Row-level security of one table: read along the scope path, write to the own level only.

    Rows that the registry says are appended along the path, such as uses, may be added at an ancestor's level.
    """
    name = f"{SCHEMA}.{item.name}"
    tenant = "tenant_id = current_setting('slowwave.tenant_id', true)"
    if item.visibility == "tenant":
        own = visible = tenant
    else:
        own = f"{tenant} AND scope_path = current_setting('slowwave.scope_path', true)"
        visible = (
            f"{tenant} AND scope_path = ANY (string_to_array(current_setting('slowwave.visible_paths', true), chr(30)))"
        )
    added = visible if item.appended_along_path else own
    return "\n".join(
        (
            f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;",
            f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY;",
            f"CREATE POLICY app_reads ON {name} FOR SELECT TO {APP_ROLE} USING ({visible});",
            f"CREATE POLICY app_inserts ON {name} FOR INSERT TO {APP_ROLE} WITH CHECK ({added});",
            f"CREATE POLICY app_updates ON {name} FOR UPDATE TO {APP_ROLE} USING ({own}) WITH CHECK ({own});",
            f"CREATE POLICY app_deletes ON {name} FOR DELETE TO {APP_ROLE} USING ({own});",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {APP_ROLE};",
        )
    )


def operator_policies() -> str:
    """What the due-scan and the doctor may read across tenants."""
    lines = []
    for name, columns in (("tenants", None), ("scopes", None), ("runs", OPERATOR_RUN_COLUMNS)):
        lines.append(f"CREATE POLICY operator_reads ON {SCHEMA}.{name} FOR SELECT TO {OPERATOR_ROLE} USING (true);")
        lines.append(f"GRANT SELECT {f'({columns}) ' if columns else ''}ON {SCHEMA}.{name} TO {OPERATOR_ROLE};")
    return "\n".join(lines)


def cascade_policy() -> str:
    """Lets the journal keep what a cascade deletes: Postgres runs that as the tables' owner, whom RLS binds too."""
    return (
        f"CREATE POLICY owner_journals ON {SCHEMA}.run_changes FOR INSERT TO {OWNER_ROLE} "
        "WITH CHECK (tenant_id = current_setting('slowwave.tenant_id', true));"
    )


def journal(item: TableEntry) -> str:
    """Triggers that keep the before and after images of what a run changes.

    A statement-level trigger with transition tables: one set-based INSERT a statement, whatever the number of
    rows, in the same transaction, and no writer can forget it. Outside a run (no `slowwave.run_id`) it does nothing.

    A session keeps the plan of its first statement. Made for one row it would be a nested loop, and the next statement,
    over 50,000 rows, would take minutes: so only a hash join is allowed.
    """
    key = ", ".join(f"'{column}', n.{column}" for column in item.key)
    match = " AND ".join(f"n.{column} = o.{column}" for column in ("tenant_id", *item.key))
    changes = f"""{SCHEMA}.run_changes
      (tenant_id, scope_path, run_id, step, table_name, operation, row_key, before, after)"""
    binding = "(SELECT current_setting('slowwave.run_id')::uuid), (SELECT current_setting('slowwave.step'))"
    return f"""
CREATE FUNCTION {SCHEMA}.journal_{item.name}_update() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET enable_mergejoin = off AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO {changes}
    SELECT tenant_id, scope_path, {binding}, '{item.name}', 'update', row_key, before, after
    FROM (
      SELECT n.tenant_id, n.scope_path, jsonb_build_object({key}) AS row_key,
             {_changed_columns(item, "o")} AS before,
             {_changed_columns(item, "n")} AS after
      FROM old_rows o JOIN new_rows n ON {match}
      OFFSET 0 -- so that the images are made once a row
    ) AS changed
    WHERE before <> '{{}}'::jsonb;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_update AFTER UPDATE ON {SCHEMA}.{item.name}
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.journal_{item.name}_update();

CREATE FUNCTION {SCHEMA}.journal_{item.name}_delete() RETURNS trigger LANGUAGE plpgsql AS $journal$
BEGIN
  IF coalesce(current_setting('slowwave.run_id', true), '') <> '' THEN
    INSERT INTO {changes}
    SELECT n.tenant_id, n.scope_path, {binding}, '{item.name}', 'delete',
           jsonb_build_object({key}), to_jsonb(n) - 'embedding', NULL
    FROM old_rows n;
  END IF;
  RETURN NULL;
END $journal$;
CREATE TRIGGER journal_delete AFTER DELETE ON {SCHEMA}.{item.name}
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.journal_{item.name}_delete();
"""


def _changed_columns(item: TableEntry, side: str) -> str:
    """SQL expression: the columns that differ between the rows `o` and `n`, with the values of one side.

    Written as text and read as a document once: joining one small document a column costs three times as much, for
    every row that any run changes.
    """
    parts = []
    for column in item.journalled_columns():
        # As documents 1 and 1.0 are equal; as what a person wrote they are not.
        text = "::text" if isinstance(item.table.columns[column].type, JSONB) else ""
        differs = f"o.{column}{text} IS DISTINCT FROM n.{column}{text}"
        value = f"coalesce(to_jsonb({side}.{column})::text, 'null')"
        parts.append(f"""CASE WHEN {differs} THEN '"{column}":' || {value} END""")
    columns = ",\n               ".join(parts)
    return f"""('{{' || concat_ws(',',
               {columns}) || '}}')::jsonb"""


MEMORY_VERSION = f"""
CREATE FUNCTION {SCHEMA}.memories_version() RETURNS trigger LANGUAGE plpgsql AS $version$
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
CREATE TRIGGER memories_version BEFORE UPDATE ON {SCHEMA}.memories
  FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.memories_version();
"""

ENQUEUE = f"""
CREATE FUNCTION {SCHEMA}.memories_enqueue() RETURNS trigger LANGUAGE plpgsql AS $enqueue$
BEGIN
  -- Every new fact and episode waits for SHMR, whoever wrote it; one that an undo brings back is not new.
  IF coalesce(current_setting('slowwave.restoring', true), '') <> 'on' THEN
    INSERT INTO {SCHEMA}.harmonize_queue (tenant_id, memory_id, scope_path, enqueued_at)
    SELECT tenant_id, id, scope_path, recorded_at FROM new_rows
    WHERE layer IN ('semantic', 'episodic') AND derived_key IS NULL;
  END IF;
  RETURN NULL;
END $enqueue$;
CREATE TRIGGER memories_enqueue AFTER INSERT ON {SCHEMA}.memories
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.memories_enqueue();
"""

DECISION_KEY = f"""
CREATE FUNCTION {SCHEMA}.decision_key(phase text, VARIADIC members text[]) RETURNS text
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
"""


REFRESH_STATISTICS = f"""
CREATE FUNCTION {SCHEMA}.refresh_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $statistics$
BEGIN
  -- Only an owner may ANALYZE; autovacuum comes a minute after a large import, the first night perhaps before it.
  ANALYZE {", ".join(f"{SCHEMA}.{item.name}" for item in REGISTRY if item.checksummed or item.journalled)};
END $statistics$;
REVOKE ALL ON FUNCTION {SCHEMA}.refresh_statistics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {SCHEMA}.refresh_statistics() TO {APP_ROLE};
"""


def schema() -> str:
    """The whole schema of today: tables, indexes, policies, triggers."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    parts = []
    for table in metadata.sorted_tables:
        parts.append(f"{str(CreateTable(table).compile(dialect=dialect)).strip()};")
        for index in sorted(table.indexes, key=lambda item: str(item.name)):
            parts.append(f"{CreateIndex(index).compile(dialect=dialect)};")
        for column in table.columns:
            if column.comment:
                parts.append(f"{SetColumnComment(column).compile(dialect=dialect)};")
    parts += [policies(item) for item in REGISTRY]
    parts += [operator_policies(), cascade_policy()]
    parts += [DECISION_KEY, MEMORY_VERSION, ENQUEUE, REFRESH_STATISTICS]
    parts.append(reads_children(APP_ROLE, OWNER_ROLE))
    parts.append(tells_what_is_used_below(APP_ROLE, OWNER_ROLE))
    parts += [journal(item) for item in REGISTRY if item.journalled]
    parts.append(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {APP_ROLE}, {OPERATOR_ROLE};")
    parts.append(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {APP_ROLE};")
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
