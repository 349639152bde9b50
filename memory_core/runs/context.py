"""A run, what it works with, and the shape of a step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

from memory_core.database.engine import Database
from memory_core.database.scoped import RunBinding, ScopedConnection
from memory_core.models.embedding import EmbeddingProvider
from memory_core.models.language import LanguageModel
from memory_core.runs.outcome import StepOutcome
from memory_core.scope import TenantScope
from memory_core.settings import Settings

Section = TypeVar("Section", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Run:
    """One run over one scope.

    Attributes:
        id: derived from scope, kind, time, parameters and ordinal, so that a resumed, replayed or previewed run has
            the same one.
        kind: `sleep`, `harmonize`, `nightly` or `undo`.
        as_of: the run's "now".
        parameters: what was asked for; JSON-able.
        dry_run: whether everything is rolled back at the end.
        resumed: whether an unfinished run was found and goes on.
    """

    id: UUID
    scope: TenantScope
    kind: str
    as_of: datetime
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    resumed: bool = False

    def binding(self, step: str) -> RunBinding:
        """What the transaction of one step is bound to."""
        return RunBinding(self.id, self.as_of, step)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a step may use beside its open transaction.

    Attributes:
        embedding: the embedding provider.
        language: the language model; None where only rules decide.
        tenant_settings: the tenant's and the scope's own settings, one key a section.
        last_attempt: whether a step that fails for a passing reason is not tried again; it then does what it can.
    """

    run: Run
    settings: Settings
    embedding: EmbeddingProvider
    language: LanguageModel | None
    tenant_settings: Mapping[str, Any] = field(default_factory=dict)
    last_attempt: bool = True

    @property
    def accepted(self) -> bool:
        """Whether a person accepted what the guards would refuse."""
        return bool(self.run.parameters.get("accept"))

    @property
    def reconsider(self) -> bool:
        """Whether what a person undid may be done again."""
        return bool(self.run.parameters.get("reconsider"))

    def section(self, name: str, model: type[Section], *, aliases: tuple[str, ...] = ()) -> Section:
        """The settings of one phase or of SHMR: this run's, the tenant's, the environment's, the file's, the default.

        Raises:
            InvalidSettings: a value is not valid.
        """
        asked = self.run.parameters.get("settings", {}).get(name, {})
        return self.settings.section(name, model, tenant=self.tenant_settings, call=asked, aliases=aliases)


Read = Callable[[ScopedConnection, RunContext], Awaitable[Any]]
Call = Callable[[Any, RunContext, Database], Awaitable[Any]]
Parts = Callable[[ScopedConnection, RunContext], Awaitable[Sequence[str]]]
Enabled = Callable[[RunContext], bool]
WritePart = Callable[[ScopedConnection, RunContext, str], Awaitable[StepOutcome]]
Write = Callable[[ScopedConnection, RunContext, Any], Awaitable[StepOutcome]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run: a transaction, or two with a call between them.

    Attributes:
        name: unique within the run; phase, task, report and ledger use the same word.
        write: does the work in an open transaction; its third argument is the answer of `call`, else None.
        read: gathers what `call` needs, in a transaction of its own that is closed before the call.
        call: asks a model, with no transaction open; it may use the database for the call cache.
        parts: names the parts of a step that commits part by part, such as SHMR's clusters.
        write_part: does one part in a transaction of its own; `write` then gets the parts' outcomes as its answer.
        needs: steps that must be done for this one to make sense.
        undone: SQL that names what a run decided in this step, for `decisions.remember_undone`; empty where nothing
            is decided.
        enabled: whether the settings of the run's scope switch the step on; None for a step that is always on. A step
            that is off is left out of the run: it has no row in the ledger and no part in the report.
    """

    name: str
    write: Write
    read: Read | None = None
    call: Call | None = None
    parts: Parts | None = None
    write_part: WritePart | None = None
    needs: tuple[str, ...] = ()
    undone: str = ""
    enabled: Enabled | None = None
