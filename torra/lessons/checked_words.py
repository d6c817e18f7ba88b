"""Which sentences of a model's review may stand: those whose every number is a fact of the trade.

A model may word a lesson; it may not change or add a number, name another symbol, or speak to
whoever reads it later. `checked` keeps the sentences that hold to that and drops the others whole:
a sentence with half of its numbers taken out would say something else. What was dropped stands in
the flags, in words of ours, and no word of it is kept.

A number is known by its digits and its unit together (torra.lessons.figures); one in words up to
twelve is read as its digits, any other number word is unknown. Plain letters alone are read: a
sentence with other ones is dropped, because what cannot be read cannot be checked.

Pure; raises for no text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from agents.feature_words import COMPONENTS
from agents.fence import clean
from torra.clock import iso
from torra.lessons.figures import Figure, figures
from torra.lessons.lesson import LessonFacts, Words
from torra.lessons.reviews import PART_BYTES
from torra.trading_terms import SYMBOLS

NUMBER_UNKNOWN: Final = "number_unknown"
OTHER_SYMBOL: Final = "other_symbol"
FENCE: Final = "fence"
LINK: Final = "link"
CODE: Final = "code"
ORDERS: Final = "orders"
LETTERS: Final = "letters"
TOO_LONG: Final = "too_long"
FLAGS: Final = (
    FENCE, LINK, CODE, LETTERS, ORDERS, OTHER_SYMBOL, NUMBER_UNKNOWN, TOO_LONG,
)  # fmt: skip
"""Why sentences were dropped."""

SENTENCES: Final = 3
"""Sentences that a part keeps."""

READ_CHARS: Final = 2_000
"""Characters of a part that are read at all: a reply may be long."""


def checked(words: Words, facts: LessonFacts) -> Words:
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
        self._figures = figures(facts)
        self._own = _own_names(facts)
        self._masks = _masks(facts)
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
        told = self._symbol.sub("it", raw)
        return _shape(told) or self._meaning(told.translate(TYPOGRAPHY))

    def _meaning(self, text: str) -> str:
        if any(word.lower() in COMMANDS for word in WORD.findall(text)) or PHRASES.search(text):
            return ORDERS
        if not all(map(self._is_known, _names(text))):
            return OTHER_SYMBOL
        return "" if self._numbers_hold(text) else NUMBER_UNKNOWN

    def _is_known(self, name: str) -> bool:
        return name.lower() in self._own or name in TERMS

    def _numbers_hold(self, text: str) -> bool:
        for mask in self._masks:
            text = mask.sub(" ", text)
        text = SPELLED_WORD.sub(lambda found: SPELLED[found[0].lower()], text)
        words = frozenset(WORD.findall(text))
        if any(word.lower() in NUMBER_WORDS or MANY.fullmatch(word) for word in words):
            return False
        about = {word.lower() for word in words}
        return all(self._is_fact(found, text, about) for found in CHUNK.finditer(text))

    def _is_fact(self, found: re.Match[str], text: str, about: set[str]) -> bool:
        chunk = found[0].lstrip("(\"'")
        bare = chunk.rstrip(").,;:!?\"'")
        read = NUMBER.fullmatch(bare)
        if read is None:
            return False
        after = "" if bare != chunk else text[found.end() :]
        following = NEXT.match(after)
        if following is not None and following[0].strip()[:1].isdigit():
            return False  # 1 000 is no 1
        unit = read["unit"] or (following["unit"] if following else "")
        before = PREVIOUS.search(text[: found.start()])
        told = SIGNS.get(before[1].lower(), "") if before else ""
        signs = {read["sign"], told} - {""}
        if len(signs) > 1:
            return False  # a win of -1 R
        sign = next(iter(signs), "")
        return any(
            one.says(read["digits"], sign) and _fits(one, unit, about) for one in self._figures
        )


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


def _fits(figure: Figure, unit: str, about: set[str]) -> bool:
    """Return whether a number was told as this figure may be: by its unit, and by its name."""
    if figure.units and unit not in figure.units:
        return False
    if not figure.units and unit.lower() in UNITS:
        return False
    return not figure.about or any(word.lower() in about for word in figure.about)


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
        *(COMPONENTS[name] for name, _ in strongest if name in COMPONENTS),
        *ONCE,
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
WORD: Final = re.compile(r"[A-Za-z]+")
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
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

TYPOGRAPHY: Final = str.maketrans(
    {"–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"',
     "…": ".", "\u00a0": " ", "\u202f": " ", "\u2009": " "}
)  # fmt: skip

FENCES: Final = re.compile(r"<<|>>|[<>{}\[\]`]|\bQUOTE\b|\bNONCE\b")
LINKS: Final = re.compile(r"://|www\.|@|\b[\w-]+\.(?!\d)[A-Za-z]{2,}\b", re.IGNORECASE)
CODES: Final = re.compile(r"[^A-Za-z0-9 .,;:'\"()%!?+-]|\w\(|\(\)|--|;\s*$")

COMMANDS: Final = frozenset(
    (
        *("ignore", "disregard", "forget", "override", "bypass", "obey", "comply", "pretend"),
        *("instruction", "instructions", "prompt", "prompts", "system", "assistant", "developer"),
        *("admin", "administrator", "jailbreak", "password", "secret", "secrets", "credential"),
        *("credentials", "execute", "eval", "sudo", "delete", "transfer", "withdraw", "deposit"),
        *("buy", "sell", "leverage", "json", "reply", "respond", "output", "agent", "agents"),
        *("adjustment", "adjustments", "multiplier", "approve", "veto", "unveto", "halt"),
        *("confidence", "abstain", "abstained", "user", "model", "ai", "llm", "role", "roleplay"),
    )
)
"""Words by which a text would steer a reader of its own kind; a lesson needs none of them."""

PHRASES: Final = re.compile(
    r"\byou\b|\byour\b|\b(double|increase|raise|triple|max\w*) (the |its )?(size|risk|stake|lots)"
    r"|\b(move|remove|widen|drop|lift|without) (the |a |its |any )?(stop|limit|ceiling|gate)"
    r"|\b(always|never|must) (open|close|go|enter|exit|trade|trust|score|cite)"
    r"|\ball in\b|\bno risk\b|\brisk[- ]free\b|\bguarantee",
    re.IGNORECASE,
)

# --- numbers in words -----------------------------------------------------------------------------

ONCE: Final = ("one trade", "one refusal", "no one")
"""Of the number one these are true of each lesson."""

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
        *("ein", "eins", "zwei", "drei", "vier", "fuenf", "sechs", "sieben", "acht", "neun"),
        *("zehn", "hundert", "tausend", "halb", "doppelt", "deux", "trois", "quatre", "cinq"),
        *("sept", "huit", "neuf", "dix", "mille", "demi", "dos", "tres", "cuatro", "cinco"),
        *("seis", "siete", "ocho", "nueve", "diez", "cien", "mil", "medio", "tre"),
        *("quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "cento"),
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
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
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
