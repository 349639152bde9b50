"""English words of risk, by area. `a|b` stands for either word, `~` for an article, a possessive or nothing.

Source: written by the project's authors for this purpose; taken from no other list.
"""

from __future__ import annotations

GENERAL = """
risk, risks, risky, riskier, riskiest, risked, risking; danger, dangers, dangerous, dangerously; endanger, endangers,
endangered, endangering; threat, threats, threaten, threatens, threatened, threatening; hazard, hazards, hazardous;
peril, perils, perilous; jeopardy, jeopardise, jeopardises, jeopardised, jeopardize, jeopardizes, jeopardized;
warning, warnings, warned, warns; critical, critically; severe, severely; crisis, crises; disaster, disasters,
disastrous; catastrophe, catastrophes, catastrophic; emergency, emergencies; calamity; tragedy, tragic; havoc; mayhem;
chaos; unsafe; precarious; perilously; damage, damages, damaged, damaging; harm, harms, harmed, harmful, harming;
destroyed, destroys, destroying, destruction; devastated, devastating; wrecked; ruined, ruins; collapse, collapses,
collapsed, collapsing; failure, failures, fail, fails, failed, failing; loss, losses; decline, declines, declined,
declining; deteriorated, deteriorates, deteriorating, deterioration; worsened, worsens, worsening; got worse; getting
worse; panic, panicked; desperate; alarming; worrying; worried about, worried that; fears that; afraid that; out of
control; out of hand; on the brink; on the verge of; at stake; in trouble; in deep trouble; backfired; negative
review|reviews|feedback|impact|effect|effects|publicity|press|balance|equity|margin|margins|outlook|trend|growth;
negative cash flow; missing since; went missing; gone missing; disappeared; vanished; is missing; has been missing;
have been missing; lost data|money|customers, lost ~
customer|contract|passport|wallet|job|child|case|deposit|luggage|keys|key|savings|house; lost control, lost
consciousness, lost power, lost contact; stranded; trapped; cut off from; locked out; stuck in, stuck since; is stuck;
are stuck; got stuck; been stuck; was denied; been denied; were denied; was rejected; been revoked; was revoked; about
to come down, about to burst, about to break, about to expire, about to collapse; could burst; may burst; out of date;
expired; expires tonight|today|tomorrow, expire tonight|today|tomorrow; lapsed; runs out tonight|today|tomorrow;
run|runs|ran|running out of; run|runs|ran|running low on; beyond repair; unusable; unreachable; inoperable; unstable;
instability; above ~ limit; over ~ limit; exceeds ~ limit; cannot cope; overwhelmed; understaffed; overloaded,
overworked; burnt out, burned out; burnout; sabotage, sabotaged; tampered with; vandalised, vandalized, vandals,
vandalism, vandal; was|were|been refused; refused entry|admission|treatment|payment|to pay|to leave|to help; refuses
to pay|leave|help; exceeded|exceeds ~ limits|budget|capacity|threshold; exceeded ~ limit; to be thrown away; washed
away; tore ~ roof; torn off; wobbles, wobbly; fell|dropped|down|plunged|lost|lose # percent; # percent full; is
rising; are rising; still rising; runs|run|ran out on|this|next; will be lost; are lost; get lost for good; thrown out
of; pulled from the|our shops|shelves|market; scared of|for; afraid; fears for
"""

HEALTH = """
accident, accidents; crash, crashes, crashed, crashing; injury, injuries, injured, injuring; hurt ~
back|knee|leg|arm|head|shoulder|neck|foot|hand; badly hurt; seriously hurt; wound, wounds, wounded; bleed, bleeds,
bleeding; bled; haemorrhage; hemorrhage; blood loss; loses blood; broke ~
hip|leg|arm|wrist|ankle|rib|ribs|nose|neck|back|collarbone, broken hip|leg|arm|wrist|ankle|rib|bone|neck; fracture,
fractures, fractured; concussion; sprained; dislocated; stitches; amputated; paralysed, paralyzed; fatal, fatality,
fatalities; dying; died of|from|in|after; is dead; was killed; were killed; could kill; can kill; kill ~
patient|child|driver; life threatening; death, deaths; deadly; lethal; lifeless; hospitalised, hospitalized; rushed
to; taken to hospital|the hospital; in hospital with; in intensive care; intensive care; ambulance; emergency room;
resuscitated, resuscitation; on life support; heart attack, heart attacks; cardiac arrest; heart failure; stroke,
strokes; aneurysm; thrombosis; embolism; sepsis; blood clot, blood clots; cancer; tumour, tumor, tumours, tumors;
malignant; metastases, metastasis; leukaemia, leukemia; melanoma; terminally ill; seizure, seizures; epileptic fit;
convulsions; coma; unconscious; passed out; faint, faints, fainted, fainting; blacked out; dizzy, dizziness; vertigo;
numbness, numb; chest pain|pains; severe pain; sharp pain; in pain; short of breath; shortness of breath; cannot
breathe; could not breathe; stopped breathing; difficulty breathing; trouble breathing; choking; choked; suffocated;
drowned, drowning; nearly drowned; fever; high temperature; vomiting; dehydrated, dehydration; hypothermia,
hypoglycaemia, hypoglycemia; frostbite; allergic, allergy, allergies; allergic reaction; anaphylaxis, anaphylactic;
hives; swollen lips|tongue|face|throat; rash; overdose, overdosed, overdoses; wrong
dose|dosage|medication|medicine|blood|patient; side effect, side effects; infection, infections, infected; contagious;
outbreak of; epidemic; pandemic; quarantine, quarantined; norovirus; pneumonia; meningitis; hepatitis; tuberculosis;
salmonella; covid; measles; septic; relapse, relapsed, relapses; addicted, addiction; drinking heavily, drinking
again; drunk driving; drink driving; withdrawal symptoms; suicide, suicidal; self harm; hurt
himself|herself|themselves; kill himself|herself|themselves; overdosing; depressed, depression; panic attack, panic
attacks; nervous breakdown; psychosis; anorexia; bulimia; miscarriage; stillborn; kidney failure; liver failure; organ
failure; dialysis; diabetic; diabetic shock; insulin shock; forgot ~ insulin|medication|medicine|pills|inhaler|dose;
skipped ~ insulin|medication|medicine|pills|dose; missed ~ insulin|medication|dose|chemo; stopped taking; poisoning,
poisoned, poisonous, poison; toxic, toxin; contaminated, contamination; carbon monoxide; asbestos; radiation leak;
bedsore, bedsores; gangrene; blood pressure was|is; spread to ~ liver|lungs|lung|brain|bones|bone, spreads to ~
arm|jaw; swallowed ~ battery|coin|button|magnet|pill|pills; dog|snake|cat|tick|spider bit; was|were|been|got bitten;
insect bites; slipped and fell; fell and hurt; hit ~ head; hits ~ child|children|wife|girlfriend|son|daughter;
meds|medication|pills|insulin ran|run|runs out; tightness in ~ chest; pounding headache; eating disorder; breathing
pauses; oxygen down; instead of # mg; year|years|months|weeks|days to live; full of smoke; may not recover; not
recover; diarrhoea, diarrhea; hung on by; glass splinters; splinters; grenade; rats; bedbugs; lice; swells; throat
swells|closes; turned blue; stopped eating; refuses food; weighs # kg; cannot keep|hold anything down; blood in;
coughing blood; coughs blood; sleepwalks; hears voices; harms herself|himself; cuts herself|himself
"""

MONEY = """
fraud, frauds, fraudulent, fraudulently; defraud, defrauded; scam, scams, scammed, scammer, scammers; swindle,
swindled, swindler; ponzi scheme; pyramid scheme; pump and dump; theft, thefts; thief, thieves; stolen, stole; steal,
steals, stealing; robbery, robbed, robbers; burglary, burgled, burglar; burglars; looted; pickpocket, pickpockets,
pickpocketed; mugged; shoplifting; bankruptcy, bankrupt; insolvency, insolvent; liquidation; receivership; going out
of business; out of business; went bust; overdue; arrears; late fee, late fees; unpaid; missed payment, missed
payments, missed ~ payroll|instalment|installment|rent; behind on ~ rent|mortgage|payments; cannot pay; could not pay;
cannot afford; unable to pay, unable to afford; defaulted; in default; default on ~ loan|debt|mortgage, defaults on ~
loan|debt|mortgage; in debt; deep in debt; indebted; owes ~ bank|suppliers|landlord|creditors; owe ~
bank|suppliers|landlord|creditors|penalty; overdrawn, overdraft; will bounce; cheque bounced; check bounced; payment
bounced; bounced twice, bounced again; chargeback, chargebacks; frozen account, froze ~ account; account was
frozen|blocked|closed, accounts were frozen; foreclosure, foreclosed; repossessed; seize, seizes, seized; confiscated;
garnished; recession; inflation; hyperinflation; devalued, devaluation; market crash; bear market; margin call; credit
crunch; plunged, plunges; plummeted, plummets, plummeting; tumbled; slumped, slump; nosedived; tanked; wiped out; lost
half|most|all|everything, lost ~ percent, lost a third|quarter|fortune; percent of its value; of its value; worthless;
junk bond; to junk; downgraded; write off, written off; writedown; impairment; shortfall; deficit; in the red;
embezzlement, embezzled, embezzling; bribery, bribe, bribes, bribed; extortion, extorted; blackmail, blackmailed;
kickbacks; kickback; corruption, corrupt; money laundering; laundered money; tax evasion; insider trading; overstated;
cooked the books; forged, forgery, forgeries; counterfeit; fake invoice|invoices|cheque|check|account; falsified;
identity theft; without permission, without authorisation, without authorization; unauthorised, unauthorized; fined;
fine of, fines of; penalty, penalties, penalised, penalized; surcharge for late; gambled away, gambling debts; maxed
out; not covered; not insured; uninsured; underinsured; insurance lapsed|expired; run out of cash|money; runs out of
cash|money; ran out of cash|money; cash will run out; money is gone, money has gone; below cost; layoffs; laid off;
redundancies; made redundant; unemployed; hiring freeze; pay cut; closing the plant|factory|shop|store|office; shut
down ~ plant|factory|office; price shock; supply shock; was|were|been|got fired; being fired; clawed|claw back; covers
only; claimed twice; claimed # times; gambling, gambles, gambled; casino; blew ~ savings|money|budget; emptied ~
account|accounts|safe; could|cannot not reconcile; does not add up; do not add up; missing from ~ till|account|safe;
paying herself|himself; skimming; surcharge, surcharges; back payment; back taxes; credit score fell; went into
default; into default; unpaid for; frozen funds; price has doubled|tripled; living on ~ overdraft; pawned; loan shark;
debt collector, debt collectors; bailiff, bailiffs; underwater mortgage; short of cash; cash crunch; burn rate; run on
"""

OPERATIONS = """
outage, outages; downtime; is down; are down; was down; were down; been down; went down; goes down; down for, down
since; error, errors, erroneous; exception thrown, exceptions thrown; stack trace; crash loop; breakdown, breakdowns;
broke down; breaks down; broken down; broken; malfunction, malfunctions, malfunctioned, malfunctioning; defect,
defects, defective; faulty, fault; corrupted; data corruption, data loss; wiped ~ data|disk|database|server; deleted ~
production; is|was no backup; has|have|had no backup; backup failed, backups failed; overwritten; unrecoverable; not
responding; unresponsive; times|time|timed|timing out; timeout, timeouts; deadlock, deadlocks, deadlocked; out of
disk|memory|space|stock; disk is full, disk full; overflow, overflowed, overflows; backlog grows, backlog is growing;
memory leak; leak, leaks, leaked, leaking, leakage; spill, spilled, spillage; ruptured; latency has
doubled|tripled|spiked, latency spike|spikes; tripled since; spiked; degraded, degradation; throttled; breach,
breaches, breached; hacked, hacker, hackers, hack; intruder, intruders, intrusion; attacker, attackers; attack,
attacks, attacked; ddos; denial of service; brute force; exploit, exploited, exploits; compromised; backdoor; malware;
ransomware; spyware; trojan; virus, viruses; worm spread; botnet; phishing, phished; spoofed; keylogger;
vulnerability, vulnerabilities, vulnerable; zero day; security hole, security flaw; injection flaw; misconfigured;
exposed; publicly accessible; open bucket, open port; leaked password|passwords|credentials; password leaked;
password|passwords|key|token|secret to a public; stolen token|key|password|credentials|laptop|data; suspicious;
cyberattack, cyberattacks; cyber attack, cyber attacks; incident, incidents; shortage, shortages; bottleneck; delayed
by; delays; late delivery; cannot deliver; could not deliver; unable to deliver; missed deadline, missed deadlines,
missed the|a|our|their|his|her|my|its deadline; deadline passed; behind schedule; overran; stand still; standstill;
halted; product recall; rejected all; failed inspection; did not pass; unsafe to use; out of order; out of service;
resigned; only person who, only engineer who; single point of failure; nobody has ~ key|password|access; no one has ~
key; on fire; caught fire; catch fire; burnt down, burned down; burnt; smoke was|is|came|comes|coming, smoke in;
sparks; overheat, overheats, overheated, overheating; short circuit; electrocuted; electric shock; tripping ~ breaker;
power cut|outage|failure; blackout; explosion, explosions, exploded, explode, explodes; detonated; gas leak; smell of
gas|smoke|burning, smells of gas; flood, flooded, flooding, floods; under water; water damage; burst pipe|pipes;
leaky; landslide; avalanche; earthquake; jammed; derailed; fell from; dropped its|~ load; tipped over; fell asleep at,
fell off; crushed; scalded; near miss; walkout; stock ran out; unplanned; was|were|been recalled; recalled by ~
maker|manufacturer; safety recall; fire broke|in|at; ~ fire on; fires in; wildfire; burst|bursts into flames; burst ~
tyre|tire|tank; burst the|a|our pipe; pipe|tank|tyre|tire|boiler|dam burst; for cracking; cracks in; cracked ~
screen|wall|rib|pipe|pads; in cracks; strike by; on strike; go|going|went on strike; lightning strike; strikes at; got
hacked; hack of; missed ~ sla; take|takes|took|taking ~ shop|site|service|system|cluster down; ends support; end of
life; end of support; no more security fixes|updates|patches; unpatched; trying passwords; failed logins; attempts
since; left open over|overnight; ransom, ransom note; still has root|access|admin; stopping|failing silently; silently
failing|failed|dropped; no restorable backup; split brain; data race; race condition; out of sync; drifting; rolled
back because; single disk; disk failure; # degrees in; tripped ~ breaker; power loss; pulled ~ plug; shut down
unexpectedly; keeps restarting|crashing|failing; restarts every; hangs since; lost packets; dropped packets; stalled;
backlog of; rejected by customs; rust, rusty; corroded, corrosion; brakes fail; wheel came off; ran aground; capsized;
sinking
"""

LAW = """
lawsuit, lawsuits; sued; suing; sues; sue us|them|him|her; litigation; subpoena, subpoenaed; prosecuted, prosecution;
indicted, indictment; charged with; accused of; accusation, accusations; allegation, allegations, alleged; complaint
against; arrest, arrested, arrests; warrant for; search warrant; raided; raid on; police raid; jailed; imprisoned;
prison sentence; custody dispute; in custody; convicted; conviction for; sentenced to; on trial for; summoned,
summons; suspect; suspected of; violation, violations, violated, violates, violating; infringement, infringes,
infringed, infringing; breach of; in breach; illegal, illegally; unlawful, unlawfully; unlicensed; without a
licence|license; noncompliance, noncompliant; not compliant; negligence, negligent; malpractice; liable for, liability
for; misconduct; perjury; contempt of court; eviction, evicted; eviction notice; evict; deported, deportation; visa
was|is refused|denied; asylum was refused; cease and desist; injunction; restraining order; court order; ordered to
pay|hand, ordered us to; demands compensation|damages; wants compensation; seeks damages; demanding damages; claims
damages; seeking damages; sue for; legal action, legal dispute; investigation into; under investigation; investigates;
investigated for, investigating ~ company|firm|matter; probe into; sanctions, sanctioned; sanctions list; embargo;
blacklisted; banned from; whistleblower; cover up, covered up; shredded; may be blocked; might be blocked; antitrust;
cartel; price fixing; trade secret theft; plagiarism, plagiarised, plagiarized; discrimination, discriminated;
harassment, harassed; wrongful dismissal; unfair dismissal; dismissed without notice; is void; null and void; invalid
contract; contract is invalid; expired licence|license|permit; licence|license|permit expired; terminated ~
contract|agreement, terminates ~ contract|agreement; without notice; non compete; strike action; threatens to strike;
child labour, child labor; forced labour, forced labor; human trafficking; smuggled, smuggling; perjured; shut the,
shut down by; closed by the authorities; shut ~ kitchen|restaurant|shop|factory; revoked; threatened|threatening to
strike|sue|evict; threatens to sue|evict; accuses, accuse; lose ~ case|appeal; unanswered for; past the|its
limit|deadline; backdate, backdated; without consent; per mille; licence|license is gone|suspended|revoked; lost ~
licence|license; leave the country; shut down ~ restaurant|kitchen|shop|site; terminate and; disqualified; struck off;
barred from; stripped of; lawsuit threat; lawyers are|have; class action; recall notice; non payment; breach notice;
notice of; police questioned; police are looking; fled the; on the run; wanted for; extradition; custody of; caught
driving|stealing|cheating
"""

PRIVATE_LIFE = """
broke|break|breaks|breaking into, broken into; break in, break ins; stalking, stalked, stalker, stalks; keeps
following; follows her home, followed her home; violence, violent; assault, assaulted, assaults; abuse, abused,
abusive; beaten up; punched; stabbed; gunshot; armed; knife attack; raped, rape; molested; groomed; kidnapped;
abducted; kidnapping; bullied, bullying, bullies; cyberbullying; blackmailing; ran away from home; runs away from
home; run away from home; left ~ child|children|baby|kids|toddler alone; unattended; bitten by; stung by; rabies;
scratched by; gas smell; mould|mold in; mouldy; moldy; rotten beam|beams|floor; roof leaks, roof is leaking, roof
collapsed; tree fell; fell down the stairs|ladder, fell in the|~ bathroom|shower|garden|street, fell off ~
roof|ladder|horse|bike; storm damage; hurricane; tornado; wildfires; bushfire; burglar alarm went off; river is
rising; water is rising; icy road|roads; black ice; skidded; hit and run; ran over; run over by; totalled; drove
drunk; drives drunk; wrong way driver; lost on the mountain; homeless; on the street since; using|used my
name|identity|card|account; taken over; was taken over; hijacked; impersonated, impersonates, impersonating; is using
my; is using our; fake profile; doxxed; sextortion; divorce battle; custody battle; cannot remember; does not
recognise us|me|her|him; wandered off; dementia is getting; shots fired; shot dead; was shot; shove|shoves|shoved;
slipped; window ledge; nude pictures|photos|images; tracker under; wrong way down; poses as; asks ~ friends for money;
has not answered; have not answered; hasn't answered; climbed out; run someone over; run over; fell into; fell
through; nearly fell, nearly died, nearly hit; almost fell|drowned|died|hit; attacked by; chased by; cornered by;
screams for help; screamed for help; called the police; locked in; left behind alone; playing with
matches|fire|knives; unfenced pool; loose dog; snow load; gas bottle; frayed cable|cord; exposed wire|wires|cable;
choking hazard; undertow; thin ice; rip current; avalanche warning
"""

MARKERS = ";\n".join((GENERAL, HEALTH, MONEY, OPERATIONS, LAW, PRIVATE_LIFE))
