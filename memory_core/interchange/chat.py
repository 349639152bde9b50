"""The chat format: one turn of a conversation a line, kept as an episodic memory.

`{"speaker": "Ann", "text": "I moved to Porto.", "at": "2026-02-18T09:52:00Z", "id": "turn-17"}`
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from memory_core.errors import InvalidInput
from memory_core.layers.records import Moment, NewMemory, Text, clean_text, readable

SOURCE = "chat"


class ChatTurn(BaseModel):
    """One turn. `at` and `id` may be absent; without an id the same text at the same time is the same turn."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    speaker: Text
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), BeforeValidator(clean_text)]
    at: Moment | None = None
    id: Text | int | None = None
    tenant: str | None = None
    scope: str | None = None


def read_chat_turn(document: Any) -> NewMemory:
    """The memory of one turn: "speaker: text", with the speaker as a property too.

    Raises:
        InvalidInput: it is not a turn; the message names each field that is wrong.
    """
    if not isinstance(document, dict):
        raise InvalidInput("It is not a JSON object.", hint='Write {"speaker": …, "text": …, "at": …, "id": …}.')
    try:
        turn = ChatTurn.model_validate({key: value for key, value in document.items() if value is not None})
    except ValidationError as error:
        raise InvalidInput(readable(error)) from error
    fields: dict[str, Any] = {
        "content": f"{turn.speaker}: {turn.text}",
        "layer": "episodic",
        "observed_at": turn.at,
        "source": SOURCE,
        "external_id": turn.id,
        "properties": {"speaker": turn.speaker},
        "tenant": turn.tenant,
        "scope": turn.scope,
    }
    return NewMemory.read(fields)
