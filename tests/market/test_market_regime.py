"""The regime of a market and the flags of its newest bar: borders, order, symmetry, shares."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from technical_calculator import score_frame
from tests import ROOT
from tests.cases import cases
from tests.worlds.price_series import SAMPLES, sample
from torra.market.regime import (
    BROAD_RANGE_ATR,
    BROAD_VOLUME,
    GAP_ATR,
    QUIET_UPTO,
    RANGE_SPIKE_ATR,
    REGIME_READS,
    REGIMES,
    STALE_BARS,
    TREND_ADX,
    TRIAGE_FLAGS,
    VOLATILE_FROM,
    VOLUME_SPIKE,
    Beyond,
    read,
    triage,
)

CALM: Mapping[str, float] = {
    "adx14": 15.0,
    "plus_di": 20.0,
    "minus_di": 18.0,
    "volatility_percentile": 50.0,
}
TURNED = {"trend_up": "trend_down", "trend_down": "trend_up"}
STEP = 0.01
"""The last decimal of what is read."""

of_100 = st.floats(0, 100) | st.just(math.nan)
rows = st.fixed_dictionaries(dict.fromkeys(CALM, of_100))


def name(**changes: float) -> str:
    return read({**CALM, **changes}).name


def turned(row: Mapping[str, float]) -> dict[str, float]:
    return {**row, "plus_di": row["minus_di"], "minus_di": row["plus_di"]}


# --- the regime -----------------------------------------------------------------------------------


@cases(
    ("changes", "expected"),
    [
        ({}, "range"),
        ({"adx14": TREND_ADX}, "trend_up"),
        ({"adx14": TREND_ADX - STEP}, "range"),
        ({"adx14": TREND_ADX, "minus_di": 21.0}, "trend_down"),
        ({"adx14": TREND_ADX, "minus_di": 20.0}, "range"),
        ({"volatility_percentile": VOLATILE_FROM}, "volatile"),
        ({"volatility_percentile": VOLATILE_FROM - STEP}, "range"),
        ({"volatility_percentile": QUIET_UPTO}, "quiet"),
        ({"volatility_percentile": QUIET_UPTO + STEP}, "range"),
        ({"volatility_percentile": VOLATILE_FROM, "adx14": 60.0}, "volatile"),
        ({"volatility_percentile": QUIET_UPTO, "adx14": 60.0}, "trend_up"),
    ],
)
def test_a_regime_begins_at_its_border_and_the_first_that_holds_wins(
    changes: dict[str, float], expected: str
) -> None:
    assert name(**changes) == expected


@cases(
    ("unknown", "expected"),
    [
        (("adx14",), "range"),
        (("plus_di",), "range"),
        (("minus_di",), "range"),
        (("volatility_percentile",), "trend_up"),
        (tuple(CALM), "range"),
    ],
)
def test_what_is_not_known_holds_nothing(unknown: tuple[str, ...], expected: str) -> None:
    known = {**CALM, "adx14": 40.0}
    for nothing in (dict.fromkeys(unknown, math.nan), dict.fromkeys(unknown, math.inf)):
        assert name(**{**known, **nothing}) == expected
    assert read({k: v for k, v in known.items() if k not in unknown}).name == expected
    assert read({}).reads == dict.fromkeys(REGIME_READS)


@given(rows)
def test_turned_round_a_trend_turns_and_nothing_else(row: dict[str, float]) -> None:
    one, other = read(row).name, read(turned(row)).name
    assert one in REGIMES
    assert other == TURNED.get(one, one)


@given(rows)
def test_whoever_sees_what_was_read_finds_the_same_regime(row: dict[str, float]) -> None:
    found = read(row)
    assert tuple(found.reads) == REGIME_READS
    told = {feature.removeprefix("technical."): v for feature, v in found.reads.items()}
    assert read({k: v for k, v in told.items() if v is not None}) == found
    assert all(value is None or round(value, 2) == value for value in told.values())


def rows_of(frame: Any) -> list[dict[str, float]]:
    found: list[dict[str, float]] = frame[list(CALM)].to_dict("records")
    return found


def shares(series: str) -> dict[str, float]:
    frame = score_frame(sample(series))
    found = Counter(read(row).name for row in rows_of(frame[frame["valid"]]))
    return {regime: 100.0 * found[regime] / found.total() for regime in REGIMES}


PAGE = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("series", SAMPLES)
def test_every_regime_comes_and_none_is_most_of_the_time(series: str) -> None:
    """Also: the page tells the shares of the shipped bars as they are."""
    found = shares(series)
    assert min(found.values()) >= 5.0
    assert max(found.values()) <= 60.0
    line = re.search(rf"^\| {series.replace('_', ' ')} \|(.*)\|$", PAGE, re.MULTILINE)
    assert line
    assert [float(cell.strip(" %")) for cell in line[1].split("|")] == [
        round(found[regime], 1) for regime in REGIMES
    ]


def test_the_page_has_the_borders_of_the_code() -> None:
    section = PAGE[PAGE.index("## The regime") :].split("\n## ")[0]
    told = dict(re.findall(r"^\| (\w+) \| (.*) \|$", section, re.MULTILINE))
    assert f"{VOLATILE_FROM:.0f}" in told["volatile"]
    assert f"{TREND_ADX:.0f}" in told["trend_up"]
    assert f"{QUIET_UPTO:.0f}" in told["quiet"]
    assert f"{RANGE_SPIKE_ATR:g} ATR" in told["range_spike"]
    assert f"{VOLUME_SPIKE:g} x" in told["volume_spike"]
    assert f"{GAP_ATR:g} ATR" in told["gap"]
    assert f"{STALE_BARS:g} bar" in told["stale"]


# --- triage ---------------------------------------------------------------------------------------

USUAL: Mapping[str, Any] = {
    "range_atr": 1.0,
    "volume_ratio": 1.0,
    "gap_atr": 0.0,
    "bar_age": 0.0,
}


def flags(**changes: Any) -> tuple[str, ...]:
    return triage(**{**USUAL, **changes})


@cases(
    ("given_", "limit", "flag"),
    [
        ("range_atr", RANGE_SPIKE_ATR, "range_spike"),
        ("volume_ratio", VOLUME_SPIKE, "volume_spike"),
        ("gap_atr", GAP_ATR, "gap"),
        ("gap_atr", -GAP_ATR, "gap"),
        ("bar_age", STALE_BARS, "stale"),
    ],
)
def test_a_flag_is_set_from_its_limit_on(given_: str, limit: float, flag: str) -> None:
    assert flags() == ()
    assert flags(**{given_: limit}) == flags(**{given_: 3 * limit}) == (flag,)
    assert flags(**{given_: limit * 0.99}) == ()
    assert flags(**{given_: None}) == flags(**{given_: math.nan}) == ()


def test_flags_keep_their_order() -> None:
    odd: dict[str, Any] = {"range_atr": 9.0, "volume_ratio": 9.0, "gap_atr": -9.0, "bar_age": 9.0}
    assert flags(**odd) == TRIAGE_FLAGS[:4]
    assert flags(beyond=BROKE, **odd) == TRIAGE_FLAGS[:5]
    assert flags(beyond=CAME_BACK, **odd) == (*TRIAGE_FLAGS[:4], "exhaustion")


BROKE: Final = Beyond(high=12.0, low=9.0, close=11.5, swing_high=11.0, swing_low=8.0)
CAME_BACK: Final = replace(BROKE, close=10.5)
BROAD: Final[Mapping[str, Any]] = {"range_atr": BROAD_RANGE_ATR, "volume_ratio": BROAD_VOLUME}


@cases(
    ("beyond", "flag"),
    [
        (BROKE, ("breakout",)),
        (CAME_BACK, ("exhaustion",)),
        # at the swing is not beyond it
        (replace(BROKE, close=11.0), ("exhaustion",)),
        (replace(BROKE, high=11.0, close=11.0), ()),
        # it was beyond the swing before this bar
        (replace(BROKE, low=11.1), ()),
        (replace(BROKE, swing_high=math.nan), ()),
        (replace(BROKE, swing_low=math.nan), ("breakout",)),
        (replace(CAME_BACK, swing_low=math.nan), ()),
        (None, ()),
    ],
)
def test_a_broad_bar_breaks_out_or_comes_back(beyond: Beyond | None, flag: tuple[str, ...]) -> None:
    turned = beyond and upside_down(beyond)
    assert flags(beyond=beyond, **BROAD) == flags(beyond=turned, **BROAD) == flag
    for name, limit in BROAD.items():
        narrow = {**BROAD, name: limit * 0.99}
        unknown = {**BROAD, name: None}
        assert flags(beyond=beyond, **narrow) == flags(beyond=beyond, **unknown) == ()


def upside_down(bar: Beyond) -> Beyond:
    return Beyond(-bar.low, -bar.high, -bar.close, -bar.swing_low, -bar.swing_high)
