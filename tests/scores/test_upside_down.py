"""What a market says as BUY its mirror image says as SELL, record score and all."""

from __future__ import annotations

import re

import pytest

from ath_calculator import RecordScore
from benchmarks.record_shares import SHIPPED, Shares, shares, upside_down
from tests.conftest import Scale
from tests.worlds.price_series import sample
from torra.config import ROOT

TOLERANCE = 0.1
"""Percentage points."""

BARS = 4000
DOCS = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")


def told(symbol: str, newest: int | None = None, form: RecordScore = "both") -> list[Shares]:
    """The shares of a shipped symbol and of its mirror image, on its newest bars."""
    frames = {name.split("_")[1]: sample(name) for name in SHIPPED[symbol]}
    if newest:
        start = max(frame.index[-min(newest, len(frame))] for frame in frames.values())
        frames = {name: frame[frame.index >= start] for name, frame in frames.items()}
    return [shares(one, form) for one in (frames, upside_down(frames))]


@pytest.mark.parametrize("symbol", SHIPPED)
def test_a_mirror_image_sells_what_the_market_buys(symbol: str, scaled: Scale) -> None:
    one, other = told(symbol, scaled(100_000, least=BARS))
    assert abs(one.buy - other.sell) <= TOLERANCE
    assert abs(one.sell - other.buy) <= TOLERANCE
    assert max(one) > 1, "there must be verdicts to compare"


@pytest.mark.parametrize("symbol", SHIPPED)
def test_the_record_high_alone_is_not_symmetric(symbol: str) -> None:
    """So the comparison can fail."""
    one, other = told(symbol, BARS, "high")
    assert abs(one.buy - other.sell) > TOLERANCE


@pytest.mark.parametrize("symbol", SHIPPED)
def test_the_page_has_the_shares_of_the_shipped_bars(symbol: str) -> None:
    (row,) = re.findall(rf"\| {symbol} \(.*?\) \| (.*) \|", DOCS)
    shown = [float(cell.removesuffix(" %")) for cell in row.split(" | ")]
    one, other = told(symbol)
    assert shown == [round(value, 1) for value in (*one, *other)]
