"""A model that answers about each person as scripted for that person, however many are asked about at once."""

from __future__ import annotations

from collections.abc import Mapping

from memory_core.models.language import ModelAnswer, ModelRequest
from tests.scripted_model import PEOPLE, Scripted, moved


class ByName(Scripted):
    """Answers by the person whom a prompt speaks of; of anybody else it says that they live in Bergen now."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__("")
        self.answers = answers

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The person's answer."""
        (name,) = {name for name in PEOPLE if f'"subject": "{name}"' in request.prompt}
        self.requests.append(request)
        text = self.answers.get(name) or moved(request.prompt)
        return ModelAnswer(text, self.name, 100, 20, 0.01, "stop", 5)
