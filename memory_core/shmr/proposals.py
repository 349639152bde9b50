"""What a model may propose about a cluster, and why a proposal is turned down.

Everything is checked before anything is scored or applied. An item is accepted whole or rejected whole, with one reason
of a closed set; the reason, never the rejected text, is what a next attempt is told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

MAX_BELIEFS = 5
"""Most items of one answer, unless a setting says otherwise."""

MAX_TEXT = 500
"""Most characters of a subject, predicate, object or rationale."""

HANDLE_PATTERN = "[a-z][0-9]{1,6}"
"""A short name of one memory in one prompt: `m1`, `m2`, …"""

REJECTION_REASONS: dict[str, str] = {
    "not_an_object": "the item is not a JSON object",
    "missing_field": "a required field is missing",
    "wrong_type": "a field has the wrong JSON type",
    "empty_text": "subject, predicate or object is blank",
    "text_too_long": f"a text is longer than {MAX_TEXT} characters",
    "bad_character": "a text holds a control character, a lone surrogate or a text-direction override",
    "bad_confidence": "confidence is not a finite number from 0 to 1",
    "unknown_action": "action is not create, update or dampen",
    "bad_handle": "target, evidence or contradicts holds something that is not a handle",
    "no_evidence": "evidence is empty",
    "foreign_handle": "a handle is not one of the memories shown",
    "missing_target": "update and dampen need a target",
    "unexpected_target": "create takes no target",
    "read_only_target": "the target is read-only",
    "duplicate_target": "an earlier item already changes this target",
    "only_target_as_evidence": "the only evidence for an update is the memory that it replaces",
    "overlapping_handles": "a memory is named both as evidence and as contradicting",
    "duplicate_item": "an earlier item already says this",
    "too_many": "the answer has more items than allowed",
}
"""Every reason why an item is turned down, with the sentence that a model is told."""

_BIDIRECTIONAL_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFC", text).strip()
    if len(text) > MAX_TEXT:
        raise PydanticCustomError("text_too_long", "has more characters than allowed")
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _BIDIRECTIONAL_CONTROLS:
            raise PydanticCustomError("bad_character", "holds a character that is not allowed")
    return text


def _not_blank(text: str) -> str:
    if not text:
        raise PydanticCustomError("empty_text", "is blank")
    return text


def _on_one_line(value: Any) -> Any:
    return re.sub(r"[ \t\r\n]+", " ", value) if isinstance(value, str) else value


Handle = Annotated[str, Field(strict=True, pattern=f"^{HANDLE_PATTERN}$")]
"""A string of the form HANDLE_PATTERN."""

Statement = Annotated[str, Field(strict=True), AfterValidator(_clean), AfterValidator(_not_blank)]
Rationale = Annotated[str, BeforeValidator(_on_one_line), Field(strict=True), AfterValidator(_clean)]


class ProposedBelief(BaseModel):
    """One item of a model's answer, valid in itself; `validate_items` checks it against the cluster.

    Texts are NFC, trimmed, and free of control characters, lone surrogates and text-direction overrides.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    subject: Statement
    predicate: Statement
    object: Statement
    confidence: Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
    action: Literal["create", "update", "dampen"]
    target: Handle | None = None
    evidence: Annotated[list[Handle], Field(min_length=1)]
    contradicts: list[Handle] = Field(default_factory=list)
    rationale: Rationale = ""


class ProposedBeliefs(BaseModel):
    """A model's whole answer: no beliefs is an answer too ("nothing to say")."""

    beliefs: list[ProposedBelief]


def _portable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the dialect that every provider's strict mode takes: closed objects, all fields required."""
    definitions = schema.get("$defs", {})

    def convert(node: Any) -> Any:
        if isinstance(node, list):
            return [convert(part) for part in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return convert(definitions[node["$ref"].rsplit("/", 1)[1]])
        dropped = ("$defs", "title", "default", "description", "minLength", "maxLength", "minItems")
        kept = {key: value for key, value in node.items() if key not in dropped}
        if "properties" in kept:
            properties = {name: convert(part) for name, part in node["properties"].items()}
            return {**kept, "properties": properties, "required": list(properties), "additionalProperties": False}
        return {key: convert(value) for key, value in kept.items()}

    converted: dict[str, Any] = convert(schema)
    return converted


RESPONSE_SCHEMA: dict[str, Any] = _portable(ProposedBeliefs.model_json_schema())
"""JSON schema of the answer, for providers that can be held to one. Lengths and counts are checked by us afterwards."""


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """An item of an answer that was turned down.

    Args:
        index: its place in the answer, from 0.
        reason: a key of REJECTION_REASONS.
        detail: the field or the handle concerned; never the model's free text.
    """

    index: int
    reason: str
    detail: str

    @property
    def critique(self) -> str:
        """The reason as told to the next attempt; free of anything that the model or a memory wrote."""
        return f"Item {self.index + 1}: {REJECTION_REASONS[self.reason]}."


def validate_items(
    items: Sequence[object],
    handles: Collection[str],
    *,
    read_only: Collection[str] = (),
    max_items: int = MAX_BELIEFS,
) -> tuple[list[ProposedBelief], list[RejectedItem]]:
    """The items of an answer that may be scored, and the others with their reasons.

    Args:
        items: the parsed answer, in its order.
        handles: the memories that the model was shown.
        read_only: those of them that may be cited but not changed.
        max_items: items beyond this place are rejected as `too_many`.

    Returns:
        The accepted items in their order, and the rejected ones in theirs. Both are empty for an empty answer.
    """
    accepted: list[ProposedBelief] = []
    rejected: list[RejectedItem] = []
    for index, item in enumerate(items):
        try:
            if index >= max_items:
                raise _Rejection("too_many", f"{max_items} allowed")
            belief = _read(item)
            _check_handles(belief, set(handles), set(read_only))
            _check_against_earlier(belief, accepted)
        except _Rejection as rejection:
            rejected.append(RejectedItem(index, rejection.reason, rejection.detail))
        else:
            accepted.append(belief)
    return accepted, rejected


class _Rejection(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def _read(item: object) -> ProposedBelief:
    if not isinstance(item, dict):
        raise _Rejection("not_an_object", type(item).__name__)
    try:
        belief = ProposedBelief.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        raise _Rejection(_reason(field, first["type"]), field) from error
    once = {"evidence": list(dict.fromkeys(belief.evidence)), "contradicts": list(dict.fromkeys(belief.contradicts))}
    return belief.model_copy(update=once)


def _reason(field: str, kind: str) -> str:
    if kind in REJECTION_REASONS:
        return kind
    if kind == "missing":
        return "missing_field"
    if kind == "string_unicode":
        return "bad_character"
    if field == "evidence" and kind == "too_short":
        return "no_evidence"
    by_field = {"confidence": "bad_confidence", "action": "unknown_action"}
    by_field |= dict.fromkeys(("target", "evidence", "contradicts"), "bad_handle")
    return by_field.get(field, "wrong_type")


def _check_handles(belief: ProposedBelief, handles: set[str], read_only: set[str]) -> None:
    named = [*belief.evidence, *belief.contradicts, *([belief.target] if belief.target else [])]
    for handle in named:
        if handle not in handles:
            raise _Rejection("foreign_handle", handle)
    if belief.action == "create" and belief.target is not None:
        raise _Rejection("unexpected_target", belief.target)
    if belief.action != "create" and belief.target is None:
        raise _Rejection("missing_target", belief.action)
    if belief.target in read_only:
        raise _Rejection("read_only_target", str(belief.target))
    if belief.action == "update" and set(belief.evidence) == {belief.target}:
        raise _Rejection("only_target_as_evidence", str(belief.target))
    if both := set(belief.evidence) & set(belief.contradicts):
        raise _Rejection("overlapping_handles", min(both))


def _check_against_earlier(belief: ProposedBelief, earlier: Sequence[ProposedBelief]) -> None:
    for other in earlier:
        if belief.target is not None and belief.target == other.target:
            raise _Rejection("duplicate_target", belief.target)
        if belief.action != "dampen" and other.action != "dampen" and _statement(belief) == _statement(other):
            raise _Rejection("duplicate_item", "")


def _statement(belief: ProposedBelief) -> tuple[str, str, str]:
    return belief.subject.casefold(), belief.predicate.casefold(), belief.object.casefold()
