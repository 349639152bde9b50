"""The demo's story over the bundled sample, its nights in process; through Prefect it is `make demo`."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memory_core.database.embedded.address import ServerAddress
from memory_core.database.engine import Database
from memory_core.errors import ScopeBusy
from memory_core.night.consolidate import consolidate
from memory_core.night.demo import LAST_NIGHT, NIGHTS, run_demo, why_in_words
from memory_core.night.demo_report import DemoReport, continued
from memory_core.night.demo_store import URL_VARIABLE, fresh_demo_store
from memory_core.scope import TenantScope
from memory_core.settings import Settings

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


def replay_in_process(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request's last night as `flows.replay` does it: what waits since the first is done in one."""
    # The settings are read where a task reads them.
    settings = Settings.load()
    as_of = datetime.fromisoformat(request["nights"][-1])

    async def nights() -> list[dict[str, Any]]:
        async with Database.open(settings) as database:
            scopes = [TenantScope.parse(tenant) for tenant in request["tenants"]]
            return await consolidate(database, scopes, "nightly", as_of)

    runs = asyncio.run(nights())
    statuses = {status: sum(run["status"] == status for run in runs) for status in {run["status"] for run in runs}}
    return {"nights": [{"as_of": as_of.isoformat(), "statuses": statuses, "changed": 0}], "runs": runs}


@pytest.fixture(scope="module")
def demo_settings(server: ServerAddress, server_home: Path) -> Settings:
    return Settings.load(home=server_home)


@pytest.fixture(scope="module")
def told(demo_settings: Settings) -> Iterator[list[dict[str, Any]]]:
    """The demo told twice in a row over the default embedding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOWWAVE_HOME", str(demo_settings.home))
        yield [run_demo(demo_settings, replay=replay_in_process) for _ in range(2)]


def test_the_story_is_told_twice_the_same(told: list[dict[str, Any]]) -> None:
    """The store is made anew: a second demo imports, decides and answers as the first one did."""
    first, second = told
    assert first["imported"]["maya"]["inserted"] == 209
    assert first["imported"]["northwind-support"]["inserted"] == 195
    assert not any(report["rejected"] or report["unresolved"] for report in first["imported"].values())
    for same in ("status", "imported", "questions", "answered"):
        assert first[same] == second[same], same
    assert json.loads(json.dumps(first)) == first


def test_nights_make_more_answers_true(told: list[dict[str, Any]]) -> None:
    """What is true now comes first more often than by a plain vector search, and what replaced what is told."""
    document = told[0]
    assert document["status"] == "done"
    answered = document["answered"]
    assert answered["questions"] == 12
    assert sum(answered["before"].values()) == sum(answered["after"].values()) == 12
    assert answered["after"]["current"] > answered["before"].get("current", 0)
    improved = [
        each
        for each in document["questions"]
        if (each["before"]["answer"], each["after"]["answer"]) == ("outdated", "current")
    ]
    assert improved
    assert any(" of “" in each["why"] for each in improved)


def test_the_report_shows_reports_answers_and_commands(told: list[dict[str, Any]]) -> None:
    """Both morning reports, each question with both answers in any width, and commands in one piece."""
    document = told[0]
    # The folder's path is longer than a narrow terminal, and has to be in one piece there too.
    for width in (99, 130):
        file = io.StringIO()
        Console(file=file, width=width).print(DemoReport(document))
        text = file.getvalue()
        words = " ".join(text.split())
        for expected in ("tenant=maya · night of 2026-03-01", "tenant=northwind-support", "Where does Maya live?"):
            assert expected in words.replace("│", " ")
        pasted = " ".join(text.replace("\\\n", " ").split())
        for each in document["try"]:
            assert each["command"] in pasted


def test_the_commands_work_on_the_demos_store(told: list[dict[str, Any]]) -> None:
    """The first command that it suggests runs as it is written, and explains a belief."""
    command = told[-1]["try"][0]["command"]
    assert command.startswith("slowwave why ")
    script = command.replace("slowwave", f"'{sys.executable}' -m memory_core.cli.main", 1)
    environment = {name: value for name, value in os.environ.items() if name != URL_VARIABLE}
    done = subprocess.run(f"{script} --json", shell=True, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_one_demo_at_a_time_and_nothing_is_left_in_the_environment(demo_settings: Settings) -> None:
    """A second demo in the same folder is refused while the first one runs; afterwards the environment is as before."""
    before = os.environ.get(URL_VARIABLE)
    with fresh_demo_store(demo_settings) as store:
        assert os.environ[URL_VARIABLE] == store.url
        assert Settings.load(home=store.home).database_url == store.url
        with pytest.raises(ScopeBusy, match="Another demo"), fresh_demo_store(demo_settings):
            pass
    assert os.environ.get(URL_VARIABLE) == before


def test_a_long_command_goes_on_in_the_next_line() -> None:
    """Broken before an option with the sign that a shell understands; a short one stays as it is."""
    command = "slowwave why 1a2b --tenant maya --home '/a b/demo'"
    assert continued(command, 100) == [command]
    lines = continued(command, 36)
    assert lines == ["slowwave why 1a2b --tenant maya \\", "    --home '/a b/demo'"]
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)


def reason(role: str, content: str, day: str, why: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, "observed_at": f"{day}T00:00:00+00:00", "source": "user", "reason": why}


@pytest.mark.parametrize(
    ("status", "reasons", "words"),
    [
        ("held", [], "no statement is known under it"),
        (
            "current",
            [reason("supports", "a", "2026-02-01")],
            "said 2026-02-01 by user; no night found anything that it replaces",
        ),
        (
            "current",
            [{**reason("supports", "a", "2026-02-01"), "derived": True}],
            "a summary of its group, as of 2026-02-01",
        ),
        (
            "held",
            [
                reason("supports", "a", "2026-02-01"),
                reason("repeats", "a.", "2026-02-02", "duplicate"),
                reason("replaced", "b", "2026-01-09", "update"),
                reason("replaced", "c", "2026-01-01", "update"),
            ],
            "said 2026-02-01 by user, and 1 more time; update of “b” (2026-01-09 by user) and 1 earlier one",
        ),
        (
            "contested",
            [reason("supports", "a", "2026-02-01"), reason("supports", "b", "2026-02-01")],
            "undecided, and both sides are kept: “a” (2026-02-01 by user); “b” (2026-02-01 by user)",
        ),
    ],
)
def test_reasons_read_as_a_sentence(status: str, reasons: list[dict[str, Any]], words: str) -> None:
    """Who said it when, how often, and what it replaced."""
    assert why_in_words({"status": status, "reasons": reasons}) == words


def test_the_nights_are_those_of_the_sample() -> None:
    """Six weeks, one night after another, the last one after the last day."""
    assert len(NIGHTS) == 42
    assert NIGHTS[-1] == LAST_NIGHT
