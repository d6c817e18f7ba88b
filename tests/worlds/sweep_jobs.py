"""A pass on L1 as work of a shard: it takes its bars along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tests.worlds.price_series import sample
from torra.config import Instance, Profile, validate
from torra.evaluation.observations import as_json
from torra.replay.l1.sweep import L1Backtest
from torra.replay.shards.packed_bars import pack, unpack
from torra.replay.shards.shards import Job


def sweep(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pass over thresholds of L1 on the bars that the job brings along."""
    profile = validate(Profile, spec["profile"], "a job")
    instance = Instance(symbol="EURUSD", timeframes=("H1",), feed="store")
    found = L1Backtest(instance, {"H1": unpack(spec["bars"])}).run(profile)
    return {
        "consensus": found.consensus[np.isfinite(found.consensus)].tolist(),
        "verdicts": found.verdict.tolist(),
        "trades": [as_json(trade) for trade in found.trades],
    }


def sweeps(thresholds: Iterable[float]) -> list[Job]:
    """Return a job for each threshold, on a part of the shipped bars."""
    bars = pack(sample("EURUSD_H1").iloc[:500])
    return [
        Job(
            f"buy from {limit}",
            {"bars": bars, "profile": {"thresholds": {"buy": limit, "sell": limit}}},
        )
        for limit in thresholds
    ]
