"""Discordant ticks: whether the verdicts that an arm changed, against the control, paid.

Two arms that see the same market differ only on discordant ticks, where their verdicts differ;
everything else is the market's. So these flips are judged alone: the worth of the changed verdict
over the next bars less that of the control's. Flips whose outcomes overlap are no independent
pairs, whatever their timeframe. So of each symbol a flip counts only after the outcome of the last
one that counted has ended. A flip that a placebo makes as well is worth nothing, so pass the
placebo arms too: their rows stand beside the agents'.

Without flips or outcomes the figures are None and the sentence says so; nothing raises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from torra.clock import duration
from torra.evaluation.account_curve import MOST_POINTS
from torra.evaluation.exhibits import (
    Columns,
    Exhibit,
    Plot,
    PlotLine,
    Point,
    contents,
    interval,
    number,
)
from torra.evaluation.intervals import LEVEL, Mean, mean_of, sign_test
from torra.evaluation.multiple import benjamini_hochberg, holm
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.power import NOTABLE_SHARE, PowerSentence, finding, share_count
from torra.evaluation.wording import listed, percent

Key = tuple[str, str, datetime]
"""TickSeen.key: instance, timeframe, bar time."""

HORIZON: Final = 16
"""Default horizon of an outcome, in bars."""


class ForwardReturns(NamedTuple):
    """The forward outcome of a long and of a short on one tick, each net of its cost, in ATR."""

    long: float | None
    short: float | None

    def worth(self, verdict: str) -> float | None:
        """Return the outcome of a verdict; a HOLD is worth 0."""
        return {"BUY": self.long, "SELL": self.short}.get(verdict, 0.0)


def sides(
    ticks: Sequence[TickObservation], found: Outcomes, horizon: int = HORIZON
) -> dict[Key, ForwardReturns]:
    """Return by tick the outcomes that were computed for these ticks, at one horizon in bars."""
    return {
        tick.key: ForwardReturns(
            found.net(place, horizon, "BUY"), found.net(place, horizon, "SELL")
        )
        for place, tick in enumerate(ticks)
    }


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A tick on which the verdict of an arm differs from the control's.

    `worth` is the outcome of the arm's verdict less that of the control's, in ATR, net of cost;
    None if the future is not known. `apart`: the outcome of the last one that counts had ended.
    """

    key: Key
    close_time: datetime
    control: str
    verdict: str
    worth: float | None
    apart: bool


@dataclass(frozen=True, slots=True)
class FlipResult:
    """The result of the verdicts that an arm changed.

    `ticks` are the pairs, `flips` those with another verdict, `counted` the flips apart and with a
    known outcome; of these `wins` and `losses`, `p` by the exact sign test (McNemar's on discordant
    pairs), and the mean worth in ATR. `holm` and `shared` are p after Holm, and after Benjamini and
    Hochberg, over all arms of a table.
    """

    arm: str
    ticks: int
    flips: tuple[ChangedVerdict, ...]
    wins: int
    losses: int
    p: float | None
    worth: Mean
    holm: float | None = None
    shared: float | None = None

    @property
    def changed(self) -> int:
        """The number of flips."""
        return len(self.flips)

    @property
    def counted(self) -> int:
        """The number of flips that count."""
        return self.worth.n


def flips(
    arm: ArmObservation,
    control: ArmObservation,
    outcomes: Mapping[Key, ForwardReturns],
    horizon: int = HORIZON,
) -> tuple[int, tuple[ChangedVerdict, ...]]:
    """Return how many ticks both arms saw, and those on which their verdicts differ.

    A tick without a known outcome is a flip too, but it does not count.
    """
    other = {tick.key: tick.verdict for tick in control.ticks}
    # all timeframes in one order: which of two overlapping flips counts depends on it
    paired = sorted(
        (tick for tick in arm.ticks if tick.key in other), key=lambda tick: tick.close_time
    )
    ends = _ends(paired, horizon)
    free: dict[str, datetime] = {}
    found = []
    for tick, end in zip(paired, ends, strict=True):
        if tick.verdict == other[tick.key]:
            continue
        worth = _worth(outcomes.get(tick.key), tick.verdict, other[tick.key])
        # a flip without an outcome does not count, so it keeps no later one out
        apart = worth is not None and free.get(tick.symbol, tick.close_time) <= tick.close_time
        if apart:
            free[tick.symbol] = end
        found.append(
            ChangedVerdict(tick.key, tick.close_time, other[tick.key], tick.verdict, worth, apart)
        )
    return len(paired), tuple(found)


def _ends(ticks: Sequence[TickObservation], horizon: int) -> list[datetime]:
    """Return when the outcome of each tick ends: at the close of its series `horizon` ticks later.

    A gap makes that later than the same number of bars in time; near the end of a series only the
    time is known.
    """
    series: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    for tick in ticks:
        series[tick.instance, tick.timeframe].append(tick.close_time)
    place: dict[tuple[str, str], int] = defaultdict(int)
    found = []
    for tick in ticks:
        name = (tick.instance, tick.timeframe)
        place[name] += 1
        at = place[name] - 1 + horizon
        later = tick.close_time + duration(tick.timeframe) * horizon
        found.append(max(later, series[name][at]) if at < len(series[name]) else later)
    return found


def _worth(sides_of_tick: ForwardReturns | None, verdict: str, control: str) -> float | None:
    if sides_of_tick is None:
        return None
    mine, theirs = sides_of_tick.worth(verdict), sides_of_tick.worth(control)
    return None if mine is None or theirs is None else mine - theirs


def flip_result(
    arm: ArmObservation,
    control: ArmObservation,
    outcomes: Mapping[Key, ForwardReturns],
    rng: Generator,
    horizon: int = HORIZON,
) -> FlipResult:
    """Return the worth of an arm's changed verdicts against the control's."""
    ticks, found = flips(arm, control, outcomes, horizon)
    worth = [flip.worth for flip in found if flip.apart and flip.worth is not None]
    wins, losses = sum(1 for one in worth if one > 0), sum(1 for one in worth if one < 0)
    p = sign_test(wins, losses)
    return FlipResult(arm.name, ticks, found, wins, losses, p, mean_of(worth, rng))


FLIPS: Final[Columns] = {
    "arm": "arm",
    "ticks": "ticks",
    "changed": "changed",
    "counted": "counted",
    "won": "wins",
    "lost": "losses",
    "p": number("p", 4),
    "p, Holm": number("holm", 4),
    "p, false discovery": number("shared", 4),
    "mean worth, ATR": number("worth.mean", 3),
    "95 % interval": interval("worth", 3),
}


def flips_exhibit(results: Sequence[FlipResult]) -> Exhibit:
    """Return the table of discordant ticks, and every flip in a plot."""
    values = [one.p for one in results]
    corrected = zip(results, holm(values), benjamini_hochberg(values), strict=True)
    found = [replace(one, holm=strict, shared=loose) for one, strict, loose in corrected]
    return Exhibit(
        name="discordant",
        title="Verdicts that an arm changed, against the control on the same ticks",
        **contents(FLIPS, found, FLIP_FIGURES),
        **_show(found)._asdict(),
        plots=_flip_plots(found),
    )


FLIP_FIGURES: Final = {
    "ticks": "ticks",
    "flips": "changed",
    "counted": "counted",
    "wins": "wins",
    "losses": "losses",
    "p": "p",
    "holm": "holm",
    "worth": "worth.mean",
    "low": "worth.low",
    "high": "worth.high",
}


def _show(found: Sequence[FlipResult]) -> PowerSentence:
    most = max((one.counted for one in found), default=0)
    sure = 1 - LEVEL
    beyond = [one for one in found if one.holm is not None and one.holm <= sure]
    better = [one.arm for one in beyond if one.wins > one.losses]
    worse = [one.arm for one in beyond if one.wins < one.losses]
    parts = [f"The changes of {listed(better)} paid beyond chance."] if better else []
    parts += [f"The changes of {listed(worse)} cost beyond chance."] if worse else []
    nothing = "No arm's changes paid or cost beyond chance."
    if most == 0:
        nothing = "No verdict was changed whose outcome is known: there is nothing to judge."
    needed, effect = share_count(NOTABLE_SHARE), f"{percent(NOTABLE_SHARE)} won flips"
    text = " ".join(parts or [nothing])
    return finding(text, needed, most, "discordant tick", effect, shown=bool(parts))


def _flip_plots(found: Sequence[FlipResult]) -> tuple[Plot, ...]:
    apart = [(one.arm, [flip for flip in one.flips if flip.apart]) for one in found]
    counted = [(arm, those) for arm, those in apart if those]
    if not counted:
        return ()
    worth = [
        (arm, those, [flip.worth for flip in those if flip.worth is not None])
        for arm, those in counted
    ]
    dots = tuple(_line(arm, those, levels) for arm, those, levels in worth)
    sums = tuple(_line(arm, those, np.cumsum(levels).tolist()) for arm, those, levels in worth)
    return (
        Plot(title="Discordant ticks", kind="dots", lines=dots, y="worth of the change, ATR"),
        Plot(title="Discordant ticks, added up", kind="step", lines=sums, y="ATR"),
    )


def _line(arm: str, those: Sequence[ChangedVerdict], levels: Sequence[float]) -> PlotLine:
    points: list[Point] = [
        (flip.close_time, level) for flip, level in zip(those, levels, strict=True)
    ]
    return PlotLine(name=arm, points=tuple(points[:: 1 + len(points) // MOST_POINTS]))
