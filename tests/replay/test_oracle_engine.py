"""An engine that is not ours makes the same trades of the same signals: backtesting.py.

Both are given, for every bar, the verdict at its close and the stop and target that an opening
would have; what is compared is every trade's bars, side and prices. The pass on L1 (which equals
run_tick, tests/replay/test_l1_sweep.py) runs with limits that nothing reaches, so that the signals
alone decide. What the two agree on: a signal at a close fills at the next open, the stop comes
before the target inside a bar, a gap through either fills at the open. Where their conventions
differ, and how they are matched:

    spread      backtesting.py takes a share of the price, at the opening only. Ours is an amount:
                a long pays it when it opens, a short when it leaves, and a short's stop and target
                are met by the ask. So the engine runs on bid prices without a spread, gets a
                short's levels less the spread, and a long's entry and a short's exit have it added.
    a bar that opens beyond the target and then falls to the stop: ours ends at the open, theirs
                looks at the stop first. There is no such bar here; the test counts them.
    the end     theirs closes what is open at the last bar; ours tells of it as END. Left out
                on both sides.
    size        theirs is one unit; it changes no price.

AGPL: an oracle in development, never part of what is shipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.worlds.price_series import rows_of, times_of
from torra.config import ROOT, Instance, Profile, validate
from torra.evaluation.observations import TradeObservation
from torra.replay.l1.sweep import L1Backtest, L1Result
from torra.replay.l1.verdicts import BUY
from torra.replay.shards.history import load
from torra.verdict.order_levels import Levels, levels

DECIMALS = 8
Row = tuple[int, int, str, float, float]
"""Bar of the entry, bar of the exit, side, and both prices."""

CASES = {
    "EURUSD_H1": ("EURUSD", "H1", "close", 0.0),
    "EURUSD_H1_spread": ("EURUSD", "H1", "reverse", 0.00012),
    "BTCUSD_M15": ("BTCUSD", "M15", "reverse", 0.0),
    "BTCUSD_M15_spread": ("BTCUSD", "M15", "close", 15.0),
}


def unlimited(symbol: str, timeframe: str, on_opposite: str, spread: float) -> Profile:
    """Signals alone decide: no gate, no cap, no throttle, no collar is ever reached."""
    never = 1e6
    values = {
        "thresholds": {"buy": 0.35, "sell": 0.35},
        "on_opposite": on_opposite,
        "timeframe_weights": {timeframe: 1.0},
        "gate": {"max_spread_atr": 1000.0},
        "risk": {
            "daily_loss_cap_pct": never,
            "max_signals_per_hour": 1000,
            "max_same_openings_per_hour": 1000,
            "price_collar_atr": 1000.0,
        },
        "symbols": {symbol: {"spread": spread}},
    }
    return validate(Profile, values, "the oracle")


def theirs(bars: pd.DataFrame, wanted: dict[int, tuple[int, Levels]], on_opposite: str) -> Any:
    """Run the engine; `wanted` maps a bar to the verdict at its close and the levels of it."""
    from backtesting import Backtest, Strategy  # noqa: PLC0415 - it brings a plotting library

    class Signals(Strategy):  # type: ignore[misc]
        def init(self) -> None:
            pass

        def next(self) -> None:
            sign, at = wanted.get(len(self.data) - 1, (0, None))
            held = (self.position.size > 0) - (self.position.size < 0)
            if not sign or at is None or held == sign:
                return
            if held:
                self.position.close()
                if on_opposite == "close":
                    return
            order = self.buy if sign == BUY else self.sell
            order(size=1, sl=at.stop, tp=at.target)

    data = bars.rename(columns=str.capitalize)
    data.index = times_of(data).tz_localize(None)
    engine = Backtest(data, Signals, cash=1e9, trade_on_close=False, finalize_trades=True)
    return engine.run()["_trades"]


def signals(found: L1Result, bars: pd.DataFrame, symbol: str) -> dict[int, tuple[int, Levels]]:
    spec, wanted = found.profile.symbol(symbol), {}
    (stream,) = found.ticks.streams
    for tick in np.flatnonzero(found.verdict):
        bar, sign = int(found.ticks.bar[tick]), int(found.verdict[tick])
        side = "BUY" if sign == BUY else "SELL"
        at = levels(side, float(bars["close"].iloc[bar]), float(stream.atr[bar]), spec)
        assert isinstance(at, Levels)
        shift = 0.0 if sign == BUY else spec.spread
        stop, target = (round(price - shift, DECIMALS) for price in (at.stop, at.target))
        wanted[bar] = sign, Levels(at.entry, stop, target, at.atr)
    return wanted


def our_rows(trades: tuple[TradeObservation, ...], bars: pd.DataFrame) -> list[Row]:
    at = {moment: number for number, moment in enumerate(bars.index)}
    return [
        (at[trade.opened], at[trade.closed], trade.side, trade.entry, trade.exit)
        for trade in trades
        if trade.reason != "END"
    ]


def their_rows(trades: pd.DataFrame, spread: float) -> list[Row]:
    rows = []
    for trade in rows_of(trades.sort_values(["ExitBar", "EntryBar"])):
        long = trade.Size > 0
        entry = round(trade.EntryPrice + (spread if long else 0.0), DECIMALS)
        left = round(trade.ExitPrice + (0.0 if long else spread), DECIMALS)
        rows.append((trade.EntryBar, trade.ExitBar, "BUY" if long else "SELL", entry, left))
    return rows


@pytest.mark.filterwarnings("ignore:DatetimeIndex.dayofweek is deprecated")  # in their statistics
@pytest.mark.parametrize("name", CASES)
def test_the_trades_are_those_of_another_engine(name: str) -> None:
    symbol, timeframe, on_opposite, spread = CASES[name]
    file = str(ROOT / "sample_data" / f"{symbol}_{timeframe}.csv")
    bars = load(Path("nowhere"), symbol, [file]).frames[timeframe]
    instance = Instance(symbol=symbol, timeframes=(timeframe,))
    profile = unlimited(symbol, timeframe, on_opposite, spread)
    found = L1Backtest(instance, {timeframe: bars}).run(profile)
    other = theirs(bars, signals(found, bars, symbol), on_opposite)
    ours = our_rows(found.trades, bars)
    told = their_rows(other, spread)
    if found.trades[-1].reason == "END":
        assert told.pop()[1] == len(bars) - 1
    assert ours == told
    assert len(ours) > 80 and {"BUY", "SELL"} == {row[2] for row in ours}
    assert {"STOPPED", "TARGET", "CLOSED"} <= {trade.reason for trade in found.trades}
    assert beyond_both(found.trades, bars, spread) == 0


def beyond_both(trades: tuple[TradeObservation, ...], bars: pd.DataFrame, spread: float) -> int:
    """Count exits at an open beyond the target, in a bar that reached the stop as well."""
    count = 0
    for trade in trades:
        bar, long = bars.loc[trade.closed], trade.side == "BUY"
        ask = 0.0 if long else spread
        towards = 1 if long else -1
        gapped = towards * (bar["open"] + ask - trade.target) >= 0
        worst = bar["low"] if long else bar["high"] + ask
        count += bool(gapped and towards * (worst - trade.stop) <= 0)
    return count
