"""Keeps a fact's triple true when its sentence is edited."""

from __future__ import annotations


def edited_object(content: str, object: str, edited: str) -> str | None:
    """The object of an edited sentence, where nothing but the object was edited.

    "Ann lives in Leeds" with the object "Leeds", edited to "Ann lives in Porto", has the object "Porto".

    Args:
        content: the sentence as it was.
        object: its triple's object.
        edited: the sentence as it is now.

    Returns:
        the new object; None where the object is not in the sentence exactly once, or more was edited.
    """
    if content.count(object) != 1:
        return None
    before, after = content.split(object)
    middle = edited.removeprefix(before).removesuffix(after) if after else edited.removeprefix(before)
    if before + middle + after != edited or not middle.strip():
        return None
    return middle.strip()
