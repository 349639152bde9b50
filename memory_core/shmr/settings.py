"""SHMR's settings: the seven documented ones by their names and defaults, and our own limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

ENVIRONMENT_ALIASES = ("MNEMOSYNE_SHMR_",)
"""Prefixes of environment variables that are read too, after `SLOWWAVE_SHMR_`."""


class ShmrSettings(BaseModel):
    """How SHMR collects, clusters, harmonises and scores.

    The three thresholds hold for the embedding model `minilm`: `slowwave calibrate` on the sentence pairs and slots of
    `tests/data` measures an F1 of 0.80, 0.98 and 0.98 at these defaults, where the best would be 0.81 (similarity
    0.71), 1 (slots from 0.85) and 1 (harmony from 0.78 to 0.87). Below the best a look too many is taken, and above it
    a conflict is missed, so the documented values stay. Another model has another scale: calibrate it.

    Raises:
        pydantic.ValidationError: a value is out of its range, not a finite number, or a name is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    batch_size: int = Field(50, ge=1, le=100_000, description="Candidates a page; episodes get half as many.")
    max_iterations: int = Field(3, ge=1, le=20, description="Attempts per cluster at a coherent answer.")
    similarity_threshold: float = Field(
        0.70, ge=0.0, le=1.0, description="Cosine of two whole statements from which on they may belong together."
    )
    harmony_threshold: float = Field(0.60, ge=0.0, le=1.0, description="Harmony score from which on beliefs are kept.")
    min_cluster_size: int = Field(2, ge=2, le=1_000, description="Fewest candidates a run or a cluster needs.")
    temperature: float = Field(0.2, ge=0.0, le=2.0, description="Sampling temperature of the model call.")
    model: str = Field("", max_length=500, description="Model for SHMR; empty means the general model setting.")

    slot_similarity_threshold: float = Field(
        0.80, ge=0.0, le=1.0, description="Cosine of two slots (subject and predicate) of one subject."
    )
    max_cluster_size: int = Field(24, ge=2, le=1_000, description="Larger clusters are split.")
    max_beliefs_per_cluster: int = Field(5, ge=1, le=50, description="Beliefs beyond these are rejected.")
    dampen_step: float = Field(0.15, gt=0.0, le=1.0, description="What a dampen takes from a confidence.")
    dampen_floor: float = Field(0.1, ge=0.0, le=1.0, description="A dampen lowers no confidence below this.")
    token_budget: int = Field(6_000, ge=500, le=1_000_000, description="Most tokens of one prompt.")
    max_output_tokens: int = Field(1_500, ge=64, le=100_000, description="Most tokens of one answer.")
    clusters_at_once: int = Field(4, ge=1, le=64, description="Clusters that a model is asked about at the same time.")
    fruitless_in_a_row: int = Field(
        10,
        ge=1,
        le=100_000,
        description="Clusters that may be paid for one after another without a usable answer before the rest waits.",
    )
    duplicate_threshold: float = Field(
        0.95,
        ge=0.5,
        le=1.0,
        description="Cosine from which on two texts of the same words, numbers, names and negation are duplicates.",
    )
