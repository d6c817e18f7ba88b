"""The numbers of a lesson: what each is called, how it is shown, and in which words it may be told.

`figures` is the whole table: who writes of a trade is shown these numbers (`evidence`) and may say
no other. A number is told with its unit, or with a word that says which number it is; `derived`
ones are not listed to a writer but may be said: 3.5 hours are 14 bars of M15, and a loss of 1.02 R
is 102 % of the risk.

Pure. A number that is not known or not finite is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from agents.contracts import Feature
from agents.feature_words import COMPONENTS
from torra.clock import TIMEFRAMES, iso
from torra.lessons.lesson import SIDEWAYS, LessonFacts

R: Final = ("R",)
PERCENT: Final = ("%",)
ATR: Final = ("ATR",)
TIMES: Final = ("x", "times")
HOURS: Final = ("h", "hour", "hours")
MINUTES: Final = ("min", "minute", "minutes")
BARS: Final = ("bar", "bars")
DAYS: Final = ("day", "days")

ACCOUNT: Final = ("account",)
SHOWN: Final[Mapping[tuple[str, ...], str]] = {ACCOUNT: "of the account"}
"""What is shown as a unit of numbers that have none."""

RESULTS: Final = {
    "result": "r",
    "planned": "planned_r",
    "cost_of_fill": "slipped_r",
    "worst": "mae_r",
    "best": "mfe_r",
    "surprise": "surprise",
}
"""The results of a trade in R: how they are called, and the field that holds each."""

HOUR: Final = timedelta(hours=1)
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a lesson.

    It is shown with `decimals`, and may be said with as few as `least`. One of the `units` follows
    it; where `about` is not empty, one of these words stands in the same sentence.
    """

    name: str
    value: float
    decimals: int
    units: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    least: int = 1
    derived: bool = False

    @property
    def unit(self) -> str:
        """The unit with which it is shown."""
        return self.units[0] if self.units else SHOWN.get(self.about, "")

    def says(self, digits: str, sign: str) -> bool:
        """Return whether a number as it is written, "1.02", is this one, as it is rounded.

        Without a sign it may be the size of a negative one: a loss of 1.02 R.
        """
        said, decimals = float(digits), len(digits.partition(".")[2])
        if decimals > self.decimals:
            return False
        wanted = self.value if sign else abs(self.value)
        said = -said if sign == "-" else said
        if decimals >= self.least:
            return abs(said - wanted) <= 0.5 * 10.0**-decimals + ROUNDING
        # Fewer decimals than the least are those of a round number: 2 R for 2.00 R.
        return abs(said - round(wanted, self.decimals)) < ROUNDING


def figures(facts: LessonFacts) -> tuple[Figure, ...]:
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
    way = SIDEWAYS[facts.side]
    for name, sign in (("spoke_for", way), ("spoke_against", -way)):
        parts = (COMPONENTS[one] for one, told in situation.strongest
                 if told == sign and one in COMPONENTS)  # fmt: skip
        yield name, "; ".join(parts)
    yield "news_of", ", ".join(situation.events)


def _figures(facts: LessonFacts) -> Iterator[Figure]:
    for name, field in RESULTS.items():
        value = float(getattr(facts, field))
        yield Figure(name, value, 2, R)
        yield Figure(name, 100.0 * value, 0, PERCENT, ("risk", "plan", "planned"), 0, derived=True)
    yield from _times(facts)
    if facts.profit is not None:
        yield Figure("profit", facts.profit, 2, (), ACCOUNT, 0)
    if facts.situation is not None:
        numbers = facts.situation.numbers
        for figure in SITUATION:
            found = numbers.get(figure.name)
            if found is not None:
                yield _of(figure, found)


def _times(facts: LessonFacts) -> Iterator[Figure]:
    hours = facts.hours_held
    yield Figure("held", hours, 1, HOURS)
    yield Figure("held", hours * 60.0, 0, MINUTES, least=0, derived=True)
    yield Figure("held", hours / 24.0, 1, DAYS, derived=True)
    if step := TIMEFRAMES.get(facts.timeframe):
        yield Figure("held", hours * (HOUR / step), 0, BARS, least=0, derived=True)


def _of(figure: Figure, value: float) -> Figure:
    scaled = 100.0 * value if figure.units == PERCENT else value
    return Figure(
        figure.name, scaled, figure.decimals, figure.units, figure.about, figure.least,
        figure.derived,
    )  # fmt: skip


def _plain(name: str, decimals: int, *about: str, least: int = 0) -> Figure:
    return Figure(name, 0.0, decimals, (), about, least)


SITUATION: Final = (
    _plain("price_action", 2, "action", least=1),
    _plain("key_levels", 2, "levels", least=1),
    _plain("momentum", 2, "momentum", least=1),
    _plain("structure", 2, "structure", least=1),
    _plain("adx14", 1, "ADX"),
    _plain("di_difference", 1, "DI", "directional"),
    _plain("volatility_percentile", 1, "volatility", "percentile"),
    _plain("rsi14", 1, "RSI"),
    Figure("support_distance_atr", 0.0, 2, ATR, ("support",)),
    Figure("resistance_distance_atr", 0.0, 2, ATR, ("resistance",)),
    Figure("volume_ratio", 0.0, 2, TIMES, ("volume",)),
    Figure("volume_ratio", 0.0, 0, PERCENT, ("volume",), 0, derived=True),
    Figure("spread_atr", 0.0, 2, ATR, ("spread",)),
    Figure("spread_atr", 0.0, 0, PERCENT, ("spread",), 0, derived=True),
    _plain("consensus", 2, "consensus", least=1),
    _plain("news_score", 2, "news", least=1),
    _plain("up_bars", 2, "rising", "rose", least=1),
    Figure("up_bars", 0.0, 0, PERCENT, ("rising", "rose"), 0, derived=True),
    Figure("ema_gap_atr", 0.0, 2, ATR, ("mean", "EMA")),
)
"""The numbers of a situation (torra.lessons.lesson.SCALES), in their own units; those in % are
times 100.
"""
