"""The risk words of each language, one data module a language."""

from __future__ import annotations

from memory_core.sleep.risk_language import RiskLanguage
from memory_core.sleep.risk_words.de import GERMAN
from memory_core.sleep.risk_words.en import ENGLISH

LANGUAGES: dict[str, RiskLanguage] = {language.code: language for language in (ENGLISH, GERMAN)}
"""Every language with a list, by its ISO 639-1 code."""
