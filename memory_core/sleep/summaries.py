"""Says what a group of memories holds in the words of its most central members. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class Summary:
    """An extractive summary.

    Attributes:
        content: the text.
        cited: positions of the members it quotes, in the order in which they were given.
    """

    content: str
    cited: tuple[int, ...]


def summarise(name: str, member_count: int, texts: Sequence[str], *, length: int, quote_length: int) -> Summary:
    """Quote texts, the most central first, as far as the length allows.

    Args:
        name: what the members have in common.
        member_count: how many members there are, those without a text here included.
        texts: members' contents, the most central first; repeated ones are quoted once.
        length: characters of the whole, at most; the first quotation is always there.
        quote_length: characters of one quotation, at most.
    """
    content = f"{name}, {member_count} memories: "
    seen: set[str] = set()
    cited: list[int] = []
    for position, text in enumerate(texts):
        quotation = shortened(text, quote_length)
        if quotation.casefold() in seen:
            continue
        added = f"{SEPARATOR if cited else ''}{quotation}"
        if cited and len(content) + len(added) > length:
            continue
        seen.add(quotation.casefold())
        cited.append(position)
        content += added
    return Summary(content.rstrip(), tuple(cited))


def shortened(text: str, length: int) -> str:
    """The text on one line, cut at a word where it is longer than `length` characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    at_word = cut[: cut.rfind(" ")] if " " in cut[length // 2 :] else cut
    return f"{at_word.rstrip(' ,;:')}…"
