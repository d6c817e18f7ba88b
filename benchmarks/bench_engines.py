"""Torra's trades beside those of backtesting.py and vectorbt, on the same signals and levels.

The task is that of benchmarks.crossings. Torra does it twice: in the pass that a sweep makes on L1
(torra.replay.l1.sweep), and in the very run_tick of a live desk, as a replay does; both with all
their parts, from the risk checks to position sizes, and with limits that nothing reaches. A trade
is two bars, a side and two prices; what is still open at the end is left out everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pandas as pd
from numpy.typing import NDArray

import technical_calculator
from benchmarks import crossings, guest
from benchmarks.crossings import DECIMALS, Trade
from benchmarks.histories import shipped, stirred
from benchmarks.rows import ALWAYS, Part, Row, ready
from torra.config import Instance, Profile, validate
from torra.evaluation.observations import TradeObservation
from torra.replay.arms import ARMS
from torra.replay.l1.sweep import L1Backtest, L1Result
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards.history import History

SYMBOL, TIMEFRAME = "EURUSD", "H1"
LONG: Final = 100_000
TRIAL_LONG: Final = 12_000
TRIAL_SHORT: Final = 1_500
INSTANCE: Final = Instance(symbol=SYMBOL, timeframes=(TIMEFRAME,), feed="store", bridge="paper")
SIDES: Final = {"BUY": 1, "SELL": -1}
FURTHER: Final = 0.4
"""Another threshold, for which a signal is a signal as well."""

ENGINES: Final = {"backtesting": "backtesting.py", "vectorbt": "vectorbt"}


def unlimited(threshold: float = 0.5) -> Profile:
    """Signals alone decide: no gate, no cap, no throttle, no collar is ever reached."""
    never = 1e6
    values = {
        "thresholds": {"buy": threshold, "sell": threshold},
        "on_opposite": "reverse",
        "timeframe_weights": {TIMEFRAME: 1.0},
        "gate": {"max_spread_atr": 1000.0},
        "risk": {
            "daily_loss_cap_pct": never,
            "max_signals_per_hour": 1000,
            "max_same_openings_per_hour": 1000,
            "price_collar_atr": 1000.0,
        },
        "symbols": {SYMBOL: {"spread": 0.0}},
    }
    return validate(Profile, values, "the benchmark")


def frames(trial: bool) -> dict[str, pd.DataFrame]:
    """Return the bars of both sizes."""
    short = shipped(SYMBOL, TIMEFRAME)
    long = stirred(SYMBOL, TIMEFRAME, TRIAL_LONG if trial else LONG, decimals=5)
    return {"sample": short.iloc[:TRIAL_SHORT] if trial else short, "long": long}


def seen(trades: Sequence[TradeObservation], bars: pd.DataFrame) -> list[Trade]:
    """Return Torra's trades as bars, side and prices."""
    at = {moment: number for number, moment in enumerate(bars.index)}
    return [
        Trade(at[one.opened], at[one.closed], SIDES[one.side], one.entry, one.exit)
        for one in trades
        if one.reason != "END"
    ]


def told(found: Mapping[str, NDArray[Any]]) -> list[Trade]:
    """Return a guest's trades in the order of their ends."""
    names = ("opened", "closed", "side", "entry", "exit")
    rows = zip(*(found[name].tolist() for name in names), strict=True)
    trades = [
        Trade(int(a), int(b), int(side), round(entry, DECIMALS), round(left, DECIMALS))
        for a, b, side, entry, left in rows
    ]
    return sorted(trades, key=lambda one: (one.closed, one.opened))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds of processor time that it took."""
    begin = time.process_time()
    found = work()
    return found, time.process_time() - begin


def replayed(bars: pd.DataFrame, scored: pd.DataFrame, profile: Profile) -> tuple[Any, float]:
    """Return what run_tick makes of the bars, scored beforehand, and its seconds."""
    score = technical_calculator.score_frame
    technical_calculator.score_frame = lambda _: scored  # type: ignore[assignment]
    try:
        course = Schedule.of(History(SYMBOL, {TIMEFRAME: bars}, {}))
    finally:
        technical_calculator.score_frame = score
    return timed(lambda: run_arm(course, ARMS["l1"], profile, AgentSource()))


def measure(trial: bool) -> dict[str, float]:
    """Return bars a second of every engine, and whose trades are the same."""
    found: dict[str, float] = {}
    for size, bars in frames(trial).items():
        task = crossings.given(bars, unlimited(), SYMBOL)
        scored = crossings.scored(bars, task)
        swept = passes(size, bars, scored, found)
        mine = seen(swept.trades, bars)
        looped, seconds = timed(partial(crossings.plain, task))
        found |= {
            f"trades_{size}": len(mine),
            f"loop_{size}": len(bars) / seconds,
            f"loop_same_{size}": float(mine == looped),
        }
        found |= beside(size, task, mine)
        if size == "sample":
            again, seconds = replayed(bars, scored, unlimited())
            found |= {
                "replay_sample": len(again.ticks) / seconds,
                "replay_same": float(again.trades == swept.trades),
            }
    return found


def passes(
    size: str, bars: pd.DataFrame, scored: pd.DataFrame, found: dict[str, float]
) -> L1Result:
    """Return what the sweep makes of the task; put down what it and a further threshold take."""

    def first() -> tuple[L1Backtest, L1Result]:
        ground = L1Backtest(INSTANCE, {TIMEFRAME: bars}, scored={TIMEFRAME: scored})
        return ground, ground.run(unlimited())

    (ground, swept), seconds = timed(first)
    further, more = timed(partial(ground.run, unlimited(FURTHER)))
    if further.trades != swept.trades:
        raise RuntimeError("another threshold has other trades: a signal is not a whole score")
    found |= {f"torra_{size}": len(bars) / seconds, f"further_{size}": len(bars) / more}
    return swept  # type: ignore[no-any-return]


def beside(size: str, task: crossings.Arrays, mine: list[Trade]) -> dict[str, float]:
    """Return what the guests make of the task."""
    found: dict[str, float] = {}
    bars = len(task["open"])
    for name in ENGINES:
        said, arrays = guest.ask(f"{name}_trades", task)
        wanted = mine if name == "backtesting" else crossings.stops_first(task)
        theirs = told(arrays)
        found |= {
            f"{name}_{size}": bars / said["seconds"],
            f"{name}_trades_{size}": len(theirs),
            f"{name}_shared_{size}": len(set(theirs) & set(mine)),
            f"{name}_same_{size}": float(theirs == wanted),
        }
    return found


WORDS: Final = {"sample": "the shipped sample", "long": f"{LONG:,} bars"}


def rows() -> tuple[Row, ...]:
    """Return the rows: whose trades are the same, then the speeds."""
    same: list[Row] = []
    speeds: list[Row] = []
    for size, words in WORDS.items():
        same += [
            Row(f"trades_{size}", f"trades, {words}"),
            Row(f"loop_same_{size}", "the sweep's are those of a plain loop", target=ALWAYS),
            Row(f"backtesting_same_{size}", "and those of backtesting.py", target=ALWAYS),
            Row(f"vectorbt_shared_{size}", "of them vectorbt has"),
            Row(
                f"vectorbt_same_{size}",
                "vectorbt's are those of a loop with its rules",
                target=ALWAYS,
            ),
        ]
        speeds += [
            Row(f"{name}_{size}", f"{who}, {words}, CPU", "{:,.0f} bars/s")
            for name, who in (
                ("torra", "Torra's sweep"),
                ("further", "and each further threshold"),
                ("backtesting", "backtesting.py"),
                ("vectorbt", "vectorbt"),
                ("loop", "a plain loop"),
            )
        ]
    replay = (
        Row("replay_same", "run_tick's are those of the sweep, the sample", target=ALWAYS),
        Row("replay_sample", "Torra's run_tick, the sample, CPU", "{:,.0f} bars/s"),
    )
    return (*same, replay[0], *speeds, replay[1])


PART: Final = Part(
    "engines",
    "Trades beside backtesting.py and vectorbt",
    ready(measure),
    rows(),
    "EMA 12 crosses EMA 50 on EURUSD H1: next-open fills, a stop 0.4 % away, a target twice as "
    "far, reversal on the opposite cross; signals and levels are handed to every engine. A trade "
    "is the same when both bars, the side and both prices are; what is open at the end is none. A "
    "signal after which a bar opens beyond stop or target is left out. vectorbt has rules of its "
    "own: it does not look at stop and target in the bar of the entry, and an order that is due at "
    "the open of a bar that reaches one of them is dropped; a plain loop with these two makes its "
    "trades. Times are of a run from signals to trades: Torra's has position sizes, risk checks "
    "and the paper broker in it, backtesting.py's its statistics; vectorbt's first run, which "
    "compiles, is not counted. A run_tick does for each bar what a live tick does.",
    guests=True,
)

if __name__ == "__main__":
    print(measure(trial=True))
