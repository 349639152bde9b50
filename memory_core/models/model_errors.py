"""The border to LiteLLM: how it is loaded, and what its exceptions mean in our tree.

Both adapters (language and embedding) go through here, so that a rate limit is the same error wherever it happens.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

from memory_core.errors import (
    DependencyMissing,
    ModelOutputInvalid,
    ModelRateLimited,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    SlowwaveError,
)

_MAX_DETAIL = 300
_SECRET = re.compile(r"(sk-|key-|Bearer\s+)[A-Za-z0-9_\-*.]{4,}")


def load_litellm() -> Any:
    """The litellm module, imported now if it was not before (several seconds and 200 MB the first time).

    Imported as it comes, it fetches a price table over the network, reads a `.env` file from the folder it is started
    in, warns of its own types, and prints advice to stdout on every error; all of that is switched off.

    Raises:
        DependencyMissing: litellm is not installed.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    # For good, not around this import alone: parts of it are imported by the first call.
    warnings.filterwarnings("ignore", message=".*ReadOnly.* qualifier", category=UserWarning)
    try:
        import litellm
    except ImportError as error:
        raise DependencyMissing("The package litellm is not installed.", hint="Run: pip install litellm") from error
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


def model_error(error: BaseException, *, model: str, timeout: float | None = None) -> SlowwaveError:
    """What an exception of a LiteLLM call means.

    Args:
        error: the exception.
        model: the model that was asked.
        timeout: the limit in seconds, for the message of a timeout.

    Returns:
        An error to raise from the given one. Its data holds `model`, `status` where there was one, and `reason` or
        `retry_after` where they apply. Keys are blacked out of the message.
    """
    if isinstance(error, SlowwaveError):
        return error
    litellm = load_litellm()
    kinds = litellm.exceptions
    status = getattr(error, "status_code", None)
    data: dict[str, Any] = {"model": model}
    if isinstance(status, int):
        data["status"] = status
    detail = _detail(error)
    if isinstance(error, (kinds.Timeout, TimeoutError)) or status == 408:
        within = "" if timeout is None else f" within {timeout:g} s"
        return ModelTimeout(f"{model!r} did not answer{within}.", hint="Try again, or raise the timeout.", **data)
    if isinstance(error, kinds.RateLimitError) or status == 429:
        return ModelRateLimited(
            f"The provider of {model!r} asked us to slow down: {detail}", retry_after=_retry_after(error), **data
        )
    if isinstance(error, kinds.ContentPolicyViolationError):
        return ModelOutputInvalid(f"The provider's filter refused to call {model!r}.", reason="content_filter", **data)
    if isinstance(error, (kinds.APIResponseValidationError, kinds.JSONSchemaValidationError)):
        return ModelOutputInvalid(f"{model!r} sent something that is no answer: {detail}", reason="malformed", **data)
    if isinstance(error, kinds.ContextWindowExceededError):
        return ModelRejected(
            f"The prompt is too long for {model!r}.", hint="Lower the prompt's token budget.", reason="too_long", **data
        )
    if isinstance(error, (kinds.AuthenticationError, kinds.PermissionDeniedError)) or status in (401, 403):
        return ModelRejected(
            f"The provider of {model!r} refused the key: {detail}",
            hint="Check the model's API key.",
            reason="key",
            **data,
        )
    if isinstance(error, (kinds.NotFoundError, kinds.LiteLLMUnknownProvider)) or status == 404:
        return ModelRejected(
            f"There is no model {model!r} at this provider: {detail}",
            hint="Names look like provider/model, such as openai/gpt-4o-mini or ollama/llama3.1.",
            reason="unknown_model",
            **data,
        )
    if isinstance(error, kinds.APIConnectionError) or (isinstance(status, int) and status >= 500):
        return ModelUnreachable(
            f"The provider of {model!r} cannot be reached: {detail}", hint="Check that it is running.", **data
        )
    return ModelRejected(f"The provider of {model!r} did not take the call: {detail}", reason="bad_request", **data)


def _detail(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split()) or type(error).__name__
    return _SECRET.sub(r"\1…", text)[:_MAX_DETAIL]


def _retry_after(error: BaseException) -> float | None:
    """Seconds from the Retry-After header; None where it is absent, a date, or nonsense."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        value = (headers or {}).get("retry-after")
        if value is None:
            continue
        try:
            seconds = float(value)
        except ValueError:
            continue
        if 0 <= seconds < 86_400:
            return seconds
    return None
