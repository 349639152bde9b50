"""Who a memory belongs to: a root-first path of levels, and what a path can see.

A query at path P sees a memory at path Q exactly when Q is a prefix of P: a conversation sees its own
memories, its brand's and its organisation's, never a sibling's. Writes go to the own level only.
The same rule is enforced by Postgres row-level security (`database/scoped.py`).
"""

from __future__ import annotations

import uuid
import warnings
from dataclasses import dataclass
from shlex import quote
from typing import Any

from memory_core.errors import InvalidScope

SEPARATOR = "\x1f"
"""ASCII unit separator between the parts of a materialised path; refused inside kinds and ids."""

LEGACY_ROOT_KIND = "tenant"
MAX_DEPTH = 16
MAX_PART_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ScopeLevel:
    """One level of a scope, such as `org=acme` or `conversation=c-123`.

    Args:
        kind: the field's own word for the level (`org`, `brand`, `tenant`, `conversation`, …).
        id: the identifier inside that kind; case- and whitespace-sensitive.

    Raises:
        InvalidScope: a part is blank, padded with white space, longer than 200 characters, or holds a control
            character.
    """

    kind: str
    id: str

    def __post_init__(self) -> None:
        given: tuple[tuple[str, Any], ...] = (("kind", self.kind), ("id", self.id))
        for name, value in given:
            if not isinstance(value, str) or not value.strip():
                raise InvalidScope(f"The {name} of a scope level is blank.", hint="Give a name, such as org=acme.")
            if value != value.strip():
                raise InvalidScope(
                    f"The {name} {value!r} of a scope level begins or ends with white space.",
                    hint="It would name another scope than the one you see; remove the white space.",
                )
            if len(value) > MAX_PART_LENGTH:
                raise InvalidScope(f"The {name} of a scope level is longer than {MAX_PART_LENGTH} characters.")
            if any(ord(character) < 32 or ord(character) == 127 for character in value):
                raise InvalidScope(f"The {name} {value!r} of a scope level holds a control character.")
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise InvalidScope(f"The {name} {value!r} of a scope level is not valid Unicode.")

    def __str__(self) -> str:
        return f"{self.kind}={self.id}"


@dataclass(frozen=True, slots=True, init=False)
class TenantScope:
    """A root-first path of levels; the first one is the tenant.

    Build one with `TenantScope.root("org", "acme").child("brand", "myhalos")`. The flat construction
    `TenantScope(tenant_id="acme", namespace="engineering")` still works with a deprecation warning; its
    namespace and sub-tenant are real levels, so they isolate.

    Raises:
        InvalidScope: a level is not valid, a kind appears twice, or the path is deeper than 16 levels.
    """

    levels: tuple[ScopeLevel, ...]

    def __init__(
        self, tenant_id: str | None = None, sub_tenant_id: str | None = None, namespace: str | None = None
    ) -> None:
        warnings.warn(
            "TenantScope(tenant_id=…) is deprecated; use TenantScope.root(kind, id).child(kind, id).",
            DeprecationWarning,
            stacklevel=2,
        )
        levels = [ScopeLevel(LEGACY_ROOT_KIND, tenant_id if tenant_id is not None else "")]
        if sub_tenant_id is not None:
            levels.append(ScopeLevel("sub", sub_tenant_id))
        if namespace is not None:
            levels.append(ScopeLevel("namespace", namespace))
        object.__setattr__(self, "levels", tuple(levels))

    @classmethod
    def from_levels(cls, levels: tuple[ScopeLevel, ...]) -> TenantScope:
        """A scope from its levels, root first."""
        if not levels:
            raise InvalidScope("A scope needs at least one level.", hint="Start with TenantScope.root(kind, id).")
        if len(levels) > MAX_DEPTH:
            raise InvalidScope(f"A scope may have at most {MAX_DEPTH} levels; this one has {len(levels)}.")
        kinds = [level.kind for level in levels]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise InvalidScope(
                    f"The kind {kind!r} appears twice in one scope.", hint="Each level needs its own kind."
                )
        scope = object.__new__(cls)
        object.__setattr__(scope, "levels", levels)
        return scope

    @classmethod
    def root(cls, kind: str, id: str) -> TenantScope:
        """A scope of one level: the tenant itself."""
        return cls.from_levels((ScopeLevel(kind, id),))

    def child(self, kind: str, id: str) -> TenantScope:
        """This scope with one level more."""
        return self.from_levels((*self.levels, ScopeLevel(kind, id)))

    @classmethod
    def from_path(cls, scope_path: str) -> TenantScope:
        """The scope of a materialised path (the inverse of `scope_path`)."""
        parts = scope_path.split(SEPARATOR)
        if len(parts) % 2:
            raise InvalidScope(f"{scope_path!r} is not a materialised scope path.")
        return cls.from_levels(tuple(ScopeLevel(kind, id) for kind, id in zip(parts[::2], parts[1::2], strict=True)))

    @classmethod
    def parse(cls, tenant: str, levels: str | None = None, *, root_kind: str = LEGACY_ROOT_KIND) -> TenantScope:
        """A scope as written on the command line.

        Args:
            tenant: `acme`, or `org=acme` to name the root's kind.
            levels: `kind=id/kind=id`, below the tenant; None or empty for the tenant itself.
            root_kind: the root's kind where `tenant` does not name one.

        Raises:
            InvalidScope: a level is not valid, or `tenant` holds levels below the tenant.
        """
        name, slash, below = tenant.partition("/")
        if slash and "=" in below:
            # As it is shown, and yet not one name: taken as one, it would make a tenant that looks like this scope.
            raise InvalidScope(
                f"{tenant!r} is not a tenant but a scope below one.",
                hint=f"Write --tenant {quote(name)} --scope {quote(below)}.",
            )
        scope = cls.from_levels((_parse_level(tenant, default_kind=root_kind),))
        for part in (levels or "").split("/"):
            if part:
                level = _parse_level(part, default_kind=None)
                scope = scope.child(level.kind, level.id)
        return scope

    @property
    def tenant_id(self) -> str:
        """The root's id."""
        return self.levels[0].id

    @property
    def sub_tenant_id(self) -> str | None:
        """The second level's id; None at the root."""
        return self.levels[1].id if len(self.levels) > 1 else None

    @property
    def scope_depth(self) -> int:
        """The number of levels, at least 1."""
        return len(self.levels)

    @property
    def scope_path(self) -> str:
        """The path as stored in every row: `kind US id US kind US id …`, root first."""
        return SEPARATOR.join(part for level in self.levels for part in (level.kind, level.id))

    @property
    def parent(self) -> TenantScope | None:
        """The scope one level up; None at the root."""
        return self.from_levels(self.levels[:-1]) if len(self.levels) > 1 else None

    def visible_paths(self) -> tuple[str, ...]:
        """The materialised paths this scope can read: every prefix of itself, root first, itself last."""
        return tuple(self.from_levels(self.levels[: depth + 1]).scope_path for depth in range(len(self.levels)))

    def sees(self, other: TenantScope) -> bool:
        """Whether a query at this scope may read a memory stored at `other`."""
        return other.scope_path in self.visible_paths()

    def derived_id(self, *parts: str) -> uuid.UUID:
        """A stable id of a derived row: uuid5 over the scope path and the row's derived key.

        Parts are length-prefixed, so that ("a:b", "c") and ("a", "b:c") differ.
        """
        key = "".join(f"{len(part)}:{part}" for part in (self.scope_path, *parts))
        return uuid.uuid5(_DERIVED_NAMESPACE, key)

    def to_dict(self) -> dict[str, Any]:
        """The scope as a JSON-able document."""
        return {"tenant": self.tenant_id, "scope": str(self), "depth": self.scope_depth}

    def __str__(self) -> str:
        return "/".join(str(level) for level in self.levels)


_DERIVED_NAMESPACE = uuid.UUID("6f1f3c0e-5a52-5f0c-9d55-2c1b6e1f7a10")


def _parse_level(text: str, *, default_kind: str | None) -> ScopeLevel:
    kind, equals, id = text.partition("=")
    if not equals:
        if default_kind is None:
            raise InvalidScope(f"{text!r} is not a scope level.", hint="Write levels as kind=id/kind=id.")
        return ScopeLevel(default_kind, text)
    return ScopeLevel(kind, id)
