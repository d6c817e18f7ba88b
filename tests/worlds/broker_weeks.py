"""Times of bars as brokers' servers have them: markets, their weeks, holidays and server clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from tests.worlds.two_clocks import exported
from torra.clock import duration
from torra.market.broker_clock import NEW_YORK, ServerClock

SERVERS: Final = ("new_york+7", "Europe/Athens", "utc")

DELAYS: Final = (-1.0, 1.0, 2.0, 5.0, 8.0, 24.0, 27.0)
"""Hours by which a week of a holiday begins late; one is early."""


@dataclass(frozen=True)
class Market:
    """A market that opens and closes at hours of one clock: New York's, or (None) the server's.

    `opens` is an hour from Sunday 00:00, the week lasts until `closes`. `rests` are the quarters of
    a day, from midnight, in which it does not trade.
    """

    name: str
    clock: str | None
    opens: int
    closes: int
    rests: tuple[int, ...] = ()


EVENING: Final = (68, 69, 70, 71)
"""The quarters from 17:00 to 18:00."""

FRIDAY: Final = 5 * 24
MARKETS: Final = (
    Market("gold", NEW_YORK, 18, FRIDAY + 17, EVENING),
    Market("oil", NEW_YORK, 18, FRIDAY + 17, EVENING),
    Market("indices", NEW_YORK, 18, FRIDAY + 17, (65, *EVENING)),
    Market("currencies", NEW_YORK, 17, FRIDAY + 17),
    Market("currencies from 00:00", None, 24, FRIDAY + 24),
    Market("currencies from 01:00", None, 25, FRIDAY + 24),
)


@dataclass(frozen=True)
class History:
    """A file of a market: months from a start, late openings a year, and its server's clock."""

    market: Market
    server: str
    late: int
    months: int
    timeframe: str
    seed: int

    def __str__(self) -> str:
        """Return the name of a test's case."""
        words = (self.market.name, self.server, self.late, self.months, self.timeframe, self.seed)
        return " ".join(map(str, words))

    def walls(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the wall seconds of its bars' open times on the server."""
        chance = np.random.default_rng((self.seed, self.late, self.months))
        begin = pd.Timestamp("2015-01-04") + pd.Timedelta(weeks=int(chance.integers(450)))
        end = begin + pd.DateOffset(months=self.months)
        times = pd.date_range(begin, end, freq=duration(self.timeframe), inclusive="left")
        hours = ((times - begin) / pd.Timedelta("1h")).to_numpy()
        week = (hours // 168).astype(np.int64)
        opens = np.full(week[-1] + 1, float(self.market.opens))
        holidays = chance.random(len(opens)) < self.late / 52
        opens += np.where(holidays, chance.choice(DELAYS, len(opens)), 0.0)
        quarter = (hours % 24 * 4).astype(np.int64)
        within = (hours % 168 >= opens[week]) & (hours % 168 < self.market.closes)
        trades = within & ~np.isin(quarter, self.market.rests)
        clock = ServerClock.parse(self.market.clock or self.server)
        moments = clock.to_utc_index(times[trades].as_unit("s").asi8)
        return exported(pd.DataFrame(index=moments), self.server).to_numpy()


def histories(seed: int) -> list[History]:
    """Return the whole product; a server without daylight saving opens no market by itself."""
    return [
        History(market, server, late, months, timeframe, seed)
        for market in MARKETS
        for server in SERVERS
        if market.clock or server != "utc"
        for late in (0, 3, 6, 12)
        for months in (3, 12, 36)
        for timeframe in ("H1", "M15")
    ]
