"""The work behind `torra sweep`: runs a grid of configurations on L1 alone, and judges the best.

Every configuration is run by torra.replay.l1.sweep. The table of them all is not yet an answer: the
best of many is lucky. So four more exhibits stand beside it: what walking forward would have chosen
and got, how likely it is that the best is only the luckiest (PBO), what is left of its Sharpe ratio
after all trials (deflated), and what random entries with the same exits, costs and share of longs
come to. Costs are those of the replay: spread and slippage in the fills, commission off each
trade's R. The same input gives the same document.

A history that is too short, also for its folds, raises ConfigError. torra.replay.sweep_jobs logs
each configuration as a trial before its result is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from technical_calculator import WARM_UP
from torra.clock import duration
from torra.config import Instance
from torra.errors import ConfigError
from torra.evaluation import account_curve, sharpe
from torra.evaluation.arm_tables import ReportInput
from torra.evaluation.exhibits import (
    Columns,
    Exhibit,
    Plot,
    PlotLine,
    contents,
    interval,
    number,
)
from torra.evaluation.intervals import Floats, Mean, mean_of
from torra.evaluation.observations import ArmObservation, TradeObservation
from torra.evaluation.overfitting import overfitting, overfitting_exhibit
from torra.evaluation.power import PowerSentence, trades_finding
from torra.evaluation.random_entries import DRAWS, VersusRandom, random_entries_exhibit
from torra.evaluation.trade_figures import net_results, overlap
from torra.evaluation.walk_forward import (
    DAY,
    Fold,
    Results,
    by_day,
    folds,
    walk_forward,
    walk_forward_exhibit,
)
from torra.evaluation.wording import count, percent, rounded, signed
from torra.replay.arms import CONTROL
from torra.replay.entries import entry_comparison
from torra.replay.grids import GridCell
from torra.replay.l1.sweep import L1Backtest, L1Result
from torra.replay.l1.verdicts import MICROSECOND, micros, moment_of
from torra.replay.shards.history import History

FOLDS: Final = 4
PURGE: Final = 100
"""Bars before a border: longer than nearly every trade lives."""

EMBARGO: Final = 20
SHOWN: Final = 12
"""Configurations in the table, the best first; the JSON has them all."""

SATURDAY, SUNDAY, THURSDAY, WEEK = 5, 6, 3, 7
"""Days of a week; 1970 began on a Thursday."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The result of one configuration, net of costs.

    `sharpe` is a year's, `longs` the share of longs; None where there was too little.
    """

    name: str
    settings: dict[str, float]
    trades: int
    expectancy: float | None
    total_r: float
    hit_rate: float | None
    longs: float | None
    sharpe: float | None
    halts: int


@dataclass(frozen=True, slots=True)
class Sweeping:
    """A sweep that has ended: a row for each configuration, in the order of the grid, and exhibits.

    `trials` counts all that was ever tried on the symbol, these included; `period` is from the
    first open to the last close that was judged.
    """

    symbol: str
    rows: tuple[SweepRow, ...]
    exhibits: tuple[Exhibit, ...]
    trials: int
    bars: int
    period: tuple[datetime, datetime]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        figures = {one.name: {"says": one.says, **dict(one.figures)} for one in self.exhibits}
        rows = [asdict(row) for row in self.rows]
        head = {"symbol": self.symbol, "bars": self.bars, "trials": self.trials}
        return {**head, "configurations": rows, "found": figures}


@dataclass(frozen=True, slots=True)
class _Tried:
    """A configuration with its trades by opening, its net results, those by day, its Sharpe."""

    cell: GridCell
    trades: tuple[TradeObservation, ...]
    results: Results
    daily_r: Floats
    ratio: sharpe.Sharpe
    halts: int


def sweep_cells(
    history: History,
    cells: Sequence[GridCell],
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    commission: float = 0.0,
    walk: tuple[int, int, int] = (FOLDS, PURGE, EMBARGO),
    logged: int = 0,
    seed: int = 0,
    draws: int = DRAWS,
    on_cells: Callable[[int], None] = lambda _: None,
) -> Sweeping:
    """Return the results of the configurations of a grid on a history.

    `walk` is the number of folds, purge and embargo in bars of the shortest timeframe; `commission`
    is a lot's, there and back, `logged` the number of trials on record; `on_cells` hears of each
    configuration that is done. Raises ConfigError for a
    history that is too short, also for its folds.
    """
    instance = Instance(symbol=history.symbol, timeframes=history.timeframes, feed="store")
    ground = L1Backtest(instance, history.frames, begin=begin, end=end)
    days, all_week = _days(ground.ticks.close)
    borders = _folds(ground, walk)
    tried = []
    for cell in cells:
        tried.append(_tried(cell, ground.run(cell.profile), days, all_week, commission))
        on_cells(1)
    rng = Generator(PCG64([seed, len(cells)]))
    best = _best(tried)
    judged = walk_forward([one.results for one in tried], borders, days)
    exhibits = (
        _table(tried, seed),
        walk_forward_exhibit(judged, rng),
        overfitting_exhibit(overfitting(np.array([one.daily_r for one in tried]).T)),
        _deflated(best, tried, max(logged, len(cells))),
        _beside_chance(best, tried, ground, history, rng, draws),
    )
    rows = tuple(_row(one) for one in tried)
    trials = max(logged, len(cells))
    return Sweeping(history.symbol, rows, exhibits, trials, ground.bars, _period(ground))


def check_folds(
    history: History, begin: datetime | None, end: datetime | None, walk: tuple[int, int, int]
) -> None:
    """Raise ConfigError for folds that the history is too short for; nothing is scored for it."""
    name = next((one for one in history.timeframes if len(history.frames[one]) >= WARM_UP), None)
    if name is None:
        raise ConfigError(f"{history.symbol}: fewer than {WARM_UP} bars of every timeframe")
    opens = pd.DatetimeIndex(history.frames[name].index[WARM_UP - 1 :])
    closes = opens.as_unit("us").asi8 + duration(name) // MICROSECOND
    wanted = np.ones(len(closes), dtype=bool)
    if begin is not None:
        wanted &= closes > micros(begin)
    if end is not None:
        wanted &= closes <= micros(end)
    _folded(closes[wanted], walk, name)


def _folds(ground: L1Backtest, walk: tuple[int, int, int]) -> tuple[Fold, ...]:
    mine = ground.ticks.stream == 0
    return _folded(ground.ticks.close[mine], walk, ground.streams[0].timeframe)


def _folded(closes: Times, walk: tuple[int, int, int], timeframe: str) -> tuple[Fold, ...]:
    try:
        return folds(closes, *walk)
    except ValueError as error:
        raise ConfigError(
            f"--folds: {error} (bars of {timeframe}); ask for fewer --folds, a smaller --purge, or "
            "more bars"
        ) from error


def _period(ground: L1Backtest) -> tuple[datetime, datetime]:
    ticks = ground.ticks
    first = int(ticks.close[0]) - ticks.streams[int(ticks.stream[0])].step
    return moment_of(first), moment_of(int(ticks.close[-1]))


def _days(closes: Times) -> tuple[Times, bool]:
    """Return the trading days as days since 1970, and whether the market has no weekend.

    As torra.evaluation.account_curve has them: Sunday evening belongs to Monday.
    """
    # A bar that closes at midnight belongs to the day that ends then.
    days = np.unique((closes - 1) // DAY)
    weekday = (days + THURSDAY) % WEEK
    all_week = bool((weekday == SATURDAY).any())
    return (days, True) if all_week else (np.unique(days + (weekday == SUNDAY)), False)


def _tried(
    cell: GridCell, found: L1Result, days: Times, all_week: bool, commission: float
) -> _Tried:
    trades = tuple(sorted(found.trades, key=lambda trade: trade.opened))
    capital = cell.profile.risk.capital
    arm = ArmObservation(cell.name, (), trades, capital=capital, commission=commission)
    r = np.array(net_results(arm))
    closed = np.array([micros(trade.closed) for trade in trades], dtype=np.int64)
    decided = np.array([micros(trade.decided) for trade in trades], dtype=np.int64)
    # A trade that ends within a bar is known when that bar has closed.
    known = closed + found.ticks.streams[0].step
    money = np.array([trade.profit - commission * trade.lots for trade in trades])
    daily = by_day(closed, money, days)
    level = capital + np.concatenate([[0.0], np.cumsum(daily)[:-1]]) if len(daily) else daily
    # An account that is used up has no returns.
    shares = daily / level if (level > 0).all() else np.empty(0)
    year = account_curve.YEAR_OF_ALL_DAYS if all_week else account_curve.YEAR_OF_WEEKDAYS
    return _Tried(
        cell,
        trades,
        Results(cell.name, decided, known, r),
        by_day(closed, r, days),
        sharpe.sharpe_of(shares.tolist(), year, len(days) / year),
        found.halts,
    )


def _row(one: _Tried) -> SweepRow:
    r, number = one.results.r, len(one.trades)
    return SweepRow(
        one.cell.name,
        dict(one.cell.settings),
        number,
        float(r.mean()) if number else None,
        math.fsum(r),
        float((r > 0).mean()) if number else None,
        _longs(one) / number if number else None,
        one.ratio.ratio,
        one.halts,
    )


def _longs(one: _Tried) -> int:
    return sum(trade.side == "BUY" for trade in one.trades)


def _best(tried: Sequence[_Tried]) -> _Tried | None:
    """Return the configuration with the best daily Sharpe ratio; None where none has one."""
    known = [one for one in tried if one.ratio.daily is not None]
    return max(known, key=_merit, default=None)


# --- what it shows --------------------------------------------------------------------------------


class _Shown(NamedTuple):
    one: _Tried
    mean: Mean


COLUMNS: Final[Columns] = {
    "configuration": "one.cell.name",
    "trades": lambda row: len(row.one.trades),
    "hit rate": lambda row: percent(float((row.one.results.r > 0).mean())),
    "R a trade": number("mean.mean", 3),
    "95 % interval": interval("mean", 3),
    "R in all": lambda row: rounded(math.fsum(row.one.results.r), 1),
    "Sharpe": number("one.ratio.ratio", 2),
}


def _table(tried: Sequence[_Tried], seed: int) -> Exhibit:
    """Return the table of the best configurations by Sharpe ratio, and a plot of all of them."""
    traded = [one for one in tried if one.trades]
    order = sorted(traded, key=_merit, reverse=True)[:SHOWN]
    rows = [_Shown(one, _mean(one, seed)) for one in order]
    return Exhibit(
        name="sweep",
        title="Configurations by Sharpe ratio, net of costs",
        **contents(COLUMNS, rows),
        figures={
            "configurations": float(len(tried)),
            "traded": float(len(traded)),
            "above": float(sum(one.results.r.mean() > 0 for one in traded)),
            "best": rows[0].mean.mean if rows else None,
        },
        **_show(tried, rows)._asdict(),
        plots=_plots(tried),
    )


def _merit(one: _Tried) -> tuple[float, float]:
    """Sort by the daily Sharpe ratio; those without one come last, by R a trade."""
    ratio = -math.inf if one.ratio.daily is None else one.ratio.daily
    return ratio, float(one.results.r.mean()) if one.trades else -math.inf


def _mean(one: _Tried, seed: int) -> Mean:
    """Return R a trade with the interval that a replay of these trades on L1 alone would show."""
    rng = ReportInput((), seed=seed).rng(CONTROL, 0)
    return mean_of(one.results.r, rng, horizon=overlap(one.trades))


def summary(rows: Sequence[SweepRow]) -> str:
    """Return what a sweep came to, in one sentence."""
    traded = [row for row in rows if row.trades]
    if not traded:
        return f"None of {count(len(rows), 'configuration')} traded."
    best = max(traded, key=lambda row: (row.sharpe or -math.inf, row.expectancy or -math.inf))
    above = sum((row.expectancy or 0.0) > 0 for row in traded)
    return (
        f"The best of {count(len(rows), 'configuration')}, {best.name}, made "
        f"{signed(best.expectancy, 3)} R a trade over {count(best.trades, 'trade')}; "
        f"{above:,} made more than nothing. The best of many is lucky."
    )


def _show(tried: Sequence[_Tried], rows: Sequence[_Shown]) -> PowerSentence:
    if not rows:
        return trades_finding(f"None of {count(len(tried), 'configuration')} traded.", 0)
    best = rows[0]
    traded = [one for one in tried if one.trades]
    above = sum(one.results.r.mean() > 0 for one in traded)
    ratio = best.one.ratio.ratio
    by = "by R a trade" if ratio is None else f"by Sharpe ratio ({ratio:.2f} a year)"
    text = (
        f"{above} of {count(len(traded), 'configuration')} that traded made more than nothing; the "
        f"best {by} is {best.one.cell.name} with {signed(best.mean.mean, 3)} R over "
        f"{count(len(best.one.trades), 'trade')}. The best of many is lucky: read on before "
        "believing it."
    )
    return trades_finding(text, len(best.one.trades))


def _plots(tried: Sequence[_Tried]) -> tuple[Plot, ...]:
    """Return R a trade over the threshold, a line for every combination of weights."""
    lines: dict[str, list[tuple[float, float | None]]] = {}
    for one in tried:
        settings = dict(one.cell.settings)
        threshold = settings.pop("threshold", None)
        if threshold is None:
            return ()
        name = " ".join(f"{key} {value:g}" for key, value in settings.items()) or "R a trade"
        mean = float(one.results.r.mean()) if one.trades else None
        lines.setdefault(name, []).append((threshold, mean))
    if len(lines) > SHOWN or any(len(points) < 2 for points in lines.values()):
        return ()
    drawn_lines = tuple(
        PlotLine(name=name, points=tuple(sorted(points))) for name, points in lines.items()
    )
    return (
        Plot(
            title="R a trade by threshold",
            kind="line",
            lines=drawn_lines,
            x="threshold",
            y="R a trade, net",
        ),
    )


def _deflated(best: _Tried | None, tried: Sequence[_Tried], trials: int) -> Exhibit:
    """Return what is left of the best Sharpe ratio after every trial on record."""
    spread = sharpe.spread_of_trials([one.ratio for one in tried])
    ratio = best.ratio if best else sharpe.Sharpe(0, 0.0)
    left = sharpe.deflated(ratio, trials, spread)
    chance = sharpe.expected_maximum(trials, spread) * math.sqrt(ratio.per_year)
    return Exhibit(
        name="deflated-sharpe",
        title="The best Sharpe ratio, and what chance alone would show",
        columns=(
            "configuration",
            "days",
            "Sharpe a year",
            "standard error",
            "by chance",
            "deflated",
        ),
        rows=(
            (
                best.cell.name if best else None,
                ratio.days,
                rounded(ratio.ratio, 2),
                rounded(ratio.error, 2),
                rounded(chance, 2),
                rounded(left, 3),
            ),
        ),
        says=_deflated_says(ratio, left, chance, trials),
        enough=left is not None and ratio.years >= 1,
        figures={"sharpe": ratio.ratio, "chance": chance, "deflated": left, "trials": trials},
    )


def _deflated_says(ratio: sharpe.Sharpe, left: float | None, chance: float, trials: int) -> str:
    if ratio.ratio is None or left is None:
        return "No configuration has enough days with results for a Sharpe ratio."
    short = "" if ratio.years >= 1 else " Under a year of days, no ratio is claimed."
    return (
        f"The best of {count(trials, 'trial')} has a Sharpe ratio of {ratio.ratio:.2f} a year; the "
        f"best of as many without any skill would be expected at {chance:.2f}. The probability "
        f"that it is truly above 0 is {percent(left)}.{short}"
    )


def _beside_chance(
    best: _Tried | None,
    tried: Sequence[_Tried],
    ground: L1Backtest,
    history: History,
    rng: Generator,
    draws: int,
) -> Exhibit:
    """Return the best configuration beside its placebo, and what picking it does to that."""
    found = [_placebo(best, ground, history, rng, draws)] if best else []
    if not found or len(tried) < 2:
        return random_entries_exhibit(found)
    picked = f"It was picked as the best of {len(tried)}, which the draws were not."
    return random_entries_exhibit(found, picked)


def _placebo(
    best: _Tried, ground: L1Backtest, history: History, rng: Generator, draws: int
) -> VersusRandom:
    """Return the best configuration beside random entries: as many on each timeframe and side."""

    def ranges(_: str, timeframe: str) -> Floats:
        number, stream = next(
            (n, one) for n, one in enumerate(ground.streams) if one.timeframe == timeframe
        )
        ran = np.zeros(len(stream.atr), dtype=bool)
        # Random entries begin at ticks that ran, and not at bars outside the period.
        ran[ground.ticks.bar[ground.ticks.stream == number]] = True
        return np.where(ran, stream.atr, np.nan)

    name, profile, frames = best.cell.name, best.cell.profile, {history.symbol: history.frames}
    return entry_comparison(name, best.trades, frames, ranges, profile, rng, draws)
