"""The chart picture shows the bars and nothing else: content, bytes, threads, size, faults."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from technical_calculator import HISTORY, score_frame
from tests import ROOT
from tests.cases import cases
from tests.conftest import Scale
from tests.worlds.price_series import rows_of, sample, walk
from torra.chart import renderer as chart_renderer
from torra.chart.renderer import (
    AVERAGES,
    FALLING,
    HEIGHT,
    LEAST_BARS,
    OSCILLATOR,
    RISING,
    RSI_PANEL,
    SHOWN_BARS,
    WIDTH,
    check_available,
    render,
)
from torra.chart.sheet import Sheet
from torra.errors import ConfigError

STATM = Path("/proc/self/statm")
BARS = sample("BTCUSD_M15").iloc[3000 - HISTORY : 3000]


def btc(bars: pd.DataFrame = BARS, **more: Any) -> bytes:
    return render(bars, **{"symbol": "BTCUSD", "timeframe": "M15", "digits": 2, **more})


@cache
def usual() -> bytes:
    """Return the picture of BARS, drawn once."""
    return btc()


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def where(png: bytes, colour: str, slack: int = 12) -> np.ndarray:
    """Return a mask of the pixels of a colour; the palette may have moved it a little."""
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return np.abs(pixels(png) - wanted).max(axis=2) <= slack


def columns_of(mask: np.ndarray) -> list[np.ndarray]:
    """Return the runs of columns with a marked pixel: one run for each candle."""
    at = np.flatnonzero(mask.any(axis=0))
    return np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)


# --- content --------------------------------------------------------------------------------------


def test_every_candle_stands_where_its_prices_are() -> None:
    bars = walk(120, 7)  # too few for any indicator: nothing but candles is drawn
    png = btc(bars)
    rising, falling = where(png, RISING), where(png, FALLING)
    runs = columns_of(rising | falling)
    shown = bars.iloc[-SHOWN_BARS:]
    assert len(runs) == SHOWN_BARS
    found = []
    for run, bar in zip(runs, rows_of(shown), strict=True):
        mask = falling if bar.close < bar.open else rising
        other = rising if bar.close < bar.open else falling
        assert mask[:, run].any()
        assert not other[:, run].any()
        rows = np.flatnonzero(mask[:, run].any(axis=1))
        found += [(bar.high, rows[0]), (bar.low, rows[-1])]
    prices, heights = np.array(found).T
    slope, start = np.polyfit(prices, heights, 1)
    assert slope < 0
    assert np.abs(start + slope * prices - heights).max() < 2.0


@pytest.mark.journey
def test_the_lines_are_the_columns_of_score_frame() -> None:
    scored = score_frame(BARS)

    def drawn(name: str, colour: str, slack: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of a column that alone is drawn, and the heights of its line."""
        alone = scored[[name]].reindex(columns=scored.columns)
        line = where(btc(scored=alone), colour, slack)[rows][:, middle]
        bars = np.flatnonzero(line.any(axis=0))
        assert len(bars) > 80
        heights = [np.flatnonzero(line[:, bar]).mean() for bar in bars]
        return scored[name].to_numpy()[-SHOWN_BARS:][bars], np.array(heights)

    blank = btc(scored=scored[[]].reindex(columns=scored.columns))
    candles = columns_of(where(blank, RISING) | where(blank, FALLING))
    middle = [int(run.mean()) for run in candles]
    bottom, top = (HEIGHT - edge for edge in RSI_PANEL)
    values, heights = drawn("rsi14", OSCILLATOR, 90, slice(top, bottom))
    errors = np.abs(heights - (100.0 - values) / 100.0 * (bottom - top))
    assert errors.max() < 6.0 and np.median(errors) < 1.0  # half the height of a steep stretch
    values, heights = drawn("sma200", AVERAGES["sma200"][1], 60, slice(60, HEIGHT - 280))
    assert np.abs(np.polyval(np.polyfit(values, heights, 1), values) - heights).max() < 2.0


def texts(monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
    """Return what is written on a sheet."""
    written: list[str] = []
    ours = Sheet.text

    def text(sheet: Sheet, x: float, y: float, text: str, *rest: Any, **style: Any) -> Any:
        written.append(text)
        return ours(sheet, x, y, text, *rest, **style)

    with monkeypatch.context() as patch:
        patch.setattr(Sheet, "text", text)
        btc(**more)
    return written


def test_the_words_are_those_of_the_newest_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    told = texts(monkeypatch)
    row, bar = score_frame(BARS).iloc[-1], BARS.iloc[-1]
    closed = BARS.index[-1] + pd.Timedelta(minutes=15)
    for text in (
        "BTCUSD  M15",
        f"closed {closed:%Y-%m-%d %H:%M} UTC",
        f"O {bar.open:.2f}  H {bar.high:.2f}  L {bar.low:.2f}  C {bar.close:.2f}",
        f"EMA20 {row.ema20:.2f}",
        f"SMA50 {row.sma50:.2f}",
        f"SMA200 {row.sma200:.2f}",
        f"Bollinger(20, 2) {row.bb_lower:.2f} to {row.bb_upper:.2f}",
        f"RSI(14) {row.rsi14:.1f}",
        f"MACD(12, 26, 9) {row.macd:+.3f}",
        f"signal {row.macd_signal:+.3f}",
        f"histogram {row.macd_hist:+.3f}",
    ):
        assert text in told
    for name in ("support", "resistance", "swing_high", "swing_low", "close"):
        assert f"{row[name]:.2f}" in told
        assert any(name.replace("_", " ") in text for text in told)


@pytest.mark.parametrize(
    ("timeframe", "minutes", "form"),
    [("M1", 1, "%m-%d %H:%M"), ("M15", 15, "%m-%d %H:%M"), ("H4", 240, "%Y-%m-%d"),
     ("D1", 1440, "%Y-%m-%d")],
)  # fmt: skip
def test_the_time_axis_names_bars(
    monkeypatch: pytest.MonkeyPatch, timeframe: str, minutes: int, form: str
) -> None:
    time = pd.date_range("2024-03-04", periods=120, freq=f"{minutes}min", tz="UTC", name="time")
    bars = walk(120, 7).set_index(time)
    told = texts(monkeypatch, bars=bars, timeframe=timeframe)
    labels = {f"{moment:{form}}" for moment in time[-SHOWN_BARS:]}
    assert 4 <= sum(text in labels for text in told) <= 8


def test_levels_out_of_view_are_named_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = score_frame(BARS)
    scored.loc[BARS.index[-1], ["support", "resistance"]] = [1.0, 1e6]
    told = texts(monkeypatch, scored=scored)
    assert "support \N{DOWNWARDS ARROW}" in told
    assert "resistance \N{UPWARDS ARROW}" in told
    assert {"1.00", "1000000.00"} <= set(told)


# --- no look-ahead, and the same bytes ------------------------------------------------------------


@pytest.mark.journey
def test_nothing_after_the_newest_bar_is_drawn_and_the_bars_stay_as_they_were() -> None:
    known, later, bars = BARS.iloc[:-20], score_frame(BARS), BARS.copy()
    wild = later.drop(columns="valid")
    wild.loc[BARS.index[-20:]] = 1e9
    kept = later.copy()
    assert btc(known) == btc(known, scored=later) == btc(known, scored=wild)
    assert btc(known) != btc(bars) == btc(bars, scored=later)
    pd.testing.assert_frame_equal(bars, BARS)
    pd.testing.assert_frame_equal(later, kept)


ELSEWHERE = """
import hashlib, sys
import pandas as pd
from torra.chart import renderer as chart_renderer
from torra.chart import screenshot
assert "matplotlib" not in sys.modules, "loaded before anyone asked for a picture"
chart_renderer.check_available()
bars = pd.read_pickle(sys.argv[1])
png = chart_renderer.render(bars, symbol="BTCUSD", timeframe="M15", digits=2)
assert not [name for name in sys.modules if "pyplot" in name or name == "tkinter"]
print(hashlib.sha256(png).hexdigest())
"""


@pytest.mark.journey
def test_another_process_without_display_or_home_draws_the_same_bytes(tmp_path: Path) -> None:
    BARS.to_pickle(tmp_path / "bars")
    (tmp_path / "matplotlibrc").write_text(
        "lines.linewidth: 9\\nfont.family: serif\\ntext.color: red\\naxes.facecolor: black\\n"
        "savefig.dpi: 30\\nfigure.autolayout: True\\npath.simplify: False\\n".replace("\\n", "\n")
    )
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"DISPLAY", "HOME"}},
        "MPLCONFIGDIR": "/dev/null/nowhere",
        "MPLBACKEND": "TkAgg",
        "HOME": "/dev/null/none",
        "PYTHONHASHSEED": "77",
        "PYTHONPATH": str(ROOT),
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE, str(tmp_path / "bars")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == hashlib.sha256(usual()).hexdigest()


def test_a_picture_waits_for_its_turn_no_longer_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait_s in (0.01, -1.0):
        with chart_renderer._turn, pytest.raises(TimeoutError):
            btc(wait_s=wait_s)
    with monkeypatch.context() as patch:
        patch.setattr(Sheet, "png", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            btc()
    assert btc(wait_s=0.0), "a fault gives the turn back"


# --- size and memory ------------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells it there")
def test_memory_does_not_grow(scaled: Scale) -> None:
    scored = score_frame(BARS)

    def draw(times: int) -> int:
        for _ in range(times):
            btc(scored=scored)
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    gc.collect()
    gc.disable()  # a sheet must not wait for the collector: it holds 3 MiB
    try:
        before = draw(4)
        assert draw(scaled(200, 7)) - before < 16 * 2**20
    finally:
        gc.enable()


# --- what can be drawn, and what cannot -----------------------------------------------------------


@pytest.mark.parametrize(("price", "digits"), [(1e-5, 10), (1e-5, 0), (1.0, 5), (1e6, 0), (1e9, 5)])
def test_any_size_of_price_can_be_drawn(price: float, digits: int, scaled: Scale) -> None:
    for seed in range(scaled(40, 1)):
        bars = walk(240, seed, flat=(5 * seed, 5 * seed % 240))
        png = btc(bars * ([price / bars["close"].iloc[-1]] * 4 + [1.0]), digits=digits)
        assert Image.open(io.BytesIO(png)).size == (WIDTH, HEIGHT)
        assert 8_000 < len(png) < 120_000 and set(chunks(png)) == PARTS
        assert candles(png).any(axis=1).sum() > 100


PARTS = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
"""The parts of a PNG without metadata."""


def chunks(png: bytes) -> Iterator[bytes]:
    at = 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind
        at += 12 + length


def candles(png: bytes) -> np.ndarray:
    """Return a mask of the candles' pixels in their panel."""
    return (where(png, RISING) | where(png, FALLING))[60 : HEIGHT - 274, : WIDTH - 250]


@pytest.mark.parametrize(
    ("price", "count", "digits"), [(1e-5, LEAST_BARS, 0), (1e-5, HISTORY, 10), (1e6, HISTORY, 0)]
)
def test_a_market_that_does_not_move_is_a_line(price: float, count: int, digits: int) -> None:
    time = pd.date_range("2024-03-04", periods=count, freq="15min", tz="UTC", name="time")
    columns = dict.fromkeys(("open", "high", "low", "close"), price)
    bars = pd.DataFrame({**columns, "volume": 0.0}, index=time)
    assert 1 <= candles(btc(bars, digits=digits)).any(axis=1).sum() <= 2


@pytest.mark.parametrize(
    "gone", ["sma200", "bb_lower", "rsi14", "macd", "support", LEAST_BARS, 209]
)
def test_what_has_no_value_is_left_out(monkeypatch: pytest.MonkeyPatch, gone: str | int) -> None:
    """A column, or those for which a history is too short."""
    bars = BARS.iloc[-gone:] if isinstance(gone, int) else BARS
    scored = score_frame(bars)
    if isinstance(gone, str):
        scored[gone] = np.nan
    written = texts(monkeypatch, bars=bars, scored=scored)
    assert not any("nan" in text for text in written)
    shown = gone != "sma200" and not isinstance(gone, int)
    assert any(text.startswith("SMA200") for text in written) == shown


@cases("count", [0, 1, LEAST_BARS - 1])
def test_too_few_bars_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="make no chart"):
        btc(BARS.iloc[:count])


@cases("value", [np.nan, np.inf, -np.inf, 0.0, -1.0])
@cases("column", ["open", "high", "low", "close"])
def test_prices_that_are_none_are_refused(value: float, column: str) -> None:
    bars = BARS.copy()
    bars.iloc[-5, list(bars).index(column)] = value
    with pytest.raises(ValueError, match="not finite and positive"):
        btc(bars)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'torra\[chart\]'"):
        check_available()
    with pytest.raises(ConfigError):
        btc()
    monkeypatch.undo()
    check_available()
    assert btc(wait_s=0.0)


# --- the arithmetic of labels ---------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 400.0), min_size=1, max_size=6))
def test_labels_keep_their_distance_inside_the_panel(heights: list[float]) -> None:
    inside = [min(max(y, 100.0), 300.0) for y in sorted(heights)]
    moved = chart_renderer._spread(inside, 100.0, 300.0)
    gap = chart_renderer.LABEL_GAP
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(moved))
    assert moved[0] >= 108.0 - 1e-9
    assert moved[-1] <= 292.0 + 1e-9


@given(st.floats(1e-5, 1e6), st.floats(1e-6, 0.5), st.integers(3, 8), st.integers(0, 10))
def test_ticks_are_round_and_inside(low: float, share: float, count: int, digits: int) -> None:
    high = low * (1.0 + share)
    ticks = chart_renderer._round_values(low, high, count, 10.0**-digits)
    assert len(ticks) <= count + 1
    for value in ticks:
        assert low * (1 - 1e-12) <= value <= high * (1 + 1e-12)
    if (high - low) / count >= 10.0**-digits:
        assert len(ticks) >= count // 2 - 1
