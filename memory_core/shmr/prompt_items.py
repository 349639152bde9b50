"""One memory as a model sees it: a line of JSON that nothing in it can leave."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One memory as the model sees it.

    Args:
        handle: its short name in this prompt, `m1` and so on.
        subject: of its triple; None where it has none. The same for predicate and object.
        predicate: see subject.
        object: see subject.
        content: its text.
        observed_at: when it was true or said; timezone-aware.
        confidence: 0 to 1.
        source_trust: how far its source is trusted, 0 to 1.
        is_correction: a person said this to correct something; it wins.
        read_only: it belongs to an ancestor scope: may be cited, never changed.
    """

    handle: str
    subject: str | None
    predicate: str | None
    object: str | None
    content: str
    observed_at: datetime
    confidence: float
    source_trust: float
    is_correction: bool = False
    read_only: bool = False


def item_line(item: PromptItem, limit: int) -> str:
    """The memory as one line of JSON, each of its texts cut to `limit` characters."""
    texts = {"subject": item.subject, "predicate": item.predicate, "object": item.object, "text": item.content}
    if item.content == " ".join(part or "" for part in (item.subject, item.predicate, item.object)):
        del texts["text"]
    shown = {name: _cut(text, limit) for name, text in texts.items() if text}
    document: dict[str, object] = {"handle": item.handle, **shown}
    document["observed_at"] = item.observed_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document["confidence"] = round(item.confidence, 2)
    document["trust"] = round(item.source_trust, 2)
    if item.is_correction:
        document["correction"] = True
    if item.read_only:
        document["read_only"] = True
    return json_line(document)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def json_line(value: object) -> str:
    """JSON on one line in which no character can pass for a line end, a control or an invisible mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if text.isascii():
        return text
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(json.dumps(c)[1:-1] if unicodedata.category(c) in hidden else c for c in text)
