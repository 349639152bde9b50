"""Clauses: a plain sentence parted into who it is about, what it says, and whether it affirms or denies it.

Read from word classes alone, without learned phrases, so that two sentences can be compared where a tenant has no
more than these two. It is a reading, not a parse: what it gives may be contested or held, never retired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memory_core.layers.normal_text import MONTH, normalise_value
from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS, words_of
from memory_core.shmr.expressions import expression_of, one_sentence
from memory_core.shmr.lemmas import can_be, lemmas, verb_of
from memory_core.shmr.word_groups import BARE_VERBS, CONVERSE, EMPTY_WORDS, ENDINGS, PLANNING, SAME_GROUPS
from memory_core.shmr.wording import INDEFINITE, split_qualifier

LONGEST_CLAUSE = 30

_TIME = (
    rf"(?:{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|spring|summer|autumn|winter|morning|"
    r"afternoon|evening|night|week|month|year|quarter|(?:\d{4}-)?\d{2}-\d{2}|(?:19|20)\d{2}|q[1-4]|\d{2}:\d{2})"
)
_LEADING_TIME = re.compile(
    rf"^((?:(?:on|in|at|every|each|last|this|next|since|until|by|during)\s+(?:the\s+|a\s+)?)+{_TIME}(?:\s+\d{{4}})?),?\s+"
)
TIME_WORD = re.compile(rf"^{_TIME}s?$")
"""A word of a normalised text that says when."""

_SUBORDINATE = re.compile(
    r"^(?:if|when|unless|although|because|maybe|perhaps|what|why|how|who|where|is|are|does|do|did)\b"
)
_ADDING = re.compile(r"\b(?:too|also|as well|another|additionally|second|both)\b")
_DETERMINERS = words_of("a an the my our your his her its their this that these those every each some any no another")
_PLURAL_SUBJECTS = words_of("i we you they people")
_SPEAKER = words_of("i me my mine user user's")


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence as a clause.

    Attributes:
        subject: base words of the subject, without articles; the speaker ("I", "the user") is "user".
        verb: base form of its verb; "be" for a copula, "" where none was found.
        past: the verb is in the past tense, without an auxiliary of the present.
        rest: the words after the verb, lower case, in order, without the times at their end.
        times: the words of these times ("on", "monday"); empty where the time is all that is said ("starts at 08:00").
        affirmed: False where an odd number of negations (or an ending: "stopped", "left") denies it.
        hedged: a condition, a question or a guess, which settles nothing.
        adds: it says that it comes on top of something ("too", "also", "another").
        passive: its subject is what is done to.
        active: the same said of the one who does it, where a passive names that one ("was written by Katrin").
        names: words of the sentence that are names or hold digits, lower case.
    """

    subject: tuple[str, ...]
    verb: str
    past: bool
    rest: tuple[str, ...]
    times: tuple[str, ...]
    affirmed: bool
    hedged: bool
    adds: bool
    passive: bool
    names: frozenset[str]
    active: Clause | None = None


def clause_of(content: str) -> Clause | None:
    """The clause of a sentence; None for several sentences, fewer than two words or more than `LONGEST_CLAUSE`."""
    sentence = one_sentence(content)
    if sentence is None:
        return None
    expression = expression_of(sentence)
    text, affirmed, names = expression.text, expression.affirmed, _names(sentence)
    adds = bool(_ADDING.search(text))
    time = _LEADING_TIME.match(text)
    if time:
        text = f"{text[time.end() :]} {time[1]}"
    words = [word.strip(",;:()\"'") if not word.endswith("'s") else word for word in text.split()]
    words = [word for word in words if word]
    if not 2 <= len(words) <= LONGEST_CLAUSE:
        return None
    at = _verb_at(words)
    hedged = bool(_SUBORDINATE.match(text)) or words[0] in INDEFINITE or content.strip().endswith("?")
    if at is None:
        return Clause(_about(words), "", False, (), (), affirmed, hedged, adds, False, names)
    read = _Read(*_predicate(words, at), affirmed)
    read.passive = read.verb not in BARE_VERBS and not _BEING.isdisjoint(words[at : len(words) - len(read.rest) - 1])
    _resolve_idioms(read)
    clause = _finished(read, hedged=hedged, adds=adds, names=names)
    if read.passive and _names_agent(read.rest):
        read.subject, read.rest = _by_agent(read.subject, read.rest)
        read.passive = False
        _resolve_idioms(read)
        return replace(clause, active=_finished(read, hedged=hedged, adds=adds, names=names))
    return clause


@dataclass(slots=True)
class _Read:
    """A clause while it is read."""

    subject: list[str]
    verb: str
    past: bool
    rest: list[str]
    affirmed: bool
    passive: bool = False


def _resolve_idioms(read: _Read) -> None:
    """Converse verbs are turned, "used to" and "stopped" read as the past or the denial that they are."""
    if read.verb in CONVERSE and read.rest and not read.passive:
        read.verb, read.subject, read.rest = CONVERSE[read.verb], read.rest, read.subject
    if read.verb == "use" and read.rest[:1] == ["to"]:
        read.verb = (verb_of(read.rest[1]) or "be") if len(read.rest) > 1 else "be"
        read.past, read.rest = True, read.rest[2:]
    if read.verb in ENDINGS and read.rest:
        read.affirmed = not read.affirmed
        if read.rest[0].endswith("ing") and verb_of(read.rest[0]):
            read.verb, read.rest = verb_of(read.rest[0]) or "", read.rest[1:]


def _finished(read: _Read, *, hedged: bool, adds: bool, names: frozenset[str]) -> Clause:
    says_when = read.verb in BARE_VERBS or not PLANNING.isdisjoint(SAME_GROUPS.get(read.verb, frozenset()))
    said = [word for word in read.rest if word not in EMPTY_WORDS]
    rest, times = _without_times(said, all_of_it=not says_when)
    return Clause(
        _about(read.subject),
        read.verb,
        read.past,
        tuple(rest),
        tuple(times),
        read.affirmed,
        hedged,
        adds,
        read.passive,
        names,
    )


def _names_agent(rest: list[str]) -> bool:
    at = rest.index("by") + 1 if "by" in rest[:3] else len(rest)
    return at < len(rest) and not TIME_WORD.match(rest[at]) and not rest[at].endswith("ing")


def _by_agent(subject: list[str], rest: list[str]) -> tuple[list[str], list[str]]:
    """Read "the guide was written by Katrin in May" as "Katrin wrote the guide in May"."""
    at = rest.index("by")
    end = next((i for i in range(at + 2, len(rest)) if rest[i] in FUNCTION_WORDS and rest[i] != "of"), len(rest))
    return rest[at + 1 : end], subject + rest[:at] + rest[end:]


def _without_times(words: list[str], *, all_of_it: bool) -> tuple[list[str], list[str]]:
    text, times = " ".join(words), ""
    while True:
        shorter, time = split_qualifier(f" {text}")
        said = any(word not in FUNCTION_WORDS for word in shorter.split())
        if time is None or not (said or (all_of_it and not shorter)):
            return text.split(), times.split()
        text, times = shorter, f"{time} {times}"


def _names(text: str) -> frozenset[str]:
    words = re.findall(r"[\w][\w'’.:-]*", text)
    # The first word has its capital from its place.
    found = {word for i, word in enumerate(words) if (i and word[0].isupper()) or any(map(str.isdigit, word))}
    if words and words[0][0].isupper() and not lemmas(words[0].lower()) - {words[0].lower()} and not _known(words[0]):
        found.add(words[0])
    return frozenset(normalise_value(word.removesuffix("'s")) for word in found) - {"i"}


def _known(word: str) -> bool:
    lowered = word.lower()
    return lowered in FUNCTION_WORDS | _DETERMINERS or any(
        can_be(lowered, part) for part in ("NOUN", "VERB", "ADJ", "ADV")
    )


def _verb_at(words: list[str]) -> int | None:
    """Where the clause's verb stands: the first auxiliary, else the first word that can only be the verb here."""
    if verb_of(words[0]) == words[0] and words[1] in _DETERMINERS:
        return 0
    for i, word in enumerate(words):
        if word in AUXILIARIES and (i > 0 or word == "do"):
            return i
        if i == 0:
            # An imperative: a base form at the beginning, followed by its object.
            if verb_of(word) == word and not can_be(word, "NOUN") and not can_be(word, "ADJ"):
                return 0
            continue
        if not can_be(word, "VERB") or word.endswith("'s"):
            continue
        before = words[i - 1]
        if before in _DETERMINERS or before in FUNCTION_WORDS or before.endswith("'s"):
            continue
        if verb_of(word) == word and not _is_plural(words[:i]) and word not in _SAME_IN_PAST:
            continue
        if word.endswith("ing") and not word.endswith("thing"):
            continue
        return i
    if verb_of(words[0]) == words[0]:
        return 0
    return None


def _is_plural(subject: list[str]) -> bool:
    last = subject[-1]
    return last in _PLURAL_SUBJECTS or "and" in subject or (last.endswith("s") and len(lemmas(last)) > 1)


def _predicate(words: list[str], at: int) -> tuple[list[str], str, bool, list[str]]:
    subject, rest = words[:at], words[at:]
    past = rest[0] in ("was", "were", "did", "had")
    i = 0
    while i < len(rest) - 1 and (rest[i] in AUXILIARIES or rest[i] in EMPTY_WORDS or rest[i] in _GETTING):
        following = rest[i + 1]
        if rest[i] in EMPTY_WORDS or following in AUXILIARIES or following in EMPTY_WORDS:
            i += 1
        elif rest[i] in ("is", "are", "was", "were", "am", "be", "been") and not (
            verb_of(following) and following.endswith(("ed", "en", "ing")) and following not in _STATES
        ):
            return subject, "be", past, rest[i + 1 :]
        elif rest[i] in _GETTING:
            if not (following.endswith(("ed", "en")) and verb_of(following)):
                break
            i += 1
        elif rest[i] in ("has", "have", "had") and not (verb_of(following) and verb_of(following) != following):
            return subject, "have", past, rest[i + 1 :]
        else:
            i += 1
    word = rest[i]
    if word in ("has", "have", "had"):
        return subject, "have", word == "had", rest[i + 1 :]
    if word in AUXILIARIES:
        return subject, "be", past, rest[i + 1 :]
    verb = verb_of(word) or word
    if i == 0 and word != verb and not word.endswith("s") and not word.endswith("ing"):
        past = True
    return subject, verb, past, rest[i + 1 :]


_SAME_IN_PAST = words_of("quit put set cut let hit cost shut hurt spread bet split")
_GETTING = words_of("get gets got")
_BEING = words_of("is are was were be been am") | _GETTING
_STATES = words_of("married divorced closed allergic retired engaged interested")


def _about(words: list[str]) -> tuple[str, ...]:
    found = []
    for word in words:
        plain = word.removesuffix("'s")
        if word in _SPEAKER or plain in _SPEAKER:
            found.append("user")
        elif word not in ("the", "a", "an", "our", "this") and word not in EMPTY_WORDS:
            found.append(plain)
    return tuple(found)
