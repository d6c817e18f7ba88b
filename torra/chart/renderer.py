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
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.features import label_of
from technical_calculator import FLAT, score_frame
from torra.chart.sheet import PAPER, Sheet
from torra.clock import duration

Array = NDArray[np.float64]
Interval = tuple[float, float]

WIDTH: Final = 896
HEIGHT: Final = 700
"""Size of a picture in pixels: 32 x 25 of the 28-pixel patches that one vendor charges by."""

SHOWN_BARS: Final = 96
"""Newest bars that are drawn: a day of M15."""

LEAST_BARS: Final = 30
"""Fewer bars make no chart."""

CLOSE: Final = "close"

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

LEVELS: Final = {
    name: (label_of(f"technical.{name}"), colour)
    for name, colour in (
        ("resistance", "#b3261e"),
        ("support", "#0b6e5f"),
        ("swing_high", "#66707f"),
        ("swing_low", "#66707f"),
    )
}
"""Columns drawn as horizontal lines at their newest value, with their names and colours."""

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

TIME_STEPS: Final = (
    *(timedelta(minutes=minutes) for minutes in (5, 10, 15, 30, 60, 120, 180, 240, 360, 720)),
    *(timedelta(days=days) for days in (1, 2, 4, 7, 14, 28, 56)),
)
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
    prices = shown[["open", "high", "low", "close"]].to_numpy(dtype=np.float64)
    if not (np.isfinite(prices).all() and (prices > 0.0).all()):
        raise ValueError("a price of the bars to draw is not finite and positive")
    scores = (score_frame(bars) if scored is None else scored).reindex(shown.index)
    # Before the turn: only drawing has to wait for the others.
    chart = _chart(shown, scores, digits)
    if not _turn.acquire(timeout=-1 if wait_s is None else max(wait_s, 0.0)):
        raise TimeoutError(f"other pictures took more than {wait_s} s")
    try:
        sheet = Sheet(WIDTH, HEIGHT)
        _title(sheet, chart, symbol, timeframe)
        _time_axis(sheet, chart, duration(timeframe))
        _price_panel(sheet, chart)
        _rsi_panel(sheet, chart)
        _macd_panel(sheet, chart)
        return sheet.png()
    finally:
        _turn.release()


_turn = threading.Lock()
"""matplotlib does not promise that two threads may draw; they would only share one processor."""


# --- what is drawn where ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Panel:
    """A rectangle of the sheet with its own scale of values."""

    bottom: float
    top: float
    low: float
    high: float

    def y(self, value: float) -> float:
        """Return the height of a value in pixels."""
        share = (value - self.low) / (self.high - self.low)
        return self.bottom + share * (self.top - self.bottom)

    def clamped(self, value: float) -> float:
        """Return the height of a value, or of the edge that it lies beyond."""
        return min(max(self.y(value), self.bottom), self.top)


@dataclass(frozen=True, slots=True)
class _Chart:
    """The shown bars and columns as arrays, and where the bars stand."""

    bars: pd.DataFrame
    columns: dict[str, Array]
    digits: int
    right: float
    """Where the panels end and the axis labels begin."""

    @property
    def ohlc(self) -> tuple[Array, Array, Array, Array]:
        """Open, high, low and close."""
        opened, high, low, close = (
            self.bars[name].to_numpy(dtype=np.float64) for name in ("open", "high", "low", "close")
        )
        return opened, high, low, close

    @property
    def pitch(self) -> float:
        """Pixels from one bar to the next."""
        return (self.right - NAMES_WIDTH - LEFT) / len(self.bars)

    @property
    def x(self) -> Array:
        """The middle of every bar, on a pixel."""
        # On half pixels: a crisp line is then one pixel wide, not two grey ones.
        return np.asarray(np.floor(LEFT + self.pitch * (np.arange(len(self.bars)) + 0.5)) + 0.5)

    def last(self, name: str) -> float:
        """Return the newest value of a column."""
        return float(self.columns[name][-1])

    def price(self, value: float) -> str:
        """Return a price as the symbol is quoted."""
        return f"{value:.{self.digits}f}"


def _chart(shown: pd.DataFrame, scores: pd.DataFrame, digits: int) -> _Chart:
    columns = {str(name): scores[name].to_numpy(dtype=np.float64) for name in scores}
    longest = len(f"{shown['high'].max():.{digits}f}")
    return _Chart(shown, columns, digits, right=WIDTH - 16.0 - CHARACTER * max(longest + 1, 7))


def _title(sheet: Sheet, chart: _Chart, symbol: str, timeframe: str) -> None:
    closed = chart.bars.index[-1] + duration(timeframe)
    opened, high, low, close = (chart.price(values[-1]) for values in chart.ohlc)
    told = (
        (f"closed {closed:%Y-%m-%d %H:%M} UTC", INK),
        (f"O {opened}  H {high}  L {low}  C {close}", INK),
    )
    sheet.row(LEFT, 680, told, heading=(f"{symbol}  {timeframe}", INK))
    averages = [
        (f"{label} {chart.price(chart.last(name))}", colour)
        for name, (label, colour) in AVERAGES.items()
        if math.isfinite(chart.last(name))
    ]
    lower, upper = chart.last("bb_lower"), chart.last("bb_upper")
    if math.isfinite(lower + upper):
        text = f"Bollinger(20, 2) {chart.price(lower)} to {chart.price(upper)}"
        averages.append((text, BAND_INK))
    sheet.row(LEFT, 657, averages)


def _time_axis(sheet: Sheet, chart: _Chart, bar: timedelta) -> None:
    """Label the first bar at or after each round time; weekends take no room."""
    times = pd.DatetimeIndex(chart.bars.index)
    seconds = times.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    for step in TIME_STEPS:
        found = np.flatnonzero(np.diff(seconds // int(step.total_seconds()))) + 1
        if len(found) <= TIME_LABELS:
            break
    day = timedelta(days=1)
    form = "%m-%d %H:%M" if max(step, bar) < day else "%Y-%m-%d"
    end, grid = 0.0, []
    for at in found.tolist():
        x = float(chart.x[at])
        if x - TIME_GAP / 2.0 < end:
            continue  # bars are missing, and the next round time came at once
        end = x + TIME_GAP / 2.0
        grid += [[(x, low), (x, high)] for low, high in PANELS]
        sheet.text(x, 22, f"{times[at]:{form}}", FAINT, size=8.5, align="center")
    sheet.lines(grid, GRID, crisp=True, depth=0)


# --- the price ------------------------------------------------------------------------------------


def _price_panel(sheet: Sheet, chart: _Chart) -> None:
    low, high = _view(chart)
    panel = _Panel(*PRICE_PANEL, low, high)
    levels = _levels(chart)
    marks = [(price, colour) for price, _, colour in levels]
    heights = _apart([panel.clamped(price) for price, _ in marks], panel)
    _frame(sheet, chart, panel)
    # Labels nearer than the last digit of a price would read the same.
    ticks = _round_values(low, high, 8, 10.0**-chart.digits)
    _axis(sheet, chart, panel, [(value, chart.price(value)) for value in ticks], heights)
    _band(sheet, chart, panel)
    _candles(sheet, chart, panel)
    for name, (_, colour) in AVERAGES.items():
        _curve(sheet, chart, panel, chart.columns[name], colour)
    for (price, text, colour), height in zip(levels, heights, strict=True):
        _level(sheet, chart, panel, price, text, colour, height)


def _view(chart: _Chart) -> Interval:
    """Return the prices to show: all candles, and whatever else is not far away."""
    _, highs, lows, close = chart.ohlc
    low, high = float(lows.min()), float(highs.max())
    # A scale of no height would divide by zero.
    if high - low <= FLAT * close[-1]:
        edge = max(FLAT_VIEW * close[-1], 4.0 * 10.0**-chart.digits)
        return low - edge, high + edge
    reach = REACH * (high - low)
    names = (*AVERAGES, "bb_lower", "bb_upper")
    near = np.concatenate(
        [*(chart.columns[name] for name in names), [chart.last(name) for name in LEVELS]]
    )
    # A far level would squeeze the candles flat; NaN compares False and drops out.
    near = near[(near > low - reach) & (near < high + reach)]
    low, high = float(np.min([low, *near])), float(np.max([high, *near]))
    edge = MARGIN * (high - low)
    return low - edge, high + edge


def _band(sheet: Sheet, chart: _Chart, panel: _Panel) -> None:
    lower, upper = chart.columns["bb_lower"], chart.columns["bb_upper"]
    there = np.isfinite(lower) & np.isfinite(upper)
    if there.sum() < 2:
        return
    x = chart.x[there]
    bottom, top = ([panel.y(value) for value in values[there]] for values in (lower, upper))
    outline = [*zip(x, bottom, strict=True), *reversed(list(zip(x, top, strict=True)))]
    sheet.areas([outline], [BAND], clip=_clip(chart, panel))
    _curve(sheet, chart, panel, lower, BAND_EDGE, width=1.0)
    _curve(sheet, chart, panel, upper, BAND_EDGE, width=1.0)


def _candles(sheet: Sheet, chart: _Chart, panel: _Panel) -> None:
    opened, high, low, close = ([panel.y(value) for value in values] for values in chart.ohlc)
    colours = [RISING if c >= o else FALLING for o, c in zip(opened, close, strict=True)]
    wicks = [[(x, a), (x, b)] for x, a, b in zip(chart.x, low, high, strict=True)]
    sheet.lines(wicks, colours, crisp=True, depth=3)
    # The middle of a bar lies on half a pixel, so its edges lie on whole ones.
    half = max(1.0, math.floor(0.34 * chart.pitch)) + 0.5
    bodies = zip(chart.x, opened, close, strict=True)
    sheet.areas([_box(x - half, x + half, a, b) for x, a, b in bodies], colours, depth=3)


def _levels(chart: _Chart) -> list[tuple[float, str, str]]:
    """Return price, name and colour of every level and of the close; equal prices are one."""
    found: dict[float, list[str]] = {float(chart.ohlc[3][-1]): [CLOSE]}
    for name in LEVELS:
        if math.isfinite(price := chart.last(name)):
            found.setdefault(price, []).append(name)
    return [(price, *_named(names)) for price, names in sorted(found.items())]


def _named(names: list[str]) -> tuple[str, str]:
    """Return what a level is called and its colour, the first name's."""
    texts = [CLOSE if name == CLOSE else LEVELS[name][0] for name in names]
    if {"resistance", "support"} <= set(names):  # the close lies on it
        texts = [CLOSE, "level", *texts[3:]]
    return ", ".join(texts), INK if names[0] == CLOSE else LEVELS[names[0]][1]


def _level(
    sheet: Sheet,
    chart: _Chart,
    panel: _Panel,
    price: float,
    text: str,
    colour: str,
    height: float,
) -> None:
    """Draw a level from the bar that made it, its name beside it and its price on the axis."""
    end = chart.right - NAMES_WIDTH + 6
    if panel.low <= price <= panel.high:
        y = math.floor(panel.y(price)) + 0.5
        _, highs, lows, close = chart.ohlc
        made = np.flatnonzero((highs == price) | (lows == price) | (close == price))
        start = float(chart.x[made[-1]]) if len(made) else float(LEFT)
        sheet.lines([[(start, y), (end, y)]], colour, crisp=True, dashes=(5, 3), depth=5)
        sheet.lines([[(end, y), (end + 10, height)]], colour, depth=5)
    else:
        text += " \N{UPWARDS ARROW}" if price > panel.high else " \N{DOWNWARDS ARROW}"
    sheet.text(end + 13, height, text, colour, size=min(9.0, NAME_SIZE / len(text)))
    sheet.areas([_box(chart.right + 1, WIDTH, height - 8, height + 8)], [colour], depth=6)
    sheet.text(chart.right + 7, height, chart.price(price), PAPER, size=9.0, depth=7)


# --- the panels below -----------------------------------------------------------------------------


def _rsi_panel(sheet: Sheet, chart: _Chart) -> None:
    panel = _Panel(*RSI_PANEL, 0.0, 100.0)
    values, newest = chart.columns["rsi14"], chart.last("rsi14")
    sheet.text(
        LEFT, 259, "RSI(14)" + (f" {newest:.1f}" if math.isfinite(newest) else ""), OSCILLATOR
    )
    sheet.areas([_box(LEFT, chart.right, panel.y(30), panel.y(70))], [OSCILLATOR_ZONE], depth=-1)
    _frame(sheet, chart, panel)
    _axis(sheet, chart, panel, [(value, f"{value:.0f}") for value in (30.0, 50.0, 70.0)])
    _curve(sheet, chart, panel, values, OSCILLATOR)


def _macd_panel(sheet: Sheet, chart: _Chart) -> None:
    bars, line, signal = (chart.columns[name] for name in ("macd_hist", "macd", "macd_signal"))
    size = float(np.max(np.abs(np.nan_to_num([bars, line, signal]))))
    # A MACD of nothing but zeros needs a scale all the same.
    size = 1.1 * size or 1.0
    panel = _Panel(*MACD_PANEL, -size, size)
    _macd_caption(sheet, chart)
    _frame(sheet, chart, panel)
    ticks = _round_values(-size, size, 5, 0.0)
    decimals = _decimals(ticks)
    _axis(sheet, chart, panel, [(value, f"{value:.{decimals}f}") for value in ticks])
    half, zero = max(1.0, math.floor(0.3 * chart.pitch)) + 0.5, panel.y(0.0)
    there = np.isfinite(bars)
    pairs = list(zip(chart.x[there], bars[there], strict=True))
    boxes = [_box(x - half, x + half, zero, panel.y(value)) for x, value in pairs]
    colours = [BAR_ABOVE if value >= 0.0 else BAR_BELOW for _, value in pairs]
    sheet.areas(boxes, colours, depth=2)
    _curve(sheet, chart, panel, line, AVERAGES["ema20"][1])
    _curve(sheet, chart, panel, signal, AVERAGES["sma50"][1])


def _macd_caption(sheet: Sheet, chart: _Chart) -> None:
    parts = (
        (f"MACD(12, 26, 9){_signed(chart, 'macd')}", AVERAGES["ema20"][1]),
        (f"signal{_signed(chart, 'macd_signal')}", AVERAGES["sma50"][1]),
        (f"histogram{_signed(chart, 'macd_hist')}", FAINT),
    )
    sheet.row(LEFT, 145, parts)


def _signed(chart: _Chart, name: str) -> str:
    value = chart.last(name)
    return f" {value:+.{chart.digits + 1}f}" if math.isfinite(value) else ""


# --- what the panels share ------------------------------------------------------------------------


def _frame(sheet: Sheet, chart: _Chart, panel: _Panel) -> None:
    left, right, bottom, top = LEFT + 0.5, chart.right + 0.5, panel.bottom + 0.5, panel.top + 0.5
    outline = [(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)]
    sheet.lines([outline], EDGE, crisp=True, depth=4)


def _axis(
    sheet: Sheet,
    chart: _Chart,
    panel: _Panel,
    ticks: Sequence[tuple[float, str]],
    taken: Sequence[float] = (),
) -> None:
    """Draw a grid line and a label per tick; a label gives way to what is at its height."""
    heights = [math.floor(panel.y(value)) + 0.5 for value, _ in ticks]
    sheet.lines([[(LEFT, y), (chart.right, y)] for y in heights], GRID, crisp=True, depth=0)
    for y, (_, text) in zip(heights, ticks, strict=True):
        if all(abs(y - other) >= LABEL_GAP - 3.0 for other in taken):
            sheet.text(chart.right + 7, y, text, FAINT, size=9.0)


def _curve(
    sheet: Sheet,
    chart: _Chart,
    panel: _Panel,
    values: Array,
    colour: str,
    *,
    width: float = 1.6,
) -> None:
    """Draw a column where it has values, inside its panel only."""
    there = np.isfinite(values)
    if there.sum() < 2:
        return
    points = [(x, panel.y(value)) for x, value in zip(chart.x[there], values[there], strict=True)]
    sheet.lines([points], colour, width=width, depth=4, clip=_clip(chart, panel))


def _clip(chart: _Chart, panel: _Panel) -> tuple[float, float, float, float]:
    return LEFT, panel.bottom, chart.right, panel.top


def _box(left: float, right: float, one: float, other: float) -> list[tuple[float, float]]:
    """Return a rectangle that is at least a pixel high."""
    bottom, top = min(one, other), max(one, other)
    if top - bottom < 1.0:
        bottom, top = (bottom + top) / 2.0 - 0.5, (bottom + top) / 2.0 + 0.5
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def _round_values(low: float, high: float, count: int, least: float) -> list[float]:
    """Return about `count` round values between two, `least` apart at least."""
    raw = max((high - low) / count, least)
    power = 10.0 ** math.floor(math.log10(raw))
    # The slack lets a step that is round but for a rounding error count.
    step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= raw * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _decimals(ticks: Sequence[float]) -> int:
    step = min(np.diff(ticks), default=1.0)
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _apart(heights: Sequence[float], panel: _Panel) -> list[float]:
    """Return ascending heights moved so that labels do not overlap, inside the panel."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LABEL_GAP) if moved else max(height, panel.bottom + 8))
    ceiling = panel.top - 8
    # Pushed up from below first; what left the panel is pushed down again from the top.
    for at in reversed(range(len(moved))):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - LABEL_GAP
    return moved
