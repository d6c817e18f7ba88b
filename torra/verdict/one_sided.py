"""Tells whether the verdicts of an instance lean to one side.

A desk that hardly buys, or hardly sells, is worth a look: the market may have gone one way, or the
settings lean. Arithmetic on counts; nothing is changed by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TICKS: Final = 2000
"""The newest ticks of an instance that are counted, those of all its timeframes together."""

SHARE: Final = 0.1
"""A side with less than this share of the other one's verdicts is told."""

LEAST: Final = 10
"""Verdicts that the greater side must have: below it a tenth is less than one verdict."""


def leans(buys: int, sells: int, least: int) -> bool:
    """Return whether one side has under SHARE of the other's verdicts, and those are `least`."""
    rare, often = sorted((buys, sells))
    return often >= least and rare < SHARE * often


def verdict_balance(verdicts: Mapping[str, float | None]) -> str:
    """Return what is to be told of the counted verdicts (BUY, SELL, HOLD), "" for nothing.

    Fewer than TICKS ticks tell nothing yet.
    """
    counts = {side: int(verdicts.get(side) or 0) for side in ("BUY", "SELL")}
    if sum(int(count or 0) for count in verdicts.values()) < TICKS:
        return ""
    if not leans(counts["BUY"], counts["SELL"], LEAST):
        return ""
    rare, often = sorted(counts, key=lambda side: counts[side])
    return (
        f"of the newest {TICKS:,} ticks {counts[often]:,} say {often} and "
        f"{counts[rare] or 'none'} {'says' if counts[rare] < 2 else 'say'} {rare}"
    )
