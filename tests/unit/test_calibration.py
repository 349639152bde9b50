"""Thresholds measured on labelled pairs: the numbers, the recommendation, and what a file may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.cli.main import run
from memory_core.errors import InvalidInput
from memory_core.models.embedding import embedding_provider
from memory_core.shmr.calibration import FEWEST, SETTINGS, calibrate, measure
from memory_core.shmr.labelled_pairs import LabelledPair, Statement, read_pairs
from memory_core.shmr.settings import ShmrSettings

DATA = Path(__file__).parents[1] / "data"
FILES = (DATA / "text_pairs.json", DATA / "planted_slots.json")
GOOD = {"relation": "contradiction", "earlier": "Ann lives in Oslo", "later": "Ann lives in Bergen"}

scores = st.lists(st.integers(-100, 100).map(lambda n: n / 100), min_size=0, max_size=30)


@given(together=scores, apart=scores, floor=st.sampled_from([0.0, 0.5, 0.9]))
def test_the_curve_counts_what_reaches_each_threshold(together: list[float], apart: list[float], floor: float) -> None:
    """Precision, recall and F1 as counted one by one, and no allowed threshold is better than the recommended one."""
    found = measure("similarity_threshold", together, apart, now=0.7, min_precision=floor)
    if not together and not apart:
        assert (found.curve, found.best, found.now) == ((), None, None)
        return
    assert [point.threshold for point in found.curve] == [step / 100 for step in range(101)]
    for point in found.curve:
        true = sum(score >= point.threshold - 1e-6 for score in together)
        false = sum(score >= point.threshold - 1e-6 for score in apart)
        assert point.precision == (true / (true + false) if true + false else None)
        assert point.recall == (true / len(together) if together else 0.0)
        both = (point.precision or 0.0) + point.recall
        assert point.f1 == pytest.approx(2 * (point.precision or 0.0) * point.recall / both if both else 0.0)
    assert found.now is not None
    assert found.now == found.curve[70]
    allowed = [point.f1 for point in found.curve if point.precision is not None and point.precision >= floor]
    if min(len(together), len(apart)) < FEWEST or not allowed:
        assert found.best is None
        assert found.reason
    else:
        assert found.best is not None
        assert found.best.f1 == max(allowed)
        assert (found.best.precision or 0.0) >= floor


def test_of_equally_good_thresholds_the_middle_is_recommended() -> None:
    """A clean gap between 0.40 and 0.81 gives a threshold inside it, away from both."""
    found = measure("similarity_threshold", [0.8] * 10, [0.4] * 10, now=0.7, min_precision=0.5)
    assert found.best is not None
    assert (found.best.threshold, found.best.f1) == (0.61, 1.0)


async def test_the_defaults_are_what_the_shipped_model_needs() -> None:
    """With minilm on our own sets no default is far from the best, and each holds at least eight of ten."""
    pairs = [pair for path in FILES for pair in read_pairs(path)[0]]
    found = {each.setting: each for each in await calibrate(pairs, embedding_provider("minilm"), ShmrSettings())}
    assert tuple(found) == SETTINGS
    for each in found.values():
        assert each.now is not None
        assert each.best is not None
        assert each.now.f1 >= each.best.f1 - 0.03, each.setting
        assert each.now.recall >= 0.8, each.setting


async def test_slots_are_compared_within_one_subject_only() -> None:
    """Another subject's slot is never the same thing, however alike it is worded."""

    def fact(subject: str, predicate: str, value: str) -> Statement:
        return Statement(f"{subject} {predicate} {value}", subject.casefold(), f"{subject} {predicate}")

    pairs = [
        LabelledPair("contradiction", fact("Ann", "lives in", "Oslo"), fact("Ann", "resides in", "Bergen")),
        LabelledPair("update", fact("Ann", "works at", "Acme"), fact("Ann", "works at", "Globex")),
        LabelledPair("unrelated", fact("Bob", "lives in", "Oslo"), fact("Ann", "lives in", "Oslo")),
    ]
    slots = (await calibrate(pairs, embedding_provider("hash:64"), ShmrSettings()))[1]
    # Bob has one slot, so it is set beside nothing; Ann's three make three couples, of which one belongs together.
    assert (slots.setting, slots.together, slots.apart) == ("slot_similarity_threshold", 2, 2)


def test_a_planted_set_gives_pairs_and_look_alikes(tmp_path: Path) -> None:
    """A look-alike is set beside what shares its predicate or an object, never beside its own subject."""
    path = tmp_path / "planted.json"
    planted = [{"subject": "Ann", "predicate": "lives_in", "object_old": "Oslo", "object_new": "Bergen"}]
    looks = [
        {"subject": "Bob", "predicate": "was born in", "object": "Oslo"},
        {"subject": "Ann", "predicate": "lives_in", "object": "Oslo"},
        {"subject": "Bob", "predicate": "likes", "object": "tea"},
    ]
    path.write_text(json.dumps({"contradicting": planted, "distractors": looks}))
    pairs, bad = read_pairs(path)
    assert bad == []
    assert [(pair.relation, pair.earlier.text, pair.later.text) for pair in pairs] == [
        ("contradiction", "Ann lives in Oslo", "Ann lives in Bergen"),
        ("unrelated", "Ann lives in Oslo", "Bob was born in Oslo"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("not json", "not JSON"),
        ("[1]", "not a JSON object"),
        ("NaN", "not a JSON object"),
        ({**GOOD, "relation": "similar"}, "the relation is 'similar'"),
        ({**GOOD, "relation": ["x"]}, "the relation is"),
        ({**GOOD, "later": " "}, "'later' is neither"),
        ({**GOOD, "earlier": {"subject": "Ann", "predicate": "lives in"}}, "'earlier' is neither"),
        ({"relation": "duplicate", "earlier": "x"}, "'later' is neither"),
        ({"subject": "Ann", "predicate": "is", "object_old": "x"}, "'later' is neither"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_the_good_ones_are_kept(
    tmp_path: Path, line: Any, reason: str
) -> None:
    """Blank lines count for the number, and hold nothing else up."""
    path = tmp_path / "pairs.jsonl"
    bad = line if isinstance(line, str) else json.dumps(line)
    path.write_text("\n".join((json.dumps(GOOD), "", bad, json.dumps(GOOD))))
    pairs, unreadable = read_pairs(path)
    assert len(pairs) == 2
    (problem,) = unreadable
    assert problem.number == 3
    assert problem.reason.startswith(reason)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"pairs": 3}', b"\xff\xfe\x00", b"nothing here\n", b"[" * 100_000])
def test_a_file_without_pairs_is_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever it holds instead, it is bad input and no traceback."""
    path = tmp_path / "pairs.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        read_pairs(path)


def test_the_command_recommends_and_says_what_it_could_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON with curves and settings lines; a bad line makes exit code 3; the table shows now and recommended."""
    path = tmp_path / "pairs.jsonl"
    path.write_text("oops\n" + json.dumps(GOOD) + "\n")
    assert run(["calibrate", *map(str, FILES), str(path), "--home", str(tmp_path / "home"), "--json"]) == 3
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert document["rejected"] == [{"file": str(path), "number": 1, "reason": "not JSON (Expecting value)"}]
    assert (document["pairs"], document["model"]) == (74, "minilm")
    assert set(document["measures"]) == set(SETTINGS)
    for name, value in document["recommended"].items():
        assert f"{name} = {value:g}" in document["settings"].splitlines()
        ShmrSettings(**{name: value})
    assert run(["calibrate", *map(str, FILES), "--home", str(tmp_path / "home")]) == 0
    out, err = capsys.readouterr()
    assert "similarity_threshold: 40 cases that belong together, 33 that do not" in out
    assert "now" in out
    assert "recommended" in out
    assert "[shmr]" in out
    assert not (tmp_path / "home").exists()


def test_a_floor_of_precision_moves_the_recommendation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing below the floor is recommended; out of range is bad usage, and so is a file that is not there."""
    home = ["--home", str(tmp_path / "home"), "--json"]
    found = {}
    for floor in ("0.5", "0.9"):
        assert run(["calibrate", *map(str, FILES), "--min-precision", floor, *home]) == 0
        found[floor] = json.loads(capsys.readouterr().out)
    assert found["0.9"]["recommended"]["similarity_threshold"] > found["0.5"]["recommended"]["similarity_threshold"]
    assert found["0.9"]["measures"]["similarity_threshold"]["recommended"]["precision"] >= 0.9
    assert run(["calibrate", str(FILES[0]), "--min-precision", "1.1", *home]) == 2
    assert run(["calibrate", str(tmp_path / "none.jsonl"), *home]) == 2
    assert run(["calibrate", str(tmp_path), *home]) == 2
    assert run(["calibrate", str(FILES[0]), "--scope", "brand=x", *home]) == 2
