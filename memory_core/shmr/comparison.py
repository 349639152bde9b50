"""Comparison: whether two plain sentences say the same, cannot both hold, or have nothing to settle.

First "the same thing?" (who or what they are about, and what is numbered or named), then "another value?": deciding
these in the other order is where most false contradictions come from. Where two things differ, it is another thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory_core.shmr.clauses import TIME_WORD, Clause
from memory_core.shmr.lemmas import can_be, lemmas, same_family
from memory_core.shmr.like_words import (
    EMPTY,
    are_opposite,
    meaning,
    only_says_how,
    same_groups,
    without_common,
    without_same_meaning,
)
from memory_core.shmr.word_groups import (
    BARE_VERBS,
    CHANGES,
    COLLECTING,
    DIRECTIONS,
    EMPTY_WORDS,
    ENCOUNTERS,
    EVENTS,
    FILLERS,
    LEAVING,
    PLANNING,
    QUANTITIES,
    WISHING,
)
from memory_core.shmr.wording import MANY_VALUED

Kind = Literal["same", "rival", "apart"]

SAME_MEANING = 0.84
"""Cosine from which on two sentences with the same names and numbers say the same in other words (of `minilm`)."""

SAME_TOPIC = 0.55
"""Cosine below which two sentences that differ in more than one place have nothing to settle."""

SAME_QUALITY = 0.8
"""Cosine from which on two qualities of one thing may exclude each other ("is dry", "is damp"; not "is large")."""

MOST_REPLACED = 4
"""Words that one value may have."""

LONGEST_PARAPHRASED = 6
"""Words with content up to which a sentence can be told to say the same as another by its vector."""

LONGEST_RIVAL = 8
"""Words with content from which on a sentence says more than one thing."""

_RANGE = frozenset({"before", "after", "under", "over", "until", "below", "above", "without"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison found, and why in words."""

    kind: Kind
    because: str = ""


APART = Verdict("apart")


def compare(first: Clause, second: Clause, cosine: float) -> Verdict:
    """Compare two clauses, the second said later than the first.

    Args:
        cosine: of the two sentences' vectors, -1 to 1.
    """
    if first.hedged or second.hedged:
        return APART
    if first.active is None or second.active is None:
        # Two passives are compared as they stand, by what is done to; a passive and an active by who does it.
        first, second = first.active or first, second.active or second
    differing = _differing_subjects(first, second)
    if differing is None:
        return _paraphrase(first, second, cosine)
    left, right = without_common(_content(first) + differing[0], _content(second) + differing[1])
    if min(len(left), len(right)) > MOST_REPLACED:
        return APART
    left, right = without_same_meaning(left, right)
    left, right = _without_echo(left, first, second), _without_echo(right, second, first)
    if any(word in differing[0] for word in left) or any(word in differing[1] for word in right):
        return _paraphrase(first, second, cosine)
    opposite = next(((a, b) for a in left for b in right if are_opposite(a, b)), None)
    if opposite is not None:
        left.remove(opposite[0])
        right.remove(opposite[1])
        if (left and right) or (first.past and second.past):
            return APART
        agree = first.affirmed != second.affirmed
        return Verdict("same", "the opposite denied") if agree else Verdict("rival", f"{opposite[0]} and {opposite[1]}")
    if _at_other_times(first, second):
        timed = not (left or right or first.past) and first.affirmed and second.affirmed and _is_planned(first)
        return Verdict("rival", f"{' '.join(first.times)} and {' '.join(second.times)}") if timed else APART
    if not left and not right:
        if first.affirmed == second.affirmed:
            return Verdict("same", "the same words in another form") if first.times == second.times else APART
        denied, told = (second, first) if first.affirmed else (first, second)
        # "Eats fish" and "does not eat fish on Fridays": the denial is of something narrower.
        narrower = bool(denied.times) and not told.times
        return APART if first.past or narrower else Verdict("rival", "one affirms what the other denies")
    if first.affirmed != second.affirmed:
        return _denied(first, second, left, right, cosine)
    if not (first.affirmed and left and right):
        return APART
    found = _replaced(first, second, left, right, cosine) if differing == ([], []) else APART
    return found if found.kind != "apart" else _paraphrase(first, second, cosine)


def _paraphrase(first: Clause, second: Clause, cosine: float) -> Verdict:
    """Whether two sentences that share few words say the same: their vectors do, and nothing exact tells them apart."""
    alike = cosine >= SAME_MEANING and first.affirmed == second.affirmed and first.past == second.past
    short = max(len(_content(first)), len(_content(second))) <= LONGEST_PARAPHRASED
    # Who does it to whom is the same only where the same names stand first ("Ann trusts Ben", "Ben trusts Ann").
    named = [{word for word in clause.subject if word in clause.names} for clause in (first, second)]
    if not (alike and short and named[0] == named[1]):
        return APART
    if not _same_exact_words(first, second) or _counts(first) != _counts(second):
        return APART
    return Verdict("same", "the same meaning in other words, with the same names and numbers")


def _same_exact_words(first: Clause, second: Clause) -> bool:
    """Whether each holds the names and numbers of the other."""
    one, other = (
        {part for word in (*clause.subject, *clause.rest, *clause.times, *clause.names) for part in word.split()}
        for clause in (first, second)
    )
    return all(
        part in words
        for clause, words in ((first, other), (second, one))
        for name in (*clause.names, *filter(str.isdigit, (*clause.rest, *clause.times)))
        for part in name.split()
    )


def _counts(clause: Clause) -> frozenset[str]:
    """The words that say of how many a clause speaks."""
    return frozenset(word for word in (*clause.subject, clause.verb, *clause.rest) if word in QUANTITIES)


def _is_over(first: Clause, second: Clause, left: Sequence[str]) -> bool:
    """Whether the later clause ends what the earlier says of the same thing ("drives a van", "sold the van")."""
    if second.verb not in LEAVING or first.verb in LEAVING or first.past:
        return False
    rest = [word for word in left if word != first.verb]
    named = any(same_family(word, other) for word in first.rest for other in second.rest if word not in EMPTY)
    return named and len(rest) <= 1


def _at_other_times(first: Clause, second: Clause) -> bool:
    one, other = (
        {word for word in clause.times if word not in EMPTY and word not in EMPTY_WORDS} for clause in (first, second)
    )
    left, right = without_same_meaning(*without_common(sorted(one), sorted(other)))
    return bool(left and right)


def _is_planned(clause: Clause) -> bool:
    """Whether the clause says when something is to be ("is in room 2 at 09:00", "starts …"), not what happens then."""
    return clause.passive or clause.verb in BARE_VERBS or bool(same_groups(clause.verb) & PLANNING)


def _differing_subjects(first: Clause, second: Clause) -> tuple[list[str], list[str]] | None:
    """What one subject has and the other has not; None where they are about different things.

    "The user's weight is …" and "the user weighs …" part their words otherwise into subject and predicate, so what is
    left of a subject has to be met by the other's predicate. One describing word may be missing ("the standup", "the
    daily standup"), but not a name or number ("room 12", "the backend team's standup").
    """
    one, other = sorted(meaning(first.subject)), sorted(meaning(second.subject))
    left, right = without_same_meaning(*without_common(one, other))
    if (left or right) and (len(left) == len(one) or len(right) == len(other)):
        return None
    if len(left) + len(right) == 1:
        word = (left or right)[0]
        if word not in first.names and word not in second.names and not word.isdigit() and can_be(word, "ADJ"):
            return [], []
    return left, right


def _without_echo(words: list[str], own: Clause, other: Clause) -> list[str]:
    """The words that the other's subject does not hold ("the monthly rent is …", "the rent is … a month")."""
    kept = [word for word in words if not any(same_family(word, each) for each in other.subject)]
    empty = FILLERS | DIRECTIONS if other.verb in CHANGES else FILLERS
    return [word for word in kept if word in own.names or not (word in empty or only_says_how(word))]


def _content(clause: Clause) -> list[str]:
    words = [word for word in clause.rest if word not in EMPTY or word in _RANGE]
    if clause.rest[-1:] in (("on",), ("off",), ("in",), ("out",)):
        words.append(clause.rest[-1])
    return ([clause.verb] if clause.verb not in BARE_VERBS else []) + words


def _denied(first: Clause, second: Clause, left: list[str], right: list[str], cosine: float) -> Verdict:
    """One affirms and one denies, and their words differ."""
    denied, extra_of_denied, extra = (first, left, right) if not first.affirmed else (second, right, left)
    if left and right:
        return APART
    if extra_of_denied and not extra:
        # "Eats fish" and "does not eat fish on Fridays": the denial is of something narrower.
        return APART
    if (denied is first and first.past) or len(extra) > 2 or not _one_statement(first, second):
        return APART
    return Verdict("rival", "one denies in general what the other says") if cosine >= SAME_TOPIC else APART


def _replaced(first: Clause, second: Clause, left: list[str], right: list[str], cosine: float) -> Verdict:
    """Both affirm, and each says something that the other does not."""
    if _is_over(first, second, left):
        return Verdict("rival", f"{second.verb} says that it is over")
    times = [TIME_WORD.match(word) is not None for word in (*left, *right)]
    events = ENCOUNTERS if first.passive and second.passive else EVENTS
    single_event = (first.past or second.past) and first.verb == second.verb and first.verb in events
    change = second.verb in CHANGES or first.verb in CHANGES
    if single_event and not change:
        return APART
    if second.adds or _of_several(first) or not _one_statement(first, second):
        return APART
    if all(times):
        if first.past and not change:
            return APART
        return Verdict("rival", f"{' '.join(left)} and {' '.join(right)}")
    measured = [[word for word in words if any(map(str.isdigit, word))] for words in (left, right)]
    if len(measured[0]) == len(measured[1]) == 1 and len(left) + len(right) <= 3:
        return Verdict("rival", f"{measured[0][0]} and {measured[1][0]}")
    if any(times):
        return APART
    if len(left) > MOST_REPLACED or len(right) > MOST_REPLACED or cosine < SAME_TOPIC:
        return APART
    collecting = first.verb in COLLECTING and second.verb in COLLECTING and not first.passive
    if collecting and not change and not _of_one_object(first, left):
        return APART
    if first.verb == "have" and not change:
        return APART
    if first.verb == "be" and cosine < SAME_QUALITY and not _named(first, left):
        return APART
    if _named(first, left) != _named(second, right):
        return APART
    if _one_place(first, left) and _one_place(second, right):
        return Verdict("rival", f"{' '.join(left)} and {' '.join(right)}")
    return APART


def says_one_thing(clause: Clause) -> bool:
    """Whether a clause is short enough to have one value, and does not join several."""
    return "and" not in clause.rest and len(_content(clause)) <= LONGEST_RIVAL


def _one_statement(first: Clause, second: Clause) -> bool:
    """Whether both say one thing each, by the same verb or by one that says that it changed."""
    if not (says_one_thing(first) and says_one_thing(second)):
        return False
    one, other = first.verb, second.verb
    if one in BARE_VERBS and other in BARE_VERBS:
        return True
    return one == other or bool(same_groups(one) & same_groups(other)) or one in CHANGES or other in CHANGES


def _of_several(clause: Clause) -> bool:
    """Whether there may be several of what the clause is about ("my sister", "our project")."""
    return len(clause.subject) > 1 and not MANY_VALUED.isdisjoint(lemmas(clause.subject[-1]))


def _of_one_object(clause: Clause, words: Sequence[str]) -> bool:
    """Whether the words say how one wished object is to be ("wants replies in German"), not which."""
    content = _content(clause)
    return clause.verb in WISHING and content[:1] == [clause.verb] and content.index(words[0]) > 1


def _named(clause: Clause, words: Sequence[str]) -> bool:
    return any(word in clause.names for word in words)


def _one_place(clause: Clause, words: Sequence[str]) -> bool:
    """Whether the words stand side by side at one place of the clause."""
    content = _content(clause)
    positions = [content.index(word) for word in words]
    return max(positions) - min(positions) == len(words) - 1
