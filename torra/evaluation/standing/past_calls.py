"""Counts how often each seat of a swarm was right, by regime.

A `CallBook` holds one stream: an instance on a timeframe. It takes ticks in the order of their
closes, each with the calls that were made then, and counts a call when the time that it speaks for
has closed, as torra.evaluation.firm.own_horizons does: 4 or 16 ticks on, at the end of the day
(UTC), after 24 hours. So it knows at a close what was known then, and nothing of later. A call that
takes no side, and one after which the close stands where it stood, is none.

`Chances` counts what came of the chances of a win that the judge gave.

Both are pure; a book is plain JSON and goes on from it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

from agent_config import EXPERTS, JUDGE_ID, READER_ID
from torra.clock import iso, parse
from torra.evaluation.firm.horizon_times import BARS, DAY

SEATS: Final = (READER_ID, *EXPERTS, JUDGE_ID)
"""Who makes calls in a swarm."""

LEAST: Final = 50
"""Calls of a regime, and closed trades of a bin, below which a share is not told."""

BINS: Final = 10
"""Bins of the chance that a judge gives: [k/10, (k+1)/10), a sure win in the last."""

AHEAD: Final = "bars_16"
"""The time over which a call is judged that names none."""

SESSION, DAYS = "session", "days"

Shares = dict[str, float | None]


class SeatCall(NamedTuple):
    """What a seat said: `side` +1 for higher prices, -1 for lower; `horizon` as replies name it."""

    agent: str
    side: int
    horizon: str


@dataclass(frozen=True, slots=True)
class PastTick:
    """A tick that is over: its close and regime, and the calls that were made."""

    close_time: datetime
    close: float
    regime: str
    calls: tuple[SeatCall, ...] = ()


class HitCount(NamedTuple):
    """How many calls of a seat in a regime have come due, and how many were right."""

    calls: int
    hits: int

    @property
    def share(self) -> float | None:
        """The share that was right; None below LEAST."""
        return round(self.hits / self.calls, 4) if self.calls >= LEAST else None


class _Open(NamedTuple):
    """A call that waits for its outcome; `row` counts the ticks of the stream."""

    row: int
    time: datetime
    close: float
    regime: str
    agent: str
    side: int


NO_CALLS: Final = HitCount(0, 0)


class HitRates:
    """The calls of one stream. One thread may use it at a time."""

    def __init__(self, timeframe: str) -> None:
        """Begin empty."""
        self.timeframe = timeframe
        self.newest: datetime | None = None
        self._close = 0.0
        self._row = -1
        self._open: dict[str, deque[_Open]] = {name: deque() for name in (*BARS, SESSION, DAYS)}
        self._hits: dict[tuple[str, str], HitCount] = {}

    # --- what is taken in -----------------------------------------------------------------------

    def take(self, tick: PastTick) -> None:
        """Take in a tick that is over; one that is older than the newest is left out."""
        if not self.reach(tick.close_time, tick.close):
            return
        for call in tick.calls:
            if call.side and call.agent in SEATS:
                name = call.horizon if call.horizon in self._open else AHEAD
                self._open[name].append(
                    _Open(
                        self._row, tick.close_time, tick.close, tick.regime, call.agent, call.side
                    )
                )

    def reach(self, moment: datetime, close: float) -> bool:
        """Count what has come due by a close; False for a close before the newest."""
        if self.newest is not None and moment <= self.newest:
            return moment == self.newest
        self._row += 1
        for one, then in self._due(moment, close):
            self._count(one, then)
        self.newest, self._close = moment, close
        return True

    def _due(self, moment: datetime, close: float) -> Iterator[tuple[_Open, float]]:
        """Take out the calls whose time has come, each with the close that ends it."""
        for name, bars in BARS.items():
            while self._open[name] and self._row - self._open[name][0].row >= bars:
                yield self._open[name].popleft(), close
        while self._open[DAYS] and moment >= self._open[DAYS][0].time + DAY:
            yield self._open[DAYS].popleft(), close
        while self._open[SESSION] and moment >= (end := _midnight(self._open[SESSION][0].time)):
            one = self._open[SESSION].popleft()
            # The last close of its day; a call at that very close has no time before it.
            yield one, close if moment == end else self._close

    def _count(self, one: _Open, then: float) -> None:
        if then == one.close:
            return
        calls, hits = self._hits.get((one.agent, one.regime), NO_CALLS)
        right = (then > one.close) == (one.side > 0)
        self._hits[one.agent, one.regime] = HitCount(calls + 1, hits + right)

    # --- what is told ---------------------------------------------------------------------------

    def hits(self, agent: str, regime: str) -> HitCount:
        """Return how a seat's calls of a regime came out."""
        return self._hits.get((agent, regime), NO_CALLS)

    def hit_shares(self, regime: str) -> Shares:
        """Return `<agent>_hit_share` of each seat in a regime; None below LEAST calls."""
        return {f"{name}_hit_share": self.hits(name, regime).share for name in SEATS}

    # --- as JSON --------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values; `of` makes the same book of it."""
        return {
            "timeframe": self.timeframe,
            "newest": self.newest and iso(self.newest),
            "close": self._close,
            "row": self._row,
            "open": {
                name: [[one.row, iso(one.time), *one[2:]] for one in held]
                for name, held in self._open.items()
            },
            "hits": [[*key, *count] for key, count in self._hits.items()],
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> HitRates:
        """Return the book that `as_json` described; what is no such state raises."""
        book = cls(told["timeframe"])
        book.newest = told["newest"] and parse(told["newest"])
        book._close, book._row = told["close"], told["row"]
        for name, held in told["open"].items():
            book._open[name] = deque(_Open(row, parse(time), *rest) for row, time, *rest in held)
        book._hits = {(agent, name): HitCount(*count) for agent, name, *count in told["hits"]}
        return book


class WinRateByBin:
    """What came of the chances that a judge gave: closed trades on its side, by bin."""

    def __init__(self) -> None:
        self._bins: list[list[tuple[datetime, bool]]] = [[] for _ in range(BINS)]

    def take(self, known_at: datetime, said: float, *, won: bool) -> None:
        """Take in a closed trade: when its end was known, the chance that was given for it."""
        insort(self._bins[bin_of(said)], (known_at, won))

    def win_shares(self, as_of: datetime) -> Shares:
        """Return `win_share_<k>` as known before a moment; None below LEAST trades of a bin."""
        return {f"win_share_{k}": _won(trades, as_of) for k, trades in enumerate(self._bins)}

    def as_json(self) -> list[list[list[Any]]]:
        """Return the trades by bin as JSON values."""
        return [[[iso(at), won] for at, won in trades] for trades in self._bins]

    @classmethod
    def of(cls, told: Sequence[Sequence[Sequence[Any]]]) -> WinRateByBin:
        """Return what `as_json` described."""
        chances = cls()
        chances._bins = [[(parse(at), won) for at, won in trades] for trades in told]
        return chances


def bin_of(said: float) -> int:
    """Return the bin of a chance in [0, 1], as agents.debate.swarm has it."""
    return min(BINS - 1, max(0, int(said * BINS)))


def _won(trades: Sequence[tuple[datetime, bool]], as_of: datetime) -> float | None:
    known = bisect_left(trades, as_of, key=lambda one: one[0])
    if known < LEAST:
        return None
    return round(sum(won for _, won in islice(trades, known)) / known, 4)


def _midnight(time: datetime) -> datetime:
    """Return the end of the day of a close: that of the next day for one at midnight itself."""
    return time.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
