"""Spreads are kept beside the bars: the first one stays, and no bar becomes another by it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

from instance_database import Database
from tests.worlds import flows
from tests.worlds.price_series import sample
from torra.market.spreads import SPREAD
from torra.store import bars as bar_table
from torra.store import flow as flow_table
from torra.tick.record import describe

BARS = sample("BTCUSD_M15").iloc[:40]
END = BARS.index[-1].to_pydatetime() + timedelta(minutes=15)
STREAM = ("BTCUSD", "M15")


def with_spreads(values: Any, bars: pd.DataFrame = BARS) -> pd.DataFrame:
    return bars.assign(**{SPREAD: values})


def loaded(database: Database, **how: Any) -> pd.DataFrame:
    return database.load_bars(*STREAM, as_of=how.pop("as_of", END), **how)


def rows(database: Database, sql: str = "SELECT * FROM spreads") -> list[Any]:
    return database.connection().conn.execute(sql).fetchall()


def test_what_was_stored_comes_back(database: Database) -> None:
    spreads = [math.nan if at % 7 == 1 else at / 100 for at in range(len(BARS))]
    given = [-1.0, math.inf, *spreads[2:]]  # neither is a spread, nor is NaN
    spreads[:2] = math.nan, math.nan
    assert database.store_bars(*STREAM, with_spreads(given)) == len(BARS)
    database.store_bars("EURUSD", "M15", BARS)
    assert SPREAD not in database.load_bars("EURUSD", "M15", as_of=END).columns
    found = loaded(database)
    pd.testing.assert_series_equal(
        found[SPREAD].reset_index(drop=True), pd.Series(spreads, name=SPREAD)
    )
    assert loaded(database, limit=2)[SPREAD].tolist() == spreads[-2:]
    early = loaded(database, as_of=END - timedelta(minutes=30))
    assert early[SPREAD].tolist()[-1] == spreads[-3]
    assert len(rows(database)) == sum(not math.isnan(one) for one in spreads)


def test_the_first_spread_stays_and_makes_no_revision(database: Database) -> None:
    database.store_bars(*STREAM, BARS.iloc[:30])
    before = describe(loaded(database), 0)
    assert database.store_bars(*STREAM, with_spreads(0.5, BARS.iloc[:30])) == 0
    assert database.store_bars(*STREAM, with_spreads(0.7)) == 10
    assert loaded(database)[SPREAD].tolist() == [0.5] * 30 + [0.7] * 10
    assert bar_table.bar_rows(database, *STREAM) == len(BARS)
    first, last = BARS.index[0].to_pydatetime(), BARS.index[29].to_pydatetime()
    assert database.bar_revision(*STREAM, first, last) == 0
    assert describe(loaded(database).iloc[:30], 0) == before


def test_a_bar_that_changed_has_the_spread_of_its_new_self(database: Database) -> None:
    """Or none: a spread of another clock's bar is no spread of this one."""
    database.store_bars(*STREAM, with_spreads(0.5))
    changed = BARS.copy()
    changed["volume"] += np.where(np.arange(len(BARS)) // 10 == 1, 1.0, 0.0)
    database.store_bars(*STREAM, changed.iloc[10:15])
    database.store_bars(*STREAM, with_spreads(0.9, changed.iloc[15:20]))
    found = loaded(database)[SPREAD].tolist()
    assert found[:10] == [0.5] * 10 and found[20:] == [0.5] * 20
    assert all(math.isnan(one) for one in found[10:15]) and found[15:20] == [0.9] * 5
    database.store_bars(*STREAM, with_spreads(0.8, changed))
    assert loaded(database)[SPREAD].tolist()[10:20] == [0.8] * 5 + [0.9] * 5


def test_going_back_in_time_takes_spreads_and_order_flow_with_their_bars(
    database: Database,
) -> None:
    database.store_bars(*STREAM, with_spreads(0.5))
    times = [at.to_pydatetime() for at in BARS.index]
    flow_table.store_flow(database, *STREAM, flows.rows(times, "M15"), "mt5_files")
    database.rewind("BTCUSD", END - timedelta(hours=1), "M15")
    assert len(rows(database)) == len(BARS) - 4
    left = flow_table.flow_rows(database, *STREAM, times[0], times[-1])
    assert left == list(flows.rows(times[:-4], "M15"))
    database.store_bars(*STREAM, with_spreads(0.7))
    assert loaded(database)[SPREAD].tolist()[-5:] == [0.5] + [0.7] * 4
