"""Whether the numbers of a sentence are facts of a trade: digits, unit, sign, and what each is of.

A number is read in its own clause. A word there has to say which of the figures it is
(torra.lessons.figures), and no word may turn it: "more than", "never", "the next", "a bar". Nothing
is guessed: a number that may be two figures is none.

Pure; raises for no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from torra.lessons.figures import (
    BARS,
    DAYS,
    HOURS,
    MINUTES,
    PERCENT,
    RESULTS,
    LessonNumber,
    R,
    figures,
)
from torra.lessons.lesson import LessonFacts


class NumberCheck:
    """The numbers that may be told of one lesson."""

    def __init__(self, facts: LessonFacts) -> None:
        self._figures = figures(facts)
        self._vetoed = facts.kind == "vetoed"

    def hold(self, text: str) -> bool:
        """Return whether every number of a sentence is a fact, told as what it is."""
        text = SPELLED_WORD.sub(lambda found: SPELLED[found[0].lower()], text)
        words = words_of(text)
        if words & NUMBER_WORDS or any(map(MANY.fullmatch, words)) or SINGLE.search(text):
            return False
        if not re.search(r"\d", text):
            return True
        if words & ELSEWHERE or ("would" in words and not self._vetoed):
            return False
        return all(self._is_fact(*one) for one in _numbers(text))

    def _is_fact(self, found: re.Match[str], clause: str, before: frozenset[str]) -> bool:
        chunk = found[0].lstrip("(\"'")
        bare = chunk.rstrip(").,;:!?\"'")
        read = NUMBER.fullmatch(bare)
        if read is None:
            return False
        led, after = clause[: found.start()], "" if bare != chunk else clause[found.end() :]
        following = NEXT.match(after)
        if following is not None and following[0].strip()[:1].isdigit():
            return False  # 1 000 is no 1
        unit = read["unit"] or (following["unit"] if following else "")
        rest = after if read["unit"] or following is None else after[following.end() :]
        signs = {read["sign"], _sign_before(led)} - {""}
        words = words_of(clause)
        if len(signs) > 1 or words & _inexact(unit):
            return False
        if unit.lower() in UNITS and RATE.match(rest):
            return False  # 2 R a trade
        if unit in OF_TRADE and words_of(led) & OF_MARKET:
            return False
        sign = next(iter(signs), "")
        return any(
            one.says(read["digits"], sign, words)
            and (not one.leads or not words_of(led).isdisjoint(one.about))
            and _is_of(one, rest)
            for one in _narrowed(self._figures, unit, words, before)
        )


def _numbers(text: str) -> Iterator[tuple[re.Match[str], str, frozenset[str]]]:
    """Yield each number of a sentence with its clause, and with the words before that."""
    before: frozenset[str] = frozenset()
    for clause in CLAUSE.split(text):
        yield from ((found, clause, before) for found in CHUNK.finditer(clause))
        before |= words_of(clause)


def _inexact(unit: str) -> frozenset[str]:
    return INEXACT if unit == "ATR" else INEXACT | BESIDE


def _fits(figure: LessonNumber, unit: str, words: frozenset[str]) -> bool:
    """Return whether a number was told as this figure may be: by its unit, and by its name."""
    if figure.units and unit not in figure.units:
        return False
    if not figure.units and unit.lower() in UNITS:
        return False
    return not words.isdisjoint(figure.about)


def _narrowed(
    known: Iterable[LessonNumber], unit: str, words: frozenset[str], before: frozenset[str]
) -> list[LessonNumber]:
    """Return the figures that a number in a clause may be: those of one name, or none.

    A result is named by what every trade has, an end; where a clause names another figure too, that
    one is meant. What the sentence named before is still spoken of: then nothing is meant.
    """
    meant = [one for one in known if _fits(one, unit, words)]
    named = {one.name for one in meant}
    if named == {RESULT}:
        named = set() if before & SPECIAL else named
    else:
        named -= {RESULT}
    return [
        one
        for one in meant
        if named == {one.name}
        and words.isdisjoint(one.barred)
        and (not one.beside or not words.isdisjoint(one.beside))
    ]


def _is_of(figure: LessonNumber, rest: str) -> bool:
    """Return whether the noun follows that a number is a share or a multiple of."""
    if not figure.of:
        return True
    of = "of " if figure.units == PERCENT else "(?:of )?"
    return re.match(rf"\s+{of}(?:the |its |an |a )?{figure.of}\b", rest) is not None


def _sign_before(text: str) -> str:
    found = PREVIOUS.search(text)
    return SIGNS.get(found[1].lower(), "") if found else ""


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters; the s of "its plan's stop" is none."""
    return frozenset(WORD.findall(POSSESSIVE.sub("", text).lower()))


# --- how a text is read ---------------------------------------------------------------------------

WORD: Final = re.compile(r"[A-Za-z]+")
CHUNK: Final = re.compile(r"\S*\d\S*")
NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>\d{1,9}(?:\.\d{1,9})?)(?:-?(?P<unit>R|h|x|%|min|bar|hour|day|minute))?"
)
NEXT: Final = re.compile(r"\s+(?P<unit>%|[A-Za-z]+|\d)|%")
PREVIOUS: Final = re.compile(r"([A-Za-z]+|[+-])(?:\s+of)?\s+$")
SIGNS: Final = {
    **dict.fromkeys(("minus", "negative", "lost", "loss", "losing", "-"), "-"),
    **dict.fromkeys(("plus", "positive", "won", "win", "winning", "gained", "gain", "+"), "+"),
    **dict.fromkeys(("made", "earned", "profit"), "+"),
}
"""What the word before a number says of its sign: a loss of 1.02 R is -1.02 R."""

CLAUSE: Final = re.compile(
    r"[;:,](?=\s|$)|[()]|\s-\s|\b(?:and|but|or|yet|then|while|when|where|until|because|though"
    r"|although)\b",
    re.IGNORECASE,
)
"""What ends a clause: a number is named within its own."""

TOLD: Final = re.compile(
    r"(?<![\w.])[+-]?\d[\d.]*"
    r"(?:[\s-]*(?:%|(?:R|ATR|h|x|times|hours?|min|minutes?|bars?|days?)\b))?"
)
"""A number with its unit."""

POSSESSIVE: Final = re.compile(r"(?<=[A-Za-z])'s\b")
RATE: Final = re.compile(r"\s+(?:an?|per|each|every)\b", re.IGNORECASE)
SINGLE: Final = re.compile(
    r"\b(?:an?|any|single|same|each|every|per) bars?\b|\b(?:in|within) (?:\w+ ){1,2}bar\b",
    re.IGNORECASE,
)
"""A number that is told without one: 2 R a bar, or an end within a bar."""


# --- what a number is of --------------------------------------------------------------------------

RESULT: Final = "result"
SPECIAL: Final = frozenset(
    word for name, one in RESULTS.items() if name != RESULT for word in one.about
)
"""Words that name another figure in R than the result."""

NEGATIONS: Final = frozenset(
    ("not", "no", "never", "nor", "neither", "without", "nothing", "cannot", "hardly", "unless")
)
INEXACT: Final = NEGATIONS | {
    *("more", "less", "than", "least", "most", "nearly", "almost", "further", "another", "again"),
    *("up", "down", "enough", "past"),
}
"""Words beside which a number is another one."""

OF_TRADE: Final = frozenset((*R, *HOURS, *MINUTES, *BARS, *DAYS))
OF_MARKET: Final = frozenset(
    (
        *("adx", "rsi", "macd", "cci", "ema", "di", "momentum", "volume", "spread", "consensus"),
        *("support", "resistance", "volatility", "price", "market", "trend", "structure", "news"),
        *("buyers", "sellers", "stochastic", "gate", "cloud", "range", "session"),
    )
)
"""Units of what a trade came to, and words of what comes to nothing in them."""

BESIDE: Final = frozenset(("above", "below", "beyond", "over", "under"))
"""Likewise, but for a distance."""

ELSEWHERE: Final = frozenset(
    (
        *("next", "other", "others", "similar", "such", "usually", "often", "sometimes", "always"),
        *("trades", "may", "might", "maybe", "perhaps", "can", "could", "if", "unless", "average"),
        *("averages", "expected", "hoped", "possible", "almost"),
    )
)
"""Words of what was not, or of other trades: no number is told of those."""


# --- numbers in words -----------------------------------------------------------------------------

SPELLED: Final = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve")
    )
}  # fmt: skip
SPELLED_WORD: Final = re.compile(rf"\b({'|'.join(SPELLED)})\b", re.IGNORECASE)
MANY: Final = re.compile(
    r"\w*(teen|teenth|fold)|(hundred|thousand|million|billion|trillion)\w*"
    r"|(twent|thirt|fort|fift|sixt|sevent|eight|ninet)(y|ies|ieths?)",
    re.IGNORECASE,
)
NUMBER_WORDS: Final = frozenset(
    (
        *("first", "second", "third", "thirds", "fourth", "fifth", "sixth", "seventh", "eighth"),
        *("ninth", "tenth", "tenths", "half", "halves", "halved", "quarter", "quarters", "dozen"),
        *("dozens", "twice", "thrice", "double", "doubled", "doubles", "triple", "tripled"),
        *("quadruple", "quadrupled", "quintuple", "couple", "percentage", "nought", "nil"),
        *("squared", "cubed", "infinity", "infinite", "nan"),
    )
)  # fmt: skip
"""Numbers in words that are read as none; those up to twelve are read as their digits."""

UNITS: Final = frozenset(
    (
        *("r", "h", "x", "%", "atr", "hour", "hours", "min", "minute", "minutes", "bar", "bars"),
        *("day", "days", "times", "percent", "per", "pct", "bp", "bps", "pip", "pips", "tick"),
        *("ticks", "point", "points", "lot", "lots", "dollar", "dollars", "euro", "euros", "usd"),
        *("cent", "cents", "k", "m", "bn", "contract", "contracts", "trade", "trades", "win"),
        *("wins", "loss", "losses", "week", "weeks", "month", "months", "year", "years", "sec"),
        *("second", "seconds", "s", "ms", "sigma", "standard", "to", "of", "out"),
    )
)
"""Units and what else makes another number of the one before it."""
