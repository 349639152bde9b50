"""Finds the words of a text that speak of a real risk: whole words, not denied, not part of a look-alike.

A marker is a word or phrase of a language's list. It earns the tag unless

* a longer harmless phrase holds it ("crash course"), or it belongs to an identifier, an address or a name
  ("error_log", "The Fraud by Zadie Smith");
* it is denied: before it in its clause ("no risk", "without danger", "avoided a crash"), behind it ("fraud was ruled
  out"), or within it ("risk-free", "non-critical");
* it is only supposed, told or mentioned ("if the pump fails", "a novel about fraud", "the word risk").

The rules are in `risk_sentence`, the words of each language in `risk_words`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache

from memory_core.sleep.risk_language import RiskLanguage, folded
from memory_core.sleep.risk_sentence import WORD, Scanner, Token
from memory_core.sleep.risk_words import LANGUAGES

RULES_VERSION = "3"
"""Part of the fingerprint: raise it when the rules decide otherwise, so that every text is looked at again."""

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+|\bwww\.\S+|\S+@\S+\.\S+", re.IGNORECASE)


class RiskMarkers:
    """The configured marker lists, ready to scan. Build it with `RiskMarkers.of`.

    Attributes:
        fingerprint: 16 hexadecimal digits that change with anything that may change a decision.
    """

    def __init__(self, languages: Sequence[RiskLanguage]) -> None:
        self._scanners = tuple(Scanner(language) for language in languages)
        content = json.dumps([RULES_VERSION, *(asdict(language) for language in languages)], sort_keys=True)
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]

    @staticmethod
    @lru_cache(maxsize=64)
    def of(
        languages: tuple[str, ...] = ("en",), extra: tuple[str, ...] = (), ignored: tuple[str, ...] = ()
    ) -> RiskMarkers:
        """The lists of these languages.

        Args:
            extra: further words or phrases; a single word is also found in its plural.
            ignored: words to leave alone, with every other form of theirs.

        Raises:
            KeyError: a language has no list.
        """
        return RiskMarkers([_configured(LANGUAGES[code], extra, ignored) for code in languages])

    def words(self, *texts: str | None) -> tuple[str, ...]:
        """The words that earn the tag, folded, each once, in the order in which they stand."""
        found: dict[str, None] = {}
        for given in texts:
            if given and self._may_matter(given):
                text = _ADDRESS.sub(lambda match: " " * len(match[0]), given) if _has_address(given) else given
                tokens = [Token(folded(match[0]), *match.span()) for match in WORD.finditer(text)]
                places = sorted({place for scanner in self._scanners for place in scanner.words(text, tokens)})
                found.update(dict.fromkeys(word for _, word in places))
        return tuple(found)

    def _may_matter(self, text: str) -> bool:
        """Whether a marker may stand in the text. In most texts none does, and they are done with this."""
        words = WORD.findall(text.lower()) if text.isascii() else [folded(word) for word in WORD.findall(text)]
        return any(scanner.may_matter(words) for scanner in self._scanners)


def _has_address(text: str) -> bool:
    return "://" in text or "@" in text or "www." in text


def _configured(language: RiskLanguage, extra: tuple[str, ...], ignored: tuple[str, ...]) -> RiskLanguage:
    left_alone = {" ".join(WORD.findall(folded(word))) for word in ignored}
    kept = tuple(family for family in language.markers if not left_alone & set(family))
    added = []
    for marker in extra:
        form = " ".join(WORD.findall(folded(marker)))
        if form and form not in left_alone:
            plurals = () if " " in form else tuple(form + ending for ending in language.plural_endings)
            added.append((form, *plurals))
    compounds = tuple(ending for ending in language.compound_endings if folded(ending) not in left_alone)
    # What a person names as a marker is one, also where our list calls it harmless.
    named = {form for family in added for form in family}
    harmless = (*(form for form in language.harmless if form not in named), *sorted(left_alone - {""}))
    return replace(language, markers=(*kept, *added), compound_endings=compounds, harmless=harmless)
