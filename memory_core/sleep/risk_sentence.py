"""The rules of the risk scan over one sentence: which markers stand in it, and which of them earn the tag.

The language's words are data (`risk_language.RiskLanguage`); this module holds the rules alone. Change one, and raise
`risk_markers.RULES_VERSION`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory_core.sleep.risk_language import RiskLanguage, folded

NEGATOR_REACH = 6
"""Words between a negator and the marker it denies, at most."""
REVERSER_REACH = 4
TURNER_REACH = 3
DENIAL_REACH = 6

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
PHRASE_WORD = re.compile(rf"#|{WORD.pattern}")
_SENTENCE_END = re.compile(r"[.!?\n\r]")
_DIGIT = re.compile(r"\d")
_CLAUSE_END = re.compile(r"[.;:!?()\[\]{}\n\r—–|]|\s-+\s")
_HYPHENS = frozenset("-\u2010\u2011")
_NO_KIND: frozenset[str] = frozenset()


CUES = ("not_negators", "denials", "set_aside", "frames", "all_clear", "mentions", "turners", "negators", "reversers")
"""The lists of a language that may take a marker back, or keep it from being taken back."""


def _shape(word: str) -> str:
    return "#" if _DIGIT.search(word) else word


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a text.

    Attributes:
        word: the word, folded.
        start: where it begins in the text; `end` is where it ends, exclusive.
    """

    word: str
    start: int
    end: int


class Phrases:
    """Finds the phrases of a list in a row of words, the longest first, none overlapping another."""

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        kinds: dict[tuple[str, ...], frozenset[str]] = {}
        for phrase, kind in phrases:
            words = tuple(PHRASE_WORD.findall(phrase))
            if words:
                kinds[words] = kinds.get(words, _NO_KIND) | {kind}
        self._by_first: dict[str, list[tuple[tuple[str, ...], frozenset[str]]]] = {}
        for words, of_phrase in kinds.items():
            self._by_first.setdefault(words[0], []).append((words, of_phrase))
        for candidates in self._by_first.values():
            candidates.sort(key=lambda item: -len(item[0]))

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
        """Start, end (exclusive) and kinds of each phrase."""
        position = 0
        shapes = [_shape(word) for word in words]
        while position < len(words):
            for phrase, kinds in self._by_first.get(shapes[position], ()):
                if tuple(shapes[position : position + len(phrase)]) == phrase:
                    yield position, position + len(phrase), kinds
                    position += len(phrase)
                    break
            else:
                position += 1


class Scanner:
    """The rules over one language."""

    def __init__(self, language: RiskLanguage) -> None:
        self.language = language
        self._compound_endings = tuple(folded(ending) for ending in language.compound_endings)
        self._markers = Phrases(
            [(form, "harmless") for form in language.harmless]
            + [(form, "marker") for family in language.markers for form in family]
        )
        self._cues = Phrases((form, kind) for kind in CUES for form in getattr(language, kind))
        self.breakers = frozenset(language.breakers)
        phrases = [tuple(PHRASE_WORD.findall(form)) for family in language.markers for form in family]
        self._marker_words = frozenset(words[0] for words in phrases if len(words) == 1)
        self._marker_phrases: dict[str, list[frozenset[str]]] = {}
        for words in phrases:
            if len(words) > 1:
                self._marker_phrases.setdefault(words[0], []).append(frozenset(words))

    def may_matter(self, words: Sequence[str]) -> bool:
        """Whether the folded words hold a marker, in whatever order; cheap, and true of few texts."""
        if not self._marker_words.isdisjoint(words):
            return True
        begun = self._marker_phrases.keys() & words
        if begun and any(phrase.issubset({"#", *words}) for word in begun for phrase in self._marker_phrases[word]):
            return True
        return bool(self._compound_endings) and any(word.endswith(self._compound_endings) for word in words)

    def words(self, text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
        """Where each earning marker stands, and the marker as it stands there."""
        sentence = Sentence(self, text, tokens)
        for start, end in sentence.markers:
            if sentence.earns(start, end):
                yield tokens[start].start, " ".join(token.word for token in tokens[start:end])

    def find_markers(self, words: Sequence[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
        """Start, end (exclusive) and kinds (`marker`, `harmless`) of what stands in the lists."""
        found = list(self._markers.find(words))
        yield from found
        taken = {position for start, end, _ in found for position in range(start, end)}
        for position, word in enumerate(words):
            if position not in taken and self._is_compound(word):
                yield position, position + 1, frozenset(("marker",))

    def find_cues(self, words: Sequence[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
        """Start, end (exclusive) and kinds (names of the language's lists) of what may deny a marker."""
        found = list(self._cues.find(words))
        yield from found
        taken = {position for start, end, _ in found for position in range(start, end)}
        for position, word in enumerate(words):
            if position not in taken and word.endswith(self.language.negator_endings or ("\0",)):
                yield position, position + 1, frozenset(("negators",))

    def _is_compound(self, word: str) -> bool:
        return bool(self._compound_endings) and word.endswith(self._compound_endings)


class Sentence:
    """One text under one language's rules."""

    def __init__(self, scanner: Scanner, text: str, tokens: Sequence[Token]) -> None:
        self.language = scanner.language
        self.text = text
        self.tokens = tokens
        self.words = [token.word for token in tokens]
        found = list(scanner.find_markers(self.words))
        # What is listed as a marker and as harmless is harmless.
        self.markers = sorted((start, end) for start, end, kinds in found if "harmless" not in kinds)
        self._marker_ends = {end for _, end in self.markers}
        self._marker_starts = {start for start, _ in self.markers}
        self._taken = {position for start, end, _ in found for position in range(start, end)}
        cues = list(scanner.find_cues(self.words))
        self._cue_ending_at = {end: (start, kinds) for start, end, kinds in cues}
        self._cue_starting_at = {start: (end, kinds) for start, end, kinds in cues}
        self._breakers = scanner.breakers
        self._gaps = ["", *(text[left.end : right.start] for left, right in pairwise(tokens))]

    def earns(self, start: int, end: int) -> bool:
        """Whether the marker of these words speaks of a real risk."""
        return not (
            self._is_part_of_a_word(start, end)
            or (self.language.names_are_capitalised and self._is_part_of_a_name(start, end))
            or self._is_denied_before(start)
            or self._is_denied_behind(end)
            or self._is_framed(start)
            or any("all_clear" in kinds for begin, (_, kinds) in self._cue_starting_at.items() if begin >= end)
        )

    def _is_framed(self, start: int) -> bool:
        """Whether a frame stands before the marker in its sentence, commas and colons between or not."""
        for position in range(start, 0, -1):
            if "frames" in self._cue_ending_at.get(position, (0, _NO_KIND))[1]:
                return True
            if position < start and _SENTENCE_END.search(self._gaps[position]):
                return False
        return False

    def _ends_clause(self, position: int) -> bool:
        """Whether the clause ends before the word at this position; a comma in a list of markers does not end one."""
        gap = self._gaps[position]
        if _CLAUSE_END.search(gap):
            return True
        return "," in gap and not (position in self._marker_ends and position in self._marker_starts)

    def _is_part_of_a_word(self, start: int, end: int) -> bool:
        before = self.text[self.tokens[start].start - 1 : self.tokens[start].start]
        after = self.text[self.tokens[end - 1].end : self.tokens[end - 1].end + 2]
        if before in ("_", "@", "\\") or after[:1] in ("_", "@") or (after[:1] == "." and after[1:].isalnum()):
            return True
        if start and self._gaps[start] in _HYPHENS and self.words[start - 1] in self.language.free_beginnings:
            return True
        return end < len(self.words) and self._gaps[end] in _HYPHENS and self.words[end] in self.language.free_endings

    def _is_part_of_a_name(self, start: int, end: int) -> bool:
        # Inside a sentence, a capital beside another capital: a title, a person, a product. SHOUTING is no name.
        if start == 0 or not all(self._is_capitalised(position) for position in range(start, end)):
            return False
        if _CLAUSE_END.search(self._gaps[start]) or "," in self._gaps[start]:
            return False
        before = (
            self._is_capitalised(start - 1)
            and not self._begins_sentence(start - 1)
            and self.words[start - 1] in self.language.articles
        )
        behind = end < len(self.words) and self._is_capitalised(end) and self._gaps[end].strip(" '\"’”") == ""
        return before or (behind and end not in self._marker_starts)

    def _is_capitalised(self, position: int) -> bool:
        token = self.tokens[position]
        written = self.text[token.start : token.end]
        return written[:1].isupper() and written[1:].islower()

    def _begins_sentence(self, position: int) -> bool:
        return position == 0 or _CLAUSE_END.search(self._gaps[position]) is not None

    def _is_denied_before(self, start: int) -> bool:
        position = start  # the words before it are looked at, nearest first
        verb_between = broken = False
        while position > 0 and not self._ends_clause(position):
            begin, kinds = self._cue_ending_at.get(position, (position - 1, _NO_KIND))
            distance = start - position
            if "set_aside" in kinds or ("mentions" in kinds and distance == 0):
                return True
            if not broken:
                if "negators" in kinds and distance <= NEGATOR_REACH:
                    return True
                if "reversers" in kinds and distance <= REVERSER_REACH and not verb_between:
                    return not self._is_turned(begin)
            word = self.words[position - 1]
            if not kinds:
                verb_between = verb_between or word in self.language.verbs
                joined = word in self.language.joiners and (position - 1) in self._marker_ends
                broken = broken or self._is_breaker(position) or (word in self.language.joiners and not joined)
            position = begin
        return False

    def _is_breaker(self, end: int) -> bool:
        return any(" ".join(self.words[max(0, end - length) : end]) in self._breakers for length in (1, 2))

    def _is_turned(self, start: int) -> bool:
        """Whether a negator stands just before a reverser: "not without risk", "could not prevent the outage"."""
        for position in range(start, max(start - TURNER_REACH, 0), -1):
            if self._ends_clause(position):
                return False
            if self._cue_ending_at.get(position, (0, _NO_KIND))[1] & {"negators", "turners"}:
                return True
        return False

    def _is_denied_behind(self, end: int) -> bool:
        if (
            end < len(self.words)
            and self._gaps[end].strip() in ("", ":", "=")
            and self.words[end] in self.language.none
        ):
            return self._gaps[end].strip() != "" or end + 1 == len(self.words)
        position, denied_denial = end, False
        while position < len(self.words) and position - end < DENIAL_REACH and not self._ends_clause(position):
            if self._is_breaker(position + 1):
                return False
            after, kinds = self._cue_starting_at.get(position, (position + 1, _NO_KIND))
            if "denials" in kinds and position not in self._taken:
                return not denied_denial
            denied_denial = denied_denial or bool(kinds & {"negators", "not_negators"})
            position = after
        return False
