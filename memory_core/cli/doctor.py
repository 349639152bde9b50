"""The checks of `slowwave doctor`: one function a subject, each with what it found and what to do about it.

A check that cannot be made because an earlier one found a problem says so, instead of failing with a worse message.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from memory_core.cli.doctor_database import examine_database
from memory_core.cli.findings import Finding, not_checked, problem
from memory_core.errors import SlowwaveError

if TYPE_CHECKING:
    from memory_core.settings import Settings

OLDEST_PYTHON, FIRST_PYTHON_TOO_NEW = (3, 11), (3, 14)
PREFECT_ANSWERS_WITHIN = 5.0


async def examine(load: Callable[[], Settings]) -> list[Finding]:
    """Make every check, in order; what fails is a finding, never an exception.

    Args:
        load: reads the settings; a setting that is not valid is a finding too.
    """
    findings = [_python()]
    try:
        settings = load()
    except SlowwaveError as error:
        return [*findings, problem("settings", error), *not_checked("every other check", "settings")]
    findings += [_settings(settings), _home(settings)]
    findings += await examine_database(settings)
    findings += [await _embedding(settings), *_language(settings), _prefect()]
    return findings


def _python() -> Finding:
    found = f"Python {platform.python_version()} at {sys.executable}"
    if OLDEST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_TOO_NEW:
        return Finding("python", "ok", found)
    return Finding("python", "problem", found, "Use Python 3.11, 3.12 or 3.13.")


def _settings(settings: Settings) -> Finding:
    from memory_core.night.sections import check_sections
    from memory_core.settings import SETTINGS_FILE

    try:
        check_sections(settings)
    except SlowwaveError as error:
        return problem("settings", error)
    given = sorted(name for name in os.environ if name.startswith(("SLOWWAVE_", "MNEMOSYNE_SHMR_", "SHMR_MODEL")))
    places = [f"{len(given)} from the environment ({', '.join(given)})"] if given else []
    if (settings.home / SETTINGS_FILE).exists():
        places.append(f"the file {settings.home / SETTINGS_FILE}")
    return Finding("settings", "ok", "valid: " + (" and ".join(places) if places else "all at their defaults"))


def _home(settings: Settings) -> Finding:
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home):
            pass
    except OSError as error:
        return Finding(
            "home",
            "problem",
            f"{settings.home} cannot be written: {error.strerror}",
            "Set SLOWWAVE_HOME to a folder that you may write, or run as its owner.",
        )
    return Finding("home", "ok", f"{settings.home} can be written")


async def _embedding(settings: Settings) -> Finding:
    from memory_core.night.context import embedding_for

    started = time.perf_counter()
    try:
        provider = embedding_for(settings)
        vectors = await provider.embed(["Is anybody there?"])
    except SlowwaveError as error:
        return problem("embedding", error)
    took = time.perf_counter() - started
    reach = "over the network" if provider.network else "on this machine"
    return Finding(
        "embedding", "ok", f"{provider.model}: {vectors.shape[1]} dimensions, {reach}, {took:.1f} s to load and embed"
    )


def _language(settings: Settings) -> list[Finding]:
    from memory_core.night.context import language_for, language_named_by

    try:
        model = language_for(settings, {}, {})
    except SlowwaveError as error:
        return [problem("language model", error)]
    network = settings.embedding.startswith(("litellm:", "fastembed:"))
    if model is None:
        quiet = "" if network else "; nothing leaves this machine"
        return [Finding("language model", "ok", f"none: beliefs are decided by rules{quiet}")]
    named_by = language_named_by(settings)
    found = (
        f"{model.name} (from {named_by}); what a cluster holds is sent there. If it fails: {settings.on_model_failure}"
    )
    return [Finding("language model", "note", found)]


def _prefect() -> Finding:
    address = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    if not address:
        return Finding("prefect", "ok", "no server configured: nights run in this process (or with --flow)")
    do = "Start it, correct PREFECT_API_URL, or unset it to run nights in this process."
    if not address.startswith(("http://", "https://")):
        return Finding("prefect", "problem", f"PREFECT_API_URL is {address!r}, which is no HTTP address", do)
    try:
        with urlopen(f"{address}/health", timeout=PREFECT_ANSWERS_WITHIN) as response:
            healthy = response.status == 200
    except (URLError, OSError) as error:
        return Finding("prefect", "problem", f"{address} does not answer: {getattr(error, 'reason', error)}", do)
    if not healthy:
        return Finding("prefect", "problem", f"{address} answers, but is not healthy", do)
    return Finding("prefect", "ok", f"{address} answers")
