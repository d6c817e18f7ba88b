"""What a judge's chance of a win was worth: what it said, against what came.

A judge that takes a side says how likely a trade of that side is to end at its target. By tenths of
what was said stand two things that came: how often the price lay that way after HORIZON bars,
before costs, and how many of the closed trades that were made on its side won. Only the second is
what the chance is about, and there are far fewer of it. Calls overlap: intervals (Wilson) count one
tick in every horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from torra.evaluation.exhibits import Columns, Exhibit, contents, percentage, share_of
from torra.evaluation.intervals import wilson
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.power import PowerSentence, finding, share_count
from torra.evaluation.wording import percent, percent_span

HORIZON: Final = 4
TENTHS: Final = 10
LEAST: Final = 50
"""Closed trades from which on a chance can be held to what came."""

NOTABLE: Final = 0.55
"""A share worth finding."""

SIDES: Final = {"LONG": ("BUY", 1.0), "SHORT": ("SELL", -1.0)}


@dataclass(frozen=True, slots=True)
class ChanceDecile:
    """One tenth of what judges said, from `tenth` / 10 on.

    `calls` ticks with a side whose price then moved, `hits` of them its way; `won` of `trades`
    closed trades of that side.
    """

    tenth: int
    ticks: int
    mean: float
    calls: int
    hits: int
    trades: int
    won: int

    @property
    def rate(self) -> float | None:
        """The share of calls that the price went along with."""
        return self.hits / self.calls if self.calls else None


def said_and_came(arm: ArmObservation, outcomes: Outcomes) -> tuple[ChanceDecile, ...]:
    """Return what the judge of an arm said and what came; `outcomes` are those of its ticks."""
    future = np.nan_to_num(outcomes.forward[:, outcomes.place(HORIZON)])
    closed = {
        (one.instance, one.timeframe, one.decided, one.side): one.profit > 0.0
        for one in arm.trades
    }  # fmt: skip
    rows: dict[int, list[tuple[float, float, bool | None]]] = {}
    for tick, moved in zip(arm.ticks, future.tolist(), strict=True):
        told = tick.swarm
        if told is None or told.said is None or told.side not in SIDES:
            continue
        side, way = SIDES[told.side]
        won = closed.get((tick.instance, tick.timeframe, tick.close_time, side))
        tenth = min(TENTHS - 1, int(told.said * TENTHS))
        rows.setdefault(tenth, []).append((told.said, way * moved, won))
    return tuple(_decile(tenth, rows[tenth]) for tenth in sorted(rows))


def _interval(one: ChanceDecile) -> str | None:
    """Return the interval of a rate, counted on calls that do not overlap."""
    if one.rate is None:
        return None
    free = max(1, one.calls // HORIZON)
    found = wilson(round(one.rate * free), free)
    return percent_span(found.low, found.high) if found else None


COLUMNS: Final[Columns] = {
    "said": lambda one: f"{10 * one.tenth} to {10 * one.tenth + 10} %",
    "ticks": "ticks",
    "said on average": percentage("mean", 1),
    f"its way after {HORIZON} bars": percentage("rate", 1),
    "95 %": _interval,
    "closed trades": "trades",
    "won": share_of("won", "trades"),
}


def chance_exhibit(arm: ArmObservation, outcomes: Outcomes) -> Exhibit | None:
    """Return the table of what a judge said and what came; None where none took a side."""
    found = said_and_came(arm, outcomes)
    if not found:
        return None
    trades = sum(one.trades for one in found)
    return Exhibit(
        name="calibration-judge",
        title="What the judge's chance of a win is worth",
        **contents(COLUMNS, found),
        **_show(found, arm.ticks)._asdict(),
        figures={
            **{f"rate.{one.tenth}": one.rate for one in found},
            **{f"won.{one.tenth}": one.won / one.trades if one.trades else None for one in found},
            "trades": trades,
        },
    )


def _decile(tenth: int, rows: Sequence[tuple[float, float, bool | None]]) -> ChanceDecile:
    told = [won for _, _, won in rows if won is not None]
    return ChanceDecile(
        tenth,
        len(rows),
        fmean(said for said, _, _ in rows),
        sum(moved != 0.0 for _, moved, _ in rows),
        sum(moved > 0.0 for _, moved, _ in rows),
        len(told),
        sum(told),
    )


def _show(found: Sequence[ChanceDecile], ticks: Sequence[TickObservation]) -> PowerSentence:
    calls, trades = sum(one.calls for one in found), sum(one.trades for one in found)
    sides = sum(one.ticks for one in found)
    said = sum(one.mean * one.ticks for one in found) / sides
    hits = sum(one.hits for one in found) / calls if calls else None
    told = (
        f"On {sides:,} of {len(ticks):,} ticks the judge took a side and gave it {percent(said)} "
        f"on average; after {HORIZON} bars the price lay that way on {percent(hits)}."
    )
    if trades < LEAST:
        told += f" Its chance is held to trades from {LEAST} on."
    else:
        won = sum(one.won for one in found) / trades
        told += f" Of the closed trades of its side {percent(won)} won."
    needed, effect = share_count(NOTABLE), f"{percent(NOTABLE)} of wins"
    return finding(told, needed, trades, "closed trade", effect)
