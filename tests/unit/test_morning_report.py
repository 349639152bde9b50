"""The morning report: one source, two renderings, and nothing that a memory says can become markup."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from memory_core.sleep.morning_markdown import escape
from memory_core.sleep.morning_report import MorningReport, Notice, build_morning_report
from memory_core.sleep.morning_words import plain

RUN = "1a2b3c4d-0000-4000-8000-000000000000"


def listed(*items: dict[str, Any], total: int | None = None, **more: Any) -> dict[str, Any]:
    return {"total": len(items) if total is None else total, "items": list(items), **more}


def piece(role: str, content: str, day: str, source: str = "chat") -> dict[str, Any]:
    return {
        "role": role,
        "content": content,
        "observed_at": f"{day}T09:00:00+00:00",
        "source": source,
        "memory_id": RUN,
    }


def belief(content: str, *evidence: dict[str, Any], **fields: Any) -> dict[str, Any]:
    row = {"belief_id": RUN, "content": content, "confidence": 0.9, "status": "held", "rationale": "", "former": None}
    return {**row, "evidence": list(evidence), "evidence_total": len(evidence), **fields}


def strengthened(content: str) -> dict[str, Any]:
    return {
        "memory_id": RUN,
        "label": None,
        "content": content,
        "before": 5.0,
        "after": 5.5,
        "evidence": 2,
        "kinds": {"recall": 2},
    }


def night(**fields: Any) -> dict[str, Any]:
    highlights = {
        "strengthened": listed(strengthened("Maya likes tea"), total=14),
        "linked": listed(
            {
                "relationship": "CO_OCCURRED",
                "kind": "co_occurred",
                "new": True,
                "nights": 1,
                "source_content": "tea",
                "target_content": "toast",
            },
            total=7,
            new=6,
        ),
        "flagged": listed({"content": "The key leaked", "words": ["leaked"]}),
        "retired": listed({"content": "A bakery", "reason": "not used for 40 days"}),
        "summarised": listed(
            {"label": "META: TEAM", "state": "refreshed", "member_count": 4, "members": ["a"], "content": "Ann; Bo"}
        ),
        "corrected": listed(
            {
                "field": "city",
                "previous": "Leeds",
                "value": "Porto",
                "source": "user-correction",
                "who": "maya",
                "at": "2026-02-28T10:00:00+00:00",
            }
        ),
        "superseded": listed(
            {
                "content": "Maya lives in Leeds",
                "observed_at": "2026-01-18T09:00:00+00:00",
                "by": "Maya lives in Porto",
                "reason": "update",
            }
        ),
        "beliefs": {
            "new": listed(belief("Biscuit weighs 12 kg", piece("supports", "Biscuit: 12 kg", "2026-02-20"))),
            "changed": listed(
                belief(
                    "Maya lives in Porto",
                    piece("supports", "Maya moved to Porto", "2026-02-11"),
                    piece("superseded", "Maya lives in Leeds", "2026-01-18", "user"),
                    former={"content": "Maya lives in Leeds", "valid_from": "2026-01-18T09:00:00+00:00"},
                ),
                total=2,
            ),
            "contested": listed(
                belief(
                    "The flat has 80 m² or 90 m²",
                    piece("supports", "80 m²", "2026-02-01"),
                    piece("contradicts", "90 m²", "2026-02-01", "agent"),
                    status="contested",
                )
            ),
        },
        "standing": {"memories": 209, "current": 150, "held": 41, "contested": 1},
        "backlog": {"waiting_to_harmonize": 3, "uses_not_counted": 0},
    }
    document = {
        "run_id": RUN,
        "status": "applied",
        "kind": "nightly",
        "tenant": "maya",
        "scope": "tenant=maya",
        "as_of": "2026-03-01T03:00:00+00:00",
        "dry_run": False,
        "sleep": {"started_at": "2026-03-01T05:00:00+00:00", "finished_at": "2026-03-01T05:00:01.500000+00:00"},
        "shmr": {"status": "harmonized", "duration_ms": 500, "model": "rules", "tokens": 0, "cost": 0},
        "steps": {
            "strengthen": {"status": "done", "candidates": 20, "changed": 14, "skipped": {"already at the ceiling": 6}},
            "pending_edges": {"status": "done", "candidates": 0, "changed": 0, "reason": "no connection is pending"},
            "apply": {"status": "done", "candidates": 4, "changed": 4},
        },
        "highlights": highlights,
    }
    return {**document, **fields}


def terminal(report: MorningReport, width: int = 100, *, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, legacy_windows=False, force_terminal=False).print(report.to_rich())
    file.flush()
    return file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_both_renderings_tell_the_whole_night() -> None:
    """Headline, standing, each section with its evidence and reasons, what was skipped and why, duration and cost."""
    report = build_morning_report(night())
    assert report.headline == (
        "Good morning. 14 memories strengthened, 6 new links, 1 link reinforced, 1 risk flagged, 1 summary written, "
        "1 profile field corrected, 1 statement replaced, 3 beliefs settled, 1 contested, 1 memory retired."
    )
    for text in (terminal(report, 120), report.to_markdown()):
        words = " ".join(text.replace("│", " ").split())
        assert report.headline in words
        assert "209 memories, 150 of them in use; 41 beliefs held, 1 contested." in words
        for told in (
            "5.0 → 5.5",
            "together with",
            "leaked",
            "not used for 40 days",
            "TEAM",
            "Leeds",
            "“Maya moved to Porto”",
            "one says",
            "another says",
            "and 13 more",
            "already at the ceiling",
            "no connection is pending",
            "3 statements wait to be harmonized",
            "run 1a2b3c4d",
            "took 2.0 s",
            "decided by rules, no model was called",
        ):
            assert told in words, told


def test_a_contested_belief_shows_what_it_is_about_and_what_was_believed() -> None:
    """The slot and its sides instead of all that was said, and the belief that is no longer held because of it."""
    document = night()
    contested = belief(
        "Target is 4:00. / Target is 4:08.",
        status="contested",
        subject="Maya",
        predicate="marathon_target",
        object="4:00 / 4:08",
        former={"content": "Target is 4:08.", "valid_from": "2026-01-30T00:00:00+00:00"},
    )
    document["highlights"]["beliefs"] = {"contested": listed(contested)}
    text = terminal(build_morning_report(document))
    assert "Maya, marathon target: 4:00 / 4:08  [undecided]" in text
    assert "was  “Target is 4:08.”  believed since 2026-01-30" in text


def test_a_dry_run_says_first_that_nothing_was_changed() -> None:
    """Nobody takes a preview for the real thing, in the headline, in a notice, and in every section's title."""
    report = build_morning_report(night(dry_run=True, sleep={}, shmr={}))
    assert report.headline.startswith("Dry run, nothing was changed. It would bring: 14 memories strengthened")
    assert "slowwave nightly --tenant maya --as-of 2026-03-01T03:00:00+00:00" in report.notices[0].do
    assert all("ould" in section.title for section in report.sections if section.title != "Profile corrections")
    assert not any("took" in fact for fact in report.facts)


@pytest.mark.parametrize(
    ("fields", "headline", "told"),
    [
        (
            {"status": "refused", "error": {"message": "It would retire 60.", "hint": "Preview it."}},
            "The run was refused, and nothing was changed.",
            ("It would retire 60.", "Preview it."),
        ),
        (
            {"status": "busy", "run_id": None, "error": {"message": "Another run holds it.", "hint": "Wait for it."}},
            "Nothing was done: another run holds the scope.",
            ("Another run holds it.", "Wait for it."),
        ),
    ],
)  # fmt: skip
def test_a_run_that_did_nothing_says_why_and_what_to_do(
    fields: dict[str, Any], headline: str, told: tuple[str, ...]
) -> None:
    """Refused and busy runs say so at the top, and show nothing as done."""
    report = build_morning_report({**night(**fields), "highlights": night()["highlights"]})
    assert report.headline == headline
    assert report.sections == ()
    assert (report.notices[0].what, report.notices[0].do) == told
    top = report.to_markdown().split("---")[0]
    assert all(words in top.replace("\\", "") for words in told)


def test_a_partial_run_names_the_phase_and_the_way_on() -> None:
    """The failed phase, why it failed, what stays, and the command that does the rest."""
    steps = {
        "strengthen": {"status": "failed", "error": {"error": "X", "message": "The table is locked.", "hint": "Wait."}},
        "tag_risk": {"status": "done", "changed": 1},
    }
    report = build_morning_report(night(status="partial", steps=steps))
    assert report.notices[0].what == "Only a part of it was done: Strengthen failed."
    assert "slowwave nightly --tenant maya" in report.notices[0].do
    assert (report.notices[1].what, report.notices[1].do) == ("Strengthen: The table is locked.", "Wait.")
    assert "Strengthen" not in {quiet.phase for quiet in report.quiet}


def test_a_quiet_night_says_for_each_phase_why() -> None:
    """No highlights, and yet a reason in words for each phase and for harmonizing as a whole."""
    steps = {
        "strengthen": {"status": "done", "candidates": 0, "changed": 0, "reason": "no memory has new evidence of use"},
        "tag_risk": {"status": "done", "candidates": 9, "changed": 0},
        "prune_orphans": {"status": "done", "candidates": 2, "changed": 0, "skipped": {"pinned": 2}},
        "collect": {"status": "done", "candidates": 1, "changed": 0, "reason": "insufficient_candidates"},
        "cluster": {"status": "done", "candidates": 0, "changed": 0, "reason": "insufficient_candidates"},
        "log": {"status": "done", "candidates": 0, "changed": 1},
    }
    report = build_morning_report(night(steps=steps, highlights={}, shmr={"status": "insufficient_candidates"}))
    assert report.headline == "Good morning. A quiet night: nothing changed."
    assert {quiet.phase: quiet.why for quiet in report.quiet} == {
        "Strengthen": "no memory has new evidence of use",
        "Flag risks": "none of 9 candidates needed a change",
        "Retire": "every candidate was left alone, as listed below",
        "Harmonize": "too few new statements to compare; insufficient candidates",
    }
    assert [(left.phase, left.number, left.reason) for left in report.left_alone] == [("Retire", 2, "pinned")]


def test_counters_stand_in_where_a_document_tells_no_highlights() -> None:
    """A document stored without highlights still gives a true headline."""
    sleep = {"nodes_strengthened": 2, "nodes_pruned": 1}
    report = build_morning_report(night(highlights=None, sleep=sleep, shmr={"beliefs_generated": 3}), memories_total=9)
    assert report.headline == "Good morning. 2 memories strengthened, 3 beliefs settled, 1 memory retired."
    assert report.standing == "9 memories."


def test_model_calls_and_their_cost_are_told() -> None:
    """Model, calls, tokens and money, and an unknown price is not shown as free."""
    shmr = {"model": "openai/x", "model_calls": 3, "tokens": 12345, "cost": 0.0421}
    assert build_morning_report(night(shmr=shmr)).facts[-4:] == (
        "model openai/x",
        "3 model calls",
        "12,345 tokens",
        "cost $0.0421",
    )
    assert build_morning_report(night(shmr={**shmr, "cost": None})).facts[-1] == "cost unknown"
    expected = {"calls": 3, "tokens": 20100, "cost": 0.09, "kept": 1}
    assert build_morning_report(night(shmr={**shmr, "estimate": expected})).facts[-1] == (
        "expected for a first attempt at most 20,100 tokens, $0.0900"
    )
    kept = {"calls": 0, "tokens": 0, "cost": 0.0, "kept": 4}
    assert build_morning_report(night(shmr={**shmr, "estimate": kept})).facts[-1] == "cost $0.0421"


HOSTILE = (
    "a|b `c` <img src=x onerror=alert(1)> [link](http://evil.example) ![i](x) **bold** [red]no[/red] www.evil.example"
)


def test_a_model_that_failed_is_said_at_the_top() -> None:
    """What waits for it, or what rules decided in its place, and how it failed: neither is a quiet night."""
    failed = "openai/x failed: Nothing answers at http://127.0.0.1:9."
    shmr = {"status": "model_unavailable", "clusters": {"model_unavailable": 2}, "reason": failed}
    (notice,) = build_morning_report(night(shmr=shmr)).notices
    assert notice == Notice("The language model failed, and 2 groups of statements wait for it.", failed)
    instead = {"model": "openai/x", "clusters": 1, "error": "Nothing answers at http://127.0.0.1:9."}
    steps = {"harmonize": {"status": "done", "details": {"rules_instead_of": instead}}}
    (notice,) = build_morning_report(night(steps=steps)).notices
    assert notice == Notice("The language model failed, and rules decided 1 group of statements in its place.", failed)


def test_memory_text_cannot_become_markdown() -> None:
    """Pipes, code, HTML, links, images and emphasis of a memory are shown, not obeyed; a line break starts nothing."""
    document = night()
    document["highlights"]["strengthened"] = listed(strengthened(f"{HOSTILE}\n\n# Heading\n- item"))
    text = build_morning_report(document).to_markdown()
    [row] = [line for line in text.splitlines() if "onerror" in line]
    assert row.count("|") - row.count("\\|") == 4
    assert "<" not in text
    assert "\n# Heading" not in text
    assert "\n- item" not in text
    assert "\\`c\\`" in row
    assert "\\[link\\]" in row
    assert "http\\://" in row
    assert "www\\.evil" in row
    assert "\\*\\*bold" in row


def test_memory_text_cannot_steer_a_terminal() -> None:
    """Rich markup is shown as it is; escape sequences and characters that turn the reading direction are gone."""
    document = night()
    document["highlights"]["strengthened"] = listed(
        strengthened("[red]no[/red] \x1b[31mred\x1b[0m \u202eevil\u202c \x07")
    )
    text = terminal(build_morning_report(document), 120)
    assert "[red]no[/red] [31mred[0m evil" in text
    assert not any(char in text for char in "\x1b\x07\u202e\u202c")


def test_a_command_to_copy_runs_nothing_else() -> None:
    """Whoever wrote an imported file may have named its tenant; a shell must see a word, and not a command."""
    hostile = night(dry_run=True, tenant="$(touch x)", scope="tenant=$(touch x)/chat=`id`")
    command = build_morning_report(hostile).notices[0].do
    assert "--tenant '$(touch x)' --scope 'chat=`id`' --as-of" in command


@pytest.mark.parametrize("width", [30, 50, 79, 100, 200])
def test_every_width_is_kept(width: int) -> None:
    """No line is wider than the terminal, and nothing is lost in a narrow one."""
    text = terminal(build_morning_report(night()), width)
    assert max(len(line) for line in text.splitlines()) <= min(width, 120)
    words = " ".join(text.replace("│", " ").split())
    for told in ("A bakery", "Leeds", "5.5", "leaked", "another says"):
        assert told in words


def test_ascii_terminals_get_ascii() -> None:
    """A terminal without Unicode gets the same report in characters that it has."""
    text = terminal(build_morning_report(night()), 100, encoding="ascii")
    assert "5.0 > 5.5" in text
    assert "^ Strengthened (14)" in text


def test_long_lists_end_with_how_many_there_are() -> None:
    """The terminal shows the first few, markdown all that the document holds; both say how many more there are."""
    document = night()
    items = [strengthened(f"memory number {number}") for number in range(20)]
    document["highlights"]["strengthened"] = listed(*items, total=33)
    report = build_morning_report(document)
    assert "and 28 more" in terminal(report)
    assert "memory number 19" in report.to_markdown()
    assert "and 13 more" in report.to_markdown()


@given(st.text(max_size=200))
def test_any_text_stays_on_one_line_without_control(text: str) -> None:
    """Whatever a memory holds, it is one line of bounded length, and its markdown has no bare sign of markup."""
    line = plain(text, 50)
    assert len(line) <= 50
    assert "\n" not in line
    assert "\x1b" not in line
    assert plain(line, 50) == line
    bare = escape(line)
    assert "<" not in bare
    assert ">" not in bare
    unescaped = bare.replace("\\\\", "")
    for sign in "|`*_[]":
        assert unescaped.count(sign) == unescaped.count(f"\\{sign}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. first", "1\\. first"),
        ("- dash", "\\- dash"),
        ("a & b < c", "a &amp; b &lt; c"),
        ("mailto:a@b.c", "mailto\\:a\\@b.c"),
    ],
)
def test_markdown_is_escaped_where_a_line_begins_too(text: str, shown: str) -> None:
    """List marks at the beginning, entities, and addresses that a renderer would link."""
    assert escape(text) == shown
