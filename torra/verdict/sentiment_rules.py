"""The brain's arithmetic: composite, consensus, verdict, Markov view, memory context.

All of it is pure: no clock and no disk; only `MarkovMoves` remembers, and just what it is given.
`instance_database.save_sentiment` stores what these functions return; a host without a database can
call them as well. Every score is rounded to 1e-8 after an exactly rounded sum (`math.fsum`). So
each step is monotone: raising one vector never lowers a composite, a consensus or a verdict, not
even by a rounding error.

A number that is not finite raises ValueError, because a broken score is never a neutral one.
torra.verdict.risk_engine decides what to do about a verdict, the stores (torra.store.brain) what to
keep.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from agents.contracts import SCORE_DECIMALS, VECTORS
from torra.clock import duration, iso
from torra.config import Markov, Profile, SentimentWeights, Thresholds
from torra.verdict.trade_outcome import remembered

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

CHAINS: Final = ("l1", "low", "high", "final")
"""The four chains that are kept: L1 alone, the two bounds of what the gate can do, and the final
one, which counts.
"""

MARKOV_HISTORY: Final = 500
"""Newest ticks of a stream from which Markov transitions are counted: five days of M15."""

RECENT_TRADES: Final = 100
"""Newest closed trades in which a losing streak is looked for."""

RECENT_TRANSITIONS: Final = 10
"""How many changes of state a Markov view lists."""

FLAT_CHANGE: Final = 0.09
"""A fitted change below this is no trend: the typical change from one bar to the next."""

LINES: Final = 16
"""Lengths of a series for which the places of its values are kept: each profile has one."""

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

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
class ConsensusResult:
    """The brain's result for a tick.

    `composites` has, by timeframe, what the consensus used: composite, close_time, weight, fresh.
    """

    composite: float
    consensus: float
    verdict: str
    l1_composite: float
    l1_consensus: float
    l1_verdict: str
    low_composite: float
    low_consensus: float
    high_composite: float
    high_consensus: float
    composites: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class MarkovView:
    """The state of a stream's consensus, and its earlier moves between states.

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
    """Return the weighted mean of the four vectors and the record score, rounded to 1e-8."""
    pairs = [(getattr(weights, vector), scores[vector]) for vector in VECTORS]
    return _mean([*pairs, (weights.ath, ath)])


def composites(
    l1: Mapping[str, float],
    gated: Mapping[str, float],
    ungated: Mapping[str, float],
    ath: float,
    profile: Profile,
) -> dict[str, float]:
    """Return the composite of each of CHAINS, by L1 and by the blends with and without the gate."""
    chains = (l1, *low_high(gated, ungated), gated)
    known: dict[tuple[float, ...], float] = {}  # a desk that nobody asked has four chains alike
    for scores in chains:
        values = tuple(scores.values())
        if values not in known:
            known[values] = composite(scores, ath, profile.sentiment_weights)
    return {
        name: known[tuple(scores.values())] for name, scores in zip(CHAINS, chains, strict=True)
    }


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
    return _mean(
        [
            (weights[timeframe], value)
            for timeframe, (close_time, value) in composites.items()
            if timeframe in weights and is_fresh(close_time, timeframe, as_of)
        ]
    )


def weigh(
    own: Mapping[str, float],
    latest: Mapping[str, tuple[datetime, Mapping[str, float]]],
    profile: Profile,
    close_time: datetime,
) -> ConsensusResult:
    """Return the result of a tick: its composites by chain, weighed with the latest of each stream.

    `latest` maps a timeframe to the close time and the composites of its newest tick, this one
    among them; stale ones leave the consensus, as in `consensus`.
    """
    weights, together = profile.timeframe_weights, {}
    fresh = {name: is_fresh(close, name, close_time) for name, (close, _) in latest.items()}
    used = [
        (weights[name], values)
        for name, (_, values) in latest.items()
        if fresh[name] and name in weights
    ]
    known: dict[tuple[float, ...], float] = {}
    for chain in CHAINS:
        pairs = [(weight, values[chain]) for weight, values in used]
        chosen = tuple([value for _, value in pairs])
        # Chains that agree, as on a tick without agents, are summed once.
        if chosen not in known:
            known[chosen] = _mean(pairs)
        together[chain] = known[chosen]
    l1, low, high, final = together.values()
    return ConsensusResult(
        composite=own["final"],
        consensus=final,
        verdict=verdict(final, profile.thresholds),
        l1_composite=own["l1"],
        l1_consensus=l1,
        l1_verdict=verdict(l1, profile.thresholds),
        low_composite=own["low"],
        low_consensus=low,
        high_composite=own["high"],
        high_consensus=high,
        composites={
            name: {
                "composite": values["final"],
                "close_time": iso(close),
                "weight": weights.get(name),
                "fresh": fresh[name],
            }
            for name, (close, values) in latest.items()
        },
    )


def numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores as numbers; each is one, or the entry of a score_chart.

    Raises ValueError for one that is missing, is no number or lies outside [-1, +1].
    """
    values = {}
    for vector in VECTORS:
        if vector not in scores:
            raise ValueError(f"the score of {vector} is missing")
        entry = scores[vector]
        plain = type(entry) is float or not isinstance(entry, Mapping)
        score = entry if plain else entry["score"]
        # A shortcut for the usual case; `number` names what is wrong with any other.
        sound = type(score) is float and -1.0 <= score <= 1.0
        values[vector] = score if sound else number(vector, score)
    return values


def number(name: str, value: object) -> float:
    """Return a score as a float; raises ValueError for what is none in [-1, +1]."""
    # A bool is an int in Python, and True would be the best score there is.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the score of {name} is not a number: {value!r}")
    if not -1.0 <= value <= 1.0:
        raise ValueError(f"the score of {name} is outside [-1, +1]: {value}")
    return float(value)


def is_fresh(close_time: datetime, timeframe: str, as_of: datetime) -> bool:
    """Return whether a composite of that close time still counts at `as_of`."""
    return close_time <= as_of <= close_time + FRESH_BARS * duration(timeframe)


def verdict(consensus: float, thresholds: Thresholds) -> Verdict:
    """Return BUY at or above the buy threshold, SELL at or below minus the sell threshold."""
    if not math.isfinite(consensus):
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
    latched: Collection[str], outer: tuple[float, float], thresholds: Thresholds
) -> frozenset[str]:
    """Return which latched sides stay so: one ends once no multiplier would reach its threshold.

    `outer` are the consensus of the low and of the high composites. The latch of a side follows the
    bound on its own side, high for BUY and low for SELL, which a lower multiplier can only push
    outwards: so lowering a multiplier never frees an opening on a later tick.
    """
    low, high = outer
    bounds = {"BUY": high, "SELL": low}
    return frozenset([side for side in latched if verdict(bounds[side], thresholds) == side])


def veto_latch(
    latched: Collection[str],
    outer: tuple[float, float],
    thresholds: Thresholds,
    *,
    vetoes: Collection[str],
    openings: Collection[str],
) -> frozenset[str]:
    """Return the latched sides after a tick (docs/debate.md).

    `vetoes` are the sides on which this tick's openings were vetoed, `openings` those on which a
    verdict would have opened a position. A veto latches each such side whose outer consensus is
    past its threshold; it does nothing to the other one.
    """
    vetoed = {side for side in vetoes if side in openings}
    return release_latch(vetoed.union(latched), outer, thresholds)


def low_high(
    gated: Mapping[str, float], ungated: Mapping[str, float]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return, per vector, the lower and the higher of the gated and the ungated blend."""
    if gated is ungated:
        return gated, gated
    low = {vector: min(gated[vector], ungated[vector]) for vector in VECTORS}
    return low, {vector: max(gated[vector], ungated[vector]) for vector in VECTORS}


def state(consensus: float, cut_points: Sequence[float]) -> StateName:
    """Return the state of a consensus; a value on a border belongs to the state away from zero."""
    return STATES[_place(consensus, cut_points)]


def _place(consensus: float, cut_points: Sequence[float]) -> int:
    """Return the place of a consensus among STATES: how many borders it has passed."""
    if not math.isfinite(consensus):
        _finite(consensus)
    strong_bearish, bearish, bullish, strong_bullish = cut_points
    # Left of the negative borders and right of the positive ones: away from zero either way.
    return (
        (consensus > strong_bearish)
        + (consensus > bearish)
        + (consensus >= bullish)
        + (consensus >= strong_bullish)
    )


def markov(
    history: Sequence[tuple[datetime, float]], timeframe: str, settings: Markov
) -> MarkovView:
    """Return the Markov view of one stream from its (close time, consensus) history, oldest first.

    A step of anything but one bar is a gap: it counts as no transition and ends the run.
    Probabilities are those of the next state, with `settings.smoothing` added to every count.
    """
    moves = MarkovMoves(timeframe, settings)
    moves.extend(history)
    return moves.view()


class MarkovMoves:
    """The moves of one stream's consensus between states, counted tick by tick.

    Adding a tick costs the same however long the history is; with a `limit` only the newest so many
    ticks count, and what leaves is uncounted again.
    """

    def __init__(self, timeframe: str, settings: Markov, limit: int | None = None) -> None:
        """Know no tick yet; `timeframe` says which step is one bar."""
        self.settings = settings
        self._cuts = settings.cut_points
        self._step = duration(timeframe)
        self._limit = limit
        self._ticks: deque[tuple[int, bool]] = deque()
        self._counts = [[0] * len(STATES) for _ in STATES]
        self._changes: deque[tuple[int, str]] = deque(maxlen=RECENT_TRANSITIONS)
        self._added = 0
        self._next: datetime | None = None
        self._run = 0

    def add(self, close_time: datetime, consensus: float) -> None:
        """Add the next tick of the stream."""
        self.extend(((close_time, consensus),))

    def extend(self, history: Iterable[tuple[datetime, float]]) -> None:
        """Add (close time, consensus) pairs, oldest first."""
        cuts, step, counts, ticks = self._cuts, self._step, self._counts, self._ticks
        before = ticks[-1][0] if ticks else 0
        due, run, added = self._next, self._run, self._added
        for close_time, consensus in history:
            now = _place(consensus, cuts)
            # A gap (a weekend, a missed bar) says nothing of where one bar leads.
            joined = close_time == due
            ticks.append((now, joined))
            if joined:
                counts[before][now] += 1
            if joined and before == now:
                run += 1
            else:
                run = 1
                if joined:
                    self._changes.append((added, f"{STATES[before]}→{STATES[now]}"))
            before, due = now, close_time + step
            added += 1
        self._next, self._run, self._added = due, run, added
        while self._limit is not None and len(ticks) > self._limit:
            gone, _ = ticks.popleft()
            first, whole = ticks[0]
            # `whole` is whether the two were joined: only such a pair was counted.
            counts[gone][first] -= whole

    def view(self) -> MarkovView:
        """Return the Markov view of the ticks so far."""
        current = STATES[self._ticks[-1][0]] if self._ticks else None
        first = self._added - len(self._ticks)
        return MarkovView(
            state=current,
            # The run may have begun before the oldest tick that is kept.
            duration=min(self._run, len(self._ticks)),
            counts=tuple([tuple(row) for row in self._counts]),
            recent_transitions=tuple(
                # Not the change into the oldest tick: the one before it counts no more.
                [text for number, text in reversed(self._changes) if number > first]
            ),
            next_probabilities=_next(current, self._counts, self.settings.smoothing),
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
    places, spread = _line(len(values))
    slope = math.fsum([place * value for place, value in zip(places, values, strict=True)]) / spread
    change = round(slope * (len(values) - 1), SCORE_DECIMALS)
    if abs(change) < FLAT_CHANGE:
        return "flat"
    return "rising" if change > 0 else "falling"


@lru_cache(maxsize=LINES)
def _line(count: int) -> tuple[tuple[float, ...], float]:
    """Return the places of so many values about their middle, and the sum of their squares."""
    middle = (count - 1) / 2
    places = tuple(index - middle for index in range(count))
    return places, math.fsum(place**2 for place in places)


def losing_streak(profits: Iterable[float]) -> int:
    """Return how many of the latest closed trades, newest first, lost in a row."""
    lost = 0
    for profit in profits:
        if not profit < 0:
            break
        lost += 1
    return lost


def memory_view(
    view: MarkovView,
    *,
    as_of: datetime,
    timeframe: str,
    trend: list[float],
    verdicts: list[str],
    open_positions: Sequence[OpenPosition],
    open_elsewhere: int,
    trades: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the memory context of a tick: document 001's keys and Torra's own.

    `view` is of the stream's final consensus; `trend` has that of its newest ticks, `verdicts`
    their verdicts, both oldest first and cut to the lookback; `open_elsewhere` is the number of
    positions of other instances; `trades` are rows of the instance's closed trades, newest first.
    All of it must have been known at `as_of`; later trades are left out of recent_trades.
    """
    return {
        "current_markov_state": view.state,
        "state_duration": view.duration,
        "recent_transitions": list(view.recent_transitions),
        "next_probabilities": dict(view.next_probabilities),
        "sentiment_trend": trend,
        "trend_direction": trend_direction(trend),
        "open_positions": [
            {
                "direction": position.direction,
                "pnl": round(position.pnl, 2),
                "age_ticks": (as_of - position.opened_at) // duration(timeframe),
            }
            for position in open_positions
        ],
        "position": open_positions[0].direction if open_positions else "FLAT",
        "session": session(as_of),
        "day_of_week": DAYS[as_of.astimezone(UTC).weekday()],
        "recent_signals": verdicts,
        "losing_streak": losing_streak(trade["profit"] for trade in trades),
        "open_elsewhere": open_elsewhere,
        "recent_trades": remembered(trades, as_of),
    }


def _mean(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the mean of (weight, score) pairs; 0.0 without any."""
    if not pairs:
        return 0.0
    for _, value in pairs:
        if not math.isfinite(value):
            _finite(value)
    # Not sum(): its rounding depends on the order, and a raised vector could lower the mean.
    total = math.fsum([weight * value for weight, value in pairs])
    return round(total / math.fsum([weight for weight, _ in pairs]), SCORE_DECIMALS)


def _finite(value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"a score must be finite, not {value}")


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
