"""The numbers of a lesson: what each is called, how it is shown, and in which words it may be told.

`figures` is the whole table: who writes of a trade is shown these numbers (`evidence`) and may say
no other. A number is told with its unit and with a word that says which number it is: the fill cost
0.02 R, RSI was 61.4. `derived` ones are not listed to a writer but may be said: 3.5 hours are 14
bars of M15, and a loss of 1.02 R is 102 % of the risk.

Pure. A number that is not known or not finite is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NamedTuple

from agents.contracts import Feature
from agents.feature_words import COMPONENTS
from torra.clock import TIMEFRAMES, iso
from torra.lessons.lesson import DIRECTION, LessonFacts

R: Final = ("R",)
PERCENT: Final = ("%",)
ATR: Final = ("ATR",)
TIMES: Final = ("x", "times")
HOURS: Final = ("h", "hour", "hours")
MINUTES: Final = ("min", "minute", "minutes")
BARS: Final = ("bar", "bars")
DAYS: Final = ("day", "days")

LOST: Final = ("lost", "loss", "losses", "lose", "loses", "losing", "loser", "losers")
WON: Final = (
    *("won", "win", "wins", "winning", "winner", "winners", "gain", "gained", "gains"),
    *("profit", "profits", "profitable", "paid"),
)
ENDED: Final = ("came", "ended", "end", "closed", "finished", "result", "scratch")
PATH: Final = ("gain", "gained", "gains")
"""What may be said of the best of the way too: a trade that lost had gained something."""

ACCOUNT: Final = ("account",)
SHOWN: Final[Mapping[tuple[str, ...], str]] = {ACCOUNT: "of the account"}
"""What is shown as a unit of numbers that have none."""

PARTS: Final[Mapping[str, str]] = {
    name: words.replace(" against ", " versus ") for name, words in COMPONENTS.items()
}
"""The parts of the scores in a lesson: there "against" says that one spoke against the trade."""


class OutcomeWord(NamedTuple):
    """A result of a trade in R: its field, the words that name it, and those that speak of another.

    Beside a word of `sizes` a negative one may be told without its sign.
    """

    field: str
    about: tuple[str, ...]
    barred: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    leads: bool = False


RESULTS: Final = {
    "result": OutcomeWord("r", (*LOST, *WON, *ENDED), sizes=LOST),
    "planned": OutcomeWord(
        "planned_r", ("plan", "planned"), (*LOST, *WON, *ENDED, "against"), leads=True
    ),
    "cost_of_fill": OutcomeWord(
        "slipped_r",
        ("fill", "fills", "filled", "slip", "slippage", "slipped"),
        (*WON, *ENDED),
        leads=True,
    ),
    "worst": OutcomeWord(
        "mae_r", ("worst", "behind", "drawdown"), (*WON, *ENDED), ("worst", "behind", "drawdown")
    ),
    "best": OutcomeWord(
        "mfe_r",
        ("best", "ahead", "favour", "favor"),
        (*LOST, *ENDED, *(word for word in WON if word not in PATH)),
    ),
    "surprise": OutcomeWord("surprise", ("surprise",), (*LOST, *WON, *ENDED), leads=True),
}
"""The results of a trade, by how they are called."""

HELD: Final = ("held", "hold", "holding", "lasted", "took", "within", "in", "after", "for")
NOT_HELD: Final = (
    *("wait", "next", "ago", "before", "later", "last", "early", "earlier", "late", "trend"),
    *("rose", "rising", "fell", "falling", "ahead", "behind", "profit", "drawdown", "favour"),
    *("favor", "best", "worst", "plan", "planned", "surprise", "fill", "fills", "filled"),
)
"""Words beside which a length of time is told as how long a trade was held, and never so."""

CHANGED: Final = (
    *(*LOST, *WON, "rose", "fell", "risen", "fallen", "climbed", "dropped", "jumped", "moved"),
    *("rising", "falling", "turned", "best", "worst", "ahead", "behind", "drawdown"),
)
"""Words beside which a number of the market is told as a change of it, or as one of the trade."""

HOUR: Final = timedelta(hours=1)
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class LessonNumber:
    """A number of a lesson.

    It is shown with `decimals`, and may be said with as few as `least`. One of the `units` follows
    it, then the noun `of` where there is one ("60 % of its usual"). One of the words `about` stands
    in the same clause, before the number where it `leads`, and one of `beside` where there are any,
    but none that is `barred`. Beside one of `sizes` a negative number may go without its sign.
    """

    name: str
    value: float
    decimals: int
    units: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    least: int = 1
    derived: bool = False
    of: str = ""
    leads: bool = False
    barred: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit with which it is shown."""
        return self.units[0] if self.units else SHOWN.get(self.about, "")

    def says(self, digits: str, sign: str, clause: Collection[str]) -> bool:
        """Return whether a number as it is written, "1.02", is this one, as it is rounded.

        A negative one has its sign, or a word in its clause that says so: a loss of 1.02 R.
        """
        said, decimals = float(digits), len(digits.partition(".")[2])
        if decimals > self.decimals:
            return False
        lost = any(word in clause for word in self.sizes)
        if lost and self.value > 0:
            return False  # a gain that is told as a loss
        wanted = abs(self.value) if lost and not sign else self.value
        said = -said if sign == "-" else said
        if decimals >= self.least:
            return abs(said - wanted) <= 0.5 * 10.0**-decimals + ROUNDING
        # Fewer decimals than the least are those of a round number: 2 R for 2.00 R.
        return abs(said - round(wanted, self.decimals)) < ROUNDING


def figures(facts: LessonFacts) -> tuple[LessonNumber, ...]:
    """Return the numbers of a lesson that may be told."""
    return tuple(one for one in _figures(facts) if math.isfinite(one.value))


def evidence(facts: LessonFacts) -> dict[str, Feature]:
    """Return the facts of a lesson as a writer is shown them, by id."""
    moment = iso(facts.known_at)
    told = [Feature(f"lesson.{name}", word, as_of=moment) for name, word in _words(facts) if word]
    told += [
        Feature(
            f"lesson.{one.name}", one.value, one.unit, moment,
            decimals=one.decimals,
        )
        for one in figures(facts)
        if not one.derived
    ]  # fmt: skip
    return {one.id: one for one in told}


def _words(facts: LessonFacts) -> Iterator[tuple[str, str]]:
    yield from (("kind", facts.kind), ("side", facts.side), ("outcome", facts.outcome))
    yield from (("thesis", facts.evolution), ("ended", facts.reason))
    situation = facts.situation
    if situation is None:
        return
    yield from (("regime", situation.regime), ("session", situation.session))
    yield "flags", ", ".join(situation.triage)
    way = DIRECTION[facts.side]
    for name, sign in (("spoke_for", way), ("spoke_against", -way)):
        parts = (PARTS[one] for one, told in situation.strongest
                 if told == sign and one in PARTS)  # fmt: skip
        yield name, "; ".join(parts)
    yield "news_of", ", ".join(situation.events)


def _figures(facts: LessonFacts) -> Iterator[LessonNumber]:
    for name, one in RESULTS.items():
        value = float(getattr(facts, one.field))
        told = LessonNumber(
            name, value, 2, R, one.about, leads=one.leads, barred=one.barred, sizes=one.sizes
        )
        yield told
        yield replace(
            told, value=100.0 * value, decimals=0, units=PERCENT, least=0, derived=True, of="risk"
        )
    yield from _times(facts)
    if facts.profit is not None:
        money = LessonNumber("profit", facts.profit, 2, (), ACCOUNT, 0)
        yield replace(
            money,
            barred=(*ENDED, "best", "worst", "ahead", "behind"),
            sizes=LOST,
            beside=(*LOST, *WON),
        )
    if facts.situation is not None:
        numbers = facts.situation.numbers
        for figure in SITUATION:
            found = numbers.get(figure.name)
            if found is not None:
                value = 100.0 * found if figure.units == PERCENT else found
                yield replace(figure, value=value)


def _times(facts: LessonFacts) -> Iterator[LessonNumber]:
    hours = facts.hours_held
    told = LessonNumber("held", hours, 1, HOURS, HELD, barred=NOT_HELD)
    yield told
    yield replace(told, value=hours * 60.0, decimals=0, units=MINUTES, least=0, derived=True)
    yield replace(told, value=hours / 24.0, units=DAYS, derived=True)
    if step := TIMEFRAMES.get(facts.timeframe):
        bars = hours * (HOUR / step)
        yield replace(told, value=bars, decimals=0, units=BARS, least=0, derived=True)


def _plain(name: str, decimals: int, *about: str, least: int = 0) -> LessonNumber:
    return LessonNumber(name, 0.0, decimals, (), about, least, leads=True, barred=CHANGED)


def _in(units: tuple[str, ...], name: str, *about: str, of: str = "") -> LessonNumber:
    percent = units == PERCENT
    decimals, least = (0, 0) if percent else (2, 1)
    return LessonNumber(
        name, 0.0, decimals, units, about, least, percent, of, leads=True, barred=CHANGED
    )


SITUATION: Final = (
    _plain("price_action", 2, "action", least=1),
    _plain("key_levels", 2, "levels", least=1),
    _plain("momentum", 2, "momentum", least=1),
    _plain("structure", 2, "structure", least=1),
    _plain("adx14", 1, "adx"),
    _plain("di_difference", 1, "di", "directional"),
    _plain("volatility_percentile", 1, "volatility", "percentile"),
    _plain("rsi14", 1, "rsi"),
    replace(_in(ATR, "support_distance_atr", "support"), barred=(*CHANGED, "above", "resistance")),
    replace(
        _in(ATR, "resistance_distance_atr", "resistance"), barred=(*CHANGED, "below", "support")
    ),
    _in(TIMES, "volume_ratio", "volume", of="usual"),
    _in(PERCENT, "volume_ratio", "volume", of="usual"),
    _in(ATR, "spread_atr", "spread"),
    _in(PERCENT, "spread_atr", "spread", of="ATR"),
    _plain("consensus", 2, "consensus", least=1),
    _plain("news_score", 2, "news", least=1),
    replace(_plain("up_bars", 2, "bars", least=1), barred=(), beside=("rising", "rose")),
    replace(_in(PERCENT, "up_bars", "rising", "rose", of="bars"), leads=False, barred=()),
    _in(ATR, "ema_gap_atr", "mean", "ema"),
)
"""The numbers of a situation (torra.lessons.lesson.SCALES), in their own units; those in % are
times 100.
"""
