"""From verdict to action: what is asked for, which leg a check takes away, what halts the desk."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.config import SYMBOLS, Profile, Risk
from torra.verdict import risk_engine
from torra.verdict.risk_engine import (
    CLOSING,
    Account,
    Action,
    Decision,
    DenyReason,
    Leg,
    Levels,
    Position,
    PositionSide,
    SignalDraft,
)

BTC = SYMBOLS["BTCUSD"]
REVERSING = Profile(on_opposite="reverse")


def held(side: PositionSide, state: str = "FILLED", lots: float = 0.1) -> Position:
    return Position(
        instance="BTCUSD",
        symbol="BTCUSD",
        side=side,
        lots=lots,
        entry=47_000.0,
        stop=46_000.0,
        target=49_000.0,
        opened_at=datetime(2021, 12, 1, tzinfo=UTC),
        signal_id="TOLD",
        state=state,
    )


def review(verdict: str = "BUY", position: Position | None = None, **changes: Any) -> Action:
    given: dict[str, Any] = {
        "price": 48_000.0,
        "atr": 200.0,
        "veto": False,
        "opening_stands": True,
        "multiplier": 1.0,
        "positions_open": 1 if position else 0,
        "gross_notional": 4_700.0 if position else 0.0,
        **changes,
    }
    spec, profile = given.pop("spec", BTC), given.pop("profile", Profile())
    told = {name: given.pop(name) for name in Decision.__slots__ if name in given}
    return risk_engine.review(
        Decision(verdict=verdict, **told), position, Account(**given), spec, profile
    )


@cases(
    ("verdict", "side", "on_opposite", "name", "legs", "reason"),
    [
        ("HOLD", None, "close", "HOLD", (), "THRESHOLD"),
        ("HOLD", "LONG", "reverse", "HOLD", (), "THRESHOLD"),
        ("BUY", None, "close", "OPEN_BUY", (Leg("open", "BUY"),), "VERDICT"),
        ("SELL", None, "close", "OPEN_SELL", (Leg("open", "SELL"),), "VERDICT"),
        ("BUY", "LONG", "reverse", "HOLD", (), "POSITION_HELD"),
        ("SELL", "SHORT", "close", "HOLD", (), "POSITION_HELD"),
        ("SELL", "LONG", "hold", "HOLD", (), "POSITION_HELD"),
        ("SELL", "LONG", "close", "CLOSE", (Leg("close", "SELL"),), "OPPOSITE_VERDICT"),
        ("BUY", "SHORT", "close", "CLOSE", (Leg("close", "BUY"),), "OPPOSITE_VERDICT"),
        (
            "SELL", "LONG", "reverse", "REVERSE",
            (Leg("close", "SELL"), Leg("open", "SELL")), "OPPOSITE_VERDICT",
        ),
        (
            "BUY", "SHORT", "reverse", "REVERSE",
            (Leg("close", "BUY"), Leg("open", "BUY")), "OPPOSITE_VERDICT",
        ),
    ],
)  # fmt: skip
def test_what_verdict_and_position_ask_for(
    verdict: str,
    side: PositionSide | None,
    on_opposite: str,
    name: str,
    legs: tuple[Any, ...],
    reason: str,
) -> None:
    position = held(side) if side else None
    assert risk_engine.intent(verdict, position, on_opposite) == (name, legs, reason)


LEVELS = Levels(48_000.0, 47_600.0, 48_800.0, 200.0)
BOUGHT = SignalDraft("open", "BUY", 0.12, LEVELS)
SOLD = SignalDraft("close", "SELL", 0.1, closes="TOLD")
HALTED_BY = {"signals_last_hour": 99}


@cases(
    ("verdict", "side", "changes", "action"),
    [
        ("HOLD", "LONG", {}, Action("HOLD", "THRESHOLD")),
        ("BUY", "LONG", {}, Action("HOLD", "POSITION_HELD")),
        ("BUY", None, {}, Action("OPEN_BUY", "VERDICT", (BOUGHT,))),
        ("SELL", "LONG", {}, Action("CLOSE", "OPPOSITE_VERDICT", (SOLD,))),
        ("BUY", None, HALTED_BY,
         Action("HOLD", "MESSAGE_RATE", (), (DenyReason.MESSAGE_RATE,), DenyReason.MESSAGE_RATE)),
    ],
)  # fmt: skip
def test_an_action_is_whole(
    verdict: str, side: PositionSide | None, changes: dict[str, Any], action: Action
) -> None:
    assert review(verdict, held(side) if side else None, **changes) == action


@pytest.mark.parametrize("on_opposite", ["close", "reverse"])
def test_a_position_that_is_being_closed_is_not_closed_twice(on_opposite: Any) -> None:
    profile = Profile(on_opposite=on_opposite)
    action = review("SELL", held("LONG", CLOSING), profile=profile)
    assert (action.name, action.reason, action.drafts) == ("HOLD", "DUPLICATE_SIGNAL", ())
    assert action.denied == (DenyReason.DUPLICATE_SIGNAL,)
    assert risk_engine.intent("SELL", held("LONG", CLOSING), on_opposite).legs == ()
    assert review("BUY", held("LONG", CLOSING), profile=profile).reason == "POSITION_HELD"


def test_a_reversal_closes_all_of_its_position_first() -> None:
    action = review("SELL", held("LONG", lots=0.37), profile=REVERSING)
    close, opening = action.drafts
    assert (action.name, close.lots, close.levels) == ("REVERSE", 0.37, None)
    assert (close.kind, close.side, close.closes) == ("close", "SELL", "TOLD")
    assert (opening.kind, opening.side, opening.closes) == ("open", "SELL", "TOLD")


R = DenyReason
DENIED = [
    ({"veto": True}, (R.GATE_VETO,)),
    ({"bars_since_loss": {"BUY": 1.0, "SELL": 1.5}}, (R.COOLDOWN,)),
    ({"last_price": math.nan}, (R.BAD_NUMBER,)),
    ({"atr": 0.001}, (R.STOP_TOO_CLOSE,)),
    ({"multiplier": math.nan}, (R.SIZE_ZERO,)),
    ({"gross_notional": 19_000.0}, (R.EXPOSURE_CAP, R.MARGIN)),
    ({"positions_open": 9}, (R.MAX_POSITIONS,)),
]
"""Denials of either side; tests/verdict/test_risk_oracle.py has them all."""
COOLING = Risk(cooldown_bars=2)


@cases(("change", "reasons"), DENIED)
def test_a_denial_takes_the_opening_of_a_reversal_and_leaves_the_close(
    change: dict[str, Any], reasons: tuple[Any, ...]
) -> None:
    changed = {
        **change,
        "gross_notional": change.get("gross_notional", 0.0) + 4_700.0,
    }
    profile = Profile(on_opposite="reverse", risk=COOLING)
    action = review("SELL", held("LONG"), profile=profile, **changed)
    assert (action.name, action.reason, action.denied) == ("CLOSE", reasons[0].value, reasons)
    assert [draft.kind for draft in action.drafts] == ["close"]


@cases(("change", "reasons"), DENIED)
def test_nothing_but_a_halt_stops_a_close(change: dict[str, Any], reasons: tuple[Any, ...]) -> None:
    action = review("SELL", held("LONG"), **change)
    assert (action.name, action.reason, action.denied) == ("CLOSE", "OPPOSITE_VERDICT", ())


HALTING = [
    ({"signals_last_hour": 6}, (R.MESSAGE_RATE,)),
    ({"same_side_last_hour": {"BUY": 3, "SELL": 3}}, (R.REPEATED_EXECUTION,)),
    (
        {"signals_last_hour": 7, "same_side_last_hour": {"BUY": 4, "SELL": 4}},
        (R.MESSAGE_RATE, R.REPEATED_EXECUTION),
    ),
]


@pytest.mark.parametrize(("change", "reasons"), HALTING)
def test_a_halting_reversal_sends_nothing(change: dict[str, Any], reasons: tuple[Any, ...]) -> None:
    """A halted desk closes nothing either; the stop of the position lies with the broker."""
    action = review("SELL", held("LONG"), profile=REVERSING, **change)
    assert (action.name, action.drafts, action.halt) == ("HOLD", (), reasons[-1])


@pytest.mark.parametrize(("change", "reasons"), HALTING)
def test_an_opening_that_would_not_have_gone_out_anyway_halts_nothing(
    change: dict[str, Any], reasons: tuple[Any, ...]
) -> None:
    """A desk that only closes must go on closing."""
    for other, reason in (
        ({"trading_state": "REDUCING"}, R.TRADING_REDUCING),
        ({"veto": True}, R.GATE_VETO),
    ):
        action = review("SELL", held("LONG"), profile=REVERSING, **change, **other)
        assert (action.name, action.halt) == ("CLOSE", None)
        assert action.denied == (reason, *reasons)


def test_the_close_of_a_reversal_counts_as_a_message_before_its_opening() -> None:
    assert review("SELL", held("LONG"), profile=REVERSING, signals_last_hour=4).drafts
    action = review("SELL", held("LONG"), profile=REVERSING, signals_last_hour=5)
    assert action.halt is R.MESSAGE_RATE
    assert review("SELL", signals_last_hour=5).drafts


@cases("state", ["HALTED", "", "unknown"])
@cases("profile", [Profile(), REVERSING])
@cases("side", [None, "LONG"])
def test_halted_stops_both_legs(state: str, profile: Profile, side: PositionSide | None) -> None:
    position = held(side) if side else None
    action = review("SELL", position, profile=profile, trading_state=state)
    assert (action.name, action.reason, action.drafts) == ("HOLD", "TRADING_HALTED", ())
    assert action.denied == (DenyReason.TRADING_HALTED,)


def test_a_reversal_gives_back_its_own_position_first() -> None:
    full = {"positions_open": 3, "gross_notional": 18_900.0}
    assert review("SELL", held("LONG"), profile=REVERSING, **full).name == "REVERSE"
    one_more = {**full, "positions_open": 4}
    assert review("SELL", held("LONG"), profile=REVERSING, **one_more).name == "CLOSE"
    other = {**full, "gross_notional": 18_950.0}  # 18,950 - 4,700 + 5,760 is above 20,000
    assert review("SELL", held("LONG"), profile=REVERSING, **other).name == "CLOSE"


def test_rounding_of_the_books_is_not_a_broken_number() -> None:
    """What the position was worth may come out a rounding above the sum of all positions."""
    books = {"gross_notional": 0.1 * 47_000.0 - 1e-9, "positions_open": 1}
    assert review("SELL", held("LONG"), profile=REVERSING, **books).name == "REVERSE"
    books["gross_notional"] = 0.0
    exact = Profile(on_opposite="reverse", risk=Risk(exposure_cap_pct=57.6))
    assert review("SELL", held("LONG"), profile=exact, **books).name == "REVERSE"
    books["gross_notional"] = -0.01
    assert review("SELL", held("LONG"), profile=REVERSING, **books).denied == (R.BAD_NUMBER,)


@pytest.mark.parametrize(
    ("lots", "reason"),
    [(0.001, R.LOT_BELOW_MIN), (0.11, R.LOT_ABOVE_MAX), (0.015, R.LOT_STEP), (0.0, R.SIZE_ZERO)],
)
def test_a_size_that_breaks_a_rule_is_caught_by_the_second_look(
    monkeypatch: pytest.MonkeyPatch, lots: float, reason: DenyReason
) -> None:
    monkeypatch.setattr(risk_engine, "size", lambda *_args: lots)
    spec = BTC.model_copy(update={"lot_max": 0.1})
    assert review("BUY", spec=spec).denied[0] is reason


@pytest.mark.parametrize(
    ("stop", "target", "reasons"),
    [
        (48_000.0, 48_800.0, (R.STOP_WRONG_SIDE, R.STOP_TOO_CLOSE, R.SIZE_ZERO)),
        (48_400.0, 48_800.0, (R.STOP_WRONG_SIDE,)),
        (47_199.99, 48_800.0, (R.STOP_TOO_FAR,)),
        (47_600.0, 48_000.0, (R.TARGET_WRONG_SIDE,)),
    ],
)
def test_levels_that_are_degenerate_are_caught_by_the_second_look(
    monkeypatch: pytest.MonkeyPatch, stop: float, target: float, reasons: tuple[Any, ...]
) -> None:
    """Document 000: stop equals entry, wrong side, beyond 4 ATR: refused."""
    planned = Levels(48_000.0, stop, target, 200.0)
    monkeypatch.setattr(risk_engine, "levels", lambda *_args: planned)
    assert review("BUY").denied == reasons


@given(
    st.sampled_from(("BUY", "SELL", "HOLD")),
    st.sampled_from((None, "LONG", "SHORT")),
    st.sampled_from(("close", "reverse", "hold")),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 20_000),
    st.floats(10, 3_000),
    st.booleans(),
)
def test_a_lower_multiplier_never_adds_an_opening_or_raises_a_size(
    verdict: str,
    side: PositionSide | None,
    on_opposite: Any,
    first: float,
    second: float,
    gross: float,
    atr: float,
    stands: bool,
) -> None:
    """The exposure cap looks at the full size, so a smaller one cannot slip under it."""
    low, high = sorted((first, second))
    runs = [
        review(
            verdict, held(side) if side else None, profile=Profile(on_opposite=on_opposite),
            gross_notional=gross, atr=atr, opening_stands=stands, multiplier=multiplier,
        )
        for multiplier in (low, high)
    ]  # fmt: skip
    lots = [sum(d.lots for d in run.drafts if d.kind == "open") for run in runs]
    closes = [[d for d in run.drafts if d.kind == "close"] for run in runs]
    assert lots[0] <= lots[1]
    assert closes[0] == closes[1]


figures = st.floats() | st.sampled_from((0.0, -1.0, 48_000.0, 200.0, 1e308))


@given(
    verdict=st.sampled_from(("BUY", "SELL", "HOLD")),
    side=st.sampled_from((None, "LONG", "SHORT")),
    lots=figures,
    asked=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "price", "atr", "gross_notional", "day_loss", "multiplier", "last_price",
                "free_margin", "leverage", "live_spread", "bar_age", "score_age",
            ),
            figures,
        ),
    ),
    by_side=st.dictionaries(st.sampled_from(("BUY", "SELL")), figures),
)  # fmt: skip
def test_no_number_makes_review_raise(
    verdict: str,
    side: PositionSide | None,
    lots: float,
    asked: dict[Any, Any],
    by_side: dict[Any, Any],
) -> None:
    position = held(side, lots=lots) if side else None
    action = review(verdict, position, profile=REVERSING, bars_since_loss=by_side, **asked)
    for draft in action.drafts:
        assert draft.kind == "close" or 0 < draft.lots <= BTC.lot_max
