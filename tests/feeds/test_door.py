"""The door refuses every broken frame with its reason, and lets sound ones pass unchanged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from technical_calculator import WARM_UP
from tests.worlds.price_series import times_of
from torra.errors import DataUnavailable
from torra.feeds import door
from torra.feeds.door import BarsRefused
from torra.feeds.protocol import COLUMNS

START = datetime(2024, 3, 4, tzinfo=UTC)
STEP = timedelta(minutes=15)
COUNT = WARM_UP + 10
AS_OF = START + COUNT * STEP


def sound(count: int = COUNT, seed: int = 1) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    closes = 100 * np.exp(np.cumsum(chance.normal(0, 0.001, count)))
    opens = np.concatenate([[100.0], closes[:-1]])
    high = np.maximum(opens, closes) + chance.uniform(0, 0.2, count)
    low = np.minimum(opens, closes) - chance.uniform(0, 0.2, count)
    index = pd.date_range(START, periods=count, freq="15min", name="time")
    volume = chance.integers(0, 500, count).astype(float)
    return pd.DataFrame(
        {"open": opens, "high": high, "low": low, "close": closes, "volume": volume}, index=index
    )


def refusal(frame: pd.DataFrame, **changes: Any) -> str:
    with pytest.raises(DataUnavailable) as caught:
        door.check(frame, "M15", **{"as_of": AS_OF, **changes})
    assert caught.value.detail
    return caught.value.reason


def with_cell(column: str, value: float, row: int = 100) -> pd.DataFrame:
    frame = sound()
    frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


def with_bar(opened: float, high: float, low: float, close: float) -> pd.DataFrame:
    frame = sound()
    frame.iloc[100, :4] = [opened, high, low, close]
    return frame


def with_times(change: Callable[[list[pd.Timestamp]], None]) -> pd.DataFrame:
    times = list(sound().index)
    change(times)
    return sound().set_axis(pd.DatetimeIndex(times))


def swap(times: list[pd.Timestamp]) -> None:
    times[50], times[51] = times[51], times[50]


def repeat(times: list[pd.Timestamp]) -> None:
    times[50] = times[51]


def hourly() -> pd.DataFrame:
    index = pd.date_range(end=AS_OF - STEP, periods=COUNT, freq="1h", name="time")
    return sound().set_axis(index)


def nudge(times: list[pd.Timestamp]) -> None:
    times[50] += pd.Timedelta(1, "s")


def lose(times: list[pd.Timestamp]) -> None:
    times[50] = cast(pd.Timestamp, pd.NaT)


BROKEN: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "nan close": (lambda: with_cell("close", math.nan), "nan"),
    "infinite close": (lambda: with_cell("high", math.inf), "infinite"),
    "zero price": (lambda: with_cell("low", 0.0), "not_positive"),
    "tiny negative volume": (lambda: with_cell("volume", -5e-324), "not_positive"),
    "low above open alone": (lambda: with_bar(100, 102, 100.5, 101), "high_low"),
    "low above close alone": (lambda: with_bar(101, 102, 100.5, 100), "high_low"),
    "high below open alone": (lambda: with_bar(101, 100.5, 99, 100), "high_low"),
    "high below close alone": (lambda: with_bar(100, 100.5, 99, 101), "high_low"),
    "two rows swapped": (lambda: with_times(swap), "unsorted"),
    "a time twice": (lambda: with_times(repeat), "duplicate"),
    "off the grid": (lambda: with_times(nudge), "off_grid"),
    "a nanosecond off the grid": (
        lambda: sound().set_axis(times_of(sound()).as_unit("ns") + pd.Timedelta(1, "ns")),
        "off_grid",
    ),
    "no number": (lambda: sound().assign(close=sound()["close"].astype("Float64").shift()), "nan"),
    "bars of an hour": (hourly, "wrong_step"),
    "a bar without time": (lambda: with_times(lose), "nan"),
    "forming bar": (lambda: sound(COUNT + 1), "future"),
    "too short": (lambda: sound().iloc[-WARM_UP + 1 :], "too_short"),
    "empty": (lambda: sound().iloc[:0], "too_short"),
    "no close": (lambda: sound().drop(columns="close"), "missing_column"),
    "close twice": (
        lambda: pd.concat([sound(), sound()[["close"]]], axis=1),
        "missing_column",
    ),
    "two-storey columns": (
        lambda: sound().set_axis(pd.MultiIndex.from_product([COLUMNS, ["X"]]), axis=1),
        "missing_column",
    ),
    "text": (lambda: sound().astype({"close": str}), "not_numbers"),
    "objects": (lambda: sound().astype({"close": object}), "not_numbers"),
    "booleans": (lambda: sound().assign(close=True), "not_numbers"),
    "times for prices": (lambda: sound().assign(close=sound().index), "not_numbers"),
    "naive times": (lambda: sound().tz_localize(None), "no_time_zone"),
    "no times": (lambda: sound().reset_index(drop=True), "no_time_zone"),
    "stale": (lambda: sound().iloc[:-3], "stale"),
}


@pytest.mark.parametrize(("make", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_frame_is_refused_with_its_reason(
    make: Callable[[], pd.DataFrame], reason: str
) -> None:
    assert refusal(make()) == reason


def test_every_refusal_has_a_case() -> None:
    assert {reason for _, reason in BROKEN.values()} == set(BarsRefused)


def test_the_sentence_names_bar_and_value() -> None:
    with pytest.raises(DataUnavailable, match=r"2024-03-05T01:00:00Z has low -1\.0"):
        door.check(with_cell("low", -1.0), "M15", as_of=AS_OF)


def test_a_sound_frame_passes_with_every_value_as_it_was() -> None:
    frame = sound()
    checked = door.check(frame.assign(extra=1), "M15", as_of=AS_OF)
    pd.testing.assert_frame_equal(checked, frame, check_freq=False)
    assert list(checked.columns) == list(COLUMNS)
    assert checked.index.name == "time"


def test_the_frame_that_came_is_not_touched() -> None:
    frame = sound().tz_convert("America/New_York").rename_axis("opened")
    before = frame.copy()
    door.check(frame, "M15", as_of=AS_OF)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_any_resolution_of_the_index_will_do(unit: Literal["s", "ms", "us", "ns"]) -> None:
    frame = sound()
    checked = door.check(frame.set_axis(times_of(frame).as_unit(unit)), "M15", as_of=AS_OF)
    assert len(checked) == COUNT
    assert (
        refusal(sound(COUNT + 1).pipe(lambda f: f.set_axis(times_of(f).as_unit(unit)))) == "future"
    )


def test_other_zones_and_whole_numbers_are_converted() -> None:
    frame = sound().round().astype("int64").clip(lower=1)
    frame["high"], frame["low"] = frame["high"] + 2, frame["low"] - 2
    checked = door.check(frame.tz_convert("Asia/Tokyo"), "M15", as_of=AS_OF)
    assert str(times_of(checked).tz) == "UTC"
    assert checked.index[0] == START
    assert set(checked.dtypes) == {np.dtype("float64")}


def test_two_bars_of_age_pass_and_a_moment_more_does_not() -> None:
    assert len(door.check(sound(), "M15", as_of=AS_OF + 2 * STEP)) == COUNT
    assert refusal(sound(), as_of=AS_OF + 2 * STEP + timedelta(seconds=1)) == "stale"
    assert refusal(sound(), as_of=AS_OF + timedelta(minutes=16), max_age_bars=1.0) == "stale"


def test_a_bar_is_closed_at_its_last_moment_and_not_before() -> None:
    assert len(door.check(sound(), "M15", as_of=AS_OF)) == COUNT
    assert refusal(sound(), as_of=AS_OF - timedelta(microseconds=1)) == "future"


# --- ten thousand mutated frames ------------------------------------------------------------------

CELL = st.tuples(
    st.just("cell"),
    st.sampled_from(COLUMNS),
    st.integers(0, COUNT - 1),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-9, 1e9, 99.9, 100.1, 100.0]),
)
TIME = st.tuples(
    st.just("time"),
    st.integers(0, COUNT - 1),
    st.sampled_from([-900, 900, 1, -1, 3600, 450, 0, 86_400 * 30]),
)
WHOLE = st.tuples(
    st.just("whole"),
    st.sampled_from(
        ["reverse", "shuffle", "head", "tail", "drop", "naive", "text", "tokyo", "float32", "twice"]
    ),
    st.integers(0, COUNT - 1),
)
BASE = sound()


def mutate(frame: pd.DataFrame, change: tuple[Any, ...]) -> pd.DataFrame:
    frame = frame.copy()
    if change[0] == "cell":
        _, column, row, value = change
        if column in frame.columns and frame[column].dtype.kind == "f" and row < len(frame):
            frame.iloc[row, frame.columns.get_loc(column)] = value
        return frame
    if change[0] == "time":
        times = list(frame.index)
        if change[1] < len(times):
            times[change[1]] += pd.Timedelta(seconds=change[2])
        return frame.set_axis(pd.DatetimeIndex(times, name="time"))
    _, what, at = change
    return {
        "reverse": lambda: frame.iloc[::-1],
        "shuffle": lambda: frame.sample(frac=1, random_state=at),
        "head": lambda: frame.iloc[:at],
        "tail": lambda: frame.iloc[at:],
        "drop": lambda: frame.drop(columns=COLUMNS[at % 5], errors="ignore"),
        "naive": lambda: frame.tz_localize(None) if times_of(frame).tz else frame,
        "text": lambda: frame.astype({frame.columns[0]: str}),
        "tokyo": lambda: frame.tz_convert("Asia/Tokyo") if times_of(frame).tz else frame,
        "float32": lambda: (
            frame.astype({frame.columns[-1]: "float32"})
            if frame.iloc[:, -1].dtype.kind == "f"
            else frame
        ),
        "twice": lambda: pd.concat([frame, frame.iloc[at : at + 1]]),
    }[what]()


def faults(frame: pd.DataFrame) -> Iterator[str]:
    """Say in plain Python what is wrong with a frame: the oracle that the door is held against."""
    if set(COLUMNS) - set(frame.columns):
        yield "missing_column"
        return
    if any(frame[name].dtype.kind != "f" for name in COLUMNS):
        yield "not_numbers"
    if times_of(frame).tz is None:
        yield "no_time_zone"
        return
    times = [int(t.timestamp()) for t in frame.index]
    for before, after in itertools.pairwise(times):
        if after <= before:
            yield "duplicate" if after == before else "unsorted"
    for moment in times:
        if moment % 900:
            yield "off_grid"
        if moment + 900 > AS_OF.timestamp():
            yield "future"
    if any(frame[name].dtype.kind != "f" for name in COLUMNS):
        return
    for row in zip(*(frame[name].tolist() for name in COLUMNS), strict=True):
        opened, high, low, close, volume = row
        if any(math.isnan(number) for number in row):
            yield "nan"
        if any(math.isinf(number) for number in row):
            yield "infinite"
        if min(row[:4]) <= 0 or volume < 0:
            yield "not_positive"
        if not (low <= opened <= high and low <= close <= high):
            yield "high_low"
    if len(times) < WARM_UP:
        yield "too_short"
    if not times or times[-1] + 900 < AS_OF.timestamp() - 1800:
        yield "stale"


def test_no_mutated_frame_slips_through(scaled: Callable[..., int]) -> None:
    outcomes = {"passed": 0, "refused": 0}

    @settings(max_examples=scaled(10_000, 60), deadline=None, database=None)
    @given(st.lists(st.one_of(CELL, TIME, WHOLE), min_size=0, max_size=3))
    def run(changes: list[tuple[object, ...]]) -> None:
        frame = BASE
        for change in changes:
            frame = mutate(frame, change)
        wrong = set(faults(frame))
        outcomes["refused" if wrong else "passed"] += 1
        if wrong:
            assert refusal(frame) in wrong
        else:
            checked = door.check(frame, "M15", as_of=AS_OF)
            assert checked.to_numpy().tolist() == frame[list(COLUMNS)].to_numpy(float).tolist()

    run()
    assert min(outcomes.values()) > 0
