"""What a tick reads of the order flow: exact numbers, None where there is none, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.features import ids_of
from torra.evidence.flow_readings import (
    DELTA,
    MEAN_BARS,
    FlowRow,
    FlowThen,
    missing,
    read,
)
from torra.evidence.outside_readings import SeriesValue

QUARTER = timedelta(minutes=15)
NOON = datetime(2026, 2, 11, 12, tzinfo=UTC)
TIMES = [NOON + number * QUARTER for number in range(MEAN_BARS)]
CLOSE = TIMES[-1] + QUARTER
ROWS = {time: FlowRow(time, 100 + number, 3, 1, 0.25, 0.5) for number, time in enumerate(TIMES)}
LAST = TIMES[-1]
WITH_BOOK = ROWS[LAST]._replace(
    levels=10, bid_volume=3.0, ask_volume=1.0, imbalance=0.5, slippage=0.1, events=7
)


BOOK = {"book_levels", "book_imbalance", "slippage_atr", "book_events"}
WHOLE = {
    "ticks": 119.0, "ticks_ratio": 119 / 109.5, "up_share": 0.75, "spread_mean_atr": 0.125,
    "spread_widest_atr": 0.25, "book_levels": 10.0, "book_imbalance": 0.5, "slippage_atr": 0.05,
    "book_events": 7.0,
}  # fmt: skip
IN_ATR = ("spread_mean_atr", "spread_widest_atr", "slippage_atr")


@pytest.mark.parametrize(
    ("changes", "atr", "unknown"),
    [
        ({}, 2.0, ()),
        ({"slippage": None}, 2.0, ("slippage_atr",)),
        ({"events": None}, 2.0, ("book_events",)),
        ({"up": 0, "down": 0}, 2.0, ("up_share",)),
        ({"spread_mean": None}, 2.0, ("spread_mean_atr",)),
        *(({}, atr, IN_ATR) for atr in (0.0, math.nan, 1e-320)),
    ],
)
def test_every_number_by_hand(changes: dict[str, Any], atr: float, unknown: Sequence[str]) -> None:
    row = WITH_BOOK._replace(**changes)
    # A row that the store has counts, whatever became of the file.
    found = read(FlowThen({**ROWS, LAST: row}, "no_file"), TIMES, CLOSE, atr)
    wanted = {f"flow.{name}": value for name, value in {**WHOLE, **dict.fromkeys(unknown)}.items()}
    assert found.numbers == pytest.approx(wanted, abs=1e-12)
    assert list(found.numbers) == ids_of("flow")
    assert found.statuses == {"flow": "available"}
    assert found.seen == {"flow": SeriesValue(119.0, LAST, CLOSE, "")}


def test_without_a_book_its_numbers_are_none_and_never_0() -> None:
    found = read(FlowThen(ROWS), TIMES, CLOSE, 2.0).numbers
    unknown = {name.partition(".")[2] for name, value in found.items() if value is None}
    assert unknown == BOOK
    hole = {time: row for time, row in ROWS.items() if time != TIMES[7]}
    ratio = read(FlowThen(hole), TIMES, CLOSE, 2.0).numbers
    assert (ratio["flow.ticks_ratio"], ratio["flow.ticks"]) == (None, 119.0)


def test_the_delta_is_for_experts_and_needs_all_twenty_rows() -> None:
    def delta(rows: dict[datetime, FlowRow]) -> object:
        plain = read(FlowThen(rows), TIMES, CLOSE, 2.0)
        found = read(FlowThen(rows), TIMES, CLOSE, 2.0, experts=True)
        assert DELTA not in plain.numbers
        assert {**plain.numbers, DELTA: found.numbers[DELTA]} == found.numbers
        return found.numbers[DELTA]

    assert delta(ROWS) == 0.5
    falls = {time: row._replace(up=0) for time, row in ROWS.items()}
    assert delta(falls) == -1.0
    assert delta({**ROWS, LAST: ROWS[LAST]._replace(up=63, down=1)}) == (120 - 20) / 140
    for left_out in (TIMES[0], LAST):
        assert delta({time: row for time, row in ROWS.items() if time != left_out}) is None
    assert delta({time: row._replace(up=0, down=0) for time, row in ROWS.items()}) is None


@pytest.mark.parametrize("status", ["no_file", "broken", "unreachable", "not_yet", "stale"])
def test_without_the_row_of_the_deciding_bar_everything_is_none_and_says_why(status: str) -> None:
    rows = {time: row for time, row in ROWS.items() if time != LAST}
    found = read(FlowThen(rows, status), TIMES, CLOSE, 2.0)
    assert set(found.numbers.values()) == {None} and len(found.numbers) == 9
    assert found.statuses == {"flow": status} and found.seen == {}


def test_why_a_row_is_missing() -> None:
    early = {time: row for time, row in ROWS.items() if time < LAST}
    later = {**early, LAST + QUARTER: ROWS[LAST]}
    old = {time: row for time, row in ROWS.items() if time < TIMES[-5]}
    found = [missing(rows, TIMES) for rows in (early, later, old, {})]
    assert found == ["not_yet", "left_out", "stale", "stale"]
