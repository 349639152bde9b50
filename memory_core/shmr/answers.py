"""From a model's text to a list of items: the four documented fall-backs, in one bounded pass.

The fall-backs are the whole text as JSON, a fenced block, a bare array in prose, and single objects. The pass walks the
text once, reads each JSON value where one starts, and keeps the last answer: what came before it was a draft. Reasoning
between `<think>` tags is no answer. The work is linear in the text: a budget ends it whatever the text is made of.

Strict where leniency would guess: NaN, Infinity and numbers too large for a float are refused, so are objects with a
key twice. `[]` is an answer ("nothing to say") and differs from a text in which no answer was found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from memory_core.shmr.json_spans import RefusedJSON, json_span, strict_json

Method = Literal["json", "fenced", "array", "objects", "none"]

UNREADABLE_REASONS: dict[str, str] = {
    "empty": "the answer is blank",
    "too_large": "the answer is longer than the limit",
    "wrong_shape": "the answer is JSON, but neither a list of objects nor an object with a list of beliefs",
    "malformed": "the answer holds JSON that is broken and from which nothing could be recovered",
    "no_json": "the answer holds no JSON",
}
"""Every reason why no items could be read."""

NOTES: dict[str, str] = {
    "reasoning_removed": "text between reasoning tags was left out",
    "reasoning_unclosed": "a reasoning tag was never closed; all text after it was left out",
    "draft_replaced": "an earlier answer in the same text was replaced by a later one",
    "recovered_from_broken_json": "items were taken out of JSON that is broken as a whole",
    "not_finite": "a number was NaN, infinite or too large",
    "duplicate_key": "an object had the same key twice",
    "not_an_object": "a list held something besides objects; it was left out",
    "too_deep": "a value was nested too deeply",
    "too_many_items": "items beyond the limit were left out",
    "work_limit": "the text was too tangled to be read to its end",
}
"""Every remark about how an answer was read."""


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Bounds of one reading.

    Args:
        max_characters: a longer text is refused unread.
        max_depth: most brackets open at once.
        max_items: most items kept.
        work_factor: most characters looked at, as a multiple of the text's length.
    """

    max_characters: int = 200_000
    max_depth: int = 32
    max_items: int = 200
    work_factor: int = 8


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What was read.

    Args:
        items: the proposed items, not yet validated; may be empty in a good answer.
        method: the fall-back that found them; `none` where nothing could be read.
        notes: keys of NOTES, each once, in the order they came up.
        reason: a key of UNREADABLE_REASONS where method is `none`, else None.
    """

    items: list[dict[str, Any]]
    method: Method
    notes: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def nothing_to_say(self) -> bool:
        """Whether the model answered, and answered that there is nothing to propose."""
        return self.method != "none" and not self.items and "not_an_object" not in self.notes


DEFAULT_LIMITS = ParseLimits()

_REASONING_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = "```"
_ITEM_KEYS = frozenset(("subject", "predicate", "object", "action"))
_ENVELOPE_KEYS = ("beliefs", "items")


def parse_answer(text: str, *, limits: ParseLimits = DEFAULT_LIMITS) -> ParsedAnswer:
    """Read the items out of a model's answer; never raises for what the text contains."""
    if len(text) > limits.max_characters:
        return ParsedAnswer([], "none", reason="too_large")
    stripped = text.strip().lstrip("\ufeff").strip()
    if not stripped:
        return ParsedAnswer([], "none", reason="empty")
    return _Reading(stripped, limits).run()


@dataclass
class _Reading:
    """One walk over one text."""

    text: str
    limits: ParseLimits
    items: list[dict[str, Any]] = field(default_factory=list)
    method: Method = "none"
    notes: dict[str, None] = field(default_factory=dict)
    work: int = 0
    fence: int = 0
    group: tuple[int, str] | None = None
    broken_until: int = 0
    wrong_shape: bool = False

    def run(self) -> ParsedAnswer:
        position = 0
        while position < len(self.text):
            character = self.text[position]
            if character in "[{":
                position = self.value_at(position)
            elif character == "<" and (tag := _REASONING_TAG.match(self.text, position)):
                position = self.reasoning_at(tag)
            elif self.text.startswith(_FENCE, position):
                self.fence += 1
                position += len(_FENCE)
            else:
                position += 1
            if self.work > self.limits.work_factor * len(self.text):
                self.note("work_limit")
                break
        return self.result()

    def result(self) -> ParsedAnswer:
        if self.method != "none":
            if len(self.items) > self.limits.max_items:
                self.note("too_many_items")
            return ParsedAnswer(self.items[: self.limits.max_items], self.method, tuple(self.notes))
        broken = self.broken_until or "work_limit" in self.notes
        reason = "wrong_shape" if self.wrong_shape or self.is_scalar() else "malformed" if broken else "no_json"
        return ParsedAnswer([], "none", tuple(self.notes), reason)

    def is_scalar(self) -> bool:
        if self.text[0] not in '"-0123456789tfn':
            return False
        try:
            json.loads(self.text)
        except ValueError:
            return False
        return True

    def note(self, key: str) -> None:
        self.notes[key] = None

    def reasoning_at(self, tag: re.Match[str]) -> int:
        """Skip a reasoning block, or drop what came before a closing tag without an opening one."""
        closing = tag if tag.group(1) else self.closing_tag(tag.end())
        if closing is None:
            self.note("reasoning_unclosed")
            return len(self.text)
        self.note("reasoning_removed")
        if closing is tag:
            self.items, self.method, self.group, self.wrong_shape, self.broken_until = [], "none", None, False, 0
        return closing.end()

    def closing_tag(self, position: int) -> re.Match[str] | None:
        return next((tag for tag in _REASONING_TAG.finditer(self.text, position) if tag.group(1)), None)

    def value_at(self, start: int) -> int:
        """Read the JSON value that may start here; returns where to go on."""
        end, reached, too_deep = json_span(self.text, start, self.limits.max_depth)
        self.work += reached - start
        if too_deep:
            self.note("too_deep")
        if end is None:
            # One bracket and a letter is prose, not JSON; it must not make the rest of the text count as broken.
            if reached - start > 1:
                self.broken_until = max(self.broken_until, reached)
            return start + 1
        try:
            value = strict_json(self.text[start:end])
        except ValueError as error:
            if isinstance(error, RefusedJSON):
                self.note(str(error))
            self.broken_until = max(self.broken_until, end)
            return start + 1
        self.take(value, start, end)
        return end

    def take(self, value: Any, start: int, end: int) -> None:
        """Let a complete value be the answer, or a part of it, where its shape allows."""
        inside_broken = start < self.broken_until
        envelope = next((key for key in _ENVELOPE_KEYS if isinstance(value, dict) and key in value), None)
        if isinstance(value, dict) and envelope is None and _ITEM_KEYS & value.keys():
            self.take_object(value, start, end, inside_broken)
            return
        found = value[envelope] if envelope is not None else value
        if inside_broken:
            # A list inside a broken item may be its empty `contradicts`, which must not read as "nothing to say".
            for item in found if isinstance(found, list) else []:
                if isinstance(item, dict) and _ITEM_KEYS & item.keys():
                    self.take_object(item, start, end, inside_broken)
            return
        objects = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        if not isinstance(found, list) or (found and not objects):
            self.wrong_shape = True
            return
        if len(objects) < len(found):
            self.note("not_an_object")
        self.replace(objects, self.name(start, end, "array"), None)

    def take_object(self, value: dict[str, Any], start: int, end: int, inside_broken: bool) -> None:
        if inside_broken:
            self.note("recovered_from_broken_json")
        group = (self.fence, "objects")
        if self.group == group:
            self.items.append(value)
            self.method = "objects" if self.method == "json" else self.method
        else:
            self.replace([value], "objects" if inside_broken else self.name(start, end, "objects"), group)

    def replace(self, items: list[dict[str, Any]], method: Method, group: tuple[int, str] | None) -> None:
        if self.method != "none":
            self.note("draft_replaced")
        self.items, self.method, self.group = items, method, group

    def name(self, start: int, end: int, otherwise: Method) -> Method:
        if (start, end) == (0, len(self.text)):
            return "json"
        return "fenced" if self.fence % 2 else otherwise
