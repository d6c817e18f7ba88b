"""The trades of given signals as vectorbt makes them: `... vectorbt_trades IN OUT`.

IN and OUT as with backtesting.py. Its `from_signals` fills at the bar of a signal, so every signal
is given one bar later with that bar's open as its price; stop and target are shares of the price of
the entry there, so they are told as what they are of it. The first run compiles and is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import vectorbt as vbt
from vectorbt.portfolio.enums import StopEntryPrice, StopExitPrice, TradeStatus


def late(values: Any, empty: float) -> Any:
    """Return the values a bar later."""
    moved = np.full(len(values), empty)
    moved[1:] = values[:-1]
    return moved


def run(given: Any) -> tuple[Any, float]:
    """Return the records of all trades and the seconds of processor time of a run."""
    opens = given["open"]
    signal = late(given["signal"], 0)
    stop, target = (np.abs(late(given[name], np.nan) / opens - 1) for name in ("stop", "target"))

    def once() -> Any:
        found = vbt.Portfolio.from_signals(
            pd.Series(given["close"]),
            entries=signal > 0,
            short_entries=signal < 0,
            price=opens,
            open=opens,
            high=given["high"],
            low=given["low"],
            size=1.0,
            sl_stop=stop,
            tp_stop=target,
            stop_entry_price=StopEntryPrice.FillPrice,
            stop_exit_price=StopExitPrice.StopLimit,
            upon_opposite_entry="Reverse",
            accumulate=False,
            init_cash=1e9,
        )
        return found.trades.values  # noqa: PD011 - not a frame: the records of trades

    once()
    begin = time.process_time()
    found = once()
    return found, time.process_time() - begin


def main() -> None:
    """Run and tell."""
    trades, seconds = run(np.load(sys.argv[1]))
    trades = trades[trades["status"] == TradeStatus.Closed]
    np.savez(
        sys.argv[2],
        opened=trades["entry_idx"],
        closed=trades["exit_idx"],
        side=np.where(trades["direction"] == 0, 1, -1),
        entry=trades["entry_price"],
        exit=trades["exit_price"],
    )
    print(json.dumps({"seconds": seconds, "version": vbt.__version__}))


if __name__ == "__main__":
    main()
