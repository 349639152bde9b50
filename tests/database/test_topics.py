"""Summaries by topic, over a real database and real vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_core.database.engine import Database
from memory_core.night.consolidate import consolidate, undo
from memory_core.scope import TenantScope
from memory_core.settings import Settings
from memory_core.sleep.topic_names import topic_names
from memory_core.sleep.topics import LARGEST_AT_ONCE, topic_keys, topic_labels
from tests.builders import NIGHT, add_memory, ago
from tests.nights import change, rows, state

BREAD = (
    "The sourdough bread needs twelve hours to rise",
    "Rye bread keeps longer than wheat bread",
    "Wheat bread dough rises in a warm oven",
    "The bread dough was too wet yesterday",
)
BIKES = (
    "The bicycle has a flat tyre again",
    "He repaired the bicycle tyre himself",
    "The bicycle shop sells tyres and chains",
    "The old bicycle chain and tyre were replaced",
)
ON = {"settings": {"meta_nodes": {"topics": True}}}


@pytest.fixture
async def store(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    """A fresh store that computes real vectors."""
    settings = Settings.load(home=tmp_path / "home", database_url=database_url, embedding="minilm")
    async with Database.open(settings) as opened:
        yield opened


async def night(database: Database, scope: TenantScope, day: int = 0, **asked: Any) -> dict[str, Any]:
    """A nightly run with topics; the report of the phase."""
    (document,) = await consolidate(
        database, [scope], "nightly", NIGHT + timedelta(days=day), parameters={**ON, **asked}
    )
    assert document["status"] == "applied", document["error"]
    return {**document["sleep"]["phases"]["meta_nodes"], "run_id": document["run_id"]}


async def topics(database: Database, scope: TenantScope) -> list[dict[str, Any]]:
    """The topic summaries in use, by label."""
    found = await rows(
        database,
        scope,
        "SELECT m.label, m.content, m.derived_key, m.properties FROM memories m WHERE m.tenant_id = :tenant_id "
        "AND starts_with(m.derived_key, 'topic:') AND m.retired_at IS NULL ORDER BY m.label",
    )
    return [dict(row) for row in found]


async def test_topics_are_off_unless_switched_on(store: Database, scope: TenantScope) -> None:
    """Memories without a prefix have no summary by default."""
    for text in BREAD:
        await add_memory(store, scope, text)
    await consolidate(store, [scope], "nightly", NIGHT)
    assert await topics(store, scope) == []


async def test_each_topic_has_one_summary_named_by_its_words(store: Database, scope: TenantScope) -> None:
    """Unrelated groups are parted, a loner is in none, labelled memories are left to their prefix."""
    for text in (*BREAD, *BIKES, "The tax return is due in May"):
        await add_memory(store, scope, text)
    await add_memory(store, scope, "Bread at the prefix", label="SHOP: bread")
    report = await night(store, scope)
    bicycle, bread = await topics(store, scope)
    assert bicycle["label"].startswith("META: topic ")
    assert "bicycle" in bicycle["label"]
    assert "bread" in bread["label"]
    assert (bicycle["properties"]["member_count"], bread["properties"]["member_count"]) == (4, 4)
    assert report["skipped"]["in no topic of enough memories"] == 1
    assert any(text in bread["content"] for text in BREAD)
    again = await night(store, scope)
    assert (again["changed"], await topics(store, scope)) == (0, [bicycle, bread])


async def test_a_topic_keeps_its_key_and_goes_with_its_members(store: Database, scope: TenantScope) -> None:
    """A new member refreshes the summary; where the members are gone, so is the topic; undo restores."""
    ids = [await add_memory(store, scope, text) for text in BREAD]
    await night(store, scope)
    (first,) = await topics(store, scope)
    await add_memory(store, scope, "White bread is best when it is fresh", observed_at=NIGHT + timedelta(hours=2))
    before = await state(store, scope)
    second_night = await night(store, scope, day=1)
    (second,) = await topics(store, scope)
    assert second_night["counts"]["meta_nodes_refreshed"] == 1
    assert (second["derived_key"], second["properties"]["member_count"]) == (first["derived_key"], 5)
    await undo(
        store, scope, (await rows(store, scope, "SELECT id FROM runs ORDER BY as_of DESC LIMIT 1"))[0]["id"], at=NIGHT
    )
    assert await state(store, scope) == before
    assert await topics(store, scope) == [first]
    for memory_id in ids[:2]:
        await change(
            store,
            scope,
            "UPDATE memories SET retired_at = :at, retired_reason = 'gone' WHERE tenant_id = :tenant_id AND id = :id",
            at=ago(hours=1),
            id=memory_id,
        )
    await change(
        store,
        scope,
        "UPDATE memories SET retired_at = :at, retired_reason = 'gone' WHERE content LIKE 'White%'",
        at=NIGHT,
    )
    await night(store, scope, day=2, reconsider=True)
    assert await topics(store, scope) == []


def test_names_tell_groups_apart_and_are_never_alike() -> None:
    """Words that all groups share weigh little; groups without words are numbered."""
    names = topic_names([["the red apple pie", "apple pie again"], ["the red fire engine", "engine on the road"]])
    assert "apple" in names[0]
    assert "engine" in names[1]
    assert "red" not in names[0].split(", ")[0]
    assert topic_names([]) == []
    assert topic_names([["the of"], ["and"]]) == ["number 1", "number 2"]
    assert topic_names([["the of"], ["tea"]]) == ["number 1", "tea"]
    assert len(set(topic_names([["tea"], ["tea"]]))) == 2


def test_labels_do_not_depend_on_the_number_at_once() -> None:
    """Clear groups are found as well where there are too many vectors for one linkage."""
    generator = np.random.default_rng(1)
    centres = np.eye(8, 16, dtype=np.float32)
    of = np.arange(LARGEST_AT_ONCE + 400) % 8
    vectors = centres[of] + generator.normal(0, 0.02, (len(of), 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = topic_labels(vectors, similarity=0.5)
    assert all(len(set(of[labels == label])) == 1 for label in set(labels.tolist()))
    assert (topic_labels(vectors, similarity=0.5) == labels).all()


def test_labels_do_not_depend_on_the_order_of_rows() -> None:
    """The same groups whichever row comes first, near the limit of what is one topic too."""
    generator = np.random.default_rng(2)
    vectors = generator.normal(0, 1, (60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = generator.permutation(60)
    forwards, shuffled = topic_labels(vectors, similarity=0.3), topic_labels(vectors[order], similarity=0.3)
    assert {frozenset(np.flatnonzero(forwards == label).tolist()) for label in set(forwards.tolist())} == {
        frozenset(order[shuffled == label].tolist()) for label in set(shuffled.tolist())
    }


def test_no_two_topics_share_a_key() -> None:
    """A topic keeps its key with most of its members; who leaves it, its first member even, takes no key along."""
    (key,) = topic_keys([frozenset("abcd")], {})
    former = {key: frozenset("abcd")}
    assert topic_keys([frozenset("abcd")], {}) == [key]
    assert topic_keys([frozenset("bcdx")], former) == [key]
    apart = topic_keys([frozenset("aef"), frozenset("bcd")], former)
    assert apart[1] == key
    assert apart[0] != key
    assert topic_keys([frozenset("axy")], former) != [key]
    several = {topic_keys([frozenset(name)], {})[0]: frozenset(f"{name}123") for name in "abc"}
    (last,) = topic_keys([frozenset("abc")], several)
    assert last not in several


async def test_a_prefix_and_a_topic_of_one_word_stay_apart(store: Database, scope: TenantScope) -> None:
    """Each has its summary, under a label and a key of its own; each kind has its own least size."""
    for number, text in enumerate(BREAD):
        await add_memory(store, scope, text)
        await add_memory(store, scope, f"Invoice {number} of the mill is paid", label=f"BREAD: {number}")
    await night(store, scope, settings={"meta_nodes": {"topics": True, "smallest": 5}})
    assert [found["label"].startswith("META: topic ") for found in await topics(store, scope)] == [True]
    await night(store, scope, day=1)
    in_use = await rows(
        store,
        scope,
        "SELECT label, starts_with(derived_key, 'meta:') AS by_prefix FROM memories "
        "WHERE tenant_id = :tenant_id AND derived_key IS NOT NULL AND retired_at IS NULL",
    )
    assert sorted(row["by_prefix"] for row in in_use) == [False, True]
    small = {"meta_nodes": {"topics": True, "topic_smallest": 5}}
    assert (await night(store, scope, day=2, settings=small))["counts"]["meta_nodes_retired"] == 1
    assert await topics(store, scope) == []
