"""English risk words. Source: written by the project's authors for this purpose; taken from no other list."""

from __future__ import annotations

from memory_core.sleep.risk_language import RiskLanguage, families, forms

_MARKERS = """
# in general
risk, risks, risky, riskier, riskiest, risked, risking
danger, dangers, dangerous, dangerously, endanger, endangers, endangered, endangering
threat, threats, threaten, threatens, threatened, threatening
hazard, hazards, hazardous
peril, perils, perilous
jeopardy, jeopardise, jeopardises, jeopardised, jeopardize, jeopardizes, jeopardized
warning, warnings, warned, warns
critical, critically
severe, severely
crisis, crises
disaster, disasters, disastrous
catastrophe, catastrophes, catastrophic
emergency, emergencies
unsafe
negative review, negative reviews, negative feedback
negative impact, negative effect, negative effects, negative publicity, negative press
negative balance, negative cash flow, negative equity, negative margin, negative margins
negative outlook, negative trend, negative growth
# operations
failure, failures, fail, fails, failed, failing
error, errors, erroneous
outage, outages, downtime
crash, crashes, crashed, crashing
breakdown, breakdowns, broke down, broken down
collapse, collapses, collapsed, collapsing
malfunction, malfunctions, malfunctioned, malfunctioning
defect, defects, defective
corrupted, data corruption
unstable, instability
shortage, shortages
missed deadline, missed deadlines, missed the deadline
# security
breach, breaches, breached
leak, leaks, leaked, leaking
hacked, hacker, hackers
malware, ransomware, spyware
virus, viruses
phishing, phished
vulnerability, vulnerabilities, vulnerable
compromised
unauthorised, unauthorized
suspicious
cyberattack, cyberattacks, cyber attack, cyber attacks
security incident, security incidents, data incident, safety incident
# money
fraud, frauds, fraudulent, fraudulently, defraud, defrauded
loss, losses, lost data, lost money, lost the customer, lost the contract
decline, declines, declined, declining
scam, scams, scammed, scammer, scammers
theft, thefts, stolen, robbery, robbed, burglary, burgled
bankruptcy, bankrupt, insolvency, insolvent
overdue, arrears, late fee, late fees, missed payment, missed payments, unpaid
defaulted, in default
chargeback, chargebacks
overdrawn, overdraft
foreclosure, eviction, evicted
recession
plunged, plummeted, plummeting
embezzlement, embezzled, bribery, bribe, bribes, bribed, extortion, blackmail, blackmailed
# law
lawsuit, lawsuits, sued, suing, litigation, subpoena, prosecuted
violation, violations, violated, violates, violating
illegal, illegally, unlawful, unlawfully
noncompliance, noncompliant
negligence, negligent, malpractice
# health and private life
accident, accidents
injury, injuries, injured
fatal, fatality, fatalities
hospitalised, hospitalized, heart attack, heart attacks
cancer, tumour, tumor, tumours, tumors
seizure, seizures
overdose, overdosed
anaphylaxis, anaphylactic
infection, infections, infected
relapse, relapsed
poisoning, poisoned, poisonous, toxic
contaminated, contamination
explosion, explosions, exploded
caught fire
deteriorated, deteriorating, deterioration, worsened, worsening
harassment, harassed, stalking, stalked
violence, violent, assault, assaulted
abuse, abused, abusive
"""

_HARMLESS = """
risk assessment, risk assessments, risk management, risk manager, risk appetite, risk register, risk committee
risk team
risk department, risk map, risk averse, risk score, risk model, risk analyst, risk report, risk matrix
fraud detection, fraud prevention, fraud team, fraud department, fraud squad
threat model, threat models, threat modelling, threat modeling
crash course, crash courses, crash test, crash tests, crash diet, crash pad
critical thinking, critical acclaim, critically acclaimed, critical essay, critical edition, critical mass
critical path
critical theory, critical reading, critical success
error handling, error handler, error bar, error bars, margin of error, trial and error, error correction
known error, known errors
weight loss, loss function, loss leader, at a loss, hair loss
warning label, warning labels, warning light, warning triangle
emergency exit, emergency exits, emergency contact, emergency contacts, emergency number, emergency fund
emergency drill
accident insurance, by accident, happy accident
virus scan, virus scans, virus scanner, virus scanners, antivirus
vulnerability scan, vulnerability scans, vulnerability management
false alarm, false alarms
declined the invitation, declined an invitation, declined the offer, declined an offer, declined the meeting
declined to
decline the invitation, decline the offer, decline to
declines the invitation, declines to
severe weather plan, cancer research, breach of etiquette
crisis team, disaster recovery, disaster movie, breakdown by, breakdown of, cost breakdown, price breakdown
leak test, leak tests, leak proof, danger zone, negative space, stress test
retry failed, retries failed, retry a failed, retries a failed, retry the failed, retries the failed
penetration test, fail safe, failsafe, fail over, failover
"""

_NEGATORS = """
no, not, never, nothing, nobody, no one, none, neither, nor, cannot, no longer, nowhere, hardly, scarcely
barely, rarely
"""

_REVERSERS = """
without, free of, free from, safe from, clear of, absence of, lack of
zero, low, lower, lowest, little, minimal, negligible, less, slight
avoid, avoids, avoided, avoiding, prevent, prevents, prevented, preventing, avert, averts, averted, averting
rule out, rules out, ruled out, ruling out, eliminate, eliminates, eliminated, eliminating
negative for, instead of, rather than, immune to, unlikely to
protects against, protect against, protects from, protect from, protected from, protected against
guard against, guards against, insured against, insurance against
"""

_TURNERS = "failed to, fails to, unable to, too late to"

_NOT_NEGATORS = """
no doubt, not only, not just, not merely, no less than, no fewer than, no wonder, no matter, not to mention, nothing but
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

_SET_ASIDE = """
if, in case, in case of, in the event, in the event of, unless, whether, imagine, suppose, supposing
hypothetically, what if
novel about, film about, movie about, book about, story about, series about, documentary about, podcast about
thriller about
talk about, talk on, webinar about, webinar on, lecture about, lecture on, course about, course on, workshop about
workshop on, training about, training on, article about, article on, essay about, essay on, definition of
"""

_MENTIONS = """
the word, the words, the term, titled, entitled, called, named, nicknamed, codenamed
the film, the movie, the novel, the book, the game, the song, the band, the album, the board game
"""

_DENIALS = """
ruled out, averted, avoided, prevented, unlikely, not likely, negligible, minimal, excluded, unfounded, nonexistent
did not materialise, did not materialize, has passed, not confirmed, not found, not detected, not expected, negative
is low, was low, very low, remains low, is small, free, false alarm
"""

ENGLISH = RiskLanguage(
    code="en",
    markers=families(_MARKERS),
    harmless=forms(_HARMLESS),
    negators=forms(_NEGATORS),
    negator_endings=("n't",),
    reversers=forms(_REVERSERS),
    turners=forms(_TURNERS),
    not_negators=forms(_NOT_NEGATORS),
    breakers=forms(_BREAKERS),
    verbs=forms(_VERBS),
    joiners=("and", "plus"),
    set_aside=forms(_SET_ASIDE),
    mentions=forms(_MENTIONS),
    denials=forms(_DENIALS),
    none=("none", "nil", "zero", "0", "no"),
    free_endings=("free", "less", "proof", "proofed", "safe", "averse", "tolerant"),
    free_beginnings=("non", "anti", "un"),
    plural_endings=("s", "es"),
    articles=("the", "a", "an"),
    names_are_capitalised=True,
)
