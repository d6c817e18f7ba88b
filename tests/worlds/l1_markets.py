"""Markets and settings for tests of the pass on L1 alone: random walks with holes, odd profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torra.config import Profile, validate
from torra.market.longer_bars import aggregate
from torra.replay.shards.history import History

SYMBOL = "WALK"
SPEC = {
    "digits": 2,
    "tick_size": 0.01,
    "tick_value": 1.0,
    "contract_size": 100.0,
    "lot_min": 0.01,
    "lot_step": 0.01,
    "lot_max": 50.0,
    "spread": 0.02,
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "on_opposite": ("close", "hold", "reverse"),
    "timeframe_weights": (
        {"M15": 0.4, "H1": 0.6},
        {"M15": 1.0, "H1": 1.0},
        {"M15": 0.5},
        {"M15": 0.9, "H4": 1.0},
    ),
    "sentiment_weights": ({}, dict.fromkeys(("price_action", "momentum", "structure"), 0.25)),
    "gate.max_spread_atr": (0.15, 0.04, 1.0),
    "gate.volatility_percentile": (95.0, 50.0),
    "gate.losing_streak": (3, 1),
    "gate.losing_streak_multiplier": (0.7, 0.0, 1.0),
    "risk.capital": (100_000.0, 10_000.0),
    "risk.max_signals_per_hour": (6, 1, 2),
    "risk.max_same_openings_per_hour": (3, 1),
    "risk.cooldown_bars": (0, 5),
    "risk.daily_loss_cap_pct": (2.0, 0.5, 1.0),
    "risk.max_notional_pct": (100.0, 250.0, 30.0),
    "risk.price_collar_atr": (1.0, 0.3),
    "risk.risk_per_trade_pct": (0.5, 1.0, 3.0),
    "spec.spread": (0.02, 0.05, 0.0),
    "spec.slippage": (0.0, 0.01),
    "spec.fill_lots": (0.0, 0.3),
    "spec.lot_step": (0.01, 0.1),
    "spec.stops_level": (0, 30),
}


def walk(seed: int, bars: int, *, holes: float = 0.02, price: float = 100.0) -> pd.DataFrame:
    """Return M15 bars with gaps, jumps at the open, and stretches that are not there."""
    rng = np.random.default_rng(seed)
    moves = rng.standard_t(4, bars) * 0.004
    close = price * np.exp(np.cumsum(moves))
    jumps = np.exp(rng.normal(0.0, 0.002, bars) * (rng.random(bars) < 0.2))
    opened = np.concatenate([[price], close[:-1]]) * jumps
    high = np.maximum(opened, close) * np.exp(np.abs(rng.normal(0.0, 0.002, bars)))
    low = np.minimum(opened, close) * np.exp(-np.abs(rng.normal(0.0, 0.002, bars)))
    index = pd.date_range("2024-01-03", periods=bars, freq="15min", tz="UTC", name="time")
    columns = {"open": opened, "high": high, "low": low, "close": close}
    frame = pd.DataFrame(columns, index=index).round(2)
    frame["volume"] = rng.integers(1, 1000, bars).astype(float)
    kept = rng.random(bars) >= holes
    for start in rng.integers(0, bars, 3 if holes else 0):
        kept[start : start + int(rng.integers(5, 50))] = False
    return frame[kept]


def history(frame: pd.DataFrame, *, single: bool = False) -> History:
    frames = {"M15": frame}
    if not single:
        frames["H1"] = aggregate(frame, "M15", "H1")
    return History(SYMBOL, frames, {})


def profile(threshold: float = 0.2, **changed: Any) -> Profile:
    """Return a profile; `changed` holds sections, or single keys as gate_max_spread_atr=..."""
    values: dict[str, Any] = {"thresholds": {"buy": threshold, "sell": threshold}}
    sections: dict[str, dict[str, Any]] = {"gate": {}, "risk": {}, "spec": dict(SPEC)}
    for name, value in changed.items():
        section, _, key = name.partition("_")
        if section in sections:
            sections[section][key] = value
        else:
            values[name] = value
    spec = sections.pop("spec")
    return validate(Profile, {**values, **sections, "symbols": {SYMBOL: spec}}, "a test")


def odd_profile(seed: int) -> Profile:
    """Return a profile with every setting drawn that the pass looks at."""
    rng = np.random.default_rng(seed)
    drawn = {
        name.replace(".", "_"): some[int(rng.integers(len(some)))] for name, some in CHOICES.items()
    }
    return profile(float(rng.choice([0.05, 0.1, 0.2, 0.3])), **drawn)
