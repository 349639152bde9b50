"""What commands print: JSON, text that cannot steer a terminal, exit codes."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from memory_core.cli import view_runs
from memory_core.cli.output import (
    ExitCode,
    exit_code_of,
    plain,
    print_error,
    print_fields,
    print_json,
    print_table,
    short_ids,
)
from memory_core.errors import GuardTripped, InvalidScope, NotFound


def test_json_holds_what_documents_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """Times, ids and amounts become JSON of their kind; words stay readable."""
    id = uuid.uuid4()
    print_json({"at": datetime(2026, 3, 1, tzinfo=UTC), "id": id, "cost": Decimal("0.5"), "words": "Zoë 東京"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"at": "2026-03-01T00:00:00+00:00", "id": str(id), "cost": 0.5, "words": "Zoë 東京"}
    assert "東京" in out
    with pytest.raises(ValueError, match="Out of range"):
        print_json({"nan": float("nan")})
    with pytest.raises(TypeError):
        print_json({"what": object()})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("There is no tenant.", hint="Look."), ExitCode.BAD_INPUT),
        (InvalidScope("Bad."), ExitCode.BAD_INPUT),
        (GuardTripped("Too much.", guard="retire_share", number=9), ExitCode.FAILED),
        (RuntimeError("first line\nsecond line"), ExitCode.FAILED),
    ],
)
def test_an_error_is_one_line_and_one_document(
    capsys: pytest.CaptureFixture[str], error: Exception, code: ExitCode
) -> None:
    """Input that cannot be used is 2, anything else 1; never a traceback."""
    assert print_error(error, as_json=True) == code
    out, err = capsys.readouterr()
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    document = json.loads(out)
    assert document["error"] == type(error).__name__
    assert {"message", "hint"} <= document.keys()
    assert document.get("guard") == getattr(error, "data", {}).get("guard")
    assert print_error(error, as_json=False) == code
    assert capsys.readouterr().out == ""


def test_memory_text_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, direction marks and rich's own markup are shown, not obeyed."""
    assert plain("a\x1b[31mb\u202ec\td\ne") == "a\ufffd[31mb\ufffdc d e"
    print_table("Title [red]", ("text",), [("\x1b[2J[bold]x[/bold]",), (["one", "two\n"],)], empty="")
    print_fields({"name": "\x1b]0;owned\x07", "nothing": None})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]x[/bold]" in out
    assert "Title [red]" in out
    assert "nothing" not in out


def test_an_empty_table_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is silent."""
    print_table("Runs", ("id",), [], empty="There is no run here yet.")
    assert capsys.readouterr().out == "There is no run here yet.\n"


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["applied"], 0),
        (["previewed", "applied"], 0),
        ([], 0),
        (["applied", "refused"], 3),
        (["applied", "busy"], 3),
        (["partial"], 3),
        (["partial", "failed"], 3),
        (["failed"], 1),
        (["refused", "busy"], 1),
    ],
)
def test_the_exit_code_of_several_scopes(statuses: list[str], code: int) -> None:
    """0 where all are done, 3 where some are, 1 where none is."""
    assert exit_code_of(statuses) == code


def test_short_ids_tell_ids_apart() -> None:
    """Ids of one import share their first digits; what is shown must still name one row."""
    near = ["019c7a7d-f100-7b2f-bf22-6f5cf0c58b1b", "019c7a7d-f100-79a2-a962-08e27a190af5"]
    short = short_ids(near)
    assert [short[id] for id in near] == ["019c7a7d-f100-7b2f", "019c7a7d-f100-79a2"]
    assert short_ids(near[:1]) == {near[0]: "019c7a7d"}
    twins = ["019c7a7d-f100-79a2-a962-08e27a190af5", "019c7a7d-f100-79a2-a962-08e27a190af6"]
    assert short_ids(twins) == {id: id for id in twins}


def test_rows_of_one_moment_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids begin with their time, so rows that were written together begin alike; a reader must see which are meant."""
    ids = [f"01941f29-7c00-7{number:03x}-a2e8-f1c190096429" for number in range(20)]
    changed = [
        {"table": "memories", "key": {"id": id}, "before": {"pinned": None}, "after": {"pinned": True}} for id in ids
    ]
    view_runs.diff({"dry_run": True, "counts": {}, "diff": {"changed": changed, "created": []}})
    out = capsys.readouterr().out
    assert all(f" {id[:18]} " in out for id in ids)
