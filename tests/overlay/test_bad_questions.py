"""Whatever a host hands over: the dict of its L1 with the reason, or NoScores, and nothing else."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.contracts import VECTORS
from tests.worlds import price_series, scorers
from torra.clock import iso
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock
from torra.overlay import NoScores, Overlay
from torra.overlay import request as reading

FRAME = scorers.bars(300)
NOW = scorers.closed_at(FRAME)


def read(bars: Any, **parts: Any) -> reading.OverlayRequest:
    parts = {"clock": ServerClock.parse("new_york+7"), "as_of": NOW, **parts}
    return reading.read("BTCUSD", "M15", bars, now=NOW, **parts)


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


class Raising(Mapping[str, float]):
    """A host's own mapping that raises whatever it likes."""

    def __getitem__(self, name: str) -> float:
        raise ZeroDivisionError(name)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not today")

    def __len__(self) -> int:
        return 3


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
    assert (answer.veto, answer.veto_sides, answer.multiplier) == (False, (), 1.0)
    with pytest.raises(NoScores, match=r"BTCUSD M15: bars: "):
        overlay.score_chart("BTCUSD", "M15", spoilt, as_of=moment)
    assert not (tmp_path / "home").exists(), "nothing was opened for it"
    assert overlay.health()["trouble"]["why"] == answer.why


@pytest.mark.parametrize(
    ("symbol", "timeframe", "why"),
    [
        *((name, "M15", "symbol: use")
          for name in ("", "../../etc/passwd", "BTC USD", "A" * 33, "host:x", None, 7)),
        *(("BTCUSD", name, "timeframe: use one of") for name in ("M17", "", None)),
    ],
)  # fmt: skip
def test_hostile_names_are_refused(tmp_path: Path, symbol: Any, timeframe: Any, why: str) -> None:
    overlay = scorers.overlay(tmp_path)
    answer = overlay.deliberate(symbol, timeframe, scorers.bars(), scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and why in answer.why


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
    assert answer.notes == ("later_bars:1",)
    assert answer.record["bar_time"] == f"{frame.index[-2]:%Y-%m-%dT%H:%M:%SZ}"
    same = overlay.deliberate("BTCUSD", "M15", frame.iloc[:-1], scores=scorers.L1, as_of=moment)
    assert same.chart == answer.chart and same.revision == 1


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
        dict.fromkeys(VECTORS, 10**400),
        Raising(),
        [0.1, 0.2, 0.3, 0.4],
        0.5,
        "l1",
    ],
    ids=lambda scores: "raises" if isinstance(scores, Raising) else str(scores),
)
def test_scores_that_are_none_are_told_at_once(tmp_path: Path, scores: Any) -> None:
    overlay = scorers.overlay(tmp_path)
    with pytest.raises(NoScores, match=r"scores: .*hand over a number in \[-1, \+1\]"):
        scorers.asked(overlay, scores=scores)


@pytest.mark.parametrize(
    "scores",
    [
        {name: {"score": value, "note": "mine"} for name, value in scorers.L1.items()}
        | {"composite_bias": {"score": 0.1}},
        {name: np.float64(value) for name, value in scorers.L1.items()},
    ],
    ids=["a chart", "numpy"],
)
def test_scores_of_other_shapes_are_taken(scores: Any) -> None:
    assert read(FRAME, scores=scores).scores == scorers.L1


ODD: dict[Any, Any] = {
    "Fine": 1.0, "ok": 2, "nan": math.nan, "inf": math.inf, "text": "1", "flag": True,
    "x" * 33: 1.0, "; drop table": 1.0, "huge": 10**400, 7: 1.0, "np": np.float32(0.5),
}  # fmt: skip
FALLS = {"headline": "Bitcoin falls", "published": "2021-09-30 16:00"}


@pytest.mark.parametrize(
    ("parts", "notes"),
    [
        ({"extra": ODD}, ("extra_dropped:9:?,nan,inf",)),
        ({"extra": {f"n{at}": 1.0 for at in range(70)}}, ("extra_dropped:6:n64,n65,n66",)),
        ({"extra": [1, 2]}, ("extra:no_mapping",)),
        ({"extra": Raising()}, ("extra:RuntimeError",)),
        *(({"extra": {name: value}}, (f"extra_dropped:1:{name}",))
          for name, value in (("position", 5), ("spread", -1.0), ("losing_streak", 2.5),
                              ("losing_streak", -3))),
        ({"headlines": "one text"}, ("headlines:no_list",)),
        ({"headlines": deque(["Bitcoin falls", "Bitcoin rises"])}, ()),
        ({"headlines": [FALLS]}, ()),
        ({"headlines": [FALLS], "clock": None}, ("headlines_dropped:1",)),
        ({"picture": b"no picture"}, ("picture:size",)),
    ],
)  # fmt: skip
def test_other_things_are_dropped_and_told(parts: dict[str, Any], notes: tuple[str, ...]) -> None:
    request = read(FRAME, **parts)
    assert request.notes == notes
    assert request.extra == ({"ok": 2.0, "np": 0.5} if parts.get("extra") is ODD else request.extra)
    if parts.get("headlines") == [FALLS] and not notes:
        assert iso(request.headlines[0].published) == "2021-09-30T13:00:00Z"


def test_what_was_dropped_is_told_and_on_record(tmp_path: Path) -> None:
    answer = scorers.asked(
        scorers.overlay(tmp_path, strict=True), extra={"position": 5, "ok": 2, "spread": -1.0}
    )
    assert answer.notes == ("extra_dropped:2:position,spread",)
    assert answer.record["hosted"]["told"] == list(answer.notes)
    assert answer.record["hosted"]["extra"] == {"ok": 2.0}
    seen = {one["id"]: one["value"] for one in answer.record["features"]}
    assert seen["memory.position"] is None and seen["memory.losing_streak"] is None
    assert seen["market.spread_atr"] is None


def test_millions_of_numbers_are_not_all_looked_at() -> None:
    class Endless(Mapping[str, float]):
        seen = 0

        def __getitem__(self, name: str) -> float:
            return 1.0

        def __iter__(self) -> Iterator[str]:
            for number in range(10**9):
                self.seen += 1
                yield f"n{number}"

        def __len__(self) -> int:
            return 10**9

    endless = Endless()
    (note,) = read(FRAME, extra=endless).notes
    assert endless.seen <= 257 and note.startswith("extra_dropped:999999936:")


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


def texts(form: str, zone: str = "UTC") -> list[str]:
    return [time.tz_convert(zone).strftime(form) for time in pd.DatetimeIndex(FRAME.index)]


def column(times: list[Any]) -> pd.DataFrame:
    return FRAME.reset_index(drop=True).assign(time=times)


class Row(dict[str, Any]):
    """A row of a host's own, of which a column that nobody uses cannot be read."""

    def __getitem__(self, name: str) -> Any:
        assert name != "comment", "nobody uses it"
        return super().__getitem__(name)


WALL = (
    price_series.times_of(FRAME).tz_convert("America/New_York") + pd.Timedelta(hours=7)
).tz_localize(None)
SECONDS = WALL.as_unit("s").asi8
RATES = np.array(
    [(at, *row[:4], int(row[4]), 3, 0)
     for at, row in zip(SECONDS, FRAME.to_numpy().tolist(), strict=True)],
    dtype=[("time", "<i8"), ("open", "<f8"), ("high", "<f8"), ("low", "<f8"), ("close", "<f8"),
           ("tick_volume", "<u8"), ("spread", "<i4"), ("real_volume", "<u8")],
)  # fmt: skip

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
    "capitals": lambda: FRAME.rename(columns=str.upper),
    "a column Time": lambda: FRAME.reset_index().rename(columns={"time": "Time"}),
    "the server's clock": lambda: FRAME.set_index(WALL),
    "rates of MT5": lambda: RATES,
    "a frame of rates": lambda: pd.DataFrame(RATES),
    "rows of seconds": lambda: [
        [int(at), *row] for at, row in zip(SECONDS, FRAME.to_numpy().tolist(), strict=True)
    ],
    "columns that nobody uses": lambda: pd.concat(
        [FRAME, FRAME.assign(Note=1)[["Note", "Note"]]], axis=1
    ),
    "rows of which nothing else is read": lambda: [
        Row({**row, "comment": object()})  # type: ignore[dict-item]
        for row in FRAME.reset_index().to_dict("records")
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bars_in_every_form_are_one_question(form: str) -> None:
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
    request = read(column(times), as_of=NOW - timedelta(minutes=20), clock=None)
    assert request.notes == ("later_bars:2",)


@pytest.mark.parametrize("form", [lambda wall: wall, lambda wall: wall.isoformat(" ")])
def test_a_moment_without_a_zone_is_read_by_the_clock(form: Callable[[datetime], Any]) -> None:
    wall = form((NOW + timedelta(hours=3)).replace(tzinfo=None))
    assert read(FRAME, as_of=wall).moment == NOW
    with pytest.raises(reading.InvalidRequest, match="it has no time zone"):
        read(FRAME, as_of=wall, clock=None)
    assert read(FRAME, as_of=NOW.isoformat(), clock=None).moment == NOW


def test_a_question_of_the_future_is_a_reason(tmp_path: Path) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    answer = scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1, as_of=ahead)
    assert "lies ahead of now" in answer.why and not answer.debated
