"""Phrases: how a plain sentence parts into subject, relation and value, learned from the tenant's own text.

Learned are relation phrases that recur between different heads and values ("X is the owner of Y"), which of these say
the same relation in other words (`relations`), and beginnings that several statements share while their ends differ.
There is no list of sentence templates.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core.layers.components import Vectors
from memory_core.layers.normal_text import normalise, normalise_value
from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS, word_key
from memory_core.shmr.alike_frames import MIN_HEADS, Said
from memory_core.shmr.readings import POSSESSIVE, Frame, Reading, readings, text_of, tokens_of
from memory_core.shmr.relations import MIN_HEADS_TO_JUDGE, Relation, relations_of
from memory_core.shmr.wording import (
    INDEFINITE,
    MANY_VALUED,
    PERSONS,
    PRONOUNS,
    SINGLE_VALUED,
    split_negation,
    values_of_relation,
)

_CLAUSE = re.compile(r"[;:]|\b(?i:that|because|which|who|when|while|if|but|and|or|so)\b|\b[Tt]o [a-z]+")

SHORT_VALUE = 5
LONGEST_ALIGNED_VALUE = 8
MIN_VALUES = 2
MIN_NAMES = 0.8
"""Share of a relation's values that are names or measures from which on another kind of value is not trusted."""


@dataclass(frozen=True, slots=True)
class LearnedPhrases:
    """What a tenant's own text teaches about relations.

    Args:
        frames: the relation that each learned frame says.
        beginnings: first words that at least two statements share while their ends differ.
        named: frames whose values are names or measures nearly always.
        frequent: words that occur in at least three statements; only these can be part of a frame.
        read: how each statement that was learned from is read, by its content.
    """

    frames: Mapping[Frame, Relation] = field(default_factory=dict)
    beginnings: frozenset[tuple[str, ...]] = frozenset()
    named: frozenset[Frame] = frozenset()
    frequent: frozenset[str] = frozenset()
    read: Mapping[str, Reading | None] = field(default_factory=dict, repr=False, compare=False)


def learn_phrases(
    contents: Iterable[str], vectors: Vectors | None = None, times: Sequence[float] | None = None
) -> LearnedPhrases:
    """Learn relation phrases and shared beginnings from statements.

    A phrase counts where it stands between at least three heads and two values. It is made of words that occur in
    three statements or more and are not names. Of the readings of a sentence the one with the most literal words
    wins, where each end of a phrase holds: a content word may end (or begin) it only if the words before (after) it
    are nearly always followed (preceded) by that word ("is located in the city of" but not "… the city of New").
    Time grows with the number of statements, since a statement has a bounded number of readings.

    Args:
        contents: n statements.
        vectors: shape (n, d), their vectors; with them, phrases that say the same in other words are linked.
        times: n times in any unit; with them, values that are said again after others are seen to stand side by side.
    """
    statements = [(row, tokens, content) for row, content in enumerate(contents) if (tokens := tokens_of(content))]
    counts = Counter(key for _, tokens, _ in statements for key in {word_key(token) for token in tokens})
    frequent = frozenset(key for key, count in counts.items() if count >= MIN_HEADS)
    found = [(row, list(readings(tokens, frequent))) for row, tokens, _ in statements]
    seen = Counter(frame for _, each in found for frame in {reading.frame for reading in each})
    holding = {frame for frame, count in seen.items() if count >= MIN_HEADS and not _breaks_off(frame, seen)}
    heads: dict[Frame, set[str]] = defaultdict(set)
    values: dict[Frame, set[str]] = defaultdict(set)
    for _, each in found:
        for reading in each:
            if reading.frame in holding:
                heads[reading.frame].add(reading.head)
                values[reading.frame].add(reading.value)
    frames = {frame for frame in holding if len(heads[frame]) >= MIN_HEADS and len(values[frame]) >= MIN_VALUES}
    said: dict[Frame, list[Said]] = defaultdict(list)
    names: Counter[Frame] = Counter()
    read: dict[str, Reading | None] = {}
    for (row, _, content), (_, each) in zip(statements, found, strict=True):
        best = read[content] = _best(each, frames)
        if best is not None:
            at = 0.0 if times is None else times[row]
            said[best.frame].append(Said(row, normalise(best.head), normalise_value(best.value), at))
            names[best.frame] += _is_name(best.value)
    named = frozenset(
        frame for frame, each in said.items() if len(each) < MIN_HEADS_TO_JUDGE or names[frame] >= MIN_NAMES * len(each)
    )
    return LearnedPhrases(relations_of(said, vectors), _shared_beginnings(statements), named, frequent, read)


def parse_sentence(content: str, learned: LearnedPhrases) -> tuple[str, str, str, bool | None] | None:
    """Subject, relation and value of a sentence, and whether the relation holds many values; None where it has none."""
    if content in learned.read:
        best = learned.read[content]
    else:
        best = _best(readings(tokens_of(content), learned.frequent), learned.frames)
    if best is None:
        return _aligned(tokens_of(content), learned.beginnings)
    if not _is_settled(best.head, opens_sentence=not best.frame.lead):
        return None
    relation = learned.frames[best.frame]
    subject, value = (best.value, best.head) if relation.inverted else (best.head, best.value)
    if relation.inverted and not _is_settled(subject, opens_sentence=False):
        return None
    certain = _is_short(value) and (_is_name(value) or best.frame not in learned.named or relation.settled)
    return subject, relation.name, value, relation.many if relation.many or certain else None


def _best(found: Iterable[Reading], frames: Mapping[Frame, object] | set[Frame]) -> Reading | None:
    return max(
        (reading for reading in found if reading.frame in frames),
        key=lambda each: (each.frame.size, len(each.frame.middle), str(each.frame), each.head, each.value),
        default=None,
    )


def _breaks_off(frame: Frame, seen: Mapping[Frame, int]) -> bool:
    """Whether an end of the frame is only a word that often stands beside a shorter phrase."""
    lead, middle, tail = frame.lead, frame.middle, frame.tail
    if tail and seen.get(Frame(lead, middle, tail[1:]), 0) * 0.9 > seen[frame]:
        return True
    if len(middle) == 1:
        return False
    if middle[-1] not in FUNCTION_WORDS and seen.get(Frame(lead, middle[:-1], tail), 0) * 0.9 > seen[frame]:
        return True
    if middle[0] in FUNCTION_WORDS or middle[0] == POSSESSIVE:
        return False
    rest = Frame(lead, middle[1:], tail)
    return bool(rest.content) and seen.get(rest, 0) * 0.5 > seen[frame]


def _shared_beginnings(statements: Iterable[tuple[int, list[str], str]]) -> frozenset[tuple[str, ...]]:
    ends: dict[tuple[str, ...], set[tuple[str, bool]]] = defaultdict(set)
    for _, tokens, content in statements:
        affirmed = split_negation(content)[1]
        keys = tuple(word_key(token) for token in tokens)
        for cut in range(2, len(keys)):
            tails = ends[keys[:cut]]
            if len(tails) < MIN_VALUES:
                tails.add((" ".join(keys[cut:]), affirmed))
    return frozenset(beginning for beginning, tails in ends.items() if len(tails) >= MIN_VALUES)


def _aligned(tokens: list[str], beginnings: frozenset[tuple[str, ...]]) -> tuple[str, str, str, bool | None] | None:
    keys = tuple(word_key(token) for token in tokens)
    cut = next((cut for cut in range(len(tokens) - 1, 1, -1) if keys[:cut] in beginnings), None)
    if cut is None or len(tokens) - cut > LONGEST_ALIGNED_VALUE:
        return None
    split = next((i for i in range(1, cut) if keys[i] in AUXILIARIES), None)
    if split is None:
        split = cut - 1
        while split > 1 and keys[split] in FUNCTION_WORDS:
            split -= 1
    subject, predicate, value = (text_of(part) for part in (tokens[:split], tokens[split:cut], tokens[cut:]))
    if keys[split] in FUNCTION_WORDS - AUXILIARIES or not _is_settled(subject, opens_sentence=True):
        return None
    hint = values_of_relation(predicate, named=False)
    if predicate.casefold() == "is" and _is_short(value):
        # "The owner of X is Y" names one thing; "X is Y" may say any number of things about X.
        definite = re.search(r"\bof\b|'s\b", subject) and _is_name(value)
        if definite or SINGLE_VALUED.search(normalise(subject)):
            return subject, predicate, value, False
        hint = None if any(map(str.isdigit, value)) else hint
    certain = _is_short(value) and _is_name(value) and keys[0] not in PERSONS and not re.search(r"'s\b", subject)
    return subject, predicate, value, hint if hint or certain else None


def _is_settled(subject: str, *, opens_sentence: bool) -> bool:
    """Whether a sentence's subject means one thing: no pronoun, question, clause, wish or "some"."""
    words = subject.split()
    # A capital inside a sentence marks a name, whose words mean nothing here ("Our Mutual Friend", "The Who").
    keys = ["" if word[0].isupper() and (i or not opens_sentence) else word_key(word) for i, word in enumerate(words)]
    if keys[0] in AUXILIARIES or keys[-1] in FUNCTION_WORDS or not (INDEFINITE | PRONOUNS).isdisjoint(keys):
        return False
    if keys[0] in PERSONS and not MANY_VALUED.isdisjoint(keys):
        # "my friend", "our project": there may be more of them.
        return False
    named = [i for i, key in enumerate(keys) if key == ""]
    inside_name = range(named[0], named[-1]) if named else range(0)
    return all(key not in FUNCTION_WORDS or key in ("of", "the") or i in inside_name for i, key in enumerate(keys))


def _is_name(value: str) -> bool:
    """Whether a value is a name or a measure: it ends in a word with a capital or digit, and begins with one too.

    Smaller words may stand between them ("Stoke upon Trent"), and one may stand before a single name ("ancient Rome").
    """
    words = value.split()
    if not words or (words[0].casefold() in FUNCTION_WORDS and words[0].casefold() not in ("the", "a", "an")):
        return False
    content = [word for word in words if word.casefold() not in FUNCTION_WORDS]
    marked = [word[0].isupper() or any(map(str.isdigit, word)) for word in content]
    ends = bool(content) and marked[0] and marked[-1]
    return ends or (marked == [False, True] and len(words) == 2)


def _is_short(value: str) -> bool:
    longest = LONGEST_ALIGNED_VALUE if _is_name(value) else SHORT_VALUE
    return len(value.split()) <= longest and not _CLAUSE.search(value)
