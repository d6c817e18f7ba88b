"""Runs thresholds, weights and limits on L1 alone: verdicts and trades of a whole history.

The bars are scored once (torra.replay.l1.verdicts.stream_of); each configuration after that costs a
few sums over arrays and a walk over its trades. The result equals, verdict for verdict and trade
for trade, what `run_tick` gives on the same bars when nobody is asked. So a question that needs no
debate needs no replay.

A profile with a calendar of events raises ConfigError: bars do not contain it. Nothing is stored.
torra.replay.sweeps and torra.evaluation judge the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.risk_officer import NO_ROWS, RiskOverlay
from technical_calculator import WARM_UP
from torra.config import Instance, Profile
from torra.errors import ConfigError
from torra.evaluation.observations import TradeObservation
from torra.market.exact import Array
from torra.replay.l1.trades import BarIndex, L1Course, Plans, account_of, gate_flags
from torra.replay.l1.verdicts import (
    Flags,
    Running,
    composites,
    consensus,
    running,
    stream_of,
    verdicts,
)


def refuse_calendar(profile: Profile) -> None:
    """Raise ConfigError for a profile with a calendar of events: bars do not contain it."""
    if profile.events.calendar:
        raise ConfigError("a sweep knows no calendar: empty events.calendar, or use replay")


Officer = Mapping[tuple[str, int], RiskOverlay]
"""What a risk officer left of openings, by timeframe and close in microseconds since 1970."""

NO_OFFICER: Final[Officer] = {}


@dataclass(frozen=True, slots=True)
class L1Result:
    """The result of one configuration on a history.

    `composite`, `consensus` and `verdict` (1 BUY, -1 SELL, 0 HOLD) have one element for each tick
    of `ticks`, in running order; `trades` are in the order of their ends.
    """

    profile: Profile
    ticks: Running
    composite: Array
    consensus: Array
    verdict: NDArray[np.int8]
    trades: tuple[TradeObservation, ...]
    halts: int = 0


class L1Backtest:
    """One symbol's bars, scored once, and the ticks that every configuration runs.

    The ticks are those that close in (begin, end]. Intermediate results that configurations share
    are kept.
    """

    def __init__(
        self,
        instance: Instance,
        frames: Mapping[str, pd.DataFrame],
        *,
        scored: Mapping[str, pd.DataFrame] | None = None,
        begin: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        """Score the frames of the instance's timeframes, unless `scored` has their `score_frame`.

        A frame is float64 bars on a UTC index, as the door lets them in; one of fewer than WARM_UP
        bars has no tick. Raises ConfigError when none is longer.
        """
        self.instance = instance
        self.streams = tuple(
            stream_of(name, frames[name], (scored or {}).get(name))
            for name in instance.timeframes
            if name in frames and len(frames[name]) >= WARM_UP
        )
        if not self.streams:
            raise ConfigError(f"{instance.id}: fewer than {WARM_UP} bars of every timeframe")
        self.ticks = running(self.streams, begin, end)
        shortest = (one for one in self.streams if one.timeframe == instance.shortest)
        self.market = BarIndex(self.ticks, next(shortest, None))
        self._composites: dict[str, Array] = {}
        self._consensus: dict[str, Array] = {}
        self._gates: dict[str, tuple[Flags, Flags]] = {}
        self._plans: dict[str, Plans] = {}

    @property
    def bars(self) -> int:
        """How many bars a configuration runs over: the ticks of all timeframes."""
        return len(self.market.close)

    def run(self, profile: Profile, rows: Officer = NO_OFFICER, *, alone: bool = False) -> L1Result:
        """Return the result of a configuration.

        `rows` are what a risk officer left of openings, by timeframe and close in microseconds. If
        they stand `alone`, every other tick is a HOLD.
        Raises ConfigError for a symbol that the profile does not know, and for a profile with a
        calendar of events.
        """
        refuse_calendar(profile)
        composite, agreed = self._weighed(profile)
        verdict = verdicts(agreed, profile.thresholds)
        if alone:
            verdict *= np.array([key in rows for key in self._keys()])
        course = L1Course(verdict, *self._flags(profile), self._rows(rows))
        made = account_of(self.market, course, self.instance, profile, self._plans_of(profile))
        return L1Result(profile, self.ticks, composite, agreed, verdict, made.trades, made.halts)

    def _rows(self, rows: Officer) -> tuple[RiskOverlay, ...]:
        """Return the rows of each tick; nothing where no officer sits."""
        return tuple([rows.get(key, NO_ROWS) for key in self._keys()]) if rows else ()

    def _keys(self) -> Iterator[tuple[str, int]]:
        names = [one.timeframe for one in self.streams]
        ticks = zip(self.ticks.stream.tolist(), self.market.close, strict=True)
        return ((names[n], at) for n, at in ticks)

    def _weighed(self, profile: Profile) -> tuple[Array, Array]:
        form = profile.record_score
        weights = f"{form} {profile.sentiment_weights.model_dump_json()}"
        if weights not in self._composites:
            self._composites[weights] = composites(self.ticks, profile.sentiment_weights, form)
        key = f"{weights} {sorted(profile.timeframe_weights.items())}"
        if key not in self._consensus:
            self._consensus[key] = consensus(
                self.ticks, self._composites[weights], profile.timeframe_weights
            )
        return self._composites[weights], self._consensus[key]

    def _flags(self, profile: Profile) -> tuple[Flags, Flags]:
        spread = profile.symbol(self.instance.symbol).spread
        key = f"{profile.gate.model_dump_json()} {spread}"
        if key not in self._gates:
            self._gates[key] = gate_flags(self.market, profile.gate, spread)
        return self._gates[key]

    def _plans_of(self, profile: Profile) -> Plans:
        spec = profile.symbol(self.instance.symbol)
        # Everything that levels and lots depend on; thresholds and weights are not among it.
        key = f"{spec.model_dump_json()} {profile.risk.model_dump_json()}"
        return self._plans.setdefault(key, {})


def sweep(ground: L1Backtest, profiles: Iterable[Profile]) -> Iterator[L1Result]:
    """Yield the result of each configuration, in their order."""
    return map(ground.run, profiles)
