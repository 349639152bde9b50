"""Groups of English words that say nearly the same, or opposites: small lists of our own.

They follow the classes of common dictionaries and grammars (verbs of residence, employment, possession, liking and
change of state as in Levin, English Verb Classes and Alternations, 1993). They are consulted after the tenant's own
text, and what rests on them alone is never retired, only contested or held together.
"""

from __future__ import annotations

from memory_core.layers.words import words_of

_SAME = (
    "live reside dwell move relocate settle",
    "work employ",
    "use run rely",
    "have own possess keep get buy acquire purchase adopt",
    "like love enjoy adore prefer favour favor fond",
    "dislike hate detest loathe",
    "speak talk",
    "start begin commence open kick",
    "end finish conclude stop close",
    "plan schedule set book due slip postpone push shift reschedule delay expect slate",
    "happen occur take place hold",
    "want wish desire",
    "big large huge",
    "small little tiny",
    "fast quick rapid",
    "car automobile",
    "doctor physician",
    "job position role post",
    "boss manager supervisor",
    "wife husband spouse partner",
    "child kid",
    "film movie",
    "flat apartment",
    "phone telephone mobile cellphone",
    "error bug fault defect",
    "meeting call sync",
    "weekly week",
    "daily day nightly night",
    "monthly month",
    "yearly annual annually year",
    "cost price costs priced",
    "repair fix mend",
    "choose pick select",
    "need require must",
    "lead head manage run direct",
    "marry wed",
    "study learn",
    "teach instruct",
    "birthday born birth",
    "theme mode",
    "reply answer respond response",
    "vacation holiday",
    "company firm business",
    "purchase buy",
    "cycle bike bicycle",
    "remote home",
    "password passphrase",
    "deadline due",
    "limit maximum max cap",
    "forward send pass",
    "colour color",
    "monthly month",
    "name call title",
    "quit leave resign",
    "create make build develop",
    "write author",
    "found establish",
    "long length",
    "high height tall",
    "wide width",
    "deep depth",
    "heavy weight weigh",
    "old age aged",
    "address email mail",
    "surgery operation",
    "reserve book",
    "hire recruit recruitment",
)
_OPPOSITES = (
    "like dislike, love hate, like hate, enjoy hate, enjoy dislike, love dislike, prefer avoid, open closed, "
    "locked open, open close, open shut, on off, enabled disabled, enable disable, allow forbid, allowed forbidden, "
    "allow ban, hot cold, warm cold, light dark, early late, morning evening, day night, before after, left right, "
    "up down, above below, inside outside, indoor outdoor, vegetarian meat, vegan meat, vegan dairy, vegan cheese, "
    "vegetarian omnivore, vegetarian carnivore, single married, married divorced, alive dead, full empty, "
    "available unavailable, busy free, public private, paid free, cheap expensive, fast slow, big small, large small, "
    "tall short, long short, high low, strong weak, heavy light, easy hard, easy difficult, safe dangerous, "
    "rich poor, young old, new old, clean dirty, dry wet, true false, pass fail, succeed fail, accept reject, "
    "accept decline, approve reject, approved rejected, win lose, buy sell, lend borrow, increase decrease, "
    "rise fall, grow shrink, start stop, begin end, arrive depart, arrive leave, join leave, hire fire, "
    "remember forget, always never, all none, everyone nobody, everything nothing, online offline, active inactive, "
    "present absent, possible impossible, required optional, mandatory optional, healthy sick, healthy ill, "
    "happy sad, sweet salty, introvert extrovert, remote office, urban rural, stable unstable, reliable unreliable, "
    "supported unsupported, complete incomplete, finished unfinished, done pending, resolved open, fixed broken, "
    "fix break, working broken, work break, green red, major minor, manual automatic, manually automatically, "
    "weekday weekend, summer winter, north south, east west, first last, maximum minimum, more less, keep remove, "
    "add remove, grant revoke, confirmed cancelled, confirm cancel, alone together, alcohol teetotal, "
    "carnivore vegan, often rarely, frequently rarely, always rarely, often never, usually rarely, usually never, "
    "sometimes never"
)

SAME_GROUPS: dict[str, frozenset[int]] = {}
"""The numbers of the groups that a base form belongs to."""

for _number, _group in enumerate(_SAME):
    for _word in words_of(_group):
        SAME_GROUPS[_word] = SAME_GROUPS.get(_word, frozenset()) | {_number}

PLANNING = SAME_GROUPS["start"] | SAME_GROUPS["end"] | SAME_GROUPS["plan"] | SAME_GROUPS["happen"]
"""The groups of verbs that say when something is to be."""

OPPOSITES: dict[str, frozenset[str]] = {}
"""The base forms that exclude a base form."""

for _pair in _OPPOSITES.split(", "):
    _one, _other = _pair.split()
    OPPOSITES[_one] = OPPOSITES.get(_one, frozenset()) | {_other}
    OPPOSITES[_other] = OPPOSITES.get(_other, frozenset()) | {_one}


LEAVING = words_of("leave sell drop cancel abandon lose resign remove delete retire discontinue shut quit")
"""Verbs that say of the thing that they name that it is no longer so ("left Acme", "sold the car")."""

ENDINGS = words_of("stop quit cease")
"""Verbs that say that a habit is over ("stopped smoking")."""

CONVERSE = {"belong": "own", "employ": "work", "teach": "learn", "parent": "child"}
"""Verbs that say the same with subject and object exchanged."""

CHANGES = words_of(
    "move relocate switch change migrate upgrade convert transfer slip postpone push shift reschedule rename promote "
    "become turn go settle"
)
"""Verbs that say that one state gave way to another ("moved to Lisbon", "switched to tea")."""

ENCOUNTERS = words_of(
    "visit travel go meet attend see watch read eat drink try order cook discuss talk ask tell say mention receive "
    "send call email thank help"
)
"""Verbs of what happens to someone time and again, each time with something else."""

EVENTS = ENCOUNTERS | words_of(
    "buy purchase run play win lose complete finish join sign write ship release book bake make break fix paint plant "
    "learn find get give take"
)
"""Verbs of single events: in the past tense, each of them may have happened several times."""

COLLECTING = words_of(
    "like love enjoy hate dislike speak know have own use visit read watch eat drink want need play meet include "
    "contain support mention cook collect study practise practice try recommend follow grow paint write teach offer "
    "sell provide help take buy show list display report track cover handle hold receive send"
)
"""Verbs whose objects stand side by side."""

FILLERS = words_of("go get do make lot bit much over")
"""Words that carry no meaning of their own beside another verb or noun."""

DIRECTIONS = words_of("up down out off on back away")
"""Words of direction, which say how something changed."""

BARE_VERBS = words_of("be have happen occur meet sit fall lie stand stay remain keep cost equal total measure") | {""}
"""Verbs that say no more than that something is so, somewhere or somewhen."""

QUANTITIES = words_of("all some only every each most few many several half none nobody both any no least than")
"""Words that say of how many something is so."""

KINDS = words_of(
    "city town village country state province county district region continent island planet language religion "
    "faith sport game position role rank title field profession trade genre style type kind sort colour color name "
    "nationality year month day date age amount sum price degree school party brand make model version size grade "
    "class level status"
)
"""Nouns that call by its kind what "of" adds to them ("the city of Bath")."""

WISHING = words_of("want need prefer expect require request")
"""Verbs that say how something is to be."""

EMPTY_WORDS = words_of(
    "now currently still really very quite just also too already usually generally basically actually always these "
    "days moment about approximately roughly around probably please whenever there then today here again instead "
    "anymore any longer user's newly recently finally"
)
"""Words that change nothing of what is said, or only how sure or when."""
