"""The page of a tick names its records and since when; a tick of before keeps its own words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worlds.records import tick_record
from torra.dashboard.record import arithmetic, waterfall

VECTORS = ("price_action", "key_levels", "momentum", "structure")
NOW: dict[str, Any] = {
    "timeframe": "M15",
    "ath": 0.25,
    "ath_price": 5235.07,
    "composite": 0.25,
    "consensus": 0.25,
    "scores": {name: {"score": 0.25} for name in VECTORS},
    "weights": dict.fromkeys((*VECTORS, "ath"), 0.2),
    "low_price": 1980.5,
    "records_since": "2018-06-01T00:00:00Z",
    "record_score": "both",
}


def test_a_tick_tells_both_records_and_since_when() -> None:
    told = tick_record(NOW)
    assert told.record_name == "Range"
    assert arithmetic.records_line(told) == (
        "Record: +1 at the record high, 5,235.07, −1 at the record low, 1,980.5, 0 far from both; "
        "of the M15 bars since 2018-06-01."
    )


def test_a_tick_that_counted_the_high_alone_says_so() -> None:
    record = tick_record(NOW, record_score="high")
    assert record.record_name == "ATH"
    line = arithmetic.records_line(record)
    assert line.startswith("ATH: how near the price is to its all-time high, 5,235.07; +1 at it")
    assert "record low" not in line


@pytest.mark.parametrize(("form", "name"), [("high", "ATH"), ("both", "Range")])
def test_the_chart_of_the_sums_has_the_same_word(form: str, name: str) -> None:
    told = {**NOW, "record_score": form}
    parts = arithmetic.contributions(tick_record(told))
    falls = list(waterfall._sums(parts, "Composite", 0.25, tick_record(told).record_name))
    assert falls[-2].name == name
