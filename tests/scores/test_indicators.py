"""Every indicator agrees with a slow, plain reading of its textbook definition, and is defined
where the textbook is not: flat prices, no volume, no swing, too few bars.
"""

from __future__ import annotations

import logging
import math
import statistics
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pandas_ta_classic
import pytest

import technical_calculator
from agents.contracts import VECTORS
from technical_calculator import INDICATORS, WARM_UP, explain, score_frame
from tests.worlds.price_series import mirrored, sample, walk

Values = list[float]
NAN = math.nan

# --- slow references: one loop each, straight from the definitions in docs/scores.md -------------


def over(values: Sequence[float], length: int, measure: Callable[[list[float]], float]) -> Values:
    return [
        NAN if t + 1 < length else measure(list(values[t + 1 - length : t + 1]))
        for t in range(len(values))
    ]


def mean(values: Sequence[float], length: int) -> Values:
    return over(values, length, lambda window: math.fsum(window) / length)


def smoothed(values: Sequence[float], length: int, rate: float) -> Values:
    """Exponential average seeded with the mean of the first `length` values that exist."""
    start = next(t for t, value in enumerate(values) if not math.isnan(value))
    result, seed = [NAN] * len(values), start + length - 1
    result[seed] = math.fsum(values[start : seed + 1]) / length
    for t in range(seed + 1, len(values)):
        result[t] = result[t - 1] + rate * (values[t] - result[t - 1])
    return result


def ema(values: Sequence[float], length: int) -> Values:
    return smoothed(values, length, 2.0 / (length + 1))


def wilder(values: Sequence[float], length: int) -> Values:
    return smoothed(values, length, 1.0 / length)


def true_range(bars: pd.DataFrame) -> Values:
    high, low, close = (list(bars[name]) for name in ("high", "low", "close"))
    return [NAN] + [
        max(high[t] - low[t], abs(high[t] - close[t - 1]), abs(low[t] - close[t - 1]))
        for t in range(1, len(bars))
    ]


def rsi(bars: pd.DataFrame) -> Values:
    change = [NAN, *np.diff(bars["close"])]
    gain = wilder([max(x, 0.0) if x == x else NAN for x in change], 14)
    loss = wilder([max(-x, 0.0) if x == x else NAN for x in change], 14)
    return [100.0 * g / (g + b) if g == g else NAN for g, b in zip(gain, loss, strict=True)]


def macd(bars: pd.DataFrame) -> dict[str, Values]:
    close = list(bars["close"])
    line = [fast - slow for fast, slow in zip(ema(close, 12), ema(close, 26), strict=True)]
    signal = ema(line, 9)
    hist = [x - y for x, y in zip(line, signal, strict=True)]
    return {"macd": line, "macd_signal": signal, "macd_hist": hist}


def directional(bars: pd.DataFrame) -> dict[str, Values]:
    high, low = list(bars["high"]), list(bars["low"])
    up, down = [NAN], [NAN]
    for t in range(1, len(bars)):
        rise, fall = high[t] - high[t - 1], low[t - 1] - low[t]
        up.append(rise if rise > fall and rise > 0 else 0.0)
        down.append(fall if fall > rise and fall > 0 else 0.0)
    moved = zip(wilder(up, 14), wilder(down, 14), wilder(true_range(bars), 14), strict=True)
    index = [(100 * u / r, 100 * d / r) if r == r else (NAN, NAN) for u, d, r in moved]
    spread = [100 * abs(u - d) / (u + d) if u == u else NAN for u, d in index]
    return {
        "plus_di": [u for u, _ in index],
        "minus_di": [d for _, d in index],
        "adx14": wilder(spread, 14),
    }


def stochastic(bars: pd.DataFrame) -> dict[str, Values]:
    top, bottom = over(list(bars["high"]), 14, max), over(list(bars["low"]), 14, min)
    raw = [
        50.0 if h == b else 100.0 * (c - b) / (h - b)
        for c, h, b in zip(bars["close"], top, bottom, strict=True)
    ]
    k = mean(raw, 3)
    return {"stoch_k": k, "stoch_d": mean(k, 3)}


def cci(bars: pd.DataFrame) -> Values:
    def one(window: list[float]) -> float:
        middle = math.fsum(window) / 20
        return (window[-1] - middle) / (0.015 * math.fsum(abs(x - middle) for x in window) / 20)

    return over(list((bars["high"] + bars["low"] + bars["close"]) / 3.0), 20, one)


def bollinger(bars: pd.DataFrame) -> dict[str, Values]:
    close = list(bars["close"])
    middle, spread = mean(close, 20), over(close, 20, statistics.pstdev)
    pairs = list(zip(middle, spread, strict=True))
    return {
        "bb_mid": middle,
        "bb_lower": [m - 2 * s for m, s in pairs],
        "bb_upper": [m + 2 * s for m, s in pairs],
    }


def ichimoku(bars: pd.DataFrame) -> dict[str, Values]:
    def middle(length: int) -> Values:
        top, bottom = over(list(bars["high"]), length, max), over(list(bars["low"]), length, min)
        return [(h + b) / 2 for h, b in zip(top, bottom, strict=True)]

    tenkan, kijun, slow = middle(9), middle(26), middle(52)
    ahead = [NAN] * 26
    span_a = ahead + [(x + y) / 2 for x, y in zip(tenkan, kijun, strict=True)][:-26]
    return {"tenkan": tenkan, "kijun": kijun, "span_a": span_a, "span_b": ahead + slow[:-26]}


def volatility_percentile(bars: pd.DataFrame) -> Values:
    share = [a / c for a, c in zip(wilder(true_range(bars), 14), bars["close"], strict=True)]
    result = []
    for t in range(len(share)):
        window = [x for x in share[max(0, t - 499) : t + 1] if x == x]
        below, equal = sum(x < share[t] for x in window), sum(x == share[t] for x in window)
        result.append(100 * (below + (equal + 1) / 2) / len(window) if window else NAN)
    return result


def pivots(values: Sequence[float], t: int) -> list[tuple[int, float]]:
    """Peaks known at bar t, newest first: above the 5 bars before, not below the 5 after."""
    found = []
    for p in range(max(5, t - 500), t - 4):
        before, after = values[p - 5 : p], values[p + 1 : p + 6]
        if all(values[p] > x for x in before) and all(values[p] >= x for x in after):
            found.append((p, values[p]))
    return found[::-1]


def structure(bars: pd.DataFrame, t: int) -> dict[str, float]:
    close = bars["close"].iloc[t]
    highs = pivots(list(bars["high"]), t)[:6]
    lows = [(p, -x) for p, x in pivots(list(-bars["low"]), t)[:6]]
    high, low = [*(x for _, x in highs), NAN, NAN], [*(x for _, x in lows), NAN, NAN]
    levels = [x for _, x in highs + lows]
    result = {
        "swing_high": high[0],
        "prev_swing_high": high[1],
        "swing_low": low[0],
        "prev_swing_low": low[1],
        "support": max((x for x in levels if x <= close), default=NAN),
        "resistance": min((x for x in levels if x >= close), default=NAN),
        "trend_state": float(high[0] > high[1] and low[0] > low[1])
        - float(high[0] < high[1] and low[0] < low[1]),
        "bos": float(close > high[0]) - float(close < low[0]),
    }
    leg = high[0] - low[0]
    known = bool(highs and lows) and leg > 0 and highs[0][0] != lows[0][0]
    upward = known and highs[0][0] > lows[0][0]
    for name, share in (("fib_382", 0.382), ("fib_500", 0.5), ("fib_618", 0.618)):
        level = high[0] - share * leg if upward else low[0] + share * leg
        result[name] = level if known else NAN
    return result


def candle(bars: pd.DataFrame, t: int, atr: float) -> dict[str, float]:
    o, h, b, c = (float(bars[name].iloc[t]) for name in ("open", "high", "low", "close"))
    o1, c1 = float(bars["open"].iloc[t - 1]), float(bars["close"].iloc[t - 1])
    upper = (h - max(o, c)) / (h - b) if h > b else 0.0
    lower = (min(o, c) - b) / (h - b) if h > b else 0.0
    larger = abs(c - o) > abs(c1 - o1)
    up = c > o and c1 < o1 and larger and o <= c1 and c >= o1
    down = c < o and c1 > o1 and larger and o >= c1 and c <= o1
    return {
        "gap_atr": (o - c1) / atr,
        "body_atr": (c - o) / atr,
        "upper_wick": upper,
        "lower_wick": lower,
        "engulfing": float(up) - float(down),
        "hammer": float(lower >= 0.6 and upper <= 0.15) - float(upper >= 0.6 and lower <= 0.15),
    }


def reference(bars: pd.DataFrame) -> pd.DataFrame:
    close, volume = list(bars["close"]), list(bars["volume"])
    columns = {
        "rsi14": rsi(bars),
        "cci20": cci(bars),
        "ema20": ema(close, 20),
        "sma20": mean(close, 20),
        "sma50": mean(close, 50),
        "sma200": mean(close, 200),
        "atr14": wilder(true_range(bars), 14),
        "volume_sma20": mean(volume, 20),
        "volatility_percentile": volatility_percentile(bars),
        "close": close,
    }
    for family in (macd, directional, stochastic, bollinger, ichimoku):
        columns |= family(bars)
    frame = pd.DataFrame(columns, index=bars.index).iloc[WARM_UP - 1 :]
    rows = range(WARM_UP - 1, len(bars))
    swings = [structure(bars, t) for t in rows]
    candles = [candle(bars, t, atr) for t, atr in zip(rows, frame["atr14"], strict=True)]
    frame = frame.join(pd.DataFrame(swings, index=frame.index))
    frame = frame.join(pd.DataFrame(candles, index=frame.index))
    frame["volume_ratio"] = [
        v / m if m > 0 else 1.0
        for v, m in zip(bars["volume"][WARM_UP - 1 :], frame["volume_sma20"], strict=True)
    ]
    frame["support_distance_atr"] = (frame["close"] - frame["support"]) / frame["atr14"]
    frame["resistance_distance_atr"] = (frame["resistance"] - frame["close"]) / frame["atr14"]
    return frame


# --- agreement ----------------------------------------------------------------------------------

SEEDED = ("plus_di", "minus_di", "adx14")
"""The library seeds Wilder's sums of DI and ADX with 13 terms, Wilder with 14: the difference
fades by 13/14 a bar, to 1e-6 at bar 210 and to 1e-9 by bar 310.
"""


def assert_agrees(bars: pd.DataFrame) -> None:
    ours, theirs = score_frame(bars).iloc[WARM_UP - 1 :], reference(bars)
    assert set(theirs) == set(INDICATORS)
    for name in INDICATORS:
        x, y = ours[name].to_numpy(), theirs[name].to_numpy()
        scale = 1e-9 * max(1.0, float(np.nanmax(np.abs(y), initial=0.0)))
        if name in SEEDED:
            np.testing.assert_allclose(x[:150], y[:150], atol=1e-3, err_msg=name)
            x, y = x[150:], y[150:]
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=scale, equal_nan=True, err_msg=name)


def test_indicators_agree_with_the_slow_reference(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(200, 3)):
        assert_agrees(walk(420 + 37 * (seed % 5), seed))


@pytest.mark.journey
@pytest.mark.parametrize("name", ["EURUSD_H1", "BTCUSD_M15"])
def test_indicators_agree_on_real_bars(name: str, scaled: Callable[..., int]) -> None:
    assert_agrees(sample(name).iloc[1000 : 1000 + scaled(600, least=400)])


def test_real_bars_show_every_shape() -> None:
    frame = score_frame(sample("BTCUSD_M15"))
    for name in ("engulfing", "hammer", "trend_state", "bos"):
        assert set(frame[name].dropna()) == {-1.0, 0.0, 1.0}, name


# --- where the definitions end ------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5, 14, 60, 199, WARM_UP - 1])
def test_too_few_bars_give_every_column_and_no_value(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        frame = score_frame(walk(300, 1).iloc[:count])
    assert list(frame) == list(score_frame(walk(300, 1)))
    assert len(frame) == count and not frame["valid"].any()
    assert frame.drop(columns="valid").isna().all(axis=None)
    assert (frame.dtypes.drop("valid") == np.float64).all() and frame["valid"].dtype == bool
    assert not caplog.records


def test_a_row_is_valid_from_bar_210_counted_from_1() -> None:
    frame = score_frame(walk(400, 2))
    assert frame["valid"].tolist() == [False] * 209 + [True] * 191
    assert frame[list(technical_calculator.COLUMNS)][:209].isna().all(axis=None)
    swings = [name for name in INDICATORS if name.startswith(("sw", "prev", "su", "res", "fib"))]
    assert frame.drop(columns=swings)[209:].notna().all(axis=None)


def test_a_market_that_never_moves_says_nothing() -> None:
    bars = walk(400, 3, flat=(0, 400)).assign(volume=0.0)
    last = score_frame(bars).iloc[-1]
    want = {"rsi14": 50, "stoch_k": 50, "stoch_d": 50, "cci20": 0, "adx14": 0, "plus_di": 0}
    want |= {"minus_di": 0, "atr14": 0, "volume_ratio": 1, "bb_upper": last["bb_lower"], "macd": 0}
    assert {name: last[name] for name in want} == want
    assert (last[[*technical_calculator.COMPONENTS]] == 0).all()
    assert "nothing moves" in explain(last)["momentum"].note


def test_a_market_that_stops_falls_silent_without_noise() -> None:
    bars = walk(1100, 4, flat=(500, 1100))
    frame = score_frame(bars)
    assert np.isfinite(frame[list(VECTORS)][209:]).all(axis=None)
    quiet = frame.iloc[-1]
    assert quiet["atr14"] == 0 and quiet["rsi14"] == 50 and quiet["cci20"] == 0
    assert quiet["stoch_k"] == 50 and quiet["adx14"] == 0
    assert quiet["momentum"] == quiet["price_action"] == 0
    assert math.isnan(quiet["swing_high"])


def test_an_rsi_without_a_change_of_the_close_is_its_middle() -> None:
    """TA-Lib says 0 there, the far end of its range."""
    bars = walk(900, 14).assign(close=1000.0)
    bars["high"], bars["low"] = bars["high"].clip(lower=1001.0), bars["low"].clip(upper=999.0)
    bars.loc[bars.index[:300], "close"] = walk(900, 14)["close"].iloc[:300]
    still, whole = score_frame(bars.iloc[320:]), score_frame(bars)["rsi14"]
    assert (still["rsi14"][209:] == 50.0).all() and (still["mo_rsi"][209:] == 0.0).all()
    assert (still["atr14"][209:] > 1.0).all()
    assert whole.iloc[301] not in {0.0, 50.0}
    np.testing.assert_allclose(whole.iloc[301:], whole.iloc[301])


def test_without_ta_lib_nothing_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas-ta-classic would compute other numbers, and say nothing."""
    monkeypatch.setitem(sys.modules, "talib", None)
    monkeypatch.setitem(pandas_ta_classic.Imports, "talib", False)
    monkeypatch.delitem(sys.modules, "torra.market.library", raising=False)
    monkeypatch.delattr("torra.market.library", raising=False)
    with pytest.raises(ImportError, match="talib"):
        score_frame(walk(300, 15))


def test_the_stochastic_of_a_flat_window_is_its_middle() -> None:
    bars = walk(400, 5, flat=(300, 330))
    ours, slow = score_frame(bars), stochastic(bars)
    for name, values in slow.items():
        np.testing.assert_allclose(ours[name][209:], values[209:], atol=1e-9)
    assert ours["stoch_k"].iloc[325] == 50.0


def test_volume_without_an_average_counts_as_average() -> None:
    bars = walk(400, 6)
    bars.loc[bars.index[300:340], "volume"] = 0.0
    frame = score_frame(bars)
    assert (frame["volume_ratio"].iloc[320:340] == 1.0).all()
    assert (frame["volume_ratio"].iloc[300:318] == 0.0).all()
    assert (frame["pa_volume"].iloc[300:340] == 0.0).all()


def test_swings_older_than_the_memory_are_forgotten() -> None:
    rising = np.arange(1000.0, 1000.0 + 900)
    bars = walk(900, 7).assign(open=rising, high=rising + 1, low=rising - 1, close=rising)
    bars.loc[bars.index[100:103], "low"] -= 20.0
    frame = score_frame(bars)
    assert frame["swing_low"].iloc[600] == 1000.0 + 100 - 21
    assert math.isnan(frame["swing_low"].iloc[601]) and math.isnan(frame["support"].iloc[601])
    assert frame["st_swings"].iloc[601] == 0 and frame["kl_levels"].iloc[601] == 0
    assert "none" in explain(frame.iloc[601])["key_levels"].components[3].note


def test_a_swing_appears_at_its_confirmation_and_stays() -> None:
    bars = walk(300, 8)
    bars.loc[bars.index[250], "high"] += 100.0
    seen = score_frame(bars)["swing_high"]
    peak = bars["high"].iloc[250]
    assert seen.iloc[254] != peak and seen.iloc[255] == peak


def test_what_a_feed_may_hand_over() -> None:
    bars = walk(260, 9)
    whole = bars.round().astype(int)
    pd.testing.assert_frame_equal(score_frame(whole), score_frame(whole.astype(float)))
    more = bars.assign(spread="wide", time_source="broker")
    before = more.copy(deep=True)
    pd.testing.assert_frame_equal(score_frame(more), score_frame(bars))
    pd.testing.assert_frame_equal(more, before)
    assert score_frame(bars).index.equals(bars.index)


def test_upside_down_support_is_resistance() -> None:
    one, other = score_frame(walk(500, 10)), score_frame(mirrored(walk(500, 10)))
    for up, down in (("swing_high", "swing_low"), ("support", "resistance")):
        np.testing.assert_array_equal(one[up], 2048.0 - other[down])
    for name in ("trend_state", "bos", "engulfing", "hammer"):
        np.testing.assert_array_equal(one[name], -other[name])
