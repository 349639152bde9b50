"""Phrases: how a plain sentence parts into subject, relation and value, learned from the tenant's own text.

Learned are relation phrases that recur between different heads and values ("X is the owner of Y"), and beginnings that
several statements share while their ends differ. There is no list of sentence templates.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from memory_core.layers.normal_text import normalise, normalise_value
from memory_core.shmr.wording import (
    AUXILIARIES,
    FUNCTION_WORDS,
    INDEFINITE,
    MANY_VALUED,
    PERSONS,
    PRONOUNS,
    SINGLE_VALUED,
    split_negation,
    values_of_relation,
    word_key,
)

_CLAUSE = re.compile(r"[;:]|\b(?:that|because|which|who|when|while|if|but|and|or|so)\b|\bto \w+", re.IGNORECASE)
_INSIDE_SENTENCES = re.compile(r"[.!?]\s+[A-Z\"“]")

LONGEST_SENTENCE = 24
LONGEST_VALUE = 8
SHORT_VALUE = 5
MIN_HEADS = 3
MIN_VALUES = 2
MIN_HEADS_TO_JUDGE = 8
"""Heads a relation needs before its values say whether it is single- or many-valued."""

Frame = tuple[tuple[str, ...], tuple[str, ...]]
"""The literal words of a statement: those before its head, and those between head and value."""


@dataclass(frozen=True, slots=True)
class LearnedPhrases:
    """What a tenant's own text teaches about relations.

    Args:
        frames: relation phrases found between several heads and values, and whether they hold many values
            (None: the text does not show it).
        beginnings: first words that at least two statements share while their ends differ.
        named: frames whose values are names or measures nearly always, or which have too few heads to tell.
        frequent: words that occur in at least three statements; only these can be part of a frame.
    """

    frames: Mapping[Frame, bool | None] = field(default_factory=dict)
    beginnings: frozenset[tuple[str, ...]] = frozenset()
    named: frozenset[Frame] = frozenset()
    frequent: frozenset[str] = frozenset()


def learn_phrases(contents: Iterable[str]) -> LearnedPhrases:
    """Learn relation phrases and shared beginnings from statements.

    A phrase counts where it stands between at least three heads and two values. It is made of words that occur in
    three statements or more and are not names. A content word may end it only if the words before it are nearly
    always followed by that word ("is located in the city of" but not "… the city of New"). Time grows with the
    number of statements, since a statement has a bounded number of readings.
    """
    statements = [(words, content) for content in contents if (words := _words(content))]
    counts = Counter(key for words, _ in statements for key in {word_key(word) for word in words})
    frequent = frozenset(key for key, count in counts.items() if count >= MIN_HEADS)
    seen: Counter[Frame] = Counter()
    ends: dict[tuple[str, ...], set[tuple[str, bool]]] = defaultdict(set)
    for words, content in statements:
        affirmed = split_negation(content)[1]
        seen.update({frame for frame, _, _ in _readings(words, frequent)})
        keys = tuple(word_key(word) for word in words)
        for cut in range(2, len(keys)):
            tails = ends[keys[:cut]]
            if len(tails) < MIN_VALUES:
                tails.add((" ".join(keys[cut:]), affirmed))
    heads: dict[Frame, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    names: Counter[Frame] = Counter()
    for words, _ in statements:
        for frame, head, value in _readings(words, frequent):
            if seen[frame] >= MIN_HEADS and not _breaks_off(frame, seen):
                heads[frame][normalise(head)].add(normalise_value(value))
                names[frame] += _is_name(value)
    frames = {
        frame: _many(frame, by_head)
        for frame, by_head in heads.items()
        if len(by_head) >= MIN_HEADS and len(set().union(*by_head.values())) >= MIN_VALUES
    }
    beginnings = frozenset(beginning for beginning, tails in ends.items() if len(tails) >= MIN_VALUES)
    named = frozenset(f for f in frames if len(heads[f]) < MIN_HEADS_TO_JUDGE or names[f] >= 0.8 * seen[f])
    return LearnedPhrases(frames, beginnings, named, frequent)


def parse_sentence(content: str, learned: LearnedPhrases) -> tuple[str, str, str, bool | None] | None:
    """Subject, relation and value of a sentence, and whether the relation holds many values; None where it has none."""
    words = _words(content)
    found = [
        (len(frame[0]) + len(frame[1]), len(frame[1]), frame, head, value)
        for frame, head, value in _readings(words, learned.frequent)
        if frame in learned.frames
    ]
    if found:
        _, _, (lead, middle), head, value = max(found)
        if not _is_settled(head, opens_sentence=not lead):
            return None
        many = learned.frames[lead, middle]
        certain = _is_short(value) and (_is_name(value) or (lead, middle) not in learned.named)
        return head, " ".join((*lead, *middle)), value, many if many or certain else None
    return _aligned(words, learned.beginnings)


def _many(frame: Frame, by_head: Mapping[str, set[str]]) -> bool | None:
    lead, middle = frame
    content = [word for word in (*lead, *middle) if word not in FUNCTION_WORDS]
    # "The capital of X is Y" is judged by "capital"; "X has been Y" says nothing that only one value could hold.
    by_words = values_of_relation(" ".join(content if middle[-1] == "is" and content else middle), named=False)
    sizes = [len(values) for values in by_head.values()]
    if max(sizes) > 3 or sum(sizes) / len(sizes) > 2:
        return True
    if by_words is None and content and len(sizes) >= MIN_HEADS_TO_JUDGE:
        return False
    return by_words


def _breaks_off(frame: Frame, seen: Mapping[Frame, int]) -> bool:
    lead, middle = frame
    if middle[-1] in FUNCTION_WORDS or len(middle) == 1:
        return False
    before = seen.get((lead, middle[:-1]), 0)
    return before > 0 and seen[frame] < 0.9 * before


def _readings(words: list[str], frequent: frozenset[str]) -> Iterator[tuple[Frame, str, str]]:
    keys = [word_key(word) for word in words]
    literal = [key in frequent and (i == 0 or words[i][0].islower()) for i, key in enumerate(keys)]
    auxiliary = next((i for i, key in enumerate(keys) if key in AUXILIARIES), None)
    for start in range(min(5, len(words) - 2)):
        if start and (not literal[start - 1] or keys[start - 1] in AUXILIARIES):
            return
        if start and keys[start - 1] not in FUNCTION_WORDS:
            continue
        for begin in range(start + 1, min(start + 7, len(words) - 1)):
            if begin > start + 1 and keys[begin - 1] in AUXILIARIES:
                break
            if not literal[begin] or (keys[begin] in FUNCTION_WORDS and keys[begin] not in AUXILIARIES):
                continue
            for end in range(begin + 1, min(begin + 9, len(words))):
                if not literal[end - 1]:
                    break
                if len(words) - end > LONGEST_VALUE or (auxiliary is not None and auxiliary >= end):
                    continue
                frame = tuple(keys[:start]), tuple(keys[begin:end])
                yield frame, " ".join(words[start:begin]), " ".join(words[end:])


def _aligned(words: list[str], beginnings: frozenset[tuple[str, ...]]) -> tuple[str, str, str, bool | None] | None:
    keys = tuple(word_key(word) for word in words)
    cut = next((cut for cut in range(len(words) - 1, 1, -1) if keys[:cut] in beginnings), None)
    if cut is None or len(words) - cut > LONGEST_VALUE:
        return None
    split = next((i for i in range(1, cut) if keys[i] in AUXILIARIES), None)
    if split is None:
        split = cut - 1
        while split > 1 and keys[split] in FUNCTION_WORDS:
            split -= 1
    subject, predicate, value = (" ".join(part) for part in (words[:split], words[split:cut], words[cut:]))
    if keys[split] in FUNCTION_WORDS - AUXILIARIES or not _is_settled(subject, opens_sentence=True):
        return None
    hint = values_of_relation(predicate, named=False)
    if predicate.casefold() == "is" and _is_short(value):
        # "The owner of X is Y" names one thing; "X is Y" may say any number of things about X.
        definite = re.search(r"\bof\b|['’]s\b", subject) and _is_name(value)
        if definite or SINGLE_VALUED.search(normalise(subject)):
            return subject, predicate, value, False
        hint = None if any(map(str.isdigit, value)) else hint
    certain = _is_short(value) and _is_name(value) and keys[0] not in PERSONS and not re.search(r"['’]s\b", subject)
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
    inside_name = {i for i in range(1, len(keys) - 1) if keys[i + 1] == "" and words[i - 1][0].isupper()}
    return all(key not in FUNCTION_WORDS or key in ("of", "the") or i in inside_name for i, key in enumerate(keys))


def _is_name(value: str) -> bool:
    """Whether every word with content in a value begins with a capital or holds a digit."""
    words = [word for word in value.split() if word.casefold() not in FUNCTION_WORDS]
    return bool(words) and all(word[0].isupper() or any(map(str.isdigit, word)) for word in words)


def _words(content: str) -> list[str]:
    text = " ".join(unicodedata.normalize("NFC", content).split()).strip(' .!?"“”')
    if _INSIDE_SENTENCES.search(text) and len(text.split()) > LONGEST_SENTENCE // 2:
        return []
    words = split_negation(text)[0].split()
    return words if 3 <= len(words) <= LONGEST_SENTENCE else []


def _is_short(value: str) -> bool:
    return len(value.split()) <= SHORT_VALUE and not _CLAUSE.search(value)
