"""An ISO text with a zone is a time; any other text is refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

from tests.worlds import scorers
from torra.market.broker_clock import ServerClock
from torra.overlay import given as reading

FRAME = scorers.bars(300)
NOW = scorers.closed_at(FRAME)


def texts(form: str, zone: str = "UTC") -> list[str]:
    return [time.tz_convert(zone).strftime(form) for time in pd.DatetimeIndex(FRAME.index)]


def column(times: list[Any]) -> pd.DataFrame:
    return FRAME.reset_index(drop=True).assign(time=times)


def read(bars: Any) -> reading.OverlayRequest:
    clock = ServerClock.parse("new_york+7")
    return reading.read("BTCUSD", "M15", bars, as_of=NOW, now=NOW, clock=clock)


FORMS: dict[str, Callable[[], Any]] = {
    "Z": lambda: column(texts("%Y-%m-%dT%H:%M:%SZ")),
    "a space": lambda: column(texts(" %Y-%m-%d %H:%M:%S+00:00 ")),
    "milliseconds": lambda: column(texts("%Y-%m-%dT%H:%M:%S.000Z")),
    "another zone": lambda: column(texts("%Y-%m-%dT%H:%M:%S%z", "Asia/Kolkata")),
    "summer and winter": lambda: column(texts("%Y-%m-%dT%H:%M%z", "Europe/Athens")),
    "objects": lambda: column(texts("%Y-%m-%dT%H:%MZ")).astype({"time": object}),
    "an index": lambda: FRAME.set_axis(pd.Index(texts("%Y-%m-%dT%H:%MZ"), name="Time")),
    "records": lambda: column(texts("%Y-%m-%dT%H:%MZ")).to_dict("records"),
    "rows": lambda: [
        (time, *row)
        for time, row in zip(texts("%Y-%m-%dT%H:%MZ"), FRAME.to_numpy().tolist(), strict=True)
    ],
    "texts among datetimes": lambda: column(
        [time if at % 2 else time.isoformat() for at, time in enumerate(FRAME.index)]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_iso_text_with_a_zone_is_a_time(form: str) -> None:
    found = read(FORMS[form]())
    assert not found.refusal
    assert found.hash("p") == read(FRAME).hash("p")


@pytest.mark.parametrize(
    "text",
    ["2021-09-27T13:45:00", "2021-09-27", "27.09.2021 13:45", "1632750300", "", "Z", "nan"],
)
def test_any_other_text_is_refused_with_what_to_do(text: str) -> None:
    """One without a zone may be of any clock: a server's, a program's, a person's."""
    times = texts("%Y-%m-%dT%H:%M:%SZ")
    refusal = read(column([text, *times[1:]])).refusal
    assert "ISO texts with a zone" in refusal and "pandas.to_datetime" in refusal


def test_a_text_ahead_of_the_moment_is_a_later_bar() -> None:
    times = texts("%Y-%m-%dT%H:%M:%SZ")
    found = reading.read(
        "BTCUSD", "M15", column(times), as_of=NOW - timedelta(minutes=20), now=NOW, clock=None
    )
    assert found.told == ("later_bars:2",)
