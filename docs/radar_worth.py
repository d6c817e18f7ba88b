"""What each exit code was worth: the trades of L1 over a history, closed where the code first held.

The trades are those of a sweep (torra.replay.l1), so spread and Torra's own exits are in them. A
bar is one that closed while the trade was open, of the timeframe that opened it, as a scan reads
it. Bars hold no calendar, every bar of theirs is fresh, and one trade at a time is far from a day's
cap: those codes are not measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from technical_calculator import score_frame
from torra.clock import duration
from torra.config import Instance, Profile
from torra.evaluation.intervals import Mean, mean_of
from torra.evaluation.observations import TradeObservation
from torra.market import regime
from torra.radar.exits import PositionState, exit_codes, way_left
from torra.replay.l1.sweep import L1Backtest, L1Result
from torra.replay.l1.verdicts import micros
from torra.verdict import sentiment_rules
from torra.verdict.risk_engine import OPENS, PositionSide
from torra.verdict.trade_outcome import leaving, r_of
from torra.words.radar import CODES

NOT_MEASURED: Final = ("EVENT_AHEAD", "STALE_DATA", "LOSS_CAP_NEAR")

SEED: Final = 20_261_130


class CodeWorth(NamedTuple):
    """One code over one history: share of the bars held that it flagged, and what followed.

    `held` and `closed` are mean R of the trades in which it held once: to Torra's exit, and closed
    at the close of the first flagged bar. `difference` is closed less held.
    """

    code: str
    share: float
    trades: int
    held: float | None
    closed: float | None
    difference: Mean


class FlaggedBar(NamedTuple):
    """A bar on which a trade was held, its codes, and the R of a close there."""

    trade: TradeObservation
    codes: tuple[str, ...]
    r: float


def worth(
    instance: Instance, frames: Mapping[str, pd.DataFrame], profile: Profile
) -> list[CodeWorth]:
    """Return what each measured code was worth on a history; bars are as a sweep takes them.

    Raises ConfigError as L1Backtest does.
    """
    scored = {name: score_frame(frame) for name, frame in frames.items()}
    result = L1Backtest(instance, frames, scored=scored).run(profile)
    spread = profile.symbol(instance.symbol).spread
    bars = [
        bar
        for trade in result.trades
        for bar in _bars(trade, result, frames[trade.timeframe], scored[trade.timeframe], spread)
    ]
    codes = [code for code in CODES["exit_radar"] if code not in NOT_MEASURED]
    return [_worth(code, bars) for code in codes]


def _bars(
    trade: TradeObservation,
    result: L1Result,
    frame: pd.DataFrame,
    scored: pd.DataFrame,
    spread: float,
) -> Iterator[FlaggedBar]:
    """Yield the bars of a trade's timeframe that closed while it was open."""
    side: PositionSide = OPENS["BUY" if trade.side == "BUY" else "SELL"]
    names = [one.timeframe for one in result.ticks.streams]
    step = duration(trade.timeframe)
    own = result.ticks.stream == names.index(trade.timeframe)
    decided = _regime(scored.loc[[trade.decided - step]].iloc[0])
    after, upto = micros(trade.opened), micros(trade.closed)
    close = result.ticks.close
    for tick in np.flatnonzero(own & (close > after) & (close <= upto)).tolist():
        row = scored.iloc[int(result.ticks.bar[tick])]
        price = leaving(side, float(frame["close"].iloc[int(result.ticks.bar[tick])]), spread)
        ways = way_left(side, trade.entry, price, trade.stop, trade.target, trade.stop)
        consensus = float(result.consensus[tick])
        held = PositionState(
            side=side,
            verdict=sentiment_rules.verdict(consensus, result.profile.thresholds),
            consensus=consensus,
            stop_left=ways[0],
            target_left=ways[1],
            regime=_regime(row),
            regime_before=decided,
            event_minutes=None,
            stale=False,
            loss_share=0.0,
        )
        r = r_of(side, trade.entry, price, trade.stop, trade.target)
        yield FlaggedBar(trade, exit_codes(held), r)


def _regime(row: pd.Series[float]) -> str:
    return regime.read(row).name  # type: ignore[arg-type]  # a row reads as a mapping does


def _worth(code: str, bars: list[FlaggedBar]) -> CodeWorth:
    first: dict[int, FlaggedBar] = {}
    flagged: defaultdict[str, int] = defaultdict(int)
    for bar in bars:
        if code in bar.codes:
            flagged[code] += 1
            first.setdefault(id(bar.trade), bar)
    chosen = [*first.values()]
    differences = [bar.r - bar.trade.r for bar in chosen]
    return CodeWorth(
        code,
        flagged[code] / len(bars) if bars else 0.0,
        len(chosen),
        float(np.mean([bar.trade.r for bar in chosen])) if chosen else None,
        float(np.mean([bar.r for bar in chosen])) if chosen else None,
        mean_of(differences, np.random.default_rng(SEED)),
    )
