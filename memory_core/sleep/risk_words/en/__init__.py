"""English risk words. Source: written by the project's authors for this purpose; taken from no other list."""

from __future__ import annotations

from memory_core.sleep.risk_language import RiskLanguage, families, forms
from memory_core.sleep.risk_words.en.markers import MARKERS

_HARMLESS = """
risk assessment; risk assessments; risk management; risk manager; risk appetite; risk register; risk committee; risk
team; risk department; risk map; risk averse; risk score; risk model; risk analyst; risk report; risk matrix; fraud
detection; fraud prevention; fraud team; fraud department; fraud squad; threat model; threat models; threat modelling;
threat modeling; crash course; crash courses; crash test; crash tests; crash diet; crash pad; critical thinking;
critical acclaim; critically acclaimed; critical essay; critical edition; critical mass; critical path; critical
theory; critical reading; critical success; error handling; error handler; error bar; error bars; margin of error;
trial and error; error correction; known error; known errors; weight loss; loss function; loss leader; at a loss; hair
loss; warning label; warning labels; warning light; warning triangle; emergency exit; emergency exits; emergency
contact; emergency contacts; emergency number; emergency fund; emergency drill; accident insurance; by accident; happy
accident; virus scan; virus scans; virus scanner; virus scanners; antivirus; vulnerability scan; vulnerability scans;
vulnerability management; false alarm; false alarms; declined the invitation; declined an invitation; declined the
offer; declined an offer; declined the meeting; declined to; decline the invitation; decline the offer; decline to;
declines the invitation; declines to; severe weather plan; cancer research; breach of etiquette; crisis team; disaster
recovery; disaster movie; breakdown by; breakdown of; cost breakdown; price breakdown; leak test; leak tests; leak
proof; danger zone; negative space; stress test; retry failed; retries failed; retry a failed; retries a failed; retry
the failed; retries the failed; penetration test; butterfly stroke; stroke rate; fever tree; tree fever; poison ivy
colour; poison ivy is; dangerously good|delicious; failure is not an option; fail safe; failsafe; fail over; failover;
error page; error pages; error code table; returns failure; returns an error; killer
app|feature|deal|workout|whale|argument; killing time; kill time; killing it; dying to; dying for; heart attack on a
plate; death by chocolate; bleeding heart|edge; burning man|desire|question|question; broken english; fire
brigade|station|drill|drills|exit|exits|extinguisher|extinguishers|door|doors|engine|fighter|fighters|safety|pit|wall;
flood of messages|emails|mails|requests|letters|orders|light; flooded with
messages|emails|letters|light|congratulations; panic room|button; stroke of luck|genius|midnight; stroke of the pen;
brush stroke|strokes; stroke play; key stroke|strokes; lost ~
game|match|bet|thread|weight|plot|count|final|round|track; lost in thought|translation; lost and found; at a loss for
words; stolen base|kiss|moment; steal|steals|stole|stealing ~ show|scene|kiss|spotlight; break the ice; break a leg;
broke the ice; broken record; record breaking; breached the record; crack|cracked|cracks a joke|smile;
crack|cracked|cracks jokes; crack|cracked|cracks the code|puzzle; burst|bursts of laughter|energy|joy; burst out
laughing; exposed brick|beams|concrete; armed with; rash decision; dance fever; cabin fever; gold fever; spring fever;
life hack|hacks; hackathon; growth hack|hacks; seize the day|moment|chance; seized the day|moment|chance|opportunity;
penalty kick|kicks|shootout|area|box; strike a balance|chord|pose; bowling strike; trial version|period|run; infected
with enthusiasm|joy|laughter; infectious laughter|enthusiasm; attack vector graphics; heart attack on; panic buying
game; attacks every ball|toy; attacks the ball|toy; fails better; failing a pose; failing that; without fail; fail
fast; fail forward; epic fail video|videos; risk the board game; game of risk; crash barrier; crashed on ~ couch|sofa;
crash on ~ couch|sofa; disaster movie night; hot mess; train wreck of a film; chaos theory; chaos monkey; damage
control
"""

_NEGATORS = """
no, not, never, nothing, nobody, no one, none, neither, nor, cannot, no longer, nowhere, hardly, scarcely
barely, rarely
"""

_REVERSERS = """
without, free of, free from, safe from, clear of, absence of, lack of
zero, low, lower, lowest, little, minimal, negligible, less, slight
avoid, avoids, avoided, avoiding, prevent, prevents, prevented, preventing, avert, averts, averted, averting
survive, survives, survived, unhurt by, unharmed by, safe and sound after, rule out, rules out, ruled out,
ruling out, eliminate, eliminates, eliminated, eliminating
negative for, instead of, rather than, immune to, unlikely to
protects against, protect against, protects from, protect from, protected from, protected against
guard against, guards against, insured against, insurance against
"""

_TURNERS = "failed to, fails to, unable to, too late to"

_NOT_NEGATORS = """
no doubt, not only, not just, not merely, no less than, no fewer than, no wonder, no matter, not to mention,
nothing but
no later than, not until, no sooner, no small, not to be underestimated
have been avoided, have been prevented, have been averted, no exception, at the lowest, little by little
"""

_BREAKERS = """
but, because, since, after, although, though, however, while, despite, until, yet, which, who, due to, owing to, about
regarding, so, instead, then, therefore, when, where, before, affected by, hit by, and then, except, apart from, than
"""

_VERBS = """
is, are, was, were, be, been, has, have, had, will, would, can, could, may, might, means, poses, causes, led, leads
"""

# What is told, taught, rehearsed or asked in general happens to nobody.
_SET_ASIDE = """
if; in case; in case of; in the event; in the event of; unless; whether; imagine; suppose; supposing; hypothetically;
what if; hypothetical; fictitious; fictional; invented; imaginary; made up; pretend|pretends|pretended|pretending;
dreamt|dreamed|dreams|dreaming that|of|about; nightmare|dream about;
novel|film|movie|book|story|series|documentary|podcast|thriller|play|song|comic|musical|opera|poem|article|essay|thesis|blog|lecture|seminar|talk|webinar|course|workshop|training|class|exhibition|report
about|on; ~ novel; ~ thriller|whodunit; ~ crime novel|story|series; ~ textbook|textbooks; ~ course book; ~ fairy tale;
~ role play; ~ moot court; ~ mock trial; ~ game day; ~ simulation; ~ tabletop; ~ quiz; ~ exam question|paper; ~ essay;
~ thesis; ~ proverb; ~ definition of; ~ history of; ~ myth|legend of;
novel|film|movie|book|story|series|documentary|podcast|play|song|comic|musical|opera|article|blog|post|lecture|seminar|talk|course|workshop|video|brochure|leaflet|poster|museum|exhibition|guide|manual|runbook|handbook|chapter|checklist|template|question|example|exercise|textbook|magazine|sketch|game|level
show|shows|showed|tell|tells|told|begin|begins|began|start|starts|end|ends|explain|explains|explained|describe|describes|described|say|says|discuss|discusses|compare|compares|list|lists|deal|deals|cover|covers|ask|asks|asked|contain|contains|features|depicts|teaches|warns;
rehearse|rehearses|rehearsed|rehearsing|practise|practises|practised|practice|practices|practiced|drill|drills|drilled;
explain|explains|explained|learn|learns|learned|learnt|teach|teaches|taught|know|show|shows|showed how to; lesson on;
for example; in theory; in general; as a joke; on stage; in the
film|movie|novel|book|play|story|series|game|musical|sketch
"""

# A sentence that begins so is about words, pictures or play.
_FRAMES = """
role play|playing; crossword; flashcard|flashcards; quiz; trivia; debate club|motion; moot court; mock trial; board
game; video game; computer game; card game; escape room; in monopoly; demo|sample|dummy|example|placeholder data; demo
account|customer; letter|mail|email|report|form template; template for|of; code name|names; codename; project
name|names; chaos day; game day; tabletop exercise; fire drill; evacuation drill; simulation of; thought experiment;
poster|sticker|slogan|mug|shirt saying|that says; known|famous for ~ sentence|line|quote|saying; ~ proverb; tongue
twister; lyrics; poem; novel|film|movie|series|show follows|is about|tells; book club; film|movie night; season
one|two|three; chapter one|two|three; case study; exam question; homework question; essay topic; practice case; word
of the day; vocabulary; dictionary entry; theatre|theater play|group; audition; costume; carnival; halloween; april
fool|fools
"""

_ALL_CLEAR = """
false alarm; turned|turns out to be harmless|genuine|legitimate|fine|nothing|unfounded|benign|false; turned|turns out
to come|belong; proved|proven harmless|unfounded|false|benign; turned out to be a|an
mistake|misunderstanding|error|hoax|test|drill|joke; was|is|were|are genuine|legitimate|harmless|unfounded; cleared ~
as legitimate|harmless|genuine; cleared all|them|it as; nothing to worry about; all clear; no harm done; no damage; no
harm; nothing happened; nobody was|is hurt; no one was|is hurt; is harmless; reads ~ sign|poster|sticker|shirt
"""

_MENTIONS = """
the word, the words, the term, titled, entitled, called, named, nicknamed, codenamed
the film, the movie, the novel, the book, the game, the song, the band, the album, the board game
"""

_DENIALS = """
ruled out, averted, avoided, prevented, unlikely, not likely, negligible, minimal, excluded, unfounded, nonexistent
did not materialise, did not materialize, has passed, not confirmed, not found, not detected, not expected, negative
is the name of, was the name of, is the code name of, is the title of, is his|her|its|the nickname
is low, was low, very low, remains low, is small, free, false alarm
"""

_DETERMINERS = ("the", "a", "an", "my", "our", "your", "his", "her", "its", "their")

ENGLISH = RiskLanguage(
    code="en",
    markers=families(MARKERS, _DETERMINERS),
    harmless=forms(_HARMLESS, _DETERMINERS),
    negators=forms(_NEGATORS),
    negator_endings=("n't",),
    reversers=forms(_REVERSERS),
    turners=forms(_TURNERS),
    not_negators=forms(_NOT_NEGATORS),
    breakers=forms(_BREAKERS),
    verbs=forms(_VERBS),
    joiners=("and", "plus"),
    set_aside=forms(_SET_ASIDE, _DETERMINERS),
    frames=forms(_FRAMES, _DETERMINERS),
    all_clear=forms(_ALL_CLEAR, _DETERMINERS),
    mentions=forms(_MENTIONS),
    denials=forms(_DENIALS),
    none=("none", "nil", "zero", "0", "no"),
    free_endings=("free", "less", "proof", "proofed", "safe", "averse", "tolerant"),
    free_beginnings=("non", "anti", "un"),
    plural_endings=("s", "es"),
    articles=("the", "a", "an"),
    names_are_capitalised=True,
)
