"""What the command line calls to run a flow from a shell: the entry point `runner` of the group `slowwave.flows`.

Prefect reads its settings when it is imported, so nothing here imports it, or a flow, before they are set.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from flows.environment import (
    client_environment,
    has_server,
    prefect_database_url,
    server_environment,
    set_missing,
)
from flows.prefect_schema import prepare
from flows.temporary_server import TemporaryServer
from memory_core.errors import InvalidInput, SetupError, SlowwaveError
from memory_core.settings import Settings

FLOW_COMMANDS = ("sleep", "harmonize", "nightly")
COMMANDS = ("prepare", *FLOW_COMMANDS, "replay")


def run(request: Mapping[str, Any]) -> Any:
    """Do one request and return its result. Not to be called from a running event loop.

    Args:
        request: `command`, one of `prepare`, `sleep`, `harmonize`, `nightly`, `replay`, and
            for `sleep`, `harmonize`, `nightly`: `tenant` (or `tenants`), `scope` (kind=id/kind=id, or None), `as_of`
            (a datetime with a zone, or ISO 8601 text), `dry_run`, `requested_by`, and `parameters` (`settings`,
            `soul_schema`, `pending_connections`, `accept`, `reconsider`);
            for `replay`: `tenants`, `nights` (times with a zone), `requested_by`, `settings`, and `progress`, a
            function that is called with what is done, what there is in all, and what comes next;
            for all: `home` and `debug` where they are not in the environment.

    Returns:
        `prepare`: the document of `prefect_schema.prepare`. The flows: a list with one document a scope, whatever
        their statuses. `replay`: `{"nights": […], "runs": [documents of the last night]}`.

    Raises:
        SlowwaveError: the flow could not begin, such as NotFound, InvalidInput, or SetupError where the Prefect server
            does not answer.
    """
    command = request.get("command")
    if command not in COMMANDS:
        raise InvalidInput(f"There is no flow command {command!r}.", hint=f"It is one of: {', '.join(COMMANDS)}.")
    settings = Settings.load(home=request.get("home"), debug=request.get("debug"))
    # Tasks read the settings from the environment, because they may run in other processes.
    os.environ["SLOWWAVE_HOME"] = str(settings.home)
    if command == "prepare":
        return prepare(settings)
    set_missing(client_environment(settings))
    if has_server():
        return asyncio.run(_run_flow(str(command), request, None))
    prepare(settings)
    environment = server_environment(settings, prefect_database_url(settings))
    # Set before Prefect is imported; the import then goes on beside the start of the server.
    os.environ.setdefault("PREFECT_HOME", environment["PREFECT_HOME"])
    server = TemporaryServer({**environment, **_named(environment)})
    try:
        return asyncio.run(_run_flow(str(command), request, server))
    finally:
        server.stop()


def _named(environment: Mapping[str, str]) -> dict[str, str]:
    """What a person set of these variables, which stays."""
    return {name: os.environ[name] for name in environment if name in os.environ}


async def _run_flow(command: str, request: Mapping[str, Any], server: TemporaryServer | None) -> Any:
    from prefect import tags
    from pydantic import ValidationError

    from flows.progress import listening
    from flows.records import reporting_to, send_logs, wait_until_recorded

    try:
        flow, parameters = _flow_of(command, request)
    except ValidationError as error:
        raise _invalid(error) from error
    if server is not None:
        await asyncio.to_thread(server.wait)
    else:
        await _check_server()
    with (
        reporting_to(server.url if server else None),
        listening(request.get("progress")),
        tags("slowwave", "on-demand", *(["dry-run"] if request.get("dry_run") else [])),
    ):
        state = await flow(parameters, return_state=True)
        result = await state.aresult(raise_on_failure=False)
        await send_logs()
        documents = _documents(result)
        if server is not None:
            await wait_until_recorded(state.state_details.flow_run_id)
    return documents


async def _check_server() -> None:
    """Prefect itself would say no more than that it failed to reach an address.

    Raises:
        SetupError: the server that a person named does not answer.
    """
    from prefect import get_client
    from prefect.exceptions import PrefectException

    try:
        async with get_client() as client:
            failure = await client.api_healthcheck()
    except (PrefectException, OSError, RuntimeError, ValueError) as error:
        failure = error
    if failure is not None:
        raise SetupError(
            f"No Prefect server answers at PREFECT_API_URL, {os.environ.get('PREFECT_API_URL')}.",
            hint="Start it, correct PREFECT_API_URL, or unset it to run nights in this process.",
        ) from failure


def _documents(result: Any) -> Any:
    """What a flow came to, also where it ended as Failed; raises where it could not begin."""
    if not isinstance(result, BaseException):
        return result
    if isinstance(result, SlowwaveError) and "nights" in result.data:
        return {"nights": result.data["nights"], "runs": result.data["runs"]}
    if isinstance(result, SlowwaveError) and "documents" in result.data:
        return result.data["documents"]
    raise result


def _flow_of(command: str, request: Mapping[str, Any]) -> tuple[Any, Any]:
    from flows import parameters as models

    tenants = request.get("tenants") or [request["tenant"]]
    given: dict[str, Any] = {"tenants": tenants, "requested_by": request.get("requested_by") or "person"}
    if command == "replay":
        from flows.replay import replay

        return replay, models.ReplayParameters(
            **given, nights=request["nights"], settings=request.get("settings") or {}
        )
    given |= {
        "scope": request.get("scope") or "",
        "as_of": request.get("as_of"),
        "dry_run": bool(request.get("dry_run")),
        **{name: value for name, value in (request.get("parameters") or {}).items() if value is not None},
    }
    match command:
        case "sleep":
            from flows.deep_sleep import deep_sleep

            return deep_sleep, models.DeepSleepParameters(**given)
        case "harmonize":
            from flows.harmonize import harmonize

            return harmonize, models.HarmonizeParameters(**given)
        case _:
            from flows.nightly import nightly

            return nightly, models.NightlyParameters(**given)


def _invalid(error: Any) -> InvalidInput:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
    )
    return InvalidInput(f"The flow cannot run with these parameters: {problems}.")
