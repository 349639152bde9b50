"""A cluster, or a part of it, as a question to a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from memory_core.errors import InvalidInput
from memory_core.models.language import ModelRequest
from memory_core.shmr.prompt import PROMPT_VERSION, PromptText, build_prompt
from memory_core.shmr.prompt_items import PromptItem
from memory_core.shmr.proposals import RESPONSE_SCHEMA
from memory_core.shmr.settings import ShmrSettings
from memory_core.shmr.stored import StoredCluster

PURPOSE = "harmonize"

TRUST = {True: 1.0, False: 0.7}
"""How far a source is trusted: a person who corrected or confirmed fully, any other by default."""

NOT_SHOWN = ("shortened", "left_out")
"""What a token budget does to a memory."""


def cluster_prompt(
    cluster: StoredCluster,
    positions: Sequence[int],
    critique: Sequence[str],
    settings: ShmrSettings,
    *,
    token_budget: int,
) -> PromptText:
    """The prompt about the members at these positions: corrections first, then the latest.

    Args:
        critique: why the attempt before was turned down.
        token_budget: most tokens of the prompt.

    Raises:
        InvalidInput: not even one memory fits into the token budget.
    """
    order = sorted(
        positions,
        key=lambda i: (
            not cluster.members[i].by_person,
            -cluster.members[i].observed_at.timestamp(),
            cluster.handles[i],
        ),
    )
    items = [
        PromptItem(
            handle=cluster.handles[i],
            subject=member.subject,
            predicate=member.predicate,
            object=member.object,
            content=member.content,
            observed_at=member.observed_at,
            confidence=member.confidence,
            source_trust=TRUST[member.by_person],
            is_correction=member.by_person,
            read_only=member.read_only,
        )
        for i in order
        for member in (cluster.members[i],)
    ]
    for number in range(3):
        # A text that holds the hash of its own cluster cannot be met by accident; a second nonce costs nothing.
        nonce = hashlib.sha256(f"{cluster.fingerprint}:{PROMPT_VERSION}:{number}".encode()).hexdigest()[:16]
        if not any(nonce in member.content for member in cluster.members):
            return build_prompt(
                items,
                nonce=nonce,
                critique=critique,
                token_budget=token_budget,
                max_beliefs=settings.max_beliefs_per_cluster,
            )
    raise InvalidInput("The memories of a cluster contain every nonce of their prompt.")


def cluster_request(model: str, prompt: PromptText, settings: ShmrSettings, *, room: int) -> ModelRequest:
    """The request of a prompt; `room` is the most tokens of the answer."""
    return ModelRequest(
        purpose=PURPOSE,
        model=model,
        system=prompt.system,
        prompt=prompt.prompt,
        response_schema=RESPONSE_SCHEMA,
        temperature=settings.temperature,
        max_output_tokens=room,
        schema_version=PROMPT_VERSION,
    )


def not_shown(prompt: PromptText, attempt: int) -> list[dict[str, Any]]:
    """What the token budget took from a prompt, to be kept with the cluster: one entry, or none where it took nothing.

    Returns:
        attempt, reason (`not_all_shown`), and the handles of memories `shortened` and `left_out`.
    """
    if not prompt.truncated:
        return []
    handles = {what: [each.handle for each in prompt.truncated if each.what == what] for what in NOT_SHOWN}
    return [{"attempt": attempt, "reason": "not_all_shown", **handles}]


def first_request(model: str, cluster: StoredCluster, settings: ShmrSettings) -> ModelRequest:
    """What is asked first about a cluster.

    Raises:
        InvalidInput: as `cluster_prompt`.
    """
    everything = range(len(cluster.members))
    prompt = cluster_prompt(cluster, everything, (), settings, token_budget=settings.token_budget)
    return cluster_request(model, prompt, settings, room=settings.max_output_tokens)
