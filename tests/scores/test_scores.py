"""The four scores: bounded, blind to scale, antisymmetric, of one spread, explained, and defined in
docs/scores.md so that a reader can recompute one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from agents.contracts import VECTORS
from ath_calculator import record_score
from technical_calculator import (
    COMPONENTS,
    INDICATORS,
    SCALES,
    WARM_UP,
    WIDTHS,
    explain,
    score_frame,
)
from tests import ROOT
from tests.worlds.price_series import SAMPLES, mirrored, sample, times, times_of, walk
from torra.clock import duration

NAMES = [name for weights in COMPONENTS.values() for name in weights]
ROUNDING = 1.01e-8
"""One unit of the last decimal: where a rounded value may tip over."""


def scores(bars: pd.DataFrame) -> pd.DataFrame:
    frame = score_frame(bars)
    return frame.loc[frame["valid"], list(VECTORS)]


@pytest.fixture(scope="module")
def frames() -> dict[str, pd.DataFrame]:
    return {name: score_frame(sample(name)) for name in SAMPLES}


# --- bounds and symmetries ----------------------------------------------------------------------


@effort(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
    start=st.integers(0, 400),
    length=st.integers(0, 300),
)
def test_every_component_and_score_is_bounded(
    seed: int, scale: float, start: int, length: int
) -> None:
    bars = times(walk(450, seed, flat=(start, start + length)), price=scale)
    shown = score_frame(bars).loc[lambda frame: frame["valid"], [*NAMES, *VECTORS]]
    assert np.isfinite(shown).all(axis=None) and (shown.abs() <= 1.0).all(axis=None)


def test_a_bound_holds_by_construction() -> None:
    for vector, weights in COMPONENTS.items():
        assert math.isclose(sum(weights.values()), 1.0) and min(weights.values()) > 0
        assert 0 < SCALES[vector] <= 1
    assert tuple(COMPONENTS) == tuple(SCALES) == VECTORS
    assert len(set(NAMES)) == len(NAMES) and set(WIDTHS) <= set(NAMES)


@pytest.mark.parametrize(("price", "volume"), [(10.0, 1.0), (1.0, 10.0), (1e-4, 1e5)])
def test_scores_are_blind_to_scale(price: float, volume: float) -> None:
    for bars in (walk(700, 1), sample("BTCUSD_M15").iloc[:900], sample("EURUSD_H1").iloc[:900]):
        one, other = scores(bars), scores(times(bars, price=price, volume=volume))
        assert (one - other).abs().max(axis=None) <= ROUNDING
        assert (one != other).mean(axis=None) < 0.001


@pytest.mark.parametrize("power", [10, -60])
def test_a_power_of_two_changes_not_a_bit(power: int) -> None:
    """Not of prices either whose movements a library might take for none."""
    bars = sample("EURUSD_H1").iloc[:900]
    pd.testing.assert_frame_equal(
        scores(bars), scores(times(bars, price=2.0**power, volume=8.0)), check_exact=True
    )


def test_upside_down_prices_give_the_opposite_scores(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(200, 4)):
        bars = walk(600, seed, flat=(400, 400 + 30 * (seed % 2)))
        one, other = scores(bars), scores(mirrored(bars))
        assert (one + other).abs().max(axis=None) <= ROUNDING


def test_one_over_the_price_gives_about_the_opposite_scores() -> None:
    bars = sample("EURUSD_H1").iloc[:2000]
    turned = (1.0 / bars[["open", "low", "high", "close"]]).set_axis(
        ["open", "high", "low", "close"], axis=1
    )
    gap = (scores(bars) + scores(turned.assign(volume=bars["volume"]))).abs()
    assert gap.mean().max() < 0.01 and gap.quantile(0.99).max() < 0.1


def test_scores_move_with_the_market() -> None:
    rising = 1000.0 + np.arange(400.0) + np.tile([0.0, 4.0, 6.0, 3.0, -4.0] * 2, 40)
    bars = walk(400, 2).assign(
        open=np.concatenate([[999.0], rising[:-1]]), high=rising + 6, low=rising - 6, close=rising
    )
    assert (scores(bars).mean() > 0.2).all()


def test_the_same_bars_give_the_same_bits() -> None:
    bars = walk(500, 3)
    pd.testing.assert_frame_equal(score_frame(bars), score_frame(bars.copy()), check_exact=True)


def test_scores_have_eight_decimals_and_no_negative_zero(frames: dict[str, pd.DataFrame]) -> None:
    for frame in frames.values():
        shown = frame.loc[frame["valid"], [*NAMES, *VECTORS]].to_numpy()
        np.testing.assert_array_equal(shown, np.round(shown, 8))
        assert not np.signbit(shown[shown == 0]).any()


GOLDEN = {
    ("EURUSD_H1", "2017-02-01T10:00Z"): (0.56379472, 0.43171191, 0.24295771, 0.4991156),
    ("EURUSD_H1", "2017-09-08T12:00Z"): (-0.18016644, 0.23831183, 0.13924289, 0.3929582),
    ("EURUSD_H1", "2017-12-29T10:00Z"): (0.48750575, 0.56843176, 0.60042214, 0.77405815),
    ("BTCUSD_M15", "2021-10-06T13:15Z"): (0.31679528, 0.56101151, 0.66651994, 0.25155366),
    ("BTCUSD_M15", "2021-12-04T05:00Z"): (-0.7090029, -0.57751908, -0.68954781, -0.51725871),
    ("BTCUSD_M15", "2021-12-20T00:00Z"): (-0.64482092, -0.65674472, -0.41439245, -0.08159109),
}


def test_golden_scores(frames: dict[str, pd.DataFrame]) -> None:
    for (name, time), want in GOLDEN.items():
        row = frames[name].loc[pd.Timestamp(time), list(VECTORS)]
        np.testing.assert_allclose(row.astype(float), want, rtol=0, atol=ROUNDING, err_msg=time)


# --- spread -------------------------------------------------------------------------------------


def test_every_component_speaks_on_every_shipped_stream(frames: dict[str, pd.DataFrame]) -> None:
    for name, frame in frames.items():
        assert ((frame[NAMES] != 0) & frame[NAMES].notna()).any().all(), name


def test_the_four_scores_have_one_spread(frames: dict[str, pd.DataFrame]) -> None:
    for name, frame in frames.items():
        assert frame[list(VECTORS)].std().between(0.32, 0.38).all(), name


WEIGHTS = {"price_action": 0.25, "key_levels": 0.20, "momentum": 0.25, "structure": 0.20}
ATH_WEIGHT, TIMEFRAME_WEIGHTS, THRESHOLD = 0.10, {"M15": 0.4, "H1": 0.6}, 0.50


def composites(frames: dict[str, pd.DataFrame], symbol: str, timeframe: str) -> pd.Series:
    """Composite of every valid bar by its close time; the records are those of the stream."""
    bars, frame = sample(f"{symbol}_{timeframe}"), frames[f"{symbol}_{timeframe}"]
    records = bars["high"].cummax(), bars["low"].cummin()
    rows = zip(bars["close"], *records, frame["atr14"].fillna(0.0), strict=True)
    total = ATH_WEIGHT * np.array([record_score(*row) for row in rows])
    total += np.sum([weight * frame[vector] for vector, weight in WEIGHTS.items()], axis=0)
    return pd.Series(total, times_of(frame) + duration(timeframe))[frame["valid"].to_numpy()]


def consensus(series: dict[str, pd.Series]) -> list[float]:
    """Consensus at every tick: weighted mean of the newest composites up to two bars old. Where
    two close together the longer timeframe goes first.
    """
    ticks = [
        (time, -duration(tf), tf, value) for tf, s in series.items() for time, value in s.items()
    ]
    newest: dict[str, tuple[pd.Timestamp, float]] = {}
    result = []
    for time, _, timeframe, value in sorted(ticks):
        newest[timeframe] = cast(pd.Timestamp, time), value
        fresh = {tf: v for tf, (at, v) in newest.items() if time - at <= 2 * duration(tf)}
        weight = sum(TIMEFRAME_WEIGHTS[tf] for tf in fresh)
        result.append(sum(TIMEFRAME_WEIGHTS[tf] * v for tf, v in fresh.items()) / weight)
    return result


@pytest.mark.parametrize(("symbol", "timeframes"), [("BTCUSD", ("M15", "H1")), ("EURUSD", ("H1",))])
def test_both_verdicts_happen_and_neither_often(
    symbol: str, timeframes: tuple[str, ...], frames: dict[str, pd.DataFrame]
) -> None:
    values = np.array(consensus({tf: composites(frames, symbol, tf) for tf in timeframes}))
    assert len(values) > 6000
    buy, sell = (values >= THRESHOLD).mean(), (values <= -THRESHOLD).mean()
    assert 0.01 <= buy <= 0.25 and 0.01 <= sell <= 0.25
    shown = re.search(rf"\| {symbol} \(.*?\) \| ([\d.]+) % \| ([\d.]+) % \|", DOCS)
    assert shown and [float(x) for x in shown.groups()] == [round(100 * x, 1) for x in (buy, sell)]


# --- evidence -----------------------------------------------------------------------------------


def test_evidence_adds_up_to_the_score(frames: dict[str, pd.DataFrame]) -> None:
    for frame in frames.values():
        for _, row in frame[frame["valid"]].iloc[::397].iterrows():
            for vector, evidence in explain(row).items():
                parts = evidence.components
                assert {part.name: part.weight for part in parts} == COMPONENTS[vector]
                assert all(part.value == row[part.name] for part in parts)
                total = SCALES[vector] * sum(part.weight * part.value for part in parts)
                assert abs(total - evidence.score) < ROUNDING and evidence.score == row[vector]


def test_evidence_is_told_in_one_line(frames: dict[str, pd.DataFrame]) -> None:
    row: Any = frames["EURUSD_H1"].loc[pd.Timestamp("2017-03-15T18:00Z")]
    told = explain(row)
    assert tuple(told) == VECTORS
    assert told["momentum"].note == "+0.52: RSI14 74.7 (+0.17); MACD histogram +0.0006763 (+0.10)"
    notes = [told[vector].note for vector in VECTORS]
    notes += [part.note for vector in VECTORS for part in told[vector].components]
    assert all(note and "\n" not in note and len(note) < 160 for note in notes)
    assert explain(row.to_dict()) == told


def test_evidence_names_what_speaks_against_the_score(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["EURUSD_H1"]
    row = frame[(frame["momentum"] > 0.1) & (frame["mo_histogram"] < -0.5)].iloc[0]
    assert re.search(
        r"^\+0\..*; against: MACD histogram .* \(-0\.\d\d\)$", explain(row)["momentum"].note
    )


def test_there_is_no_evidence_in_the_warm_up(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["EURUSD_H1"]
    with pytest.raises(ValueError, match="warm-up"):
        explain(frame.iloc[WARM_UP - 2])
    assert explain(frame.iloc[WARM_UP - 1])


# --- the page -----------------------------------------------------------------------------------

DOCS = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")


def table(header: str) -> list[list[str]]:
    """Return the cells of the first table of the page whose header row starts like this."""
    lines = DOCS[DOCS.index(f"| {header} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def test_the_page_defines_every_indicator() -> None:
    named = [name.strip() for row in table("column | definition") for name in row[0].split(",")]
    assert sorted(named) == sorted(INDICATORS)


def test_the_page_has_the_weights_widths_and_scales_of_the_code() -> None:
    rows = table("vector | component | weight | width | formula")
    told = [(vector, name, float(weight)) for vector, name, weight, _, _ in rows]
    assert told == [
        (v, name, w) for v, weights in COMPONENTS.items() for name, w in weights.items()
    ]
    assert {name: float(width) for _, name, _, width, _ in rows if width} == WIDTHS
    assert all(("width" in formula) == bool(width) for *_, width, formula in rows)
    assert {vector: float(scale) for vector, scale in table("vector | scale")} == SCALES


EXAMPLE = DOCS[DOCS.index("## A worked example") :]


def arithmetic(text: str) -> float:
    """Work out a calculation as it stands on the page."""
    assert re.fullmatch(r"[\d.\s()+\-/x]|(?:tanh|[\d.\s()+\-/x])+", text)
    return float(eval(text.replace(" x ", " * "), {"__builtins__": {}, "tanh": math.tanh}))


def test_the_worked_example_is_true(frames: dict[str, pd.DataFrame]) -> None:
    stamp = re.search(r"EURUSD H1 .* the bar that opened at (\S+Z)", EXAMPLE)
    assert stamp
    row: Any = frames["EURUSD_H1"].loc[pd.Timestamp(stamp[1])]
    for name, value in table("indicator | value"):
        assert math.isclose(float(value), row[name], rel_tol=1e-8), name
    products = []
    for name, calculation, value, weight, product in table(
        "component | calculation | value | weight | product"
    ):
        assert float(weight) == COMPONENTS["momentum"][name]
        assert float(value) == round(row[name], 5), name
        assert abs(arithmetic(calculation) - row[name]) < 2e-6, name
        assert float(product) == round(row[name] * float(weight), 5), name
        products.append(float(product))
    end = re.search(
        r"sum to ([\d.]+); times the scale ([\d.]+) the score is \*\*([\d.]+)\*\*", EXAMPLE
    )
    assert end
    total, scale, score = (float(x) for x in end.groups())
    assert abs(total - sum(products)) < 1.5e-5 and scale == SCALES["momentum"]
    assert abs(total * scale - score) < 1e-5 and score == round(row["momentum"], 5)
