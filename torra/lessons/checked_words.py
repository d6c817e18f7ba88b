"""Which sentences of a model's review may stand: whose numbers are facts of this market alone.

`checked` drops a sentence with a number that is no fact of the trade, the name of another market,
an order to its reader, an address, or a mark of a fence or of code. It goes whole: with half of its
numbers taken out it would say something else. The flags say why sentences were dropped, in words of
ours; no word of a dropped one is kept. What stands is a model's opinion all the same: notes are
quoted as others' words, and steer no number.

Pure; raises for no text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Final

from agents.features import COMPONENTS
from agents.texts.fence import clean
from torra.clock import iso
from torra.evidence.news_digest import TERMS
from torra.lessons.figures import PARTS, LessonNumber, spoken
from torra.lessons.lesson import LessonFacts, LessonText
from torra.lessons.reviews import PART_BYTES, span

LETTERS: Final = "letters"
ORDERS: Final = "orders"
NUMBER_UNKNOWN: Final = "number_unknown"
OTHER_MARKET: Final = "other_market"
TOO_LONG: Final = "too_long"
FLAGS: Final = (LETTERS, ORDERS, NUMBER_UNKNOWN, OTHER_MARKET, TOO_LONG)
"""Why sentences were dropped."""

SENTENCES: Final = 3
"""Sentences that a part keeps."""

READ_CHARS: Final = 2_000
"""Characters of a part that are read at all: a reply may be long."""

ENDS: Final = re.compile(r"(?<=[.!?])\s+|[\r\n]+")
TYPOGRAPHY: Final = str.maketrans("–—−‐‑’‘“”…\u00a0\u202f\u2009", "-----''\"\".   ")
FOREIGN: Final = re.compile(r"[^A-Za-z0-9 .,;:'\"()%!?+-]|\w\(|\(\)|--|;\s*$|\w\.[A-Za-z]|\bdot\b")
"""What no plain sentence holds: letters and marks of fences, addresses, code and other scripts."""

ORDER: Final = re.compile(
    r"\b(?:ignored?|disregard|forget|override|bypass|obey|pretend|instructions?|prompts?|system"
    r"|assistant|passwords?|secrets?|credentials?|execute|delete|you|your|everything|multiplier"
    r"|veto|approved?|binding|dear|buy|sell|double|score|vote|trust)\b",
    re.IGNORECASE,
)
"""Words that speak to whoever reads a lesson; a lesson needs none of them."""

NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<sign>[+-]?)(?P<digits>\d{1,9}(?:\.\d{1,9})?)"
    r"(?:[\s-]*(?P<unit>%|R|ATR|x|times|h|hours?|min|minutes?|bars?|days?))?(?![\w%]|[.,:]\d)"
)
"""A number with its unit."""

UNITS: Final = {
    "times": "x", "hour": "h", "hours": "h", "minute": "min", "minutes": "min", "bars": "bar",
    "days": "day", "of the account": "",
}  # fmt: skip
"""The unit by which each is compared, of those that are written in several ways."""

IN_WORDS: Final = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven"
    r"|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|dozens?|hundreds?|thousands?"
    r"|millions?|half|halves|thirds?|quarters?|twice|thrice|triple|\w+fold|pips|lots|dollars)\b",
    re.IGNORECASE,
)
"""Numbers in words, and units in which no fact is told."""

MARKETS: Final = {"silver": "silver"} | {
    term: name
    for group in ("asset", "currency", "coin")
    for name, terms in TERMS[group].items()
    for term in terms
    if term not in TERMS["rates"][""]
}
"""The asset, currency or coin of which a name is one."""

_CODES: Final = "|".join((*TERMS["currency"], *TERMS["coin"], "XAU", "XAG"))
_NAMES: Final = "|".join(map(re.escape, sorted(MARKETS, key=len, reverse=True)))
MARKET: Final = re.compile(rf"\b(?:{_NAMES}|(?:{_CODES}){{2}})(?!\w)", re.IGNORECASE)
CAPITALS: Final = re.compile(r"\b[A-Z]{2,}\w*|(?<=[\w,;:] )[A-Z][a-z]+")
"""How the name of a market is written: in capitals, or inside a sentence with one."""

ROUNDING: Final = 1e-9

OWN_CAPITALS: Final = frozenset(
    (
        "ADX", "ATR", "CCI", "DI", "EMA", "MACD", "RSI", "SMA", "Asia", "Asian", "London", "New",
        "York", "European", "American", "Bollinger", "Fibonacci", "Markov",
    )
)  # fmt: skip
"""Words with capitals that name no market."""


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
        self._numbers = spoken(facts)
        # Some symbols look like an address or like code: EURUSD.pro, NAS_100.
        self._symbol = re.compile(rf"(?<!\w){re.escape(facts.symbol)}(?!\w)")
        self._names = re.compile(
            rf"(?<![\w.,:+-])(?:{'|'.join(map(re.escape, _names(facts)))})(?![\w%-]|[.,:]\d)",
            re.IGNORECASE,
        )
        self._asset = facts.asset

    def part(self, text: str) -> str:
        """Return the sentences of a part that may stand."""
        kept: list[str] = []
        if len(text) > READ_CHARS:
            self.flags.add(TOO_LONG)
        for raw in filter(None, map(str.strip, ENDS.split(text[:READ_CHARS]))):
            flag, sentence = self.flag(raw), clean(raw, PART_BYTES)
            size = len(" ".join([*kept, sentence]).encode())
            if not flag and (len(kept) == SENTENCES or size > PART_BYTES):
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
        text = self._symbol.sub("it", raw).translate(TYPOGRAPHY)
        if FOREIGN.search(text):
            return LETTERS
        if ORDER.search(text):
            return ORDERS
        text = self._names.sub("it", text)
        if not self.holds(text):
            return NUMBER_UNKNOWN
        named = {MARKETS.get(name.lower(), name) for name in MARKET.findall(text)}
        other = (named - {self._asset}) or (set(CAPITALS.findall(text)) - OWN_CAPITALS)
        return OTHER_MARKET if other else ""

    def holds(self, text: str) -> bool:
        """Return whether every number of a text is a fact of the trade."""
        if re.search(r"\d", NUMBER.sub(" ", text)) or IN_WORDS.search(text):
            return False
        return all(
            any(map(partial(_is_told, number), self._numbers)) for number in NUMBER.finditer(text)
        )


def _is_told(text: re.Match[str], number: LessonNumber) -> bool:
    """Return whether a number as it is written, "1.02 R", is this one, as it is rounded.

    One without a sign may be of either.
    """
    digits, unit = text["digits"], text["unit"] or ""
    if UNITS.get(unit, unit) != UNITS.get(number.unit, number.unit):
        return False
    places = len(digits.partition(".")[2])
    value = number.value if text["sign"] else abs(number.value)
    off = abs(float(text["sign"] + digits) - value)
    return places <= number.decimals and off <= 0.5 * 10.0**-places + ROUNDING


def _names(facts: LessonFacts) -> list[str]:
    """Return what may be told as it stands: the trade's own names, times and time held."""
    strongest = facts.situation.strongest if facts.situation else ()
    names = [facts.symbol, facts.timeframe, span(facts.hours_held) or facts.symbol]
    names += [table[name] for name, _ in strongest for table in (COMPONENTS, PARTS)
              if name in table]  # fmt: skip
    for moment in map(iso, (facts.bar_time, facts.opened_at, facts.closed_at)):
        names += [moment, moment[:10], moment[11:16]]
    return sorted(names, key=len, reverse=True)
