"""The pass on L1 alone equals run_tick, verdict for verdict and trade for trade."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from technical_calculator import score_frame
from tests.worlds import l1_markets
from tests.worlds.price_series import row_of
from torra.clock import duration
from torra.config import ROOT, Profile, validate
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation
from torra.replay.arms import ARMS
from torra.replay.l1 import trades as l1_trades
from torra.replay.l1.sweep import L1Backtest, L1Result, sweep
from torra.replay.l1.verdicts import BUY, SELL
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards.history import History, cut, load
from torra.verdict import sentiment_rules

pytestmark = pytest.mark.usefixtures("scored_once")

WORDS = {BUY: "BUY", SELL: "SELL", 0: "HOLD"}
END = datetime.fromisoformat("2021-11-20T00:00:00+00:00")


@cache
def sample(symbol: str, *timeframes: str) -> History:
    files = [str(ROOT / "sample_data" / f"{symbol}_{name}.csv") for name in timeframes]
    return load(Path("nowhere"), symbol, files)


def ground(history: History, **bounds: Any) -> L1Backtest:
    return L1Backtest(Schedule.of(history).instance, history.frames, **bounds)


def replayed(history: History, profile: Profile, **bounds: Any) -> ArmObservation:
    """The very run_tick over the same bars, with nobody asked."""
    return run_arm(Schedule.of(history, **bounds), ARMS["l1"], profile, AgentSource())


def assert_equal(found: L1Result, seen: ArmObservation) -> None:
    told = [WORDS[int(verdict)] for verdict in found.verdict]
    assert told == [tick.verdict for tick in seen.ticks]
    assert found.consensus.tolist() == [tick.consensus for tick in seen.ticks]
    assert found.trades == seen.trades
    assert found.halts == seen.halts


def newest(history: History, begin: datetime) -> History:
    """What scores stand on at `begin`, and everything after it."""
    start = {name: begin - 230 * duration(name) for name in history.timeframes}
    frames = {name: frame[frame.index >= start[name]] for name, frame in history.frames.items()}
    return History(history.symbol, frames, history.sources)


SAMPLES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "default": (("BTCUSD", "M15", "H1"), {}),
    "close": (("BTCUSD", "M15", "H1"), {"thresholds": {"buy": 0.2, "sell": 0.3}}),
    "hold_single": (
        ("BTCUSD", "M15"),
        {"thresholds": {"buy": 0.3, "sell": 0.3}, "on_opposite": "hold"},
    ),
    "reverse_hourly": (
        ("EURUSD", "H1"),
        {"thresholds": {"buy": 0.3, "sell": 0.3}, "on_opposite": "reverse"},
    ),
    "equal_weights": (
        ("BTCUSD", "M15", "H1"),
        {
            "thresholds": {"buy": 0.15, "sell": 0.15},
            "on_opposite": "reverse",
            "timeframe_weights": {"M15": 1.0, "H1": 1.0},
        },
    ),
    "record_high_alone": (
        ("BTCUSD", "M15", "H1"),
        {"record_score": "high", "thresholds": {"buy": 0.2, "sell": 0.3}},
    ),
    "nothing_goes_out": (("BTCUSD", "M15"), {"execution": "off"}),
}


@pytest.mark.by_day("default", "record_high_alone", "nothing_goes_out")
@pytest.mark.parametrize("name", SAMPLES)
def test_the_shipped_sample(name: str, scaled: Callable[..., int]) -> None:
    (symbol, *timeframes), changes = SAMPLES[name]
    history = sample(symbol, *timeframes)
    end = END if symbol == "BTCUSD" else history.period[1]
    begin = end - timedelta(days=scaled(40, 1 if symbol == "BTCUSD" else 5))
    profile = validate(Profile, changes, name)
    bounds = {"begin": begin, "end": end}
    history = cut(newest(history, begin), None, end)
    seen = replayed(history, profile, **bounds)
    assert_equal(ground(history, **bounds).run(profile), seen)
    assert bool(seen.trades) == (name != "nothing_goes_out")


LIMITS: dict[str, tuple[int, dict[str, Any]]] = {
    "vetoes_and_latches": (
        11,
        {"gate_max_spread_atr": 0.04, "spec_spread": 0.04, "on_opposite": "reverse"},
    ),
    "messages_halt": (11, {"risk_max_signals_per_hour": 1, "on_opposite": "reverse"}),
    "openings_halt": (10, {"risk_max_same_openings_per_hour": 1, "threshold": 0.05}),
    "cooldown": (8, {"risk_cooldown_bars": 8}),
    "day_loss": (
        1,
        {"risk_daily_loss_cap_pct": 0.6, "risk_risk_per_trade_pct": 0.3, "threshold": 0.05},
    ),
    "streaks": (4, {"gate_losing_streak": 1, "gate_volatility_percentile": 50.0}),
    "streak_takes_all": (4, {"gate_losing_streak": 1, "gate_losing_streak_multiplier": 0.0}),
    "collar": (2, {"risk_price_collar_atr": 0.1, "on_opposite": "reverse", "threshold": 0.05}),
    "partial_fills": (
        8,
        {"spec_fill_lots": 0.05, "spec_slippage": 0.03, "on_opposite": "reverse"},
    ),
    "near_the_caps": (4, {"risk_max_notional_pct": 250.0, "risk_risk_per_trade_pct": 3.0}),
    "leverage_caps": (4, {"risk_leverage_caps": {"M15": 0.6}, "risk_risk_per_trade_pct": 3.0}),
    "no_position_allowed": (4, {"risk_max_positions": 0}),
    "stops_level": (4, {"spec_stops_level": 180}),
    "thin_data": (8, {"gate_min_valid_bars": 280}),
}
"""Each with a walk on which it bites, on a border where there is one."""


@pytest.mark.by_day(
    "vetoes_and_latches",
    "messages_halt",
    "day_loss",
    "leverage_caps",
    "no_position_allowed",
    "stops_level",
)
@pytest.mark.parametrize("name", LIMITS)
def test_limits_vetoes_and_halts(name: str, scaled: Callable[..., int]) -> None:
    seed, changed = LIMITS[name]
    changes = {"threshold": 0.1, **changed}
    profile = l1_markets.profile(**changes)
    history = walked(seed, scaled(3000, 345))
    seen = replayed(history, profile)
    found = ground(history).run(profile)
    assert_equal(found, seen)
    loose = ground(history).run(l1_markets.profile(changes["threshold"]))
    assert found.trades != loose.trades, "the limit changed nothing: the test shows nothing"
    assert seen.halts or not name.endswith("halt")


def walked(seed: int, bars: int) -> History:
    """A walk without holes, on one timeframe."""
    return l1_markets.history(l1_markets.walk(seed, bars, holes=0.0), single=True)


def test_a_spread_that_rounds_down_to_the_limit() -> None:
    """The gate compares the exact ratio and vetoes it, in a sweep as on a tick."""
    history, spread = walked(4, 345), 0.04
    known = ground(history)
    loose = known.run(l1_markets.profile(0.1, spec_spread=spread))
    ratios = spread / known.streams[0].atr
    at = {moment: number for number, moment in enumerate(history.frames["M15"].index)}
    opened = [float(ratios[at[trade.opened] - 1]) for trade in loose.trades]
    limits = [round(ratio, 4) for ratio in opened if round(ratio, 4) < ratio]
    assert len(limits) > 2
    for limit in limits[:2]:
        profile = l1_markets.profile(0.1, spec_spread=spread, gate_max_spread_atr=limit)
        assert_equal(known.run(profile), replayed(history, profile))


ODD: Final = (44, 25, 2)
"""Walks with a percentile on its limit, a composite at the end of its freshness, no trade."""


@pytest.mark.parametrize("seed", ODD)
def test_anything_at_all(seed: int, scaled: Callable[..., int]) -> None:
    """Odd settings on walks with holes, with one timeframe and with two."""
    for case in range(scaled(60)):
        chosen = seed + 1000 * case
        history = l1_markets.history(l1_markets.walk(chosen, 1050), single=chosen % 3 == 0)
        begin = history.period[1] - timedelta(hours=scaled(100, 20))
        profile = l1_markets.odd_profile(chosen)
        found = ground(history, begin=begin).run(profile)
        assert_equal(found, replayed(history, profile, begin=begin))


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(2))
def test_an_opening_far_inside_the_limits_is_what_the_risk_engine_says(
    seed: int, monkeypatch: pytest.MonkeyPatch, scaled: Callable[..., int]
) -> None:
    """Without the shortcut every opening is reviewed, and nothing changes."""
    bars = l1_markets.walk(seed, scaled(20_000, 420), holes=0.0)
    history = l1_markets.history(bars, single=True)
    profiles = [l1_markets.odd_profile(100 * seed + case) for case in range(6)]
    short = [swept.trades for swept in sweep(ground(history), profiles)]
    monkeypatch.setattr(l1_trades._Desk, "_opened", lambda self, tick, side: None)
    assert short == [swept.trades for swept in sweep(ground(history), profiles)]
    assert sum(map(len, short)) > 10


def test_a_pass_that_was_done_elsewhere_is_used() -> None:
    history = l1_markets.history(l1_markets.walk(1, 600), single=True)
    scored = {name: score_frame(frame) for name, frame in history.frames.items()}
    instance = Schedule.of(history).instance
    given = L1Backtest(instance, history.frames, scored=scored).run(l1_markets.profile())
    assert given.trades == ground(history).run(l1_markets.profile()).trades != ()


def test_configurations_do_not_disturb_each_other() -> None:
    history = l1_markets.history(l1_markets.walk(5, 400), single=True)
    profiles = [l1_markets.odd_profile(seed) for seed in range(6)]
    together = [(found.trades, found.halts) for found in sweep(ground(history), profiles)]
    alone = [ground(history).run(profile) for profile in profiles]
    assert together == [(found.trades, found.halts) for found in alone]
    assert (
        together
        == [(found.trades, found.halts) for found in map(ground(history).run, profiles[::-1])][::-1]
    )


def test_the_future_changes_no_trade_that_has_ended() -> None:
    frame = l1_markets.walk(7, 500, holes=0.0)
    at = frame.index[400]
    torn = frame.copy()
    torn.loc[torn.index > at, ["open", "high", "low", "close"]] *= 1.7
    early = [
        [trade for trade in ground(l1_markets.history(one, single=True)).run(
            l1_markets.profile(0.1)).trades if trade.closed < at.to_pydatetime()]
        for one in (frame, torn)
    ]  # fmt: skip
    assert early[0] == early[1] != []


def test_what_it_cannot_know_is_refused(tmp_path: Path) -> None:
    history = l1_markets.history(l1_markets.walk(1, 300, holes=0.0), single=True)
    known = ground(history)
    with pytest.raises(ConfigError, match="calendar"):
        known.run(validate(Profile, {"events": {"calendar": str(tmp_path / "c.csv")}}, "a test"))
    with pytest.raises(ConfigError, match="WALK"):
        known.run(Profile())
    short = History("WALK", {"M15": history.frames["M15"].iloc[:100]}, {})
    with pytest.raises(ConfigError, match="fewer than 210 bars"):
        ground(short)


def test_no_tick_is_no_trade() -> None:
    history = l1_markets.history(l1_markets.walk(1, 300, holes=0.0), single=True)
    after = history.period[1] + timedelta(days=1)
    found = ground(history, begin=after).run(l1_markets.profile())
    assert (len(found.verdict), found.trades) == (0, ())


def test_ties_of_the_mean_go_to_the_even_digit() -> None:
    """Half of a score with eight digits is a tie wherever its last digit is odd."""
    history = l1_markets.history(l1_markets.walk(2, 400, holes=0.0), single=True)
    weights = dict.fromkeys(("key_levels", "structure", "ath"), 0.0)
    weights |= {"price_action": 0.25, "momentum": 0.25}
    profile = l1_markets.profile(0.3, sentiment_weights=weights)
    found = ground(history).run(profile)
    scored = score_frame(history.frames["M15"]).iloc[-len(found.verdict) :]
    told = [
        sentiment_rules.composite(row_of(row), 0.0, profile.sentiment_weights)
        for _, row in scored.iterrows()
    ]
    assert found.composite.tolist() == told
    odd = np.rint((scored["price_action"] + scored["momentum"]) * 1e8) % 2
    assert odd.sum() > 50


@pytest.mark.journey
def test_both_forms_of_the_record_score_on_one_ground() -> None:
    """They share what is scored once, and neither takes the other's composites."""
    history = l1_markets.history(l1_markets.walk(5, 500))
    weights = {**dict.fromkeys(("price_action", "key_levels", "momentum", "structure"), 0.0)}
    weights["ath"] = 1.0
    shared, found = ground(history), {}
    for form in ("both", "high"):
        profile = l1_markets.profile(0.3, sentiment_weights=weights, record_score=form)
        found[form] = shared.run(profile)
        assert_equal(found[form], replayed(history, profile))
    assert found["both"].composite.tolist() != found["high"].composite.tolist()
    assert not np.isnan(found["both"].composite).any()
