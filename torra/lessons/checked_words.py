"""Which sentences of a model's review may stand: plain words whose every number is a fact.

A model may word a lesson; it may not change or add a number, name another symbol, or speak to
whoever reads it later. `checked` keeps the sentences that hold to that and drops the others whole:
a sentence with half of its numbers taken out would say something else. What was dropped stands in
the flags, in words of ours, and no word of it is kept.

Whatever is not known to hold falls, and many a true sentence with it. A word is one of
the words below (`PLAIN`), or a name of the trade: so no other symbol, address, quotation mark of
ours or number in words passes. A number is known by its digits, its sign and its unit, beside a
word of its clause that says which of the figures it is (torra.lessons.figures). A win is not told
of a loss, nor a target of a trade that was stopped.

Pure; raises for no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from agents.features import COMPONENTS
from agents.texts.fence import clean
from torra.clock import iso
from torra.lessons.figures import LOST, PARTS, WON, figures
from torra.lessons.lesson import LessonFacts, LessonText
from torra.lessons.reviews import ODD, ONE_BAR, PART_BYTES, span

LETTERS: Final = "letters"
ORDERS: Final = "orders"
NUMBER_UNKNOWN: Final = "number_unknown"
OUTCOME: Final = "outcome"
WORDS: Final = "words"
TOO_LONG: Final = "too_long"
FLAGS: Final = (LETTERS, ORDERS, NUMBER_UNKNOWN, OUTCOME, WORDS, TOO_LONG)
"""Why sentences were dropped."""

SENTENCES: Final = 3
"""Sentences that a part keeps."""

READ_CHARS: Final = 2_000
"""Characters of a part that are read at all: a reply may be long."""

ENDS: Final = re.compile(r"(?<=[.!?])\s+|[\r\n]+")
WORD: Final = re.compile(r"[A-Za-z]+")
CAPITALS: Final = re.compile(r"\b[A-Z]{2,}\b")
_ABBREVIATIONS: Final = "ADX ATR CCI DI EMA MACD RSI SMA"
ABBREVIATIONS: Final = frozenset(_ABBREVIATIONS.split())
"""Words in capitals that name no market."""

POSSESSIVE: Final = re.compile(r"(?<=[A-Za-z])'s\b")
NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<sign>[+-]?)(?P<digits>\d{1,9}(?:\.\d{1,9})?)"
    r"(?:[\s-]*(?P<unit>%|R|ATR|x|times|h|hours?|min|minutes?|bars?|days?))?(?![\w%]|[.,:]\d)"
)
"""A number with its unit."""

_INEXACT: Final = """
no not never nor neither without more less than least most nearly almost next other
"""
INEXACT: Final = frozenset(_INEXACT.split())
"""Words beside which a number is another one."""

RATE: Final = re.compile(r"\s+(?:an?|per|each|every)\b", re.IGNORECASE)
"""What makes a rate of the number before it: no figure of a trade is one."""

CLAUSE: Final = re.compile(
    r"[;:,](?=\s|$)|[()]|\s-\s|\b(?:and|but|or|yet|then|while|when|where|until|because|though"
    r"|although)\b",
    re.IGNORECASE,
)
"""What ends a clause: a number is named within its own."""

STARTS: Final = re.compile(
    r"[;:,.!?](?=\s|$)|[()\"]|\s-\s|\b(?:and|or|then|but|so)\b", re.IGNORECASE
)
LEAD: Final = re.compile(
    r"^(?:(?:just|now|simply|only|also|again|instead|still|even|next time)\b\s*)+", re.IGNORECASE
)
"""Where an order may begin, and what may stand before it."""

TYPOGRAPHY: Final = str.maketrans("–—−‐‑’‘“”…\u00a0\u202f\u2009", "-----''\"\".   ")
FOREIGN: Final = re.compile(r"[^A-Za-z0-9 .,;:'\"()%!?+-]|\w\(|\(\)|--|;\s*$|\w\.[A-Za-z]")
"""What no plain sentence holds: letters and marks of fences, addresses, code and other scripts."""

WAYS: Final = {"win": f"{WON} worked works", "loss": f"{LOST} failed fail fails failing failure"}
REASONS: Final = {
    "STOPPED": "stop stops stopped", "TARGET": "target targets", "BY_HAND": "hand person",
}  # fmt: skip
"""Words that tell how a trade ended."""

ONCE: Final = ("one trade", "one refusal", "no one")
"""Of the number one these are true of each lesson."""

ITS_NAME: Final = "symbol"
"""What stands for the symbol while a sentence is read."""


# --- the words of which a lesson is written -------------------------------------------------------

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
"""Words, in small letters, that a sentence may be made of: English of every day and of a trader's.

An allow-list: a sentence with any other word is dropped, a name, a number in words, a foreign
tongue or a request that no list of bad words would ever hold. It has no unit: those stand with a
number, and the number's check reads them.
"""

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


# --- the check ------------------------------------------------------------------------------------


def checked(words: LessonText, facts: LessonFacts) -> LessonText:
    """Return a model's words with the sentences alone that hold to the facts.

    A part of which nothing is left is empty; `flags` has why sentences were dropped.
    """
    check = SentenceCheck(facts)
    setup, outcome, rule = map(check.part, (words.setup, words.outcome, words.rule))
    flags = dict.fromkeys((*words.flags, *(flag for flag in FLAGS if flag in check.flags)))
    return replace(words, setup=setup, outcome=outcome, rule=rule, flags=tuple(flags))


class SentenceCheck:
    """What one lesson's sentences are held against."""

    def __init__(self, facts: LessonFacts) -> None:
        self.flags: set[str] = set()
        self._figures = figures(facts)
        # Some symbols look like an address or like code: EURUSD.pro, NAS_100.
        self._symbol = re.compile(rf"(?<!\w){re.escape(facts.symbol)}(?!\w)")
        self._names = re.compile(
            rf"(?<![\w.,:+-])(?:{'|'.join(map(re.escape, _names(facts)))})(?![\w%-]|[.,:]\d)",
            re.IGNORECASE,
        )
        self._plain = PLAIN | {ITS_NAME, facts.asset.lower()}
        self._other_ends = frozenset(_other_ends(facts))

    def part(self, text: str) -> str:
        """Return the sentences of a part that may stand."""
        kept: list[str] = []
        if len(text) > READ_CHARS:
            self.flags.add(TOO_LONG)
        for raw in filter(None, map(str.strip, ENDS.split(text[:READ_CHARS]))):
            flag, sentence = self.flag(raw), clean(raw, PART_BYTES)
            joined = " ".join([*kept, sentence])
            if not flag and (len(kept) == SENTENCES or len(joined.encode()) > PART_BYTES):
                flag = TOO_LONG
            if flag:
                self.flags.add(flag)
            elif sentence:
                kept.append(sentence)
        return " ".join(kept)

    def flag(self, raw: str) -> str:
        """Return why a sentence may not stand; "" where it may."""
        if len(raw.encode("utf-8", "backslashreplace")) > PART_BYTES:
            return TOO_LONG
        text = self._symbol.sub(ITS_NAME, raw).translate(TYPOGRAPHY)
        if FOREIGN.search(text):
            return LETTERS
        if _orders(text):
            return ORDERS
        text = self._names.sub(" ", text)
        if not all(map(self.is_fact, CLAUSE.split(text))):
            return NUMBER_UNKNOWN
        text = NUMBER.sub(" ", text)
        words = words_of(text)
        if words & self._other_ends:
            return OUTCOME
        plain = words <= self._plain and ABBREVIATIONS.issuperset(CAPITALS.findall(text))
        return "" if plain else WORDS

    def is_fact(self, clause: str) -> bool:
        """Return whether every number of a clause is a fact of the trade."""
        words, numbers = words_of(clause), list(NUMBER.finditer(clause))
        if re.search(r"\d", NUMBER.sub(" ", clause)) or (numbers and words & INEXACT):
            return False
        return all(
            any(
                one.says(match["digits"], match["sign"], match["unit"] or "", words)
                for one in self._figures
            )
            and not RATE.match(clause, match.end())
            for match in numbers
        )


def _orders(text: str) -> bool:
    """Return whether a text orders something of its reader, as far as that can be recognised."""
    if words_of(text) & COMMANDS or PHRASES.search(text):
        return True
    for clause in STARTS.split(text):
        rest = LEAD.sub("", clause.strip(" \"'")).strip()
        first = WORD.match(rest)
        if (first and first[0].lower() in FIRST) or SIDED.fullmatch(rest):
            return True
    return False


def _other_ends(facts: LessonFacts) -> Iterator[str]:
    """Yield the words that tell another end than a trade's.

    Costs may have made a loss of a gain: then it may be told as both.
    """
    ways = {facts.outcome, facts.outcome == "scratch" or ("win" if facts.r > 0 else "loss")}
    for table, true in ((WAYS, ways), (REASONS, {facts.reason})):
        for name, words in table.items():
            if name not in true:
                yield from words.split()


def _names(facts: LessonFacts) -> list[str]:
    """Return what may be told as it stands: the trade's own names, times and time held."""
    strongest = facts.situation.strongest if facts.situation else ()
    times = [iso(moment) for moment in (facts.bar_time, facts.opened_at, facts.closed_at)]
    length = span(facts.hours_held) or (ONE_BAR if 0 <= facts.hours_held < 1 else facts.symbol)
    names = [facts.symbol, facts.timeframe, length, *ONCE, *ODD.values()]
    names += [
        table[name] for name, _ in strongest for table in (COMPONENTS, PARTS) if name in table
    ]
    names += [part for time in times for part in (time, time[:10], time[11:16])]
    return sorted(names, key=len, reverse=True)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters; the s of "its plan's stop" is none."""
    return frozenset(WORD.findall(POSSESSIVE.sub("", text).lower()))
