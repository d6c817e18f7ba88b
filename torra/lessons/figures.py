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
from datetime import timedelta
from typing import Final, NamedTuple

from agents.contracts import Feature
from agents.features import COMPONENTS
from torra.clock import TIMEFRAMES, iso
from torra.lessons.lesson import DIRECTION, SCALES, LessonFacts

R: Final = ("R",)
PERCENT: Final = ("%",)
ATR: Final = ("ATR",)
TIMES: Final = ("x", "times")
UNITS: Final = {"": (), "ATR": ATR, "x": TIMES}
"""The spellings of the units of a situation."""

HOURS: Final = ("h", "hour", "hours")
MINUTES: Final = ("min", "minute", "minutes")
BARS: Final = ("bar", "bars")
DAYS: Final = ("day", "days")
NEVER_NEGATIVE: Final = frozenset((*TIMES, *HOURS, *MINUTES, *BARS, *DAYS))

LOST: Final = "lost loss losses lose loses losing loser losers"
WON: Final = "won win wins winning winner winners profit profits profitable paid"
NEGATIVE: Final = frozenset(f"{LOST} minus negative worst behind drawdown".split())
"""Words beside which a number without a sign is a negative one: a loss of 1.02 R is -1.02 R."""

ACCOUNT: Final = "account"

PARTS: Final[Mapping[str, str]] = {
    name: words.replace(" against ", " versus ") for name, words in COMPONENTS.items()
}
"""The parts of the scores in a lesson: there "against" says that one spoke against the trade."""

RESULTS: Final = {
    "result": (
        "r",
        f"{LOST} {WON} gain gained gains came ended end closed finished result scratch",
    ),
    "planned": ("planned_r", "plan planned"),
    "cost_of_fill": ("slipped_r", "fill fills filled slip slippage slipped"),
    "worst": ("mae_r", "worst behind drawdown"),
    "best": ("mfe_r", "best ahead favour favor"),
    "surprise": ("surprise", "surprise"),
}
"""The results of a trade in R by their names: the field of each, and the words that say it."""

ON_ITS_WAY: Final = ("worst", "best")
ENDED: Final = frozenset(["came", "ended", "end", "closed", "finished", "result"])
"""Words of a trade's end, beside which no figure of its way is told."""

DURATION_WORDS: Final = "held hold holding lasted took within in after for"

HOUR: Final = timedelta(hours=1)
ROUNDING: Final = 1e-9


class LessonNumber(NamedTuple):
    """A number of a lesson.

    It is shown with `decimals`. One of the `units` follows it, one of the words `about` stands in
    the same clause, and the noun `of` where there is one ("60 % of its usual").
    """

    name: str
    value: float
    decimals: int
    units: tuple[str, ...]
    about: str
    of: str = ""
    derived: bool = False

    @property
    def unit(self) -> str:
        """The unit with which it is shown."""
        return self.units[0] if self.units else "of the account" if self.about == ACCOUNT else ""

    def says(self, digits: str, sign: str, unit: str, clause: Collection[str]) -> bool:
        """Return whether a number as it is written, "1.02", is this one, as it is rounded.

        A negative one has its sign, or a word in its clause that says so; a positive one has
        neither. How far a trade was ahead or behind on its way is not what it came to.
        """
        named = not set(self.about.split()).isdisjoint(clause) and (
            not self.of or self.of in clause
        )
        named = named and (self.name not in ON_ITS_WAY or ENDED.isdisjoint(clause))
        places = len(digits.partition(".")[2])
        if not named or unit not in (self.units or ("",)) or places > self.decimals:
            return False
        written, value = float(f"{sign}{digits}"), self.value
        if not sign and unit not in NEVER_NEGATIVE and NEGATIVE & {*clause}:
            if value > 0:
                return False
            value = -value
        # One of two decimals may be left out; a whole number is that of a round one: 2 R for 2.00.
        if places >= self.decimals - 1:
            return abs(written - value) <= 0.5 * 10.0**-places + ROUNDING
        return abs(written - round(value, self.decimals)) < ROUNDING


def figures(facts: LessonFacts) -> tuple[LessonNumber, ...]:
    """Return the numbers of a lesson that may be told."""
    return tuple(one for one in _figures(facts) if math.isfinite(one.value))


def evidence(facts: LessonFacts) -> dict[str, Feature]:
    """Return the facts of a lesson as a writer is shown them, by id."""
    moment = iso(facts.known_at)
    values = [Feature(f"lesson.{name}", word, as_of=moment) for name, word in _words(facts) if word]
    values += [
        Feature(f"lesson.{one.name}", one.value, one.unit, moment, decimals=one.decimals)
        for one in figures(facts)
        if not one.derived
    ]
    return {one.id: one for one in values}


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
        parts = (PARTS[one] for one, direction in situation.strongest
                 if direction == sign and one in PARTS)  # fmt: skip
        yield name, "; ".join(parts)
    yield "news_of", ", ".join(situation.events)


def _figures(facts: LessonFacts) -> Iterator[LessonNumber]:
    for name, (field, about) in RESULTS.items():
        value = float(getattr(facts, field))
        yield LessonNumber(name, value, 2, R, about)
        yield LessonNumber(name, 100.0 * value, 0, PERCENT, about, "risk", derived=True)
    hours, step = facts.hours_held, TIMEFRAMES.get(facts.timeframe)
    yield LessonNumber("held", hours, 1, HOURS, DURATION_WORDS)
    yield LessonNumber("held", hours * 60.0, 0, MINUTES, DURATION_WORDS, derived=True)
    yield LessonNumber("held", hours / 24.0, 1, DAYS, DURATION_WORDS, derived=True)
    if step:
        yield LessonNumber("held", hours * (HOUR / step), 0, BARS, DURATION_WORDS, derived=True)
    if facts.profit is not None:
        yield LessonNumber("profit", facts.profit, 2, (), ACCOUNT)
    numbers = facts.situation.numbers if facts.situation else {}
    for name, scale in SCALES.items():
        known, units, share = numbers.get(name), UNITS[scale.unit], scale.share_of
        if known is not None:
            yield LessonNumber(name, known, scale.decimals, units, scale.about)
        if known is not None and share:
            yield LessonNumber(name, 100.0 * known, 0, PERCENT, scale.about, share, derived=True)
