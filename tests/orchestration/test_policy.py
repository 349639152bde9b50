"""What Prefect is told about tasks and flows: retries, names, forms, deployments; and how a final state is decided."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.cache_policies import NO_CACHE
from prefect.schedules import Cron
from prefect.states import Failed

from flows.consolidation import TASKS
from flows.deep_sleep import deep_sleep
from flows.harmonize import harmonize
from flows.nightly import nightly
from flows.outcome import describe_documents, is_success
from flows.parameters import NightlyParameters, ReplayParameters
from flows.replay import replay
from memory_core.errors import GuardTripped, InvalidSettings, ModelRateLimited, PermanentError, TransactionConflict
from memory_core.night.steps import KINDS, steps_of_kind
from memory_core.scope import TenantScope
from tasks.policy import LONGEST_DELAY, delays, is_last_attempt, is_transient, place
from tasks.runs import begin, close, preview, sleep_night

ROOT = Path(__file__).parents[2]
EVERY_TASK = (*TASKS["nightly"], begin, close, preview, sleep_night)
FLOWS = (deep_sleep, harmonize, nightly, replay)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tasks_are_the_steps_in_their_order(kind: str) -> None:
    """A step that is added to the core without its task would be missed by every flow."""
    assert [task.name for task in TASKS[kind]] == [step.name for step in steps_of_kind(kind)]


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: task.name)
def test_every_task_follows_the_policy(task: Any) -> None:
    """Retries with back-off and jitter, a timeout, tags, no cache, no stored result; and a sentence for the UI."""
    assert (task.retries, task.retry_delay_seconds, task.retry_jitter_factor) == (3, [2.0, 4.0, 8.0], 0.5)
    assert task.retry_condition_fn is is_transient
    assert task.timeout_seconds >= 3_600
    assert "slowwave" in task.tags
    assert task.cache_policy == NO_CACHE
    assert task.persist_result is False
    assert task.description


def test_delays_double_up_to_a_limit() -> None:
    """Prefect's own back-off has no cap."""
    assert delays(8) == [2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY]


@pytest.mark.parametrize(
    ("error", "worth_it"),
    [
        (TransactionConflict(), True),
        (ModelRateLimited(retry_after=3), True),
        (GuardTripped(), False),
        (InvalidSettings(), False),
        (ValueError("a bug"), False),
    ],
)
async def test_only_what_can_pass_is_tried_again(error: Exception, worth_it: bool) -> None:
    """The condition is async and sees through the state to the error."""
    assert await is_transient(begin, None, Failed(data=error)) is worth_it  # type: ignore[arg-type]


def test_outside_a_run_there_is_only_one_attempt() -> None:
    """Whoever calls a task's function directly must not be left with an unrecorded failure."""
    assert is_last_attempt()


def test_a_place_is_short_and_says_which() -> None:
    """The tenant for its root, the levels below it, or how many there are."""
    acme = TenantScope.root("tenant", "acme")
    assert place([acme]) == "acme"
    assert place([acme.child("brand", "x").child("chat", "7")]) == "acme/brand=x/chat=7"
    assert place([acme] * 100) == "100 scopes"


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_field_of_a_form_is_described(flow: Any) -> None:
    """The form of a flow explains each field, keeps their order and shows their defaults."""
    schema = flow.parameters.model_dump()
    (model,) = [schema["definitions"][name] for name in schema["definitions"]]
    fields = model["properties"]
    assert all(field.get("description") for field in fields.values())
    assert sorted(field["position"] for field in fields.values()) == list(range(len(fields)))
    required = set(model["required"])
    assert required == ({"tenants", "nights"} if flow is replay else {"tenants"})
    assert all("default" in field for name, field in fields.items() if name not in required)
    assert model["additionalProperties"] is False
    assert flow.description


@pytest.mark.parametrize(
    "given",
    [
        {"tenants": []},
        {"tenants": [" acme"]},
        {"tenants": ["acme"], "as_of": "2026-03-01T03:00:00"},
        {"tenants": ["acme"], "scope": "brand"},
        {"tenants": ["acme"], "unknown": 1},
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any]) -> None:
    """No tenant, a padded name, a time without a zone, half a level, an unknown field."""
    with pytest.raises(ValueError, match="validation error"):
        NightlyParameters(**given)
    with pytest.raises(ValueError, match="validation error"):
        ReplayParameters(**{"nights": ["2026-03-01T03:00:00"], **given})


def test_only_what_was_asked_for_tells_runs_apart() -> None:
    """Defaults that a form submits give the same run as a command that does not name them."""
    bare = NightlyParameters(tenants=["acme"])
    submitted = NightlyParameters(tenants=["acme"], accept=False, reconsider=False, settings={"shmr": {}})
    assert bare.run_parameters() == submitted.run_parameters() == {}
    asked = NightlyParameters(tenants=["acme"], accept=True, soul_schema={"city": "string"})
    assert asked.run_parameters() == {"accept": True, "soul_schema": {"city": "string"}}


def document(scope: str, status: str, error: str = "", message: str = "", **steps: Any) -> dict[str, Any]:
    """A document as `close_chunk` gives it, as far as the outcome reads it."""
    found: dict[str, Any] = {"scope": scope, "status": status, "steps": steps}
    return {**found, "error": {"error": error, "message": message}} if error else found


GUARD = document("tenant=g", "refused", "GuardTripped", "The run would retire 40 of 50 memories.")
BUSY = document("tenant=b", "busy", "ScopeBusy", "Another run holds it.")
PARTIAL = document("tenant=p", "partial", "ValueError", "bad\nCONTEXT: x", strengthen={"status": "failed"})
SLEPT = [document(f"tenant={number}", "applied") for number in range(97)]


@pytest.mark.parametrize(
    ("documents", "success", "message"),
    [
        (SLEPT[:1], True, "tenant=0 slept"),
        (SLEPT, True, "97 of 97 scopes slept"),
        ([], True, "0 of 0 scopes slept"),
        (
            [*SLEPT, GUARD, BUSY],
            True,
            "97 of 99 scopes slept; 1 busy (tenant=b), "
            "1 refused by a guard (tenant=g: The run would retire 40 of 50 memories)",
        ),
        (
            [*SLEPT, GUARD, BUSY, PARTIAL],
            False,
            "97 of 100 scopes slept; 1 busy (tenant=b), 1 partial (strengthen in tenant=p: bad), "
            "1 refused by a guard (tenant=g: The run would retire 40 of 50 memories)",
        ),
        (
            [GUARD],
            False,
            "0 of 1 scopes slept; 1 refused by a guard (tenant=g: The run would retire 40 of 50 memories)",
        ),
        ([BUSY] * 7, False, f"0 of 7 scopes slept; 7 busy ({'; '.join(['tenant=b'] * 5)}; …)"),
    ],
)
def test_the_final_state_follows_from_the_documents(
    documents: list[dict[str, Any]], success: bool, message: str
) -> None:
    """Failed where a scope is broken or where none slept though some should have; the message names the others."""
    assert is_success(documents) is success
    assert describe_documents("nightly", documents) == message


def deployments() -> list[dict[str, Any]]:
    """The deployments of prefect.yaml."""
    content = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8"))
    assert content["pull"] == []
    found: list[dict[str, Any]] = content["deployments"]
    return found


@pytest.mark.parametrize("deployment", deployments(), ids=lambda item: f"{item['entrypoint']}/{item['name']}")
def test_every_deployment_can_run(deployment: dict[str, Any]) -> None:
    """Its entry point is a flow, its parameters are valid, and each of its schedules can be paused for good."""
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(importlib.import_module(module), name)
    assert flow in FLOWS
    assert deployment["description"]
    if "parameters" in deployment:
        flow.validate_parameters(deployment["parameters"])
    for schedule in deployment["schedules"]:
        assert schedule["slug"]
        assert Cron(schedule["cron"], timezone=schedule["timezone"], slug=schedule["slug"])
    assert "parameters" in deployment or not deployment["schedules"]


def test_errors_of_a_flow_survive_the_way_between_processes() -> None:
    """Prefect pickles what a flow ends with; the documents have to arrive."""
    import pickle

    error = pickle.loads(pickle.dumps(PermanentError("no", documents=[GUARD])))
    assert error.data["documents"] == [GUARD]
