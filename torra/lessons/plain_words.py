"""The words of which a lesson is written: English of every day, and of a trader's trade.

`PLAIN` is an allow-list. A sentence with any other word is dropped: a name, a number in words, a
foreign tongue or a request that no list of bad words would ever hold. It has no unit: those stand
with a number, and the number's check reads them. It has few verbs in the form of an order, and
`COMMANDS`, `FIRST` and `PHRASES` say of which nothing may begin or be told.

Values alone.
"""

from __future__ import annotations

import re
from typing import Final

from torra.lessons.figures import PARTS

_GRAMMAR: Final = """
a above across after again against ahead all almost alone along already also although always among
an and another any are as at away back be because been before behind being below beside between but
by can cannot despite did do does down during either else enough even ever except far few for from
further had has have having here how however if in instead into is it its itself just later least
less like little long may maybe might more most much near neither never next no nor not now of off
often on once only onto or other others out over own past perhaps quite rather s same since so
some sometimes soon still such than that the their them then there these they this those though
through thus to together too toward towards under unless until up upon usually very was well were
what when where whether which while who whole why will with within without would yet
"""

_MARKET: Final = """
action active activity adx agree agreed agrees american asia asian atr average averages band bands
bar bars bearish bias bodies body bollinger break breakout breakouts breaks broke broken bullish
buyers buying calm candle candles cci channel chop choppy climb climbed cloud consensus
consolidation correction cross crossed crossover di difference direction directional divergence
downside downtrend downward drift drifted drop dropped earnings ema european exhausted exhaustion
extended extension extreme extremes faded failed failing failure fakeout fall fallen falling falls
false fell fibonacci flat flow gap gapped gaps geopolitical headline headlines heavy high higher
highs histogram impulse indicator indicators intraday jump jumped key lean leaned leaning level
levels line lines liquidity london low lower lows macd macro market markets markov mean means middle
mixed momentum move moved movement moves moving narrow new news noise noisy oscillator overbought
overlap oversold participation pattern patterns peak percentile pressure price priced prices
pullback pullbacks quiet quietly rallied rally range ranges ranging reading readings rebound regime
rejected rejection resistance retest retested retracement retracements reversal reversals reverse
reversed rise risen rises rising rose rsi sellers selling sentiment session sessions sharp sharply
short side sides sideways signal signals slope sloped slow slowed sma spike spiked spread spreads
stalled stochastic strength strong stronger strongest structure supply support supported swing
swings tail thin thinner thrust top trend trended trending trends triage turn turned turning turns
uncertain unusual upside uptrend upward usual volatile volatility volume weak weakened weaker
weakness weekend weight wick wicks wide widened wider york
"""

_TRADE: Final = """
account adverse aim aimed alike amount ask asked asks avoid avoided avoiding avoids backed best
better big bigger brief briefly came case cases caused check checked checks clean clear clearly
close closed closely closing come comes compare compared confirm confirmation confirmed conflicting
conviction cost costly costs count course cut cuts decided decline declined delay delayed disagree
disagreed doubt drawdown earlier early edge effect end ended ending ends entered entering entries
entry event events evidence execution exit exited exits expectation expectations expected fact facts
fades fail fails fair fairly fast faster favor favorable favour favourable fill filled fills final
finally finished fit foretold found fully gain gained gains gate gave given giving good got hand
hard heed heeded held help helped helps hesitant hint hinted hold holding holds hope hoped idea
immediate immediately impatient inside intact invalid invalidated known lack lacked lacking large
largely last lasted late learn left lesson lessons limited look looked looks loser losers loses
losing loss losses lost luck lucky made management margin marginal matter mattered matters measure
mild minor missed missing mistake moderate modest negative notable nothing old open opened opening
openings opposed opposing opposite outcome outside overall overhead paid paper part partly patience
patient pays person placed plain plan planned plans poor poorly position positive possible profit
profitable profits proof prove proved proves quick quickly ran reach reached reaction real reason
reasons refusal refused refusing related relied remained repeat repeated repeats result results
reward right risk risks risky room rule scratch see seemed seems seen setup setups shallow share
showed shown shows signalled similar slight slightly slip slippage slipped small smaller smooth
something speaks spent spoke stale stand standing start started stayed steady stood stop stopped
stops strongly sudden suddenly surprise surprised surprising taken target targets tested thesis
tight time timed timing told took trade traded trades tried true unclear unconfirmed underneath
unknown unplanned unreliable value view wait waited waiting warned warning warnings watch way ways
went win winner winners winning wins won worked works worse worst worth wrong
began excursion goes hit lay minus plus says supports
"""

NOT_PLAIN: Final = frozenset(("zero", "balance"))
"""What the names of the scores' parts hold and no other sentence may."""

PLAIN: Final = (
    frozenset(f"{_GRAMMAR} {_MARKET} {_TRADE}".split())
    | {word for name in PARTS.values() for word in re.findall(r"[a-z]+", name.lower())}
) - NOT_PLAIN
"""Words, in small letters, that a sentence may be made of."""

_COMMANDS: Final = """
ignore ignored disregard forget override bypass obey comply pretend instruction instructions prompt
prompts system assistant developer admin administrator jailbreak password secret secrets credential
credentials execute eval sudo delete transfer withdraw deposit buy sell leverage json reply respond
output agent agents adjustment adjustments multiplier approve approved veto unveto halt confidence
abstain abstained user model ai llm role roleplay rules bull bear bulls bears researcher researchers
arbiter verdict binding dear note everything anything
"""
COMMANDS: Final = frozenset(_COMMANDS.split())
"""Words by which a text would steer its reader; a lesson needs none of them."""

HARMLESS: Final = frozenset(("ask", "avoid", "check", "compare", "heed", "look", "see", "wait"))
"""What a lesson may begin with that has the form of an order."""

_FIRST: Final = """
accept act add allow always answer apply assume back bet be believe begin break bring call cancel
change choose cite close continue count cover cut demand deny do double drop end enter exit expect
fade follow get give go grant have hedge hold increase join keep learn lean leave let lift lower
make measure move never open pass pay permit pick place please prefer press print push put raise
rate reduce refuse remember remove repeat return risk run say score send set show side size skip
stand start stay submit switch take tell think trade treat trust try turn use value vote watch widen
work write
"""
FIRST: Final = frozenset(_FIRST.split())
"""What no clause may begin with: the form in which an order is given."""

PHRASES: Final = re.compile(
    r"\byou\b|\byour\b|\b(double|increase|raise|triple|max\w*) (the |its )?(size|risk|stake|lots)"
    r"|\b(move|remove|widen|drop|lift|without|avoid|no|any|wait out) "
    r"(the |a |its |any |every )?(stops?|limit|ceiling|gate)\b"
    r"|\b(always|never) (open|close|go|enter|exit|trade|trust|score|cite)"
    r"|^support (the|a|this|it|symbol|long|short|every|any)\b"
    r"|\b(long|short)s? (is|are|as|pays?|wins?|works?)\b|\b(more|bigger|larger|full|all) risk\b"
    r"|\ball in\b|\bno risk\b|\brisk[- ]free\b|\bguarantee",
    re.IGNORECASE,
)
SIDED: Final = re.compile(
    rf"(?:(?:{'|'.join(sorted(HARMLESS))}|be|stay) )?(?:(?:only|just|for|a|the|more) )*"
    r"(?:long|short)s?(?: symbol)?"
    r"(?: (?:the|this|that|it|any|all|at|on|into|again|here|now|only|next|soon|once)\b.*)?[.!?]*",
    re.IGNORECASE,
)
"""A whole clause that names a side and tells nothing of it: "long now", "look for a short"."""
