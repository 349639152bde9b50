"""What `slowwave reflect` says on a terminal, from the document that --json prints."""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.cli.output import day_and_time, plain, say
from memory_core.cli.view_texts import Document, cut


def reflection(document: Document) -> None:
    """The answer, what it rests on, what speaks against it, what was so before, and what is missing."""
    for line in _lines(document):
        print(plain(line))
    if document["reason"]:
        say(f"note: {document['reason']}")


def _lines(document: Document) -> Iterable[str]:
    if document["answer"] is None:
        yield "Nothing is known that could answer it."
    else:
        yield from document["answer"].splitlines()
    if document["evidence"]:
        yield ""
        yield "Evidence"
    for fact in document["evidence"]:
        sure = "" if fact["confidence"] is None else f", confidence {fact['confidence']:.2f}"
        yield f"  {fact['handle']}  {cut(fact['content'])}"
        yield f"      {fact['kind']} ({fact['status']}{sure}) {fact['id'] or ''}, observed {_day(fact)}"
        for piece in fact["memories"]:
            if piece["role"] != "superseded":
                yield f"      {piece['role']}: {cut(piece['content'])} ({piece['memory_id']}, {_day(piece)})"
    cited = {fact["handle"] for fact in document["evidence"]}
    others = [item for item in document["contradictions"] if item["handle"] not in cited]
    if others:
        yield "Contested beside it"
    for item in others:
        yield f"  {cut(item['content'])} ({item['id']})"
    if document["earlier"]:
        yield "Earlier, and no longer so"
    for piece in document["earlier"]:
        yield f"  {cut(piece['content'])} ({piece['memory_id']}, {_day(piece)})"
    if document["gaps"]:
        yield "What is missing"
    for gap in document["gaps"]:
        yield f"  {gap}"


def _day(item: Document) -> str:
    return day_and_time(item["observed_at"]) or "at a time that is not known"
