"""When a model is not asked any further: it keeps failing, or it is paid for and nothing comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.errors import ModelRateLimited, ModelRejected, SlowwaveError
from memory_core.shmr.decided import Decided

FAILURES_IN_A_ROW = 3
"""Clusters that may fail one after another before the rest is not tried any more."""

_HOPELESS = ("key", "unknown_model")
"""Reasons of a rejected call that hold for every other call too."""


@dataclass(slots=True)
class Breaker:
    """Counts failures and fruitless spending in the order in which clusters end.

    Attributes:
        fruitless_allowed: clusters paid for one after another without a usable answer.
        heeds_rate_limits: whether one request to slow down ends the asking: where the step is tried again later.
        never: whether nothing ends it, because nobody is really asked.
        error: the failure that ended it.
        fruitless: why spending ended it, in words.
    """

    fruitless_allowed: int
    heeds_rate_limits: bool = True
    never: bool = False
    error: SlowwaveError | None = None
    fruitless: str = ""
    _failures: int = 0
    _in_vain: int = 0

    @property
    def is_open(self) -> bool:
        """Whether nobody is to be asked any more."""
        return not self.never and (self.error is not None or bool(self.fruitless))

    def failed(self, error: SlowwaveError) -> None:
        """A cluster could not be asked about."""
        self._failures += 1
        hopeless = isinstance(error, ModelRejected) and error.data.get("reason") in _HOPELESS
        slow_down = self.heeds_rate_limits and isinstance(error, ModelRateLimited)
        if hopeless or slow_down or self._failures >= FAILURES_IN_A_ROW:
            self.error = self.error or error

    def ended(self, decided: Decided) -> None:
        """A cluster has a result; one that cost nothing says nothing about the model."""
        if not decided.bought:
            return
        self._failures = 0
        if decided.status not in ("rejected", "parse_error"):
            self._in_vain = 0
            return
        self._in_vain += 1
        if self._in_vain >= self.fruitless_allowed:
            self.fruitless = (
                f"stopped, because {self._in_vain} clusters in a row were paid for and brought nothing usable"
            )
