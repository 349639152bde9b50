"""Errors: one tree, picklable, with what a program wants as data."""

from __future__ import annotations

import inspect
import pickle

import pytest

from memory_core import errors
from memory_core.errors import PermanentError, SlowwaveError, TransientError

EVERY = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SlowwaveError)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind: type[SlowwaveError]) -> None:
    """Prefect ships errors between processes; message, hint and data arrive."""
    error = pickle.loads(pickle.dumps(kind("It broke.", hint="Mend it.", number=3)))
    assert type(error) is kind
    assert (str(error), error.to_dict()) == (
        "It broke. Mend it.",
        {"error": kind.__name__, "message": "It broke.", "hint": "Mend it.", "number": 3},
    )


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_the_docstring_is_the_default_message(kind: type[SlowwaveError]) -> None:
    """An error raised without words still says something."""
    assert str(kind()).endswith(".")


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind is not SlowwaveError], ids=lambda kind: kind.__name__)
def test_each_error_is_transient_or_permanent(kind: type[SlowwaveError]) -> None:
    """The one question of the retry policy has one answer."""
    assert issubclass(kind, TransientError) != issubclass(kind, PermanentError)


def test_the_tree_in_the_docstring_is_complete() -> None:
    """The drawing at the top of the module names every class."""
    for kind in EVERY:
        assert kind.__name__ in (errors.__doc__ or "")
