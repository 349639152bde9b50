"""The embedding port, its factory, and the hash embedding."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import (
    EmbeddingMismatch,
    InvalidSettings,
    ModelOutputInvalid,
)
from memory_core.models.embedding import EmbeddingProvider, RecentVectors, embedding_provider, prepared_text, unit_rows
from memory_core.models.hashing import HashEmbedding

# --- the port's own functions ---


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_with_its_place(bad: float) -> None:
    """One NaN or infinity in a model's answer stops the whole answer and says which text it was for."""
    rows = np.ones((3, 4))
    rows[1, 2] = bad
    with pytest.raises(ModelOutputInvalid, match=r"text 1 .* not finite") as caught:
        unit_rows(rows, model="m", dimension=4)
    assert caught.value.data["position"] == 1


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.zeros((1, 4)), ModelOutputInvalid, "all zeros"),
        (np.ones((2, 3)), EmbeddingMismatch, "3 dimensions where 4"),
        ([[1.0, 2.0, 3.0, 4.0], [1.0]], ModelOutputInvalid, "other than vectors"),
        ([["a", "b", "c", "d"]], ModelOutputInvalid, "other than vectors"),
        (np.ones(4), ModelOutputInvalid, "shape"),
        (np.ones((1, 0)), ModelOutputInvalid, "shape"),
    ],
)
def test_unusable_answers_are_refused(values: Any, error: type[Exception], message: str) -> None:
    """What is not one finite, non-zero vector of the right dimension for each text raises the error that says so."""
    with pytest.raises(error, match=message):
        unit_rows(values, model="m", dimension=4)


@given(
    st.lists(
        st.lists(st.floats(-1e300, 1e300), min_size=5, max_size=5).filter(lambda row: max(map(abs, row)) > 1e-300),
        min_size=1,
        max_size=6,
    )
)
def test_rows_have_length_one_and_do_not_see_each_other(rows: list[list[float]]) -> None:
    """Any finite row, however large or small, is scaled to length 1, with the same bits alone as among others."""
    together = unit_rows(rows, model="m", dimension=5)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together.astype(float), axis=1), 1.0, atol=1e-6)
    for row, expected in zip(rows, together, strict=True):
        assert np.array_equal(unit_rows([row], model="m", dimension=5)[0], expected)


def test_text_is_prepared_for_any_encoder() -> None:
    """Decomposed letters are composed, NUL goes, and a lone surrogate becomes the replacement character."""
    assert prepared_text("cafe\u0301 a\0b 🎉") == "café ab 🎉"
    prepared_text("broken \ud83d").encode()


def test_recent_vectors_forget_the_oldest_and_keep_the_first() -> None:
    """The cache holds its capacity, drops what was asked for longest ago, and never replaces a vector it holds."""
    recent = RecentVectors(capacity=2)
    one, two, three = (np.full(2, number, dtype=np.float32) for number in (1, 2, 3))
    recent.put("a", one)
    recent.put("b", two)
    assert recent.put("a", three) is one
    recent.put("c", three)
    assert recent.get("b") is None
    assert recent.get("a") is one


# --- the factory ---


@pytest.mark.parametrize(
    ("name", "model", "dimension", "network"),
    [
        ("minilm", "minilm", 384, False),
        ("hash", "hash:64", 64, False),
        ("hash:256", "hash:256", 256, False),
        ("litellm:openai/some-model", "litellm:openai/some-model", 0, True),
        ("litellm:ollama/some-model:v1.5", "litellm:ollama/some-model:v1.5", 0, True),
        ("fastembed:BAAI/bge-small-en-v1.5", "fastembed:BAAI/bge-small-en-v1.5", 0, True),
    ],
)
def test_the_factory_builds_what_is_named(name: str, model: str, dimension: int, network: bool) -> None:
    """Each documented name gives a provider that knows its stored name, its dimension and its need of a network."""
    provider = embedding_provider(name)
    assert isinstance(provider, EmbeddingProvider)
    assert (provider.model, provider.dimension, provider.network) == (model, dimension, network)


@pytest.mark.parametrize(
    "name",
    ["", "bert", "minilm:large", "hash:", "hash:x", "hash:-64", "hash:8", "hash:5000", "litellm:", "fastembed: "],
)
def test_the_factory_refuses_other_names(name: str) -> None:
    """An unknown or incomplete name is a wrong setting, and the error shows what is possible."""
    with pytest.raises(InvalidSettings) as caught:
        embedding_provider(name)
    assert "hash" in str(caught.value)
    assert caught.value.data["setting"] == "embedding"


def test_a_service_on_this_machine_needs_no_network() -> None:
    """Only an address of the machine's own loop counts as offline."""
    for address, network in (
        ("http://localhost:11434", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://localhost.example.com/v1", True),
        ("https://models.example.com/v1", True),
    ):
        assert embedding_provider("litellm:openai/x", api_base=address).network is network


# --- hash ---

texts_of_any_kind = st.lists(st.text(max_size=40), max_size=12)


@given(texts=texts_of_any_kind, order=st.randoms(use_true_random=False))
def test_hash_vectors_depend_on_their_text_alone(texts: list[str], order: Any) -> None:
    """For any text at all, the vector is finite, of length 1, and the same in any company and order."""
    provider = HashEmbedding(32)
    together = asyncio.run(provider.embed(texts))
    assert together.shape == (len(texts), 32)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    shuffled = list(range(len(texts)))
    order.shuffle(shuffled)
    assert np.array_equal(asyncio.run(provider.embed([texts[position] for position in shuffled])), together[shuffled])


def test_hash_vectors_are_the_same_in_every_process() -> None:
    """Another process, with another hash seed of Python, computes the same bits."""
    program = (
        "import asyncio, hashlib; from memory_core.models.hashing import HashEmbedding;"
        "vectors = asyncio.run(HashEmbedding(64).embed(['The cat sat.', '', 'Ünïcode 🎉']));"
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": "4711", "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    here = asyncio.run(HashEmbedding(64).embed(["The cat sat.", "", "Ünïcode 🎉"])).tobytes()
    assert done.stdout.strip() == hashlib.sha256(here).hexdigest()


async def test_hash_similarity_follows_shared_words() -> None:
    """More words in common, and in the same order, mean more similar; case and accents' spelling do not matter."""
    base, same, close, reordered, far = await HashEmbedding(1024).embed(
        [
            "Mira drinks green tea at the café",
            "MIRA DRINKS GREEN TEA AT THE CAFE\u0301",
            "Mira drinks black tea at the café",
            "at the café green tea drinks Mira",
            "The quarterly invoice bounced twice",
        ]
    )
    assert np.array_equal(base, same)
    assert base @ close > 0.6
    assert 0.6 < base @ reordered < 0.999
    assert abs(base @ far) < 0.3


async def test_hash_tells_wordless_texts_apart() -> None:
    """Emoji and punctuation have vectors of their own, and blank texts share one."""
    party, cake, empty, spaces = await HashEmbedding(256).embed(["🎉", "🍰", "", " \n"])
    assert party @ cake < 0.5
    assert np.array_equal(empty, spaces)
