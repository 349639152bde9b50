"""Which model answers at which address with which key.

A key goes to the host it was given for and to no other, and a model of another provider never inherits an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.errors import InvalidSettings

_NO_KEY = "none"
"""Sent to an address of the user's own without a key, so that a key meant for another host never goes there."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model and where it answers.

    Args:
        model: the LiteLLM name, `provider/model`.
        api_base: its address; None for the provider's own.
        api_key: its key; None for the one that LiteLLM finds in the environment (the provider's own address only).
    """

    model: str
    api_base: str | None
    api_key: str | None

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r}, api_base={self.api_base!r}, api_key={'…' if self.api_key else None})"

    @property
    def provider(self) -> str:
        """What stands before the first slash."""
        return self.model.partition("/")[0]


def endpoints(names: Sequence[str], *, api_base: str | None, api_key: str | None) -> list[Endpoint]:
    """The endpoints of an ordered list of names; `language_model` says which address and key go where.

    Raises:
        InvalidSettings: a name lacks its provider, an address is not http, or a name is given twice.
    """
    found: list[Endpoint] = []
    for name in names:
        model, at, rest = name.partition("@http")
        provider, slash, rest_of_name = model.partition("/")
        if not (provider and slash and rest_of_name) or any(character.isspace() for character in name):
            raise InvalidSettings(
                f"{name!r} is not the name of a model.",
                hint="Names look like provider/model, such as openai/gpt-4o-mini or ollama/llama3.1.",
            )
        shares = not found or provider == found[0].provider
        base = f"http{rest}" if at else (api_base if shares else None)
        if base is not None and not base.startswith(("http://", "https://")):
            raise InvalidSettings(
                f"{base!r} is not the address of a model server.", hint="It begins with http:// or https://."
            )
        key = api_key if shares and not at else None
        found.append(Endpoint(model, base, key if key or base is None else _NO_KEY))
    if len({(endpoint.model, endpoint.api_base) for endpoint in found}) < len(found):
        raise InvalidSettings(f"A model is listed twice in {', '.join(names)!r}.")
    return found
