"""One memory as it is given to the store: every field of the JSON Lines format, checked and normalised.

Text is brought to NFC, and NUL and lone surrogates, which Postgres cannot hold, are taken out. Times must carry a
zone and are kept as UTC. A key that the format does not know is an error that names it: a misspelt `confidense`
would otherwise be lost in silence.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from memory_core.errors import InvalidInput
from memory_core.layers.identity import content_hash
from memory_core.models.embedding import prepared_text

MAX_CONTENT = 200_000
MAX_NAME = 400
"""Characters of what is indexed: a B-tree entry of Postgres holds about 2,700 bytes."""
MAX_PROPERTY_DEPTH = 64
LARGEST_NUMBER = 10**100
"""Python refuses to print an int of thousands of digits; nothing that is remembered needs a hundred."""
MAX_DIMENSION = 16_000
"""pgvector's own limit."""


def clean_text(value: Any) -> Any:
    """NFC without NUL and with lone surrogates replaced; anything but a string is passed on for the type check."""
    return prepared_text(value) if isinstance(value, str) else value


def utc_moment(value: Any) -> datetime:
    """A time with a zone, as UTC.

    Args:
        value: a datetime, or ISO 8601 text such as `2026-03-01T03:00:00Z`.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise PydanticCustomError("time", "is not a time; write it as 2026-03-01T03:00:00Z") from None
    if not isinstance(value, datetime):
        raise PydanticCustomError("time", "is not a time; write it as text such as 2026-03-01T03:00:00Z")
    if value.utcoffset() is None:
        raise PydanticCustomError("time_zone", "has no time zone; end it with Z or an offset such as +01:00")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("time", "is outside the years 1 to 9999") from None


def clean_document(value: Any, depth: int = 0) -> Any:
    """A JSON document that Postgres can hold: strings cleaned, numbers finite, nested at most 64 deep."""
    if depth > MAX_PROPERTY_DEPTH:
        raise PydanticCustomError("depth", f"is nested more than {MAX_PROPERTY_DEPTH} levels deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise PydanticCustomError("json_key", "has a key that is not text")
        return {clean_text(key): clean_document(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_document(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("finite", "holds a number that is not finite")
    if isinstance(value, int) and abs(value) >= LARGEST_NUMBER:
        raise PydanticCustomError("digits", "holds a number with more than 100 digits")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise PydanticCustomError("json", f"holds a {type(value).__name__}, which JSON has no form for")


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME), BeforeValidator(clean_text)
]
LongText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000), BeforeValidator(clean_text)
]
Moment = Annotated[datetime, BeforeValidator(utc_moment)]
Document = Annotated[dict[str, Any], BeforeValidator(clean_document)]
Layer = Literal["semantic", "episodic", "working", "procedural", "prospective"]


class AccessRecord(BaseModel):
    """One use of a memory. `mention` is a re-mention by a person, `confirm` an explicit confirmation."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    kind: Literal["recall", "hydrate", "mention", "confirm"] = "recall"
    at: Moment


class EdgeRecord(BaseModel):
    """One link to another memory, named by its external id."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    to: Text
    relationship: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), BeforeValidator(clean_text)
    ]


class NewMemory(BaseModel):
    """A memory to be written. Build one from untrusted input with `NewMemory.read`.

    Attributes:
        observed_at: when it was true or said; where absent, `recorded_at`, else now.
        recorded_at: when the memory came to know it; where absent, `observed_at`, else now.
        embedding: a vector that the memory brings, of any dimension; it is stored at length 1 under
            `embedding_model` and never computed anew.
        corrects: external id of the memory that this one puts right.
        tenant, scope: whose it is, for a file of many; `scope` is written `kind=id/kind=id` below the tenant.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    content: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CONTENT), BeforeValidator(clean_text)
    ]
    layer: Layer = "semantic"
    label: Text | None = None
    subject: Text | None = None
    predicate: Text | None = None
    object: LongText | None = None
    importance: float = Field(default=5.0, ge=1, le=10)
    confidence: float = Field(default=0.7, ge=0, le=1)
    observed_at: Moment | None = None
    recorded_at: Moment | None = None
    expires_at: Moment | None = None
    source: Text | None = None
    properties: Document = Field(default_factory=dict)
    external_id: Text | None = None
    pinned: bool = False
    tenant: str | None = None
    scope: str | None = None
    embedding: tuple[float, ...] | None = None
    embedding_model: Text | None = None
    accesses: tuple[AccessRecord, ...] = ()
    edges: tuple[EdgeRecord, ...] = ()
    corrects: Text | None = None

    @classmethod
    def read(cls, document: Any) -> NewMemory:
        """A memory from a decoded JSON object.

        Raises:
            InvalidInput: a field is missing, unknown, of the wrong type or out of range; the message names each one.
        """
        if not isinstance(document, dict):
            raise InvalidInput("It is not a JSON object.", hint='Write {"content": "…"}, one memory a line.')
        # An explicit null means the same as an absent key, also where the default is not None.
        given = {key: value for key, value in document.items() if value is not None}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InvalidInput(readable(error)) from error

    @field_validator("external_id", "corrects", mode="before")
    @classmethod
    def _number_as_id(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("accesses", "edges", "embedding", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("embedding")
    @classmethod
    def _vector(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None:
            if not 1 <= len(value) <= MAX_DIMENSION:
                raise PydanticCustomError("dimension", f"has {len(value)} numbers, not 1 to {MAX_DIMENSION}")
            if not any(value):
                raise PydanticCustomError("vector", "is all zeros")
        return value

    @model_validator(mode="after")
    def _whole(self) -> NewMemory:
        triple = (self.subject, self.predicate, self.object)
        if any(triple) and not all(triple):
            raise PydanticCustomError("triple", "subject, predicate and object go together: give all three or none")
        if (self.embedding is None) != (self.embedding_model is None):
            raise PydanticCustomError("embedding", "embedding and embedding_model go together")
        if self.corrects is not None and self.corrects == self.external_id:
            raise PydanticCustomError("corrects", "corrects names the memory itself")
        if any(edge.to == self.external_id for edge in self.edges):
            raise PydanticCustomError("edges", "an edge leads to the memory itself")
        self._check_properties()
        return self

    def _check_properties(self) -> None:
        # These properties become rows of their own, so they are checked while the line number is at hand.
        if self.layer == "prospective" and self.properties.get("due_at") is not None:
            try:
                utc_moment(self.properties["due_at"])
            except PydanticCustomError as error:
                raise PydanticCustomError("due_at", f"properties.due_at {error.message_template}") from None
        if self.layer == "procedural" and not isinstance(self.properties.get("steps", []), list):
            raise PydanticCustomError("steps", "properties.steps is not a list")
        soul = self.properties.get("soul")
        if soul is not None and self.source == "user":
            field = soul.get("field") if isinstance(soul, dict) else None
            if not isinstance(field, str) or not field.strip() or soul.get("value") is None:
                raise PydanticCustomError("soul", 'properties.soul is not {"field": name, "value": value}')

    @property
    def dated(self) -> bool:
        """Whether it says when it was observed or recorded."""
        return self.observed_at is not None or self.recorded_at is not None

    def observed(self, now: datetime) -> datetime:
        """When it was true or said."""
        return self.observed_at or self.recorded_at or now

    def recorded(self, now: datetime) -> datetime:
        """When the memory came to know it."""
        return self.recorded_at or self.observed_at or now

    @property
    def content_hash(self) -> str:
        """sha256 over layer, label, content and triple; what decides whether a text is new.

        Parts are length-prefixed, so that no two different memories share a hash by shifting text between fields.
        """
        return content_hash(self.layer, self.label, self.content, self.subject, self.predicate, self.object)

    @property
    def slot_text(self) -> str | None:
        """Subject and predicate as one text: what the memory is about, without what it says; None without a triple."""
        return f"{self.subject} {self.predicate}" if self.subject else None


def readable(error: ValidationError) -> str:
    """A validation error as one sentence that names each field."""
    problems = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            problems.append(f"unknown key {where!r}")
        elif problem["type"] == "missing":
            problems.append(f"{where} is missing")
        elif problem["type"] == "string_too_short":
            problems.append(f"{where} is blank")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            problems.append(f"{where}: {message[:1].lower()}{message[1:]}" if where else message)
    return f"{'; '.join(problems)}."
