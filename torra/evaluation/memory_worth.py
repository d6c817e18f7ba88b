"""What a memory is worth: whether trades that it speaks for come to more than the others.

Each opening whose tick was told of enough like trades (lessons.mean_r) falls into one of three
equal parts: those for which the memory spoke least, between, and most. `lessons.mean_r` speaks for
the side of the opening or against it. If it knows something, the trades of the top part come to
more than those of the bottom part; the placebo of a memory, told lessons by lot, shows how far
apart chance alone puts them. The difference has Welch's interval; each part's mean that of
torra.evaluation.intervals.

Beside it, a desk that remembers is compared with its twin that does not: verdicts that memory
changed, and the days of the two. Results are in R, net of spread and slippage and before
commission. Nothing raises; too few trades have a count and a sentence that says how many it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from torra.evaluation.exhibits import Columns, Exhibit, by_arm, contents, interval, number
from torra.evaluation.intervals import (
    LEAST_VALUES,
    LEVEL,
    Interval,
    Mean,
    mean_of,
    student_quantile,
)
from torra.evaluation.observations import ArmObservation
from torra.evaluation.paired import FlipResult, ForwardReturns, Key, flip_result
from torra.evaluation.paired_days import DayResult, day_result
from torra.evaluation.power import NOTABLE_R, TRADE_SD, PowerSentence, finding, mean_count
from torra.evaluation.wording import (
    FORGETFUL,
    LOTS,
    count,
    listed,
    signed,
)

FIGURES: Final = ("told", "trades", "apart", "low", "high")
PARTS: Final = ("bottom", "middle", "top")
"""Thirds of the openings, by how much the memory spoke for them."""

LONG: Final = "BUY"


@dataclass(frozen=True, slots=True)
class MemoryScoredTrade:
    """An opening: what the memory said for its side, in R, and what it came to, in R."""

    said: float
    r: float


@dataclass(frozen=True, slots=True)
class Third:
    """A third of an arm's openings: from and to where the memory spoke, and what they came to."""

    arm: str
    part: str
    low: float | None
    high: float | None
    r: Mean


@dataclass(frozen=True, slots=True)
class MemoryWorth:
    """What an arm's memory is worth: its openings by thirds, top less bottom with its interval.

    `trades` are all that the arm closed; those of `thirds` were told of enough like trades.
    """

    arm: str
    trades: int
    thirds: tuple[Third, ...]
    apart: float | None = None
    interval: Interval | None = None

    @property
    def low(self) -> float | None:
        """The lower end of the difference."""
        return self.interval.low if self.interval else None

    @property
    def high(self) -> float | None:
        """The upper end of the difference."""
        return self.interval.high if self.interval else None

    @property
    def told(self) -> int:
        """How many openings the memory spoke of."""
        return sum(third.r.n for third in self.thirds)


def scored_trades(arm: ArmObservation) -> list[MemoryScoredTrade]:
    """Return the openings of an arm of which its memory said something, the oldest first."""
    said = {
        (tick.instance, tick.timeframe, tick.close_time): tick.lessons_r
        for tick in arm.ticks
        if tick.lessons_r is not None
    }
    found = []
    for trade in arm.trades:
        value = said.get((trade.instance, trade.timeframe, trade.decided))
        if value is not None:
            found.append(MemoryScoredTrade(value if trade.side == LONG else 0.0 - value, trade.r))
    return found


def memory_worth(arm: ArmObservation, rng: Generator) -> MemoryWorth:
    """Return what an arm's memory is worth."""
    found = scored_trades(arm)
    order = sorted(range(len(found)), key=lambda at: (found[at].said, at))
    # back in the order of time: neighbours resemble each other
    parts = [sorted(part.tolist()) for part in np.array_split(np.array(order, int), len(PARTS))]
    thirds = tuple(
        Third(
            arm.name,
            name,
            min(found[at].said for at in part),
            max(found[at].said for at in part),
            mean_of([found[at].r for at in part], rng),
        )
        for name, part in zip(PARTS, parts, strict=True)
        if part
    )
    if len(thirds) < len(PARTS):
        return MemoryWorth(arm.name, len(arm.trades), thirds)
    bottom, _, top = (third.r for third in thirds)
    return MemoryWorth(arm.name, len(arm.trades), thirds, *_apart(top, bottom))


def _apart(top: Mean, bottom: Mean) -> tuple[float | None, Interval | None]:
    """Return the difference of two means and Welch's interval, None where it is not known."""
    if top.mean is None or bottom.mean is None:
        return None, None
    gap = top.mean - bottom.mean
    if min(top.n, bottom.n) < LEAST_VALUES or not top.sd or not bottom.sd:
        return gap, None
    shares = top.sd**2 / top.n, bottom.sd**2 / bottom.n
    freedom = sum(shares) ** 2 / (shares[0] ** 2 / (top.n - 1) + shares[1] ** 2 / (bottom.n - 1))
    reach = student_quantile((1 + LEVEL) / 2, freedom) * math.sqrt(sum(shares))
    return gap, Interval(gap - reach, gap + reach)


def remembers(arm: ArmObservation) -> bool:
    """Return whether any tick of an arm was told what like trades came to."""
    return any(tick.lessons_r is not None for tick in arm.ticks)


def memory_exhibits(
    arms: Sequence[ArmObservation],
    outcomes: Mapping[Key, ForwardReturns],
    rng: Callable[[str], Generator],
) -> tuple[Exhibit, ...]:
    """Return the tables of memory; none where no arm remembers and none is a twin.

    `outcomes` is what came after each tick, `rng` gives a generator for a use by its name.
    """
    told = [arm for arm in arms if remembers(arm)]
    named = {arm.name: arm for arm in arms}
    pairs = [
        (named[name.removesuffix(FORGETFUL)], arm)
        for name, arm in named.items()
        if name.endswith(FORGETFUL) and name.removesuffix(FORGETFUL) in named
    ]
    found = []
    if told:
        found.append(memory_exhibit([memory_worth(arm, rng(f"{arm.name} memory")) for arm in told]))
    if pairs:
        found.append(
            twins_exhibit(
                [
                    Twins(
                        day_result(arm, [twin], rng(f"{arm.name} twin days")),
                        flip_result(arm, twin, outcomes, rng(f"{arm.name} twin flips")),
                    )
                    for arm, twin in pairs
                ]
            )
        )
    return tuple(found)


# --- openings by thirds ---------------------------------------------------------------------------


THIRDS: Final[Columns] = {
    "arm": "arm",
    "memory spoke for the side": "part",
    "from, R": number("low", 2),
    "to, R": number("high", 2),
    "openings": "r.n",
    "R a trade, net": number("r.mean", 3),
    "95 % interval": interval("r", 3),
}


def memory_exhibit(found: Sequence[MemoryWorth]) -> Exhibit:
    """Return the openings of each arm by what its memory said."""
    rows = [row for one in found for row in (*one.thirds, *_difference(one))]
    return Exhibit(
        name="memory",
        title="Openings by what lessons said of their side",
        **contents(THIRDS, rows),
        figures=by_arm((one.arm, _figures(one)) for one in found),
        **_show(found)._asdict(),
    )


def _difference(one: MemoryWorth) -> Iterator[Third]:
    """Yield the last row of an arm: the top third less the bottom one."""
    if one.apart is not None:
        gap = Mean(one.told, one.apart, low=one.low, high=one.high)
        yield Third(one.arm, "top less bottom", None, None, gap)


def _figures(one: MemoryWorth) -> dict[str, float | None]:
    parts = {f"{third.part}.r": third.r.mean for third in one.thirds}
    return {name: getattr(one, name) for name in FIGURES} | parts


def _needed() -> int:
    """Return how many openings it takes to see thirds NOTABLE_R apart: two means, three thirds."""
    # A difference of two means has twice the variance of one.
    one = mean_count(NOTABLE_R, TRADE_SD * math.sqrt(2)) or 0
    return len(PARTS) * one


def _show(found: Sequence[MemoryWorth]) -> PowerSentence:
    own = [one for one in found if one.arm not in LOTS]
    lot = next((one for one in found if one.arm in LOTS), None)
    ahead = [
        one.arm
        for one in own
        if one.interval is not None and one.interval.low > 0 and _more(one, lot)
    ]
    behind = [one.arm for one in own if one.interval is not None and one.interval.high < 0]
    parts = [f"What lessons said for a side went with the result of {listed(ahead)}."] * bool(ahead)
    parts += [f"It went against it in {listed(behind)}."] * bool(behind)
    text = " ".join(parts) or (
        "No edge shown: openings that lessons spoke for did not come to more than the others "
        "beyond chance."
    )
    most = max((one.told for one in own), default=0)
    apart = f"a top third {signed(NOTABLE_R)} R above the bottom one"
    told = finding(text, _needed(), most, "opening", apart, shown=bool(parts))
    if lot is None or lot.apart is None:
        return told
    by_lot = f"the top third less the bottom one is {signed(lot.apart)} R a trade."
    return told._replace(says=f"{told.says} With lessons by lot {by_lot}")


def _more(one: MemoryWorth, lot: MemoryWorth | None) -> bool:
    """Return whether an arm's thirds are farther apart than those of lessons by lot."""
    if lot is None or lot.apart is None or one.apart is None:
        return True
    return one.apart > lot.apart


# --- twins ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Twins:
    """A desk that remembers beside its twin that does not: their days, and changed verdicts."""

    days: DayResult
    flips: FlipResult


TWINS: Final[Columns] = {
    "arm": "days.arm",
    "against": "days.against",
    "days": "days.days.n",
    "difference, % of capital": number("days.total", 2),
    "95 % interval a day": interval("days.days", 4),
    "p": number("days.days.p", 4),
    "changed": "flips.changed",
    "counted": "flips.counted",
    "won": "flips.wins",
    "lost": "flips.losses",
    "mean worth, ATR": number("flips.worth.mean", 3),
}


def twins_exhibit(found: Sequence[Twins]) -> Exhibit:
    """Return each desk that remembers beside its twin that does not."""
    return Exhibit(
        name="memory-twins",
        title="Desks that remember, against the same desks that do not",
        **contents(TWINS, found, TWIN_FIGURES, key="days.arm"),
        says=_twins_say(found),
        enough=any(one.days.days.low is not None for one in found),
    )


TWIN_FIGURES: Final = {
    "total": "days.total",
    "low": "days.days.low",
    "high": "days.days.high",
    "p": "days.days.p",
    "changed": "flips.changed",
    "counted": "flips.counted",
    "worth": "flips.worth.mean",
}


def _twins_say(found: Sequence[Twins]) -> str:
    beyond = [one for one in found if one.days.days.p is not None and one.days.days.p <= 1 - LEVEL]
    said = [
        f"{one.days.arm} did {'better' if (one.days.total or 0.0) > 0 else 'worse'} than "
        f"{one.days.against} beyond chance."
        for one in beyond
    ] or ["No edge shown: no desk's days differ from those of its twin beyond chance."]
    flips = sum(len(one.flips.flips) for one in found)
    said.append(f"Lessons changed {count(flips, 'verdict')} of those ticks.")
    return " ".join(said)
