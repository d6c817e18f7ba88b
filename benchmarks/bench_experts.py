"""What it takes to work out the evidence of a swarm's experts in a tick, all four blocks."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from benchmarks.rows import Part, Row, at_most, ready
from technical_calculator import HISTORY, score_frame
from tests.evidence.test_feature_bundle import bundle
from tests.worlds.price_series import row_of, sample
from torra.clock import duration
from torra.evidence import flow_readings
from torra.evidence.outside_readings import OutsideView
from torra.market.bar_view import BarArrays, BarView
from torra.market.spreads import spread_view

BARS: Final = 3_000
TICKS: Final = 500
TRIAL_TICKS: Final = 50
BLOCKS: Final = {
    "liquidity": "liquidity.vwap_atr",
    "micro": "micro.spread_count",
    "macro": "macro.vix",
    "geometry": "geometry.compression",
}
"""A feature of each block: asked for one, its whole block is worked out."""

OFTEN: Final = 95
"""Percentile of the ticks that a desk may count on."""

OUTSIDE: Final = OutsideView({"macro.vix": 18.0, "macro.dollar": 121.0, flow_readings.DELTA: 0.1})


def measure(trial: bool) -> dict[str, float]:
    """Return the ms of a tick's blocks, the median of each and of all, and the 95th percentile."""
    bars = sample("BTCUSD_M15").iloc[:BARS]
    spreads = np.random.default_rng(1).integers(1, 40, len(bars)) / 10
    rows, shelf = score_frame(bars), BarArrays(bars.assign(spread=spreads))
    spent: dict[str, list[float]] = {name: [] for name in BLOCKS}
    for end in np.linspace(HISTORY, BARS, TRIAL_TICKS if trial else TICKS, dtype=int).tolist():
        view = BarView(shelf, end - HISTORY, end)
        begin = time.perf_counter()
        known = spread_view(view.spreads, view.times)
        by_hour = time.perf_counter() - begin
        made = bundle(
            row_of(rows.iloc[end - 1]),
            bars=view,
            bar_time=view.last,
            as_of=view.last + duration("M15"),
            spreads=known,
            outside=OUTSIDE,
            experts=True,
        )
        for name, feature in BLOCKS.items():
            begin = time.perf_counter()
            assert made.features[feature].value is not None
            spent[name].append(time.perf_counter() - begin + by_hour * (name == "micro"))
    whole = np.sum([*spent.values()], axis=0)
    return {
        **{f"{name}_ms": 1e3 * float(np.median(found)) for name, found in spent.items()},
        "all_ms": 1e3 * float(np.median(whole)),
        "often_ms": 1e3 * float(np.percentile(whole, OFTEN)),
    }


PART: Final = Part(
    "experts",
    "Evidence of a swarm's experts",
    ready(measure),
    (
        Row("all_ms", "all four blocks of a tick", "{:.2f} ms", at_most(6)),
        Row("often_ms", "95th percentile", "{:.2f} ms"),
        *(Row(f"{name}_ms", f"of them {name}", "{:.2f} ms") for name in BLOCKS),
    ),
    "Bars of M15, the newest 750 of each tick; medians. The numbers of other markets are read "
    "before a tick: of the block `macro` only its features are made here. Another desk works none "
    "of the others out.",
)

if __name__ == "__main__":
    print(measure(trial=True))
