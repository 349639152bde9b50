"""Many nights one after another: one task a night for all tenants, the last night as the full nightly flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect import State, flow
from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.nightly import nightly
from flows.outcome import describe_documents, error_state, is_success
from flows.parameters import NightlyParameters, ReplayParameters
from flows.progress import tell
from memory_core.errors import PermanentError, SlowwaveError
from tasks.runs import sleep_night
from tasks.scopes import choose_scopes
from tasks.sessions import session

PROGRESS_KEY = "replay-progress"


def _name() -> str:
    given = flow_run.parameters["parameters"]
    parameters = given if isinstance(given, ReplayParameters) else ReplayParameters.model_construct(**given)
    nights = sorted(str(night)[:10] for night in parameters.nights)
    where = parameters.tenants[0] if len(parameters.tenants) == 1 else f"{len(parameters.tenants)} tenants"
    return f"{flow_run.flow_name} · {where} · {nights[0]} to {nights[-1]}"


@flow(name="replay", flow_run_name=_name, persist_result=False, retries=0)
async def replay(parameters: ReplayParameters) -> State[Any]:
    """Many nights one after another: one task a night for all tenants, the last night as the full nightly flow.

    Args:
        parameters: which tenants, and which nights.

    Returns:
        A state with `{"nights": [{"as_of", "statuses", "changed"}], "runs": [the last night's documents]}`.
    """
    nights = sorted(set(parameters.nights))
    shared: dict[str, Any] = parameters.model_dump(include={"tenants", "requested_by", "settings"})
    summaries: list[dict[str, Any]] = []
    broken: list[str] = []
    progress = _Progress(len(nights))
    try:
        async with session() as database:
            scopes = [scope.scope_path for scope in await choose_scopes(database, parameters.tenants)]
            await progress.begin()
            for night in nights[:-1]:
                await progress.next(f"night of {night.date().isoformat()}")
                asked = NightlyParameters(**shared, as_of=night).run_parameters()
                documents = await sleep_night(scopes, "nightly", night, asked, parameters.requested_by)
                summaries.append(_summary(night.isoformat(), documents))
                if not is_success(documents):
                    broken.append(f"{night.date().isoformat()}: {describe_documents('nightly', documents)}")
            await progress.next(f"night of {nights[-1].date().isoformat()}, with the morning report")
            last = NightlyParameters(**shared, as_of=nights[-1])
            state: State[Any] = await nightly(parameters=last, return_state=True)
    except SlowwaveError as error:
        return error_state(error)
    await progress.end()
    found = await state.aresult(raise_on_failure=False)
    if isinstance(found, BaseException):
        broken.append(f"{nights[-1].date().isoformat()}: {state.message}")
        documents = found.data.get("documents", []) if isinstance(found, SlowwaveError) else []
    else:
        documents = found
    summaries.append(_summary(nights[-1].isoformat(), documents))
    result: dict[str, Any] = {"nights": summaries, "runs": documents}
    if broken:
        message = f"{len(broken)} of {len(nights)} nights did not go well; {'; '.join(broken[:3])}"
        return Failed(message=message, data=PermanentError(message, **result))
    return Completed(message=f"{len(nights)} nights of {len(scopes)} scopes", data=result)


def _summary(as_of: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    steps = [step for document in documents for step in document.get("steps", {}).values()]
    return {
        "as_of": as_of,
        "statuses": dict(Counter(document["status"] for document in documents)),
        "changed": sum(step.get("changed", 0) for step in steps),
    }


class _Progress:
    """How far the replay is, on the run's page and in the terminal."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = -1
        self.artifact: UUID | None = None

    async def begin(self) -> None:
        try:
            self.artifact = await acreate_progress_artifact(0.0, key=PROGRESS_KEY, description="Nights slept through.")
        except Exception as error:  # a replay goes on without its picture
            get_run_logger().warning("Could not write the progress: %s: %s", type(error).__name__, error)

    async def next(self, what: str) -> None:
        self.done += 1
        tell(self.done, self.total, what)
        await self._show()

    async def end(self) -> None:
        self.done = self.total
        tell(self.done, self.total, "")
        await self._show()

    async def _show(self) -> None:
        if self.artifact is None:
            return
        try:
            await aupdate_progress_artifact(self.artifact, progress=100.0 * self.done / self.total)
        except Exception as error:  # as above
            self.artifact = None
            get_run_logger().warning("Could not write the progress: %s: %s", type(error).__name__, error)
