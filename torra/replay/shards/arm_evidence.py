"""The experts' evidence of a placebo: what their bars showed at the same time of an earlier day.

The day is drawn by lot among those that lie so far back that no bar is in both readings, and not
much further. So a placebo reads as much as its desk does, of the same hour, and nothing that bears
on the tick. Where the history does not reach back far enough, the experts have nothing to read.
Numbers from beside the chart are older too (torra.replay.outlook_then.SHIFT); order flow is theirs.
The lot depends on the seed and the tick alone, so that an arm that goes on draws as before.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from numpy.random import PCG64, Generator

import technical_calculator
from instance_database import TickKey
from torra.clock import duration
from torra.evidence import feature_bundle
from torra.evidence.expert_bars import WINDOW
from torra.evidence.feature_bundle import Bundle
from torra.evidence.outside_readings import NO_OUTSIDE, OutsideView
from torra.market.spreads import NO_SPREADS
from torra.replay.arms import Arm
from torra.tick.bar_window import HistoryWindow
from torra.tick.edges import Evidence

FURTHEST: Final = 4 * WINDOW
"""Bars before a tick beyond which no earlier day is drawn; the nearest lies WINDOW before."""


Slot = tuple[str, int, int]
"""A timeframe and a time of day."""


def evidence_of(arm: Arm, window: HistoryWindow, seed: int) -> Evidence | None:
    """Return what gives an arm's experts the evidence of earlier days; None for all other arms."""
    if arm.evidence == "own":
        return None
    return ShiftedEvidence(window, seed)


class ShiftedEvidence:
    """See the module; called by a tick with its key, its evidence and its outside numbers."""

    def __init__(self, window: HistoryWindow, seed: int) -> None:
        """Read earlier days from `window`."""
        self._window = window
        self._seed = seed
        self._moments = {
            name: [one.to_pydatetime() for one in times] for name, times in window.times.items()
        }
        self._alike: Mapping[Slot, list[int]] = self._by_time_of_day()

    def __call__(self, key: TickKey, bundle: Bundle, outside: OutsideView | None) -> Bundle:
        """Return the evidence of a tick with the blocks of its experts of an earlier day."""
        moment = self.earlier(key)
        if moment is not None:
            as_of = moment + duration(key.timeframe)
            bars = self._window.bars(key.timeframe, as_of)
            row = self._window.l1_row(key.timeframe, as_of, bars)
            if row["valid"]:
                return feature_bundle.with_experts_of(
                    bundle,
                    bars=bars,
                    row=row,
                    outside=outside or NO_OUTSIDE,
                    spreads=self._window.spreads(bars, by_hour=True),
                )
        return feature_bundle.with_experts_of(bundle, bars=None, spreads=NO_SPREADS)

    def earlier(self, key: TickKey) -> datetime | None:
        """Return the bar time whose evidence a tick is given; None where none lies far enough."""
        name, moments = key.timeframe, self._moments[key.timeframe]
        at = bisect_left(moments, key.bar_time)
        alike = self._alike.get(_slot(name, key.bar_time), [])
        first, last = bisect_left(alike, at - FURTHEST), bisect_right(alike, at - WINDOW)
        if first >= last:
            return None
        rng = Generator(PCG64([self._seed, zlib.crc32(key.text.encode())]))
        return moments[alike[int(rng.integers(first, last))]]

    def _by_time_of_day(self) -> dict[Slot, list[int]]:
        found: dict[Slot, list[int]] = defaultdict(list)
        for name, moments in self._moments.items():
            # A bar of the warm-up has no evidence of its own.
            for at in range(technical_calculator.WARM_UP, len(moments)):
                found[_slot(name, moments[at])].append(at)
        return found


def _slot(timeframe: str, moment: datetime) -> Slot:
    return timeframe, moment.hour, moment.minute
