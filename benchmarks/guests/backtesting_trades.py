"""The trades of given signals as backtesting.py makes them: `... backtesting_trades IN OUT`.

IN has time (seconds since 1970), open, high, low, close and for every bar the signal at its close
(1, -1, 0) with the stop and target of what it opens. OUT has a row for each trade: bar of the entry
and of the exit, side, both prices. Printed are the seconds of processor time of the run, and the
version. What is still open at the end is no trade.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from backtesting import Backtest, Strategy, __version__


def run(given: Any) -> tuple[Any, float]:
    """Return the trades and the seconds of processor time of the run, its statistics included."""
    signal, stop, target = (given[name].tolist() for name in ("signal", "stop", "target"))

    class Crossing(Strategy):  # type: ignore[misc]
        def init(self) -> None:
            """Take the signals as they are."""

        def next(self) -> None:
            at = len(self.data) - 1
            sign = signal[at]
            held = (self.position.size > 0) - (self.position.size < 0)
            if not sign or held == sign:
                return
            if held:
                self.position.close()
            order = self.buy if sign > 0 else self.sell
            order(size=1, sl=stop[at], tp=target[at])

    prices = {name.capitalize(): given[name] for name in ("open", "high", "low", "close")}
    bars = pd.DataFrame(prices, index=pd.to_datetime(given["time"], unit="s"))
    engine = Backtest(bars, Crossing, cash=1e9, trade_on_close=False, finalize_trades=False)
    begin = time.process_time()
    found = engine.run()
    return found["_trades"], time.process_time() - begin


def main() -> None:
    """Run and tell."""
    trades, seconds = run(np.load(sys.argv[1]))
    np.savez(
        sys.argv[2],
        opened=trades["EntryBar"].to_numpy(),
        closed=trades["ExitBar"].to_numpy(),
        side=np.sign(trades["Size"].to_numpy()),
        entry=trades["EntryPrice"].to_numpy(),
        exit=trades["ExitPrice"].to_numpy(),
    )
    print(json.dumps({"seconds": seconds, "version": __version__}))


if __name__ == "__main__":
    main()
