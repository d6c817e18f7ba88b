"""Whatever a host hands over: the dict of its L1 with the reason, or NoScores, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.contracts import VECTORS
from tests.worlds import price_series, scorers
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock
from torra.overlay import NoScores, Overlay
from torra.overlay import request as reading

NAIVE = datetime.fromisoformat("2021-10-01T00:00:00")

Spoil = Callable[[pd.DataFrame], Any]


def set_cell(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


class Exploding(list[Any]):
    """A host's own list that raises whatever it likes."""

    def __getitem__(self, _at: Any) -> Any:
        raise ZeroDivisionError("not today")

    def __len__(self) -> int:
        return 500


BAD: dict[str, tuple[Spoil, str]] = {
    "nan": (lambda f: set_cell(f, "close", 5, math.nan), "nan"),
    "naive": (lambda f: f.tz_localize(None), "no time zone"),
    "naive seconds": (
        lambda f: f.assign(time=price_series.times_of(f).asi8 // 10**6).reset_index(drop=True),
        "no time zone",
    ),
    "too short": (lambda f: f.iloc[:150], "too_short"),
    "hourly bars": (lambda f: f.iloc[::4], "too_short"),
    "missing column": (lambda f: f.drop(columns="low"), "column low is missing"),
    "no time": (lambda f: f.reset_index(drop=True), "column time is missing"),
    "strings": (lambda f: f.astype(str), "not numbers"),
    "truth values": (lambda f: f > 0, "not numbers"),
    "empty": (lambda f: f.iloc[:0], "there is none"),
    "empty list": (lambda _: [], "there is none"),
    "none": (lambda _: None, "hand over a DataFrame"),
    "a text": (lambda _: "bars.csv", "hand over a DataFrame"),
    "a number": (lambda _: 7, "hand over a DataFrame"),
    "rows of nothing": (lambda _: [{}] * 300, "there is none"),
    "rows of two": (lambda f: [(time, 1.0) for time in f.index], "column high is missing"),
    "words for times": (
        lambda f: f.assign(time="yesterday").reset_index(drop=True), "must be datetimes"
    ),
    "mixed zones": (
        lambda f: [
            {"time": time.to_pydatetime().replace(tzinfo=UTC if n % 2 else None), "open": 1.0,
             "high": 1.0, "low": 1.0, "close": 1.0}
            for n, time in enumerate(f.index)
        ],
        "some times have a time zone",
    ),
    "twice a column": (lambda f: pd.concat([f, f["close"]], axis=1), "more than once"),
    "an object that raises": (lambda _: Exploding(), "ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_bars_are_l1_with_the_reason_or_no_scores(tmp_path: Path, kind: str) -> None:
    spoil, reason = BAD[kind]
    overlay = scorers.overlay(tmp_path)
    frame = scorers.bars(400)
    moment = scorers.closed_at(frame)
    spoilt = spoil(scorers.bars(400).astype(float))
    answer = overlay.deliberate("BTCUSD", "M15", spoilt, scores=scorers.L1, as_of=moment)
    assert scorers.numbers(answer.chart) == scorers.L1
    note = answer.chart["composite_bias"]["note"]
    assert note.startswith("L1_ONLY: bars: ") and reason in note
    assert answer.why and not answer.debated and answer.revision == 0
    with pytest.raises(NoScores, match=r"BTCUSD M15: bars: "):
        overlay.score_chart("BTCUSD", "M15", spoilt, as_of=moment)
    assert not (tmp_path / "home").exists(), "nothing was opened for it"
    assert overlay.health()["trouble"]["why"] == answer.why


@pytest.mark.parametrize("symbol", ["", "../../etc/passwd", "BTC USD", "A" * 33, "host:x", None, 7])
@pytest.mark.parametrize("timeframe", ["M15", "M17", "", None])
def test_hostile_names_are_refused(tmp_path: Path, symbol: Any, timeframe: Any) -> None:
    overlay = scorers.overlay(tmp_path)
    answer = overlay.deliberate(symbol, timeframe, scorers.bars(), scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and "symbol: use" in answer.why
    answer = overlay.deliberate("BTCUSD", "M17", scorers.bars(), scores=scorers.L1)
    assert "timeframe: use one of" in answer.why


def test_bars_ahead_of_the_clock_name_the_clock(tmp_path: Path) -> None:
    """The server's wall clock, taken for UTC: two hours of bars would lie in the future."""
    overlay = Overlay(tmp_path / "home", clock="utc")
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0, tzinfo=None)
    frame = scorers.bars(400)
    frame.index = pd.date_range(end=now + timedelta(hours=2), periods=400, freq="15min")
    answer = overlay.deliberate("BTCUSD", "M15", frame, scores=scorers.L1)
    assert "close later than now" in answer.why and "clock of the overlay" in answer.why


def test_the_forming_bar_is_left_out_and_told(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    frame = scorers.bars(401)
    moment = scorers.closed_at(frame.iloc[:-1]) + timedelta(minutes=7)
    answer = overlay.deliberate("BTCUSD", "M15", frame, scores=scorers.L1, as_of=moment)
    assert answer.told == ("later_bars:1",)
    assert answer.record["bar_time"] == f"{frame.index[-2]:%Y-%m-%dT%H:%M:%SZ}"
    same = overlay.deliberate("BTCUSD", "M15", frame.iloc[:-1], scores=scorers.L1, as_of=moment)
    assert same.chart == answer.chart and same.revision == 1


def test_the_same_bars_in_every_form_are_one_question(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "home", clock="new_york+7", strict=True)
    frame = scorers.bars(400)
    wall = (
        price_series.times_of(frame).tz_convert("America/New_York") + pd.Timedelta(hours=7)
    ).tz_localize(None)
    seconds = wall.as_unit("s").asi8
    rows = frame.to_numpy().tolist()
    rates = np.array(
        [(at, *row[:4], int(row[4]), 3, 0) for at, row in zip(seconds, rows, strict=True)],
        dtype=[("time", "<i8"), ("open", "<f8"), ("high", "<f8"), ("low", "<f8"), ("close", "<f8"),
               ("tick_volume", "<u8"), ("spread", "<i4"), ("real_volume", "<u8")],
    )  # fmt: skip
    forms: list[Any] = [
        frame,
        frame.rename(columns=str.upper),
        frame.reset_index().rename(columns={"time": "Time"}),
        frame.set_index(wall),
        pd.DataFrame(rates),
        rates,
        [dict(zip(frame.reset_index().columns, row, strict=True))
         for row in frame.reset_index().itertuples(index=False)],
        [(at.to_pydatetime(), *row) for at, row in zip(frame.index, rows, strict=True)],
        [[int(at), *row] for at, row in zip(seconds, rows, strict=True)],
    ]  # fmt: skip
    moment = scorers.closed_at(frame)
    answers = [
        overlay.deliberate("BTCUSD", "M15", form, scores=scorers.L1, as_of=moment) for form in forms
    ]
    assert [answer.revision for answer in answers] == [1] * len(forms)
    assert all(answer.chart == answers[0].chart for answer in answers)
    assert scorers.count(tmp_path, "journal") == 1


def test_bars_without_volume_are_taken(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    answer = scorers.asked(overlay, scorers.bars().drop(columns="volume"), scores=scorers.L1)
    assert answer.debated


def test_of_a_million_bars_the_newest_are_read(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    index = pd.date_range("1990-01-01", periods=1_000_000, freq="15min", tz="UTC")
    prices = 100.0 + np.sin(np.arange(1_000_000) / 50.0)
    frame = pd.DataFrame(
        {"open": prices, "high": prices + 0.5, "low": prices - 0.5, "close": prices + 0.1,
         "volume": 1.0},
        index=index,
    )  # fmt: skip
    answer = scorers.asked(overlay, frame, scores=scorers.L1)
    assert answer.debated and answer.record["hosted"]["bars"] == 6_000


@pytest.mark.parametrize(
    "scores",
    [
        {"price_action": 0.1},
        dict.fromkeys(VECTORS, math.nan),
        dict.fromkeys(VECTORS, 1.5),
        dict.fromkeys(VECTORS, "0.3"),
        dict.fromkeys(VECTORS, True),
        [0.1, 0.2, 0.3, 0.4],
        0.5,
        "l1",
    ],
    ids=str,
)
def test_scores_that_are_none_are_told_at_once(tmp_path: Path, scores: Any) -> None:
    overlay = scorers.overlay(tmp_path)
    with pytest.raises(NoScores, match=r"scores: .*hand over a number in \[-1, \+1\]"):
        scorers.asked(overlay, scores=scores)


def test_scores_in_the_shape_of_a_chart_are_taken(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    chart = {name: {"score": value, "note": "mine"} for name, value in scorers.L1.items()}
    answer = scorers.asked(overlay, scores=chart | {"composite_bias": {"score": 0.1}})
    assert dict(answer.l1) == scorers.L1 and answer.debated


def test_other_things_are_dropped_and_told(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    extra: Any = {
        "Fine": 1.0, "ok": 2, "nan": math.nan, "inf": math.inf, "text": "1", "flag": True,
        "x" * 33: 1.0, "; drop table": 1.0, "huge": 10**400, 7: 1.0, "np": np.float32(0.5),
    }  # fmt: skip
    answer = scorers.asked(
        overlay, scores=scorers.L1, extra=extra, headlines="one text", picture=b"no picture"
    )
    assert answer.told == ("extra_dropped:9:?,nan,inf", "headlines:no_list", "picture:size")
    assert answer.record["hosted"]["extra"] == {"ok": 2.0, "np": 0.5}
    assert answer.record["hosted"]["told"] == list(answer.told)
    many = {f"n{number}": 1.0 for number in range(70)}
    assert scorers.asked(overlay, extra=many).told == ("extra_dropped:6:n64,n65,n66",)
    assert scorers.asked(overlay, extra=[1, 2]).told == ("extra:no_mapping",)


def test_numbers_of_the_account_that_cannot_be_are_dropped_and_told(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    for name, value in (
        ("position", 5), ("spread", -1.0), ("losing_streak", 2.5), ("losing_streak", -3)
    ):  # fmt: skip
        answer = scorers.asked(overlay, extra={name: value})
        assert answer.told == (f"extra_dropped:1:{name}",)
        seen = {one["id"]: one["value"] for one in answer.record["features"]}
        assert seen["memory.position"] is None and seen["memory.losing_streak"] is None
        assert seen["market.spread_atr"] is None


def test_headlines_without_a_zone_are_read_by_the_clock(tmp_path: Path) -> None:
    told = [{"headline": "Bitcoin falls", "published": "2021-10-01 16:00"}]
    answer = scorers.asked(scorers.overlay(tmp_path, strict=True), headlines=told)
    assert answer.told == ("headlines_dropped:1",)
    known = scorers.overlay(tmp_path, strict=True, clock="new_york+7")
    answer = scorers.asked(known, headlines=told)
    assert answer.told == () and answer.record["news"]["unique"] == 1
    assert answer.record["news"]["items"][0]["age_hours"] == pytest.approx(4.75)


def test_scores_of_numpy_are_taken(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    own = {name: np.float32(value) for name, value in scorers.L1.items()}
    answer = scorers.asked(overlay, scores=own)
    assert answer.debated and dict(answer.l1) == {name: float(own[name]) for name in own}


@pytest.mark.parametrize("as_of", ["yesterday", 5, NAIVE, float("nan")])
def test_a_moment_that_is_none_is_a_reason(tmp_path: Path, as_of: Any) -> None:
    answer = scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1, as_of=as_of)
    assert scorers.numbers(answer.chart) == scorers.L1 and answer.why


def test_strict_raises_what_else_would_be_told(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    with pytest.raises(ConfigError, match="BTCUSD M15: bars: there is none"):
        overlay.score_chart("BTCUSD", "M15", [], scores=scorers.L1)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"profile": "nosuch"}, "there is no profile nosuch"),
        ({"profile": 7}, "profile of an overlay"),
        ({"profile": "../../etc/passwd"}, "there is no profile"),
        ({"clock": "mars"}, "unknown clock"),
        ({"clock": 7}, "clock of an overlay"),
        ({"name": "a b"}, "name of an overlay"),
        ({"home": ""}, "name a folder"),
        ({"home": None}, "name a folder"),
        ({"home": "FILE"}, "is no folder"),
        ({"home": "DEMO"}, "home of the demo"),
    ],
)
def test_a_bad_setting_is_one_clear_error(
    tmp_path: Path, settings: dict[str, Any], remedy: str
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "desk.json").write_text('{"instances": [{"symbol": "BTCUSD"}]}')
    places = {"FILE": tmp_path / "file", "DEMO": tmp_path / "demo"}
    home = settings.get("home", tmp_path / "home")
    rest = {name: value for name, value in settings.items() if name != "home"}
    with pytest.raises(ConfigError, match=remedy):
        Overlay(places.get(home, home), **rest)
    assert not (tmp_path / "home").exists()


# --- times in texts -------------------------------------------------------------------------------

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
    pd.testing.assert_frame_equal(read(FORMS[form]()).bars, read(FRAME).bars)


@pytest.mark.parametrize(
    "text",
    ["2021-09-27T13:45:00", "2021-09-27", "27.09.2021 13:45", "1632750300", "", "Z", "nan"],
)
def test_any_other_text_is_refused_with_what_to_do(text: str) -> None:
    """One without a zone may be of any clock: a server's, a program's, a person's."""
    times = texts("%Y-%m-%dT%H:%M:%SZ")
    with pytest.raises(reading.InvalidRequest, match=r"ISO texts with a zone.*pandas\.to_datetime"):
        read(column([text, *times[1:]]))


def test_a_text_ahead_of_the_moment_is_a_later_bar() -> None:
    times = texts("%Y-%m-%dT%H:%M:%SZ")
    found = reading.read(
        "BTCUSD", "M15", column(times), as_of=NOW - timedelta(minutes=20), now=NOW, clock=None
    )
    assert found.notes == ("later_bars:2",)


def test_a_question_of_the_future_is_a_reason(tmp_path: Path) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    answer = scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1, as_of=ahead)
    assert "lies ahead of now" in answer.why
