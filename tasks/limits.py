"""How fast all workers together may ask models: two global concurrency limits of the Prefect server, with slot decay.

Each process spreads its own calls evenly first; the shared limits then keep many processes to the same rate. A call
that a limit turns away waits longer than it strictly must, because Prefect starts the decay anew with each refusal:
the rate is never exceeded, and with many workers not quite reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_core.errors import TransientError
from memory_core.models.pacing import LocalPace
from memory_core.settings import Settings

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

REQUESTS = "slowwave-model-requests"
TOKENS = "slowwave-model-tokens"

SLOTS_A_REQUEST = 60
"""One request is as many slots: Prefect counts decay in whole slots, and would lose up to a request each time."""

_MINUTE = 60.0
_TOKEN_SECONDS = 10
"""Seconds' worth of tokens that may be taken at once."""


@dataclass(frozen=True, slots=True)
class ModelLimit:
    """A global concurrency limit as Prefect keeps it.

    Attributes:
        limit: slots that may be taken at once.
        slot_decay_per_second: slots that come free again each second.
    """

    name: str
    limit: int
    slot_decay_per_second: float


def model_limits(settings: Settings) -> list[ModelLimit]:
    """The limits that the settings ask for; none where they ask for none."""
    found = []
    if rate := settings.model_requests_per_minute:
        # Two requests at least, so that one process at exactly this rate is never turned away.
        at_once = (math.ceil(rate / _MINUTE) + 1) * SLOTS_A_REQUEST
        found.append(ModelLimit(REQUESTS, at_once, rate * SLOTS_A_REQUEST / _MINUTE))
    if rate := settings.model_tokens_per_minute:
        found.append(ModelLimit(TOKENS, max(1, math.ceil(rate * _TOKEN_SECONDS / _MINUTE)), rate / _MINUTE))
    return found


async def create_missing(client: PrefectClient, limits: list[ModelLimit]) -> dict[str, int]:
    """Create the limits that do not exist, and leave those that do as they are, since a person may have set them.

    Returns:
        each limit's slots, by name.
    """
    from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

    slots = {}
    for each in limits:
        try:
            slots[each.name] = (await client.read_global_concurrency_limit_by_name(each.name)).limit
        except ObjectNotFound:
            new = GlobalConcurrencyLimitCreate(
                name=each.name, limit=each.limit, slot_decay_per_second=each.slot_decay_per_second
            )
            try:
                await client.create_global_concurrency_limit(new)
                slots[each.name] = each.limit
            except ObjectAlreadyExists:
                # Another worker was faster.
                slots[each.name] = (await client.read_global_concurrency_limit_by_name(each.name)).limit
    return slots


async def apply_limits(client: PrefectClient, limits: list[ModelLimit]) -> None:
    """Create the limits, or set those that exist to what the settings say; doing it again changes nothing."""
    for each in limits:
        await client.upsert_global_concurrency_limit_by_name(each.name, each.limit, each.slot_decay_per_second)


class SharedPace:
    """A pace that all workers of one Prefect server keep together; the port is `memory_core.models.pacing.Pace`."""

    def __init__(self, settings: Settings) -> None:
        self._limits = model_limits(settings)
        self._own = LocalPace(settings.model_requests_per_minute, settings.model_tokens_per_minute)
        self._slots: dict[str, int] | None = None

    async def wait(self, tokens: int) -> None:
        """Return when one more call may be made.

        Raises:
            TransientError: the Prefect server does not answer.
        """
        from httpx import HTTPError
        from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError, rate_limit
        from prefect.exceptions import PrefectException

        await self._own.wait(tokens)
        try:
            slots = await self._known()
            for each in self._limits:
                left = SLOTS_A_REQUEST if each.name == REQUESTS else tokens
                while left > 0:
                    part = min(left, max(1, slots[each.name] // 2))
                    # Not strict, a limit that was deleted would let everything through.
                    await rate_limit(each.name, occupy=part, strict=True)
                    left -= part
        except (ConcurrencySlotAcquisitionError, PrefectException, HTTPError, OSError, RuntimeError) as error:
            self._slots = None
            raise TransientError(
                f"The Prefect server, which paces calls to models, did not answer: {type(error).__name__}.",
                hint="Check that it runs; without PREFECT_API_URL a night keeps the pace by itself.",
            ) from error

    async def _known(self) -> dict[str, int]:
        if self._slots is None:
            from prefect import get_client

            async with get_client() as client:
                self._slots = await create_missing(client, self._limits)
        return self._slots


_PACES: dict[tuple[int, int], SharedPace] = {}


def shared_pace(settings: Settings) -> SharedPace | None:
    """The pace of this process, which it shares with the others; None where the settings ask for none."""
    rates = (settings.model_requests_per_minute, settings.model_tokens_per_minute)
    if not any(rates):
        return None
    return _PACES.setdefault(rates, SharedPace(settings))
