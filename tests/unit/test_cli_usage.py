"""The command line itself: help with examples, exit codes of bad usage, and a start that is fast."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from memory_core.cli.main import app, run
from memory_core.cli.output import ExitCode
from memory_core.settings import Settings

WRITE = ("import", "remember", "correct", "pin", "unpin", "retract", "restore", "resolve", "promote")
READ = ("memories", "recall", "reflect", "beliefs", "why", "profile", "log", "runs")
KEEP = ("setup", "demo", "calibrate", "sleep", "harmonize", "nightly", "doctor", "status", "down")
COMMANDS = (*WRITE, *READ, *KEEP)
EVERY = [*((name,) for name in COMMANDS), ("run", "show"), ("run", "diff"), ("run", "undo")]

# What would make every command slow to start, or reach for the network.
HEAVY = {
    "litellm",
    "sklearn",
    "onnxruntime",
    "polars",
    "prefect",
    "alembic",
    "sqlalchemy",
    "numpy",
    "pydantic",
    "psycopg",
}


def test_the_commands_are_those_promised() -> None:
    """No command is missing, and none is a stub of a later one."""
    group = typer.main.get_command(app)
    assert set(group.commands) == {*COMMANDS, "run"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", EVERY, ids=" ".join)
def test_the_help_of_each_command_has_examples(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A person should be able to copy the first call of any command, and know how to get JSON."""
    assert run([*command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert "Examples:" in out
    assert f"slowwave {' '.join(command)}" in out
    assert "--json" in out
    assert err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["recall"],
        ["recall", "q"],
        ["recall", "q", "--tenant", "acme", "--k", "0"],
        ["recall", "q", "--tenant", "acme", "--k", "many"],
        ["memories", "--tenant", "acme", "--no-such-option"],
        ["nightly", "--tenant", "acme", "--as-of", "2026-03-01"],
        ["recall", "q", "--tenant", "acme", "--as-of", "tomorrow"],
        ["import", "no-such-file.jsonl", "--tenant", "acme"],
        ["import", ".", "--tenant", "acme"],
        ["import", "-", "--scope", "chat=1"],
        ["retract", "x", "--reason", "dislike"],
        ["restore"],
        ["restore", "x", "--run", "y"],
        ["correct", "x"],
        ["correct", "x", "--content", "a", "--field", "b=c"],
        ["correct", "--content", "a"],
        ["correct", "--field", "a=b"],
        ["correct", "--tenant", "acme", "--field", "a"],
        ["run"],
    ],
    ids=" ".join,
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was typed wrong is said without a traceback, before anything is opened or started."""
    monkeypatch.setenv("SLOWWAVE_HOME", str(tmp_path / "home"))
    assert run(arguments) == 2
    err = capsys.readouterr().err
    if arguments != ["run"]:
        assert err.startswith("error: ")
        assert err.count("\n") == 1
    assert not (tmp_path / "home").exists()


def test_bad_usage_is_a_document_too_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that asked for JSON gets JSON, also when it asked wrongly."""
    assert run(["recall", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "UsageError"
    assert run(["nightly", "--tenant", "acme", "--as-of", "2026-03-01", "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["error"] == "InvalidTime"
    assert "Z" in document["hint"]


def test_debug_shows_where(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The traceback is there for who asks, and only then."""
    monkeypatch.setenv("SLOWWAVE_HOME", str(tmp_path))
    monkeypatch.setenv("SLOWWAVE_POOL_SIZE", "0")
    monkeypatch.setenv("SLOWWAVE_DEBUG", "false")  # --debug sets it; the test puts it back
    assert run(["status"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert run(["status", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_is_said(as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who interrupts a command is told that it may be started again, and a program gets its document and code 130."""

    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Settings, "load", interrupted)
    assert run(["status", "--json"] if as_json else ["status"]) == 130
    out, err = capsys.readouterr()
    assert err == "error: Interrupted. Start the command again; it goes on where it was.\n"
    assert out == "" if not as_json else json.loads(out)["error"] == "Interrupted"


def test_starting_loads_nothing_heavy() -> None:
    """`slowwave --help` answers at once: what a command needs it loads itself."""
    code = "import sys, memory_core.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`slowwave --version` is one line and done."""
    assert run(["--version"]) == ExitCode.DONE
    assert re.fullmatch(r"slowwave \d+\.\d+\.\d+\n", capsys.readouterr().out)
