"""Levels and size: where stop and target lie, and that the loss at the stop stays in budget."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.cases import cases
from torra.config import SYMBOLS, Risk, SymbolSpec
from torra.verdict import position_size, risk_engine
from torra.verdict.order_levels import Side, stakes
from torra.verdict.risk_engine import DenyReason, Levels

R = DenyReason
BTC, EUR, GOLD = SYMBOLS["BTCUSD"], SYMBOLS["EURUSD"], SYMBOLS["XAUUSD"]

specs = st.builds(
    lambda digits, units, contract, step, least, most, spread: SymbolSpec(
        digits=digits,
        tick_size=float(Decimal(units).scaleb(-digits)),
        tick_value=float(Decimal(units).scaleb(-digits) * contract),
        contract_size=float(contract),
        lot_min=float(Decimal(str(step)) * least),
        lot_step=step,
        lot_max=float(Decimal(str(step)) * (least + most)),
        spread=float(Decimal(units).scaleb(-digits) * spread),
    ),
    digits=st.integers(0, 5),
    units=st.sampled_from((1, 5, 25)),
    contract=st.sampled_from((1, 10, 100, 5_000, 100_000)),
    step=st.sampled_from((0.001, 0.01, 0.05, 0.1, 0.25, 1.0)),
    least=st.integers(1, 10),
    most=st.integers(0, 10_000),
    spread=st.integers(0, 40),
)
risks = st.builds(
    Risk,
    capital=st.floats(10, 1e7).map(lambda value: round(value, 2)),
    risk_per_trade_pct=st.floats(0.01, 10).map(lambda value: round(value, 3)),
    max_notional_pct=st.floats(1, 2_000).map(lambda value: round(value, 1)),
)
sides = st.sampled_from(("BUY", "SELL"))


def levels_of(side: Side, price: float, atr: float, spec: SymbolSpec) -> Levels:
    """Return levels that nothing speaks against."""
    found = risk_engine.levels(side, price, atr, spec)
    assert isinstance(found, Levels), found
    return found


def dec(value: float) -> Decimal:
    return Decimal(repr(value))


@cases("side", ["BUY", "SELL"])
@cases(
    ("price", "atr", "reason"),
    [
        (math.nan, 1.0, DenyReason.BAD_NUMBER),
        (0.0, 1.0, DenyReason.BAD_NUMBER),
        (2_000.0, math.nan, DenyReason.BAD_NUMBER),
        (2_000.0, 0.0, DenyReason.BAD_NUMBER),
        (2_000.0, 1_000.0, DenyReason.BAD_NUMBER),  # stop of a BUY at zero, target of a SELL below
        (1e308, 1e307, DenyReason.BAD_NUMBER),
        (2_000.0, 5e-324, DenyReason.STOP_TOO_CLOSE),
        (2_000.0, 0.00999, DenyReason.STOP_TOO_CLOSE),  # below one tick
        (2_000.0, 0.125, DenyReason.STOP_TOO_CLOSE),  # the spread is 0.25
        (1e12 + 1, 1.0, DenyReason.BAD_NUMBER),
        (2_000.0, 1e12 + 1, DenyReason.BAD_NUMBER),
    ],
)
def test_levels_are_denied_and_never_raise(
    side: str, price: float, atr: float, reason: DenyReason
) -> None:
    assert risk_engine.levels(side, price, atr, GOLD) is reason


def test_the_nearest_stop_that_is_far_enough() -> None:
    assert levels_of("BUY", 2_000.0, 0.13, GOLD).stop == 1_999.74
    assert risk_engine.levels("BUY", 2_000.0, 0.127, GOLD) is DenyReason.STOP_TOO_CLOSE
    bare = GOLD.model_copy(update={"spread": 0.0})
    assert levels_of("BUY", 2_000.0, 0.01, bare).stop == 1_999.98
    assert risk_engine.levels("BUY", 2_000.0, 0.0099, bare) is DenyReason.STOP_TOO_CLOSE


def test_a_stop_keeps_the_brokers_level_beyond_the_spread() -> None:
    """Brokers measure a short's stop from the ask, a long's from the bid: both are far enough."""
    strict = GOLD.model_copy(update={"stops_level": 100})  # 1.00, and the spread is 0.25
    assert levels_of("SELL", 2_000.0, 0.625, strict).stop == 2_001.25
    assert risk_engine.levels("SELL", 2_000.0, 0.62, strict) is DenyReason.STOP_TOO_CLOSE
    loose = GOLD.model_copy(update={"stops_level": 1})  # one point, which is the tick
    assert levels_of("BUY", 2_000.0, 0.13, loose).stop == 1_999.74


@cases(
    ("tick", "price", "entry"),
    [
        (0.5, 10.25, 10.0), (0.5, 10.75, 11.0), (0.5, 10.74, 10.5), (0.5, 10.26, 10.5),
        (0.5, 11.25, 11.0), (25.0, 1_037.5, 1_050.0), (25.0, 1_062.5, 1_050.0),
        (25.0, 1_012.5, 1_000.0), (2.5, 18.75, 20.0), (2.5, 18.7, 17.5),
    ],
)  # fmt: skip
def test_a_price_goes_to_the_nearest_tick_and_of_two_to_the_even_one(
    tick: float, price: float, entry: float
) -> None:
    spec = GOLD.model_copy(update={"tick_size": tick, "spread": 0.0})
    wide = 1.2 * tick  # a stop of 2.4 ticks is one of 2
    levels = levels_of("BUY", price, wide, spec)
    assert levels == Levels(entry, entry - 2 * tick, entry + 4 * tick, wide)


@cases(
    ("step", "least", "lots", "smallest"),
    [
        (0.3, 0.3, 0.9, 0.3), (0.3, 0.9, 0.9, 0.9), (0.3, 1.0, 0.0, 1.2), (0.25, 0.01, 1.0, 0.25),
        (0.75, 0.75, 0.75, 0.75), (0.4, 1.0, 0.0, 1.2), (2.0, 2.0, 0.0, 2.0),
    ],
)  # fmt: skip
def test_a_size_is_whole_steps_of_the_budget(
    step: float, least: float, lots: float, smallest: float
) -> None:
    """The budget of 10 is one lot: it loses 10 at its stop, and is worth all of the capital."""
    spec = GOLD.model_copy(
        update={"tick_size": 1.0, "tick_value": 1.0, "lot_step": step, "lot_min": least}
    )
    risk = Risk(capital=1_000.0, risk_per_trade_pct=1.0, max_notional_pct=100.0)
    size = risk_engine.size(Levels(1_000.0, 990.0, 1_020.0, 5.0), spec, risk)
    assert size == pytest.approx(lots, rel=1e-12)
    assert position_size.smallest(spec) == pytest.approx(smallest, rel=1e-12)


@cases(
    ("lots", "reason"),
    [
        (0.5, None), (0.0, R.SIZE_ZERO), (0.2, R.LOT_BELOW_MIN), (60.0, R.LOT_ABOVE_MAX),
        (0.65, R.LOT_STEP), (math.nan, R.BAD_NUMBER),
    ],
)  # fmt: skip
def test_the_lot_rules_of_a_symbol(lots: float, reason: DenyReason | None) -> None:
    rules = {"lot_min": 0.25, "lot_step": 0.25, "lot_max": 50.0}
    assert risk_engine.lot_denial(lots, GOLD.model_copy(update=rules)) is reason


def test_what_a_move_is_worth() -> None:
    spec = GOLD.model_copy(update={"tick_size": 0.1, "tick_value": 3.0})
    assert position_size.worth(2.0, 0.5, spec) == pytest.approx(30.0)


@cases("tick", [0.5, 2.5, 25.0])
def test_the_highest_target_is_the_largest_price(tick: float) -> None:
    spec = GOLD.model_copy(update={"tick_size": tick, "spread": 1.0})
    top = risk_engine.LARGEST_PRICE
    assert levels_of("BUY", top - 400.0, 100.0, spec).target == top
    assert risk_engine.levels("BUY", top - 400.0 + tick, 100.0, spec) is DenyReason.BAD_NUMBER
    assert levels_of("SELL", 400.0 + tick, 100.0, spec).target == tick


def test_a_target_of_nothing_is_no_price() -> None:
    spec = GOLD.model_copy(update={"tick_size": 0.5, "spread": 1.0})
    top = risk_engine.LARGEST_PRICE
    assert levels_of("BUY", top - 400.0, 100.0, spec).target == top
    assert risk_engine.levels("BUY", top - 399.5, 100.0, spec) is DenyReason.BAD_NUMBER
    assert levels_of("SELL", 400.5, 100.0, spec).target == 0.5
    assert risk_engine.levels("SELL", 400.0, 100.0, spec) is DenyReason.BAD_NUMBER


@given(sides, st.floats(0, 1e9), st.floats(0, 1e6), specs)
def test_levels_are_whole_ticks_at_two_atr_and_two_r(
    side: str, price: float, atr: float, spec: SymbolSpec
) -> None:
    levels = risk_engine.levels(side, price, atr, spec)
    assume(isinstance(levels, Levels))
    assert isinstance(levels, Levels)
    tick = dec(spec.tick_size)
    entry, stop, target = (dec(v) for v in (levels.entry, levels.stop, levels.target))
    assert not any(value % tick for value in (entry, stop, target))
    assert abs(entry - dec(price)) <= tick / 2
    towards = 1 if side == "BUY" else -1
    distance = towards * (entry - stop)
    assert abs(distance - 2 * dec(atr)) <= tick / 2
    assert distance >= tick + dec(spec.spread)
    assert towards * (target - entry) == 2 * distance


@cases("broken", [math.nan, 0.0, -1.0, 1e13, 2_000.0])
def test_levels_that_are_none_or_alike_buy_nothing(broken: float) -> None:
    for entry, stop in ((broken, 2_000.0), (2_000.0, broken)):
        assert risk_engine.size(Levels(entry, stop, 2_000.0, 1.0), GOLD, Risk()) == 0.0


@given(*[st.floats()] * 4, st.floats())
def test_no_number_makes_a_size_or_a_value_raise(
    entry: float, stop: float, target: float, atr: float, multiplier: float
) -> None:
    lots = risk_engine.size(Levels(entry, stop, target, atr), GOLD, Risk(), multiplier)
    assert 0 <= lots <= GOLD.lot_max
    assert isinstance(risk_engine.notional(entry, stop, GOLD), float)
    assert isinstance(risk_engine.lot_denial(entry, GOLD), DenyReason | None)


@given(specs, risks, st.floats(1, 1e5), st.floats(0.001, 0.2), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_multiplier_never_buys_more(
    spec: SymbolSpec, risk: Risk, price: float, share: float, first: float, second: float
) -> None:
    levels = risk_engine.levels("BUY", price, price * share, spec)
    assume(isinstance(levels, Levels))
    assert isinstance(levels, Levels)
    low, high = sorted((first, second))
    sizes = [risk_engine.size(levels, spec, risk, m) for m in (low, high, 1.0)]
    assert sizes == sorted(sizes)
    assert risk_engine.size(levels, spec, risk, 1.0 + low) == sizes[-1], "above 1 it is no larger"


def test_notional_of_a_symbol_quoted_in_another_currency() -> None:
    """USDJPY: one lot is 100,000 dollars whatever a yen is worth."""
    yen = SymbolSpec(
        digits=3, tick_size=0.001, tick_value=0.64, contract_size=100_000.0, lot_min=0.01,
        lot_step=0.01, lot_max=50.0, spread=0.01,
    )  # fmt: skip
    assert risk_engine.notional(1.0, 156.25, yen) == 100_000.0
    assert risk_engine.notional(1e308, 1e308, yen) == math.inf, "beyond every float"
    assert math.isnan(risk_engine.notional(math.nan, 156.25, yen))


@given(specs, st.floats(1, 1e5).map(lambda value: round(value, 2)), st.floats(0.001, 0.2))
def test_break_even_is_one_and_cost_over_one_and_reward(
    spec: SymbolSpec, price: float, share: float
) -> None:
    """A chance of exactly that much is worth nothing: what the target gains, stop and cost take."""
    spec = spec.model_copy(update={"slippage": spec.spread / 2})
    told = stakes(price, price * share, spec)
    assume(told)
    found = levels_of("BUY", price, price * share, spec)
    entry, stop, target = (dec(level) for level in (found.entry, found.stop, found.target))
    cost = (dec(spec.spread) + 2 * dec(spec.slippage)) / (entry - stop)
    reward = (target - entry) / (entry - stop)
    assert told["reward_r"] == pytest.approx(float(reward), rel=1e-12)
    assert told["cost_r"] == pytest.approx(float(cost), rel=1e-12)
    assert told["break_even"] == pytest.approx(float((1 + cost) / (1 + reward)), rel=1e-12)
