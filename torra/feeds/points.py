"""The size of a point, told by the prices that stand in a text, and spreads counted in it.

MetaTrader counts a spread in points, the last decimal with which it quotes the symbol, and writes
every price with all of its decimals. So the text of the prices tells the point, whatever the desk
believes of the symbol. Where it does not tell it, nothing is guessed: there are no spreads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

TOLD_SHARE: Final = 0.25
"""Share of prices that must have all decimals: a program that rewrote a file may have dropped the
last zeros, and of a symbol that moves by quarters half of its prices end with one.
"""

TOLD_PRICES: Final = 100
"""Prices without which a file of a program that nobody knows tells nothing."""

MOST_DECIMALS: Final = 8
"""What MetaTrader quotes with at most; more are binary fractions written out."""


def decimals_of(prices: Sequence[str], *, terminal: bool) -> int | None:
    """Return with how many decimals a symbol is quoted, by the texts of its prices.

    `terminal` says that MetaTrader wrote them, so that few will do. None where they do not tell.
    """
    if not prices or (len(prices) < TOLD_PRICES and not terminal):
        return None
    behind = [len(price.strip().partition(".")[2]) for price in prices]
    most = max(behind)
    enough = behind.count(most) >= TOLD_SHARE * len(behind)
    return most if enough and most <= MOST_DECIMALS else None


def in_price(points: NDArray[np.float64], decimals: int | None) -> NDArray[np.float64]:
    """Return spreads in units of the price; NaN for all where the point is not known."""
    if decimals is None:
        return np.full(len(points), np.nan)
    # Rounded: 28 points of 0.01 are 0.28 and no 0.28000000000000003.
    return np.round(points / 10.0**decimals, decimals)
