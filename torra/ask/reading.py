"""What a question asks for: symbols, timeframe, span of time, intent, or an act that is refused.

Pure, by four tables: lexicon.csv (names of markets), cues.csv (words of each intent with their
weight: the intent with the greatest sum counts, the first of equals), requests.csv (words that ask
to trade, to change or to reveal, in six languages; at the `start` of a clause, or `any`where) and
words.csv (timeframes, spans of time, languages). A follow-up takes what it does not name from the
question before it: symbols, timeframe and intent, never prose.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import Final

from agents.features import rows_of
from agents.texts.fence import clean
from torra.ask.answer import LONGEST
from torra.errors import ConfigError
from torra.tools.contract import Value

ALIKE: Final = 0.85
"""How much of two words is the same where one is the other with a slip."""

HERE: Final = Path(__file__)
WHOLE: Final = r"(?<!\w)(?:{})(?!\w)"


def whole(cue: str) -> re.Pattern[str]:
    """Return the pattern of a cue that stands between the ends of words, of any case."""
    return re.compile(WHOLE.format(cue), re.IGNORECASE)


ALIASES: Final[Mapping[str, str]] = {
    alias: row["symbol"]
    for row in rows_of(HERE.with_name("lexicon.csv"))
    for alias in (row["symbol"].lower(), *row["aliases"].split("|"))
}
"""Every name of a market in small letters, and its canonical symbol."""

CURRENCIES: Final = "aud|brl|cad|chf|cnh|czk|dkk|eur|gbp|hkd|huf|ils|inr|jpy|krw|mxn|nok|nzd|pln|"
CURRENCY: Final = f"({CURRENCIES}rub|sek|sgd|thb|try|usd|zar)"
SUFFIX: Final = r"(?:[._#-][a-z]{1,6}\d?|[mcr]|micro|pro)?"
"""What a broker may put behind a symbol."""

PAIR: Final = rf"(?<!\w){CURRENCY}[ /_-]?{CURRENCY}{SUFFIX}(?!\w)"
TICKER: Final = r"(?<!\w)\$(?P<ticker>[a-z]{1,6})\b"

CUES: Final = [
    (row["intent"], float(row["weight"]), whole(row["cue"]))
    for row in rows_of(HERE.with_name("cues.csv"))
]
SPELLINGS: Final = {
    word for text in (*ALIASES, *(cue.pattern for *_, cue in CUES))
    for word in re.findall("[a-z]{6,}", text)
}  # fmt: skip
"""Words of the cues and names, to which a word is mended that is spelt a little differently."""

INTENTS: Final = tuple(intent for intent, _ in groupby(intent for intent, *_ in CUES))
REFUSED: Final = "refused"
GENERAL: Final = "general"

TEXT: Final = re.compile(r"[.!?;:\n\"“”…]+")
CLAUSE: Final = re.compile(r",|\b(?:and|then|but|so)\b", re.IGNORECASE)
ASKS: Final = re.compile(
    r"\W*(?:so|and|but|or|well|also|morning|hi|hey)?\W*(?:why|how|what|whats|when|which|who|whose|where|"
    r"am|is|are|was|were|do|does|did|has|have|had|should|must|isn'?t|aren'?t|didn'?t|doesn'?t|"
    r"anything|any)\b",
    re.IGNORECASE,
)
"""How a clause begins that asks and does not order."""

OPENER: Final = re.compile(
    r"\W*(?:(?:please|pls|plz|kindly|just|now|also|first|ok(?:ay)?|hey|hi|hello|torra|desk|quick(?:ly)?|"
    r"(?:can|could|would|will|may|shall) (?:you|we|i)|(?:can|could|would) you (?:please|just)|"
    r"i(?:'d| would)? (?:want|need|like|order|command|authori[sz]e|instruct)(?: you)?(?: to)?|"
    r"go ahead|let'?s|you (?:must|should|may|can|need to|have to|will)|time to|"
    r"(?:do|be) (?:me a favou?r|so kind)|make sure (?:to|you)|to|immediately|at once|always|never|"
    r"don'?t|do not|we (?:should|must|need to)|feel free)\b\W*)*",
    re.IGNORECASE,
)
"""What a person may put before the verb of a request."""

CHINESE: Final = re.compile("[\u4e00-\u9fff]")

REQUESTS: Final = [
    (row["language"], row["kind"], row["place"] == "start",
     # Chinese has no blanks between its words
     re.compile(row["cue"]) if row["language"] == "zh" else whole(row["cue"]))
    for row in rows_of(HERE.with_name("requests.csv"))
]  # fmt: skip

WORDS: Final[Mapping[str, dict[str, re.Pattern[str]]]] = defaultdict(dict)
"""By table and name: words of a timeframe, of a span of time, and the commonest of a language."""

for _row in rows_of(HERE.with_name("words.csv")):
    WORDS[_row["table"]][_row["name"]] = whole(_row["cue"])

OPENS: Final = re.compile(
    r"\W*(and|n|or|but|what about|how about|same|also|then|ok|so|just)\b", re.IGNORECASE
)
POINTS: Final = whole("it|its|that|this|those|them|they|there|ones?")
WHOLE_DESK: Final = whole("we|all|every\\w*|desk|portfolio|symbols|any\\w*|today|overall")
"""How a follow-up begins, what points back in it, and what points at no symbol."""

SHORT: Final = 4
BRIEF: Final = 7
"""Words of a question that cannot stand alone, and of one whose symbol may be the last one's."""

CLEAR: Final = 3.0
"""Sum of weights from which a follow-up has an intent of its own."""


SECRETS: Final = re.compile(
    r"(?<![\w-])(?:"
    r"(?:sk|pk|rk|ghp|gho|xox[abp]|akia|aiza|eyj|bot)[-_a-z0-9]{8,}"
    r"|[\w.+-]+@[\w-]+\.\w+"  # a mail address
    r"|\d{6,}"  # an account, or a code
    r"|(?=[\w/+=-]*\d)(?=[\w/+=-]*[a-z])[\w/+=-]{16,})"
    r"|((?:password|passwort|contraseña|senha|token|key|secret|pin)"
    r"(?: is |: | (?=\S*[\d!@#$%^&*])(?=\S{4})))\S+",
    re.IGNORECASE,
)
"""What may be a secret, an address or an account number."""

MASK: Final = r"\1(***)"
"""What stands in its place, behind the word that gave it away."""


class Question(Value):
    """What a question asks for; `compared` are the timeframes of one that names several.

    `kind` is trade, close, halt, change or reveal where `intent` is refused, else "". `certain` is
    the sum of the cues' weights: 0 where no word of the question was a cue.
    """

    text: str = ""
    intent: str = GENERAL
    symbols: tuple[str, ...] = ()
    timeframe: str = ""
    compared: tuple[str, ...] = ()
    span: str = ""
    kind: str = ""
    certain: float = 0.0


def read(question: str, own: Iterable[str] = (), before: Question | None = None) -> Question:
    """Read a question, without what may be a secret.

    `own` are symbols of the desk, `before` is what it may follow. Raises ConfigError for one that
    is empty or longer than LONGEST.
    """
    text = masked(clean(question, 4 * LONGEST))
    if not text.strip() or len(question.strip()) > LONGEST:
        raise ConfigError(f"a question has 1 to {LONGEST} characters")
    symbols, rest = symbols_of(text, own)
    named = tuple(name for name, cue in WORDS["timeframe"].items() if cue.search(rest))
    compared = named if len(named) > 1 else ()
    intent, certain = intent_of(rest, len(symbols))
    kind = request_of(text, languages_of(text, bool(certain)))
    if before and before.intent == "howto" and OPENS.match(text) and text.endswith("?"):
        kind = ""  # how that is done
    reading = Question(
        text=text,
        intent=REFUSED if kind else intent,
        symbols=symbols,
        timeframe="" if compared else "".join(named),
        compared=compared,
        span=next((name for name, cue in WORDS["span"].items() if cue.search(text)), ""),
        kind=kind,
        certain=certain,
    )
    return _follow(reading, before) if before and not kind else reading


def _follow(reading: Question, before: Question) -> Question:
    """Return a reading with what it takes from the one before."""
    words = len(reading.text.split())
    points = POINTS.search(reading.text)
    opens = OPENS.match(reading.text) or words <= SHORT or points
    if not (opens or words <= BRIEF or not reading.certain):
        return reading
    more: dict[str, object] = {}
    if reading.certain < CLEAR and opens and before.intent != REFUSED:
        more["intent"] = before.intent
        if before.intent == "compare" and len(reading.symbols) == 1:
            more["symbols"] = (*before.symbols, *reading.symbols)
    if not reading.symbols and (points or not WHOLE_DESK.search(reading.text)):
        more["symbols"] = before.symbols
    if not reading.timeframe and (more or opens):
        more["timeframe"] = before.timeframe
    return reading.model_copy(update=more)


def masked(text: str) -> str:
    """Return a text without what may be a secret in it."""
    return SECRETS.sub(MASK, text)


def canonical(name: str) -> str:
    """Return the canonical symbol behind a name, which may be a broker's."""
    plain = name.lower()
    if pair := re.fullmatch(PAIR, plain):
        return f"{pair[1]}{pair[2]}".upper()
    bare = re.sub(r"([._#-][a-z]{1,6}\d?|[mcr])$", "", plain)
    return ALIASES.get(plain) or ALIASES.get(bare, name)


def symbols_of(text: str, own: Iterable[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return the symbols that a text names, canonical and in its order, and the rest of it."""
    names = {**ALIASES, **{name.lower(): canonical(name) for name in own}}
    text = re.sub("[a-z]{6,}", lambda one: _mended(one[0], names), text.lower())
    every = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    found: list[str] = []

    def _note(match: re.Match[str]) -> str:
        name = match["name"]
        found.append(names[name] if name else canonical((match["ticker"] or match[0]).upper()))
        return " "

    named = rf"{PAIR}|(?<![\w.])(?P<name>{every}){SUFFIX}(?!\w)|{TICKER}"
    rest = re.sub(named, _note, text)
    return tuple(dict.fromkeys(found)), " ".join(rest.split())


def intent_of(text: str, symbols: int = 0) -> tuple[str, float]:
    """Return the intent of a text without its symbols, and the sum of its cues' weights."""
    sums = dict.fromkeys(INTENTS, 0.0)
    sums["compare"] = 2.0 * (symbols > 1)
    for intent, weight, cue in CUES:
        sums[intent] += weight * bool(cue.search(text))
    return max(sums.items(), key=lambda one: one[1]) if any(sums.values()) else (GENERAL, 0.0)


def _mended(word: str, names: Mapping[str, str]) -> str:
    """Return a word as a cue or a name spells it, where no other does."""
    known = word in SPELLINGS or word in names or re.fullmatch(PAIR, word)
    if known or any(cue.search(word) for *_, cue in CUES):
        return word
    alike: list[str] = get_close_matches(word, SPELLINGS, 1, ALIKE)
    return (*alike, word)[0]


def languages_of(text: str, understood: bool) -> Collection[str]:
    """Return the languages that a text may be in, by the common words that it has."""
    if CHINESE.search(text):
        return ("zh",)
    english, *others = (len(cue.findall(text)) for cue in WORDS["language"].values())
    lead = english - max(others)
    return ("en",) if lead > 0 or (understood and lead == 0) else [*WORDS["language"]]


def request_of(text: str, languages: Collection[str]) -> str:
    """Return what kind of act a text asks for (Question.kind), "" for a question."""
    clauses: list[str] = []
    for sentence in TEXT.split(text):
        parts = CLAUSE.split(sentence)
        if not any(map(ASKS.match, parts)):
            clauses += (OPENER.sub("", one, count=1) for one in parts)
    for language, kind, start, cue in REQUESTS:
        hit = any(map(cue.match, clauses)) if start else cue.search(text)
        if hit and language in ("en", *languages):
            finer = [name for name, one in WORDS["request"].items() if one.search(text)]
            return kind if kind == "reveal" or not finer else finer[0]
    return ""
