"""Sample sizes: how many results it takes to see an effect, at 80 % power and 5 % two-sided.

A figure without this number invites a verdict that the sample cannot give. The counts are those for
independent results; results that resemble their neighbours take more. Pure functions that never
raise; an effect of nothing would take an endless sample, which is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.intervals import LEVEL, normal_quantile, normal_share
from torra.evaluation.wording import count, percent, signed

POWER: Final = 0.80
"""The chance of seeing an effect that exists."""

TRADE_SD: Final = 1.42
"""Standard deviation of a trade in R, measured on gold, US500, oil, EURUSD and BTC with stops at 2
ATR and targets at 2 R."""

NOTABLE_R: Final = 0.10
"""An expectancy worth finding, in R a trade: about three times the spread on gold."""

NOTABLE_SHARE: Final = 0.60
"""A share of won flips worth finding."""

NOTABLE_IC: Final = 0.05
NOTABLE_GATE: Final = 0.20
"""A difference of passed and vetoed signals worth finding, in standard deviations."""

YEAR: Final = 365.25


def _reach() -> float:
    return normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)


def mean_count(effect: float, sd: float) -> int | None:
    """Return how many results it takes to see a mean of `effect` at `sd`: (z sd / effect)^2."""
    if effect == 0 or sd <= 0:
        return None
    return math.ceil((_reach() * sd / effect) ** 2)


def information_count(correlation: float) -> int | None:
    """Return how many ticks it takes to see a rank correlation: (z / correlation)^2."""
    return mean_count(correlation, 1.0)


def share_count(share: float) -> int | None:
    """Return how many discordant ticks distinguish a share of won flips in (0, 1) from one half."""
    if share in (0.0, 0.5, 1.0):
        return None
    # two spreads: one of even odds, one of the share that is to be seen
    even = normal_quantile((1 + LEVEL) / 2) * 0.5
    there = normal_quantile(POWER) * math.sqrt(share * (1 - share))
    return math.ceil(((even + there) / (share - 0.5)) ** 2)


def two_shares_count(one: float, other: float) -> int | None:
    """Return how many in each group distinguish two shares (normal approximation)."""
    if one == other:
        return None
    spread = one * (1 - one) + other * (1 - other)
    return math.ceil(_reach() ** 2 * spread / (one - other) ** 2)


def gate_count(difference: float, rate: float) -> int | None:
    """Return how many signals show a difference, in standard deviations, at a veto rate."""
    if difference == 0 or not 0 < rate < 1:
        return None
    return math.ceil((_reach() / difference) ** 2 / (rate * (1 - rate)))


def sharpe_years(sharpe: float) -> float | None:
    """Return how many years show an annual Sharpe ratio: its standard error is 1 / sqrt(years)."""
    return None if sharpe == 0 else (_reach() / sharpe) ** 2


def smallest_mean(size: int, sd: float) -> float | None:
    """Return the smallest mean that `size` results are likely to show."""
    return _reach() * sd / math.sqrt(size) if size > 0 and sd > 0 else None


def power_of(effect: float, sd: float, size: int) -> float | None:
    """Return the chance in (0, 1) that `size` results distinguish a mean of `effect` from 0."""
    if size <= 0 or sd <= 0:
        return None
    critical, shift = normal_quantile((1 + LEVEL) / 2), abs(effect) / sd * math.sqrt(size)
    return normal_share(shift - critical) + normal_share(-shift - critical)


def rounded_count(needed: int) -> str:
    """Return a count rounded to two figures from 1,000 on: more would not be honest."""
    if needed < 1_000:
        return str(needed)
    step = 10 ** (len(str(needed)) - 2)
    return f"{round(needed / step) * step:,}"


def sample_size_sentence(needed: int | None, have: int, noun: str, effect: str) -> str:
    """Return the sentence that says what it would take to see an effect, and what there is."""
    if needed is None:
        return f"No number of {noun}s would show {effect}."
    seen = count(have, noun) if have else f"no {noun}"
    enough = "which is enough" if have >= needed else "which is too few"
    many = f"{rounded_count(needed)} {noun}s"
    return f"Seeing {effect} takes about {many}; there {_is(have)} {seen}, {enough}."


LARGER: Final = " That is for a result as small as that: a larger one, as here, takes fewer."


class PowerSentence(NamedTuple):
    """What a table shows: its sentence, and whether that tells anything."""

    says: str
    enough: bool


def finding(
    text: str, needed: int | None, have: int, noun: str, effect: str, *, shown: bool = False
) -> PowerSentence:
    """Return a sentence with what it would take, and whether there is as much.

    `shown`: something stands out from chance all the same, which settles it.
    """
    powered = needed is not None and have >= needed
    larger = LARGER if shown and not powered else ""
    return PowerSentence(
        f"{text} {sample_size_sentence(needed, have, noun, effect)}{larger}", powered or shown
    )


def trades_finding(
    text: str, have: int, sd: float | None = None, *, shown: bool = False
) -> PowerSentence:
    """Return a finding on trades; `sd` is the sample's own where it can be trusted."""
    needed = mean_count(NOTABLE_R, sd or TRADE_SD)
    return finding(text, needed, have, "trade", f"{signed(NOTABLE_R)} R a trade", shown=shown)


def _is(number: int) -> str:
    return "is" if number in (0, 1) else "are"


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The size of what a replay or a desk has seen: counts, and the days it took."""

    ticks: int = 0
    trades: int = 0
    flips: int = 0
    signals: int = 0
    veto_rate: float = 0.10
    days: float = 0.0
    trade_sd: float = TRADE_SD


def power_exhibit(seen: SampleSize) -> Exhibit:
    """Return the questions that the sample can answer, and the days that the others would take."""
    asked = _questions(seen)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (question, needed, have, needed is not None and have >= needed, _days(needed, have, seen))
        for question, needed, have in asked
    )
    able = sum(1 for row in rows if row[3])
    return Exhibit(
        name="power",
        title="What this sample could show",
        columns=("to see", "it takes", "there are", "enough", "days at this pace"),
        rows=rows,
        says=_says(able, len(rows)),
        enough=able > 0,
        figures={f"needs.{question}": needed for question, needed, _ in asked},
    )


def _questions(seen: SampleSize) -> tuple[tuple[str, int | None, int], ...]:
    return (
        *(
            (f"an information coefficient of {ic:.2f} (ticks)", information_count(ic), seen.ticks)
            for ic in (0.10, NOTABLE_IC, 0.03)
        ),
        *(
            (f"{percent(share)} of flips won (discordant ticks)", share_count(share), seen.flips)
            for share in (NOTABLE_SHARE, 0.55)
        ),
        *(
            (f"{signed(r)} R a trade (trades)", mean_count(r, seen.trade_sd), seen.trades)
            for r in (0.20, NOTABLE_R, 0.05)
        ),
        (
            f"a gate worth {NOTABLE_GATE} standard deviations (signals)",
            gate_count(NOTABLE_GATE, seen.veto_rate),
            seen.signals,
        ),
    )


def _days(needed: int | None, have: int, seen: SampleSize) -> int | None:
    if needed is None or have <= 0 or seen.days <= 0:
        return None
    return math.ceil(needed / have * seen.days)


def _says(able: int, asked: int) -> str:
    if able == 0:
        return (
            "This sample is too small for every question here: whatever a table shows, "
            "chance alone shows as often."
        )
    return (
        f"The sample is large enough for {able} of {asked} questions, each at an 80 % chance of "
        "seeing an effect of that size. Results that resemble their neighbours take more."
    )
