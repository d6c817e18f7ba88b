"""Order flow for the bars of the sample: rows made of the time alone, and a feed with them.

One bar in seventeen was left out, and one in five had no order book.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from tests.worlds import desks
from torra.clock import duration
from torra.evidence.flow_readings import FlowRow, FlowThen, missing


def row_of(bar_time: datetime, timeframe: str) -> FlowRow | None:
    """Return the row of a bar; None where it was left out."""
    chance = random.Random(f"{bar_time.isoformat()} {timeframe}")
    if chance.random() < 1 / 17:
        return None
    up, down = chance.randrange(200), chance.randrange(200)
    mean = chance.uniform(1.0, 20.0)
    row = FlowRow(
        bar_time, up + down + chance.randrange(1, 50), up, down, mean, mean * chance.uniform(1, 9)
    )
    if chance.random() < 0.2:
        return row
    bids, asks = chance.uniform(1, 90), chance.uniform(1, 90)
    return row._replace(
        levels=chance.randrange(2, 20),
        bid_volume=bids,
        ask_volume=asks,
        imbalance=(bids - asks) / (bids + asks),
        slippage=chance.choice((None, chance.uniform(0, 5))),
        events=chance.randrange(500),
    )


def rows(times: Sequence[datetime], timeframe: str) -> Iterator[FlowRow]:
    """Yield the rows of the bars that have one."""
    for time in times:
        if (row := row_of(time, timeframe)) is not None:
            yield row


class Flowing:
    """The sample with the order flow of the last 60 bars, as the Expert Advisor's file has it.

    `status` is what it says in place of rows.
    """

    def __init__(self, status: str = "") -> None:
        self.status = status

    def bars(self, *words: Any) -> pd.DataFrame:
        return desks.sample().bars(*words)

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        if self.status:
            return FlowThen({}, self.status, "mt5_files")
        as_of = times[-1] + duration(timeframe)
        held = desks.sample().bars(symbol, timeframe, as_of, 60).index
        found = {row.bar_time: row for row in rows([at.to_pydatetime() for at in held], timeframe)}
        status = "available" if times[-1] in found else missing(found, times)
        return FlowThen(found, status, "mt5_files")

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()
