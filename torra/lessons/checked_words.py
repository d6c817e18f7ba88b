"""Which sentences of a model's review may stand: those whose every number is a fact of the trade.

A model may word a lesson; it may not change or add a number, name another symbol, or speak to
whoever reads it later. `checked` keeps the sentences that hold to that and drops the others whole:
a sentence with half of its numbers taken out would say something else. What was dropped stands in
the flags, in words of ours, and no word of it is kept.

Whatever is not known to hold falls, and many a true sentence with it. A word has to be on the list
of torra.lessons.plain_words. A number is known by its digits, its unit and its clause together: a
word there says which of the figures it is (torra.lessons.figures). One in words up to twelve is
read as its digits. A win is not told of a loss, nor a target of a trade that was stopped. What is
said of more than the one trade falls (torra.lessons.general_statements).

Pure; raises for no text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from agents.feature_words import COMPONENTS
from agents.texts.fence import clean
from torra.clock import iso
from torra.lessons.figures import ENDED, LOST, PARTS, PATH, WON
from torra.lessons.general_statements import is_general
from torra.lessons.lesson import LessonFacts, LessonText
from torra.lessons.plain_words import COMMANDS, FIRST, PHRASES, PLAIN, SIDED
from torra.lessons.reviews import ODD, ONE_BAR, PART_BYTES, span
from torra.lessons.told_numbers import CLAUSE, NEGATIONS, TOLD, WORD, NumberCheck, words_of
from torra.trading_terms import SYMBOLS

NUMBER_UNKNOWN: Final = "number_unknown"
OTHER_SYMBOL: Final = "other_symbol"
FENCE: Final = "fence"
LINK: Final = "link"
CODE: Final = "code"
ORDERS: Final = "orders"
LETTERS: Final = "letters"
OUTCOME: Final = "outcome"
WORDS: Final = "words"
TOO_LONG: Final = "too_long"
FLAGS: Final = (
    FENCE, LINK, CODE, LETTERS, ORDERS, OTHER_SYMBOL, NUMBER_UNKNOWN, OUTCOME, WORDS, TOO_LONG,
)  # fmt: skip
"""Why sentences were dropped."""

SENTENCES: Final = 3
"""Sentences that a part keeps."""

READ_CHARS: Final = 2_000
"""Characters of a part that are read at all: a reply may be long."""


def checked(words: LessonText, facts: LessonFacts) -> LessonText:
    """Return a model's words with the sentences alone that hold to the facts.

    A part of which nothing is left is empty; `flags` has why sentences were dropped.
    """
    check = _Check(facts)
    setup, outcome, rule = map(check.part, (words.setup, words.outcome, words.rule))
    flags = dict.fromkeys((*words.flags, *(flag for flag in FLAGS if flag in check.found)))
    return replace(words, setup=setup, outcome=outcome, rule=rule, flags=tuple(flags))


class _Check:
    """What one lesson's sentences are held against."""

    def __init__(self, facts: LessonFacts) -> None:
        self.found: set[str] = set()
        self._numbers = NumberCheck(facts)
        self._own = _own_names(facts)
        self._masks = _masks(facts)
        self._plain = PLAIN | self._own | {ITS_NAME}
        self._span, self._held = _time_held(facts.hours_held)
        self._ways = _ways(facts)
        self._told_not = _told_not(facts, self._ways)
        # Some symbols look like an address or like code: EURUSD.pro, NAS_100.
        self._symbol = re.compile(rf"(?<!\w){re.escape(facts.symbol)}(?!\w)")

    def part(self, text: str) -> str:
        """Return the sentences of a part that may stand."""
        kept: list[str] = []
        if len(text) > READ_CHARS:
            self.found.add(TOO_LONG)
        for raw in _sentences(text[:READ_CHARS]):
            flag = self._flag(raw)
            sentence = clean(raw, PART_BYTES)
            told = " ".join([*kept, sentence])
            if not flag and (len(kept) == SENTENCES or len(told.encode()) > PART_BYTES):
                flag = TOO_LONG
            if flag:
                self.found.add(flag)
            elif sentence:
                kept.append(sentence)
        return " ".join(kept)

    def _flag(self, raw: str) -> str:
        """Return why a sentence may not stand; "" where it may."""
        if len(raw.encode("utf-8", "backslashreplace")) > PART_BYTES and not FENCES.search(raw):
            return TOO_LONG
        told = self._symbol.sub(ITS_NAME, raw)
        return _shape(told) or self._meaning(told.translate(TYPOGRAPHY))

    def _meaning(self, text: str) -> str:
        if _orders(text):
            return ORDERS
        for mask in self._masks:
            text = mask.sub(" ", text)
        text = self._span.sub(self._held, text)
        if not all(map(self._is_known, _names(text))):
            return OTHER_SYMBOL
        if not self._numbers.hold(text):
            return NUMBER_UNKNOWN
        if not all(map(self._is_told_rightly, map(words_of, CLAUSE.split(text)))):
            return OUTCOME
        if not words_of(TOLD.sub(" ", text)) <= self._plain:
            return WORDS
        return OUTCOME if is_general(text) else ""

    def _is_known(self, name: str) -> bool:
        return name.lower() in self._own or name in TERMS

    def _is_told_rightly(self, clause: frozenset[str]) -> bool:
        """Return whether a clause tells no other end than the trade's."""
        wrong = clause & self._told_not
        if clause >= {"as", "planned"} and "win" not in self._ways:
            return False
        if "best" in clause and clause.isdisjoint(ENDED):
            wrong -= frozenset(PATH)
        if not clause.isdisjoint(ENDED):
            wrong |= clause & {word for way, word in STOOD.items() if way not in self._ways}
        return not wrong and not (clause & NEGATIONS and clause & ENDINGS)


def _shape(raw: str) -> str:
    """Return what is wrong with the letters of a sentence; "" for nothing."""
    text = raw.translate(TYPOGRAPHY)
    tests = (
        (FENCE, FENCES.search(raw)),
        (LINK, LINKS.search(raw)),
        (NUMBER_UNKNOWN, any(map(_is_odd_number, raw))),
        (LETTERS, not text.isascii() or not text.isprintable()),
        (CODE, CODES.search(text)),
    )
    return next((flag for flag, holds in tests if holds), "")


def _is_odd_number(letter: str) -> bool:
    return letter > "\x7f" and unicodedata.numeric(letter, None) is not None


def _orders(text: str) -> bool:
    """Return whether a text orders something of its reader, as far as that can be recognised."""
    if words_of(text) & COMMANDS or PHRASES.search(text):
        return True
    for clause in STARTS.split(text):
        told = LEAD.sub("", clause.strip(" \"'")).strip()
        first = WORD.match(told)
        if (first and first[0].lower() in FIRST) or SIDED.fullmatch(told):
            return True
    return False


def _time_held(hours: float) -> tuple[re.Pattern[str], str]:
    """Return how a page writes the time held, and that time as one number with its unit."""
    told, number = span(hours), f"{hours:.1f} h"
    if 0 <= hours < MINUTE:
        told, number = ONE_BAR, f"in {number}"
    return re.compile(rf"(?<![\w.,:+-]){told or '(?!)'}(?![\w%-])"), number


def _ways(facts: LessonFacts) -> frozenset[str]:
    """Return what a trade may be told as: costs may have made a loss of a gain, then as both."""
    if facts.outcome == "scratch":
        return frozenset()
    return frozenset((facts.outcome, "win" if facts.r > 0 else "loss"))


def _told_not(facts: LessonFacts, ways: frozenset[str]) -> frozenset[str]:
    """Return the words that tell another end than a trade's, in small letters."""
    ends = (words for reason, words in REASONS.items() if reason != facts.reason)
    found = (words for way, words in OUTCOMES.items() if way not in ways)
    return frozenset(word for words in (*ends, *found) for word in words)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with its mark; a line's end ends one too."""
    for line in text.splitlines():
        yield from (found for part in ENDS.split(line) if (found := part.strip()))


def _names(text: str) -> Iterator[str]:
    """Yield the words of a sentence that may be a symbol's name, or another market's."""
    for place, found in enumerate(NAME.finditer(text)):
        name = found[0]
        capitals = sum(letter.isupper() for letter in name)
        if capitals > 1 or (capitals and place) or _is_market(name.lower()):
            yield name


def _is_market(name: str) -> bool:
    return name in MARKETS or name in TICKERS or PAIR.fullmatch(name) is not None


def _own_names(facts: LessonFacts) -> frozenset[str]:
    """Return what the traded symbol may be called, in small letters."""
    symbol = facts.symbol.lower()
    parts = re.split(r"[^a-z0-9]+", symbol)
    called = (name for name, codes in MARKETS.items() if any(code in symbol for code in codes))
    codes = (code for code in CODE_NAMES if code in symbol)
    return frozenset((symbol, *parts, *called, *codes, facts.timeframe.lower()))


def _masks(facts: LessonFacts) -> list[re.Pattern[str]]:
    """Return what has digits and is no number: names, and the trade's own times."""
    strongest = facts.situation.strongest if facts.situation else ()
    times = (iso(moment) for moment in (facts.bar_time, facts.opened_at, facts.closed_at))
    names: Iterable[str] = (
        *(facts.symbol, facts.timeframe),
        *(
            words
            for name, _ in strongest
            for words in {COMPONENTS.get(name), PARTS.get(name)}
            if words
        ),
        *(*ONCE, *ODD.values()),
        *(part for time in times for part in (time, time[:10], time[11:16])),
    )
    longest = sorted(dict.fromkeys(names), key=len, reverse=True)
    return [
        re.compile(rf"(?<![\w.,:+-]){re.escape(name)}(?![\w:%-])(?![.,]\d)", re.IGNORECASE)
        for name in longest
        if name
    ]


# --- how a text is read ---------------------------------------------------------------------------

ENDS: Final = re.compile(r"(?<=[.!?])\s+")
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
STARTS: Final = re.compile(
    r"[;:,.!?](?=\s|$)|[()\"]|\s-\s|\b(?:and|or|then|but|so)\b", re.IGNORECASE
)
LEAD: Final = re.compile(
    r"^(?:(?:just|now|simply|only|also|again|instead|still|even|next time)\b\s*)+", re.IGNORECASE
)
"""Where an order may begin, and what may stand before it."""

ITS_NAME: Final = "symbol"
"""What stands for the symbol while a sentence is read."""

TYPOGRAPHY: Final = str.maketrans(
    {"–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"',
     "…": ".", "\u00a0": " ", "\u202f": " ", "\u2009": " "}
)  # fmt: skip

FENCES: Final = re.compile(r"<<|>>|[<>{}\[\]`]|\bQUOTE\b|\bNONCE\b")
LINKS: Final = re.compile(r"://|www\.|@|\b[\w-]+\.(?!\d)[A-Za-z]{2,}\b", re.IGNORECASE)
CODES: Final = re.compile(r"[^A-Za-z0-9 .,;:'\"()%!?+-]|\w\(|\(\)|--|;\s*$")

# --- what holds of a trade ------------------------------------------------------------------------

OUTCOMES: Final = {
    "win": (*WON, "worked", "works"),
    "loss": (*LOST, "failed", "fail", "fails", "failing", "failure"),
}
STOOD: Final = {"win": "ahead", "loss": "behind"}
REASONS: Final = {
    "STOPPED": ("stop", "stops", "stopped"),
    "TARGET": ("target", "targets"),
    "BY_HAND": ("hand", "person"),
}
"""Words that tell how a trade ended."""

ENDINGS: Final = frozenset(
    word for told in (OUTCOMES, REASONS) for one in told.values() for word in one
)
MINUTE: Final = 1.0 / 60.0

ONCE: Final = ("one trade", "one refusal", "no one")
"""Of the number one these are true of each lesson."""

# --- names ----------------------------------------------------------------------------------------

TERMS: Final = frozenset(
    (
        *(
            "R",
            "ATR",
            "ADX",
            "RSI",
            "MACD",
            "CCI",
            "DI",
            "EMA",
            "SMA",
            "MAE",
            "MFE",
            "I",
            "A",
            "SL",
            "TP",
        ),
        *("ADX14", "RSI14", "ATR14", "EMA20", "SMA50", "SMA200", "L1", "GMT", "UTC"),
        *("London", "New", "York", "Asia", "Asian", "European", "American", "US", "NY"),
        *("Bollinger", "Fibonacci", "Ichimoku", "Markov", "The", "It", "Its", "Long", "Short"),
    )
)
"""Names that every market shares."""

CODE_NAMES: Final = (
    *("xau", "xag", "xpt", "xpd", "usd", "eur", "gbp", "jpy", "chf", "aud", "cad", "nzd", "cnh"),
    *("sek", "nok", "btc", "eth", "xrp", "sol", "ltc", "bnb", "ada", "doge"),
)
PAIR: Final = re.compile(rf"({'|'.join(CODE_NAMES)}){{1,2}}t?")
TICKERS: Final = frozenset(name.lower() for name in SYMBOLS)

MARKETS: Final[dict[str, tuple[str, ...]]] = {
    "gold": ("xau", "gold"), "bullion": ("xau", "gold"), "silver": ("xag", "silver"),
    "platinum": ("xpt",), "palladium": ("xpd",), "copper": ("copper", "xcu"),
    "dollar": ("usd", "dxy"), "greenback": ("usd", "dxy"), "buck": ("usd",), "euro": ("eur",),
    "pound": ("gbp",), "sterling": ("gbp",), "cable": ("gbpusd",), "yen": ("jpy",),
    "franc": ("chf",), "aussie": ("aud",), "loonie": ("cad",), "kiwi": ("nzd",), "yuan": ("cnh",),
    "bitcoin": ("btc",), "ether": ("eth",), "ethereum": ("eth",), "ripple": ("xrp",),
    "solana": ("sol",), "litecoin": ("ltc",), "dogecoin": ("doge",), "crypto": ("btc", "eth"),
    "oil": ("oil", "wti", "brent", "xti", "xbr"), "crude": ("oil", "wti", "brent", "xti", "xbr"),
    "brent": ("brent", "xbr"), "wti": ("wti", "xti"), "gas": ("gas", "xng"),
    "nasdaq": ("nas", "ndx", "ustec"), "dow": ("us30", "dji", "dow"), "dax": ("dax", "ger", "de40"),
    "nikkei": ("jp225", "nikkei"), "ftse": ("uk100", "ftse"), "vix": ("vix",), "dxy": ("dxy",),
    "spx": ("spx", "us500"), "russell": ("us2000", "rut"), "stoxx": ("stoxx", "eu50"),
    "tesla": ("tsla",), "nvidia": ("nvda",), "apple": ("aapl",), "microsoft": ("msft",),
    "amazon": ("amzn",), "google": ("goog",), "alphabet": ("goog",), "meta": ("meta",),
}  # fmt: skip
"""Markets by their common names, with what a symbol's name holds that is one of them."""
