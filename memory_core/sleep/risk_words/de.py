"""German risk words. Source: written by the project's authors for this purpose; taken from no other list."""

from __future__ import annotations

from memory_core.sleep.risk_language import RiskLanguage, families, forms

_MARKERS = """
risiko, risiken; riskant, riskante, riskanter, riskantes; riskieren, riskiert; gefahr, gefahren; gefährlich,
gefährliche, gefährlicher, gefährliches, gefährlichen; gefährdet, gefährden; bedrohung, bedrohungen; bedroht,
bedrohlich, bedrohen; droht, drohen, drohte, drohende, drohenden; warnung, warnungen; warnt, warnte, gewarnt;
kritisch, kritische, kritischer, kritisches; krise, krisen; katastrophe, katastrophen, katastrophal; notfall,
notfälle; alarmierend; besorgniserregend; außer kontrolle; in gefahr; in not; zerstört, zerstörung; verwüstet;
beschädigt, beschädigung; schaden, schäden; verschlechtert, verschlechtern, verschlechterung; vermisst; verschwunden;
verloren, verliert, verlor; fehlschlag, fehlgeschlagen; scheitert, gescheitert; versagt, versagen; verletzung,
verletzungen; verletzt; unfall, unfälle; gestürzt, sturz; gebrochen; blutet, blutung, blutungen; ohnmächtig;
bewusstlos; atemnot; herzinfarkt; schlaganfall; krampfanfall; vergiftung, vergiftet; giftig, giftige; überdosis;
allergisch, allergie, allergien; infektion, infektionen; infiziert; entzündet, entzündung; fieber; schmerzen;
brustschmerzen; bösartig, bösartige, bösartiger; krebs; tumor, tumore, tumoren; metastasen; lebensgefahr; tödlich,
tödliche; gestorben; stirbt; suizid, suizidal; selbstmord; rückfall; notaufnahme; intensivstation; rettungswagen;
ausgebrochen, ausbruch; keim; seuche; erstickt; ertrunken; lebensbedrohlich; betrug, betrüger, betrügerisch;
diebstahl, diebstähle; gestohlen, stiehlt; dieb, diebe; unterschlagen, unterschlagung; erpresst, erpressung;
bestochen, bestechung; gefälscht, gefälschte, fälschung; geldwäsche; insolvenz; insolvent; pleite; zahlungsunfähig,
zahlungsunfähigkeit; überfällig, überfällige; zahlungsverzug; mahnung, mahnungen; überzogen; gesperrt; gepfändet,
pfändung; schulden, verschuldet; verlust, verluste, verlusten; rückgang; eingebrochen, einbruch, einbrüche; entlassen,
entlassungen; strafe, strafen; bußgeld, bußgelder; steuerhinterziehung; zwangsversteigerung; wertlos; hälfte
seines|ihres wertes; fehler, fehlern; ausfall, ausfälle, ausfällen; ausgefallen; fällt aus; fiel aus; absturz,
abstürze; abgestürzt; stürzte ab; stürzt ab; störung, störungen; gestört; defekt, defekte; kaputt; undicht; läuft aus;
ausgelaufen; leck, lecks; datenleck, datenlecks; datenverlust; sicherheitslücke, sicherheitslücken; schadsoftware;
gehackt; angriff, angriffe; angegriffen; angreifer; überlastet; überhitzt; brand, brände; gebrannt; brennt; feuer;
explosion; explodiert; überschwemmt, überschwemmung; hochwasser; verseucht; läuft heute|morgen ab; abgelaufen; steht
still; stillstand; lieferengpass; engpass; engpässe; zurückgerufen; rückruf; nicht erreichbar; klage, klagen;
verklagt; ermittelt, ermittlung, ermittlungen; angeklagt, anklage; verhaftet, verhaftung; festgenommen; haftbefehl;
razzia; illegal, illegale; rechtswidrig; verstoß, verstöße, verstößt; fristlos gekündigt; fristlose kündigung;
räumungsklage; abgemahnt, abmahnung; einstweilige verfügung; verurteilt; verdacht, verdächtig, verdächtigt; haftung;
vertragsbruch; unterlassung; überfallen, überfall; gewalt; geschlagen; misshandelt, missbraucht, missbrauch; gemobbt,
mobbing; gestalkt, stalker; belästigt, belästigung; gasgeruch; schimmel; regnet herein; gestrandet; eingesperrt;
entführt, entführung; gebissen; ertrinkt; lawine; sturmschaden; schwillt; hals zu; zehnfache|falsche|doppelte dosis;
durchfall; trinkt|isst kaum; erbricht, erbrochen; säumniszuschlag; fehlen seit; nicht mehr tragen|zahlen|bezahlen;
erpresserschreiben; läuft morgen|bald über; zu # prozent voll; unbekannte haben; immer wieder aus; fällt ständig aus;
führerschein ist weg; führerschein weg; promille; vernachlässigung; gerichtsvollzieher; abschiebung, abgeschoben;
glatteis; ins schleudern; im graben; sich etwas antut; angst dass; habe angst; hat angst; lassen sich nicht öffnen;
ausgeraubt; betrunken; bewaffnet; messer; drohbrief; drohungen; schlägerei; prügelei; ertappt; hausverbot;
sorgerechtsstreit; wasserschaden; rohrbruch; kurzschluss; stromausfall; explodierte; einsturz, eingestürzt; entgleist;
verschüttet; verbrannt, verbrennung, verbrennungen; verbrüht; erfroren; kollabiert, kollaps; herzstillstand; atmet
nicht; ohne führerschein; mit jemandes|meiner|seiner|ihrer kreditkarte; kreditkarte in; aus der wohnung raus; räumung;
schufa; inkasso; kündigung, gekündigt; pleitegeier; umsatzeinbruch; steuerprüfung; nachzahlung, nachzahlungen;
rückzahlung; vertragsstrafe; schadensersatz; unterlassungsklage; schadenersatz; patentverletzung; datenpanne;
datenschutzverletzung
"""

_HARMLESS = """
risikomanagement, risikobewertung, tippfehler, gewichtsverlust, fehlerbehandlung, betrugserkennung, warnweste
auf eigene gefahr, notfallkontakt, fehlalarm, crashkurs, fehlerseite, fehlermeldungstext, das spiel verloren
feuerwehr, feuerwerk, lagerfeuer, angriffsspieler, keine strafe, brandneu, brandneue, das brettspiel risiko,
brettspiel risiko
gewicht verloren, haftpflicht, den faden verloren, absturz des abends, geschlagene sahne, sahne geschlagen, weinbrand
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
        wenn; falls; sofern; angenommen; im falle; vorausgesetzt; ob; was wäre; stell|stellt dir|euch vor;
        roman|film|buch|vortrag|kurs|seminar|schulung|workshop|serie|artikel|aufsatz|podcast|krimi über|zu;
        der|im|dem|ein|einem|das
        krimi|roman|planspiel|rollenspiel|lehrbuch|märchen|theaterstück|quiz|hörspiel|beispiel|schulungsfilm;
        im film|kurs|buch|seminar|spiel|unterricht|drehbuch|museum; das lehrbuch enthält; geträumt, träumt,
        träumte; erfunden, erfundene, erfundener; fiktiv, fiktive, fiktiver; geprobt, probt; proben|üben|übt
        den|einen
        """
    ),
    frames=forms(
        """
        rollenspiel; planspiel; übungsfall; übungsaufgabe; kreuzworträtsel; quiz; brettspiel; videospiel; theaterstück;
        krimi; version heißt; codename; heißt intern; schulung; musterbrief; beispieldaten; testdaten; sprichwort; witz;
        märchen; roman; geträumt; wird|wurde gefragt; im kurs|quiz|unterricht
        """
    ),
    all_clear=forms(
        """
        fehlalarm; falscher alarm; war harmlos; ist harmlos; stellte sich als harmlos; gestohlen wurde nichts;
        gebrannt hat es nicht; nichts passiert; nichts geschehen; niemand verletzt; kein schaden
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
