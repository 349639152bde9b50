"""What grammar alone says of a frame: which relation it names, in which direction, and whether one thing is meant."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS
from memory_core.shmr.lemmas import verb_of
from memory_core.shmr.readings import POSSESSIVE, Frame
from memory_core.shmr.word_groups import ENCOUNTERS, KINDS
from memory_core.shmr.wording import MANY_VALUED, values_of_relation

_BE = ("is", "was", "are", "were")
_BEFORE_NOUNS = ("of", "in", "for", "at")
_DETERMINERS = ("a", "an", "the", "its", "his", "her", "their", "it", "hi")
_NAMING = ("have", "name", "appoint", "elect", "choose", "select", "list", "give", "pick")
_RELATIVE = ("where", "that", "which", "who", "whose", "whom")
_ABLE = ("can", "could", "may", "might")
_LOOSE = ("name of the ", "current ", "present ")


def relation_word(frame: Frame, participles: Collection[str]) -> tuple[str, bool] | None:
    """The word by which grammar names the frame's relation, and whether the frame has the value first."""
    noun = noun_of(frame)
    if noun is not None:
        return f"noun {noun[0]}", noun[1]
    passive = passive_of(frame)
    if passive is not None:
        return f"verb {passive}", False
    if not frame.lead and not frame.tail and len(frame.middle) == 1:
        for participle in participles:
            if frame.middle[0] in (participle, participle.removesuffix("d"), participle.removesuffix("ed")):
                return f"verb {participle}", True
    return None


def noun_of(frame: Frame) -> tuple[str, bool] | None:
    """The noun by which a frame names its relation ("capital"), and whether the value stands first."""
    lead, middle, tail = frame.lead, frame.middle, frame.tail
    if lead[:1] == ("it",) and lead[1:2] and lead[1] in _BE:
        # "It is Y that runs X": what is put in front is the value.
        return " ".join((*lead[2:], *middle, *tail)), True
    if lead[:1] == ("the",) and lead[-1] in _BEFORE_NOUNS and len(middle) == 1 and middle[0] in _BE and not tail:
        words, inverted = lead[1:-1], False
    elif lead or not middle:
        return None
    elif middle[0] in _BE and middle[-1] in _RELATIVE:
        # "Y is where X lives", "Y is the place where X lives".
        return " ".join((*middle[1:], *tail)), True
    elif middle[0] == POSSESSIVE and middle[-1] in _BE and not tail:
        words, inverted = middle[1:-1], False
    elif middle[0] in _BE and middle[1:2] == ("the",) and middle[-1] in _BEFORE_NOUNS and not tail:
        words, inverted = middle[2:-1], True
    elif len(middle) == 1 and middle[0] in _BE and tail[:1] == (POSSESSIVE,):
        words, inverted = tail[1:], True
    elif middle == ("is", "home", "to") and not tail:
        words, inverted = ("home",), True
    elif len(middle) == 1 and verb_of(middle[0]) in _NAMING and tail[:1] == ("as",):
        # "X has Y as its capital", "X names Y as the heir".
        words, inverted = tail[2:] if tail[1:2] and tail[1] in _DETERMINERS else tail[1:], False
    else:
        return None
    name = " ".join(words)
    for loose in _LOOSE:
        name = name.removeprefix(loose)
    plain = all(word not in AUXILIARIES and word not in _RELATIVE for word in words)
    return (name, inverted) if name and plain else None


def passive_of(frame: Frame) -> str | None:
    """The participle of a passive with its agent ("was founded by"); None for anything else."""
    middle = frame.middle
    if frame.lead or frame.tail or len(middle) not in (3, 4) or middle[-1] != "by" or middle[0] not in AUXILIARIES:
        return None
    return middle[-2] if middle[-2] not in FUNCTION_WORDS else None


def names_one_thing(frame: Frame) -> bool:
    """Whether grammar names one thing: "the … of X is Y", "X is of the religion of Y"."""
    if noun_of(frame) is not None or (frame.lead[:1] == ("the",) and frame.middle[-1] in _BE and not frame.tail):
        return True
    return not frame.tail and _ends_in_kind(frame.middle)


def _ends_in_kind(middle: tuple[str, ...]) -> bool:
    """Whether a phrase ends by calling what follows by its kind: "… in the city of", "… the position of"."""
    return len(middle) > 2 and middle[-1] == "of" and middle[-2] in KINDS and "the" in middle[:-2]


def collects_by_words(frame: Frame) -> bool:
    """Whether a word of the frame says that it holds many values ("speaks", as against "the mother tongue of")."""
    return many_by_words(frame) is True or (
        noun_of(frame) is None and not MANY_VALUED.isdisjoint(set(frame.middle) - FUNCTION_WORDS)
    )


def takes_object(frame: Frame) -> bool:
    """Whether the value is the direct object of a verb ("wrote", "founded"): anyone may do it to several things."""
    middle = frame.middle
    if frame.lead or noun_of(frame) is not None:
        return False
    if middle[0] in AUXILIARIES or middle[0] == POSSESSIVE:
        return False
    # "Y houses the offices of X" has its object in the phrase; "X plays the position of Y" calls Y by its kind.
    return middle[-1] not in FUNCTION_WORDS or (middle[1] in ("the", "a", "an") and not _ends_in_kind(middle))


def many_by_words(frame: Frame) -> bool | None:
    """What the frame's words say: "The capital of X is Y" is judged by "capital", "X lives in Y" by "lives in"."""
    noun = noun_of(frame)
    if (
        noun is None
        and (
            frame.middle[0] in _ABLE
            # "has a child named": what one has a piece of, one may have another of.
            or (frame.middle[0] in ("has", "have") and frame.middle[1:2] in (("a",), ("an",)))
            or any(verb_of(word) in ENCOUNTERS for word in frame.middle if word not in FUNCTION_WORDS)
        )
    ):
        return True
    if noun is not None:
        words = noun[0]
    elif frame.lead[:1] == ("the",) and frame.middle[-1] in _BE:
        words = " ".join(takewhile(lambda word: word not in FUNCTION_WORDS, frame.lead[1:]))
    else:
        # "X has been Y" says nothing that only one value could hold.
        words = " ".join(frame.content if frame.middle[-1] in _BE and frame.content else frame.middle)
    bare = noun is None and not names_one_thing(frame) and frame.middle[0] in _BE and frame.content
    if bare and frame.content[-1] in MANY_VALUED:
        # "is a parent of", "is home to".
        return True
    return values_of_relation(words, named=False)
