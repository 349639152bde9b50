"""German risk words. Source: written by the project's authors for this purpose; taken from no other list."""

from __future__ import annotations

from memory_core.sleep.risk_language import RiskLanguage, families, forms

_MARKERS = """
risiko, risiken, riskant, riskante, riskanter, riskantes, riskieren, riskiert
gefahr, gefahren, gefährlich, gefährliche, gefährlicher, gefährliches, gefährdet, gefährden
bedrohung, bedrohungen, bedroht, bedrohlich
warnung, warnungen, warnt, warnte, gewarnt
kritisch, kritische, kritischer, kritisches
fehler, fehlern, fehlgeschlagen, fehlschlag
ausfall, ausfälle, ausfällen, ausgefallen
absturz, abstürze, abgestürzt, stürzte ab
störung, störungen
verlust, verluste, verlusten, datenverlust
betrug, betrüger, betrügerisch
rückgang, einbruch, einbrüche
schaden, schäden, beschädigt
diebstahl, diebstähle, gestohlen
klage, klagen, verklagt
insolvenz, insolvent, pleite
überfällig, zahlungsverzug, mahnung, mahnungen
sicherheitslücke, sicherheitslücken, schadsoftware, gehackt
datenleck, datenlecks
verletzung, verletzungen, verletzt
unfall, unfälle
notfall, notfälle
vergiftung, vergiftet
krise, krisen, katastrophe, katastrophen
illegal, rechtswidrig, verstoß, verstöße
"""

_HARMLESS = """
risikomanagement, risikobewertung, tippfehler, gewichtsverlust, fehlerbehandlung, betrugserkennung, warnweste
auf eigene gefahr, notfallkontakt, fehlalarm, crashkurs
"""

GERMAN = RiskLanguage(
    code="de",
    markers=families(_MARKERS),
    harmless=forms(_HARMLESS),
    negators=forms(
        "kein, keine, keinen, keinem, keiner, keines, keinerlei, nicht, nie, niemals, nichts, niemand, weder, kaum"
    ),
    reversers=forms(
        """
        ohne, frei von, sicher vor, vermeiden, vermieden, vermeidet, verhindern, verhindert, verhinderte, abgewendet
        geringes, geringe, gering, niedriges, niedrige, wenig, schützt vor, statt
        """
    ),
    not_negators=forms("nicht nur, kein wunder, nicht zuletzt, nichts als, nicht zu unterschätzen"),
    breakers=forms(
        "aber, weil, da, seit, nach, obwohl, während, trotz, bis, jedoch, sondern, wegen, dann, sodass, bevor"
    ),
    verbs=forms("ist, sind, war, waren, hat, haben, hatte, wird, werden, wurde, wurden, kann, können, bedeutet"),
    joiners=("und", "sowie"),
    set_aside=forms(
        """
        wenn, falls, sofern, angenommen, im falle, vorausgesetzt, ob
        roman über, film über, buch über, vortrag über, kurs über, schulung zu, seminar über
        """
    ),
    mentions=forms("das wort, der begriff, namens, genannt, der film, das spiel, der roman, das buch"),
    denials=forms(
        """
        ausgeschlossen, abgewendet, vermieden, verhindert, unwahrscheinlich, unbegründet, vernachlässigbar
        nicht bestätigt, nicht gefunden, negativ, gebannt, fehlalarm
        """
    ),
    none=("keine", "keiner", "keines", "null", "0"),
    free_endings=("frei", "los", "sicher"),
    free_beginnings=("nicht", "anti", "un"),
    compound_endings=(
        *("risiko", "risiken", "gefahr", "gefahren", "ausfall", "ausfälle", "absturz", "abstürze", "störung"),
        *("störungen", "betrug", "verlust", "verluste", "fehler", "schaden", "schäden", "warnung", "warnungen"),
        *("diebstahl", "unfall", "verletzung", "vergiftung", "krise", "verstoß"),
    ),
    plural_endings=("e", "en", "n", "er", "s"),
)
