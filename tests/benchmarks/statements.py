"""Made-up plain sentences for benchmarks: a tenant that states many things once and some of them anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, text

from memory_core.scope import TenantScope

_SYLLABLES = (
    "ba",
    "de",
    "fi",
    "go",
    "hu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "zu",
    "lin",
    "mar",
    "os",
)

# Relations of one value at a time, by kind of the value.
_RELATIONS = (
    ("{head} keeps its archive in {value}", "place"),
    ("The curator of {head} is {value}", "name"),
    ("{head} is moored at {value}", "place"),
    ("The main supplier of {head} is {value}", "name"),
    ("{head} was repaired by {value}", "name"),
    ("The night shift at {head} is led by {value}", "name"),
    ("{head} buys its timber from {value}", "name"),
    ("The emblem of {head} shows {value}", "place"),
    ("{head} is insured with {value}", "name"),
    ("The landlord of {head} is {value}", "name"),
    ("{head} stores its grain at {value}", "place"),
    ("The pilot of {head} comes from {value}", "place"),
    ("{head} seats {value} people", "number"),
    ("{head} opened its doors in {value}", "year"),
    ("The rent of {head} is {value} euros", "number"),
    ("{head} was painted by {value}", "name"),
)

RENEWED = 5
"""One statement in so many gives a new value to one that was stated before, and none of these a third."""

REPEATED = 20
"""One statement in so many says again what was said before."""


def statements(count: int, seed: int = 7) -> Iterator[str]:
    """So many sentences: about 75 in 100 new, 20 with a new value for a relation stated before, 5 said again."""
    chance = random.Random(seed)

    def name() -> str:
        return "".join(chance.choice(_SYLLABLES) for _ in range(3)).capitalize()

    values: dict[str, Callable[[], str]] = {
        "name": lambda: f"{name()} {name()}",
        "place": name,
        "number": lambda: str(chance.randrange(20, 5_000)),
        "year": lambda: str(chance.randrange(1850, 2025)),
    }
    said: list[tuple[str, str, str]] = []
    once: list[int] = []
    for number in range(count):
        if said and number % REPEATED == REPEATED - 1:
            template, head, value = chance.choice(said)
            yield template.format(head=head, value=value) + "."
            continue
        if said and number % RENEWED == RENEWED - 1:
            place = once.pop(chance.randrange(len(once)))
            template, head, _ = said[place]
        else:
            place = len(said)
            once.append(place)
            template, head = chance.choice(_RELATIONS)[0], f"{name()} {name()}"
            said.append((template, head, ""))
        value = values[dict(_RELATIONS)[template]]()
        said[place] = (template, head, value)
        yield template.format(head=head, value=value) + "."


_FILL = """
INSERT INTO tenants (tenant_id, root_kind) VALUES (:tenant, 'tenant');
INSERT INTO scopes (tenant_id, scope_path, depth) VALUES (:tenant, :path, 1);
WITH said AS (
  SELECT gen_random_uuid() AS id, s.n, s.content, timestamptz '2026-01-01 00:00Z' + interval '1 minute' * s.n AS at
  FROM unnest(CAST(:contents AS text[])) WITH ORDINALITY AS s(content, n)
), written AS (
  INSERT INTO memories (tenant_id, id, scope_path, label, content, observed_at, recorded_at, last_activity_at, source,
                        content_hash)
  SELECT :tenant, id, :path, 'statement ' || n, content, at, at, at, 'bench', md5(content) FROM said
)
INSERT INTO memory_state (tenant_id, memory_id, scope_path) SELECT :tenant, id, :path FROM said
"""


def fill(connection: Connection, scope: TenantScope, count: int) -> None:
    """Make a tenant that said so many sentences, one a minute.

    Args:
        connection: of the owner of the database, in a transaction; row-level security does not bind it.
    """
    given = {"tenant": scope.tenant_id, "path": scope.scope_path, "contents": list(statements(count))}
    for statement in _FILL.split(";"):
        names = {name: value for name, value in given.items() if f":{name}" in statement}
        connection.execute(text(statement), names)
