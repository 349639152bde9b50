"""Many clusters and one model: side by side, within one budget, stopped where it is of no use, and tried again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.errors import ModelOutputInvalid, ModelRateLimited, ModelRejected, ModelTimeout
from memory_core.models.language import ModelAnswer, ModelRequest
from memory_core.runs.ledger import begin_run
from memory_core.runs.preview import preview
from memory_core.scope import TenantScope
from memory_core.shmr.steps import SHMR_STEPS
from tests.builders import NIGHT, add_memory, ago
from tests.scripted_model import PEOPLE, UPDATE, Scripted, homes, items, many_homes, moved
from tests.shmr_runs import beliefs, context_of, harmonize, rows, state, superseded, undo, waiting

CLUSTERS = "SELECT fingerprint, status, reason, iteration, score, proposal, rejected, model, model_call_key"
CLUSTERS += " FROM memory_resonance_clusters ORDER BY fingerprint"


class Crowd:
    """A model that answers by the prompt, and notes how many ask at the same time.

    Args:
        failing: people about whom it raises, each error once; the last one again and again where there is but one.
        delays: seconds it takes, by person.
    """

    name = "crowd/model"

    def __init__(
        self, failing: dict[str, list[Exception]] | None = None, delays: dict[str, float] | None = None
    ) -> None:
        self.failing = failing or {}
        self.delays = delays or {}
        self.under_way = self.most = 0
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            (name,) = {name for name in PEOPLE if f'"subject": "{name}"' in request.prompt}
            await asyncio.sleep(self.delays.get(name, 0.01))
            if self.failing.get(name):
                raise self.failing[name].pop(0)
            return ModelAnswer(moved(request.prompt), self.name, 100, 20, 0.01, "stop", 5)
        finally:
            self.under_way -= 1

    async def check(self) -> None:
        """It is there."""


async def attempts(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """The audit of every attempt, oldest first."""
    return await rows(database, scope, "SELECT * FROM model_attempts ORDER BY sequence")


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (4, 4), (64, 8)])
async def test_clusters_are_asked_about_side_by_side(
    database: Database, scope: TenantScope, at_once: int, most: int
) -> None:
    """Up to the limit and no more; every cluster is decided, and its call counted."""
    await many_homes(database, scope, 8)
    model = Crowd(delays=dict.fromkeys(PEOPLE, 0.2))
    run = await harmonize(database, scope, language=model, settings={"shmr": {"clusters_at_once": at_once}})
    assert (model.most, len(model.requests)) == (most, 8)
    assert run.summary["clusters"] == {"applied": 8}
    assert (run.summary["model_calls"], run.summary["tokens"], run.summary["cost"]) == (8, 960, 0.08)
    assert len(await superseded(database, scope)) == 8


async def test_the_order_of_answers_changes_no_row(database: Database, scope: TenantScope) -> None:
    """Whoever answers first, and from the cache in the end: clusters, beliefs and what gave way are the same."""
    await many_homes(database, scope, 6)
    found = []
    for delays in ({name: 0.01 * position for position, name in enumerate(PEOPLE)}, {"Ann": 0.1, "Cleo": 0.05}):
        run = await begin_run(database, scope, "harmonize", NIGHT, {}, dry_run=True)
        process = database.settings.model_copy(update={"model_cache": "live"})
        model = Crowd(delays=delays)
        seen = await preview(database, context_of(run, process, language=model), SHMR_STEPS)
        found.append(seen.changes)
        # The same run in mode live takes its own answers; another run would ask anew.
        assert len(model.requests) == (6 if len(found) == 1 else 0)
    assert found[0] == found[1]
    done = await harmonize(
        database, scope, language=Crowd(), process=database.settings.model_copy(update={"model_cache": "replay"})
    )
    assert done.summary["clusters"] == {"applied": 6}


async def test_a_replayed_run_gives_identical_rows(database: Database, scope: TenantScope) -> None:
    """The same memories in another tenant, with the first one's answers and nobody to ask, end in the same rows."""
    model = Scripted(items({"confidence": 7}), items(UPDATE))
    await homes(database, scope)
    before = await state(database, scope)
    first = await harmonize(database, scope, language=model)
    decided, held = await rows(database, scope, CLUSTERS), await beliefs(database, scope)
    assert (await undo(database, scope, first.run)).refused == ()
    assert await state(database, scope) == before
    silent = Scripted(AssertionError("asked"))
    silent.unavailable = AssertionError("checked")
    process = database.settings.model_copy(update={"model_cache": "replay"})
    await harmonize(database, scope, language=silent, process=process, reconsider=True)
    assert silent.requests == []
    again = [row for row in await rows(database, scope, CLUSTERS) if row not in decided]
    assert again == []
    kept = ("belief_id", "content", "confidence", "status", "iteration", "model_call_key", "harmony_score")
    names = [name for name in kept if name in held[0]]
    assert [[each[name] for name in names] for each in await beliefs(database, scope)] == [
        [each[name] for name in names] for each in held
    ]


async def test_one_budget_is_shared_and_never_overspent(database: Database, scope: TenantScope) -> None:
    """Eight at once with three calls allowed: three are made, the rest waits, and the reason is the budget."""
    await many_homes(database, scope, 8)
    model = Crowd()
    run = await harmonize(
        database, scope, language=model, settings={"budget": {"calls": 3}, "shmr": {"clusters_at_once": 8}}
    )
    assert len(model.requests) == 3
    assert run.summary["clusters"] == {"applied": 3, "budget_exhausted": 5}
    assert run.summary["status"] == "partial"
    assert "budget of 3 calls" in run.summary["reason"]
    assert len(await waiting(database, scope)) == 10


async def test_tokens_put_aside_are_given_back(database: Database, scope: TenantScope) -> None:
    """Where two estimates fit at once but four answers fit in all, four are bought: none stops the run too early."""
    await many_homes(database, scope, 8)
    model = Crowd()
    run = await begin_run(database, scope, "harmonize", NIGHT, {"probe": True}, dry_run=True)
    seen = await preview(database, context_of(run, database.settings, language=Crowd()), SHMR_STEPS)
    (step,) = [each for each in seen.results if each.step == "harmonize"]
    assert step.outcome is not None
    one = step.outcome.details["estimate"]["tokens"] / 8
    fresh = TenantScope.root("tenant", "globex")
    await many_homes(database, fresh, 8)
    allowed = round(2.5 * one)
    asked = await harmonize(database, fresh, language=model, settings={"budget": {"tokens": allowed}})
    assert model.most == 2
    assert asked.summary["tokens"] <= allowed
    assert asked.summary["clusters"]["applied"] > 2


async def test_earlier_steps_and_attempts_have_spent_too(database: Database, scope: TenantScope) -> None:
    """A run that is tried again goes on counting: what failed before is not forgotten."""
    await many_homes(database, scope, 2)
    limits = {"budget": {"calls": 3}, "shmr": {"clusters_at_once": 1}}
    model = Crowd({"Ann": [ModelTimeout("Slow.")] * 2, "Bo": [ModelTimeout("Slow.")] * 2})
    with pytest.raises(ModelTimeout):
        await harmonize(database, scope, language=model, last_attempt=False, settings=limits)
    run = await harmonize(database, scope, language=model, settings=limits)
    assert (run.run.resumed, len(model.requests)) == (True, 3)
    assert run.summary["clusters"] == {"budget_exhausted": 1, "model_unavailable": 1}
    assert run.summary["model_calls"] == 3


async def test_what_failed_in_passing_is_tried_again_and_the_rest_not_bought_again(
    database: Database, scope: TenantScope
) -> None:
    """One cluster in four is rate-limited; the step asks to be tried again, and then only that one is asked."""
    await many_homes(database, scope, 4)
    model = Crowd({"Dag": [ModelRateLimited("Wait.", retry_after=7.0)]})
    with pytest.raises(ModelRateLimited) as caught:
        await harmonize(database, scope, language=model, last_attempt=False)
    assert caught.value.retry_after == 7.0
    bought = len(model.requests)
    run = await harmonize(database, scope, language=model)
    assert run.summary["clusters"] == {"applied": 4}
    assert bought == 4
    assert len(model.requests) == 5
    assert [each["outcome"] for each in await attempts(database, scope)].count("rate_limited") == 1


async def test_a_request_to_slow_down_ends_the_asking_at_once(database: Database, scope: TenantScope) -> None:
    """Eleven others are not asked while the provider wants to be left alone; on the last try it takes three."""
    await many_homes(database, scope, 12)
    limited: dict[str, list[Exception]] = {
        name: [ModelRateLimited("Wait.", retry_after=1.0), ModelRateLimited("Wait.")] for name in PEOPLE
    }
    model = Crowd(limited)
    one = {"shmr": {"clusters_at_once": 1}}
    with pytest.raises(ModelRateLimited):
        await harmonize(database, scope, language=model, last_attempt=False, settings=one)
    assert len(model.requests) == 1
    run = await harmonize(database, scope, language=model, settings=one)
    assert len(model.requests) == 4
    assert run.summary["clusters"] == {"model_unavailable": 12}
    assert len(await waiting(database, scope)) == 24


async def test_a_refused_key_is_tried_once(database: Database, scope: TenantScope) -> None:
    """What holds for every call is no reason to make another."""
    await many_homes(database, scope, 6)
    model = Crowd({name: [ModelRejected("No.", reason="key")] for name in PEOPLE})
    run = await harmonize(
        database, scope, language=model, last_attempt=False, settings={"shmr": {"clusters_at_once": 1}}
    )
    assert len(model.requests) == 1
    assert (run.status, run.summary["status"]) == ("applied", "model_unavailable")


async def test_spending_without_effect_stops(database: Database, scope: TenantScope) -> None:
    """After three clusters in a row that were paid for in vain the others wait, and are told why."""
    await many_homes(database, scope, 6)
    model = Scripted("no json", "none either", "and again none")
    model.script = [f"no json {number}" for number in range(30)]
    settings = {"shmr": {"clusters_at_once": 1, "fruitless_in_a_row": 3, "max_iterations": 1}}
    run = await harmonize(database, scope, language=model, settings=settings)
    assert len(model.requests) == 3
    assert run.summary["clusters"] == {"parse_error": 3, "budget_exhausted": 3}
    assert run.summary["status"] == "budget_exhausted"
    assert "3 clusters in a row were paid for and brought nothing usable" in run.summary["reason"]
    assert len(await waiting(database, scope)) == 12


async def test_an_effect_in_between_goes_on(database: Database, scope: TenantScope) -> None:
    """In vain, in vain, nothing to say, in vain, in vain: no three in a row."""
    await many_homes(database, scope, 5)
    model = Scripted("no", "no", "[]", "no", "no")
    model.script.append("no")
    settings = {"shmr": {"clusters_at_once": 1, "fruitless_in_a_row": 3, "max_iterations": 1}}
    run = await harmonize(database, scope, language=model, settings=settings)
    assert run.summary["clusters"] == {"nothing_to_say": 1, "parse_error": 4}


async def test_kept_answers_are_no_spending(database: Database, scope: TenantScope) -> None:
    """A scope whose answers are all kept is decided whatever the budget; the forecast says that nothing is to pay."""
    await many_homes(database, scope, 4)
    run = await begin_run(database, scope, "harmonize", NIGHT, {"settings": {"budget": {"calls": 4}}}, dry_run=True)
    await preview(database, context_of(run, database.settings, language=Crowd()), SHMR_STEPS)
    done = await harmonize(database, scope, language=Crowd(), settings={"budget": {"calls": 4}})
    assert done.run.id == run.id
    assert done.summary["clusters"] == {"applied": 4}
    assert done.summary["estimate"] == {"calls": 0, "tokens": 0, "cost": 0.0, "kept": 4}


async def test_the_forecast_is_told_and_kept_to(database: Database, scope: TenantScope) -> None:
    """Calls, tokens and money before the first call; of a model with a price the budget in money is kept beforehand."""
    await many_homes(database, scope, 3)
    model = Crowd()
    model.name = "openai/gpt-4o-mini"
    run = await harmonize(database, scope, language=model, settings={"budget": {"cost": 0.0000001}})
    estimate = run.summary["estimate"]
    assert (estimate["calls"], estimate["kept"]) == (3, 0)
    assert 3 * 1_500 < estimate["tokens"] < 3 * 7_500
    assert 0 < estimate["cost"] < 1
    assert model.requests == []
    assert run.summary["clusters"] == {"budget_exhausted": 3}


async def test_a_limit_in_money_without_a_price_is_told(database: Database, scope: TenantScope) -> None:
    """Nobody knows what the model costs; the limit then holds after the money is spent, and the step says so."""
    await many_homes(database, scope, 3)
    settings = {"budget": {"cost": 0.015}, "shmr": {"clusters_at_once": 1}}
    run = await harmonize(database, scope, language=Crowd(), settings=settings)
    assert run.summary["clusters"] == {"applied": 2, "budget_exhausted": 1}
    assert "no price is known" in run.outcome("harmonize")["details"]["cost_limit"]


async def family(database: Database, scope: TenantScope) -> dict[str, Any]:
    """Four statements of one person's two addresses in one cluster of two slots."""
    found = {}
    for number, (predicate, day, place) in enumerate(
        (("lives_in", 9, "Oslo"), ("lives_in", 8, "Bergen"), ("lives_at", 7, "Oslo"), ("lives_at", 6, "Bergen")), 1
    ):
        found[f"m{number}"] = await add_memory(
            database,
            scope,
            f"Ann {predicate.replace('_', ' ')} {place}",
            subject="Ann",
            predicate=predicate,
            object=place,
            observed_at=ago(days=day),
            confidence=0.7,
        )
    return found


JOINED = {"shmr": {"similarity_threshold": 0.0, "slot_similarity_threshold": 0.0}}


@pytest.mark.parametrize("reason", ["refused", "content_filter"])
async def test_a_refused_cluster_is_asked_about_in_halves(database: Database, scope: TenantScope, reason: str) -> None:
    """Two slots become two questions; what one half brings is kept, the refusal of the other takes nothing from it."""
    ids = await family(database, scope)
    model = Scripted(
        ModelOutputInvalid(
            "No.", reason=reason, prompt_tokens=9, completion_tokens=1, cost=0.001, answer="I will not."
        ),
        items({"action": "update", "target": "m3", "evidence": ["m4"], "predicate": "lives at"}),
        ModelOutputInvalid("No.", reason=reason),
    )
    run = await harmonize(database, scope, language=model, settings=JOINED)
    assert run.summary["clusters"] == {"applied": 1}
    shown = [
        {line.split('"')[3] for line in request.prompt.splitlines() if line.startswith("{")}
        for request in model.requests
    ]
    assert sorted(map(sorted, shown)) == [["m1", "m2"], ["m1", "m2", "m3", "m4"], ["m3", "m4"]]
    assert await superseded(database, scope) == {ids["m3"]: (ids["m4"], "update")}
    (cluster,) = await rows(database, scope, CLUSTERS)
    assert cluster["iteration"] == 3
    assert {"attempt": 1, "reason": reason} in cluster["rejected"]
    audit = await attempts(database, scope)
    assert (audit[0]["outcome"], audit[0]["answer"]) == (reason, "I will not.")
    assert run.summary["tokens"] == 130
    assert len(await rows(database, scope, "SELECT 1 FROM model_calls")) == 1


async def test_a_belief_names_the_call_that_told_it(database: Database, scope: TenantScope) -> None:
    """Both halves of a refused cluster bring a belief: one cluster, and each with its own call."""
    await family(database, scope)
    model = Scripted(
        ModelOutputInvalid("No.", reason="refused"),
        items({"action": "update", "target": "m3", "evidence": ["m4"], "predicate": "lives at"}),
        items({"action": "update", "target": "m1", "evidence": ["m2"]}),
    )
    run = await harmonize(database, scope, language=model, settings=JOINED)
    assert run.summary["clusters"] == {"applied": 1}
    held = await beliefs(database, scope)
    assert [each["content"] for each in held] == ["Ann lives at Bergen", "Ann lives in Bergen"]
    assert [each["model_call_key"] for each in held] == [request.cache_key() for request in model.requests[1:]]


async def test_an_answer_cut_off_twice_is_asked_for_in_halves(database: Database, scope: TenantScope) -> None:
    """First more room, then a smaller cluster; each half may be asked once, for three attempts are all there are."""
    await family(database, scope)
    cut = ModelOutputInvalid("Cut.", reason="truncated")
    model = Scripted(cut, ModelOutputInvalid("Cut.", reason="truncated"), "[]", "[]")
    run = await harmonize(database, scope, language=model, settings=JOINED)
    rooms = [request.max_output_tokens for request in model.requests]
    assert rooms == [1500, 3000, 1500, 1500]
    assert run.summary["clusters"] == {"nothing_to_say": 1}


async def test_a_refused_pair_is_not_asked_about_again(database: Database, scope: TenantScope) -> None:
    """Nothing smaller can be asked; the refusal is the cluster's end, in this run and in the next."""
    await homes(database, scope)
    model = Scripted(ModelOutputInvalid("No.", reason="refused"))
    run = await harmonize(database, scope, language=model)
    assert run.summary["clusters"] == {"rejected": 1}
    assert run.summary["reason"] == "the answer was refused"
    await harmonize(database, scope, language=model)
    assert len(model.requests) == 1


async def test_a_prompt_too_long_for_the_model_gets_shorter(database: Database, scope: TenantScope) -> None:
    """A pair cannot be halved, so its texts are."""
    await homes(database, scope)
    model = Scripted(ModelRejected("Too long.", reason="too_long"), items(UPDATE))
    run = await harmonize(database, scope, language=model, settings={"shmr": {"token_budget": 6_000}})
    assert run.summary["clusters"] == {"applied": 1}
    assert len(model.requests) == 2
