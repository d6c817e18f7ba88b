"""Document 003's five anomalies of the newest bar: each stands, does not, or is unknown.

    true_breakout             range at 1.5 ATR and volume at 2.0 of its mean, open interest up
    liquidation_cascade       the same, open interest down
    liquidation_cluster       longs or shorts liquidated rank 99 among their own three years
    microstructure_imbalance  the order book leans by more than 0.70, either way
    options_panic             implied volatility ranks 95, or near-term lies above far-term

The document's cluster is 100,000 USD within an hour. Liquidations grow with a venue and with the
price of a coin, so a limit in dollars soon holds in every hour or in none. A rank means the same in
every year. The spike of ATR is that of the bar: its range over ATR14, its mean.

An unknown number makes an anomaly unknown, unless the others decide it. The words have no side, so
the mirrored market has the same ones. Pure; nothing raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.swarm.anomalies import BOOK, FEAR, LEANING, Choices, limits
from torra.market.regime import BROAD_RANGE_ATR, BROAD_VOLUME

RANGE, VOLUME = "market.range_atr", "technical.volume_ratio"
INTEREST: Final = "derivs.open_interest_change"
LONGS, SHORTS = "derivs.long_liquidations_rank", "derivs.short_liquidations_rank"

CLUSTER_RANK: Final = 99.0
"""Rank of liquidations from which they are a cluster (GateSettings.liquidations_percentile)."""

BROAD: Final = f"{RANGE} >= {BROAD_RANGE_ATR} and {VOLUME} >= {BROAD_VOLUME}"

ANOMALIES: Final[Mapping[str, Choices]] = {
    "true_breakout": limits(f"{BROAD} and {INTEREST} > 0"),
    "liquidation_cascade": limits(f"{BROAD} and {INTEREST} < 0"),
    "liquidation_cluster": limits(f"{LONGS} >= {CLUSTER_RANK}", f"{SHORTS} >= {CLUSTER_RANK}"),
    "microstructure_imbalance": limits(f"|{BOOK}| > {LEANING}"),
    "options_panic": limits(*FEAR),
}
"""Limits of each anomaly: it stands where all of one row hold."""

READS: Final = tuple(
    {limit.feature: None for rows in ANOMALIES.values() for row in rows for limit in row}
)
"""Features that the anomalies are read from."""


CERTAINTY: Final = (False, None, True).index
"""Order of the answers: of all that must hold the least counts, of several ways the greatest."""


def anomalies(numbers: Mapping[str, float | None]) -> dict[str, bool | None]:
    """Return whether each anomaly stands, by its name; None is unknown."""
    return {
        name: max(
            (
                min((limit.holds(numbers.get(limit.feature)) for limit in row), key=CERTAINTY)
                for row in rows
            ),
            key=CERTAINTY,
        )
        for name, rows in ANOMALIES.items()
    }
