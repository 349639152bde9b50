"""The only place that decides in which state a flow ends, and what its message says.

Completed where every scope that could sleep did; Failed where a scope ended partial or failed, or where none
slept although some should have. The message says how many slept and names the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prefect import State
from prefect.states import Completed, Failed

from memory_core.errors import PermanentError, SlowwaveError

NAMED = 5
"""Scopes a message names before it only counts them."""

SLEPT = ("applied", "previewed")
BROKEN = ("partial", "failed")

_VERBS = {"sleep": "slept", "harmonize": "harmonized", "nightly": "slept"}


def final_state(kind: str, documents: Sequence[Mapping[str, Any]]) -> State[Any]:
    """The state a flow ends in, given the document of each scope.

    A Completed state carries the documents. A Failed one carries a PermanentError with the message, whose
    `data["documents"]` are the documents: whoever awaits the flow then gets an error that says what happened.
    """
    message = describe_documents(kind, documents)
    if is_success(documents):
        return Completed(message=message, data=list(documents))
    return Failed(message=message, data=PermanentError(message, documents=list(documents)))


def error_state(error: SlowwaveError) -> State[Any]:
    """The state of a flow that could not begin; carries the error itself."""
    return Failed(message=str(error), data=error)


def is_success(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no scope is broken, and some slept unless there was none."""
    statuses = [document["status"] for document in documents]
    if any(status in BROKEN for status in statuses):
        return False
    return not statuses or any(status in SLEPT for status in statuses)


def describe_documents(kind: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Such as: 97 of 100 scopes slept; 1 refused by a guard (…), 1 busy (…), 1 partial (strengthen in …: why)."""
    slept = sum(document["status"] in SLEPT for document in documents)
    dry = any(document.get("dry_run") for document in documents)
    verb = f"would have {_VERBS[kind]}" if dry else _VERBS[kind]
    head = f"{slept} of {len(documents)} scopes {verb}" if len(documents) != 1 else _one(documents[0], slept, verb)
    labels = Counter(_label(document) for document in documents if document["status"] not in SLEPT)
    parts = []
    for label, number in sorted(labels.items()):
        theirs = [document for document in documents if document["status"] not in SLEPT and _label(document) == label]
        named = "; ".join(_detail(document) for document in theirs[:NAMED])
        parts.append(f"{number} {label} ({named}{'; …' if number > NAMED else ''})")
    return f"{head}; {', '.join(parts)}" if parts else head


def _one(document: Mapping[str, Any], slept: int, verb: str) -> str:
    return f"{document['scope']} {verb}" if slept else f"0 of 1 scopes {verb}"


def _label(document: Mapping[str, Any]) -> str:
    error = (document.get("error") or {}).get("error")
    if document["status"] == "refused" and error == "GuardTripped":
        return "refused by a guard"
    if document["status"] == "refused" and error == "LaterRunsExist":
        return "refused because of later runs"
    return str(document["status"])


def _detail(document: Mapping[str, Any]) -> str:
    steps = document.get("steps", {})
    broken = [name for name, step in steps.items() if step["status"] == "failed"]
    errors = (steps[name]["error"] for name in broken if "error" in steps[name])
    error: Mapping[str, Any] = document.get("error") or next(errors, {})
    where = f"{', '.join(broken)} in {document['scope']}" if broken else str(document["scope"])
    if document["status"] == "busy" or not error.get("message"):
        return where
    return f"{where}: {error['message'].splitlines()[0].rstrip('.')}"
