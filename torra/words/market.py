"""What a kind of market, and what an odd bar, is measured by, with the numbers of the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.swarm import anomalies
from torra.market import bar_anomalies
from torra.market import regime as market_regime

_BROAD: Final = (
    f"{market_regime.BROAD_RANGE_ATR:g} ATR or more at {market_regime.BROAD_VOLUME:g} times the "
    "usual volume"
)
TRIAGE: Final[Mapping[str, str]] = {
    "range_spike": f"high less low is {market_regime.RANGE_SPIKE_ATR:g} ATR or more",
    "volume_spike": f"{market_regime.VOLUME_SPIKE:g} times the usual volume or more",
    "gap": f"it opened {market_regime.GAP_ATR:g} ATR or more from the close before",
    "stale": "a newer bar is missing",
    "breakout": f"{_BROAD}, and it went through the last confirmed swing",
    "exhaustion": f"{_BROAD}, and it went beyond the last confirmed swing and closed back inside",
    "true_breakout": f"{_BROAD}, and open interest rose",
    "liquidation_cascade": f"{_BROAD}, and open interest fell",
    "liquidation_cluster": "longs or shorts liquidated rank "
    f"{bar_anomalies.CLUSTER_RANK:g} of 100 or more in their own past",
    "microstructure_imbalance": "the order book leans to one side by more than "
    f"{anomalies.LEANING:.0%}",
    "options_panic": "implied volatility ranks "
    f"{anomalies.PANIC_RANK:g} of 100 or more in its own past, or near-term stands above far",
}
"""What each flag of the feature market.triage says of the newest bar (torra.market.regime)."""

REGIMES: Final[Mapping[str, str]] = {
    "trend_up": f"ADX is {market_regime.TREND_ADX:g} or more and +DI above −DI",
    "trend_down": f"ADX is {market_regime.TREND_ADX:g} or more and −DI above +DI",
    "range": "no trend, and volatility is neither high nor low",
    "volatile": "ATR/close is at or above the "
    f"{market_regime.VOLATILE_FROM:g}th percentile of its own past, trend or not",
    "quiet": "no trend, and ATR/close is at or below the "
    f"{market_regime.QUIET_UPTO:g}th percentile of its own past",
}
"""The definition of each regime (torra.market.regime)."""
