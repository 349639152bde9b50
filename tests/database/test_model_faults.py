"""What becomes of a cluster, down to the rows, for everything a model provider may send over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memory_core.database.engine import Database
from memory_core.models.language import LanguageModel, language_model
from memory_core.models.model_errors import load_litellm
from memory_core.night.consolidate import consolidate
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from tests.builders import NIGHT
from tests.openai_server import (
    Behaviour,
    OpenAIServer,
    answer,
    content_filter,
    cut_connection,
    garbage,
    rate_limit,
    refusal,
    slow,
    status,
    truncated,
)
from tests.scripted_model import UPDATE, homes, items
from tests.shmr_runs import beliefs, harmonize, rows, state, superseded, waiting

GOOD = items(UPDATE)
DRAFT = items({"object": "Oslo", "evidence": ["m1"]})
BROKEN = GOOD[: len(GOOD) // 2]
ORDERS = items(
    {"subject": "The vault", "predicate": "is open to", "object": "everyone in the world", "evidence": ["m2"]}
)


@dataclass(frozen=True)
class Case:
    """What the provider does to each call, the last again and again, and what is to come of it.

    Attributes:
        cluster: the cluster's status.
        outcomes: of the audit's attempts, in order.
        rejected: reasons that the cluster keeps, each at least once.
        waits: whether the memories wait for another night; otherwise the cluster is not asked about again.
        tokens: that the run has spent; None where an estimate stands in.
    """

    behaviours: tuple[Behaviour, ...]
    cluster: str
    outcomes: tuple[str, ...]
    rejected: tuple[str, ...] = ()
    waits: bool = False
    tokens: int | None = 0


UNAVAILABLE = "model_unavailable"
CASES = {
    "429": Case((rate_limit(0.1),), UNAVAILABLE, ("rate_limited",), waits=True),
    "500": Case((status(500),), UNAVAILABLE, ("unreachable",), waits=True),
    "503": Case((status(503),), UNAVAILABLE, ("unreachable",), waits=True),
    "401": Case((status(401),), UNAVAILABLE, ("rejected",), waits=True),
    "unknown model": Case((status(404),), UNAVAILABLE, ("rejected",), waits=True),
    "slow": Case((slow(20),), UNAVAILABLE, ("timeout",), waits=True, tokens=None),
    "cut before": Case((cut_connection(),), UNAVAILABLE, ("unreachable",), waits=True),
    "cut in the middle": Case((cut_connection("middle"),), UNAVAILABLE, ("unreachable",), waits=True),
    "not the protocol": Case((garbage(),), UNAVAILABLE, ("unreachable",), waits=True),
    "cut off": Case((truncated(BROKEN),), "parse_error", ("truncated",) * 3, ("truncated",), waits=True, tokens=54),
    "half the JSON": Case((answer(BROKEN),), "parse_error", ("unreadable",) * 3, ("malformed",), waits=True, tokens=54),
    "prose alone": Case((answer("It moved."),), "parse_error", ("unreadable",) * 3, ("no_json",), True, 54),
    "NaN": Case((answer(GOOD.replace("0.8", "NaN")),), "parse_error", ("unreadable",) * 3, ("malformed",), True, 54),
    "infinite": Case((answer(GOOD.replace("0.8", "1e999")),), "parse_error", ("unreadable",) * 3, (), True, 54),
    "wrong shape": Case((answer('{"a": 1}'),), "parse_error", ("unreadable",) * 3, ("wrong_shape",), True, 54),
    "empty": Case((answer(" "),), "parse_error", ("empty",) * 3, ("empty",), waits=True, tokens=54),
    "refused": Case((refusal(),), "rejected", ("refused",), ("refused",), tokens=18),
    "filtered": Case((content_filter(),), "rejected", ("content_filter",), ("content_filter",), tokens=18),
    "too long for it": Case(
        (status(400, "This model's maximum context length is 10 tokens."), answer(GOOD)),
        "applied",
        ("rejected", "usable"),
        ("too_long",),
        tokens=18,
    ),
    "cut off, then whole": Case(
        (truncated(BROKEN), answer(GOOD)), "applied", ("truncated", "usable"), ("truncated",), tokens=36
    ),
    "half, then whole": Case(
        (answer(BROKEN), answer(GOOD)), "applied", ("unreadable", "usable"), ("malformed",), tokens=36
    ),
    "prose around": Case((answer(f"Sure! Here it is:\n{GOOD}\nCan I help?"),), "applied", ("usable",), tokens=18),
    "two fences": Case(
        (answer(f"```json\n{DRAFT}\n```\nNo, rather:\n```json\n{GOOD}\n```"),), "applied", ("usable",), tokens=18
    ),
    "thinking aloud": Case((answer(f"<think>{DRAFT}</think>{GOOD}"),), "applied", ("usable",), tokens=18),
    "a byte order mark": Case((answer("\ufeff" + GOOD),), "applied", ("usable",), tokens=18),
    "uncounted": Case((Behaviour(text=GOOD, usage=None),), "applied", ("usable",), tokens=None),
    "nothing to say": Case((answer('{"beliefs": []}'),), "nothing_to_say", ("usable",), tokens=18),
    "500 items": Case(
        (answer(json.dumps(json.loads(GOOD)["beliefs"] * 500)),),
        "applied",
        ("usable",),
        ("duplicate_target", "too_many"),
        tokens=18,
    ),
    # The third question equals the second, whose answer is kept.
    "wrong types": Case(
        (answer(items({"confidence": "high"}, {"evidence": "m2"}, {"object": 7}, {"action": ["update"]})),),
        "rejected",
        ("usable",) * 2,
        ("bad_confidence", "bad_handle", "wrong_type", "unknown_action"),
        tokens=36,
    ),
    "not objects": Case((answer('[1, "two", null]'),), "parse_error", ("unreadable",) * 3, ("wrong_shape",), True, 54),
    "foreign handles": Case(
        (answer(items({"evidence": ["m9"]}, {**UPDATE, "target": "m3"}, {"contradicts": ["x1"]})),),
        "rejected",
        ("usable",) * 2,
        ("foreign_handle",),
        tokens=36,
    ),
    "orders obeyed": Case((answer(ORDERS),), "rejected", ("usable",) * 2, ("harmony",), tokens=36),
    "against its own evidence": Case(
        (answer(items({"object": "Oslo", "evidence": ["m2"]})),),
        "rejected",
        ("usable",) * 2,
        ("contradicts",),
        False,
        36,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _litellm_is_loaded() -> None:
    """Pay for the import once, outside of the timeouts under test."""
    load_litellm()


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    """A provider without a script."""
    with OpenAIServer() as running:
        yield running


def at(provider: OpenAIServer, timeout: float = 60.0) -> LanguageModel:
    """The model that the server serves."""
    found = language_model("openai/test", api_base=provider.url, api_key="k", timeout=timeout)
    assert found is not None
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_everything_that_a_provider_may_send(
    database: Database, scope: TenantScope, provider: OpenAIServer, case: Case
) -> None:
    """Cluster, audit, cache, beliefs, what gave way, what waits and what was spent, for each fault of the wire."""
    old, new = await homes(database, scope)
    provider.script(*case.behaviours)
    provider.otherwise = case.behaviours[-1]
    before = await rows(database, scope, "SELECT id, content, version, retired_at FROM memories ORDER BY id")
    run = await harmonize(database, scope, language=at(provider, 0.5 if case.outcomes == ("timeout",) else 60.0))
    (cluster,) = await rows(database, scope, "SELECT * FROM memory_resonance_clusters")
    assert (run.status, cluster["status"]) == ("applied", case.cluster), cluster["reason"]
    attempts = await rows(database, scope, "SELECT * FROM model_attempts ORDER BY sequence")
    assert tuple(each["outcome"] for each in attempts) == case.outcomes
    assert len(provider.posts()) == len(attempts) == run.summary["model_calls"]
    assert set(case.rejected) <= {each["reason"] for each in cluster["rejected"]}
    kept = await rows(database, scope, "SELECT cache_key FROM model_calls")
    assert {each["cache_key"] for each in kept} == {
        each["cache_key"] for each in attempts if each["outcome"] == "usable"
    }
    assert (await waiting(database, scope) == {old, new}) is case.waits
    if case.tokens is None:
        assert 500 < run.summary["tokens"] < 3_000
    else:
        assert run.summary["tokens"] == case.tokens
    # No table knows what our server costs, and what is unknown is not told as free.
    assert run.summary["cost"] == (None if run.summary["tokens"] else 0.0)
    applied = case.cluster == "applied"
    assert await superseded(database, scope) == ({old: (new, "update")} if applied else {})
    held = await beliefs(database, scope)
    assert [each["content"] for each in held] == (["Ann lives in Bergen"] if applied else [])
    assert await rows(database, scope, "SELECT DISTINCT confidence FROM memory_state") == [{"confidence": 0.7}]
    if not applied:
        after = await rows(database, scope, "SELECT id, content, version, retired_at FROM memories ORDER BY id")
        assert after == before
    asked = len(provider.posts())
    if not case.waits:
        # Decided, one way or the other: another night changes nothing and pays for nothing.
        now = await state(database, scope)
        await harmonize(database, scope, language=at(provider))
        assert (await state(database, scope), len(provider.posts())) == (now, asked)
    else:
        # Nothing of it is in the way of a better night.
        provider.otherwise = answer(GOOD)
        again = await harmonize(database, scope, language=at(provider))
        assert again.summary["clusters"] == {"applied": 1}
        assert await superseded(database, scope) == {old: (new, "update")}


async def test_what_was_of_no_use_is_kept_to_be_looked_at(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """The raw text of an unreadable, a cut and a refused answer is in the audit, as far as it can be stored (F9)."""
    await homes(database, scope)
    provider.script(answer("no\0thing \ud800 here"), truncated("[{"), refusal("I will not."))
    run = await harmonize(database, scope, language=at(provider))
    found = await rows(database, scope, "SELECT answer, model, run_id, purpose FROM model_attempts ORDER BY sequence")
    assert [each["answer"] for each in found] == ["nothing ? here", "[{", "I will not."]
    assert {(each["model"], each["run_id"], each["purpose"]) for each in found} == {
        ("openai/test", run.run.id, "harmonize")
    }


async def test_an_absent_server_is_found_before_any_cluster(database: Database, scope: TenantScope) -> None:
    """Nothing is sent, no attempt is counted, and the status is like no other."""
    ids = await homes(database, scope)
    with OpenAIServer() as gone:
        model = at(gone)
    run = await harmonize(database, scope, language=model)
    assert run.summary["status"] == UNAVAILABLE
    assert await rows(database, scope, "SELECT 1 FROM model_attempts") == []
    assert await waiting(database, scope) == set(ids)


async def test_the_answer_of_an_error_is_in_no_ledger(
    database: Database, scope: TenantScope, provider: OpenAIServer
) -> None:
    """What a model wrote and nobody could use is in the audit alone: not in a report, an error or a log row."""
    await homes(database, scope)
    provider.otherwise = truncated("a secret the model repeats")
    run = await harmonize(database, scope, language=at(provider))
    told: list[Any] = [run.summary, list(run.rows.values())]
    told += await rows(database, scope, "SELECT * FROM memory_resonance_log")
    told += await rows(database, scope, "SELECT * FROM memory_resonance_clusters")
    assert "repeats" not in json.dumps(told, default=str)


async def test_a_night_in_process_waits_as_long_as_the_provider_asks(
    settings: Settings, scope: TenantScope, provider: OpenAIServer
) -> None:
    """Without Prefect too: told to come back in 1.5 s, the step is tried again then, and buys what was left alone."""
    configured = {"model": "openai/test", "model_api_base": provider.url, "model_api_key": "k"}
    async with Database.open(settings.model_copy(update=configured)) as database:
        await homes(database, scope)
        provider.script(rate_limit(1.5), answer(GOOD))
        (document,) = await consolidate(database, [scope], "harmonize", NIGHT)
        assert document["shmr"]["clusters"] == {"applied": 1}
        found = await rows(
            database,
            scope,
            "SELECT array_agg(outcome ORDER BY sequence) AS outcomes, "
            "extract(epoch FROM max(called_at) - min(called_at)) AS span FROM model_attempts",
        )
    assert found[0]["outcomes"] == ["rate_limited", "usable"]
    assert found[0]["span"] >= 1.5
