"""Words: negation, values, and the small word lists that SHMR reads English with."""

from __future__ import annotations

import re

from memory_core.layers.normal_text import MONTH, normalise
from memory_core.layers.words import AUXILIARIES, FUNCTION_WORDS, stem, word_key, words_of

PERSONS = words_of("i me my mine we us our ours")
# Words that leave open who or whether: a statement about "some users" or "perhaps" settles nothing.
INDEFINITE = words_of(
    "a an some one any many most few several each every another other both all no maybe perhaps possibly if when "
    "unless although said says thinks hopes wants plans might what why how"
)
PRONOUNS = words_of("he she it they him her his its their this that these those there here you your someone")

# Relations that hold one value at a time, and words of relations that hold many. Both are a beginning: what the
# tenant's own text shows (`LearnedPhrases`) is asked first.
SINGLE_VALUED = re.compile(
    r"\b(?:live in|live at|reside in|work at|work for|report to|married to|engaged to|born in|born on|based in|"
    r"located in|employed by|owned by|led by|headquartered in|scheduled for|scheduled on|planned for|due on|work as|"
    r"start at|start on|begin at|begin on|end at|end on|arrive at|arrive on|leave at|open at|close at|expire on|"
    r"(?:favourite|favorite|preferred|current|primary|default)(?= \w))\b"
)
MANY_VALUED = words_of(
    "is like love enjoy hate dislike prefer speak know play have has own use visit read watch eat drink want need "
    "allergic allergy interested interest hobby hobbie skill friend sibling brother sister son daughter cousin child "
    "children neighbour neighbor pet tag topic goal member parent support include contain mention attend met meet "
    "said say stated related learn try buy bought preference note fact detail comment alias medication ingredient "
    "dependency award contact requirement risk project book movie film song game sport instrument degree event task "
    "food place trip colleague customer client issue feature product device fluent proficient skilled versed "
    "experienced competent capable able qualified understand master handle"
)

_NEGATION = re.compile(
    r"\b(?:do|does)\s*(?:not|n['’]t)\b|n['’]t\b|"
    r"\b(?:no longer|not(?! only)|never|none|without|neither|nor|no(?!\.?\s*\d))\b|\bcannot\b",
    re.IGNORECASE,
)
_TIME = (
    rf"(?:{MONTH}|\w+day|spring|summer|autumn|fall|winter|weekend|week|month|year|quarter|morning|afternoon|evening|"
    r"night|(?:\d{4}-)?\d{2}-\d{2}|\d{4}|q[1-4]|time)s?"
)
_QUALIFIER = re.compile(
    r",?\s+((?:in|on|during|until|before|after|every|each|last|next|this|by|at)\s+(?:the\s+|early\s+|late\s+)?"
    rf"{_TIME}(?:\s+\d{{4}})?|yesterday|today|tonight|tomorrow|\d+\s+\w+\s+ago)$"
)
_SINCE = re.compile(rf",?\s+since\s+{_TIME}(?:\s+\d{{4}})?$")


def split_negation(text: str) -> tuple[str, bool]:
    """The text without its negations, and its polarity: False where their number is odd."""
    rest, count = _NEGATION.subn(lambda m: " can " if m[0].lower() == "cannot" else " ", text)
    return (" ".join(rest.split()), count % 2 == 0) if count else (text, True)


def split_qualifier(value: str) -> tuple[str, str | None]:
    """A normalised value without the time it is limited to, and that time; "since …" is dropped."""
    value = _SINCE.sub("", value)
    match = _QUALIFIER.search(value)
    return (value[: match.start()].strip(" ,"), match[1]) if match else (value, None)


def normalise_predicate(text: str) -> str:
    """A relation in one form: `lives_in`, "lives in" and "live in" are the same; "deadline is" and "deadline" too."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").replace("-", " ")
    words = [stem(word) for word in normalise(spaced).split()]
    while len(words) > 1 and words[0] in ("is", "are"):
        del words[0]
    while len(words) > 1 and words[-1] in ("is", "are"):
        del words[-1]
    return " ".join(words)


def values_of_relation(predicate: str, *, named: bool) -> bool | None:
    """Whether a relation holds many values at once, by its words: True, False, or None where they do not say.

    Args:
        predicate: the relation as written.
        named: it is the predicate of a triple, where a bare noun ("deadline", "job_title") names an attribute.
    """
    words = normalise_predicate(predicate).split()
    surface = normalise(predicate.replace("_", " ")).split()
    if "of" in words and "the" in words[: words.index("of")]:
        # "plays the position of": the definite noun names the relation, whatever its verb.
        words = words[words.index("the") + 1 :]
    while words and words[-1] in ("a", "an", "the"):
        del words[-1]
    if SINGLE_VALUED.search(" ".join(words)) or (words[:1] == ["prefer"] and len(words) > 1 and named):
        return False
    content = [word for word in words if word not in FUNCTION_WORDS]
    if words and (words[-1] in MANY_VALUED or (words[-1] in FUNCTION_WORDS and content[-1:] == ["allergic"])):
        return True
    if MANY_VALUED.intersection(words) or not named or not words:
        return None
    inflected = stem(surface[0]) != surface[0] or surface[0].endswith(("ed", "ing")) or surface[0] in AUXILIARIES
    plural = stem(surface[-1]) != surface[-1]
    return None if inflected or plural or surface[-1] in FUNCTION_WORDS - AUXILIARIES else False


def compatible(first: str, second: str) -> bool:
    """Whether one value only adds words to the other ("lisbon" / "lisbon, portugal")."""
    shorter, longer = sorted((first, second), key=len)
    return longer == shorter or bool(re.match(re.escape(shorter) + r"[\s,(]", longer))


def is_time(value: str) -> bool:
    """Whether a normalised value is a date, a clock time, a month, a weekday or a year: when, not what."""
    return re.fullmatch(rf"(?:{_TIME}|\d{{2}}:\d{{2}})(?: \d{{4}})?", value) is not None


def same_words(first: str, second: str) -> bool:
    """Whether two normalised texts hold the same words but for articles, with at most one part moved to the front.

    Moving one part keeps who does what to whom: "every monday alice runs" / "alice runs every monday", but not
    "alice trusts bob" / "bob trusts alice".
    """
    articles = ("a", "an", "the")
    left, right = (
        [word_key(word.strip(",;")) for word in text.split() if word not in articles] for text in (first, second)
    )
    return len(left) == len(right) and any(left[i:] + left[:i] == right for i in range(max(len(left), 1)))
