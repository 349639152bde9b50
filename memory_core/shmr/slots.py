"""Slots: what a statement is about (subject, predicate) and what it says about it (value, polarity, time).

A triple names its slot itself. A plain sentence gets one from phrases learned from the tenant's own text: relation
phrases that recur between different heads and values ("X is the owner of Y"), and beginnings that several statements
share while their ends differ. There is no list of sentence templates.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from memory_core.shmr.candidates import Candidate


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# English function words: they carry grammar, not content. A relation phrase may end in one, a subject may not be one.
AUXILIARIES = _words_of(
    "is are was were be been am has have had do does did can could will would shall should may might must"
)
FUNCTION_WORDS = AUXILIARIES | _words_of(
    "a an the of in on at to for from by with as into onto about over under between through and or that which who "
    "whom whose where when than then so"
)
PERSONS = _words_of("i me my mine we us our ours")
# Words that leave open who or whether: a statement about "some users" or "perhaps" settles nothing.
INDEFINITE = _words_of(
    "a an some one any many most few several each every another other both all no maybe perhaps possibly if when "
    "unless although said says thinks hopes wants plans might what why how"
)
PRONOUNS = _words_of("he she it they him her his its their this that these those there here you your someone")

# Relations that hold one value at a time, and words of relations that hold many. Both are a beginning: what the
# tenant's own text shows (`LearnedPhrases`) is asked first.
SINGLE_VALUED = re.compile(
    r"\b(?:live in|live at|reside in|work at|work for|report to|married to|engaged to|born in|born on|based in|"
    r"located in|employed by|owned by|led by|headquartered in|scheduled for|scheduled on|planned for|due on|work as|"
    r"start at|start on|begin at|begin on|end at|end on|arrive at|arrive on|leave at|open at|close at|expire on|"
    r"(?:favourite|favorite|preferred|current|primary|default)(?= \w))\b"
)
MANY_VALUED = _words_of(
    "is like love enjoy hate dislike prefer speak know play have has own use visit read watch eat drink want need "
    "allergic allergy interested interest hobby hobbie skill friend sibling brother sister son daughter cousin child "
    "children neighbour neighbor pet tag topic goal member "
    "support include contain mention attend met meet said say stated related learn try buy bought preference note fact "
    "detail comment alias medication ingredient dependency award contact requirement risk project book movie film song "
    "game sport instrument degree event task food place trip colleague customer client issue feature product device"
)
_INVARIABLE = _words_of("is has was does this its always perhaps")

_MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                "november", "december")  # fmt: skip
_MONTHS = {name[:length]: f"{i:02d}" for i, name in enumerate(_MONTH_NAMES, 1) for length in (3, len(name))}
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(\d{4}))?\b"
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}")
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+{_DAY}\b{_YEAR}")
_TWELVE_HOUR = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s*([ap])\.?m\b\.?")
_CLOCK = re.compile(r"\b(\d):(\d{2})\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SMALL_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
                  "twelve")  # fmt: skip
_NUMBERS = {word: str(number) for number, word in enumerate(_SMALL_NUMBERS)}
_UNITS = {"kilometres": "km", "kilometers": "km", "kilograms": "kg", "percent": "%", "per cent": "%", "euros": "eur",
          "euro": "eur", "dollars": "usd", "hours": "hour", "minutes": "minute", "days": "day"}  # fmt: skip
_WORD_VALUES = re.compile(r"\b(" + "|".join(sorted(_NUMBERS | _UNITS, key=len, reverse=True)) + r")\b")

_NEGATION = re.compile(
    r"\b(?:do|does)\s*(?:not|n['’]t)\b|n['’]t\b|"
    r"\b(?:no longer|not(?! only)|never|none|without|neither|nor|no(?!\.?\s*\d))\b|\bcannot\b",
    re.IGNORECASE,
)
_ADDITION = re.compile(r",?\s*\b(?:too|also|as well|another|additionally)\b", re.IGNORECASE)
_STILL = re.compile(r"\b(?:currently|now|still|these days|at the moment)\b\s*", re.IGNORECASE)
_TIME = (
    rf"(?:{_MONTH}|\w+day|spring|summer|autumn|fall|winter|weekend|week|month|year|quarter|morning|afternoon|evening|"
    r"night|(?:\d{4}-)?\d{2}-\d{2}|\d{4}|q[1-4]|time)s?"
)
_QUALIFIER = re.compile(
    r",?\s+((?:in|on|during|until|before|after|every|each|last|next|this|by|at)\s+(?:the\s+|early\s+|late\s+)?"
    rf"{_TIME}(?:\s+\d{{4}})?|yesterday|today|tonight|tomorrow|\d+\s+\w+\s+ago)$"
)
_SINCE = re.compile(rf",?\s+since\s+{_TIME}(?:\s+\d{{4}})?$")
_ARTICLE = re.compile(r"^(?:the|an|a)\s+(?=\S)")
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
class Slot:
    """What a statement says about what.

    Args:
        subject: normalised; never empty.
        predicate: normalised; negation, present-tense copulas at its ends and the plural or third-person s removed.
        value: normalised, with numbers, dates, times and units in one form.
        polarity: False where the statement is negated.
        qualifier: the time it is limited to ("in may", "every monday"); None where it is not.
        multi_valued: True: several values stand side by side; False: one value at a time; None: not known.
    """

    subject: str
    predicate: str
    value: str
    polarity: bool = True
    qualifier: str | None = None
    multi_valued: bool | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Subject and predicate: statements with the same key speak about the same thing."""
        return self.subject, self.predicate

    def __str__(self) -> str:
        parts = (self.subject, self.predicate, "" if self.polarity else "not", self.value, self.qualifier or "")
        return " ".join(part for part in parts if part)


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


def normalise(text: str) -> str:
    """Text in one form: NFC, case folded, single spaces, without a leading article or trailing punctuation."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold().replace("’", "'"))
    return _ARTICLE.sub("", " ".join(folded.split()).strip(' .,;:!?"“”')).strip()


def normalise_value(text: str) -> str:
    """`normalise`, and numbers, dates (mm-dd or yyyy-mm-dd), clock times (HH:MM) and common units in one form."""
    value = _THOUSANDS.sub("", normalise(text))
    value = _TWELVE_HOUR.sub(lambda m: f"{int(m[1]) % 12 + 12 * (m[3] == 'p'):02d}:{m[2] or '00'}", value)
    value = _CLOCK.sub(r"0\1:\2", value)
    value = _DAY_MONTH.sub(lambda m: _date(m[3], m[2], m[1]), value)
    value = _MONTH_DAY.sub(lambda m: _date(m[3], m[1], m[2]), value)
    return _WORD_VALUES.sub(lambda m: _NUMBERS.get(m[1]) or _UNITS[m[1]], value).strip()


def split_negation(text: str) -> tuple[str, bool]:
    """The text without its negations, and its polarity: False where their number is odd."""
    rest, count = _NEGATION.subn(lambda m: " can " if m[0].lower() == "cannot" else " ", text)
    return (" ".join(rest.split()), count % 2 == 0) if count else (text, True)


def normalise_predicate(text: str) -> str:
    """A relation in one form: `lives_in`, "lives in" and "live in" are the same; "deadline is" and "deadline" too."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").replace("-", " ")
    words = [_stem(word) for word in normalise(spaced).split()]
    while len(words) > 1 and words[0] in ("is", "are"):
        del words[0]
    while len(words) > 1 and words[-1] in ("is", "are"):
        del words[-1]
    return " ".join(words)


def contradict(first: Slot, second: Slot) -> bool:
    """Whether two statements cannot both hold: same slot and time, another value, or the same value denied."""
    if first.key != second.key or first.qualifier != second.qualifier:
        return False
    if first.value == second.value:
        return first.polarity != second.polarity
    many = first.multi_valued or second.multi_valued or is_time(first.value) != is_time(second.value)
    return first.polarity and second.polarity and not many and not compatible(first.value, second.value)


def compatible(first: str, second: str) -> bool:
    """Whether one value only adds words to the other ("lisbon" / "lisbon, portugal")."""
    shorter, longer = sorted((first, second), key=len)
    return longer == shorter or bool(re.match(re.escape(shorter) + r"[\s,(]", longer))


def is_time(value: str) -> bool:
    """Whether a normalised value is a date, a clock time, a month, a weekday or a year: when, not what."""
    return re.fullmatch(rf"(?:{_TIME}|\d{{2}}:\d{{2}})(?: \d{{4}})?", value) is not None


def slot_of(candidate: Candidate, learned: LearnedPhrases | None = None) -> Slot | None:
    """The slot of a memory: from its triple, else from its sentence by what was learned; None where it has none.

    A pronoun whose meaning is not in the statement gives no slot; "I", "my" and "we" mean whoever said it, so their
    subject carries the source.
    """
    if candidate.has_triple:
        parts = candidate.subject or "", candidate.predicate or "", candidate.object or ""
        hint = values_of_relation(parts[1], named=True)
    else:
        found = _parse(candidate.content, learned) if learned else None
        if found is None:
            return None
        parts, hint = found[:3], found[3]
    subject = normalise(parts[0])
    first_word = subject.partition(" ")[0]
    if not subject or first_word in PRONOUNS:
        return None
    if first_word in PERSONS and candidate.source:
        subject = f"{subject} ({candidate.source})"
    predicate, affirmed = split_negation(parts[1].replace("_", " "))
    text, addition = _ADDITION.subn("", _STILL.sub("", parts[2]))
    text, value_affirmed = split_negation(text)
    if not candidate.has_triple:
        # A sentence was parsed without its negations, so its polarity is that of the whole.
        value_affirmed = split_negation(candidate.content)[1]
    value, qualifier = _split_qualifier(normalise_value(text))
    key = normalise_predicate(predicate)
    if key in ("is", "was") and any(map(str.isdigit, value)):
        # "X is <quality>" may hold many times over; two measures of X may not, but a guess it remains.
        hint = None
    if not value or not key:
        return None
    return Slot(subject, key, value, affirmed == value_affirmed, qualifier, True if addition else hint)


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
    inflected = _stem(surface[0]) != surface[0] or surface[0].endswith(("ed", "ing")) or surface[0] in AUXILIARIES
    plural = _stem(surface[-1]) != surface[-1]
    return None if inflected or plural or surface[-1] in FUNCTION_WORDS - AUXILIARIES else False


def learn_phrases(contents: Iterable[str]) -> LearnedPhrases:
    """Learn relation phrases and shared beginnings from statements.

    A phrase counts where it stands between at least three heads and two values. It is made of words that occur in
    three statements or more and are not names. A content word may end it only if the words before it are nearly
    always followed by that word ("is located in the city of" but not "… the city of New"). Time grows with the
    number of statements, since a statement has a bounded number of readings.
    """
    statements = [(words, content) for content in contents if (words := _words(content))]
    counts = Counter(key for words, _ in statements for key in {_key(word) for word in words})
    frequent = frozenset(key for key, count in counts.items() if count >= MIN_HEADS)
    seen: Counter[Frame] = Counter()
    ends: dict[tuple[str, ...], set[tuple[str, bool]]] = defaultdict(set)
    for words, content in statements:
        affirmed = split_negation(content)[1]
        seen.update({frame for frame, _, _ in _readings(words, frequent)})
        keys = tuple(_key(word) for word in words)
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
    keys = [_key(word) for word in words]
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


def _parse(content: str, learned: LearnedPhrases) -> tuple[str, str, str, bool | None] | None:
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


def _aligned(words: list[str], beginnings: frozenset[tuple[str, ...]]) -> tuple[str, str, str, bool | None] | None:
    keys = tuple(_key(word) for word in words)
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
    keys = ["" if word[0].isupper() and (i or not opens_sentence) else _key(word) for i, word in enumerate(words)]
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


def _key(word: str) -> str:
    return _stem(word.casefold())


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and word not in _INVARIABLE and word[-2] not in "sui'":
        return word[:-1]
    return word


def _split_qualifier(value: str) -> tuple[str, str | None]:
    value = _SINCE.sub("", value)
    match = _QUALIFIER.search(value)
    return (value[: match.start()].strip(" ,"), match[1]) if match else (value, None)


def _date(year: str | None, month: str, day: str) -> str:
    return f"{year}-{_MONTHS[month]}-{int(day):02d}" if year else f"{_MONTHS[month]}-{int(day):02d}"


def same_words(first: str, second: str) -> bool:
    """Whether two normalised texts hold the same words but for articles, with at most one part moved to the front.

    Moving one part keeps who does what to whom: "every monday alice runs" / "alice runs every monday", but not
    "alice trusts bob" / "bob trusts alice".
    """
    articles = ("a", "an", "the")
    left, right = (
        [_key(word.strip(",;")) for word in text.split() if word not in articles] for text in (first, second)
    )
    return len(left) == len(right) and any(left[i:] + left[:i] == right for i in range(max(len(left), 1)))
