"""Draws the chart as a picture, for the roles that may see one.

`render` draws the newest bars that it is given and nothing else, so a picture knows what its tick
knows. It has candles, averages, levels, RSI and MACD: every line is a column of
technical_calculator.score_frame, every level its last row. The same bars give the same bytes with
the same libraries, whatever their settings, from any thread and without a display.

`check_available` says at start whether the extra `chart` is there; afterwards `render` raises only
what its docstring names. torra.chart.sheet lays things on pixels, torra.chart.screenshot reads the
terminal's own picture, and the tick decides who may see either.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.features import label_of
from technical_calculator import FLAT, score_frame
from torra.chart.sheet import PAPER, Sheet, boxes, strokes
from torra.clock import duration

WIDTH: Final = 896
HEIGHT: Final = 700
"""Size of a picture in pixels: 32 x 25 of the 28-pixel patches that one vendor charges by."""

SHOWN_BARS: Final = 96
"""Newest bars that are drawn: a day of M15."""

LEAST_BARS: Final = 30
"""Fewer bars make no chart."""

PRICES: Final = ["open", "high", "low", "close"]

INK, FAINT, GRID = "#1c2330", "#5d6675", "#e4e7ec"
RISING, FALLING = "#12907f", "#dd4237"
BAND, BAND_EDGE, BAND_INK = "#eaf1fa", "#8fb0d6", "#4473a8"
OSCILLATOR, OSCILLATOR_ZONE = "#7c3aa8", "#f1e9f8"
BAR_ABOVE, BAR_BELOW = "#8fcdc3", "#f0aaa3"
EDGE = "#b6bdc8"

AVERAGES: Final = {
    name: (label_of(f"technical.{name}"), colour)
    for name, colour in (("ema20", "#1e63d0"), ("sma50", "#d98200"), ("sma200", "#7c3aa8"))
}
"""Columns drawn over the candles, with their names and colours."""

BANDS: Final = "bb_lower", "bb_upper"

LEVELS: Final = {
    name: (label_of(f"technical.{name}"), colour)
    for name, colour in (
        ("close", INK),
        ("resistance", "#b3261e"),
        ("support", "#0b6e5f"),
        ("swing_high", "#66707f"),
        ("swing_low", "#66707f"),
    )
}
"""Columns drawn as horizontal lines at their newest value, with their names and colours.

Of equal ones the first gives the colour.
"""

MACD: Final = {
    "macd": ("MACD(12, 26, 9)", AVERAGES["ema20"][1]),
    "macd_signal": ("signal", AVERAGES["sma50"][1]),
    "macd_hist": ("histogram", FAINT),
}
"""Columns of the lowest panel, with their names and colours."""

FLAT_VIEW: Final = 1e-4
"""Share of the price that is shown on both sides of it where nothing moves."""

MARGIN: Final = 0.03
"""Share of the view that stays free above and below what is drawn."""

REACH: Final = 0.25
"""Share of the candles' range beyond them up to which a line or level still widens the view."""

PRICE_PANEL, RSI_PANEL, MACD_PANEL = PANELS = ((274, 640), (158, 248), (40, 134))
"""Lower and upper edge of each panel in pixels, from the bottom."""

LEFT: Final = 12
NAMES_WIDTH: Final = 150
"""Pixels to the right of the newest bar for the names of the levels."""

NAME_SIZE: Final = 176.0
"""Font size in points times characters of a name that just fits there."""

CHARACTER: Final = 7.6
"""Pixels that a digit of an axis label may take."""

LABEL_GAP: Final = 17.0
"""Least distance in pixels of two labels one above the other."""

TIME_LABELS: Final = 8
TIME_GAP: Final = 76.0
"""Pixels that a label of the time axis takes."""

TIME_STEPS: Final = tuple(
    pd.Timedelta(step)
    for step in (
        "5min", "10min", "15min", "30min", "1h", "2h", "3h", "4h", "6h", "12h",
        "1D", "2D", "4D", "7D", "14D", "28D", "56D",
    )
)  # fmt: skip
"""Distances of the labels of the time axis; the first that needs no more than TIME_LABELS."""


def check_available() -> None:
    """Load matplotlib and draw a blank sheet, so that no tick pays for the first one.

    Raises ConfigError that names the remedy when the package is missing.
    """
    Sheet(WIDTH, HEIGHT).png()


def render(
    bars: pd.DataFrame,
    *,
    symbol: str,
    timeframe: str,
    digits: int,
    scored: pd.DataFrame | None = None,
    wait_s: float | None = None,
) -> bytes:
    """Return a PNG of the newest SHOWN_BARS bars, WIDTH x HEIGHT pixels.

    `bars` are checked bars, oldest first, indexed by their opening time in UTC: the whole window of
    the tick, because the averages need the bars before those shown. `scored` is their score_frame
    when the caller has it already (rows of other bars are not looked at); without it, it is
    computed here. What is NaN in it is left out. `digits` are the decimals of a price.

    Pictures are drawn one at a time; `wait_s` bounds, in seconds, how long this one waits for the
    others (None: as long as it takes).

    Raises ValueError for fewer than LEAST_BARS bars and for prices that are not finite and
    positive, TimeoutError when its turn did not come in time, ConfigError without the extra.
    """
    if len(bars) < LEAST_BARS:
        raise ValueError(f"{len(bars)} bars make no chart: it takes {LEAST_BARS}")
    shown = bars.iloc[-SHOWN_BARS:]
    prices = shown[PRICES].to_numpy(dtype=np.float64)
    if not (np.isfinite(prices).all() and (prices > 0.0).all()):
        raise ValueError("a price of the bars to draw is not finite and positive")
    scores = (score_frame(bars) if scored is None else scored).reindex(shown.index)
    # Before the turn: only drawing has to wait for the others.
    chart = _Chart(shown, scores, digits, f"{symbol}  {timeframe}", duration(timeframe))
    if not _turn.acquire(timeout=-1 if wait_s is None else max(wait_s, 0.0)):
        raise TimeoutError(f"other pictures took more than {wait_s} s")
    try:
        return chart.png()
    finally:
        _turn.release()


_turn = threading.Lock()
"""matplotlib does not promise that two threads may draw; they would only share one processor."""


# --- the whole sheet ------------------------------------------------------------------------------


class _Chart:
    """The shown bars and columns as arrays, where the bars stand, and the sheet."""

    def __init__(
        self, bars: pd.DataFrame, scores: pd.DataFrame, digits: int, title: str, bar: timedelta
    ) -> None:
        self.columns = {
            str(name): frame[name].to_numpy(dtype=np.float64)
            for frame in (scores, bars) for name in frame
        }  # fmt: skip
        self.last = {name: float(column[-1]) for name, column in self.columns.items()}
        self.ohlc = np.array([self.columns[name] for name in PRICES])
        self.digits, self._title, self._bar = digits, title, bar
        self._times = pd.DatetimeIndex(bars.index).tz_localize(None)
        longest = len(self.price(self.ohlc.max()))
        self.right = WIDTH - 16.0 - CHARACTER * max(longest + 1, 7)
        """Where the panels end and the axis labels begin."""
        self.pitch = (self.right - NAMES_WIDTH - LEFT) / len(bars)
        """Pixels from one bar to the next."""
        # The middle of every bar on half a pixel: a crisp line is then one pixel wide, not two grey
        # ones.
        self.x = np.floor(LEFT + self.pitch * (np.arange(len(bars)) + 0.5)) + 0.5

    def price(self, value: float) -> str:
        """Return a price as the symbol is quoted."""
        return f"{value:.{self.digits}f}"

    def bars(self, share: float, edge: Any, other: Any) -> NDArray[np.float64]:
        """Return a box for each bar between two heights; `share` of its place is half as wide."""
        # The middle of a bar lies on half a pixel, so its edges lie on whole ones.
        half = max(1.0, math.floor(share * self.pitch)) + 0.5
        return boxes(self.x - half, self.x + half, edge, other)

    def png(self) -> bytes:
        """Draw everything on a new sheet."""
        self.sheet = Sheet(WIDTH, HEIGHT)
        self._draw_title()
        self._draw_time_axis()
        _draw_prices(self)
        _draw_rsi(self)
        _draw_macd(self)
        return self.sheet.png()

    def _draw_title(self) -> None:
        closed = self._times[-1] + self._bar
        opened, high, low, close = map(self.price, self.ohlc[:, -1])
        x = self.sheet.row(LEFT, 680, [(self._title, INK)], size=13.0, bold=True)
        parts = f"closed {closed:%Y-%m-%d %H:%M} UTC", f"O {opened}  H {high}  L {low}  C {close}"
        self.sheet.row(x, 680, [(text, INK) for text in parts])
        averages = [
            (f"{label} {self.price(self.last[name])}", colour)
            for name, (label, colour) in AVERAGES.items()
            if math.isfinite(self.last[name])
        ]
        lower, upper = self.last["bb_lower"], self.last["bb_upper"]
        if math.isfinite(lower + upper):
            text = f"Bollinger(20, 2) {self.price(lower)} to {self.price(upper)}"
            averages.append((text, BAND_INK))
        self.sheet.row(LEFT, 657, averages)

    def _draw_time_axis(self) -> None:
        """Label the first bar at or after each round time; weekends take no room."""
        for step in TIME_STEPS:
            firsts = np.flatnonzero(np.diff(self._times.floor(step))) + 1
            if len(firsts) <= TIME_LABELS:
                break
        form = "%m-%d %H:%M" if max(step, self._bar) < timedelta(days=1) else "%Y-%m-%d"
        end, marks = 0.0, []
        for at in firsts.tolist():
            if self.x[at] - TIME_GAP / 2.0 < end:
                continue  # bars are missing, and the next round time came at once
            end = self.x[at] + TIME_GAP / 2.0
            marks.append(at)
            text = f"{self._times[at]:{form}}"
            self.sheet.text(self.x[at], 22, text, FAINT, size=8.5, align="center")
        for low, high in PANELS:
            x = self.x[marks]
            self.sheet.lines(strokes(x, low, x, high), GRID, depth=0)


class _Panel:
    """A framed rectangle of the sheet with its own scale of values."""

    def __init__(self, chart: _Chart, edges: tuple[float, float], low: float, high: float) -> None:
        self.chart, self.sheet = chart, chart.sheet
        self.bottom, self.top = edges
        self.low, self.high = low, high
        self._clip = LEFT, self.bottom, chart.right, self.top
        (frame,) = boxes(LEFT + 0.5, chart.right + 0.5, self.bottom + 0.5, self.top + 0.5)
        self.sheet.lines([[*frame, frame[0]]], EDGE, depth=4)

    def y(self, values: Any) -> Any:
        """Return the height of a value, or of an array of them, in pixels."""
        share = (values - self.low) / (self.high - self.low)
        return self.bottom + share * (self.top - self.bottom)

    def axis(self, ticks: Sequence[float], form: str, taken: Sequence[float] = ()) -> None:
        """Draw a grid line and a label per tick; a label gives way to what is at its height."""
        heights = np.floor(self.y(np.array(ticks))) + 0.5
        right = self.chart.right
        self.sheet.lines(strokes(LEFT, heights, right, heights), GRID, depth=0)
        for y, value in zip(heights, ticks, strict=True):
            if all(abs(y - other) >= LABEL_GAP - 3.0 for other in taken):
                self.sheet.text(right + 7, y, f"{value:{form}}", FAINT, size=9.0)

    def curve(self, name: str, colour: str, *, width: float = 1.6) -> None:
        """Draw a column where it has values, inside the panel only."""
        values = self.chart.columns[name]
        there = np.isfinite(values)
        if there.sum() >= 2:
            points = np.column_stack((self.chart.x[there], self.y(values[there])))
            self.sheet.lines([points], colour, width=width, crisp=False, depth=4, clip=self._clip)

    def band(self) -> None:
        """Fill the room between the Bollinger bands, and draw them."""
        edges = np.array([self.chart.columns[name] for name in BANDS])
        there = np.isfinite(edges).all(axis=0)
        if there.sum() < 2:
            return
        down, up = (np.column_stack((self.chart.x[there], self.y(edge[there]))) for edge in edges)
        self.sheet.areas([np.concatenate([down, up[::-1]])], [BAND], clip=self._clip)
        for name in BANDS:
            self.curve(name, BAND_EDGE, width=1.0)


# --- the price ------------------------------------------------------------------------------------


def _draw_prices(chart: _Chart) -> None:
    low, high = _view(chart)
    panel = _Panel(chart, PRICE_PANEL, low, high)
    levels = _levels(chart)
    inside = [min(max(panel.y(price), panel.bottom), panel.top) for price, _, _ in levels]
    heights = _spread(inside, panel.bottom, panel.top)
    # Labels nearer than the last digit of a price would read the same.
    ticks = _round_values(low, high, 8, 10.0**-chart.digits)
    panel.axis(ticks, f".{chart.digits}f", heights)
    panel.band()
    _draw_candles(panel)
    for name, (_, colour) in AVERAGES.items():
        panel.curve(name, colour)
    for level, height in zip(levels, heights, strict=True):
        _draw_level(panel, *level, height)


def _view(chart: _Chart) -> tuple[float, float]:
    """Return the prices to show: all candles, and whatever else is not far away."""
    close = chart.last["close"]
    low, high = chart.ohlc.min(), chart.ohlc.max()
    # A scale of no height would divide by zero.
    if high - low <= FLAT * close:
        edge = max(FLAT_VIEW * close, 4.0 * 10.0**-chart.digits)
        return low - edge, high + edge
    reach = REACH * (high - low)
    lines = [chart.columns[name] for name in (*AVERAGES, *BANDS)]
    near = np.concatenate([*lines, [chart.last[name] for name in LEVELS]])
    # A far level would squeeze the candles flat; NaN compares False and drops out.
    near = near[(near > low - reach) & (near < high + reach)]
    low, high = min(low, near.min()), max(high, near.max())
    edge = MARGIN * (high - low)
    return low - edge, high + edge


def _draw_candles(panel: _Panel) -> None:
    chart = panel.chart
    opened, high, low, close = panel.y(chart.ohlc)
    colours = np.where(close >= opened, RISING, FALLING).tolist()
    panel.sheet.lines(strokes(chart.x, low, chart.x, high), colours, depth=3)
    panel.sheet.areas(chart.bars(0.34, opened, close), colours, depth=3)


def _levels(chart: _Chart) -> list[tuple[float, str, str]]:
    """Return price, name and colour of every level and of the close; equal prices are one."""
    levels: dict[float, list[str]] = {}
    for name in LEVELS:
        if math.isfinite(price := chart.last[name]):
            levels.setdefault(price, []).append(name)
    rows = []
    for price, names in sorted(levels.items()):
        labels = [LEVELS[name][0] for name in names]
        if {"resistance", "support"} <= {*names}:  # the close lies on it
            labels[1:3] = ["level"]
        rows.append((price, ", ".join(labels), LEVELS[names[0]][1]))
    return rows


def _draw_level(panel: _Panel, price: float, text: str, colour: str, height: float) -> None:
    """Draw a level from the bar that made it, its name beside it and its price on the axis."""
    chart, sheet = panel.chart, panel.sheet
    end = chart.right - NAMES_WIDTH + 6
    if panel.low <= price <= panel.high:
        y = math.floor(panel.y(price)) + 0.5
        start = max([LEFT, *chart.x[(chart.ohlc[1:] == price).any(axis=0)]])
        sheet.lines(strokes(start, y, end, y), colour, dashes=(5, 3), depth=5)
        sheet.lines(strokes(end, y, end + 10, height), colour, crisp=False, depth=5)
    else:
        text += " \N{UPWARDS ARROW}" if price > panel.high else " \N{DOWNWARDS ARROW}"
    sheet.text(end + 13, height, text, colour, size=min(9.0, NAME_SIZE / len(text)))
    sheet.areas(boxes(chart.right + 1, WIDTH, height - 8, height + 8), [colour], depth=6)
    sheet.text(chart.right + 7, height, chart.price(price), PAPER, size=9.0, depth=7)


# --- the panels below -----------------------------------------------------------------------------


def _draw_rsi(chart: _Chart) -> None:
    panel, newest = _Panel(chart, RSI_PANEL, 0.0, 100.0), chart.last["rsi14"]
    chart.sheet.text(LEFT, 259, _caption("RSI(14)", newest, ".1f"), OSCILLATOR)
    zone = boxes(LEFT, chart.right, panel.y(30), panel.y(70))
    chart.sheet.areas(zone, [OSCILLATOR_ZONE], depth=-1)
    panel.axis([30.0, 50.0, 70.0], ".0f")
    panel.curve("rsi14", OSCILLATOR)


def _draw_macd(chart: _Chart) -> None:
    size = float(np.max(np.abs(np.nan_to_num([chart.columns[name] for name in MACD]))))
    # A MACD of nothing but zeros needs a scale all the same.
    size = 1.1 * size or 1.0
    panel, form = _Panel(chart, MACD_PANEL, -size, size), f"+.{chart.digits + 1}f"
    captions = [
        (_caption(label, chart.last[name], form), colour) for name, (label, colour) in MACD.items()
    ]
    chart.sheet.row(LEFT, 145, captions)
    ticks = _round_values(-size, size, 5, 0.0)
    decimals = max(0, -math.floor(math.log10(min(np.diff(ticks), default=1.0)) + 1e-9))
    panel.axis(ticks, f".{decimals}f")
    values = chart.columns["macd_hist"]
    there = np.isfinite(values)
    bars = chart.bars(0.3, panel.y(0.0), panel.y(values))
    colours = np.where(values >= 0.0, BAR_ABOVE, BAR_BELOW)
    chart.sheet.areas(bars[there], colours[there].tolist(), depth=2)
    for name in ("macd", "macd_signal"):
        panel.curve(name, MACD[name][1])


def _caption(label: str, value: float, form: str) -> str:
    """Return a label with its value, if there is one."""
    return f"{label} {value:{form}}" if math.isfinite(value) else label


# --- the arithmetic of places ---------------------------------------------------------------------


def _round_values(low: float, high: float, count: int, least: float) -> list[float]:
    """Return about `count` round values between two, `least` apart at least."""
    raw = max((high - low) / count, least)
    power = 10.0 ** math.floor(math.log10(raw))
    # The slack lets a step that is round but for a rounding error count.
    step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= raw * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _spread(heights: Sequence[float], bottom: float, top: float) -> list[float]:
    """Return ascending heights moved so that labels do not overlap, between two edges."""
    # Pushed up from below first; what left the panel is pushed down again from the top.
    up = accumulate(
        heights,
        lambda below, y: max(y, below + LABEL_GAP),
        initial=bottom + 8 - LABEL_GAP,
    )
    down = accumulate(
        [*up][:0:-1],
        lambda above, y: min(y, above - LABEL_GAP),
        initial=top - 8 + LABEL_GAP,
    )
    return [*down][:0:-1]
