"""The `slowwave` command as a person runs it: one process a command, from import to undo, over an embedded Postgres.

The folder has a space in its name. Everything here goes through the shell's view: arguments, stdout, stderr, exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).parents[2] / "memory_core" / "interchange" / "sample" / "assistant.jsonl"
NIGHT = "2026-03-01T03:00:00Z"
WAIT = 120

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON, which must be all that stdout holds."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Shell:
    """Runs commands with a data folder of their own."""

    home: Path

    def __call__(self, *arguments: object, stdin: str | None = None, **environment: str) -> Ended:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLOWWAVE_", "PREFECT_"))}
        done = subprocess.run(
            [sys.executable, "-m", "memory_core.cli.main", *map(str, arguments)],
            env={**kept, "SLOWWAVE_HOME": str(self.home), **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: object, **options: Any) -> dict[str, Any]:
        """The document of a command that must work."""
        ended = self(*arguments, "--json", **options)
        assert ended.code == 0, ended.err
        return ended.document

    def refused(self, *arguments: object, code: int, **options: Any) -> dict[str, Any]:
        """The error of a command that must not work: one line on stderr, a document on stdout."""
        ended = self(*arguments, "--json", **options)
        assert ended.code == code, (ended.code, ended.out, ended.err)
        assert len([line for line in ended.err.splitlines() if line.startswith("error: ")]) == 1, ended.err
        assert {"error", "message", "hint"} <= ended.document.keys()
        return ended.document


@pytest.fixture(scope="module")
def slowwave(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The command over a fresh data folder, stopped at the end by `down`."""
    shell = Shell(tmp_path_factory.mktemp("a home"))
    yield shell
    assert shell.ok("down")["stopped"] is True
    assert shell.ok("down")["stopped"] is False


@pytest.fixture(scope="module")
def imported(slowwave: Shell) -> dict[str, Any]:
    """The sample of one tenant, imported."""
    return slowwave.ok("import", SAMPLE, "--tenant", "maya")


@pytest.fixture(scope="module")
def night(slowwave: Shell, imported: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dry run of a night, and then the night itself."""
    arguments = ("nightly", "--tenant", "maya", "--as-of", NIGHT)
    return slowwave.ok(*arguments, "--dry-run"), slowwave.ok(*arguments)


def test_importing_the_same_file_twice_changes_nothing(slowwave: Shell, imported: dict[str, Any]) -> None:
    """The first import takes every line, the second finds every one known."""
    lines = len(SAMPLE.read_text(encoding="utf-8").splitlines())
    assert (imported["lines"], imported["inserted"], imported["rejected"]) == (lines, lines, 0)
    again = slowwave.ok("import", SAMPLE, "--tenant", "maya")
    assert (again["inserted"], again["unchanged"], again["new_versions"]) == (0, lines, 0)


def test_a_dry_run_tells_what_the_night_then_does(
    slowwave: Shell, night: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """Both documents have the shape the design fixes, and their diffs are the same."""
    planned, real = night
    assert (planned["dry_run"], real["dry_run"], real["status"]) == (True, False, "applied")
    assert (real["tenant"], real["scope"]) == ("maya", "tenant=maya")
    assert datetime.fromisoformat(real["as_of"]) == datetime.fromisoformat(NIGHT)
    assert {"nodes_strengthened", "nodes_pruned", "risk_nodes_tagged", "meta_nodes_created", "errors"} <= real[
        "sleep"
    ].keys()
    assert {"clusters_found", "beliefs_generated", "contradictions_resolved", "harmony_score_avg", "status"} <= real[
        "shmr"
    ].keys()
    assert real["shmr"]["status"] == "harmonized"
    diff = slowwave.ok("run", "diff", real["run_id"])
    assert diff["diff"] == planned["diff"]
    assert slowwave.ok("run", "diff", planned["run_id"])["diff"] == planned["diff"]
    shown = slowwave.ok("run", "show", real["run_id"][:8], "--tenant", "maya")
    assert shown["run_id"] == real["run_id"]
    assert {step["status"] for step in shown["steps"]} == {"done"}
    listed = slowwave.ok("runs", "--tenant", "maya")["runs"]
    assert {planned["run_id"], real["run_id"]} <= {run["run_id"] for run in listed}
    assert slowwave.ok("log", "--tenant", "maya")["log"][0]["run_id"] == real["run_id"]


@pytest.mark.usefixtures("night")
def test_what_is_believed_is_recalled_and_explained(slowwave: Shell) -> None:
    """The newest statement is the answer, as a belief whose evidence names what it replaced."""
    found = slowwave.ok("recall", "Where does Maya live?", "--tenant", "maya", "--k", 3, "--no-record")
    best = found["results"][0]
    assert (best["kind"], best["status"]) == ("belief", "held")
    assert "Porto" in best["content"]
    assert {"supports", "superseded"} <= {piece["role"] for piece in best["evidence"]}
    told = slowwave.ok("reflect", "Where does Maya live?", "--tenant", "maya")
    assert (told["status"], told["claims"][0]["text"]) == ("no_model", found["results"][0]["content"])
    harmonic = slowwave.ok("recall", "Where does Maya live?", "--tenant", "maya", "--harmonic", "--no-record")
    assert harmonic["results"][0]["id"] == harmonic["beliefs"][0]["id"] == told["evidence"][0]["id"]
    before = slowwave.ok("recall", "Maya lives in Leeds", "--tenant", "maya", "--as-of", "2026-02-01Z")
    assert any("lives in Leeds" in item["content"] for item in before["results"])
    assert not any(item["observed_at"] > "2026-02-01" for item in before["results"])

    reasons = slowwave.ok("why", best["id"])
    assert reasons["kind"] == "belief"
    assert {piece["memory_id"] for piece in reasons["evidence"]} == {piece["memory_id"] for piece in best["evidence"]}
    lost = next(piece for piece in best["evidence"] if piece["role"] == "superseded")
    assert slowwave.ok("why", lost["external_id"], "--tenant", "maya")["memory"]["status"] == "superseded"

    superseded = slowwave.ok("memories", "--tenant", "maya", "--status", "superseded")["memories"]
    row = next(row for row in superseded if row["id"] == lost["memory_id"])
    assert row["superseded_reason"] in {"update", "duplicate", "contradiction", "correction"}
    assert row["superseded_by"]
    held = slowwave.ok("beliefs", "--tenant", "maya")["beliefs"]
    assert all(belief["evidence"] for belief in held)
    text = slowwave("recall", "Where does Maya live?", "--tenant", "maya", "--no-record")
    assert text.code == 0
    assert "Porto" in text.out
    assert "\x1b" not in text.out


def test_a_person_writes_corrects_and_takes_back(slowwave: Shell) -> None:
    """Every writing command, on a small tenant: what it says it did is what the lists show afterwards."""
    lines = [
        {
            "content": "Ann lives in Leeds.",
            "external_id": "a-1",
            "subject": "Ann",
            "predicate": "lives_in",
            "object": "Leeds",
        },
        {
            "content": "Ann lives in Porto.",
            "external_id": "a-2",
            "subject": "Ann",
            "predicate": "lives_in",
            "object": "Porto",
        },
    ]
    days = ("2026-01-10T10:00:00Z", "2026-02-10T10:00:00Z")
    given = "\n".join(json.dumps({**line, "observed_at": day}) for line, day in zip(lines, days, strict=True))
    assert slowwave.ok("import", "-", "--tenant", "ann", "--dry-run", stdin=given)["inserted"] == 2
    slowwave.refused("memories", "--tenant", "ann", code=2)
    assert slowwave.ok("import", "-", "--tenant", "ann", stdin=given)["inserted"] == 2

    def contents(status: str = "current") -> set[str]:
        return {row["content"] for row in slowwave.ok("memories", "-t", "ann", "--status", status)["memories"]}

    cat = slowwave.ok("remember", "Ann has a cat", "--tenant", "ann", "--label", "PERSON: Ann")["id"]
    assert slowwave.ok("pin", cat)["pinned"] is True
    assert slowwave.ok("unpin", cat)["pinned"] is False
    slowwave.ok("retract", cat, "--reason", "wrong")
    assert "Ann has a cat" in contents("retired")
    slowwave.ok("restore", cat)
    assert "Ann has a cat" in contents()

    def checksum() -> str:
        return slowwave.ok("status", "--tenant", "ann")["scopes"][0]["checksum"]

    before = checksum()
    run = slowwave.ok("nightly", "--tenant", "ann", "--as-of", NIGHT)["run_id"]
    assert contents("superseded") == {"Ann lives in Leeds."}
    assert checksum() != before
    undone = slowwave.ok("run", "undo", run)
    assert (undone["status"], undone["refused"]) == ("undone", [])
    assert checksum() == before
    assert contents("superseded") == set()
    assert slowwave.refused("run", "undo", run, code=1)["error"] == "UndoRefused"
    again = slowwave.ok("harmonize", "--tenant", "ann", "--as-of", NIGHT)
    assert again["shmr"]["beliefs_generated"] == 0, "what a person undid is not done again by itself"

    slowwave.ok("correct", "a-2", "--tenant", "ann", "--content", "Ann lives in Lisbon.")
    assert "Ann lives in Lisbon." in contents()
    assert "Ann lives in Porto." in contents("superseded")
    slowwave.ok("correct", "--tenant", "ann", "--field", "city=Lisbon", "--field", "cats=1")
    assert slowwave.ok("profile", "--tenant", "ann")["fields"] == {}
    slowwave.ok("sleep", "--tenant", "ann")
    fields = slowwave.ok("profile", "--tenant", "ann")["fields"]
    assert {name: fields[name]["value"] for name in ("city", "cats")} == {"city": "Lisbon", "cats": 1}


def test_a_person_brings_back_what_a_night_retired(slowwave: Shell) -> None:
    """One memory by its name, then all that the run retired: exit code 3 and a reason where something stays away."""
    old = {"observed_at": "2026-01-10T10:00:00Z", "importance": 2}
    lines: list[dict[str, Any]] = [{**old, "content": f"Trifle {n}", "external_id": f"t-{n}"} for n in range(3)]
    read = [{"kind": "recall", "at": "2026-02-28T10:00:00Z"}]
    lines.append({"content": "Dee plays chess", "external_id": "chess", "importance": 9, "accesses": read})
    slowwave.ok("import", "-", "--tenant", "dee", stdin="\n".join(map(json.dumps, lines)))
    slowwave.ok("sleep", "--tenant", "dee", "--as-of", NIGHT)
    night = slowwave.ok("sleep", "--tenant", "dee", "--as-of", "2026-03-10T03:00:00Z")
    assert night["sleep"]["nodes_pruned"] == 3

    def current() -> set[str]:
        return {row["external_id"] for row in slowwave.ok("memories", "-t", "dee")["memories"]}

    assert current() == {"chess"}
    assert slowwave.ok("restore", "t-0", "--tenant", "dee")["status"] == "current"
    assert current() == {"chess", "t-0"}
    assert "not retired" in slowwave.refused("restore", "t-0", "--tenant", "dee", code=2)["message"]
    assert "no memory" in slowwave.refused("restore", "t-9", "--tenant", "dee", code=2)["message"]
    assert "no run" in slowwave.refused("restore", "--run", uuid.uuid4(), "--tenant", "dee", code=2)["message"]
    slowwave.ok("retract", "t-0", "--tenant", "dee", "--reason", "wrong")
    partly = slowwave("restore", "--run", night["run_id"], "--json")
    assert (partly.code, partly.document["status"]) == (3, "partly restored")
    assert partly.document["not_restored"] == {"retired again since, for another reason": 1}
    assert current() == {"chess", "t-1", "t-2"}
    slowwave.ok("sleep", "--tenant", "dee", "--as-of", "2026-05-01T03:00:00Z")
    assert current() == {"chess", "t-1", "t-2"}
    told = slowwave("restore", "--run", night["run_id"])
    assert told.code == 3
    assert "nothing to restore" in told.out
    assert not set("{}[]") & set(told.out)


def test_a_profile_keeps_to_its_schema(slowwave: Shell) -> None:
    """A correction that does not fit its field's type is not taken, and the profile says what its types are."""
    assert slowwave.ok("profile", "--tenant", "eve", "--schema", "age=int")["schema"] == {"age": "int"}
    slowwave.ok("correct", "--tenant", "eve", "--field", "age=36", "--field", "shoe=44")
    slowwave.ok("sleep", "--tenant", "eve")
    slowwave.ok("correct", "--tenant", "eve", "--field", "age=many")
    corrected = slowwave.ok("sleep", "--tenant", "eve")["sleep"]["phases"]["soul_corrections"]
    assert corrected["skipped"] == {"rejected, each with its reason": 1}
    found = slowwave.ok("profile", "--tenant", "eve")
    assert {name: item["value"] for name, item in found["fields"].items()} == {"age": 36}
    assert "schema: age: int" in slowwave("profile", "--tenant", "eve").out
    slowwave.refused("profile", "--tenant", "eve", "--schema", "age", code=2)
    slowwave.refused("profile", "--tenant", "eve", "--schema", "age=whole", code=2)


def test_bad_lines_are_kept_apart_and_the_exit_code_says_so(slowwave: Shell, tmp_path: Path) -> None:
    """The good lines are stored, the bad ones reported with number and reason, and written to a file."""
    file = tmp_path / "mixed.jsonl"
    file.write_text('{"content": "Bo likes tea"}\n{"content": ""}\nnot json\n', encoding="utf-8")
    ended = slowwave("import", file, "--tenant", "bo", "--json")
    assert ended.code == 3
    document = ended.document
    assert (document["inserted"], document["rejected"]) == (1, 2)
    rejects = [json.loads(line) for line in Path(document["rejects_file"]).read_text().splitlines()]
    assert [reject["line"] for reject in rejects] == [2, 3]


def test_a_pipe_with_a_name_is_imported(slowwave: Shell, tmp_path: Path) -> None:
    """As a shell's `<(zcat old.jsonl.gz)` is one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"content": "Ann likes tea"}\nno JSON\n',), daemon=True)
    writer.start()
    document = slowwave("import", pipe, "--tenant", "pipes", "--json").document
    assert (document["inserted"], document["rejected"]) == (1, 1)


def test_scopes_are_slept_together_or_one_at_a_time(slowwave: Shell) -> None:
    """Without --scope every scope of the tenant; a scope sees what is above it and not what is beside it."""
    slowwave.ok("remember", "Everybody is off on Monday", "--tenant", "org=cy", "--external-id", "c-1")
    for chat in ("1", "2"):
        slowwave.ok("remember", f"Chat {chat} is about boats", "--tenant", "org=cy", "--scope", f"chat={chat}")
    documents = slowwave.ok("nightly", "--tenant", "cy")["runs"]
    assert [document["scope"] for document in documents] == ["org=cy", "org=cy/chat=1", "org=cy/chat=2"]
    assert {document["status"] for document in documents} == {"applied"}
    alone = slowwave.ok("sleep", "--tenant", "cy", "--scope", "chat=2")
    assert alone["scope"] == "org=cy/chat=2"
    seen = slowwave.ok("memories", "--tenant", "cy", "--scope", "chat=1")["memories"]
    assert {row["content"] for row in seen} == {"Everybody is off on Monday", "Chat 1 is about boats"}
    slowwave.refused("pin", "c-1", "--tenant", "cy", "--scope", "chat=1", code=2)


def test_a_memory_is_promoted_to_a_scope_above(slowwave: Shell) -> None:
    """The next scope above by default, any by name; twice changes nothing, and what may not be is refused."""
    chat = ("--tenant", "org=kit", "--scope", "brand=x/chat=1")
    told = slowwave.ok("remember", "The shop closes at six", *chat, "--external-id", "d-1")["id"]
    first = slowwave.ok("promote", "d-1", "--tenant", "kit", "--who", "Bo")
    assert (first["status"], first["memory"], first["to"]) == ("promoted", told, "org=kit/brand=x")
    assert slowwave.ok("promote", told[:13], "--tenant", "kit", "--to", "brand=x")["status"] == "unchanged"
    assert slowwave.ok("promote", "d-1", *chat, "--to", "org=kit")["to"] == "org=kit"
    (copy,) = slowwave.ok("memories", "--tenant", "org=kit", "--scope", "brand=y")["memories"]
    assert (copy["content"], copy["source"]) == ("The shop closes at six", "promotion")
    assert [entry["memory_id"] for entry in copy["properties"]["promoted_from"]] == [told]
    assert copy["properties"]["promoted_from"][0]["promoted_by"] == "user"
    assert slowwave.refused("promote", "d-1", *chat, "--to", "brand=y", code=2)["error"] == "InvalidScope"
    assert slowwave.refused("promote", copy["id"], "--tenant", "kit", code=2)["error"] == "InvalidScope"
    assert slowwave.refused("promote", "d-1", "--tenant", "maya-too", code=2)["error"] == "NotFound"
    shown = slowwave("promote", "d-1", "--tenant", "kit")
    assert (shown.code, "unchanged" in shown.out) == (0, True)


@pytest.mark.usefixtures("imported")
def test_what_cannot_be_done_is_said_and_nothing_else_is_printed(slowwave: Shell) -> None:
    """Bad input is 2, a refusal 1; both are one line and one document."""
    assert slowwave.refused("recall", "x", "--tenant", "nobody", code=2)["error"] == "NotFound"
    assert slowwave.refused("why", uuid.uuid4(), code=2)["error"] == "NotFound"
    assert slowwave.refused("nightly", "--tenant", "maya", "--as-of", "2026-03-01", code=2)["error"] == "InvalidTime"
    assert slowwave.refused("nightly", "--tenant", "maya", "--scope", "chat=9", code=2)["error"] == "NotFound"
    assert slowwave.refused("recall", "x", "--tenant", "maya", "--no-such", code=2)["error"] == "UsageError"
    assert slowwave.refused("status", code=2, SLOWWAVE_POOL_SIZE="0")["error"] == "InvalidSettings"
    unreachable = "postgresql://nobody@127.0.0.1:1/none"
    lost = slowwave.refused("memories", "--tenant", "maya", code=1, SLOWWAVE_DATABASE_URL=unreachable)
    assert lost["error"] == "DatabaseUnavailable"


@pytest.mark.usefixtures("imported")
def test_the_doctor_and_the_status_tell_how_things_are(slowwave: Shell) -> None:
    """Everything works here; a model that is not there and a database that is not are problems with advice."""
    healthy = slowwave.ok("doctor")
    assert healthy["healthy"] is True
    assert {check["state"] for check in healthy["checks"]} <= {"ok", "note"}
    subjects = {check["check"] for check in healthy["checks"]}
    assert {"python", "home", "server", "schema", "roles", "isolation", "clock", "embedding", "prefect"} <= subjects
    ended = slowwave("doctor", "--json", SLOWWAVE_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert ended.code == 1
    assert any(check["state"] == "problem" and check["do"] for check in ended.document["checks"])
    status = slowwave.ok("status")
    assert status["embedded"]["running"] is True
    maya = next(scope for scope in status["scopes"] if scope["tenant"] == "maya")
    assert maya["memories"] > 100
    away = slowwave("status", SLOWWAVE_DATABASE_URL="postgresql://me:secret@127.0.0.1:1/none")
    assert away.code == 1
    assert "secret" not in away.out + away.err


def test_a_closed_pipe_is_no_error(slowwave: Shell) -> None:
    """`slowwave … | head` ends quietly."""
    command = f'"{sys.executable}" -m memory_core.cli.main --help | head -n 1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("--help >/dev/full", 1, "no space is left"),
        ("status >/dev/full", 1, "no space is left"),
        ("status --json >/dev/full", 1, "no space is left"),
        ("status >&-", 0, ""),
        ("status --json >&-", 0, ""),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_stdout_that_takes_nothing_gives_no_traceback(slowwave: Shell, command: str, code: int, said: str) -> None:
    """A full disk is one line on stderr; a stdout that was closed is what the caller wanted."""
    slowwave.ok("setup")
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m memory_core.cli.main {command}'],
        env={**os.environ, "SLOWWAVE_HOME": str(slowwave.home)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said), done.stderr
