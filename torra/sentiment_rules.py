"""The brain's arithmetic: composite, consensus, verdict, Markov view, memory context.

All of it is pure: no clock, no disk, nothing remembered. `instance_database.save_sentiment` stores
what these functions return, and a host without a database can call them as well. Every score is
rounded to 1e-8 after an exactly rounded sum (`math.fsum`), so each step is monotone: raising one
vector never lowers a composite, a consensus or a verdict, not even by a rounding error. A number
that is not finite raises ValueError, because a broken score is never a neutral one. What to do
about a verdict is left to `torra.risk_engine`, what to keep to `instance_database`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from agents.contracts import SCORE_DECIMALS, VECTORS
from torra.clock import duration
from torra.config import Markov, SentimentWeights, Thresholds
from torra.trade_outcome import remembered

Verdict = Literal["BUY", "SELL", "HOLD"]
Trend = Literal["rising", "falling", "flat"]
Session = Literal["ASIA", "LONDON", "LONDON_NY_OVERLAP", "NEW_YORK", "CLOSED"]
StateName = Literal["STRONG_BEARISH", "BEARISH", "NEUTRAL", "BULLISH", "STRONG_BULLISH"]

STATES: Final[tuple[StateName, ...]] = (
    "STRONG_BEARISH",
    "BEARISH",
    "NEUTRAL",
    "BULLISH",
    "STRONG_BULLISH",
)
"""The states of a consensus, from strong bearish to strong bullish."""

SIDES: Final = ("BUY", "SELL")
"""The two directions in which a verdict may open."""

FRESH_BARS: Final = 2
"""A composite takes part in the consensus for this many of its own bars."""

RECENT_TRANSITIONS: Final = 10
"""How many changes of state a Markov view lists."""

FLAT_CHANGE: Final = 0.09
"""A fitted change below this is no trend: the typical change from one bar to the next."""

LONDON: Final = ZoneInfo("Europe/London")
NEW_YORK: Final = ZoneInfo("America/New_York")
DAY_OPENS: Final = time(8)
DAY_CLOSES: Final = time(17)
"""Business hours of the two centres, wall clock; 17:00 in New York ends the forex day."""


class OpenPosition(NamedTuple):
    """An open position as the memory context tells it; `pnl` in account currency."""

    direction: Literal["LONG", "SHORT"]
    pnl: float
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class MarkovView:
    """Where a stream's consensus stands and where it went from there before.

    `state` is None while there is no history. `duration` counts ticks in the state, the newest
    included, without a gap. `counts[i][j]` are moves from STATES[i] to STATES[j].
    `recent_transitions` lists changes of state, newest first, as "NEUTRAL→BULLISH".
    """

    state: StateName | None
    duration: int
    counts: tuple[tuple[int, ...], ...]
    recent_transitions: tuple[str, ...]
    next_probabilities: Mapping[StateName, float]


def composite(scores: Mapping[str, float], ath: float, weights: SentimentWeights) -> float:
    """Return the weighted mean of the four vectors and the ATH score, rounded to 1e-8."""
    table = weights.model_dump()
    values = {**{vector: scores[vector] for vector in VECTORS}, "ath": ath}
    return _mean((table[name], value) for name, value in values.items())


def consensus(
    composites: Mapping[str, tuple[datetime, float]],
    weights: Mapping[str, float],
    as_of: datetime,
) -> float:
    """Return the weighted mean of the fresh composites, rounded to 1e-8.

    `composites` maps a timeframe to the close time and value of its latest composite. A stale one,
    one from after `as_of` and one whose timeframe has no weight leave the mean; 0.0 (a HOLD) when
    none is left.
    """
    fresh = [
        (weights[timeframe], value)
        for timeframe, (close_time, value) in composites.items()
        if timeframe in weights and is_fresh(close_time, timeframe, as_of)
    ]
    return _mean(fresh) if fresh else 0.0


def is_fresh(close_time: datetime, timeframe: str, as_of: datetime) -> bool:
    """Return whether a composite of that close time still speaks at `as_of`."""
    return close_time <= as_of <= close_time + FRESH_BARS * duration(timeframe)


def verdict(consensus: float, thresholds: Thresholds) -> Verdict:
    """Return BUY at or above the buy threshold, SELL at or below minus the sell threshold."""
    _finite(consensus)
    if consensus >= thresholds.buy:
        return "BUY"
    return "SELL" if consensus <= -thresholds.sell else "HOLD"


def opening_stands(
    verdict: str, low_consensus: float, high_consensus: float, thresholds: Thresholds
) -> bool:
    """Return whether an opening in the verdict's direction would stand without the gate's help.

    The gate may only ever take an opening away: a BUY needs the consensus of the low composites at
    the threshold too, a SELL that of the high ones (docs/debate.md). False for HOLD.
    """
    if verdict == "BUY":
        return low_consensus >= thresholds.buy
    return verdict == "SELL" and high_consensus <= -thresholds.sell


def release_latch(
    latched: Mapping[str, bool], outer: tuple[float, float], thresholds: Thresholds
) -> dict[str, bool]:
    """Return which vetoes still hold: one ends once no multiplier would reach its threshold.

    `outer` are the consensus of the low and of the high composites. The latch of a side follows the
    bound on its own side, high for BUY and low for SELL, which a lower multiplier can only push
    outwards: so lowering a multiplier never frees an opening on a later tick.
    """
    low, high = outer
    reached = {
        "BUY": verdict(high, thresholds) == "BUY",
        "SELL": verdict(low, thresholds) == "SELL",
    }
    return {side: latched.get(side, False) and reached[side] for side in SIDES}


def veto_latch(
    latched: Mapping[str, bool],
    outer: tuple[float, float],
    thresholds: Thresholds,
    *,
    veto: bool,
    openings: Mapping[str, bool],
) -> dict[str, bool]:
    """Return the latch after a tick (docs/debate.md).

    `veto` says that the gate vetoed this tick, `openings` on which sides a verdict would have
    opened a position. A veto latches each such side whose outer consensus is past its threshold.
    """
    kept = release_latch(latched, outer, thresholds)
    past = release_latch(dict.fromkeys(SIDES, True), outer, thresholds)
    return {
        side: kept[side] or (veto and past[side] and openings.get(side, False)) for side in SIDES
    }


def low_high(
    gated: Mapping[str, float], ungated: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return, per vector, the lower and the higher of the gated and the ungated blend."""
    low = {vector: min(gated[vector], ungated[vector]) for vector in VECTORS}
    return low, {vector: max(gated[vector], ungated[vector]) for vector in VECTORS}


def state(consensus: float, cut_points: Sequence[float]) -> StateName:
    """Return the state of a consensus; a value on a border belongs to the state away from zero."""
    _finite(consensus)
    strong_bearish, bearish, bullish, strong_bullish = cut_points
    if consensus <= bearish:
        return "STRONG_BEARISH" if consensus <= strong_bearish else "BEARISH"
    if consensus >= bullish:
        return "STRONG_BULLISH" if consensus >= strong_bullish else "BULLISH"
    return "NEUTRAL"


def markov(
    history: Sequence[tuple[datetime, float]], timeframe: str, settings: Markov
) -> MarkovView:
    """Return the Markov view of one stream from its (close time, consensus) history, oldest first.

    A step of anything but one bar is a gap: it counts as no transition and ends the run.
    Probabilities are those of the next state, with `settings.smoothing` added to every count.
    """
    states = [state(value, settings.cut_points) for _, value in history]
    step = duration(timeframe)
    joined = [later[0] - earlier[0] == step for earlier, later in pairwise(history)]
    moves = [pair for pair, whole in zip(pairwise(states), joined, strict=True) if whole]
    counts = [[0] * len(STATES) for _ in STATES]
    for before, after in moves:
        counts[STATES.index(before)][STATES.index(after)] += 1
    changes = [f"{before}→{after}" for before, after in reversed(moves) if before != after]
    return MarkovView(
        state=states[-1] if states else None,
        duration=_run(states, joined),
        counts=tuple(tuple(row) for row in counts),
        recent_transitions=tuple(changes[:RECENT_TRANSITIONS]),
        next_probabilities=_next(states[-1] if states else None, counts, settings.smoothing),
    )


def session(moment: datetime) -> Session:
    """Return the trading session of an aware time.

    London and New York are open from 08:00 to 17:00 of their own wall clock, so that daylight
    saving moves them as it moves the market; the hours between New York's close and London's open
    are ASIA. The week is CLOSED from Friday to Sunday, 17:00 in New York, for every symbol.
    """
    london, new_york = moment.astimezone(LONDON), moment.astimezone(NEW_YORK)
    if _weekend(new_york):
        return "CLOSED"
    in_london, in_new_york = _business(london), _business(new_york)
    if in_london and in_new_york:
        return "LONDON_NY_OVERLAP"
    if in_london:
        return "LONDON"
    return "NEW_YORK" if in_new_york else "ASIA"


def trend_direction(values: Sequence[float]) -> Trend:
    """Return where a series, oldest first, heads along its least-squares line.

    Flat when the whole fitted change is below FLAT_CHANGE.
    """
    if len(values) < 2:
        return "flat"
    middle = (len(values) - 1) / 2
    spread = math.fsum((index - middle) ** 2 for index in range(len(values)))
    slope = math.fsum((index - middle) * value for index, value in enumerate(values)) / spread
    change = round(slope * (len(values) - 1), SCORE_DECIMALS)
    if abs(change) < FLAT_CHANGE:
        return "flat"
    return "rising" if change > 0 else "falling"


def losing_streak(profits: Sequence[float]) -> int:
    """Return how many of the latest closed trades, newest first, lost in a row."""
    for number, profit in enumerate(profits):
        if profit >= 0:
            return number
    return len(profits)


def memory_view(
    *,
    as_of: datetime,
    timeframe: str,
    history: Sequence[tuple[datetime, float]],
    settings: Markov,
    lookback: int,
    verdicts: Sequence[str],
    open_positions: Sequence[OpenPosition],
    profits: Sequence[float],
    open_elsewhere: int,
    trades: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the memory context of a tick: document 001's keys and Torra's own.

    `history` is the stream's (close time, final consensus), oldest first; `verdicts` its verdicts,
    oldest first; `profits` the instance's closed trades, newest first; `open_elsewhere` the number
    of positions of other instances; `trades` are rows of the instance's closed trades, newest
    first. All of it must have been known at `as_of`; later trades are left out of recent_trades.
    """
    view = markov(history, timeframe, settings)
    trend = [value for _, value in history][-lookback:]
    return {
        "current_markov_state": view.state,
        "state_duration": view.duration,
        "recent_transitions": list(view.recent_transitions),
        "next_probabilities": dict(view.next_probabilities),
        "sentiment_trend": trend,
        "trend_direction": trend_direction(trend),
        "open_positions": [_told(position, timeframe, as_of) for position in open_positions],
        "position": open_positions[0].direction if open_positions else "FLAT",
        "session": session(as_of),
        "day_of_week": f"{as_of.astimezone(UTC):%A}",
        "recent_signals": list(verdicts)[-lookback:],
        "losing_streak": losing_streak(profits),
        "open_elsewhere": open_elsewhere,
        "recent_trades": remembered(trades, as_of),
    }


def _mean(pairs: Iterator[tuple[float, float]] | Sequence[tuple[float, float]]) -> float:
    weighted = list(pairs)
    for _, value in weighted:
        _finite(value)
    total = math.fsum(weight * value for weight, value in weighted)
    return round(total / math.fsum(weight for weight, _ in weighted), SCORE_DECIMALS)


def _finite(value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"a score must be finite, not {value}")


def _run(states: Sequence[StateName], joined: Sequence[bool]) -> int:
    length = min(len(states), 1)
    for number in range(len(states) - 1, 0, -1):
        if not joined[number - 1] or states[number - 1] != states[number]:
            break
        length += 1
    return length


def _next(
    current: StateName | None, counts: Sequence[Sequence[int]], smoothing: float
) -> dict[StateName, float]:
    row = counts[STATES.index(current)] if current else [0] * len(STATES)
    total = sum(row) + smoothing * len(STATES)
    return {
        name: round((count + smoothing) / total, SCORE_DECIMALS)
        for name, count in zip(STATES, row, strict=True)
    }


def _weekend(new_york: datetime) -> bool:
    day, hour = new_york.isoweekday(), new_york.time()
    return day == 6 or (day == 5 and hour >= DAY_CLOSES) or (day == 7 and hour < DAY_CLOSES)


def _business(local: datetime) -> bool:
    return local.isoweekday() <= 5 and DAY_OPENS <= local.time() < DAY_CLOSES


def _told(position: OpenPosition, timeframe: str, as_of: datetime) -> dict[str, Any]:
    age = (as_of - position.opened_at) // duration(timeframe)
    return {"direction": position.direction, "pnl": round(position.pnl, 2), "age_ticks": age}
