"""Layer 1: turns bars into indicators, components and the four scores, in one causal pass.

`score_frame` is pure: row t depends on the bars up to t and on nothing else. So the live tick is
the last row of the newest `HISTORY` bars, and a replay is one pass over all of them. A row is
either valid, with every score in [-1, +1], or empty. `explain` turns a valid row into evidence.
docs/scores.md has every formula.

Indicators come from pandas-ta-classic on TA-Lib (torra.market.library), sums and extremes of
windows from torra.market.windows. What they leave undefined in a flat market is defined here.

Bars are taken as checked: finite, positive, high and low consistent, oldest first. Too few bars are
no error: the rows are not valid. ath_calculator has the all-time high; the brain weighs the vectors
into a composite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.contracts import SCORE_DECIMALS, VECTORS
from agents.features import rows_of
from torra.market import structure, windows

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Columns = dict[str, Array]

BAR_COLUMNS: Final = ("open", "high", "low", "close", "volume")

HISTORY: Final = 750
"""Bars that a live tick computes from: from here on the last row is that of the whole history."""

WARM_UP: Final = 210
"""Bars, counted from 1, before which no row is valid: by then every recursion has forgotten its
seed to 1e-6 and SMA200 exists.
"""

FLAT: Final = 1e-8
"""A range below this share of the price is no movement: less than any tick, more than noise."""

VOLATILITY_BARS: Final = 500
"""Bars among which volatility_percentile ranks the newest ATR/close."""

SLOPE_BARS: Final = 5
"""Bars over which pa_slope measures EMA20."""

THRUST_BARS: Final = 3
"""Bars over which pa_thrust measures the close."""

HAMMER_WICK: Final = 0.60
"""Least share of the range that the long wick of a hammer takes (its body then is at most 0.40)."""

HAMMER_OTHER_WICK: Final = 0.15
"""Largest share of the range that the other wick of a hammer takes."""

CCI_SCALE: Final = 0.015
"""Lambert's constant: three quarters of all CCI values then lie between -100 and +100."""

TIE: Final = 1e-9
"""Shares this close count as equal, so that rounding noise decides nothing."""

LEAST_SHARE: Final = 0.005
"""Contributions to a score below this are left out of its note."""

INDICATORS: Final = (
    *("rsi14", "macd", "macd_signal", "macd_hist", "stoch_k", "stoch_d", "cci20"),
    *("adx14", "plus_di", "minus_di", "ema20", "sma20", "sma50", "sma200", "atr14"),
    *("bb_lower", "bb_mid", "bb_upper", "tenkan", "kijun", "span_a", "span_b"),
    *("volume_sma20", "volume_ratio"),
    *("swing_high", "swing_low", "prev_swing_high", "prev_swing_low"),
    *("support", "resistance", "support_distance_atr", "resistance_distance_atr"),
    *("fib_382", "fib_500", "fib_618"),
    *("gap_atr", "body_atr", "upper_wick", "lower_wick", "engulfing", "hammer"),
    *("trend_state", "bos", "volatility_percentile", "close"),
)
"""Columns of `score_frame` that describe the market; docs/scores.md defines each."""

_ROWS: Final = rows_of(Path(structure.__file__).with_name("components.csv"))

COMPONENTS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        vector: MappingProxyType(
            {row["component"]: float(row["weight"]) for row in _ROWS if row["vector"] == vector}
        )
        for vector in VECTORS
    }
)
"""Components of each vector with their weights, which sum to 1. A component is in [-1, +1]."""

WIDTHS: Final[Mapping[str, float]] = MappingProxyType(
    {row["component"]: float(row["width"]) for row in _ROWS if row["width"]}
)
"""The amount at which a component reaches tanh(1) = 0.76: in ATR, except kl_bollinger (half band
widths), mo_rsi and mo_direction (points of RSI and ADX) and mo_cci; for kl_levels the distance in
ATR at which a level counts 1/e.
"""

NOTES: Final[Mapping[str, str]] = MappingProxyType({row["component"]: row["note"] for row in _ROWS})
"""The note of each component, filled from the columns of its row."""

SCALES: Final[Mapping[str, float]] = MappingProxyType(
    {"price_action": 0.94, "key_levels": 0.83, "momentum": 0.75, "structure": 0.82}
)
"""score = scale x weighted mean: a standard deviation of 0.35, pooled over M15 and H1 of BTCUSD and
XAUUSD and H1 of EURUSD. None is above 1, so that a score stays in [-1, +1].
"""

COLUMNS: Final = (
    *INDICATORS,
    *(name for weights in COMPONENTS.values() for name in weights),
    *VECTORS,
)
"""Every float column of `score_frame`, in order."""

NAMES: Final = pd.Index(COLUMNS)
"""COLUMNS as the frames have them: made once."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a score: its value in [-1, +1], its weight and what was seen, in words."""

    name: str
    value: float
    weight: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class VectorEvidence:
    """A score, its components, and in one line the largest of them for and against it."""

    score: float
    note: str
    components: tuple[Component, ...]


def score_frame(bars: pd.DataFrame) -> pd.DataFrame:
    """Return indicators, components, the four scores and `valid` for every bar.

    `bars` has the columns BAR_COLUMNS; others are ignored. The result has the same index and always
    the same columns: COLUMNS (float64, NaN on rows that are not valid) and `valid` (bool, True from
    bar WARM_UP on, counted from 1). Components and scores are rounded to 1e-8. On a valid row only
    what comes from swings can be NaN: their levels, where there are none in memory.
    """
    valid = np.arange(1, len(bars) + 1) >= WARM_UP
    # One row a column: the frame shows this very table, which nobody else has.
    table = np.empty((len(COLUMNS), len(bars)))
    if valid.any():
        _fill(table, {name: bars[name].to_numpy(np.float64) for name in BAR_COLUMNS})
    # Before WARM_UP some columns have numbers that still depend on where the history began.
    table[:, : WARM_UP - 1] = np.nan
    frame = pd.DataFrame(table.T, index=bars.index, columns=NAMES, copy=False)
    frame["valid"] = valid
    return frame


def explain(row: Mapping[str, Any] | pd.Series[Any]) -> Mapping[str, VectorEvidence]:
    """Return the evidence behind the four scores of one valid row of `score_frame`.

    Each vector's is worked out when it is asked for, and once. Raises ValueError for a row that is
    not valid.
    """
    if not row["valid"]:
        raise ValueError("the row lies in the warm-up: it has no scores to explain")
    return _Explained(row)


def c_versions() -> dict[str, str]:
    """Return the versions of what lies below the Python packages and computes L1, by name."""
    version: bytes = import_module("talib").__ta_version__
    return {"ta-lib-c": version.decode().split()[0]}


# --- evidence -------------------------------------------------------------------------------


class _Explained(Mapping[str, VectorEvidence]):
    """The evidence of one row, worked out when asked for: that of most rows is never read."""

    __slots__ = ("_cache", "_row")

    def __init__(self, row: Mapping[str, Any] | pd.Series[Any]) -> None:
        self._row = row
        self._cache: dict[str, VectorEvidence] = {}

    def __getitem__(self, vector: str) -> VectorEvidence:
        evidence = self._cache.get(vector)
        if evidence is None:
            if vector not in COMPONENTS:
                raise KeyError(vector)
            evidence = self._cache[vector] = _evidence(vector, self._row)
        return evidence

    def __iter__(self) -> Iterator[str]:
        return iter(VECTORS)

    def __len__(self) -> int:
        return len(VECTORS)

    def __repr__(self) -> str:
        return repr(dict(self))


def _evidence(vector: str, row: Mapping[str, Any] | pd.Series[Any]) -> VectorEvidence:
    values = _Numbers(row)
    components = tuple(
        # "none": a level without a swing is NaN in the row.
        Component(name, values[name], weight, NOTES[name].format_map(values).replace("nan", "none"))
        for name, weight in COMPONENTS[vector].items()
    )
    score = values[vector]
    return VectorEvidence(score, _headline(score, SCALES[vector], components), components)


class _Numbers(dict[str, float]):
    """The columns of a row as floats, converted when asked for."""

    def __init__(self, row: Mapping[str, Any] | pd.Series[Any]) -> None:
        super().__init__(slope_bars=SLOPE_BARS, thrust_bars=THRUST_BARS)
        self._row = row

    def __missing__(self, name: str) -> float:
        value = self[name] = float(self._row[name])
        return value


def _headline(score: float, scale: float, components: tuple[Component, ...]) -> str:
    """Name the two largest contributions for the score and the largest against it."""
    shares = [(scale * part.weight * part.value, part.note) for part in components]
    # Python sorts stably: equal shares keep the order of COMPONENTS, so a note is reproducible.
    shares.sort(key=lambda share: -abs(share[0]))
    notes = [
        (share, f"{note} ({share:+.2f})") for share, note in shares if abs(share) >= LEAST_SHARE
    ]
    behind = [text for share, text in notes if (share > 0.0) == (score >= 0.0)]
    against = [text for share, text in notes if (share > 0.0) != (score >= 0.0)]
    text = f"{score:+.2f}: {'; '.join(behind[:2]) or 'nothing moves'}"
    return f"{text}; against: {against[0]}" if against else text


# --- scores and components ------------------------------------------------------------------


def _fill(table: Array, bars: Columns) -> None:
    """Write every column of COLUMNS into its row of the table."""
    row = {name: table[place] for place, name in enumerate(COLUMNS)}
    indicators = _indicators(bars)
    for name in INDICATORS:
        row[name][:] = indicators[name]
    # In a flat market the ATR is 0: whatever is measured in it is 0.
    atr = _unit(row["atr14"])
    for part in (_price_action, _key_levels, _momentum, _structure):
        for name, values in part(row, atr).items():
            row[name][:] = values
    _round(table[len(INDICATORS) : -len(VECTORS)])
    # From the rounded components, so that a reader can recompute a score by hand (docs/scores.md).
    for vector, weights in COMPONENTS.items():
        total = sum(weight * row[name] for name, weight in weights.items())
        row[vector][:] = SCALES[vector] * total
    _round(table[-len(VECTORS) :])


def _round(rows: Array) -> None:
    """Round to the decimals of a score, in place and without negative zeros."""
    np.round(rows, SCORE_DECIMALS, out=rows)
    rows += 0.0


def _price_action(ind: Columns, atr: Array) -> Columns:
    close, ema = ind["close"], ind["ema20"]
    body = np.tanh(ind["body_atr"] / WIDTHS["pa_body"])
    return {
        "pa_trend": _squash("pa_trend", close - ema, atr),
        "pa_slope": _squash("pa_slope", ema - windows.before(ema, SLOPE_BARS), atr),
        "pa_thrust": _squash("pa_thrust", close - windows.before(close, THRUST_BARS), atr),
        "pa_body": body,
        "pa_wicks": ind["lower_wick"] - ind["upper_wick"],
        "pa_pattern": (ind["engulfing"] + ind["hammer"]) / 2.0,
        "pa_gap": np.tanh(ind["gap_atr"] / WIDTHS["pa_gap"]),
        "pa_volume": body * np.tanh(np.maximum(ind["volume_ratio"] - 1.0, 0.0)),
    }


def _key_levels(ind: Columns, atr: Array) -> Columns:
    close = ind["close"]
    half_band = _unit((ind["bb_upper"] - ind["bb_lower"]) / 2.0)
    zone = _outside(close, ind["fib_382"], ind["fib_618"])
    return {
        "kl_bollinger": _squash("kl_bollinger", close - ind["bb_mid"], half_band),
        "kl_cloud": _squash("kl_cloud", _outside(close, ind["span_a"], ind["span_b"]), atr),
        "kl_fibonacci": _known(_squash("kl_fibonacci", zone, atr)),
        "kl_levels": _nearness(ind["support_distance_atr"])
        - _nearness(ind["resistance_distance_atr"]),
        "kl_lines": _squash("kl_lines", ind["tenkan"] - ind["kijun"], atr),
    }


def _momentum(ind: Columns, atr: Array) -> Columns:
    plus, minus = ind["plus_di"], ind["minus_di"]
    direction = (plus - minus) / _unit(plus + minus)
    return {
        "mo_rsi": np.tanh((ind["rsi14"] - 50.0) / WIDTHS["mo_rsi"]),
        "mo_macd": _squash("mo_macd", ind["macd"], atr),
        "mo_histogram": _squash("mo_histogram", ind["macd_hist"], atr),
        "mo_stochastic": (ind["stoch_k"] - 50.0) / 50.0,
        "mo_cci": np.tanh(ind["cci20"] / WIDTHS["mo_cci"]),
        "mo_direction": direction * np.tanh(ind["adx14"] / WIDTHS["mo_direction"]),
    }


def _structure(ind: Columns, atr: Array) -> Columns:
    moved = ind["swing_high"] - ind["prev_swing_high"] + ind["swing_low"] - ind["prev_swing_low"]
    return {
        "st_swings": _known(_squash("st_swings", moved, atr)),
        "st_state": ind["trend_state"],
        "st_break": ind["bos"],
        "st_medium": _squash("st_medium", ind["close"] - ind["sma50"], atr),
        "st_long": _squash("st_long", ind["sma50"] - ind["sma200"], atr),
    }


def _squash(component: str, amount: Array, unit: Array) -> Array:
    """Bring an amount into (-1, +1), smoothly, by the component's width."""
    return np.tanh(amount / (WIDTHS[component] * unit))


def _unit(amount: Array) -> Array:
    """Return what others are divided by; infinite where it is 0, so that they become 0."""
    return np.where(amount > 0.0, amount, np.inf)


def _known(values: Array) -> Array:
    """Return values with 0 where they are unknown (no swing)."""
    return np.where(np.isnan(values), 0.0, values)


def _outside(price: Array, one: Array, other: Array) -> Array:
    """Return how far the price is above both edges of a zone, or (negative) below; 0 inside."""
    above = np.maximum(price - np.maximum(one, other), 0.0)
    return above - np.maximum(np.minimum(one, other) - price, 0.0)


def _nearness(distance_atr: Array) -> Array:
    """Return 1 at a level, falling to 1/e at its width; 0 where there is no level."""
    return _known(np.exp(-distance_atr / WIDTHS["kl_levels"]))


# --- indicators -----------------------------------------------------------------------------


def _indicators(bars: Columns) -> Columns:
    """Return the columns of INDICATORS for the arrays of BAR_COLUMNS."""
    # Here, not above: both libraries take time and memory, and who scores nothing needs none.
    from torra.market import library  # noqa: PLC0415

    columns = library.columns(bars) | _of_windows(bars)
    columns["close"] = close = bars["close"]
    # Before everything that divides by the ATR: in a flat market it becomes 0 here.
    _define_flat(columns, bars)
    atr, average = _unit(columns["atr14"]), columns["volume_sma20"]
    columns |= _candles(bars, atr)
    columns |= structure.structure(bars["high"], bars["low"], close)
    columns["support_distance_atr"] = (close - columns["support"]) / atr
    columns["resistance_distance_atr"] = (columns["resistance"] - close) / atr
    # No volume for 20 bars says nothing: it counts as the average.
    columns["volume_ratio"] = np.where(average > 0.0, bars["volume"] / _unit(average), 1.0)
    volatility = pd.Series(columns["atr14"] / close).rolling(VOLATILITY_BARS, min_periods=1)
    columns["volatility_percentile"] = 100.0 * volatility.rank(pct=True).to_numpy()
    return columns


def _of_windows(bars: Columns) -> Columns:
    """Return the indicators that are made of the means and the deviations of windows."""
    high, low, close = bars["high"], bars["low"], bars["close"]
    middle = windows.mean(close, 20)
    band = 2.0 * windows.standard_deviation(close, middle, 20)
    lowest, span = windows.lowest(low, 14), _range(bars, 14)
    # A window without range says nothing.
    stoch = np.where(span == 0.0, 50.0, 100.0 * (close - lowest) / _unit(span))
    stoch = windows.mean(stoch, 3)
    return {
        "sma20": middle,
        "sma50": windows.mean(close, 50),
        "sma200": windows.mean(close, 200),
        "volume_sma20": windows.mean(bars["volume"], 20),
        "bb_lower": middle - band,
        "bb_mid": middle,
        "bb_upper": middle + band,
        "stoch_k": stoch,
        "stoch_d": windows.mean(stoch, 3),
        "cci20": _cci((high + low + close) / 3.0, 20),
    }


def _cci(typical: Array, length: int) -> Array:
    means = windows.mean(typical, length)
    deviation = windows.mean_deviation(typical, means, length)
    # Rounding noise of equal prices would be blown up to a full CCI.
    unit = np.where(deviation > FLAT * typical, CCI_SCALE * deviation, np.inf)
    return (typical - means) / unit


def _define_flat(columns: Columns, bars: Columns) -> None:
    """Give the indicators their value where nothing moves: no information, score 0."""
    floor = FLAT * columns["close"]
    still = columns["atr14"] <= floor
    close = bars["close"]
    # While the close is still that of the first bar TA-Lib's RSI is 0.
    unmoved = ~np.logical_or.accumulate(close != close[0])
    columns["rsi14"] = np.where(still | unmoved, 50.0, columns["rsi14"])
    for name in ("atr14", "adx14", "plus_di", "minus_di"):
        columns[name] = np.where(still, 0.0, columns[name])
    # not >, instead of <=: NaN, a window that is not there yet, counts as flat as well.
    columns["cci20"] = np.where(_range(bars, 20) > floor, columns["cci20"], 0.0)
    wide = columns["bb_upper"] - columns["bb_lower"] > floor
    for name in ("bb_upper", "bb_lower"):
        columns[name] = np.where(wide, columns[name], columns["bb_mid"])


def _range(bars: Columns, length: int) -> Array:
    """Return highest high less lowest low of the newest `length` bars; NaN before there are."""
    return windows.highest(bars["high"], length) - windows.lowest(bars["low"], length)


def _candles(bars: Columns, atr: Array) -> Columns:
    opened, high, low, close = (bars[name] for name in ("open", "high", "low", "close"))
    before_open, before_close = windows.before(opened, 1), windows.before(close, 1)
    body, before, span = close - opened, before_close - before_open, _unit(high - low)
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    upper, lower = (high - top) / span, (bottom - low) / span
    covers = (top >= before_open) & (bottom <= before_close)
    covers_down = (top >= before_close) & (bottom <= before_open)
    swallows = np.where(body > 0.0, covers, covers_down)
    return {
        "gap_atr": (opened - before_close) / atr,
        "body_atr": body / atr,
        "upper_wick": upper,
        "lower_wick": lower,
        "engulfing": np.sign(body) * (swallows & (body * before < 0.0) & (abs(body) > abs(before))),
        "hammer": _hammer(lower, upper) - _hammer(upper, lower),
    }


def _hammer(long: Array, other: Array) -> Array:
    shape = (long >= HAMMER_WICK - TIE) & (other <= HAMMER_OTHER_WICK + TIE)
    return shape.astype(np.float64)
