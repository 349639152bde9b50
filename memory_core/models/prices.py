"""What tokens cost, by the price table that comes with LiteLLM."""

from __future__ import annotations

from memory_core.models.model_errors import load_litellm


def price(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """US dollars; None where the table knows no price. Loads LiteLLM where it is not loaded yet (some seconds).

    Args:
        model: one name, or several joined by commas: the dearest known one counts, since it may be the one that
            answers.
        prompt_tokens: tokens read.
        completion_tokens: tokens written.
    """
    litellm = load_litellm()
    known: list[float] = []
    for name in model.split(","):
        try:
            parts = litellm.cost_per_token(model=name, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        except Exception:
            # LiteLLM raises a bare Exception for a model without a price; "unknown" is an answer here, not a failure.
            continue
        known.append(float(sum(parts)))
    return max(known, default=None)
